package stat

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// GateVerdict is what a gate, or one of its metrics, has come to.
type GateVerdict int

// The verdicts of a gate.
const (
	// GateOpen: more pairs are needed.
	GateOpen GateVerdict = iota
	// GatePass: no metric has become worse by as much as its margin.
	GatePass
	// GateFail: at least one metric has become worse.
	GateFail
	// GateInconclusive: the last look was taken and neither is shown.
	GateInconclusive
)

// String is the verdict in one word.
func (v GateVerdict) String() string {
	switch v {
	case GatePass:
		return "PASS"
	case GateFail:
		return "FAIL"
	case GateInconclusive:
		return "INCONCLUSIVE"
	}
	return "open"
}

// GateMetric is a figure that a gate judges. Both limits are logarithms of ratios above 0:
// ln 1.05 is 5 %.
type GateMetric struct {
	Name string
	// Delta is the least worsening worth failing for: with enough pairs any difference becomes
	// significant, also those that nobody minds.
	Delta float64
	// Margin is what a pass rules out: the metric is not worse by as much.
	Margin float64
}

// GateDesign is how a gate decides. All of it is fixed before the first pair is measured.
type GateDesign struct {
	Metrics []GateMetric
	// Looks are the numbers of pairs after which it is judged, ascending.
	Looks []int
	// Alpha is the chance of a false FAIL over all metrics and looks together, and that of a
	// false PASS of a metric over all looks. It is divided evenly (Bonferroni), which holds for
	// any dependence between metrics and between looks.
	Alpha float64
}

// DefaultLooks are 8, 14 and 20 pairs: eight is the least at which four metrics can fail.
func DefaultLooks() []int { return []int{8, 14, 20} }

// DefaultGateAlpha is 5 %.
const DefaultGateAlpha = 0.05

// Check says what is wrong with a design.
func (d GateDesign) Check() error {
	if len(d.Metrics) == 0 || len(d.Looks) == 0 {
		return errors.New("a gate needs at least one metric and one look")
	}
	if !(d.Alpha > 0 && d.Alpha < 1) {
		return fmt.Errorf("a gate's alpha is between 0 and 1, not %v", d.Alpha)
	}
	for i, look := range d.Looks {
		if look < 1 || look > maxWalsh || i > 0 && look <= d.Looks[i-1] {
			return fmt.Errorf("the looks of a gate ascend, from 1 to %d pairs: %v do not", maxWalsh, d.Looks)
		}
	}
	for _, m := range d.Metrics {
		if !(m.Delta >= 0) || !(m.Margin > 0) || math.IsInf(m.Margin, 0) {
			return fmt.Errorf("gate metric %s: its margin is above 0 and its least worsening 0 or more", m.Name)
		}
	}
	return nil
}

// failAlpha and passAlpha are those of one bound at one look.
func (d GateDesign) failAlpha() float64 {
	return d.Alpha / float64(len(d.Metrics)*len(d.Looks))
}
func (d GateDesign) passAlpha() float64 { return d.Alpha / float64(len(d.Looks)) }

// GateFinding is what is known of one metric at a look. Changes are logarithms of ratios, above 0
// when it became worse.
type GateFinding struct {
	Name     string
	Verdict  GateVerdict
	Estimate float64 // Hodges and Lehmann's
	// Lower is the bound that FAIL looks at, Upper the one that PASS looks at; they have
	// different levels. Infinite with too few pairs.
	Lower, Upper float64
	// Seen is the smallest worsening that would have been called one, had it come with the
	// spread of these pairs: a smaller one could not have been seen. Infinite with too few pairs.
	Seen float64
	// Unjudged is true when a pair had no finite difference (a figure was 0 or missing): then
	// nothing is said about the metric, and the gate cannot pass.
	Unjudged bool
}

// GateState is where a gate stands.
type GateState struct {
	Verdict GateVerdict
	Pairs   int
	// Next is the number of pairs at which it is looked at next; 0 once it is decided.
	Next int
	// Findings are those of the last look, in the order of the metrics; nil before the first.
	Findings []GateFinding
}

// Gate is the sequential test behind `kbench gate`: whole runs of two sides in random order
// within pairs, d = ln(B/A) of each metric per pair, signed so that positive is worse, judged at
// a few looks by Wilcoxon's exact signed-rank bounds.
//
//   - FAIL when the lower bound of a metric, at alpha/(metrics·looks), is above 0 and its
//     estimate above Delta;
//   - PASS when the upper bounds of all, at alpha/looks, are below their margins;
//   - otherwise open, and INCONCLUSIVE after the last look.
//
// It is a state machine without time or randomness: what it says depends on the pairs alone. It
// is for one goroutine.
type Gate struct {
	design GateDesign
	values [][]float64 // by metric
	state  GateState
}

// NewGate makes a gate without pairs; the error is that of Check.
func NewGate(d GateDesign) (*Gate, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	return &Gate{design: d, values: make([][]float64, len(d.Metrics)), state: GateState{Next: d.Looks[0]}}, nil
}

// State is where it stands.
func (g *Gate) State() GateState { return g.state }

// Add takes the differences of one pair, one for each metric in their order, and says where the
// gate stands. What is not a number, or missing at the end, leaves that metric unjudged. Once it
// is decided, further pairs change nothing.
func (g *Gate) Add(differences []float64) GateState {
	if g.state.Verdict != GateOpen {
		return g.state
	}
	g.state.Pairs++
	for i := range g.values {
		d := math.NaN()
		if i < len(differences) {
			d = differences[i]
		}
		g.values[i] = append(g.values[i], d)
	}
	if slices.Contains(g.design.Looks, g.state.Pairs) {
		g.look()
	}
	return g.state
}

// Finish ends a gate that was broken off: judged by what there is, which is at most
// INCONCLUSIVE, for a look that was not planned must not decide.
func (g *Gate) Finish() GateState {
	if g.state.Verdict != GateOpen {
		return g.state
	}
	g.state.Findings = g.findings()
	for i := range g.state.Findings {
		g.state.Findings[i].Verdict = GateInconclusive
	}
	g.end(GateInconclusive)
	return g.state
}

// look judges at a number of pairs that was planned.
func (g *Gate) look() {
	g.state.Findings = g.findings()
	has := func(v GateVerdict) bool {
		return slices.ContainsFunc(g.state.Findings, func(f GateFinding) bool { return f.Verdict == v })
	}
	last := g.state.Pairs == g.design.Looks[len(g.design.Looks)-1]
	switch {
	case has(GateFail):
		g.end(GateFail)
	case !has(GateOpen):
		g.end(GatePass)
	case last:
		g.end(GateInconclusive)
	default:
		g.state.Next = g.design.Looks[slices.Index(g.design.Looks, g.state.Pairs)+1]
	}
}

// end settles the gate; metrics that are still open stay undecided.
func (g *Gate) end(v GateVerdict) {
	g.state.Verdict, g.state.Next = v, 0
	for i := range g.state.Findings {
		if g.state.Findings[i].Verdict == GateOpen {
			g.state.Findings[i].Verdict = GateInconclusive
		}
	}
}

func (g *Gate) findings() []GateFinding {
	found := make([]GateFinding, len(g.design.Metrics))
	for i, m := range g.design.Metrics {
		found[i] = g.design.find(m, g.values[i])
	}
	return found
}

// find judges one metric.
func (d GateDesign) find(m GateMetric, values []float64) GateFinding {
	f := GateFinding{Name: m.Name, Estimate: math.NaN(), Lower: math.Inf(-1), Upper: math.Inf(1), Seen: math.Inf(1)}
	if slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		f.Unjudged = true
		return f
	}
	fail, pass := SignedRank(values, 2*d.failAlpha()), SignedRank(values, 2*d.passAlpha())
	f.Estimate, f.Lower, f.Upper = fail.Estimate, fail.Lower, pass.Upper
	f.Seen = max(m.Delta, f.Estimate-f.Lower)
	switch {
	case f.Lower > 0 && f.Estimate > m.Delta:
		f.Verdict = GateFail
	case f.Upper < m.Margin:
		f.Verdict = GatePass
	}
	return f
}
