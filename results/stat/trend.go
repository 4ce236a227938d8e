package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Trend is what MannKendall finds.
type Trend struct {
	// Tau is Kendall's rank correlation with time, from −1 (ever falling) to 1 (ever rising).
	Tau float64
	// P is the two-sided probability of so much trend without any, by the normal approximation
	// with corrections for ties and continuity. 1 with fewer than three values.
	P float64
	// Slope is Theil and Sen's: the median change from one value to the next.
	Slope float64
}

// MannKendall tests a series of equal distances in time for a trend of any shape (Mann, 1945;
// Kendall, "Rank Correlation Methods"; slope: Sen, 1968). It takes n²/2 steps. Values that
// depend on their predecessors make P too small: batch them first.
func MannKendall(xs []float64) Trend {
	n := len(xs)
	if n < 2 {
		return Trend{P: 1}
	}
	score := 0
	slopes := make([]float64, 0, n*(n-1)/2)
	ties := map[float64]int{}
	for i, x := range xs {
		ties[x]++
		for j := range i {
			switch {
			case x > xs[j]:
				score++
			case x < xs[j]:
				score--
			}
			slopes = append(slopes, (x-xs[j])/float64(i-j))
		}
	}
	t := Trend{P: 1, Tau: float64(score) / float64(n*(n-1)/2), Slope: Median(slopes)}
	variance := spread(n)
	for _, same := range ties {
		variance -= spread(same)
	}
	if n < 3 || variance <= 0 || score == 0 {
		return t
	}
	z := (math.Abs(float64(score)) - 1) / math.Sqrt(variance)
	t.P = min(1, 2*distuv.UnitNormal.Survival(z))
	return t
}

// spread is the variance of Kendall's score over n values without ties.
func spread(n int) float64 { return float64(n) * float64(n-1) * float64(2*n+5) / 18 }
