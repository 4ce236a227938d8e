package report

import (
	"math"
	"slices"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

// nines is the scale of percentile charts: log10(1/(1−q)), 0 at the minimum, 1 at p90, 2 at p99,
// so that every further nine takes the same room.
type nines = float64

// mostNines ends the percentile axis: p99.9999.
const mostNines nines = 6

// level is one place of a percentile curve.
type level struct {
	at nines
	ns float64
}

// quantileOf is the share of values that do not exceed the level.
func quantileOf(n nines) float64 { return 1 - math.Pow(10, -n) }

// curveOf reads the percentile curve off a histogram: about steps evenly placed levels and those
// of the table. It ends where one value is left: a thousand messages have no p99.99.
func curveOf(h *hist.Histogram, steps int) []level {
	if h == nil || h.Count() == 0 {
		return nil
	}
	end := math.Min(mostNines, math.Log10(float64(h.Count())))
	places := []nines{end}
	for i := range steps {
		places = append(places, end*float64(i)/float64(steps))
	}
	for _, t := range tableLevels {
		if t.at < end {
			places = append(places, t.at)
		}
	}
	slices.Sort(places)
	var levels []level
	for _, at := range slices.Compact(places) {
		levels = append(levels, level{at, float64(h.Quantile(quantileOf(at)))})
	}
	return levels
}

// curveFrom is what is left of a curve when its log cannot be read: the quantiles of the result.
func curveFrom(s results.Series) []level {
	if s.Count == 0 {
		return nil
	}
	end := math.Log10(float64(s.Count))
	levels := []level{{0, float64(s.MinNs)}}
	for _, known := range []level{
		{math.Log10(2), float64(s.P50Ns)}, {1, float64(s.P90Ns)}, {2, float64(s.P99Ns)},
		{3, float64(s.P999Ns)}, {4, float64(s.P9999Ns)},
	} {
		if known.at <= end {
			levels = append(levels, known)
		}
	}
	return levels
}

// valueAt is the value of a curve at a level, from the nearest level at or above it; not a number
// beyond its end.
func valueAt(curve []level, at nines) float64 {
	for _, l := range curve {
		if l.at >= at-1e-9 {
			return l.ns
		}
	}
	return math.NaN()
}
