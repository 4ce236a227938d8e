package stat

import (
	"errors"
	"math"
)

// USL is the Universal Scalability Law (Gunther, "Guerrilla Capacity Planning", 2007, chapter 4):
//
//	X(N) = N·Gamma / (1 + Sigma·(N−1) + Kappa·N·(N−1))
//
// the throughput of N units of load, which contend for something (Sigma) and have to agree with one
// another (Kappa).
type USL struct {
	// Gamma is the throughput of a single unit, Sigma the share that cannot be done side by side,
	// from 0 up, Kappa the cost of agreement between each two, from 0 up.
	Gamma, Sigma, Kappa float64
	// Error is the root of the mean square of the relative errors over the points fitted.
	Error float64
}

// LeastUSL is the number of different N that a fit needs: three parameters leave two over then.
const LeastUSL = 5

// Reasons for FitUSL to find no law.
var (
	// ErrUSLPoints: fewer than LeastUSL different N, or a point that is not positive and finite.
	ErrUSLPoints = errors.New("a fit of the scalability law needs throughput above 0 at five different numbers or more")
	// ErrUSLFit: no law with a positive throughput comes near the points.
	ErrUSLFit = errors.New("the scalability law does not fit: no single unit's throughput could be found")
)

// At is the throughput of n units.
func (u USL) At(n float64) float64 {
	return n * u.Gamma / (1 + u.Sigma*(n-1) + u.Kappa*n*(n-1))
}

// Peak is the N at which throughput is the highest; beyond it more units do harm. +Inf when there is
// none: without Kappa throughput approaches Gamma/Sigma, or grows without end. Less than 1 says that
// one alone does the most.
func (u USL) Peak() float64 {
	if u.Sigma > 1 {
		return 0
	}
	if u.Kappa <= 0 {
		return math.Inf(1)
	}
	return math.Sqrt((1 - u.Sigma) / u.Kappa)
}

// Limit is what throughput never exceeds: that at the peak, Gamma/Sigma without one, +Inf without
// either.
func (u USL) Limit() float64 {
	if n := u.Peak(); !math.IsInf(n, 1) {
		return u.At(max(1, n))
	}
	if u.Sigma > 0 {
		return u.Gamma / u.Sigma
	}
	return math.Inf(1)
}

// FitUSL finds the law with the least squares of relative errors, since throughput scatters by a
// share of itself. n and x are of the same length; several points at one n are several observations.
//
// N/X is linear in 1/Gamma, Sigma/Gamma and Kappa/Gamma, so each round is a linear problem, weighted
// by the round before (iteratively reweighted least squares). Sigma and Kappa below zero, which have
// no meaning, are kept at zero.
func FitUSL(n, x []float64) (USL, error) {
	different := map[float64]bool{}
	for i := range n {
		if !(n[i] > 0) || i >= len(x) || !(x[i] > 0) || math.IsInf(n[i], 1) || math.IsInf(x[i], 1) {
			return USL{}, ErrUSLPoints
		}
		different[n[i]] = true
	}
	if len(different) < LeastUSL || len(x) != len(n) {
		return USL{}, ErrUSLPoints
	}
	const rounds = 50
	best := USL{Error: math.Inf(1)}
	fit := make([]float64, len(n)) // the rounds' N/X, at first the points' own
	for i := range n {
		fit[i] = n[i] / x[i]
	}
	for range rounds {
		u, ok := uslRound(n, x, fit)
		if !ok {
			break
		}
		if u.Error < best.Error {
			best = u
		}
		for i := range n {
			fit[i] = n[i] / u.At(n[i])
		}
	}
	if math.IsInf(best.Error, 1) {
		return USL{}, ErrUSLFit
	}
	return best, nil
}

// uslRound solves the linear problem with weights 1/fit², for each set of parameters that may be
// zero, and takes the best law among those that make sense.
func uslRound(n, x, fit []float64) (best USL, ok bool) {
	best.Error = math.Inf(1)
	for _, columns := range [][]int{{0, 1, 2}, {0, 1}, {0, 2}, {0}} {
		b, solved := weighted(n, x, fit, columns)
		if !solved || !(b[0] > 0) || b[1] < 0 || b[2] < 0 {
			continue
		}
		u := USL{Gamma: 1 / b[0], Sigma: b[1] / b[0], Kappa: b[2] / b[0]}
		u.Error = uslError(u, n, x)
		// A law with fewer parameters is taken only when it is better, which it is when the others
		// were ruled out.
		if u.Error < best.Error {
			best, ok = u, true
		}
	}
	return best, ok
}

func uslError(u USL, n, x []float64) float64 {
	sum := 0.0
	for i := range n {
		e := x[i]/u.At(n[i]) - 1
		sum += e * e
	}
	return math.Sqrt(sum / float64(len(n)))
}

// weighted solves the normal equations of N/X = b0 + b1·(N−1) + b2·N·(N−1) for the columns given;
// the others are zero.
func weighted(n, x, fit []float64, columns []int) (b [3]float64, ok bool) {
	size := len(columns)
	a := make([][]float64, size) // with the right side as its last column
	for i := range a {
		a[i] = make([]float64, size+1)
	}
	for k := range n {
		w := 1 / (fit[k] * fit[k])
		row := [3]float64{1, n[k] - 1, n[k] * (n[k] - 1)}
		for i, ci := range columns {
			for j, cj := range columns {
				a[i][j] += w * row[ci] * row[cj]
			}
			a[i][size] += w * row[ci] * n[k] / x[k]
		}
	}
	if !eliminate(a) {
		return b, false
	}
	for i, c := range columns {
		b[c] = a[i][size]
	}
	return b, true
}

// eliminate solves a small system in place (Gauss–Jordan with pivots); the last column becomes the
// solution. False when it has no single one.
func eliminate(a [][]float64) bool {
	size := len(a)
	for c := range size {
		pivot := c
		for r := c + 1; r < size; r++ {
			if math.Abs(a[r][c]) > math.Abs(a[pivot][c]) {
				pivot = r
			}
		}
		a[c], a[pivot] = a[pivot], a[c]
		if p := a[c][c]; p == 0 || math.IsNaN(p) || math.IsInf(p, 0) {
			return false
		}
		for r := range size {
			if r == c {
				continue
			}
			f := a[r][c] / a[c][c]
			for k := c; k <= size; k++ {
				a[r][k] -= f * a[c][k]
			}
		}
	}
	for r := range size {
		a[r][size] /= a[r][r]
	}
	return true
}
