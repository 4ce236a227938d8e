package plan

import (
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
)

// DesignChosen is the kind of a design whose points were listed one by one; the others are those of
// workloads.Design.
const DesignChosen = "chosen"

// Design says how the points came about.
type Design struct {
	Kind string
	// Of is how many combinations there are in all, for the points that were taken of them.
	Of uint64
	// Base is the point that every other differs from in one setting, with one factor at a time.
	Base string
}

// String says it in a line; nothing of a full matrix.
func (d Design) String() string {
	switch d.Kind {
	case workloads.DesignOneFactor:
		return fmt.Sprintf("one factor at a time: each point differs from %s in one setting; all combinations would be %d", d.Base, d.Of)
	case workloads.DesignSample:
		return fmt.Sprintf("a sample of the %d combinations, drawn by the seed", d.Of)
	case DesignChosen:
		return "points that the workload lists"
	}
	return ""
}

// combination is what a point sets. place orders points and is the same for the same combination.
type combination struct {
	place uint64
	sets  []settings.Assignment
}

// designer gives the combinations of a design, one after the other.
type designer struct {
	def    *workloads.Definition
	kind   string
	total  uint64 // of the matrix
	wanted int    // points that can be run
	at     uint64
	random *rand.Rand
	// moved is what a shuffle of all combinations has moved so far: drawing without putting back, in
	// memory of what is drawn.
	moved map[uint64]uint64
}

func newDesigner(def *workloads.Definition) (*designer, error) {
	d := &designer{def: def, kind: def.Design.Kind, total: 1, wanted: workloads.MaxPoints}
	if len(def.Points) > 0 {
		d.kind = DesignChosen
		return d, nil
	}
	for _, axis := range def.Sweep {
		if len(axis.Values) == 0 {
			return nil, fmt.Errorf("sweep.%s has no values", axis.Key)
		}
		over, total := bits.Mul64(d.total, uint64(len(axis.Values)))
		if over != 0 || total > 1<<62 {
			return nil, fmt.Errorf("sweep.%s: with it there are more than 2^62 combinations", axis.Key)
		}
		d.total = total
	}
	switch d.kind {
	case workloads.DesignOneFactor:
	case workloads.DesignSample:
		d.wanted = def.Design.Points
		d.random = rand.New(rand.NewPCG(def.Seed, 0x73616d706c65))
		d.moved = map[uint64]uint64{}
	default:
		d.kind = workloads.DesignMatrix
		if d.total > workloads.MaxPoints {
			return nil, fmt.Errorf("the sweep has more than %d points", workloads.MaxPoints)
		}
	}
	return d, nil
}

// next is another combination; false when there are no more.
func (d *designer) next() (combination, bool) {
	i := d.at
	d.at++
	switch d.kind {
	case DesignChosen:
		if i >= uint64(len(d.def.Points)) {
			return combination{}, false
		}
		return combination{place: i, sets: d.def.Points[i]}, true
	case workloads.DesignOneFactor:
		return d.oneFactor(i)
	case workloads.DesignSample:
		if i >= d.total {
			return combination{}, false
		}
		return d.matrix(d.draw(i)), true
	}
	return d.matrix(i), i < d.total
}

// draw is the i-th of a shuffle of all combinations (Fisher and Yates).
func (d *designer) draw(i uint64) uint64 {
	where := func(k uint64) uint64 {
		if moved, is := d.moved[k]; is {
			return moved
		}
		return k
	}
	k := i + d.random.Uint64N(d.total-i)
	drawn := where(k)
	d.moved[k] = where(i)
	delete(d.moved, i)
	return drawn
}

// matrix is combination i of all: the last axis changes fastest.
func (d *designer) matrix(i uint64) combination {
	c := combination{place: i}
	block := d.total
	for _, axis := range d.def.Sweep {
		block /= uint64(len(axis.Values))
		c.sets = append(c.sets, settings.Assignment{Key: axis.Key, Value: axis.Values[i/block%uint64(len(axis.Values))]})
	}
	return c
}

// oneFactor is the i-th point: first the one of first values, then the others of each axis in turn.
func (d *designer) oneFactor(i uint64) (combination, bool) {
	c := d.matrix(0)
	c.place = i
	if i == 0 {
		return c, true
	}
	i--
	for k, axis := range d.def.Sweep {
		others := uint64(len(axis.Values) - 1)
		if i < others {
			c.sets[k].Value = axis.Values[i+1]
			return c, true
		}
		i -= others
	}
	return c, false
}

// design says how the points came about.
func (d *designer) design(points []Point) Design {
	out := Design{Kind: d.kind}
	if d.kind != DesignChosen {
		out.Of = d.total
	}
	if d.kind == workloads.DesignOneFactor {
		out.Base = points[0].ID
	}
	return out
}
