package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Bootstrap is the percentile interval of a statistic over resamples of the runs with
// replacement (Efron, "Bootstrap Methods", 1979). The same seed gives the same interval. It
// says too little with few runs (below about 8 it covers less than its level); with fewer than
// 2 runs, or a level outside (0, 1), it is unbounded.
func Bootstrap(xs []float64, statistic func([]float64) float64, level float64, resamples int, seed uint64) Interval {
	if len(xs) < 2 {
		return unbounded(statistic(xs))
	}
	r := rand.New(rand.NewPCG(seed, 1))
	draw := make([]float64, len(xs))
	return percentiles(statistic(xs), level, resamples, func() float64 {
		return statistic(resample(r, draw, xs))
	})
}

// BootstrapDifference is the interval of statistic(b) − statistic(a) for two sets of runs that
// are not paired, each resampled on its own. Pass logarithms to compare by ratio.
func BootstrapDifference(a, b []float64, statistic func([]float64) float64, level float64, resamples int, seed uint64) Interval {
	if len(a) < 2 || len(b) < 2 {
		return unbounded(statistic(b) - statistic(a))
	}
	r := rand.New(rand.NewPCG(seed, 2))
	drawA, drawB := make([]float64, len(a)), make([]float64, len(b))
	return percentiles(statistic(b)-statistic(a), level, resamples, func() float64 {
		return statistic(resample(r, drawB, b)) - statistic(resample(r, drawA, a))
	})
}

func unbounded(estimate float64) Interval {
	return Interval{Estimate: estimate, Lower: math.Inf(-1), Upper: math.Inf(1), Level: 1}
}

func resample(r *rand.Rand, into, from []float64) []float64 {
	for i := range into {
		into[i] = from[r.IntN(len(from))]
	}
	return into
}

func percentiles(estimate, level float64, resamples int, next func() float64) Interval {
	if !(level > 0 && level < 1) || resamples < 1 {
		return unbounded(estimate)
	}
	values := make([]float64, resamples)
	for i := range values {
		values[i] = next()
	}
	slices.Sort(values)
	outside := (1 - level) / 2
	return Interval{Estimate: estimate, Lower: quantileOfSorted(values, outside), Upper: quantileOfSorted(values, 1-outside), Level: level}
}
