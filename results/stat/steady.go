package stat

import (
	"errors"
	"math"
)

// Steady is where a run became steady, and its value from there on.
type Steady struct {
	// From is the index of the first point that belongs to the steady part, a multiple of 5.
	From int
	// Value is the mean of the points from there on.
	Value float64
	// Drift is how much the steady part still rises from its beginning to its end, as a share
	// of Value.
	Drift float64
}

// Reasons for SteadyState to find none.
var (
	// ErrTooShort: fewer points than 50, too few to tell a trend from chance in half of them.
	ErrTooShort = errors.New("no steady state: too few intervals to tell")
	// ErrTrend: in the second half of the run the figure was still rising or falling.
	ErrTrend = errors.New("no steady state: the figure was still rising or falling in the second half of the run")
)

const (
	batchSize  = 5 // of MSER-5
	minBatches = 10
	// A trend counts when it is hardly chance and moves the figure by more than 1 % over the
	// steady part: then the mean is more than 0.5 % off at either end.
	trendP     = 0.05
	trendDrift = 0.01
)

// SteadyState finds the end of the warm-up in a series of interval figures of one run (at
// equal distances, 50 at least). MSER-5 (White, Cobb and Spratt, "A Comparison of Five
// Steady-State Truncation Heuristics for Simulation", 2000) cuts off the beginning such that the
// mean of the rest has the least standard error, half of the run at most. MSER always finds
// something, so a Mann–Kendall test guards it: while what is left has a trend that matters, more
// is cut off, and when that takes more than half of the run there is no steady state (ErrTrend).
// ErrTrend is also the answer to values that are not finite. On error Steady holds the figures
// of the second half.
func SteadyState(xs []float64) (Steady, error) {
	batches := means(xs, batchSize)
	if len(batches) < minBatches {
		return steadyFrom(xs, len(xs)/2/batchSize), ErrTooShort
	}
	last := len(batches) / 2
	for cut := mser(batches, last); cut <= last; cut++ {
		s := steadyFrom(xs, cut)
		rest := batches[cut:]
		trend := MannKendall(rest)
		s.Drift = trend.Slope * float64(len(rest)-1) / s.Value
		if trend.P > trendP || math.Abs(s.Drift) <= trendDrift || trend.Slope == 0 {
			return finite(s, xs)
		}
	}
	return steadyFrom(xs, last), ErrTrend
}

func finite(s Steady, xs []float64) (Steady, error) {
	for _, x := range xs[s.From:] {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return s, ErrTrend
		}
	}
	return s, nil
}

// steadyFrom sums up what is left when cut batches are cut off.
func steadyFrom(xs []float64, cut int) Steady {
	return Steady{From: cut * batchSize, Value: Mean(xs[cut*batchSize:])}
}

// means are those of whole batches; what is left over at the end is in none.
func means(xs []float64, size int) []float64 {
	batches := make([]float64, len(xs)/size)
	for i := range batches {
		batches[i] = Mean(xs[i*size : (i+1)*size])
	}
	return batches
}

// mser is the cut, from 0 to last, that makes Σ(z−z̄)²/n² over the rest the least.
func mser(batches []float64, last int) int {
	best, least := 0, math.Inf(1)
	for cut := range last + 1 {
		rest := batches[cut:]
		mean, squares := Mean(rest), 0.0
		for _, z := range rest {
			squares += (z - mean) * (z - mean)
		}
		if e := squares / float64(len(rest)*len(rest)); e < least {
			best, least = cut, e
		}
	}
	return best
}
