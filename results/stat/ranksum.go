package stat

import (
	"math"
	"slices"
)

// exactRankSum is the largest number of values on both sides together whose rank-sum
// distribution is computed exactly; its counts are whole numbers below 2^53.
const exactRankSum = 50

// maxDifferences bounds the pairs of RankSum.
const maxDifferences = maxWalsh * maxWalsh / 2

// RankSum compares two samples that are not paired: the Hodges–Lehmann estimate of the shift
// from a to b, which is the median of all differences b_j − a_i, with the interval that inverts
// the test of Mann and Whitney, exact up to 50 values together (Hollander, Wolfe and Chicken,
// "Nonparametric Statistical Methods", 4.2 and 4.3). alpha is for both sides together; a
// one-sided bound at alpha is the same side's bound at 2·alpha. Both samples are taken to have
// the same shape, nothing more. Pass logarithms to compare by ratio.
//
// The smallest alpha that can be had is 2 over "m+n choose m", so that at 5 % four values a side
// are needed: with fewer the interval is unbounded. So it is with more than two million pairs,
// and for alpha that is not in (0, 1). The estimate of nothing is NaN.
func RankSum(a, b []float64, alpha float64) Interval {
	result := unbounded(math.NaN())
	if len(a) == 0 || len(b) == 0 || len(a) > maxDifferences/len(b) {
		return result
	}
	differences := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			differences = append(differences, y-x)
		}
	}
	slices.Sort(differences)
	result.Estimate = quantileOfSorted(differences, 0.5)
	if !(alpha > 0 && alpha < 1) || math.IsNaN(result.Estimate) {
		return result
	}
	cut, tail := rankSumCut(len(a), len(b), alpha/2)
	if cut == 0 {
		return result
	}
	result.Lower, result.Upper = differences[cut-1], differences[len(differences)-cut]
	result.Level = 1 - 2*tail
	return result
}

// rankSumCut is signedRankCut for Mann and Whitney's U.
func rankSumCut(m, n int, share float64) (cut int, tail float64) {
	if m+n > exactRankSum {
		return normalCut(float64(m*n)/2, float64(m*n*(m+n+1))/12, share)
	}
	ways := rankSumWays(m, n)
	total := 0.0
	for _, here := range ways {
		total += here
	}
	return exactCut(ways, total, share)
}

// rankSumWays counts, for each value u of the statistic, the orders of m and n values that give
// it: the coefficients of the Gaussian binomial, built up by its product formula.
func rankSumWays(m, n int) []float64 {
	ways := make([]float64, m*n+1)
	ways[0] = 1
	for i := 1; i <= m; i++ {
		for u := len(ways) - 1; u >= n+i; u-- { // times 1 − q^(n+i)
			ways[u] -= ways[u-n-i]
		}
		for u := i; u < len(ways); u++ { // divided by 1 − q^i
			ways[u] += ways[u-i]
		}
	}
	return ways
}
