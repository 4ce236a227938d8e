package gate

import (
	"fmt"
	"math"
	"strings"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
	"github.com/kbench/kbench/workloads"
)

// StoredOptions are how two stored results are judged.
type StoredOptions struct {
	// Thresholds are conditions on the median over the new side's runs (on any run for counts).
	Thresholds []workloads.Threshold
	// Force judges results whose workload, cluster or host differ; the decision says so.
	Force bool
}

// UnlikeError refuses to judge: what is found may be due to something else that differs.
type UnlikeError struct{ Differences []compare.Difference }

func (e *UnlikeError) Error() string {
	var parts []string
	for _, d := range e.Differences {
		parts = append(parts, d.String())
	}
	const most = 4
	if n := len(parts); n > most {
		parts = append(parts[:most], fmt.Sprintf("and %d more", n-most))
	}
	return "the results are not of the same work in the same place (" + strings.Join(parts, "; ") + "): a change may be due to that; --force judges nevertheless"
}

// widened is how much wider the limits are for results that were not paired: drift of the
// environment between them is in their ratio.
const widened = 2

// Stored judges a result beside an earlier one. The runs of each point on both sides are compared
// by rank sums, with limits twice as wide as for pairs, and no failure for less than the base's
// own runs differ among themselves. Points that only one side has leave it inconclusive.
func Stored(base, other compare.Named, o StoredOptions) (*Decision, error) {
	d := &Decision{Kind: KindStored, Workload: other.Result.Workload.Name, Base: base.Name, New: other.Name, Metrics: []MetricDecision{}, Thresholds: []ThresholdResult{}}
	for _, difference := range compare.Unlike(base.Result, other.Result) {
		if difference.Decisive {
			d.Forced = append(d.Forced, difference)
		}
	}
	if len(d.Forced) > 0 && !o.Force {
		return nil, &UnlikeError{d.Forced}
	}
	aligned := compare.Align(base.Result, other.Result)
	both := 0
	for _, p := range aligned {
		if p.Base != nil && p.New != nil {
			both++
		}
	}
	several := len(aligned) > 1
	for _, p := range aligned {
		d.point(p, both, several)
	}
	d.conditions(other.Result, o.Thresholds, several)
	d.settle()
	if both < len(aligned) || both == 0 {
		d.Verdict = worse(d.Verdict, Inconclusive)
	}
	d.judgeValidity(base.Result, other.Result)
	return d, nil
}

// point judges the metrics of a point. FAIL shares its alpha out over the metrics of all points.
func (d *Decision) point(p compare.Aligned, points int, several bool) {
	switch {
	case p.New == nil:
		d.Notes = append(d.Notes, fmt.Sprintf("point %s was not run in %s", p.Base.Label, d.New))
		return
	case p.Base == nil:
		d.Notes = append(d.Notes, fmt.Sprintf("point %s was not run in %s", p.New.Label, d.Base))
		return
	}
	a, b := compare.Valid(p.Base), compare.Valid(p.New)
	if len(a) == 0 || len(b) == 0 {
		return // said by judgeValidity
	}
	label := ""
	if several {
		label = p.New.Label
	}
	metrics := compare.Gated(a[0])
	for _, m := range metrics {
		found := unpaired(m, a, b, stat.DefaultGateAlpha/float64(len(metrics)*points))
		found.Point = label
		d.Metrics = append(d.Metrics, found)
	}
}

// unpaired judges a metric of two sets of runs; failAlpha is for the one bound of FAIL.
func unpaired(m compare.Metric, a, b []*results.Run, failAlpha float64) MetricDecision {
	x, y := logs(m, a), logs(m, b)
	delta, margin := limits(m)
	delta, margin = math.Log1p(widened*delta), math.Log1p(widened*margin)
	floor := noiseFloor(x)
	lower := stat.RankSum(x, y, 2*failAlpha)
	upper := stat.RankSum(x, y, 2*stat.DefaultGateAlpha)
	out := MetricDecision{
		Name: m.Name, Unit: m.Unit, Verdict: Inconclusive, Base: median(m, a), New: median(m, b),
		Worse: compare.Ratio(lower.Estimate), AtLeast: compare.Ratio(lower.Lower), AtMost: compare.Ratio(upper.Upper),
		FailsAbove: math.Exp(max(delta, floor)), PassesBelow: math.Exp(margin),
		Seen: compare.Ratio(max(delta, floor, lower.Estimate-lower.Lower)),
	}
	switch {
	case math.IsNaN(lower.Estimate):
		out.Why = "a run without this figure, or with a figure of 0: there is no ratio"
	case lower.Lower > 0 && lower.Estimate > max(delta, floor):
		out.Verdict = Fail
	case upper.Upper < margin:
		out.Verdict = Pass
	case len(a) == 1 && len(b) == 1:
		out.Why = "one run a side: chance cannot be told from change; repeat with --repeat 8"
	case lower.Unbounded():
		out.Why = fmt.Sprintf("%d runs beside %d are too few to tell; repeat with --repeat 8", len(a), len(b))
	case floor > margin:
		out.Why = "the base's own runs differ by more than the margin"
	default:
		out.Why = "neither a change above the least that fails, nor one of the margin ruled out"
	}
	return out
}

// logs are the logarithms of a figure, larger when worse; not a number where there is none.
func logs(m compare.Metric, runs []*results.Run) []float64 {
	out := make([]float64, len(runs))
	for i, run := range runs {
		out[i] = math.NaN()
		if v, ok := m.Of(run); ok {
			out[i] = m.Worse(1, v)
		}
	}
	return out
}

// noiseFloor is how far nine of ten of the runs are from their median at most.
func noiseFloor(logs []float64) float64 {
	centre := stat.Median(logs)
	away := make([]float64, len(logs))
	for i, v := range logs {
		away[i] = math.Abs(v - centre)
	}
	if floor := stat.Quantile(away, 0.9); !math.IsNaN(floor) {
		return floor
	}
	return 0
}

// judgeValidity notes the runs left out, and gives the verdict up when they are too many.
func (d *Decision) judgeValidity(sides ...*results.Result) {
	for i, r := range sides {
		name := d.New
		if i < len(sides)-1 {
			name = d.Base
		}
		for j := range r.Points {
			p := &r.Points[j]
			bad := len(p.Runs) - len(compare.Valid(p))
			if bad == 0 {
				continue
			}
			d.Invalid = append(d.Invalid, fmt.Sprintf("%s: %d of %d runs of %s: %s", name, bad, len(p.Runs), p.ID, reasons(p)))
			if float64(bad) > MostInvalid*float64(len(p.Runs)) {
				d.Verdict = Invalid
			}
		}
	}
}

// reasons are those of a point's invalid runs, each once, three at most.
func reasons(p *results.Point) string {
	var list []string
	seen := map[string]bool{}
	for i := range p.Runs {
		for _, reason := range p.Runs[i].Verdict.Reasons {
			if !seen[reason] && len(list) < 3 {
				seen[reason] = true
				list = append(list, reason)
			}
		}
	}
	if len(list) == 0 {
		return "no reason was recorded"
	}
	return strings.Join(list, "; ")
}

// Thresholds judges one result by conditions alone: those its runs had, and those given.
func Thresholds(r compare.Named, given []workloads.Threshold) *Decision {
	d := &Decision{Kind: KindThresholds, Workload: r.Result.Workload.Name, New: r.Name, Metrics: []MetricDecision{}, Thresholds: []ThresholdResult{}}
	d.conditions(r.Result, given, len(r.Result.Points) > 1)
	d.settle()
	if len(d.Thresholds) == 0 {
		d.Verdict = Inconclusive
		d.Notes = append(d.Notes, map[bool]string{true: "there is no condition to judge by", false: "there is no valid run to judge"}[len(given) == 0])
	}
	d.judgeValidity(r.Result)
	return d
}
