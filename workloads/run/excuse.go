package run

import (
	"math"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// Move is something that happened to a partition during the run that makes its figures doubtful, unless a
// listed fault did it: another leader, or the loss of an in-sync replica.
type Move struct {
	Topic     int // by number among the run's topics
	Partition int32
	ISR       bool // a replica in sync was lost; else the leader is another
	// After and At are the instants, on the engine's clock, between which it happened: of the last look at the
	// topic before, and of the one that showed it. AnyTime in both where that is not known.
	After, At int64
}

// AnyTime stands for the instants of a Move that are not known: no fault excuses it.
const AnyTime = math.MaxInt64

// Excused are the partitions of a topic whose moves the workload's faults explain, every one of them.
type Excused struct{ Leaders, ISR map[int32]bool }

// excuse is what a fault that moves leaders explains: the moves of its partition, or with workloads.All of
// every one, from when it began until the load had recovered.
type excuse struct {
	partition   int32
	from, until int64 // on the engine's clock
}

func (x excuse) explains(m Move) bool {
	return (x.partition == workloads.All || x.partition == m.Partition) && m.At != AnyTime && m.At >= x.from && m.After <= x.until
}

// explain says, by topic, which partitions' moves are all explained.
func explain(topics int, moves []Move, by []excuse) []Excused {
	out := make([]Excused, topics)
	for i := range out {
		out[i] = Excused{map[int32]bool{}, map[int32]bool{}}
	}
	for _, m := range moves {
		if m.Topic < 0 || m.Topic >= topics {
			continue
		}
		of := out[m.Topic].Leaders
		if m.ISR {
			of = out[m.Topic].ISR
		}
		explained := false
		for _, x := range by {
			explained = explained || x.explains(m)
		}
		if was, seen := of[m.Partition]; !seen || was {
			of[m.Partition] = explained
		}
	}
	for _, x := range out {
		for _, of := range []map[int32]bool{x.Leaders, x.ISR} {
			for p, explained := range of {
				if !explained {
					delete(of, p)
				}
			}
		}
	}
	return out
}

// excuses are those of the faults that happened. One that the load did not recover from excuses everything
// after it; times of recovery are those of windows.
func (e *engine) excuses(faults []results.Fault) (list []excuse) {
	start := e.frame.start.Load()
	for i, d := range e.disturbances {
		if d.Kind != workloads.FaultLeader || d.skipped != "" {
			continue
		}
		x := excuse{partition: d.Partition, from: d.began, until: AnyTime}
		if f := faults[i]; f.Recovered {
			x.until = start + f.AtNs + max(f.DurationNs, f.RecoverNs) + e.frame.interval
		}
		list = append(list, x)
	}
	return list
}
