package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	gonum "gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/results/stat"
)

func sample(low, high int) *rapid.Generator[[]float64] {
	return rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), low, high)
}

func TestQuantileKnown(t *testing.T) {
	xs := []float64{7, 1, 3, 10}
	for q, want := range map[float64]float64{-1: 1, 0: 1, 0.25: 2.5, 0.5: 5, 0.75: 7.75, 1: 10, 2: 10} { // numpy.quantile
		require.InDelta(t, want, stat.Quantile(xs, q), 1e-12, "%v", q)
	}
	require.Equal(t, []float64{7, 1, 3, 10}, xs, "the sample is left as it is")
	require.InDelta(t, 5, stat.Median(xs), 1e-12)
	require.True(t, math.IsNaN(stat.Median(nil)))
	require.True(t, math.IsNaN(stat.Median([]float64{1, math.NaN()})))
	require.True(t, math.IsNaN(stat.Mean(nil)))
	require.InEpsilon(t, 1.5e308, stat.Mean([]float64{1.4e308, 1.6e308}), 1e-9)
}

func TestQuantileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := sample(1, 50).Draw(t, "xs")
		p, q := rapid.Float64Range(0, 1).Draw(t, "p"), rapid.Float64Range(0, 1).Draw(t, "q")
		low, high := stat.Quantile(xs, min(p, q)), stat.Quantile(xs, max(p, q))
		require.LessOrEqual(t, low, high+1e-9)
		require.GreaterOrEqual(t, low, slices.Min(xs))
		require.LessOrEqual(t, high, slices.Max(xs))
		require.InDelta(t, gonum.Mean(xs, nil), stat.Mean(xs), 1e-6)
	})
}

// depression holds the differences of Hollander and Wolfe, table 3.1; estimate and interval
// are those printed in sections 3.2 and 3.3.
var depression = []float64{-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010}

func TestSignedRankKnown(t *testing.T) {
	got := stat.SignedRank(depression, 0.04)
	require.InDelta(t, -0.46, got.Estimate, 0.0001)
	require.InDelta(t, -0.786, got.Lower, 0.0001)
	require.InDelta(t, -0.010, got.Upper, 0.0001)
	require.InDelta(t, 0.961, got.Level, 0.001)
}

func TestSignedRankSmallSamples(t *testing.T) {
	for _, c := range []struct {
		about   string
		n       int
		alpha   float64
		bounded bool
		level   float64
	}{
		{"five values cannot reach 95 %", 5, 0.05, false, 1},
		{"six can: 1−2/64", 6, 0.05, true, 0.96875},
		{"seven reach 98.4 % with the extremes", 7, 0.02, true, 1 - 2/128.0},
		{"eight at the level of a first look of four metrics: 2·0.05/12", 8, 0.05 / 6, true, 1 - 2/256.0},
		{"none", 0, 0.05, false, 1},
		{"an alpha that is none", 10, 0, false, 1},
	} {
		t.Run(c.about, func(t *testing.T) {
			xs := make([]float64, c.n)
			for i := range xs {
				xs[i] = float64(i * i)
			}
			got := stat.SignedRank(xs, c.alpha)
			require.Equal(t, !c.bounded, got.Unbounded())
			require.InDelta(t, c.level, got.Level, 1e-12)
			if c.bounded {
				require.GreaterOrEqual(t, got.Lower, 0.0)
				require.LessOrEqual(t, got.Upper, xs[c.n-1])
			}
		})
	}
}

func TestSignedRankProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := sample(2, 40).Draw(t, "xs")
		alpha := rapid.Float64Range(0.001, 0.5).Draw(t, "alpha")
		got := stat.SignedRank(xs, alpha)
		require.GreaterOrEqual(t, got.Level, 1-alpha)
		require.LessOrEqual(t, got.Lower, got.Estimate)
		require.GreaterOrEqual(t, got.Upper, got.Estimate)
		require.LessOrEqual(t, stat.SignedRank(xs, alpha/4).Lower, got.Lower, "surer is wider")
		shift := rapid.Float64Range(-100, 100).Draw(t, "shift")
		moved, turned := slices.Clone(xs), slices.Clone(xs)
		for i := range xs {
			moved[i] += shift
			turned[i] = -xs[i]
		}
		require.InDelta(t, got.Estimate+shift, stat.HodgesLehmann(moved), 1e-6, "moves with the values")
		mirror := stat.SignedRank(turned, alpha)
		if !got.Unbounded() {
			require.InDelta(t, -got.Upper, mirror.Lower, 1e-6, "turns with the values")
		}
	})
}

// TestSignedRankMatchesCounting compares with all 2^n signs counted one by one: the level is
// the share of signs under which the true centre 0 is covered.
func TestSignedRankMatchesCounting(t *testing.T) {
	magnitudes := []float64{1, 2.1, 3.3, 4.6, 6, 7.5, 9.1, 10.8, 12.6, 14.5}
	for n := 1; n <= len(magnitudes); n++ {
		covered, level := 0, 0.0
		for signs := range 1 << n {
			xs := slices.Clone(magnitudes[:n])
			for i := range xs {
				if signs>>i&1 == 1 {
					xs[i] = -xs[i]
				}
			}
			got := stat.SignedRank(xs, 0.1)
			level = got.Level
			if got.Lower <= 0 && 0 <= got.Upper {
				covered++
			}
		}
		require.InDelta(t, level, float64(covered)/float64(int(1)<<n), 1e-12, "n=%d", n)
	}
}

func TestSignedRankLargeAgreesWithExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	xs := make([]float64, 26)
	for i := range xs {
		xs[i] = r.NormFloat64()
	}
	large, exact := stat.SignedRank(xs, 0.05), stat.SignedRank(xs[:25], 0.05)
	require.InDelta(t, exact.Upper-exact.Lower, large.Upper-large.Lower, 0.25)
	require.InDelta(t, 0.95, large.Level, 0.005)
	require.True(t, stat.SignedRank(make([]float64, 2001), 0.05).Unbounded())
}

func TestBootstrap(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const trials, n = 400, 20
	covered, coveredDifference := 0, 0
	for i := range trials {
		a, b := make([]float64, n), make([]float64, n)
		for j := range n {
			a[j], b[j] = 10+r.NormFloat64(), 12+r.NormFloat64()
		}
		one := stat.Bootstrap(a, stat.Mean, 0.95, 400, uint64(i))
		if one.Lower <= 10 && 10 <= one.Upper {
			covered++
		}
		two := stat.BootstrapDifference(a, b, stat.Mean, 0.95, 400, uint64(i))
		require.InDelta(t, stat.Mean(b)-stat.Mean(a), two.Estimate, 1e-12)
		if two.Lower <= 2 && 2 <= two.Upper {
			coveredDifference++
		}
	}
	require.InDelta(t, 0.93, float64(covered)/trials, 0.04)
	require.InDelta(t, 0.94, float64(coveredDifference)/trials, 0.04)

	xs := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	require.Equal(t, stat.Bootstrap(xs, stat.Median, 0.9, 100, 7), stat.Bootstrap(xs, stat.Median, 0.9, 100, 7), "the same seed")
	require.NotEqual(t, stat.Bootstrap(xs, stat.Mean, 0.9, 100, 7), stat.Bootstrap(xs, stat.Mean, 0.9, 100, 8))
	require.True(t, stat.Bootstrap(xs[:1], stat.Median, 0.9, 100, 7).Unbounded(), "one run says nothing of others")
	require.True(t, stat.BootstrapDifference(xs[:1], xs, stat.Median, 0.9, 100, 7).Unbounded())
	require.True(t, stat.Bootstrap(xs, stat.Median, 1, 100, 7).Unbounded())
}

func TestMannKendallKnown(t *testing.T) {
	// By hand: score 8, variance 5·4·15/18, z = 7/√(50/3).
	got := stat.MannKendall([]float64{1, 3, 2, 4, 5})
	require.InDelta(t, 0.8, got.Tau, 1e-12)
	require.InDelta(t, 0.0864, got.P, 0.0001)
	require.InDelta(t, 1, got.Slope, 1e-12)
	// With a tie: score 5, variance 26/3 − 1.
	got = stat.MannKendall([]float64{1, 2, 2, 3})
	require.InDelta(t, math.Erfc(4/math.Sqrt(26.0/3-1)/math.Sqrt2), got.P, 1e-12)
	require.EqualValues(t, 1, stat.MannKendall([]float64{2, 2, 2, 2}).P)
	require.EqualValues(t, 1, stat.MannKendall(nil).P)
}

func TestMannKendallFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	alarms := 0
	for range 2000 {
		xs := make([]float64, 20)
		for i := range xs {
			xs[i] = r.ExpFloat64()
		}
		if stat.MannKendall(xs).P < 0.05 {
			alarms++
		}
	}
	require.InDelta(t, 0.05, float64(alarms)/2000, 0.015)
}

// warmUp decays from +200 % with time constant tau over 180 s.
func warmUp(tau, noise float64, r *rand.Rand) []float64 {
	xs := make([]float64, 180)
	for i := range xs {
		xs[i] = 10 * (1 + 2*math.Exp(-float64(i)/tau)) * (1 + noise*r.NormFloat64())
	}
	return xs
}

func TestCheck15SteadyState(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, noise := range []float64{0, 0.005, 0.01, 0.02} {
		wrong, missed := 0, 0
		const trials = 200
		for range trials {
			if s, err := stat.SteadyState(warmUp(10, noise, r)); err != nil || math.Abs(s.Value/10-1) > 0.005 {
				wrong++
			}
			if _, err := stat.SteadyState(warmUp(60, noise, r)); err == nil {
				missed++
			}
		}
		t.Logf("noise %v: τ=10 s wrong %d, τ=60 s taken for steady %d of %d", noise, wrong, missed, trials)
		require.LessOrEqual(t, wrong, trials/50)
		require.Zero(t, missed)
	}
}

func TestSteadyStateEdges(t *testing.T) {
	flat := make([]float64, 50)
	for i := range flat {
		flat[i] = 3
	}
	s, err := stat.SteadyState(flat)
	require.NoError(t, err)
	require.Equal(t, stat.Steady{Value: 3}, s, "what never changes is steady from the start")
	_, err = stat.SteadyState(flat[:49])
	require.ErrorIs(t, err, stat.ErrTooShort)
	_, err = stat.SteadyState(nil)
	require.ErrorIs(t, err, stat.ErrTooShort)
	zero, err := stat.SteadyState(make([]float64, 60))
	require.NoError(t, err)
	require.Zero(t, zero.Value)
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		broken := slices.Clone(flat)
		broken[45] = bad
		_, err = stat.SteadyState(broken)
		require.ErrorIs(t, err, stat.ErrTrend)
	}
	step := slices.Clone(flat)
	for i := range 20 {
		step[i] = 30
	}
	s, err = stat.SteadyState(step)
	require.NoError(t, err)
	require.Equal(t, 20, s.From, "a step is cut off where it ends")
	require.EqualValues(t, 3, s.Value)
}

func TestSteadyStateScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(1, 100), 50, 200).Draw(t, "xs")
		s, err := stat.SteadyState(xs)
		scaled := slices.Clone(xs)
		for i := range scaled {
			scaled[i] *= 1024
		}
		s2, err2 := stat.SteadyState(scaled)
		require.Equal(t, err, err2)
		require.Equal(t, s.From, s2.From)
		require.InEpsilon(t, s.Value*1024, s2.Value, 1e-9)
		require.LessOrEqual(t, s.From, len(xs)/2)
	})
}
