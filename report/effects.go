package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
)

// effect is what one value of a setting does to a figure, as the ratio to another value, with
// everything else alike.
type effect struct {
	factor       factor
	base, value  string
	ratio        float64
	lower, upper float64 // of the ratio; not a number with too few pairs for an interval
	least, most  float64 // ratio of a single pair
	pairs        int
}

// effectAlpha is the chance that an interval misses, each on its own. With n pairs the smallest that
// the signed-rank test reaches is 2^(1-n), so that an interval takes six pairs.
const effectAlpha = 0.05

// effectFigure is a figure that effects are worked out for.
type effectFigure struct {
	title string
	of    func(*results.Run, string) (float64, bool) // of a run, given the headline series
}

var effectFigures = []effectFigure{
	{"msg/s", func(r *results.Run, _ string) (float64, bool) { return rateOf(r) }},
	{"p99", func(r *results.Run, series string) (float64, bool) {
		s := r.Series[series]
		return float64(s.P99Ns), s.Count > 0
	}},
}

// effects are the main effects of a sweep's settings on a figure. Points are paired that differ in
// one setting alone, run by run within a repeat (repeats are blocks in time: what changed between
// them is alike on both sides), so that each pair is the ratio of two runs. The effect is the
// Hodges–Lehmann estimate of the pairs' logarithms with the interval of Wilcoxon's signed-rank
// test. It is of the setting over all that was swept beside it: where the effect depends on other
// settings, the interval is wide. Invalid runs are left out.
//
// The value each is held against is the first in the sweep's order.
func effects(points []*point, fig effectFigure) []effect {
	all := factors(points)
	all = slices.DeleteFunc(all, func(f factor) bool { return f.key == sourceKey })
	var list []effect
	for i, f := range all {
		for _, value := range f.values[1:] {
			list = append(list, effectOf(points, all, i, f.values[0], value, fig))
		}
	}
	weight := map[string]float64{}
	for _, e := range list {
		if e.pairs > 0 {
			weight[e.factor.key] = math.Max(weight[e.factor.key], math.Abs(math.Log(e.ratio)))
		}
	}
	slices.SortStableFunc(list, func(a, b effect) int {
		return cmp.Compare(weight[b.factor.key], weight[a.factor.key])
	})
	return list
}

// effectOf pairs the points with one value of a factor with those of another.
func effectOf(points []*point, all []factor, at int, base, value string, fig effectFigure) effect {
	e := effect{factor: all[at], base: base, value: value, lower: math.NaN(), upper: math.NaN(), least: math.Inf(1)}
	beside := func(p *point) string {
		parts := []string{p.source.name, p.headline}
		for i, f := range all {
			if i != at {
				parts = append(parts, f.valueOf(p))
			}
		}
		return strings.Join(parts, "\x00")
	}
	with := map[string]*point{}
	for _, p := range points {
		if all[at].valueOf(p) == base {
			with[beside(p)] = p
		}
	}
	var logs []float64
	for _, p := range points {
		if q := with[beside(p)]; q != nil && all[at].valueOf(p) == value {
			logs = append(logs, pairedLogs(q, p, fig)...)
		}
	}
	for _, l := range logs {
		e.least, e.most = math.Min(e.least, math.Exp(l)), math.Max(e.most, math.Exp(l))
	}
	e.pairs = len(logs)
	if e.pairs == 0 {
		return e
	}
	interval := stat.SignedRank(logs, effectAlpha)
	e.ratio = math.Exp(interval.Estimate)
	if !interval.Unbounded() {
		e.lower, e.upper = math.Exp(interval.Lower), math.Exp(interval.Upper)
	}
	return e
}

// pairedLogs are the logarithms of b ÷ a for each repeat that is valid on both sides.
func pairedLogs(a, b *point, fig effectFigure) []float64 {
	figures := map[int]float64{}
	for i := range a.data.Runs {
		run := &a.data.Runs[i]
		if v, ok := fig.of(run, a.headline); ok && run.Verdict.Valid && v > 0 && usable(v) {
			figures[run.Repeat] = v
		}
	}
	var logs []float64
	for i := range b.data.Runs {
		run := &b.data.Runs[i]
		v, ok := fig.of(run, b.headline)
		if before, has := figures[run.Repeat]; has && ok && run.Verdict.Valid && v > 0 && usable(v) {
			logs = append(logs, math.Log(v)-math.Log(before))
		}
	}
	return logs
}

// title is the effect in words.
func (e effect) title() string { return e.factor.name + "  " + e.base + " → " + e.value }
