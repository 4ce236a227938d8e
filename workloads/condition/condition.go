// Package condition holds conditions against the figures of a run: which figure a threshold is about, and
// how it is printed. It is pure, and the same for a run that has just ended and for a stored one.
package condition

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// NotMeasured is the printed value of a figure that a run cannot tell.
const NotMeasured = "not measured"

// Evaluate judges one condition on a run's figures. One that the run cannot tell does not hold:
// silence is no pass.
func Evaluate(t workloads.Threshold, run *results.Run) results.Threshold {
	judged := results.Threshold{Expression: t.Expression, Value: Untold(t, run)}
	if v, ok := Figure(t, run); ok {
		judged.Value, judged.Held = Print(t, v), t.Holds(v)
	}
	return judged
}

// Untold is the printed value of a figure that the run cannot tell: NotMeasured, or why there is none.
func Untold(t workloads.Threshold, run *results.Run) string {
	if t.Metric == "fault.recovery" {
		for i, f := range run.Faults {
			switch {
			case f.Skipped != "":
				return fmt.Sprintf("fault %d did not happen: %s", i+1, f.Skipped)
			case !f.Recovered:
				return fmt.Sprintf("fault %d not recovered: %s", i+1, f.NotRecovered)
			}
		}
	}
	return NotMeasured
}

// recovery is the longest time that the load took to be as before a fault. It is known when all faults
// happened and were got over.
func recovery(run *results.Run) (longest float64, known bool) {
	for _, f := range run.Faults {
		if f.Skipped != "" || !f.Recovered {
			return 0, false
		}
		longest = max(longest, float64(f.RecoverNs))
	}
	return longest, len(run.Faults) > 0
}

// Tracked says that every message sent was looked for among the arrivals, so that the run can tell
// corrupted, reordered and duplicated ones. Results of version 1 have no Consumption.
func Tracked(run *results.Run) bool {
	return (run.Consumption != nil || run.Counts.Received > 0) && !run.Counts.Unchecked
}

// LostKnown says that the wait for arrivals was long enough to call lost what is missing.
func LostKnown(run *results.Run) bool { return Tracked(run) && run.Counts.NotReceived == 0 }

// Figure is what a threshold is about, in the unit of Threshold.Limit: ns, messages, bytes or messages
// a second, fractions for shares. It is false where the run cannot tell.
func Figure(t workloads.Threshold, run *results.Run) (float64, bool) {
	if series, statistic := t.Series(); series != "" {
		s := run.Series[series]
		return statisticOf(s, statistic), s.Count > 0
	}
	switch n := run.Counts; t.Metric {
	case "lost":
		return float64(n.Lost), LostKnown(run)
	case "corrupted":
		return float64(n.Corrupted), Tracked(run)
	case "reordered":
		return float64(n.Reordered), Tracked(run)
	case "duplicated":
		return float64(n.Duplicated), Tracked(run)
	case "errors":
		return part(t, float64(n.Failed), float64(n.Attempted))
	case "unknown":
		return part(t, float64(n.Unknown), float64(n.Attempted))
	case "rate":
		return part(t, run.Rates.MessagesPerSecond, run.Rates.TargetMessagesPerSecond)
	case "throughput":
		return run.Rates.BytesPerSecond, true
	case "generator.cpuNsPerMessage":
		return run.Generator.CPUNsPerMessage, true
	case "generator.cpuCores":
		return run.Generator.CPUCores, true
	case "fault.recovery":
		return recovery(run)
	}
	if of := run.Transactions; of != nil {
		switch t.Metric {
		case "transactions.failed":
			return part(t, float64(of.Failed), float64(of.All()))
		case "transactions.aborted":
			return part(t, float64(of.Aborted), float64(of.All()))
		case "abortedReceived":
			return float64(of.AbortedReceived), of.ReadCommitted && Tracked(run)
		}
	}
	if run.Consumption == nil {
		return 0, false
	}
	return consumed(t, run.Consumption, run.Rates.TargetMessagesPerSecond)
}

// consumed is Figure for what is known of the consumers.
func consumed(t workloads.Threshold, c *results.Consumption, asked float64) (float64, bool) {
	switch lag := c.Lag; t.Metric {
	case "lag.growth":
		if lag == nil || lag.GrowthPerSecond == nil {
			return 0, false
		}
		return part(t, *lag.GrowthPerSecond, asked)
	case "lag.max":
		if lag == nil {
			return 0, false
		}
		return float64(lag.MaxMessages), true
	case "lag.final":
		if lag == nil {
			return 0, false
		}
		return float64(lag.FinalMessages), true
	case "catchUp.time", "catchUp.rate":
		if c.CatchUp == nil || !c.CatchUp.Reached {
			return 0, false
		}
		if t.Metric == "catchUp.time" {
			return float64(c.CatchUp.TookNs), true
		}
		return part(t, c.CatchUp.MessagesPerSecond, asked)
	case "rebalances":
		var n int64
		for _, g := range c.Groups {
			n += g.Rebalances
		}
		return float64(n), true
	}
	return 0, false
}

// part is an amount, or what share of whole it is where the limit is a share.
func part(t workloads.Threshold, amount, whole float64) (float64, bool) {
	if !t.Share() {
		return amount, true
	}
	if whole <= 0 {
		return 0, false
	}
	return amount / whole, true
}

func statisticOf(s results.Series, name string) float64 {
	return float64(map[string]int64{
		"min": s.MinNs, "mean": s.MeanNs, "max": s.MaxNs, "p50": s.P50Ns, "p90": s.P90Ns,
		"p99": s.P99Ns, "p99.9": s.P999Ns, "p99.99": s.P9999Ns,
	}[name])
}

// Print prints a figure in the unit of the expression.
func Print(t workloads.Threshold, v float64) string {
	if t.Value == 0 {
		t.Value = 1
	}
	v /= t.Limit() / t.Value
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if math.Abs(v) >= 1000 || v == math.Trunc(v) {
		text = strconv.FormatFloat(v, 'f', 0, 64)
	}
	if t.Unit == "" || strings.HasPrefix(t.Unit, "/") {
		return text + t.Unit
	}
	return text + " " + t.Unit
}
