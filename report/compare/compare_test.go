package compare_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/results"
)

// made is a run of an open loop with the given p50 in milliseconds.
func made(repeat int, p50 float64) results.Run {
	s := results.Series{Count: 10_000, P50Ns: int64(p50 * 1e6), P99Ns: int64(4 * p50 * 1e6), P999Ns: int64(9 * p50 * 1e6)}
	return results.Run{
		Repeat: repeat, Loop: "open", Verdict: results.Verdict{Valid: true},
		Counts:      results.Counts{Attempted: 10_000, Acked: 10_000, Received: 10_000},
		Rates:       results.Rates{MessagesPerSecond: 1000, TargetMessagesPerSecond: 1000, ReceivedPerSecond: 1000},
		Series:      map[string]results.Series{results.SeriesResponse: s, results.SeriesService: s},
		Generator:   results.Generator{CPUNsPerMessage: 2000},
		Consumption: &results.Consumption{Lag: &results.Lag{MaxMessages: 40}},
	}
}

// result has one point with a run for each p50.
func result(p50s ...float64) *results.Result {
	r := &results.Result{
		Workload: results.Workload{Name: "steady", Hash: "h1", Effective: json.RawMessage(`{"name":"steady","payload.size":100,"client":{"producer.requiredAcks":"all"}}`)},
		Provenance: results.Provenance{KbenchVersion: "v1", Host: results.Host{Hostname: "load-1", CPUs: 8, CPUModel: "EPYC"},
			Cluster: results.Cluster{ClusterID: "c1", Brokers: []results.Broker{{ID: 1}}}},
		Points: []results.Point{{ID: "p00", Label: "steady", Settings: map[string]any{}}},
	}
	for i, p50 := range p50s {
		r.Points[0].Runs = append(r.Points[0].Runs, made(i, p50))
	}
	return r
}

func only(t *testing.T, base, other *results.Result, o compare.Options) compare.Against {
	t.Helper()
	c := compare.Compare(compare.Named{Name: "base", Result: base}, []compare.Named{{Name: "new", Result: other}}, o)
	require.Len(t, c.News, 1)
	return c.News[0]
}

func metric(t *testing.T, p compare.Point, name string) compare.Judged {
	t.Helper()
	for _, m := range p.Metrics {
		if m.Name == name {
			return m
		}
	}
	require.Fail(t, "no metric "+name)
	return compare.Judged{}
}

func TestCompareSays(t *testing.T) {
	calm := []float64{10, 10.1, 9.9, 10.05, 9.95}
	times := func(f float64, xs []float64) []float64 {
		out := make([]float64, len(xs))
		for i := range xs {
			out[i] = f * xs[i]
		}
		return out
	}
	for _, c := range []struct {
		about     string
		base, new []float64
		paired    bool
		want      compare.Verdict
		ratio     float64
		why       string
	}{
		{"the same again", calm, calm, false, compare.Alike, 1, ""},
		{"a fifth slower", calm, times(1.2, calm), false, compare.Worse, 1.2, ""},
		{"twice as fast", calm, times(0.5, calm), false, compare.Better, 0.5, ""},
		{"noisy: both are possible", []float64{8, 14, 9, 12}, []float64{13, 7, 12, 11}, false, compare.CannotTell, 0.964, "differ too much"},
		{"one run a side", calm[:1], times(2, calm[:1]), false, compare.CannotTell, 2, "one run a side"},
		{"three runs a side are too few", calm[:3], times(2, calm[:3]), false, compare.CannotTell, 2, "3 runs beside 3: an interval needs 4 a side"},
		{"a figure of 0", calm, times(0, calm), false, compare.CannotTell, math.NaN(), "figure of 0"},
		{"paired: drift is in both", []float64{10, 12, 14, 16, 18, 20}, []float64{10.8, 12.8, 15, 17.4, 19.3, 21.7}, true, compare.Worse, 1.078, ""},
		{"paired: too few", calm, calm, true, compare.CannotTell, 1, "5 pairs: an interval needs 6"},
	} {
		t.Run(c.about, func(t *testing.T) {
			got := only(t, result(c.base...), result(c.new...), compare.Options{Paired: c.paired})
			require.Empty(t, got.Unlike)
			m := metric(t, got.Points[0], "response.p50")
			require.Equal(t, c.want, m.Verdict, "%+v", m)
			require.Contains(t, m.Why, c.why)
			require.Equal(t, c.why == "", m.Why == "", m.Why)
			if math.IsNaN(c.ratio) {
				require.Nil(t, m.Ratio)
			} else {
				require.InDelta(t, c.ratio, *m.Ratio, 0.01)
			}
			_, err := json.Marshal(got)
			require.NoError(t, err, "infinities are left out")
		})
	}
}

func TestCompareHigherIsBetter(t *testing.T) {
	base, fast := result(10, 10, 10, 10, 10), result(10, 10, 10, 10, 10)
	for i := range fast.Points[0].Runs {
		base.Points[0].Runs[i].Rates.MessagesPerSecond = 1000 + float64(i)
		fast.Points[0].Runs[i].Rates.MessagesPerSecond = 1500 + float64(i)
	}
	m := metric(t, only(t, base, fast, compare.Options{}).Points[0], compare.Throughput)
	require.Equal(t, compare.Better, m.Verdict)
	require.InDelta(t, 1.5, *m.Ratio, 0.01, "new ÷ base, whichever is better")
	require.Less(t, *m.Lower, *m.Upper)
	m = metric(t, only(t, fast, base, compare.Options{}).Points[0], compare.Throughput)
	require.Equal(t, compare.Worse, m.Verdict)
}

func TestCompareCountsHaveNoRatio(t *testing.T) {
	got := only(t, result(10, 10), result(10, 10), compare.Options{})
	for _, name := range []string{"errors", "unknown", "lost", "lag.max", "lag.final"} {
		m := metric(t, got.Points[0], name)
		require.Nil(t, m.Ratio, name)
		require.Equal(t, compare.Unjudged, m.Verdict, name)
	}
	require.EqualValues(t, 40, metric(t, got.Points[0], "lag.max").New.Median)
}

func TestCompareInvalidRunsAreLeftOut(t *testing.T) {
	other := result(10, 10, 10, 10, 500)
	other.Points[0].Runs[4].Verdict = results.Verdict{Reasons: []string{"the generator paused"}}
	p := only(t, result(10, 10, 10, 10), other, compare.Options{}).Points[0]
	require.Equal(t, compare.Alike, metric(t, p, "response.p50").Verdict)
	require.Equal(t, []string{"new: 1 of 5 runs INVALID and left out: the generator paused"}, p.Notes)
	for i := range other.Points[0].Runs {
		other.Points[0].Runs[i].Verdict = results.Verdict{Reasons: []string{"too slow"}}
	}
	p = only(t, result(10, 10, 10, 10), other, compare.Options{}).Points[0]
	require.Contains(t, p.Notes[0], "all of 5 runs INVALID")
	m := metric(t, p, "response.p50")
	require.Equal(t, compare.CannotTell, m.Verdict)
	require.Contains(t, m.Why, "no run of the new side is valid")
}

func TestUnlikeNamesWorkAndPlace(t *testing.T) {
	for _, c := range []struct {
		about    string
		change   func(*results.Result)
		want     string
		decisive bool
	}{
		{"a key of the workload", func(r *results.Result) {
			r.Workload.Hash, r.Workload.Effective = "h2", json.RawMessage(`{"name":"other","payload.size":200,"client":{"producer.requiredAcks":"all"}}`)
		}, "payload.size: 100, then 200", true},
		{"a client setting that was at its default", func(r *results.Result) {
			r.Workload.Hash, r.Workload.Effective = "h2", json.RawMessage(`{"payload.size":100,"client":{"producer.requiredAcks":"all","net.maxOpenRequests":1}}`)
		}, "net.maxOpenRequests: the default, then 1", true},
		{"another hash is enough", func(r *results.Result) { r.Workload.Hash = "h2" }, "workload: h1, then h2", true},
		{"cluster", func(r *results.Result) { r.Provenance.Cluster.ClusterID = "c2" }, "cluster: c1, then c2", true},
		{"embedded", func(r *results.Result) { r.Provenance.Cluster.Embedded = true }, "cluster: c1, then embedded broker", true},
		{"brokers", func(r *results.Result) { r.Provenance.Cluster.Brokers = nil }, "brokers: 1, then 0", true},
		{"security", func(r *results.Result) { r.Provenance.Cluster.SecurityProtocol = "SSL" }, "security: none, then SSL", true},
		{"host", func(r *results.Result) { r.Provenance.Host.Hostname = "load-2" }, "host: load-1, then load-2", true},
		{"CPUs", func(r *results.Result) { r.Provenance.Host.CPUs = 4 }, "CPUs: 8, then 4", true},
		{"kbench", func(r *results.Result) { r.Provenance.KbenchVersion = "v2" }, "kbench: v1 , then v2 ", false},
	} {
		t.Run(c.about, func(t *testing.T) {
			other := result(10)
			c.change(other)
			got := compare.Unlike(result(10), other)
			require.Len(t, got, 1, "%v", got)
			require.Equal(t, c.want, got[0].String())
			require.Equal(t, c.decisive, got[0].Decisive)
		})
	}
	require.Empty(t, compare.Unlike(result(10), result(20)))
}

func TestUnlikeManyKeys(t *testing.T) {
	keys := map[string]any{}
	for i := range 40 {
		keys["producers.k"+string(rune('a'+i))] = i
	}
	encoded, err := json.Marshal(keys)
	require.NoError(t, err)
	other := result(10)
	other.Workload = results.Workload{Hash: "h2", Effective: encoded}
	got := compare.Unlike(result(10), other)
	require.Len(t, got, 13)
	require.Contains(t, got[12].Base, "keys more")
}

func TestAlignBySettings(t *testing.T) {
	with := func(ids ...string) *results.Result {
		r := result(10)
		r.Points = nil
		for _, id := range ids {
			r.Points = append(r.Points, results.Point{ID: "p" + id, Settings: map[string]any{"a": id, "b": map[string]any{"x": 1.0, "y": 2.0}}, Runs: []results.Run{made(0, 10)}})
		}
		return r
	}
	base, other := with("1", "2", "3"), with("3", "4", "2")
	other.Points = append(other.Points, results.Point{ID: "p9", Settings: map[string]any{"a": "1"}, Skipped: "makes no sense"})
	got := only(t, base, other, compare.Options{})
	require.Len(t, got.Points, 2)
	require.Equal(t, []string{"p1"}, got.OnlyBase)
	require.Equal(t, []string{"p4"}, got.OnlyNew)
	require.Equal(t, "p2", got.Points[0].NewID)
	got = only(t, with("1"), with("2"), compare.Options{})
	require.Len(t, got.Points, 1, "one point a side is meant to be compared")
	require.Contains(t, got.Points[0].Label, "→")
}

func TestGatedMetrics(t *testing.T) {
	names := func(r results.Run) (out []string) {
		for _, m := range compare.Gated(&r) {
			out = append(out, m.Name)
		}
		return out
	}
	require.Equal(t, []string{"throughput", "response.p50", "response.p99", "cpu"}, names(made(0, 10)))
	closed := made(0, 10)
	closed.Loop = "closed"
	require.Equal(t, []string{"throughput", "service.p50", "service.p99", "cpu"}, names(closed))
	reads := results.Run{Loop: "closed", Counts: results.Counts{Received: 10}, Series: map[string]results.Series{results.SeriesE2E: {Count: 10, P50Ns: 5, P99Ns: 9}}}
	require.Equal(t, []string{"throughput", "e2e.p50", "e2e.p99"}, names(reads))
}

func TestCompareTurnsRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		draw := func(n int) []float64 {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = 5 + r.Float64()*10
			}
			return xs
		}
		a, b := result(draw(rapid.IntRange(1, 8).Draw(t, "a"))...), result(draw(rapid.IntRange(1, 8).Draw(t, "b"))...)
		turn := func(x, y *results.Result) compare.Judged {
			return compare.Compare(compare.Named{Result: x}, []compare.Named{{Result: y}}, compare.Options{}).News[0].Points[0].Metrics[1]
		}
		there, back := turn(a, b), turn(b, a)
		require.InEpsilon(t, 1, *there.Ratio**back.Ratio, 1e-6)
		opposite := map[compare.Verdict]compare.Verdict{compare.Worse: compare.Better, compare.Better: compare.Worse, compare.Alike: compare.Alike, compare.CannotTell: compare.CannotTell}
		if there.Verdict != compare.Alike && back.Verdict != compare.Alike { // the margin is not the same both ways
			require.Equal(t, opposite[there.Verdict], back.Verdict)
		}
	})
}
