package run

import (
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/condition"
)

// defaultThresholds are the conditions every run has that can tell, unless the workload names
// the figure itself.
func (o *Outcome) defaultThresholds() []string {
	if !condition.Tracked(&o.Run) {
		return nil
	}
	list := []string{"lost=0", "corrupted=0", "reordered=0"}
	if !condition.LostKnown(&o.Run) {
		list = list[1:]
	}
	if o.idempotent && !o.grouped { // a group delivers at least once
		list = append(list, "duplicated=0")
	}
	if t := o.Run.Transactions; t != nil && t.ReadCommitted {
		list = append(list, "abortedReceived=0")
	}
	return list
}

// evaluateAll judges the conditions given, and the default ones.
func (o *Outcome) evaluateAll(given []string) []results.Threshold {
	list := []results.Threshold{}
	named := map[string]bool{}
	evaluate := func(expression string, always bool) {
		t, err := workloads.ParseThreshold(expression)
		if err != nil {
			list = append(list, results.Threshold{Expression: expression, Value: err.Error()})
			return
		}
		if always || !named[t.Metric] {
			list = append(list, condition.Evaluate(t, &o.Run))
		}
		named[t.Metric] = true
	}
	for _, expression := range given {
		evaluate(expression, true)
	}
	for _, expression := range o.defaultThresholds() {
		evaluate(expression, false)
	}
	return list
}

// lagGrowth is how fast the consumers fell behind during the measured phase, in messages a
// second: the slope of the least-squares line through the lag at the ends of its windows; nil when
// the lag is known at fewer than two of them.
func (o *Outcome) lagGrowth() *float64 {
	var n, sumX, sumY, sumXX, sumXY float64
	for _, w := range o.Windows {
		if w.Lag < 0 || w.StartNs < 0 || w.StartNs >= o.Run.ElapsedNs { // before it: until a steady state was found
			continue
		}
		x, y := float64(w.StartNs+w.LengthNs)/1e9, float64(w.Lag)
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	if n < 2 {
		return nil
	}
	slope := (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	return &slope
}
