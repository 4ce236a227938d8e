// Package plan turns a workload into what will be executed: the points of its sweep, and their
// repeats in an order that keeps drift of the environment from being taken for a difference
// between points.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
)

// Plan is everything that will be executed.
type Plan struct {
	Seed   uint64
	Points []Point
	Design Design
	// Order is every execution. All points run once before any runs again (a block), each
	// block in a random order of its own that depends on the seed alone.
	Order    []Execution
	Estimate Estimate
}

// Point is one combination of the swept values, or one that was chosen.
type Point struct {
	Index int
	ID    string // "p00", "p01", …: stable, safe in file names
	// Label is the swept settings for people: "requiredAcks=all flush={messages: 100}"; the
	// workload's name when nothing is swept.
	Label string
	// Skipped says why the combination makes no sense; it is then not in Order.
	Skipped string
	// Settings are the swept keys with their values, ready for JSON; of points that were chosen also
	// those that only others set, with the workload's value.
	Settings map[string]any
	// Definition is the workload at this point, without a sweep.
	Definition workloads.Definition
	// Client are all the client settings of the point, in order.
	Client []settings.Assignment

	place uint64 // in the matrix, or in the list
}

// Execution is one run of a point.
type Execution struct {
	Point  int // index into Points
	Repeat int // from 0
	Order  int // place in the plan, from 0
}

// ErrNothing is returned, with the reasons, when no point of a workload can be run.
var ErrNothing = errors.New("no point of the sweep can be run")

// Make lays out a workload. The client's schema says which points make no sense; they stay in
// the plan with their reason. A workload none of whose points can be run is an error: what is
// wrong with the only point (settings.Problems), or ErrNothing.
func Make(def *workloads.Definition, client workloads.ClientSchema) (*Plan, error) {
	p := &Plan{Seed: def.Seed}
	d, err := newDesigner(def)
	if err != nil {
		return nil, err
	}
	only := p.points(def, client, d)
	p.order(def.Repeat)
	if len(p.Order) == 0 {
		if len(p.Points) == 1 && len(def.Swept()) == 0 {
			return nil, only
		}
		return nil, fmt.Errorf("%w; %s: %s", ErrNothing, p.Points[0].Label, p.Points[0].Skipped)
	}
	p.Estimate = p.estimate()
	return p, nil
}

// points makes those of the design, and gives what is wrong with the last. Of a sample more are drawn
// until as many as were asked for can be run.
func (p *Plan) points(def *workloads.Definition, client workloads.ClientSchema, d *designer) (problems settings.Problems) {
	names := shortNames(def.Swept())
	good := 0
	for good < d.wanted && len(p.Points) < workloads.MaxPoints {
		c, more := d.next()
		if !more {
			break
		}
		var point Point
		point, problems = makePoint(def, client, names, c)
		p.Points = append(p.Points, point)
		if point.Skipped == "" {
			good++
		}
	}
	slices.SortStableFunc(p.Points, func(a, b Point) int { return cmp.Compare(a.place, b.place) })
	width := max(2, len(strconv.Itoa(len(p.Points)-1)))
	for i := range p.Points {
		p.Points[i].Index, p.Points[i].ID = i, fmt.Sprintf("p%0*d", width, i)
	}
	p.Design = d.design(p.Points)
	return problems
}

// makePoint is one combination.
func makePoint(def *workloads.Definition, client workloads.ClientSchema, names map[string]string, c combination) (Point, settings.Problems) {
	p := Point{place: c.place, Settings: map[string]any{}}
	var labels []string
	for _, a := range c.sets {
		labels = append(labels, names[a.Key]+"="+a.Value.String())
		p.Settings[a.Key] = a.Value.Any()
	}
	p.Label = strings.Join(labels, " ")
	switch {
	case len(names) == 0:
		p.Label = def.Name
	case len(labels) == 0:
		p.Label = "as the workload has it"
	}
	for key := range names { // what other points set is what the workload says here
		if _, set := p.Settings[key]; set {
			continue
		}
		if v, known := def.ValueOf(key); known {
			p.Settings[key] = v
		}
	}
	var problems settings.Problems
	p.Definition, problems = def.Plain().With(c.sets...)
	p.Client = p.Definition.Client
	problems = append(problems, p.Definition.Check()...)
	if client != nil {
		problems = append(problems, client.Check(p.Client)...)
	}
	p.Skipped = reasons(problems)
	return p, problems
}

// reasons are the problems in one line, without places: a point has none.
func reasons(problems settings.Problems) string {
	var parts []string
	for _, p := range problems {
		p.File, p.Line, p.Column = "", 0, 0
		parts = append(parts, p.String())
	}
	return strings.Join(parts, "; ")
}

// shortNames are the swept keys by their last parts, as many as it takes to tell them apart.
func shortNames(axes []workloads.Axis) map[string]string {
	names := map[string]string{}
	for i, axis := range axes {
		parts := strings.Split(axis.Key, ".")
		for n := 1; n <= len(parts); n++ {
			names[axis.Key] = strings.Join(parts[len(parts)-n:], ".")
			if alone(axes, i, names[axis.Key]) {
				break
			}
		}
	}
	return names
}

func alone(axes []workloads.Axis, i int, name string) bool {
	for k, other := range axes {
		if k != i && (other.Key == name || strings.HasSuffix(other.Key, "."+name)) {
			return false
		}
	}
	return true
}

// order fills Order: blocks of all points that can be run, shuffled by seed and block.
func (p *Plan) order(repeats int) {
	var runnable []int
	for _, point := range p.Points {
		if point.Skipped == "" {
			runnable = append(runnable, point.Index)
		}
	}
	for repeat := range repeats {
		block := append([]int(nil), runnable...)
		random := rand.New(rand.NewPCG(p.Seed, uint64(repeat)))
		random.Shuffle(len(block), func(i, j int) { block[i], block[j] = block[j], block[i] })
		for _, index := range block {
			p.Order = append(p.Order, Execution{Point: index, Repeat: repeat, Order: len(p.Order)})
		}
	}
}
