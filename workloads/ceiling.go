package workloads

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Course of a run that looks for the generator's ceiling, where the workload's own is longer.
const (
	ceilingWarmUp   = time.Second
	ceilingDuration = 5 * time.Second
	ceilingDrain    = 10 * time.Second
)

// GeneratorHash identifies what producing a message of this workload takes of the generator,
// whatever the rate, the length and the consumers: workloads with equal ones have the same ceiling.
func (d *Definition) GeneratorHash() string {
	effective := d.content()
	for key := range effective {
		if strings.HasPrefix(key, "producers.schedule") {
			delete(effective, key)
		}
	}
	return hashOf(effective,
		[]string{"name", "description", "seed", "repeat", "thresholds", "validity", "phases", "consumers", "sweep", "points", "design"},
		[]string{"topics.name", "topics.keep", "topics.config", "topics.replicationFactor",
			"producers.rate", "producers.rateOf", "producers.messages", "producers.pacer"})
}

// ErrNoProducers is returned for a workload that only consumes: it has no ceiling of producing.
var ErrNoProducers = errors.New("the workload only consumes: a ceiling is that of its producers, so producers.count must be 1 or more")

// ForCeiling is the workload as it shows what the generator can do with no cluster behind it: as fast
// as its bounds allow, nothing is read, and a busy processor is what is looked for. Each phase is as
// long as given, within a few seconds; length, if above 0, is that of the measured phase.
func (d Definition) ForCeiling(length time.Duration) (Definition, error) {
	if d.Producers.Count == 0 {
		return d, ErrNoProducers
	}
	plain := Default()
	d = d.Plain()
	d.Thresholds, d.Repeat = nil, 1
	d.Producers.Rate, d.Producers.Messages, d.Producers.Schedule = 0, 0, plain.Producers.Schedule
	d.Producers.RateOf, d.Times, d.timesFrom = plain.Producers.RateOf, nil, ""
	d.Consumers, d.Producers.Await = plain.Consumers, plain.Producers.Await
	d.Topics.Name, d.Topics.Config, d.Topics.Keep, d.Topics.ReplicationFactor = "", nil, false, 1
	d.Topics.Count = max(1, d.Topics.Count)
	if length <= 0 {
		length = ceilingDuration
		if whole := d.Phases.Length(); whole > 0 {
			length = min(length, whole)
		}
	}
	if d.Phases.WarmUpMessages > 0 {
		d.Phases.WarmUp, d.Phases.WarmUpMessages = ceilingWarmUp, 0
	}
	d.Phases.WarmUp, d.Phases.Duration = min(d.Phases.WarmUp, ceilingWarmUp), length
	d.Phases.Drain = ceilingDrain
	d.Phases.Named, d.Phases.CoolDown, d.Phases.Steady = nil, 0, false
	// A saturated generator is busy, and its own watch over pauses waits for its turn.
	d.Validity.MaxCPUShare, d.Validity.MaxPause = 0, 0
	d.Client = slices.Clone(d.Client)
	return d, nil
}
