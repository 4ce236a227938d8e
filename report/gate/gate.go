// Package gate turns results into a verdict: did this become slower? It returns values; who
// calls it prints, writes files and exits.
//
// Two sides that were run in pairs are judged by Pairs, two stored results by Stored, one beside a
// history by Baseline, one by Thresholds alone.
package gate

import (
	"fmt"
	"math"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
	"github.com/kbench/kbench/workloads"
)

// Verdict is the outcome of a gate.
type Verdict string

// Verdicts, from the best to the worst for who waits for one.
const (
	Pass         Verdict = "PASS"
	Inconclusive Verdict = "INCONCLUSIVE"
	Fail         Verdict = "FAIL"
	// Invalid: too many runs cannot be trusted for anything to be said.
	Invalid Verdict = "INVALID"
)

// MostInvalid is the share of runs (or of pairs) that may be invalid, and are left out; with more
// nothing is said. Some runs of a busy machine go wrong; when many do, something is.
const MostInvalid = 0.25

// Kinds of evidence.
const (
	KindPairs      = "pairs"      // both sides run, in pairs
	KindStored     = "stored"     // two results, not paired
	KindThresholds = "thresholds" // one result
)

// Decision is a verdict with everything it rests on: the content of gate.json.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	Kind    string  `json:"kind"`
	// Workload is the name of what was run; Base and New name the sides.
	Workload string `json:"workload"`
	Base     string `json:"base,omitempty"`
	New      string `json:"new"`
	// Pairs are those judged, and Looks when they were looked at; of KindPairs.
	Pairs int   `json:"pairs,omitempty"`
	Looks []int `json:"looks,omitempty"`
	// Lost are pairs that were not used since a run of theirs was invalid; others took their place.
	Lost int `json:"lost,omitempty"`
	// Differs are what the sides of KindPairs do not share: their settings, or what tells their clusters
	// apart. What was found is due to these, or to chance.
	Differs []compare.Difference `json:"differs,omitempty"`
	// Forced are the differences in spite of which it was judged (--force).
	Forced []compare.Difference `json:"forced,omitempty"`
	// Invalid are the reasons of runs that were left out, or for Verdict Invalid.
	Invalid    []string          `json:"invalid,omitempty"`
	Metrics    []MetricDecision  `json:"metrics"`
	Thresholds []ThresholdResult `json:"thresholds"`
	Notes      []string          `json:"notes,omitempty"`
	// Trends are the judged metrics over the history, of KindBaseline.
	Trends []Trend `json:"trends,omitempty"`
}

// MetricDecision is the verdict on one metric of one point. Changes are ratios of how many times
// worse: 1.1 is 10 % more latency, or a throughput divided by 1.1.
type MetricDecision struct {
	Point   string  `json:"point,omitempty"`
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Verdict Verdict `json:"verdict"`
	Base    float64 `json:"base"` // medians
	New     float64 `json:"new"`
	// Worse is the estimate; AtLeast and AtMost are the one-sided bounds that FAIL and PASS look
	// at. nil when there are too few runs.
	Worse   *float64 `json:"worse,omitempty"`
	AtLeast *float64 `json:"atLeast,omitempty"`
	AtMost  *float64 `json:"atMost,omitempty"`
	// FailsAbove is the least change that fails, PassesBelow the margin of a pass.
	FailsAbove  float64 `json:"failsAbove"`
	PassesBelow float64 `json:"passesBelow"`
	// Seen is the smallest change that could have been seen in this much noise.
	Seen *float64 `json:"smallestEffectSeen,omitempty"`
	Why  string   `json:"why,omitempty"`
}

// ThresholdResult is a condition on the new side and whether it held.
type ThresholdResult struct {
	Point      string `json:"point,omitempty"`
	Expression string `json:"expression"`
	Value      string `json:"value"`
	Held       bool   `json:"held"`
}

// limits are the least change that fails and the margin of a pass, as shares.
func limits(m compare.Metric) (delta, margin float64) {
	margin = compare.MarginOf(m)
	return margin / 2, margin
}

// settle is the verdict over all metrics and thresholds.
func (d *Decision) settle() {
	verdict := Pass
	for _, m := range d.Metrics {
		verdict = worse(verdict, m.Verdict)
	}
	for _, t := range d.Thresholds {
		if !t.Held {
			verdict = worse(verdict, Fail)
		}
	}
	d.Verdict = verdict
}

var order = map[Verdict]int{Pass: 0, Inconclusive: 1, Fail: 2, Invalid: 3}

func worse(a, b Verdict) Verdict {
	if order[b] > order[a] {
		return b
	}
	return a
}

// Pairs judges two sides whose whole runs alternate in random order. It is for one goroutine.
type Pairs struct {
	// Thresholds are conditions on the median over the runs of side b (on any run for counts).
	Thresholds []workloads.Threshold

	gate    *stat.Gate
	metrics []compare.Metric
	a, b    []*results.Run
}

// Add takes the valid runs of a pair and says whether the gate is decided. Which metrics it judges
// follows from the kind of the first pair's runs. It fails when these have none.
func (p *Pairs) Add(a, b *results.Run) (decided bool, err error) {
	if p.gate == nil {
		if err := p.begin(a, b); err != nil {
			return false, err
		}
	}
	p.a, p.b = append(p.a, a), append(p.b, b)
	differences := make([]float64, len(p.metrics))
	for i, m := range p.metrics {
		x, okX := m.Of(a)
		y, okY := m.Of(b)
		differences[i] = math.NaN()
		if okX && okY {
			differences[i] = m.Worse(x, y)
		}
	}
	return p.gate.Add(differences).Verdict != stat.GateOpen, nil
}

func (p *Pairs) begin(a, b *results.Run) error {
	for _, m := range compare.Gated(a) {
		if _, has := m.Of(b); has {
			p.metrics = append(p.metrics, m)
		}
	}
	design := stat.GateDesign{Looks: stat.DefaultLooks(), Alpha: stat.DefaultGateAlpha}
	for _, m := range p.metrics {
		delta, margin := limits(m)
		design.Metrics = append(design.Metrics, stat.GateMetric{Name: m.Name, Delta: math.Log1p(delta), Margin: math.Log1p(margin)})
	}
	gate, err := stat.NewGate(design)
	p.gate = gate
	return err
}

// Standing is where the gate stands: pairs judged, the next look, and the findings of the last.
func (p *Pairs) Standing() stat.GateState {
	if p.gate == nil {
		return stat.GateState{Next: stat.DefaultLooks()[0]}
	}
	return p.gate.State()
}

// Decide ends the gate. Conditions that broke in runs of side b fail it. Broken off before it was
// decided it is inconclusive at best.
func (p *Pairs) Decide() *Decision {
	d := &Decision{Kind: KindPairs, Looks: stat.DefaultLooks(), Metrics: []MetricDecision{}, Thresholds: conditions("", p.b)}
	if p.gate == nil {
		d.Verdict = Inconclusive
		d.Notes = append(d.Notes, "no pair was finished")
		return d
	}
	for _, t := range p.Thresholds {
		d.Thresholds = append(d.Thresholds, Evaluate(t, p.b))
	}
	state := p.gate.Finish()
	d.Pairs = state.Pairs
	for i, f := range state.Findings {
		m := p.metric(p.metrics[i], f)
		if m.Verdict == Inconclusive && state.Verdict == stat.GateFail && !f.Unjudged {
			m.Why = "not decided yet when another metric had failed"
		}
		d.Metrics = append(d.Metrics, m)
	}
	d.settle()
	if state.Verdict == stat.GateInconclusive && d.Verdict == Pass {
		d.Verdict = Inconclusive
	}
	return d
}

func (p *Pairs) metric(m compare.Metric, f stat.GateFinding) MetricDecision {
	delta, margin := limits(m)
	out := MetricDecision{
		Name: m.Name, Unit: m.Unit, Verdict: Verdict(f.Verdict.String()), Base: median(m, p.a), New: median(m, p.b),
		Worse: compare.Ratio(f.Estimate), AtLeast: compare.Ratio(f.Lower), AtMost: compare.Ratio(f.Upper), Seen: compare.Ratio(f.Seen),
		FailsAbove: 1 + delta, PassesBelow: 1 + margin,
	}
	if out.Verdict != Inconclusive {
		return out
	}
	switch {
	case f.Unjudged:
		out.Why = "a run without this figure, or with a figure of 0: there is no ratio"
	case f.Seen > math.Log1p(margin):
		out.Why = "the pairs differ too much among themselves"
	default:
		out.Why = "neither a change above the least that fails, nor one of the margin ruled out"
	}
	return out
}

// conditions are the thresholds the runs themselves had, each once, broken when it was in any run.
func conditions(point string, runs []*results.Run) []ThresholdResult {
	list := []ThresholdResult{}
	at := map[string]int{}
	for _, run := range runs {
		for _, t := range run.Thresholds {
			i, seen := at[t.Expression]
			if !seen {
				at[t.Expression] = len(list)
				list = append(list, ThresholdResult{point, t.Expression, t.Value, t.Held})
				continue
			}
			if list[i].Held && !t.Held {
				list[i].Value, list[i].Held = t.Value+fmt.Sprintf(" (run %d)", run.Repeat+1), false
			}
		}
	}
	return list
}

// median is 0 where no run has the figure.
func median(m compare.Metric, runs []*results.Run) float64 {
	values := m.OfAll(runs)
	if len(values) == 0 {
		return 0
	}
	return stat.Median(values)
}
