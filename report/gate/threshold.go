package gate

import (
	"fmt"
	"slices"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/condition"
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
	out := ThresholdResult{Expression: t.Expression, Value: condition.NotMeasured}
	var values []float64
	for _, run := range runs {
		v, ok := condition.Figure(t, run)
		if !ok {
			out.Value = condition.Untold(t, run)
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
		out.Value = condition.Print(t, worst)
		if len(values) > 1 {
			out.Value += fmt.Sprintf(" (the most of %d runs)", len(values))
		}
		return out
	}
	middle := stat.Median(values)
	out.Value, out.Held = condition.Print(t, middle), t.Holds(middle)
	if len(values) > 1 {
		out.Value += fmt.Sprintf(" (median of %d runs)", len(values))
	}
	return out
}
