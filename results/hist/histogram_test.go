package hist_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/results/hist"
)

func ms(n float64) int64 { return int64(n * float64(time.Millisecond)) }

// within checks a value to the precision of the layout.
func within(t *testing.T, want, got int64) {
	t.Helper()
	require.InEpsilon(t, float64(want), float64(got), 0.002)
}

func TestCheck10MergeNeverAverage(t *testing.T) {
	fast, slow := hist.New(), hist.New()
	fast.RecordN(ms(1), 1_000_000)
	for range 10_000 {
		slow.Record(ms(100))
	}
	fast.Merge(slow)
	t.Logf("expected p99 1 ms, p99.5 100 ms; seen %v, %v", time.Duration(fast.Quantile(0.99)), time.Duration(fast.Quantile(0.995)))
	require.EqualValues(t, 1_010_000, fast.Count())
	within(t, ms(1), fast.Quantile(0.99))
	within(t, ms(100), fast.Quantile(0.995))
	require.EqualValues(t, 10_000, fast.CountAbove(ms(50)))
}

func TestCheck12NegativeValuesAreCounted(t *testing.T) {
	h := hist.New()
	for i := range int64(1000) {
		h.Record(ms(5) - ms(50) - i)
	}
	require.EqualValues(t, 1000, h.Count())
	require.EqualValues(t, 1000, h.Negative())
	require.EqualValues(t, ms(-45)-999, h.Min())
	require.EqualValues(t, ms(-45), h.Max())
	require.InDelta(t, float64(ms(-45))-499.5, h.Mean(), 0.01)
	h.Record(ms(5))
	require.EqualValues(t, 1001, h.Count())
	require.EqualValues(t, 1, h.CountAbove(0))
	require.EqualValues(t, 1, h.CountAbove(-1))
	require.EqualValues(t, 1001, h.CountAbove(ms(-46)))
}

func TestCheck13MicrosecondsStayMicroseconds(t *testing.T) {
	h := hist.New()
	h.RecordN(250_000, 10)
	for _, q := range []float64{0, 0.5, 0.99, 1} {
		within(t, 250_000, h.Quantile(q))
	}
	t.Logf("expected 250 µs, seen p50 %v, max %v", time.Duration(h.Quantile(0.5)), time.Duration(h.Max()))
	require.EqualValues(t, 250_000, h.Max())
	require.EqualValues(t, 250_000, h.Mean())
}

func TestCheck18NothingClippedWithoutBeingCounted(t *testing.T) {
	h := hist.New()
	h.Record(70e9)
	require.Zero(t, h.Clamped())
	within(t, 70e9, h.Quantile(1))
	h.Record(hist.Highest)
	require.Zero(t, h.Clamped(), "the end of the range is in the range")
	h.Record(hist.Highest + 1)
	h.Record(math.MaxInt64)
	require.EqualValues(t, 2, h.Clamped())
	require.EqualValues(t, 4, h.Count())
	require.EqualValues(t, int64(math.MaxInt64), h.Max())
	within(t, hist.Highest, h.Quantile(1))
	require.EqualValues(t, 2, h.CountAbove(hist.Highest))
	require.EqualValues(t, 3, h.CountAbove(ms(100_000)))
}

// TestMemoryIsFlat is the histogram's part of check 20.
func TestMemoryIsFlat(t *testing.T) {
	h := hist.New()
	values := latencies(1 << 16)
	fill := func(n int) uint64 {
		for i := range n {
			h.Record(values[i&(len(values)-1)])
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	million := fill(1_000_000)
	tenMillion := fill(9_000_000)
	require.EqualValues(t, 10_000_000, h.Count())
	require.Less(t, float64(tenMillion), float64(million)+64<<10)
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Record(values[7]); h.RecordN(values[9], 3) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Reset(); h.Record(values[7]) }), "Reset keeps the pages")
}

func TestWindowsStaySmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	windows := make([]*hist.Histogram, 1000)
	values := latencies(1000)
	for i := range windows {
		windows[i] = hist.New()
		for _, v := range values {
			windows[i].Record(v)
		}
	}
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(windows)
	require.Less(t, (after.HeapAlloc-before.HeapAlloc)/1000, uint64(48<<10), "a dense histogram takes 152 KB")
}

// latencies are log-normal around 3 ms.
func latencies(n int) []int64 {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(math.Exp(r.NormFloat64()*0.6+1.1) * 1e6)
	}
	return values
}

func TestEmpty(t *testing.T) {
	h := hist.New()
	h.Merge(nil)
	h.Merge(hist.New())
	h.RecordN(5, 0)
	h.RecordN(5, -3)
	for name, v := range map[string]int64{"count": h.Count(), "min": h.Min(), "max": h.Max(), "p99": h.Quantile(0.99), "above": h.CountAbove(-5)} {
		require.Zero(t, v, name)
	}
	require.Zero(t, h.Mean())
	for range h.Buckets() {
		t.Fatal("an empty histogram has no buckets")
	}
	require.Zero(t, hist.Import(nil).Count())
}

func TestSumDoesNotOverflow(t *testing.T) {
	h := hist.New()
	h.RecordN(100e9, 1_000_000_000)
	require.InEpsilon(t, 100e9, h.Mean(), 1e-12)
	h.RecordN(-100e9, 1_000_000_000)
	require.Zero(t, h.Mean())
	h.RecordN(-100e9, 1_000_000_000)
	require.InEpsilon(t, -100e9/3.0, h.Mean(), 1e-12)
}

// value draws over the whole range, with its ends and what is outside it.
func value() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(0, hist.Highest),
		rapid.Int64Range(0, 5_000_000),
		rapid.Map(rapid.IntRange(0, 36), func(b int) int64 { return 1 << b }),
		rapid.Map(rapid.IntRange(1, 36), func(b int) int64 { return 1<<b - 1 }),
		rapid.SampledFrom([]int64{0, 1, 511, 512, 999, 1000, 1023, 1024, 1048575, 1048576, hist.Highest - 1, hist.Highest}),
	)
}

func TestAgreesWithHdrHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, theirs := hist.New(), hdrhistogram.New(hist.Lowest, hist.Highest, hist.Digits)
		for _, v := range rapid.SliceOfN(value(), 1, 300).Draw(t, "values") {
			n := rapid.Int64Range(1, 1000).Draw(t, "n")
			h.RecordN(v, n)
			require.NoError(t, theirs.RecordValues(v, n))
		}
		exported := h.Export()
		require.True(t, theirs.Equals(exported), "the same counts in the same buckets")
		for _, q := range append(rapid.SliceOfN(rapid.Float64Range(-0.1, 1.1), 1, 20).Draw(t, "q"), 0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1) {
			require.Equal(t, exported.ValueAtQuantile(q*100), h.Quantile(q), "quantile %v", q)
		}
		back := hist.Import(exported)
		require.True(t, exported.Equals(back.Export()))
		require.Equal(t, exported.Max(), back.Max())
		require.Equal(t, exported.Min(), back.Min())
		require.InEpsilon(t, exported.Mean()+1, back.Mean()+1, 1e-9)
	})
}

func TestMergeIsExact(t *testing.T) {
	anything := rapid.OneOf(value(), rapid.Int64())
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(anything, 0, 300).Draw(t, "values")
		parts := []*hist.Histogram{hist.New(), hist.New(), hist.New()}
		whole := hist.New()
		for _, v := range values {
			whole.Record(v)
			parts[rapid.IntRange(0, 2).Draw(t, "part")].Record(v)
		}
		merged := hist.New()
		for _, i := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "order") {
			merged.Merge(parts[i])
		}
		requireSame(t, whole, merged)
		clone := merged.Clone()
		merged.Reset()
		require.Zero(t, merged.Count())
		requireSame(t, whole, clone)
		for _, v := range values {
			merged.Record(v)
		}
		requireSame(t, whole, merged)
		if len(values) > 0 {
			require.Equal(t, slices.Min(values), merged.Min())
			require.Equal(t, slices.Max(values), merged.Max())
		}
	})
}

func requireSame(t require.TestingT, want, got *hist.Histogram) {
	require.Equal(t, want.Count(), got.Count())
	require.Equal(t, want.Clamped(), got.Clamped())
	require.Equal(t, want.Negative(), got.Negative())
	require.Equal(t, want.Min(), got.Min())
	require.Equal(t, want.Max(), got.Max())
	require.Equal(t, want.Mean(), got.Mean())
	require.True(t, want.Export().Equals(got.Export()))
}

func TestCountAboveAndBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(value(), 1, 100).Draw(t, "values")
		h := hist.New()
		for _, v := range values {
			h.Record(v)
		}
		limit := value().Draw(t, "limit")
		var above, surely int64
		for _, v := range values {
			if v > limit {
				above++
			}
			if float64(v) > float64(limit)*1.001+1024 {
				surely++
			}
		}
		require.LessOrEqual(t, h.CountAbove(limit), above)
		require.GreaterOrEqual(t, h.CountAbove(limit), surely)
		var total, last int64 = 0, -1
		for v, n := range h.Buckets() {
			require.Greater(t, v, last)
			require.Positive(t, n)
			last, total = v, total+n
		}
		require.Equal(t, h.Count(), total)
	})
}

func TestImportOfAnotherLayout(t *testing.T) {
	theirs := hdrhistogram.New(1, 3_600_000_000_000, 2)
	for _, v := range []int64{300, ms(1), ms(20), 3_000_000_000_000} {
		require.NoError(t, theirs.RecordValue(v))
	}
	h := hist.Import(theirs)
	require.EqualValues(t, 4, h.Count())
	require.EqualValues(t, 1, h.Clamped())
	require.InEpsilon(t, float64(ms(1)), float64(h.Quantile(0.5)), 0.02)
}

func BenchmarkRecord(b *testing.B) {
	values := latencies(1 << 12)
	b.Run("kbench", func(b *testing.B) {
		h := hist.New()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			h.Record(values[i&(1<<12-1)])
		}
	})
	b.Run("hdrhistogram-go", func(b *testing.B) {
		h := hdrhistogram.New(hist.Lowest, hist.Highest, hist.Digits)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := h.RecordValue(values[i&(1<<12-1)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	window, total := hist.New(), hist.New()
	for _, v := range latencies(10_000) {
		window.Record(v)
	}
	b.ReportAllocs()
	for b.Loop() {
		total.Merge(window)
	}
}
