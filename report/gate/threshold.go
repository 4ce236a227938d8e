package gate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
	"github.com/kbench/kbench/workloads"
)

// conditions adds those of the new side's own runs and those given, point by point.
func (d *Decision) conditions(r *results.Result, given []workloads.Threshold, several bool) {
	for i := range r.Points {
		p := &r.Points[i]
		runs := compare.Valid(p)
		if len(runs) == 0 {
			continue
		}
		label := ""
		if several {
			label = p.Label
		}
		d.Thresholds = append(d.Thresholds, conditions(label, runs)...)
		for _, t := range given {
			judged := Evaluate(t, runs)
			judged.Point = label
			d.Thresholds = append(d.Thresholds, judged)
		}
	}
}

// Evaluate judges a condition on the median over runs; on every run where the figure is a count
// of messages that went wrong, of which one is one too many. What the stored figures cannot tell
// does not hold: silence is no pass.
func Evaluate(t workloads.Threshold, runs []*results.Run) ThresholdResult {
	out := ThresholdResult{Expression: t.Expression, Value: "not measured"}
	var values []float64
	for _, run := range runs {
		v, ok := figure(t, run)
		if !ok {
			return out
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return out
	}
	if slices.Contains([]string{"lost", "duplicated", "reordered", "corrupted", "errors", "unknown"}, t.Metric) {
		out.Held = true
		worst := values[0]
		for _, v := range values {
			worst = max(worst, v)
			out.Held = out.Held && t.Holds(v)
		}
		out.Value = printed(t, worst)
		if len(values) > 1 {
			out.Value += fmt.Sprintf(" (the most of %d runs)", len(values))
		}
		return out
	}
	middle := stat.Median(values)
	out.Value, out.Held = printed(t, middle), t.Holds(middle)
	if len(values) > 1 {
		out.Value += fmt.Sprintf(" (median of %d runs)", len(values))
	}
	return out
}

// figure is a threshold's figure in a stored run, in the unit of Threshold.Limit.
func figure(t workloads.Threshold, run *results.Run) (float64, bool) {
	if series, statistic := t.Series(); series != "" {
		s := run.Series[series]
		return float64(map[string]int64{
			"min": s.MinNs, "mean": s.MeanNs, "max": s.MaxNs, "p50": s.P50Ns, "p90": s.P90Ns,
			"p99": s.P99Ns, "p99.9": s.P999Ns, "p99.99": s.P9999Ns,
		}[statistic]), s.Count > 0
	}
	checked := run.Counts.Received > 0 && !run.Counts.Unchecked
	switch n := run.Counts; t.Metric {
	case "lost":
		return float64(n.Lost), checked
	case "corrupted":
		return float64(n.Corrupted), checked
	case "reordered":
		return float64(n.Reordered), checked
	case "duplicated":
		return float64(n.Duplicated), checked
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
	}
	return consumed(t, run)
}

// consumed is figure for what is known of consumers. lag.growth needs the timeline.
func consumed(t workloads.Threshold, run *results.Run) (float64, bool) {
	c := run.Consumption
	if c == nil {
		return 0, false
	}
	switch t.Metric {
	case "lag.max", "lag.final":
		if c.Lag == nil {
			return 0, false
		}
		return float64(map[bool]int64{true: c.Lag.MaxMessages, false: c.Lag.FinalMessages}[t.Metric == "lag.max"]), true
	case "catchUp.time":
		return catchUp(c, func(u *results.CatchUp) float64 { return float64(u.TookNs) })
	case "catchUp.rate":
		v, ok := catchUp(c, func(u *results.CatchUp) float64 { return u.MessagesPerSecond })
		if !ok {
			return 0, false
		}
		return part(t, v, run.Rates.TargetMessagesPerSecond)
	case "rebalances":
		var n int64
		for _, g := range c.Groups {
			n += g.Rebalances
		}
		return float64(n), true
	}
	return 0, false
}

func catchUp(c *results.Consumption, of func(*results.CatchUp) float64) (float64, bool) {
	if c.CatchUp == nil || !c.CatchUp.Reached {
		return 0, false
	}
	return of(c.CatchUp), true
}

// part is an amount, or what share of whole it is where the limit is a share.
func part(t workloads.Threshold, amount, whole float64) (float64, bool) {
	if !t.Share() {
		return amount, true
	}
	return amount / whole, whole > 0
}

// printed is a figure in the unit of the expression.
func printed(t workloads.Threshold, v float64) string {
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
