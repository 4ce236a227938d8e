package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results/stat"
)

// levels are n noisy values of each level.
func levels(r *rand.Rand, n int, sd float64, of ...float64) []float64 {
	var xs []float64
	for _, level := range of {
		for range n {
			xs = append(xs, level+sd*r.NormFloat64())
		}
	}
	return xs
}

func TestChangePointsFound(t *testing.T) {
	for _, c := range []struct {
		about string
		of    []float64
		want  []int
	}{
		{"none", []float64{10}, nil},
		{"one step", []float64{10, 12}, []int{20}},
		{"up and down again", []float64{10, 12, 10}, []int{20, 40}},
		{"a stair", []float64{10, 12, 14, 16}, []int{20, 40, 60}},
	} {
		t.Run(c.about, func(t *testing.T) {
			xs := levels(rand.New(rand.NewPCG(1, 2)), 20, 0.3, c.of...)
			var at []int
			for _, p := range stat.ChangePoints(xs, 0.01, 1) {
				at = append(at, p.At)
				require.LessOrEqual(t, p.P, 0.01)
			}
			require.Equal(t, c.want, at)
			require.Equal(t, stat.ChangePoints(xs, 0.01, 1), stat.ChangePoints(xs, 0.01, 1), "the same seed")
		})
	}
}

func TestChangePointsErrorRates(t *testing.T) {
	const series = 60
	alarms, found, near := 0, 0, 0
	for seed := range uint64(series) {
		r := rand.New(rand.NewPCG(seed, 4))
		if len(stat.ChangePoints(levels(r, 30, 1, 0), 0.05, seed)) > 0 {
			alarms++
		}
		if at := stat.ChangePoints(levels(r, 15, 1, 0, 3), 0.05, seed); len(at) > 0 {
			found++
			if math.Abs(float64(at[0].At-15)) <= 2 {
				near++
			}
		}
	}
	t.Logf("alarms %d, found %d, within two places %d of %d", alarms, found, near, series)
	require.LessOrEqual(t, alarms, series/10)
	require.GreaterOrEqual(t, found, series*97/100)
	require.GreaterOrEqual(t, near, series*90/100)
}

func TestChangePointsEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	require.Empty(t, stat.ChangePoints(nil, 0.05, 1))
	require.Empty(t, stat.ChangePoints([]float64{1, 1, 1, 1, 9, 9, 9, 9, 9}, 0.05, 1), "nine are too few for two segments of five")
	require.Len(t, stat.ChangePoints([]float64{1, 1, 1, 1, 1, 9, 9, 9, 9, 9}, 0.05, 1), 1)
	require.Empty(t, stat.ChangePoints(make([]float64, 40), 0.05, 1), "what never changes")
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		xs := levels(r, 20, 0.1, 1, 5)
		xs[3] = bad
		require.Empty(t, stat.ChangePoints(xs, 0.05, 1))
	}
	xs := append(levels(r, 30, 0.1, 9), levels(r, 125, 0.1, 1, 2)...)
	at := stat.ChangePoints(xs, 0.01, 1)
	require.Len(t, at, 1, "only the last 250 are looked at")
	require.Equal(t, 155, at[0].At)
}
