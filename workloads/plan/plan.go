// Package plan turns a workload into what will be executed: the points of its sweep, and their
// repeats in an order that keeps drift of the environment from being taken for a difference
// between points.
package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
)

// Plan is everything that will be executed.
type Plan struct {
	Seed   uint64
	Points []Point
	// Order is every execution. All points run once before any runs again (a block), each
	// block in a random order of its own that depends on the seed alone.
	Order    []Execution
	Estimate Estimate
}

// Point is one combination of the swept values.
type Point struct {
	Index int
	ID    string // "p00", "p01", …: stable, safe in file names
	// Label is the swept settings for people: "requiredAcks=all flush={messages: 100}"; the
	// workload's name when nothing is swept.
	Label string
	// Skipped says why the combination makes no sense; it is then not in Order.
	Skipped string
	// Settings are the swept keys with their values, ready for JSON.
	Settings map[string]any
	// Definition is the workload at this point, without a sweep.
	Definition workloads.Definition
	// Client are all the client settings of the point, in order.
	Client []settings.Assignment
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
	total := 1
	for _, axis := range def.Sweep {
		if len(axis.Values) == 0 {
			return nil, fmt.Errorf("sweep.%s has no values", axis.Key)
		}
		if total *= len(axis.Values); total > workloads.MaxPoints {
			return nil, fmt.Errorf("the sweep has more than %d points", workloads.MaxPoints)
		}
	}
	names := shortNames(def.Sweep)
	var only settings.Problems
	for i := range total {
		point, problems := makePoint(def, client, names, i, total)
		p.Points = append(p.Points, point)
		only = problems
	}
	p.order(def.Repeat)
	if len(p.Order) == 0 {
		if len(def.Sweep) == 0 {
			return nil, only
		}
		return nil, fmt.Errorf("%w; %s: %s", ErrNothing, p.Points[0].Label, p.Points[0].Skipped)
	}
	p.Estimate = p.estimate()
	return p, nil
}

// makePoint is combination i: the last axis changes fastest.
func makePoint(def *workloads.Definition, client workloads.ClientSchema, names []string, i, total int) (Point, settings.Problems) {
	p := Point{Index: i, ID: fmt.Sprintf("p%0*d", max(2, len(fmt.Sprint(total-1))), i), Settings: map[string]any{}}
	var swept []settings.Assignment
	var labels []string
	block := total
	for k, axis := range def.Sweep {
		block /= len(axis.Values)
		v := axis.Values[i/block%len(axis.Values)]
		swept = append(swept, settings.Assignment{Key: axis.Key, Value: v})
		labels = append(labels, names[k]+"="+v.String())
		p.Settings[axis.Key] = v.Any()
	}
	p.Label = strings.Join(labels, " ")
	if len(labels) == 0 {
		p.Label = def.Name
	}
	var problems settings.Problems
	p.Definition, problems = def.With(swept...)
	p.Definition.Sweep = nil
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
func shortNames(axes []workloads.Axis) []string {
	names := make([]string, len(axes))
	for i, axis := range axes {
		parts := strings.Split(axis.Key, ".")
		for n := 1; n <= len(parts); n++ {
			names[i] = strings.Join(parts[len(parts)-n:], ".")
			if alone(axes, i, names[i]) {
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
