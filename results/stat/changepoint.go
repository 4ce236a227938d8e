package stat

import (
	"math"
	"math/rand/v2"
)

// ChangePoint is where a series changed its level or spread.
type ChangePoint struct {
	At int // index of the first value after the change
	// P is the share of random orders of the values around it that would have shown as much.
	P float64
}

// What ChangePoints works with.
const (
	// leastSegment is the least number of values between two changes: fewer say nothing of a level.
	leastSegment = 5
	permutations = 199
	// maxSeries bounds the values looked at, the last ones: the work grows with their square.
	maxSeries = 250
)

// ChangePoints finds where a series of figures in time changed, by E-divisive: the place whose two
// sides are farthest apart in energy distance, kept if random orders hardly ever do as well, then
// the same within either side (Matteson and James, "A Nonparametric Approach for Multiple Change
// Point Analysis of Multivariate Data", JASA 109, 2014, with exponent 1; as used on histories of
// benchmarks by Daly et al., "The Use of Change Point Detection to Identify Software Performance
// Regressions in a Continuous Integration System", ICPE 2020). No shape of the noise is assumed,
// but that it does not depend on its predecessors. alpha is the chance of a change where there is
// none, for each segment looked at. There are at least five values between changes; of a series
// beyond 250 values only the last are looked at. The same seed gives the same answer; values that
// are not finite give none.
func ChangePoints(xs []float64, alpha float64, seed uint64) []ChangePoint {
	from := max(0, len(xs)-maxSeries)
	for _, x := range xs[from:] {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	}
	return divide(xs[from:], from, alpha, rand.New(rand.NewPCG(seed, 3)))
}

// divide finds the changes within a segment, in order; offset is where it begins.
func divide(xs []float64, offset int, alpha float64, r *rand.Rand) []ChangePoint {
	at, distance := farthest(xs)
	if at == 0 || distance <= 0 {
		return nil
	}
	as := 0
	shuffled := append([]float64(nil), xs...)
	for range permutations {
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if _, d := farthest(shuffled); d >= distance {
			as++
		}
	}
	p := float64(as+1) / (permutations + 1)
	if p > alpha {
		return nil
	}
	left := divide(xs[:at], offset, alpha, r)
	right := divide(xs[at:], offset+at, alpha, r)
	return append(append(left, ChangePoint{At: offset + at, P: p}), right...)
}

// farthest is the place that divides xs into the two sides with the largest energy distance,
// weighted by their sizes; 0 when there are too few values.
func farthest(xs []float64) (at int, distance float64) {
	n := len(xs)
	if n < 2*leastSegment {
		return 0, 0
	}
	// The sums of |x − y| within the left side, within the right and between them, as values go
	// over from right to left one by one.
	var left, right, between float64
	for i := range xs {
		for j := range i {
			right += math.Abs(xs[i] - xs[j])
		}
	}
	for k := 1; k < n; k++ {
		moved := xs[k-1]
		var toLeft, toRight float64
		for i, x := range xs {
			switch {
			case i < k-1:
				toLeft += math.Abs(moved - x)
			case i >= k:
				toRight += math.Abs(moved - x)
			}
		}
		left, right, between = left+toLeft, right-toRight, between+toRight-toLeft
		if k < leastSegment || n-k < leastSegment {
			continue
		}
		a, b := float64(k), float64(n-k)
		d := a * b / (a + b) * (2*between/(a*b) - 2*left/(a*(a-1)) - 2*right/(b*(b-1)))
		if d > distance {
			at, distance = k, d
		}
	}
	return at, distance
}
