// Package stat holds the estimators, tests and intervals that figures are judged by. Everything
// is a pure function: nothing is changed in place, randomness comes from a seed, and all are
// safe for concurrent use. Samples that hold NaN are the caller's mistake and yield NaN.
//
// Runs are the replicates everywhere: what is passed in as a sample is one figure per run, not
// one per message or second. The one exception is SteadyState, which looks inside a run.
package stat

import (
	"math"
	"slices"
)

// Interval is a confidence interval around an estimate.
type Interval struct {
	Estimate     float64
	Lower, Upper float64
	// Level is the confidence reached, from 0 to 1. An exact interval reaches at least the one
	// asked for; with too few samples to exclude anything the bounds are infinite.
	Level float64
}

// Unbounded is true when there were too few samples for an interval of the level asked for.
func (i Interval) Unbounded() bool { return math.IsInf(i.Lower, -1) || math.IsInf(i.Upper, 1) }

// Mean is the arithmetic mean, NaN of nothing.
func Mean(xs []float64) float64 {
	// Scaled before summing, so that the mean of finite values is finite.
	mean := 0.0
	for i, x := range xs {
		mean += (x - mean) / float64(i+1)
	}
	if len(xs) == 0 {
		return math.NaN()
	}
	return mean
}

// Median is the middle value or the mean of the two middle ones, NaN of nothing.
func Median(xs []float64) float64 { return Quantile(xs, 0.5) }

// Quantile interpolates linearly between the order statistics: definition 7 of Hyndman and Fan,
// "Sample Quantiles in Statistical Packages" (1996), the default of R and NumPy. q outside 0…1
// counts as the nearer end; NaN of nothing.
func Quantile(xs []float64, q float64) float64 {
	return quantileOfSorted(slices.Sorted(slices.Values(xs)), q)
}

func quantileOfSorted(xs []float64, q float64) float64 {
	if len(xs) == 0 || math.IsNaN(q) || math.IsNaN(xs[0]) { // NaN sorts first
		return math.NaN()
	}
	at := min(max(q, 0), 1) * float64(len(xs)-1)
	below := int(at)
	if below == len(xs)-1 {
		return xs[below]
	}
	share := at - float64(below)
	return xs[below]*(1-share) + xs[below+1]*share
}
