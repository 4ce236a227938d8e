package hist_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/results/hist"
)

func TestCompactAgainstSortedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(-5, 1000), rapid.Int64Range(0, 10_000_000), rapid.Int64Range(0, hist.Highest)), 1, 300).Draw(t, "values")
		var a, b hist.Compact
		exact := hist.New()
		for i, v := range values {
			exact.Record(v)
			if i%2 == 0 {
				a.Record(v)
			} else {
				b.Record(v)
			}
		}
		a.Merge(&b)
		require.Equal(t, exact.Count(), a.Count())
		require.Equal(t, exact.Min(), a.Min())
		require.Equal(t, exact.Max(), a.Max())
		require.InDelta(t, exact.Mean(), a.Mean(), 1)
		for _, q := range []float64{0.01, 0.5, 0.99, 0.999, 1} {
			want := nearestRank(values, q)
			got := a.Quantile(q)
			require.InDelta(t, float64(want), float64(got), math.Max(600, 0.017*float64(max(want, 0))), "quantile %v of %v", q, values)
		}
	})
}

func nearestRank(values []int64, q float64) int64 {
	sorted := append([]int64{}, values...)
	for i := range sorted { // few values
		for j := i; j > 0 && sorted[j] < sorted[j-1]; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted)))), 1), len(sorted))-1]
}

func TestCompactEdges(t *testing.T) {
	var empty, other hist.Compact
	require.Zero(t, empty.Quantile(0.5))
	require.Zero(t, empty.Mean())
	empty.Merge(&other)
	require.Zero(t, empty.Count())
	other.Record(2 * hist.Highest)
	require.EqualValues(t, 2*hist.Highest, other.Max(), "beyond the range, and known all the same")
	require.EqualValues(t, 2*hist.Highest, other.Quantile(1))
	require.LessOrEqual(t, unsafe.Sizeof(other), uintptr(4096), "so that there may be thousands")
}
