package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// exactSignedRank is the largest sample whose signed-rank distribution is computed exactly;
// beyond, its normal approximation is good to a fraction of a per mille.
const exactSignedRank = 25

// maxWalsh bounds the samples of HodgesLehmann and SignedRank: 2 000 make two million averages.
const maxWalsh = 2000

// HodgesLehmann is the median of the Walsh averages (x_i + x_j)/2, i ≤ j: the centre of a
// symmetric distribution, nearly as efficient as the mean and hardly moved by outliers. For
// pairs pass the differences. Hodges and Lehmann, "Estimates of Location Based on Rank Tests"
// (1963). NaN of nothing, or of more than 2 000 values.
func HodgesLehmann(xs []float64) float64 {
	if len(xs) > maxWalsh {
		return math.NaN()
	}
	return quantileOfSorted(walsh(xs), 0.5)
}

// walsh are the sorted averages of all pairs, each value paired with itself too.
func walsh(xs []float64) []float64 {
	averages := make([]float64, 0, len(xs)*(len(xs)+1)/2)
	for i, x := range xs {
		for _, y := range xs[:i+1] {
			averages = append(averages, x/2+y/2)
		}
	}
	slices.Sort(averages)
	return averages
}

// SignedRank is the Hodges–Lehmann estimate with the interval that inverts Wilcoxon's
// signed-rank test, exact up to 25 values (Hollander, Wolfe and Chicken, "Nonparametric
// Statistical Methods", 3.3): alpha is the chance, over both sides together, that the centre
// lies outside. A one-sided bound at alpha is the same side's bound at 2·alpha. The distribution
// of the values (for pairs, of their differences) is taken to be symmetric, nothing more; ties
// make the interval wider than it needs to be, never narrower.
//
// With n values the smallest alpha that can be had is 2^(1−n): below it the interval is
// unbounded. So it is with more than 2 000 values, and for alpha that is not in (0, 1).
func SignedRank(xs []float64, alpha float64) Interval {
	result := Interval{Estimate: HodgesLehmann(xs), Lower: math.Inf(-1), Upper: math.Inf(1), Level: 1}
	n := len(xs)
	if n == 0 || n > maxWalsh || !(alpha > 0 && alpha < 1) {
		return result
	}
	cut, tail := signedRankCut(n, alpha/2)
	if cut == 0 {
		return result
	}
	averages := walsh(xs)
	result.Lower, result.Upper = averages[cut-1], averages[len(averages)-cut]
	result.Level = 1 - 2*tail
	return result
}

// signedRankCut is the largest c with P(T < c) ≤ share, and that probability: c−1 Walsh
// averages at each end are outside the interval.
func signedRankCut(n int, share float64) (cut int, tail float64) {
	if n > exactSignedRank {
		return normalCut(float64(n*(n+1))/4, float64(n*(n+1)*(2*n+1))/24, share)
	}
	return exactCut(signedRankWays(n), math.Ldexp(1, n), share)
}

// exactCut finds the cut in a distribution given as counts of each value, total in all.
func exactCut(ways []float64, total, share float64) (cut int, tail float64) {
	sum := 0.0
	for t, here := range ways {
		if (sum+here)/total > share {
			return t, sum / total
		}
		sum += here
	}
	return 0, 0 // not reached: all ways together are more than a share below ½
}

// normalCut is exactCut by the normal approximation with continuity correction.
func normalCut(mean, variance, share float64) (cut int, tail float64) {
	sd := math.Sqrt(variance)
	below := func(c int) float64 { return distuv.UnitNormal.CDF((float64(c) - 0.5 - mean) / sd) }
	for below(cut+1) <= share {
		cut++
	}
	return cut, below(cut)
}

// signedRankWays counts, for each value t of the statistic, the sets of ranks 1…n that sum to
// t. All counts are whole numbers below 2^25.
func signedRankWays(n int) []float64 {
	ways := make([]float64, n*(n+1)/2+1)
	ways[0] = 1
	for rank := 1; rank <= n; rank++ {
		for t := len(ways) - 1; t >= rank; t-- {
			ways[t] += ways[t-rank]
		}
	}
	return ways
}
