package run

import (
	"math"
	"slices"
	"time"

	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/pace"
)

// isOpen reports whether messages have due times.
func isOpen(d *workloads.Definition) bool { return d.Producers.Count > 0 && fullRate(d) > 0 }

// fullRate is the highest rate asked for, messages a second; 0 in a closed loop.
func fullRate(d *workloads.Definition) float64 {
	p := &d.Producers
	if p.Schedule.Kind == "step" && len(p.Schedule.Steps) > 0 {
		return slices.Max(p.Schedule.Steps)
	}
	return p.Rate
}

// measuredSchedule is the schedule of the measured phase.
func measuredSchedule(d *workloads.Definition) pace.Schedule {
	p, length := &d.Producers, d.Phases.Duration
	switch p.Schedule.Kind {
	case "ramp":
		return pace.Ramp(p.Schedule.From, p.Rate, length)
	case "step":
		if n := len(p.Schedule.Steps); n > 0 {
			return pace.Steps(p.Schedule.Steps, length/time.Duration(n))
		}
	}
	return steady(d, d.Seed)
}

// steady is the schedule of the warm-up: of the measured phase's shape where that does not
// change over time, else evenly at the full rate.
func steady(d *workloads.Definition, seed uint64) pace.Schedule {
	p, rate := &d.Producers, fullRate(d)
	switch p.Schedule.Kind {
	case "burst":
		return pace.Burst(rate, p.Schedule.BurstEvery)
	case "poisson":
		return pace.Poisson(rate, seed)
	}
	return pace.Constant(rate)
}

// openLegs lays out warm-up and measured phase from the instants they begin at, and gives the
// length of the measured phase: shorter than asked for where the number of messages ends it.
func openLegs(d *workloads.Definition, begin, start int64) (legs []leg, length int64) {
	warm := leg{schedule: steady(d, d.Seed+1), origin: begin}
	if start > begin {
		warm.count = warm.schedule.Count(start - begin)
	}
	main := leg{schedule: measuredSchedule(d), origin: start}
	length, main.count = int64(d.Phases.Duration), d.Producers.Messages
	if length > 0 {
		main.count = main.schedule.Count(length)
	}
	if most := d.Producers.Messages; most > 0 && (length <= 0 || main.count > most) {
		main.count = most
		length = main.schedule.Due(most)
	}
	if length == math.MaxInt64 { // the schedule ends before that many messages
		length = main.schedule.Due(main.count-1) + 1
	}
	return []leg{warm, main}, length
}
