package synthetic_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// One stall of S seconds in T: the fraction of messages slower than x is (S−x)/((1−ρ)T), the
// mean S²/(2(1−ρ)T), quantile q S − (1−q)(1−ρ)T, each with the base latency on top.
func TestCheck01StallWithInfiniteCapacity(t *testing.T) {
	T := lengthOf(60*time.Second, 6*time.Second)
	S := T / 60
	const base = time.Millisecond
	out := measure(t, definition(10_000, T), synthetic.Script{Latency: base,
		Stalls: []synthetic.Stall{{Start: T / 3, Length: S}}})
	r := out.Run.Series[results.SeriesResponse]
	require.EqualValues(t, 10_000*T/time.Second, out.Run.Counts.Attempted, "the offered count stays")
	require.Equal(t, out.Run.Counts.Attempted, out.Run.Counts.Acked)
	near(t, base+S*S/(2*T), r.MeanNs, "mean")
	near(t, base+S-T/100, r.P99Ns, "p99")
	near(t, base+S-T/1000, r.P999Ns, "p99.9")
	near(t, base+S-T/10_000, r.P9999Ns, "p99.99")
	near(t, base, r.P50Ns, "p50 is the base")

	var above, p98 int64
	for _, w := range out.Windows {
		if h := w.Series[results.SeriesResponse]; h != nil {
			above += h.CountAbove(int64(base + S/2))
		}
	}
	require.InEpsilon(t, 10_000*(S/2).Seconds(), above, tolerance, "messages above half the stall")
	p98 = merged(out, results.SeriesResponse).Quantile(0.98)
	near(t, base, p98, "p98 is the base")
	require.Empty(t, out.Run.Verdict.Reasons)
}

func TestCheck02StallWithFiniteCapacity(t *testing.T) {
	T := lengthOf(60*time.Second, 6*time.Second)
	S := T / 60
	const base = time.Millisecond
	out := measure(t, definition(10_000, T), synthetic.Script{Latency: base, Capacity: 20_000, // ρ = 1/2
		Stalls: []synthetic.Stall{{Start: T / 3, Length: S}}})
	r := out.Run.Series[results.SeriesResponse]
	const served = base + time.Second/20_000
	near(t, served+S*S/T, r.MeanNs, "mean")
	near(t, served+S-T/200, r.P99Ns, "p99")
	near(t, served+S-T/2000, r.P999Ns, "p99.9")
}

// A client buffer of K messages: the schedule falls behind K/R after the stall begins, and the
// largest delay is S − K/R. Response, service and delay must tell these apart.
func TestCheck03StallWithClientBuffer(t *testing.T) {
	const R = 50_000
	T := lengthOf(60*time.Second, 3*time.Second)
	S := T / 60
	K := int(R * S.Seconds() / 5)
	const base = 2 * time.Microsecond
	d := definition(R, T)
	out := measure(t, d, synthetic.Script{Latency: base, Buffer: K, Stalls: []synthetic.Stall{{Start: T / 3, Length: S}}})
	series := out.Run.Series
	near(t, S-T/100, series[results.SeriesResponse].P99Ns, "response p99")
	require.InDelta(t, base, series[results.SeriesService].P99Ns, 512, "service p99 is the base")
	near(t, S-T/100-S/5, series[results.SeriesDelay].P99Ns, "delay p99")
	near(t, S-S/5, series[results.SeriesDelay].MaxNs, "the largest delay")
	require.EqualValues(t, R*T.Seconds(), out.Run.Counts.Acked)
}

// A client buffer of 1 MiB, ten thousand messages of some 105 bytes: the time that Send is blocked in
// is in the response.
func TestCheck23StallWithSmallClientBuffer(t *testing.T) {
	const R, capacity = 20_000, 750_000
	T := lengthOf(60*time.Second, 3*time.Second)
	S := T / 60
	out := measure(t, definition(R, T), synthetic.Script{Capacity: capacity, Buffer: int(10_000 * T / time.Minute),
		Stalls: []synthetic.Stall{{Start: T / 3, Length: S}}})
	series := out.Run.Series
	want := S - time.Duration(0.01*(1-float64(R)/capacity)*float64(T)) // 416 ms
	near(t, want, series[results.SeriesResponse].P99Ns, "response p99")
	require.Less(t, series[results.SeriesService].P99Ns, int64(S/50), "service p99 does not show the stall")
	near(t, S/2, series[results.SeriesDelay].MaxNs, "the buffer is full half-way, and the rest is delay")
	require.EqualValues(t, R*T.Seconds(), out.Run.Counts.Acked)
}

// With many producers each held in its own call, waiting for room is delay all the same.
func TestWaitingForRoomIsNotService(t *testing.T) {
	d := definition(1000, 10*time.Second)
	d.Producers.Count = 100
	out := measure(t, d, synthetic.Script{Latency: ms, Buffer: 10, Stalls: []synthetic.Stall{{Start: 3 * time.Second, Length: time.Second}}})
	require.EqualValues(t, 10, merged(out, results.SeriesService).CountAbove(int64(100*ms)), "those in the buffer when the stall began")
	require.InDelta(t, 900, merged(out, results.SeriesDelay).CountAbove(int64(100*ms)), 20)
}

// The stall spans the end: messages due before it are all counted, and waited for.
func TestCheck21StallAcrossTheEnd(t *testing.T) {
	const R = 20_000
	T := lengthOf(60*time.Second, 3*time.Second)
	out := measure(t, definition(R, T), synthetic.Script{
		Stalls: []synthetic.Stall{{Start: T * 55 / 60, Length: T * 7 / 60}}})
	require.EqualValues(t, R*T.Seconds(), out.Run.Counts.Acked)
	near(t, T*7/60-T/100, out.Run.Series[results.SeriesResponse].P99Ns, "p99")
	near(t, T*7/60, out.Run.Series[results.SeriesResponse].MaxNs, "max")
	require.EqualValues(t, T, out.Run.ElapsedNs, "the drain is no part of the measured phase")
}

// A stall longer than any timeout of ours: nothing is clipped, and the run ends on time.
func TestCheck18LongStall(t *testing.T) {
	d := definition(100, 90*time.Second)
	d.Phases.Drain = 120 * time.Second
	for _, tt := range []struct {
		says         string
		start, drain time.Duration
	}{
		{"over before the end: nothing is left to wait for", 10 * time.Second, 0},
		{"across the end: waited for until it is over, and no longer", 30 * time.Second, 10 * time.Second},
	} {
		out, took := timed(t, d, synthetic.Script{Stalls: []synthetic.Stall{{Start: tt.start, Length: 70 * time.Second}}})
		r := out.Run.Series[results.SeriesResponse]
		near(t, 70*time.Second, r.MaxNs, "max")
		require.Zero(t, r.Clamped)
		require.EqualValues(t, 9000, r.Count)
		require.EqualValues(t, 90*time.Second, out.Run.ElapsedNs, tt.says)
		t.Logf("%s: expected to end after %s, seen %s", tt.says, d.Phases.Duration+tt.drain, took)
		require.InDelta(t, d.Phases.Duration+tt.drain, took, float64(200*ms), tt.says)
	}
}

// timed is measure with how long it took on the virtual clock.
func timed(t *testing.T, d workloads.Definition, s synthetic.Script) (out *run.Outcome, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clock := run.NewClock()
		from := time.Now()
		var err error
		out, err = run.Execute(t.Context(), run.Spec{Definition: d, Clock: clock, Target: synthetic.New(s, clock)})
		took = time.Since(from)
		require.NoError(t, err)
	})
	consistent(t, out)
	return out, took
}
