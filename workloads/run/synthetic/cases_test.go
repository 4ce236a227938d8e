package synthetic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// T1: 1 000 messages a second for a minute, of which the broker stalls 5 s: the minute's messages were
// all offered, about 5 000 of them were late, p99 is in seconds, and service stands beside it.
func TestT1StallOfFiveSeconds(t *testing.T) {
	const stall = 5 * time.Second
	out := measure(t, definition(1000, time.Minute), synthetic.Script{Latency: ms,
		Stalls: []synthetic.Stall{{Start: 20 * time.Second, Length: stall}}})
	require.EqualValues(t, 60_000, out.Run.Counts.Attempted)
	require.EqualValues(t, 60_000, out.Run.Counts.Acked)
	response := out.Run.Series[results.SeriesResponse]
	near(t, ms+stall-600*ms, response.P99Ns, "p99: the slowest hundredth, 600 messages, were due in the stall's first 0.6 s")
	var late int64
	for _, w := range out.Windows {
		if h := w.Series[results.SeriesResponse]; h != nil {
			late += h.CountAbove(int64(2 * ms))
		}
	}
	within(t, 5000, float64(late), 0.01, "messages that were late")
	require.Equal(t, response.Count, out.Run.Series[results.SeriesService].Count)
}

// T3: 18 % of what is sent is refused: every attempt has its outcome, and the rate counts what was
// acknowledged.
func TestT3RefusedMessages(t *testing.T) {
	out := measure(t, definition(1000, 10*time.Second), synthetic.Script{Latency: ms, Refuse: 0.18})
	c := out.Run.Counts
	require.EqualValues(t, 10_000, c.Attempted)
	require.EqualValues(t, 1800, c.Failed)
	require.Equal(t, c.Attempted, c.Acked+c.Failed+c.Unknown)
	within(t, 820, out.Run.Rates.MessagesPerSecond, tolerance, "acknowledged messages a second")
}

// T4: 0.3 ms from end to end are 300 µs and not 0 or 1 ms, one value for each message consumed; a clock
// that runs ahead of them is flagged.
func TestT4ShortEndToEnd(t *testing.T) {
	script := synthetic.Script{Latency: 200 * time.Microsecond, Delivery: 100 * time.Microsecond, Partitions: 4}
	out := measure(t, consuming(1000, 5*time.Second), script)
	e2e := out.Run.Series[results.SeriesE2E]
	near(t, 300*time.Microsecond, e2e.P50Ns, "e2e p50")
	near(t, 300*time.Microsecond, e2e.MaxNs, "e2e max")
	require.Equal(t, out.Run.Counts.Received, e2e.Count)
	require.Empty(t, out.Run.Verdict.Reasons)
	script.ClockOffset = -time.Millisecond
	out = measure(t, consuming(1000, 5*time.Second), script)
	require.Equal(t, out.Run.Counts.Received, out.Run.Series[results.SeriesE2E].Count)
	require.Contains(t, out.Run.Verdict.Reasons[0], "clocks disagree")
}
