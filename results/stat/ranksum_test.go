package stat_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/results/stat"
)

// TestRankSumKnown is example 4.1 of Hollander and Wolfe, permeability of membranes at two ages:
// the estimate −0.305 is theirs, and wilcox.test of R gives the interval −0.76 … 0.15 at 95 %.
func TestRankSumKnown(t *testing.T) {
	term := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	got := stat.RankSum(term, early, 0.05)
	require.InDelta(t, -0.305, got.Estimate, 1e-9)
	require.InDelta(t, -0.76, got.Lower, 1e-9)
	require.InDelta(t, 0.15, got.Upper, 1e-9)
	require.GreaterOrEqual(t, got.Level, 0.95)
}

// TestRankSumMatchesCounting compares with every way to choose who is in a counted one by one:
// the level is the share of them in which a true shift of 0 is covered.
func TestRankSumMatchesCounting(t *testing.T) {
	pool := []float64{1, 2.1, 3.3, 4.6, 6, 7.5, 9.1, 10.8}
	for m := 1; m < len(pool); m++ {
		covered, ways, level := 0, 0, 0.0
		for chosen := range 1 << len(pool) {
			if bits.OnesCount(uint(chosen)) != m {
				continue
			}
			var a, b []float64
			for i, x := range pool {
				if chosen>>i&1 == 1 {
					a = append(a, x)
				} else {
					b = append(b, x)
				}
			}
			got := stat.RankSum(a, b, 0.1)
			level = got.Level
			ways++
			if got.Lower <= 0 && 0 <= got.Upper {
				covered++
			}
		}
		require.InDelta(t, level, float64(covered)/float64(ways), 1e-12, "%d of %d", m, len(pool))
	}
}

func TestRankSumSmallSamples(t *testing.T) {
	values := []float64{1, 2, 4, 8, 16, 32}
	for _, c := range []struct {
		about   string
		m, n    int
		alpha   float64
		bounded bool
	}{
		{"three a side cannot reach 95 %: 2/20", 3, 3, 0.05, false},
		{"four can: 2/70", 4, 4, 0.05, true},
		{"three beside five can: 2/56", 3, 5, 0.05, true},
		{"one run says nothing of others", 1, 6, 0.05, false},
		{"four metrics one-sided need five a side: 1/252", 5, 5, 2 * 0.05 / 4, true},
		{"four are too few for it: 1/70", 4, 4, 2 * 0.05 / 4, false},
		{"none", 0, 4, 0.05, false},
		{"an alpha that is none", 6, 6, 1, false},
	} {
		t.Run(c.about, func(t *testing.T) {
			require.Equal(t, c.bounded, !stat.RankSum(values[:c.m], values[:c.n], c.alpha).Unbounded())
		})
	}
	require.True(t, math.IsNaN(stat.RankSum(nil, values, 0.05).Estimate))
	require.True(t, math.IsNaN(stat.RankSum([]float64{math.NaN(), 1, 2, 3}, values, 0.05).Estimate))
	require.True(t, stat.RankSum(make([]float64, 3000), make([]float64, 3000), 0.05).Unbounded())
}

func TestRankSumProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sample(1, 15).Draw(t, "a"), sample(1, 45).Draw(t, "b")
		got := stat.RankSum(a, b, 0.05)
		require.GreaterOrEqual(t, got.Level, 0.95-0.01) // by the normal approximation, about
		require.LessOrEqual(t, got.Lower, got.Estimate)
		require.GreaterOrEqual(t, got.Upper, got.Estimate)
		back := stat.RankSum(b, a, 0.05)
		require.InDelta(t, -got.Estimate, back.Estimate, 1e-6, "turned round")
		if !got.Unbounded() {
			require.InDelta(t, -got.Upper, back.Lower, 1e-6)
		}
		shift := rapid.Float64Range(-100, 100).Draw(t, "shift")
		for i := range b {
			b[i] += shift
		}
		require.InDelta(t, got.Estimate+shift, stat.RankSum(a, b, 0.05).Estimate, 1e-6)
	})
}

func TestRankSumCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{6, 30} { // exact, approximate
		covered := 0
		const trials = 500
		for range trials {
			a, b := make([]float64, n), make([]float64, n)
			for i := range n {
				a[i], b[i] = r.ExpFloat64(), 3+r.ExpFloat64()
			}
			if got := stat.RankSum(a, b, 0.05); got.Lower <= 3 && 3 <= got.Upper {
				covered++
			}
		}
		require.InDelta(t, 0.955, float64(covered)/trials, 0.025, "n=%d", n)
	}
}
