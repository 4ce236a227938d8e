package gate_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/report/gate"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// made is a run whose p50, in milliseconds, decides the other latencies.
func made(repeat int, p50 float64) *results.Run {
	s := results.Series{Count: 10_000, P50Ns: int64(p50 * 1e6), P99Ns: int64(4 * p50 * 1e6), P999Ns: int64(9 * p50 * 1e6), MaxNs: int64(12 * p50 * 1e6)}
	return &results.Run{
		Repeat: repeat, Loop: "open", Verdict: results.Verdict{Valid: true},
		Counts:     results.Counts{Attempted: 10_000, Acked: 10_000, Received: 10_000},
		Rates:      results.Rates{MessagesPerSecond: 1000, TargetMessagesPerSecond: 1000, BytesPerSecond: 1e5},
		Series:     map[string]results.Series{results.SeriesResponse: s},
		Generator:  results.Generator{CPUNsPerMessage: 2000},
		Thresholds: []results.Threshold{{Expression: "lost=0", Value: "0", Held: true}},
	}
}

// stored is a result of runs with noise of the given spread around p50.
func stored(name string, runs int, p50, spread float64, seed uint64) compare.Named {
	r := rand.New(rand.NewPCG(seed, 5))
	out := &results.Result{
		Workload: results.Workload{Name: "steady", Hash: "h1", Effective: json.RawMessage(`{}`)},
		Points:   []results.Point{{ID: "p00", Label: "steady", Settings: map[string]any{}}},
	}
	for i := range runs {
		out.Points[0].Runs = append(out.Points[0].Runs, *made(i, p50*math.Exp(spread*r.NormFloat64())))
	}
	return compare.Named{Name: name, Result: out}
}

func threshold(t *testing.T, expression string) workloads.Threshold {
	t.Helper()
	parsed, err := workloads.ParseThreshold(expression)
	require.NoError(t, err)
	return parsed
}

// drive feeds pairs until the gate is decided.
func drive(t *testing.T, p *gate.Pairs, worse, noise float64) (pairs int) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 5))
	for i := range 30 {
		drift := 1 + 0.5*math.Sin(float64(i)/4)
		a, b := made(i, 10*drift*math.Exp(noise*r.NormFloat64())), made(i, 10*worse*drift*math.Exp(noise*r.NormFloat64()))
		decided, err := p.Add(a, b)
		require.NoError(t, err)
		if decided {
			return i + 1
		}
	}
	require.Fail(t, "never decided")
	return 0
}

func TestPairs(t *testing.T) {
	for _, c := range []struct {
		about        string
		worse, noise float64
		want         gate.Verdict
		pairs        int
	}{
		{"nothing changed: passes at the first look, whatever drifts", 1, 0.01, gate.Pass, 8},
		{"a fifth slower fails at the first look", 1.2, 0.01, gate.Fail, 8},
		{"faster passes", 0.7, 0.01, gate.Pass, 8},
		{"too noisy: inconclusive after the last look", 1.02, 0.4, gate.Inconclusive, 20},
	} {
		t.Run(c.about, func(t *testing.T) {
			var p gate.Pairs
			require.Equal(t, c.pairs, drive(t, &p, c.worse, c.noise))
			d := p.Decide()
			require.Equal(t, c.want, d.Verdict)
			require.Equal(t, c.pairs, d.Pairs)
			require.Len(t, d.Metrics, 4)
			m := d.Metrics[1]
			require.Equal(t, "response.p50", m.Name)
			require.InDelta(t, c.worse, *m.Worse, 0.02+c.noise)
			require.Equal(t, []float64{1.05, 1.1}, []float64{m.FailsAbove, m.PassesBelow})
			require.InDelta(t, 1.2, d.Metrics[2].PassesBelow, 1e-9, "tails")
			if c.want == gate.Inconclusive {
				require.NotEmpty(t, m.Why)
				require.Greater(t, *m.Seen, 1.1)
			}
			_, err := json.Marshal(d)
			require.NoError(t, err)
		})
	}
}

func TestPairsConditions(t *testing.T) {
	for _, c := range []struct {
		about, expression string
		want              gate.Verdict
	}{
		{"held", "response.p99<100ms", gate.Pass},
		{"broken in the middle of the runs", "response.p99<30ms", gate.Fail},
		{"not measured is no pass", "e2e.p99<1s", gate.Fail},
	} {
		t.Run(c.about, func(t *testing.T) {
			p := gate.Pairs{Thresholds: []workloads.Threshold{threshold(t, c.expression)}}
			drive(t, &p, 1, 0.01)
			require.Equal(t, c.want, p.Decide().Verdict)
		})
	}
	var p gate.Pairs
	for i := range 8 {
		b := made(i, 10)
		if i == 5 {
			b.Thresholds = []results.Threshold{{Expression: "lost=0", Value: "3"}}
		}
		_, err := p.Add(made(i, 10), b)
		require.NoError(t, err)
	}
	d := p.Decide()
	require.Equal(t, gate.Fail, d.Verdict, "a condition of the runs themselves")
	require.Equal(t, "3 (run 6)", d.Thresholds[0].Value)
}

func TestPairsBrokenOff(t *testing.T) {
	var p gate.Pairs
	require.Equal(t, gate.Inconclusive, p.Decide().Verdict)
	_, err := p.Add(made(0, 10), made(0, 30))
	require.NoError(t, err)
	require.Equal(t, 8, p.Standing().Next)
	d := p.Decide()
	require.Equal(t, gate.Inconclusive, d.Verdict)
	require.Nil(t, d.Metrics[1].Seen)
	require.InDelta(t, 3, *d.Metrics[1].Worse, 0.01)
}

func TestPairsNothingToJudge(t *testing.T) {
	var p gate.Pairs
	_, err := p.Add(made(0, 10), &results.Run{Loop: "open"})
	require.NoError(t, err, "throughput is there")
	var q gate.Pairs
	zero := made(0, 10)
	zero.Rates.MessagesPerSecond = 0
	for i := range 20 {
		_, err := q.Add(made(i, 10), zero)
		require.NoError(t, err)
	}
	d := q.Decide()
	require.Equal(t, gate.Inconclusive, d.Verdict, "no ratio to a throughput of 0")
	require.Contains(t, d.Metrics[0].Why, "figure of 0")
}

func TestStored(t *testing.T) {
	for _, c := range []struct {
		about     string
		base, new compare.Named
		want      gate.Verdict
		why       string
	}{
		{"the same again", stored("a", 8, 10, 0.02, 1), stored("b", 8, 10, 0.02, 2), gate.Pass, ""},
		{"30 % slower", stored("a", 8, 10, 0.02, 1), stored("b", 8, 13, 0.02, 2), gate.Fail, ""},
		{"8 % slower is within what lies between two days", stored("a", 8, 10, 0.01, 1), stored("b", 8, 10.8, 0.01, 2), gate.Pass, ""},
		{"one run a side", stored("a", 1, 10, 0, 1), stored("b", 1, 30, 0, 2), gate.Inconclusive, "one run a side"},
		{"four a side are too few for four metrics", stored("a", 4, 10, 0.01, 1), stored("b", 4, 20, 0.01, 2), gate.Inconclusive, "too few"},
		{"twice as slow, but so do the base's own runs differ", stored("a", 12, 10, 0.4, 1), stored("b", 12, 20, 0.4, 2), gate.Inconclusive, "base's own runs"},
	} {
		t.Run(c.about, func(t *testing.T) {
			d, err := gate.Stored(c.base, c.new, gate.StoredOptions{})
			require.NoError(t, err)
			require.Equal(t, c.want, d.Verdict, "%+v", d.Metrics)
			require.Contains(t, d.Metrics[1].Why, c.why)
			require.GreaterOrEqual(t, d.Metrics[1].FailsAbove, 1.1)
			require.InDelta(t, 1.2, d.Metrics[1].PassesBelow, 1e-9)
		})
	}
}

// TestStoredErrorRates: two results without any difference but noise hardly ever fail, and a
// difference far above the limits is found.
func TestStoredErrorRates(t *testing.T) {
	const gates = 300
	same, slower := 0, 0
	for seed := range uint64(gates) {
		base := stored("a", 10, 10, 0.05, 2*seed)
		for _, c := range []struct {
			p50   float64
			count *int
		}{{10, &same}, {14, &slower}} {
			d, err := gate.Stored(base, stored("b", 10, c.p50, 0.05, 2*seed+1), gate.StoredOptions{})
			require.NoError(t, err)
			if d.Verdict == gate.Fail {
				*c.count++
			}
		}
	}
	t.Logf("FAIL: %d of %d without a change, %d of %d at +40 %%", same, gates, slower, gates)
	require.LessOrEqual(t, same, gates/50)
	require.GreaterOrEqual(t, slower, gates*95/100)
}

func TestStoredRefusesUnlike(t *testing.T) {
	base, other := stored("a", 8, 10, 0.01, 1), stored("b", 8, 10, 0.01, 2)
	other.Result.Provenance.Host.Hostname = "elsewhere"
	_, err := gate.Stored(base, other, gate.StoredOptions{})
	var unlike *gate.UnlikeError
	require.ErrorAs(t, err, &unlike)
	require.ErrorContains(t, err, "host: none, then elsewhere")
	require.ErrorContains(t, err, "--force")
	d, err := gate.Stored(base, other, gate.StoredOptions{Force: true})
	require.NoError(t, err)
	require.Equal(t, gate.Pass, d.Verdict)
	require.Len(t, d.Forced, 1, "and it is said")
	other = stored("b", 8, 10, 0.01, 2)
	other.Result.Provenance.KbenchVersion = "v2"
	_, err = gate.Stored(base, other, gate.StoredOptions{})
	require.NoError(t, err, "another kbench is no other work")
}

func TestStoredInvalidRuns(t *testing.T) {
	for _, c := range []struct {
		bad  int
		want gate.Verdict
	}{{0, gate.Pass}, {2, gate.Pass}, {3, gate.Invalid}, {8, gate.Invalid}} {
		base, other := stored("a", 8, 10, 0.01, 1), stored("b", 8, 10, 0.01, 2)
		for i := range c.bad {
			run := &other.Result.Points[0].Runs[i]
			run.Verdict = results.Verdict{Reasons: []string{"the generator paused"}}
			run.Series = map[string]results.Series{results.SeriesResponse: {Count: 9, P50Ns: 9e9, P99Ns: 9e9}}
		}
		d, err := gate.Stored(base, other, gate.StoredOptions{})
		require.NoError(t, err)
		require.Equal(t, c.want, d.Verdict, "%d of 8", c.bad)
		require.Equal(t, c.bad > 0, len(d.Invalid) > 0)
		if c.bad > 0 {
			require.Contains(t, d.Invalid[0], "the generator paused")
		}
	}
}

func TestStoredPointsWithoutCounterpart(t *testing.T) {
	base, other := stored("a", 8, 10, 0.01, 1), stored("b", 8, 10, 0.01, 2)
	base.Result.Points[0].Settings = map[string]any{"acks": "1"}
	other.Result.Points[0].Settings = map[string]any{"acks": "1"}
	extra := other.Result.Points[0]
	extra.Settings, extra.Label = map[string]any{"acks": "all"}, "acks=all"
	other.Result.Points = append(other.Result.Points, extra)
	d, err := gate.Stored(base, other, gate.StoredOptions{})
	require.NoError(t, err)
	require.Equal(t, gate.Inconclusive, d.Verdict)
	require.Contains(t, d.Notes[0], "acks=all was not run in a")
}

func TestThresholdsAlone(t *testing.T) {
	one := stored("b", 5, 10, 0, 1)
	one.Result.Points[0].Runs[1].Counts.Failed = 100
	one.Result.Points[0].Runs[2].Series[results.SeriesResponse] = results.Series{Count: 1, P99Ns: 9e9}
	for _, c := range []struct {
		expression string
		held       bool
		value      string
	}{
		{"response.p99<41ms", true, "40 ms (median of 5 runs)"}, // one outlier does not decide
		{"response.p99<39ms", false, "40 ms (median of 5 runs)"},
		{"errors=0", false, "100 (the most of 5 runs)"}, // one run does
		{"errors<0.5%", false, "1 % (the most of 5 runs)"},
		{"errors<2%", true, "1 % (the most of 5 runs)"},
		{"lost=0", true, "0 (the most of 5 runs)"},
		{"rate>=99%", true, "100 % (median of 5 runs)"},
		{"rate>=2k/s", false, "1000/s (median of 5 runs)"},
		{"throughput>=99kB/s", true, "100 kB/s (median of 5 runs)"},
		{"generator.cpuNsPerMessage<=2000", true, "2000 (median of 5 runs)"},
		{"lag.growth<1%", false, "not measured"},
		{"lag.max<10", false, "not measured"},
		{"e2e.p50<1s", false, "not measured"},
	} {
		t.Run(c.expression, func(t *testing.T) {
			d := gate.Thresholds(one, []workloads.Threshold{threshold(t, c.expression)})
			require.Len(t, d.Thresholds, 2, "and that of the runs")
			got := d.Thresholds[1]
			require.Equal(t, c.held, got.Held)
			require.Equal(t, c.value, got.Value)
			require.Equal(t, map[bool]gate.Verdict{true: gate.Pass, false: gate.Fail}[c.held], d.Verdict)
		})
	}
	none := stored("b", 1, 10, 0, 1)
	none.Result.Points[0].Runs[0].Thresholds = nil
	require.Equal(t, gate.Inconclusive, gate.Thresholds(none, nil).Verdict)
}

func TestThresholdsOnConsumption(t *testing.T) {
	run, growth := made(0, 10), 7.5
	run.Consumption = &results.Consumption{Lag: &results.Lag{MaxMessages: 70, FinalMessages: 3, GrowthPerSecond: &growth}, CatchUp: &results.CatchUp{Reached: true, TookNs: 2e9, MessagesPerSecond: 500},
		Groups: []results.Group{{Rebalances: 2}, {Rebalances: 1}}}
	for expression, held := range map[string]bool{
		"lag.max<71": true, "lag.max<70": false, "lag.final<=3": true, "catchUp.time<3s": true, "catchUp.time<2s": false,
		"catchUp.rate>=50%": true, "catchUp.rate>501/s": false, "rebalances=3": true,
		"lag.growth<=7.5/s": true, "lag.growth<7/s": false, "lost=0": true,
	} {
		require.Equal(t, held, gate.Evaluate(threshold(t, expression), []*results.Run{run}).Held, expression)
	}
	require.False(t, gate.Evaluate(threshold(t, "lost=0"), nil).Held, "no run, no pass")
	run.Counts.NotReceived = 1
	require.False(t, gate.Evaluate(threshold(t, "lost=0"), []*results.Run{run}).Held, "it may be lost")
}
