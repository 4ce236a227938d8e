package run

import (
	"math"
	"strconv"
	"strings"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// notMeasured is the printed value of a figure that a run cannot tell.
const notMeasured = "not measured"

// Evaluate judges one condition on a run's figures. One that this run cannot tell does not
// hold: silence is no pass.
func Evaluate(t workloads.Threshold, out *Outcome) results.Threshold {
	judged := results.Threshold{Expression: t.Expression, Value: notMeasured}
	if v, ok := figure(t, out); ok {
		judged.Value, judged.Held = printFigure(t, v), t.Holds(v)
	}
	return judged
}

// defaultThresholds are the conditions every run has that can tell, unless the workload names
// the figure itself.
func (o *Outcome) defaultThresholds() []string {
	if !o.tracked {
		return nil
	}
	list := []string{"lost=0", "corrupted=0", "reordered=0"}
	if o.cut {
		list = list[1:]
	}
	if o.idempotent && !o.grouped { // a group delivers at least once
		list = append(list, "duplicated=0")
	}
	return list
}

// evaluateAll judges the conditions given, and the default ones.
func (o *Outcome) evaluateAll(given []string) []results.Threshold {
	list := []results.Threshold{}
	named := map[string]bool{}
	judge := func(expression string, always bool) {
		t, err := workloads.ParseThreshold(expression)
		if err != nil {
			list = append(list, results.Threshold{Expression: expression, Value: err.Error()})
			return
		}
		if always || !named[t.Metric] {
			list = append(list, Evaluate(t, o))
		}
		named[t.Metric] = true
	}
	for _, expression := range given {
		judge(expression, true)
	}
	for _, expression := range o.defaultThresholds() {
		judge(expression, false)
	}
	return list
}

// figure finds the metric's value in the unit of the figures: ns, messages, bytes or messages a
// second, fractions for shares.
func figure(t workloads.Threshold, o *Outcome) (float64, bool) {
	run := &o.Run
	if series, statistic := t.Series(); series != "" {
		s, ok := run.Series[series]
		return statisticOf(s, statistic), ok
	}
	switch n := run.Counts; t.Metric {
	case "lost":
		return float64(n.Lost), o.tracked && !o.cut
	case "corrupted":
		return float64(n.Corrupted), o.tracked
	case "reordered":
		return float64(n.Reordered), o.tracked
	case "duplicated":
		return float64(n.Duplicated), o.tracked
	case "errors":
		return part(t, float64(n.Failed), float64(n.Attempted))
	case "unknown":
		return part(t, float64(n.Unknown), float64(n.Attempted))
	case "rate":
		return part(t, run.Rates.MessagesPerSecond, run.Rates.TargetMessagesPerSecond)
	case "throughput":
		return run.Rates.BytesPerSecond, true
	case "lag.growth":
		growth, ok := o.LagGrowth()
		if !ok {
			return 0, false
		}
		return part(t, growth, run.Rates.TargetMessagesPerSecond)
	case "generator.cpuNsPerMessage":
		return run.Generator.CPUNsPerMessage, true
	case "generator.cpuCores":
		return run.Generator.CPUCores, true
	}
	return consumerFigure(t, run)
}

// consumerFigure is figure for what is known of the consumers.
func consumerFigure(t workloads.Threshold, run *results.Run) (float64, bool) {
	c := run.Consumption
	if c == nil {
		return 0, false
	}
	switch t.Metric {
	case "lag.max", "lag.final":
		if c.Lag == nil {
			return 0, false
		}
		if t.Metric == "lag.final" {
			return float64(c.Lag.FinalMessages), true
		}
		return float64(c.Lag.MaxMessages), true
	case "catchUp.time", "catchUp.rate":
		if c.CatchUp == nil || !c.CatchUp.Reached {
			return 0, false
		}
		if t.Metric == "catchUp.time" {
			return float64(c.CatchUp.TookNs), true
		}
		return part(t, c.CatchUp.MessagesPerSecond, run.Rates.TargetMessagesPerSecond)
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

// LagGrowth is how fast the consumers fell behind during the measured phase, in messages a
// second: the slope of the least-squares line through the lag at the ends of its windows. It
// is false when the lag is known at fewer than two of them.
func (o *Outcome) LagGrowth() (perSecond float64, known bool) {
	var n, sumX, sumY, sumXX, sumXY float64
	for _, w := range o.Windows {
		if w.Lag < 0 || w.StartNs >= o.Run.ElapsedNs {
			continue
		}
		x, y := float64(w.StartNs+w.LengthNs)/1e9, float64(w.Lag)
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	if n < 2 {
		return 0, false
	}
	return (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX), true
}

// printFigure prints a figure in the unit of the expression.
func printFigure(t workloads.Threshold, v float64) string {
	if t.Value == 0 {
		t.Value = 1
	}
	one := t.Limit() / t.Value
	v /= one
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if math.Abs(v) >= 1000 || v == math.Trunc(v) {
		text = strconv.FormatFloat(v, 'f', 0, 64)
	}
	if t.Unit == "" || strings.HasPrefix(t.Unit, "/") {
		return text + t.Unit
	}
	return text + " " + t.Unit
}
