package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// observed are throughputs of a law at each n, off by a relative error of that standard deviation.
func observed(u USL, n []float64, sd float64, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 9))
	x := make([]float64, len(n))
	for i := range n {
		x[i] = u.At(n[i]) * (1 + sd*r.NormFloat64())
	}
	return x
}

func TestFitUSL(t *testing.T) {
	powers := []float64{1, 2, 4, 8, 16, 32}
	tests := []struct {
		says    string
		law     USL
		n       []float64
		sd      float64
		peak    float64 // 0: none
		within  float64 // of the peak, as a share
		limited float64 // 0: none
	}{
		{"exact points with contention and agreement", USL{Gamma: 995.6, Sigma: 0.0267, Kappa: 0.000769}, powers, 0, 35.6, 0.005, 0},
		{"a peak inside what was measured", USL{Gamma: 50_000, Sigma: 0.05, Kappa: 0.01}, powers, 0, 9.75, 0.005, 0},
		{"noise of 2 %: the peak is still found", USL{Gamma: 50_000, Sigma: 0.05, Kappa: 0.01}, powers, 0.02, 9.75, 0.1, 0},
		{"contention alone has no peak (Amdahl)", USL{Gamma: 1000, Sigma: 0.1}, powers, 0, 0, 0, 10_000},
		{"nothing in the way: linear", USL{Gamma: 1000}, powers, 0, 0, 0, 0},
		{"numbers that do not begin at 1", USL{Gamma: 800, Sigma: 0.02, Kappa: 0.002}, []float64{4, 6, 10, 20, 40}, 0, 22.1, 0.005, 0},
	}
	for _, tt := range tests {
		t.Run(tt.says, func(t *testing.T) {
			u, err := FitUSL(tt.n, observed(tt.law, tt.n, tt.sd, 3))
			require.NoError(t, err)
			if tt.sd == 0 {
				require.InEpsilon(t, tt.law.Gamma, u.Gamma, 1e-6)
				require.InDelta(t, tt.law.Sigma, u.Sigma, 1e-6)
				require.InDelta(t, tt.law.Kappa, u.Kappa, 1e-7)
				require.Less(t, u.Error, 1e-6)
			} else {
				require.InDelta(t, tt.sd, u.Error, tt.sd)
			}
			if tt.peak > 0 {
				require.InEpsilon(t, tt.peak, u.Peak(), tt.within)
				require.InEpsilon(t, u.At(u.Peak()), u.Limit(), 1e-12)
				require.Greater(t, u.Limit(), u.At(u.Peak()*1.3))
				require.Greater(t, u.Limit(), u.At(u.Peak()/1.3))
			} else if u.Kappa < 1e-9 {
				u.Kappa = 0 // what rounding leaves
			}
			if tt.limited > 0 {
				require.InEpsilon(t, tt.limited, u.Limit(), 1e-3)
			}
		})
	}
}

// Over many samples with noise of 3 %, the median peak is within 5 % of the true one: the fit has no
// bias to speak of.
func TestFitUSLHasNoBias(t *testing.T) {
	law := USL{Gamma: 20_000, Sigma: 0.03, Kappa: 0.004} // peak 15.57
	n := []float64{1, 2, 4, 8, 12, 16, 24, 32}
	var peaks []float64
	for seed := range uint64(200) {
		u, err := FitUSL(n, observed(law, n, 0.03, seed))
		require.NoError(t, err)
		peaks = append(peaks, u.Peak())
	}
	require.InEpsilon(t, law.Peak(), Median(peaks), 0.05)
	require.InEpsilon(t, law.Peak(), Quantile(peaks, 0.05), 0.25)
	require.InEpsilon(t, law.Peak(), Quantile(peaks, 0.95), 0.25)
}

func TestFitUSLRefuses(t *testing.T) {
	tests := []struct {
		says string
		n, x []float64
		err  error
	}{
		{"four different numbers", []float64{1, 2, 3, 4, 4, 4}, []float64{1, 2, 3, 4, 4, 4}, ErrUSLPoints},
		{"a throughput of zero", []float64{1, 2, 3, 4, 5}, []float64{1, 2, 0, 4, 5}, ErrUSLPoints},
		{"not a number", []float64{1, 2, 3, 4, 5}, []float64{1, 2, math.NaN(), 4, 5}, ErrUSLPoints},
		{"a point without a throughput", []float64{1, 2, 3, 4, 5}, []float64{1, 2, 3, 4}, ErrUSLPoints},
		{"nothing", nil, nil, ErrUSLPoints},
	}
	for _, tt := range tests {
		_, err := FitUSL(tt.n, tt.x)
		require.ErrorIs(t, err, tt.err, tt.says)
	}
}

// Whatever is measured, a law that is found makes sense, and fits no worse than a constant.
func TestFitUSLProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := []float64{1, 2, 3, 5, 8, 13}
		x := rapid.SliceOfN(rapid.Float64Range(1e-3, 1e9), len(n), len(n)).Draw(t, "x")
		u, err := FitUSL(n, x)
		if err != nil {
			return
		}
		require.Positive(t, u.Gamma)
		require.GreaterOrEqual(t, u.Sigma, 0.0)
		require.GreaterOrEqual(t, u.Kappa, 0.0)
		require.False(t, math.IsNaN(u.Error) || math.IsInf(u.Error, 0))
		for _, k := range n {
			require.Positive(t, u.At(k))
			require.LessOrEqual(t, u.At(k), u.Limit()*(1+1e-9))
		}
	})
}
