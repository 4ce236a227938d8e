package report

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDuration(t *testing.T) {
	for _, test := range []struct {
		about string
		ns    float64
		want  string
	}{
		{"nothing", 0, "0"},
		{"below a microsecond, whole nanoseconds", 38, "38 ns"},
		{"250 µs is neither 0 nor 1 ms", 250_000, "250 µs"},
		{"three significant digits", 1_234_567, "1.23 ms"},
		{"zeros that are significant stay", 1_500_000, "1.50 ms"},
		{"rounding that carries to the next unit", 999_900, "1.00 ms"},
		{"rounding that carries within a unit", 9_996_000, "10.0 ms"},
		{"seconds", 12_340_000_000, "12.3 s"},
		{"seconds have no larger unit", 1_234e9, "1234 s"},
		{"clocks that disagree", -1_200_000, "-1.20 ms"},
	} {
		require.Equal(t, test.want, duration(test.ns), test.about)
	}
}

func TestFiguresAsText(t *testing.T) {
	for _, test := range []struct{ about, got, want string }{
		{"small whole rates are exact", quantity(9998), "9,998"},
		{"four digits from ten thousand on", quantity(12_345), "12.35k"},
		{"millions", quantity(1_234_567), "1.235M"},
		{"rounding carries to the next unit", quantity(999_990), "1.000M"},
		{"rates below a thousand keep a digit", quantity(760.25), "760.2"},
		{"and carry into whole thousands", quantity(999.97), "1,000"},
		{"groups of three", count(1_234_567), "1,234,567"},
		{"negative counts", count(-1234), "-1,234"},
		{"short counts", count(999), "999"},
		{"a share short of all is never 100 %", share(0.999999), "99.99 %"},
		{"all is 100 %", share(1), "100.00 %"},
		{"more than all", share(1.25), "125.00 %"},
		{"a share above none is never 0", share(0.00001), "<0.01 %"},
		{"none is none", share(0), "0.00 %"},
		{"no errors is a plain 0", errorShare(0), "0"},
		{"memory is in powers of two", memory(84 << 20), "84.0 MiB"},
		{"bytes are in powers of ten", bytesOf(65_000), "65.0 kB"},
		{"ticks have no idle zeros", shortDuration(10e6), "10 ms"},
		{"but keep others", shortDuration(100e6), "100 ms"},
		{"a tick at zero", short(0), "0"},
		{"one and several", plural(1, "run") + plural(2, "run"), "1 run2 runs"},
	} {
		require.Equal(t, test.want, test.got, test.about)
	}
	mb, mib := perSecond(10.24e6)
	require.Equal(t, "10.2 MB/s 9.77 MiB/s", mb+" "+mib)
}

// A duration reads back as what it was, to half a unit of its third digit.
func TestDurationReadsBack(t *testing.T) {
	units := map[string]float64{"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Float64Range(1e3, 120e9).Draw(t, "ns")
		number, name, ok := strings.Cut(duration(ns), " ")
		require.True(t, ok)
		require.LessOrEqual(t, len(strings.Replace(number, ".", "", 1)), 3)
		value, err := strconv.ParseFloat(number, 64)
		require.NoError(t, err)
		require.InEpsilon(t, ns, value*units[name], 0.0051)
	})
}

// Whatever an axis is made from, what is placed on it is on it.
func TestAxesHoldEverything(t *testing.T) {
	odd := rapid.OneOf(rapid.Float64(), rapid.Float64Range(1e3, 120e9), rapid.SampledFrom([]float64{0, -1, 1, math.NaN(), math.Inf(1), math.Inf(-1), 1e-300, 1e300}))
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(odd, 0, 6).Draw(t, "values")
		for name, make := range map[string]func([]float64, float64, float64) axis{"linear": linearAxis, "span": spanAxis, "log": logAxis} {
			a := make(values, 300, 20)
			for _, v := range append(values, 0) {
				at := a.at(v)
				require.True(t, at >= 20 && at <= 300, "%s: %v is placed at %v on %+v", name, v, at, a)
			}
			require.LessOrEqual(t, len(a.ticks(6, short)), 40, "%s %+v", name, a)
		}
	})
}

func TestAxisOrderAndTicks(t *testing.T) {
	a := logAxis([]float64{100e3, 900e6}, 0, 100)
	require.Less(t, a.at(1e6), a.at(2e6))
	require.Equal(t, a.from, a.at(0), "zero has no logarithm and stands at the low end")
	var labels []string
	for _, tick := range a.ticks(6, shortDuration) {
		labels = append(labels, tick.label)
	}
	require.Equal(t, []string{"100 µs", "1 ms", "10 ms", "100 ms", "1 s"}, labels)
	require.Equal(t, 0.0, linearAxis([]float64{760, 1220}, 0, 1).lo)
	require.Greater(t, spanAxis([]float64{760, 1220}, 0, 1).lo, 0.0, "no half-empty plot")
	require.Equal(t, 0.0, spanAxis([]float64{60, 1220}, 0, 1).lo)
}
