package report

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

func runWith(rate float64, p99 int64, valid bool) results.Run {
	r := results.Run{Loop: "open", Rates: results.Rates{MessagesPerSecond: rate}, Verdict: results.Verdict{Valid: valid},
		Counts: results.Counts{Attempted: 100, Acked: 100}, Series: map[string]results.Series{results.SeriesResponse: {Count: 100, P99Ns: p99}}}
	if !valid {
		r.Verdict.Reasons = []string{"too slow"}
	}
	return r
}

func TestPointFigures(t *testing.T) {
	for _, test := range []struct {
		about   string
		runs    []results.Run
		p99     spread
		verdict string
		reasons []string
	}{
		{"one run is its own median", []results.Run{runWith(10, 5, true)}, spread{5, 5, 5, 1}, "valid", nil},
		{"an even number of runs has the middle of two", []results.Run{runWith(10, 4, true), runWith(10, 8, true)}, spread{6, 4, 8, 2}, "valid", nil},
		{"an invalid run is not in the median, but is told of", []results.Run{runWith(10, 4, true), runWith(10, 900, false), runWith(10, 6, true)}, spread{5, 4, 6, 2}, "1 of 3 INVALID", []string{"run 1: too slow"}},
		{"with no valid run all are shown, marked", []results.Run{runWith(10, 4, false), runWith(10, 8, false)}, spread{6, 4, 8, 2}, "INVALID", []string{"run 1: too slow"}},
		{"no run has no figures", nil, spread{}, "not run", nil},
	} {
		t.Run(test.about, func(t *testing.T) {
			p := newPoint(0, &source{}, &results.Point{ID: "p00", Runs: test.runs})
			require.Equal(t, test.p99, p.p99)
			require.Equal(t, test.verdict, p.verdict())
			require.Len(t, p.reasons(), len(test.reasons))
		})
	}
}

func TestReasonsNameTheRuns(t *testing.T) {
	runs := []results.Run{runWith(1, 1, false), runWith(1, 1, true), runWith(1, 1, false)}
	for i := range runs {
		runs[i].Repeat = i
	}
	p := newPoint(0, &source{}, &results.Point{Runs: runs})
	require.Equal(t, []string{"runs 1, 3: too slow"}, p.reasons())
	runs[0].Verdict.Reasons = nil
	require.Contains(t, p.reasons(), "run 1: no reason was recorded", "an invalid run never goes without a line")
}

func TestHeadline(t *testing.T) {
	some := results.Series{Count: 1}
	for _, test := range []struct {
		about, loop string
		series      []string
		want        string
	}{
		{"open loop", "open", []string{results.SeriesService, results.SeriesResponse}, results.SeriesResponse},
		{"closed loop", "closed", []string{results.SeriesService, results.SeriesE2E}, results.SeriesService},
		{"closed loop never leads with a response", "closed", []string{results.SeriesResponse, results.SeriesService}, results.SeriesService},
		{"only consumers", "closed", []string{results.SeriesE2E, results.SeriesFetch}, results.SeriesE2E},
		{"nothing measured", "open", nil, ""},
	} {
		run := results.Run{Loop: test.loop, Series: map[string]results.Series{}}
		for _, name := range test.series {
			run.Series[name] = some
		}
		require.Equal(t, test.want, headline(&run), test.about)
	}
}

func TestFrontier(t *testing.T) {
	var points []*point
	for i, v := range []struct {
		rate  float64
		p99   int64
		valid bool
	}{{100, 10, true}, {200, 5, true}, {300, 50, true}, {250, 60, true}, {400, 20, false}} {
		points = append(points, newPoint(i, &source{}, &results.Point{Runs: []results.Run{runWith(v.rate, v.p99, v.valid)}}))
	}
	require.Equal(t, []place{{200, 5}, {300, 50}}, frontier(points), "beaten and invalid points are not on it")
}

func TestCurve(t *testing.T) {
	h := hist.New()
	h.RecordN(1e6, 9_900)
	h.RecordN(100e6, 100)
	curve := curveOf(h, 50)
	require.InEpsilon(t, 1e6, valueAt(curve, 1), 0.002, "p90")
	require.InEpsilon(t, 100e6, valueAt(curve, 3), 0.002, "p99.9")
	require.True(t, math.IsNaN(valueAt(curve, 5)), "10 000 messages have no p99.999")
	require.InDelta(t, 4, curve[len(curve)-1].at, 1e-9)
	require.Nil(t, curveOf(hist.New(), 50))
	one := hist.New()
	one.Record(5e6)
	require.Len(t, curveOf(one, 50), 1, "a single message is a single level")
	known := curveFrom(results.Series{Count: 1000, MinNs: 1, P50Ns: 2, P90Ns: 3, P99Ns: 4, P999Ns: 5, P9999Ns: 6})
	require.Equal(t, 5.0, known[len(known)-1].ns, "nor does a thousand have a p99.99")
}

func TestThinKeepsSpikes(t *testing.T) {
	var all []moment
	for i := range 100 {
		m := moment{at: float64(i), length: 1, rate: 10, p50: 1, p99: 2, max: 3, lag: math.NaN(), lateness: 1}
		if i == 57 {
			m.p99, m.max, m.rate = 900, 1000, 0
		}
		all = append(all, m)
	}
	moments, each := thin(all, 10)
	require.Equal(t, 10, each)
	require.Len(t, moments, 10)
	require.Equal(t, 1000.0, moments[5].max)
	require.Equal(t, 900.0, moments[5].p99)
	require.Equal(t, 1.0, moments[5].p50)
	require.InDelta(t, 9.0, moments[5].rate, 1e-9, "the mean rate, so that messages add up")
	require.True(t, math.IsNaN(moments[5].lag), "what is not known stays so")
	same, each := thin(all, 100)
	require.Equal(t, 1, each)
	require.Len(t, same, 100)
}

func TestLooksDiffer(t *testing.T) {
	seen := map[look]int{}
	for i := range 64 {
		l := lookOf(i)
		l.dash = 0
		other, twice := seen[l]
		require.False(t, twice, "points %d and %d have the same hue and shape", i, other)
		seen[l] = i
	}
	for i := range shapes {
		require.NotEmpty(t, outline(shapes[i], 5))
		require.False(t, slices.Contains(shapes[:i], shapes[i]))
	}
}

func TestPathBreaks(t *testing.T) {
	gap := math.NaN()
	require.Equal(t, "M0 1l2 0 1 4", pathOf([]place{{0, 1}, {1, 1}, {2, 1}, {3, 5}}), "places on a straight are left out")
	require.Equal(t, "M0 1l1 1M3 4l1 1", pathOf([]place{{0, 1}, {1, 2}, {2, gap}, {3, 4}, {4, 5}}), "windows without messages break the line")
	require.Equal(t, "M1.3 2l.4-.3-.2 .5 10-10.5", pathOf([]place{{1.32, 2}, {1.7, 1.7}, {1.5, 2.2}, {11.5, -8.3}}), "steps from rounded places add up no errors")
	require.Equal(t, "M1 2h0", pathOf([]place{{0, gap}, {1, 2}, {2, gap}}), "one alone is a dot")
}
