package run

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/pace"
)

// fullRate is the highest rate asked for, messages a second over all producers; of a replayed
// schedule the mean; 0 in a closed loop.
func fullRate(d *workloads.Definition) float64 {
	p := &d.Producers
	rate := p.Rate
	switch {
	case len(d.Phases.Named) > 0:
		rate = slices.Max(stageRates(d))
	case p.Schedule.Kind == "step" && len(p.Schedule.Steps) > 0:
		rate = slices.Max(p.Schedule.Steps)
	case p.Schedule.Kind == "replay":
		rate = pace.Replay(d.Times).Rate(0)
	}
	return rate * p.Fleet()
}

// stageRates are those of the named phases.
func stageRates(d *workloads.Definition) (rates []float64) {
	for _, s := range d.Phases.Named {
		rates = append(rates, cmp.Or(s.Rate, d.Producers.Rate))
	}
	return rates
}

// scaled are the rates of all producers together.
func scaled(d *workloads.Definition, rates []float64) []float64 {
	out := slices.Clone(rates)
	for i := range out {
		out[i] *= d.Producers.Fleet()
	}
	return out
}

// measuredSchedule is the schedule of the measured phase, over all producers.
func measuredSchedule(d *workloads.Definition) pace.Schedule {
	p, length, fleet := &d.Producers, d.Phases.Length(), d.Producers.Fleet()
	if named := d.Phases.Named; len(named) > 0 {
		var lengths []time.Duration
		for _, s := range named {
			lengths = append(lengths, s.For)
		}
		return pace.Stages(scaled(d, stageRates(d)), lengths)
	}
	switch p.Schedule.Kind {
	case "ramp":
		return pace.Ramp(p.Schedule.From*fleet, p.Rate*fleet, length)
	case "step":
		if n := len(p.Schedule.Steps); n > 0 {
			return pace.Steps(scaled(d, p.Schedule.Steps), length/time.Duration(n))
		}
	case "replay":
		return pace.Each(pace.Replay(d.Times), int(fleet))
	}
	return steady(d, d.Seed)
}

// steady is the schedule of warm-up and cool-down: of the measured phase's shape where that does
// not change over time, else evenly at the full rate.
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

// The legs of an open loop, in order.
const (
	legWarmUp = iota
	legMeasured
	legCoolDown
)

// openLegs lays out warm-up, measured phase and cool-down from the instants the first two begin at,
// and gives the length of the measured phase: shorter than asked for where the number of messages
// ends it, and to the last message where a file of times does.
func openLegs(d *workloads.Definition, begin, start int64) (legs []leg, length int64) {
	warm := leg{schedule: steady(d, d.Seed+1), origin: begin}
	if warm.count = d.Phases.WarmUpMessages; warm.count == 0 && start > begin {
		warm.count = warm.schedule.Count(start - begin)
	}
	main := leg{schedule: measuredSchedule(d), origin: start}
	length, main.count = int64(d.Phases.Length()), d.Producers.Messages
	if n := len(d.Times); length == 0 && main.count == 0 && n > 0 {
		length = d.Times[n-1] + 1
	}
	if length > 0 {
		main.count = main.schedule.Count(length)
	}
	if most := d.Producers.Messages; most > 0 && (length <= 0 || main.count > most) {
		main.count = most
		length = main.schedule.Due(most)
	}
	if length == math.MaxInt64 { // the schedule ends before that many messages
		main.count = min(main.count, main.schedule.Count(math.MaxInt64))
		length = main.schedule.Due(main.count-1) + 1
	}
	cool := leg{schedule: steady(d, d.Seed+2), origin: start + length}
	cool.count = cool.schedule.Count(int64(d.Phases.CoolDown))
	return []leg{warm, main, cool}, length
}
