package capacity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
)

// Limits that every probe has to keep to, beside the objective.
const (
	leastShare    = 0.99 // of the rate asked for, unless the workload's limits say otherwise
	mostLagGrowth = 0.01 // of the rate asked for, a second
)

// Judge says what came of the run of a step, what did not hold, and whether that may be the generator's
// doing. A run holds when 99 % of the rate was achieved (limits.MinRateShare, if above 0), the lag of its
// consumers grew by no more than 1 % of the rate, every one of its thresholds held (the objective is among
// them), and it is valid.
func Judge(out *run.Outcome, limits workloads.Validity) (a Answer, reasons []string) {
	r := &out.Run
	leastShare := leastShare
	if limits.MinRateShare > 0 {
		leastShare = limits.MinRateShare
	}
	asked := r.Rates.TargetMessagesPerSecond
	a.Achieved = r.Rates.MessagesPerSecond
	a.RateMet = asked > 0 && a.Achieved >= leastShare*asked
	if !a.RateMet {
		reasons = append(reasons, fmt.Sprintf("%.0f of %.0f messages/s achieved, %.1f %%, at least %.0f %% are needed",
			a.Achieved, asked, 100*a.Achieved/max(asked, 1), 100*leastShare))
	}
	reasons = append(reasons, lagReason(out, asked)...)
	for _, t := range r.Thresholds {
		if !t.Held {
			reasons = append(reasons, t.Expression+" does not hold: "+t.Value)
		}
	}
	a.Held = len(reasons) == 0 && r.Verdict.Valid
	a.Disturbed = a.RateMet && !r.Verdict.Valid
	if !a.Held {
		a.Generator = strings.Join(r.Verdict.Generator, "; ")
	}
	for _, reason := range r.Verdict.Reasons {
		reasons = append(reasons, "invalid: "+reason)
	}
	return a, reasons
}

// lagReason is what is wrong with the lag of the consumers, if any.
func lagReason(out *run.Outcome, asked float64) []string {
	consumed := out.Run.Consumption
	if consumed == nil {
		return nil
	}
	if consumed.Lag == nil || consumed.Lag.GrowthPerSecond == nil {
		return []string{"whether the lag of the consumers grew is not known"}
	}
	if growth := *consumed.Lag.GrowthPerSecond; growth > mostLagGrowth*asked {
		return []string{fmt.Sprintf("the lag of the consumers grew by %.0f messages/s, %.1f %% of the rate, at most %.0f %% are allowed",
			growth, 100*growth/max(asked, 1), 100*mostLagGrowth)}
	}
	return nil
}

// Check says why a workload cannot be searched for, or an objective not be told by it; nil when it
// can. Objectives that are not there are no fault of the workload's.
func Check(d *workloads.Definition, objectives []workloads.Threshold) error {
	p := d.Producers
	switch {
	case p.Count == 0:
		return fmt.Errorf("the workload %s only consumes: capacity looks for the highest rate of producers, so producers.count must be 1 or more", d.Name)
	case slices.Contains([]string{"ramp", "step", "replay"}, p.Schedule.Kind):
		return fmt.Errorf("producers.schedule.kind %s has rates of its own: a search needs constant, poisson or burst", p.Schedule.Kind)
	case len(d.Phases.Named) > 0:
		return fmt.Errorf("phases.named have figures and rates of their own: a probe is one phase at one rate, so give phases.duration")
	case d.Topics.Name != "":
		return fmt.Errorf("topics.name is %q, an existing topic: every probe of a search needs a fresh one, so leave it out", d.Topics.Name)
	case d.Phases.Duration <= 0 || p.Messages > 0:
		return fmt.Errorf("a probe is bounded by phases.duration, not by producers.messages")
	case d.Consumers.StartAfter > 0:
		return fmt.Errorf("consumers.startAfter lets a backlog grow, which no rate of a search would hold with")
	case d.Consumers.Count > 0 && d.Phases.Duration < 2*d.Phases.Interval:
		return fmt.Errorf("phases.duration is %s and phases.interval %s: whether the lag of consumers grows shows over two intervals at least",
			d.Phases.Duration, d.Phases.Interval)
	}
	for _, axis := range d.Swept() {
		if slices.Contains([]string{"producers.rate", "producers", "producers.messages", "producers.rateOf", "phases.named", "producers.schedule", "producers.schedule.kind"}, axis.Key) {
			return fmt.Errorf("sweep.%s: a search sets the rate itself; sweep other keys, and each point gets a capacity of its own", axis.Key)
		}
	}
	for _, t := range objectives {
		if why := untold(d, t); why != "" {
			return fmt.Errorf("%s: %s", t.Expression, why)
		}
	}
	return nil
}

// untold says why the runs of a workload cannot tell a figure; empty when they can. What a sweep may
// change is taken to be told.
func untold(d *workloads.Definition, t workloads.Threshold) string {
	series, _ := t.Series()
	figure := t.Metric
	if series != "" {
		figure = series
	}
	var needs, key string
	switch figure {
	case results.SeriesE2E, "lost", "duplicated", "reordered", "corrupted":
		if d.Consumers.Count > 0 && d.Payload.Stamp == "none" {
			needs, key = "messages carry no stamp (payload.stamp none)", "payload.stamp"
			break
		}
		needs, key = needsConsumers(d)
	case results.SeriesFetch, "lag.growth", "lag.max", "lag.final":
		needs, key = needsConsumers(d)
	case results.SeriesRebalance, "rebalances":
		if d.Consumers.Mode != "group" || d.Consumers.Count == 0 {
			needs, key = "there are no members of a group (consumers.mode group)", "consumers.mode"
		}
	case "catchUp.time", "catchUp.rate":
		return "consumers of a search begin with it, so that there is no backlog to catch up on"
	case "fault.recovery":
		if len(d.Faults) == 0 {
			needs, key = "it has no faults", "faults"
		}
	}
	for _, axis := range d.Swept() {
		if key != "" && (axis.Key == key || axis.Key == "consumers" || axis.Key == "payload") {
			return ""
		}
	}
	if needs == "" {
		return ""
	}
	return "this workload cannot tell: " + needs
}

func needsConsumers(d *workloads.Definition) (needs, key string) {
	if d.Consumers.Count > 0 {
		return "", ""
	}
	return "it has no consumers (consumers.count is 0)", "consumers.count"
}
