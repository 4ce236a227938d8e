package synthetic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// consuming is a workload whose messages are looked for on the other side.
func consuming(rate float64, length time.Duration) workloads.Definition {
	d := definition(rate, length)
	d.Producers.Count, d.Consumers.Count = 3, 2
	d.Payload = workloads.Payload{Size: 64, Stamp: "value"}
	d.Phases.WarmUp = time.Second
	return d
}

// Clocks: a true 5 ms with a consumer's clock 50 ms behind makes every sample negative; all are
// counted, the run is flagged, none is dropped.
func TestCheck12ClocksDisagree(t *testing.T) {
	out := measure(t, consuming(1000, 5*time.Second), synthetic.Script{
		Latency: ms, Delivery: 4 * ms, ClockOffset: -50 * ms, Partitions: 4})
	e2e := out.Run.Series[results.SeriesE2E]
	t.Logf("expected 5000 of 5000 negative, the worst -45 ms; seen %d of %d, %v", out.Run.Counts.NegativeE2E, e2e.Count, time.Duration(e2e.MinNs))
	require.EqualValues(t, 5000, e2e.Count)
	require.EqualValues(t, 5000, out.Run.Counts.NegativeE2E)
	require.EqualValues(t, -45*ms, e2e.MinNs)
	require.EqualValues(t, 5000, out.Run.Counts.Received)
	require.Equal(t, []string{"clocks disagree: 5000 messages were received before they were due, the worst 45ms before, limit 0"},
		out.Run.Verdict.Reasons)
}

func TestE2E(t *testing.T) {
	for _, stamp := range []string{"value", "header", "auto"} {
		d := consuming(1000, 5*time.Second)
		d.Payload.Stamp = stamp
		out := measure(t, d, synthetic.Script{Latency: ms, Delivery: 4 * ms, Partitions: 4})
		e2e := out.Run.Series[results.SeriesE2E]
		require.EqualValues(t, 5000, e2e.Count, "%s: one a message, the warm-up's not among them", stamp)
		near(t, 5*ms, e2e.P50Ns, "e2e")
		near(t, 5*ms, e2e.MaxNs, "e2e")
		require.True(t, out.Run.Verdict.Valid, out.Run.Verdict.Reasons)
		require.InEpsilon(t, 1000, out.Run.Rates.ReceivedPerSecond, tolerance)
		for _, th := range out.Run.Thresholds {
			require.True(t, th.Held, th.Expression)
		}
		require.Len(t, out.Run.Thresholds, 3)
	}
}

// What happens to messages on the way is found, to the message.
func TestIntegrity(t *testing.T) {
	out := measure(t, consuming(1000, 10*time.Second), synthetic.Script{Latency: ms, Delivery: ms, Partitions: 2,
		Lose: 500, Duplicate: 1009, Swap: 997, Corrupt: 1250})
	c := out.Run.Counts
	// Numbers run from 0 in the warm-up (1000, rounded up to 1002) to 11 001.
	count := func(n int64) (k int64) {
		for number := int64(1002); number < 11_002; number++ {
			if number%n == n-1 {
				k++
			}
		}
		return k
	}
	corrupted := int64(0) // of those not lost; the warm-up's count too
	for number := range int64(11_002) {
		if number%1250 == 1249 && number%500 != 499 {
			corrupted++
		}
	}
	require.EqualValues(t, 10_000, c.Acked)
	require.Equal(t, corrupted, c.Corrupted)
	require.InDelta(t, count(500)+corrupted, c.Lost, 1, "a corrupted message did not arrive either")
	require.Equal(t, count(1009), c.Duplicated)
	require.Equal(t, 10_000-c.Lost+c.Duplicated, c.Received, "received counts what arrived whole, again and again")
	require.False(t, out.Run.Thresholds[0].Held)
	require.True(t, out.Run.Verdict.Valid, "findings about the cluster do not make a measurement invalid")
}

// What another application writes to a topic that was there before is neither this run's nor corrupted; in a
// topic of the run's own it is what became of a message.
func TestMessagesOfAnotherApplication(t *testing.T) {
	for _, stamp := range []string{"value", "header"} {
		d := consuming(1000, 10*time.Second)
		d.Payload.Stamp, d.Topics.Name = stamp, "orders"
		out := measure(t, d, synthetic.Script{Latency: ms, Delivery: ms, Partitions: 2, Strange: 100, Corrupt: 1250})
		c := out.Run.Counts
		require.EqualValues(t, 109, c.Unstamped, "of the warm-up as well, and no producer has the number 10 999")
		require.EqualValues(t, 8, c.Corrupted, "one of ours that was altered is told from them")
		require.EqualValues(t, 8, c.Lost)
		require.EqualValues(t, 9992, c.Received)
		require.Contains(t, out.Run.Verdict.Warnings, "109 messages arrived without a stamp of kbench's: others write to these topics; they are in no figure")
		require.True(t, out.Run.Verdict.Valid)
		require.True(t, thresholdOf(t, measure(t, d, synthetic.Script{Latency: ms, Strange: 100}), "corrupted=0").Held)

		d.Topics.Name = ""
		out = measure(t, d, synthetic.Script{Latency: ms, Delivery: ms, Partitions: 2, Strange: 100})
		require.EqualValues(t, 109, out.Run.Counts.Corrupted)
		require.Zero(t, out.Run.Counts.Unstamped)
		require.False(t, thresholdOf(t, out, "corrupted=0").Held)
	}
}

func thresholdOf(t *testing.T, out *run.Outcome, expression string) results.Threshold {
	for _, threshold := range out.Run.Thresholds {
		if threshold.Expression == expression {
			return threshold
		}
	}
	require.Fail(t, "there is no threshold "+expression)
	return results.Threshold{}
}

// Reordering is judged within a producer and a partition.
func TestReordered(t *testing.T) {
	d := consuming(1000, 10*time.Second)
	d.Producers.Count = 1
	out := measure(t, d, synthetic.Script{Latency: ms, Partitions: 2, Swap: 97})
	require.InDelta(t, 10_000/97, out.Run.Counts.Reordered, 1)
	require.Zero(t, out.Run.Counts.Lost+out.Run.Counts.Duplicated)

	d.Producers.Count = 10 // neighbours in a partition are of different producers
	out = measure(t, d, synthetic.Script{Latency: ms, Partitions: 2, Swap: 97})
	require.Zero(t, out.Run.Counts.Reordered)
}

// Without stamps arrivals are only counted.
func TestConsumersWithoutStamps(t *testing.T) {
	d := consuming(1000, 5*time.Second)
	d.Payload.Stamp, d.Phases.WarmUp = "none", 0
	out := measure(t, d, synthetic.Script{Latency: ms, Partitions: 2})
	require.EqualValues(t, 5000, out.Run.Counts.Received)
	require.NotContains(t, out.Run.Series, results.SeriesE2E)
	require.Empty(t, out.Run.Thresholds, "nothing can be said about lost messages")
}

// In a closed loop e2e counts from when the engine began the run.
func TestE2EClosedLoop(t *testing.T) {
	d := consuming(0, 5*time.Second)
	out := measure(t, d, synthetic.Script{Latency: ms, Delivery: ms, Buffer: 30, Partitions: 3})
	require.Equal(t, run.LoopClosed, out.Run.Loop)
	require.NotContains(t, out.Run.Series, results.SeriesResponse)
	require.NotContains(t, out.Run.Series, results.SeriesDelay)
	require.Equal(t, out.Run.Counts.Acked, out.Run.Counts.Received)
	require.Zero(t, out.Run.Counts.Lost)
	require.InEpsilon(t, 30_000, out.Run.Rates.MessagesPerSecond, 0.01, "30 in flight for a millisecond each")
}

// A run that only consumes counts what it receives, until there is enough of it.
func TestConsumeOnly(t *testing.T) {
	d := definition(0, time.Minute)
	d.Producers.Count, d.Producers.Messages, d.Consumers.Count = 0, 5000, 1
	out, err := execute(t, run.Spec{Definition: d}, synthetic.Script{Feed: 1000}, nil)
	require.NoError(t, err)
	require.InDelta(t, 5000, out.Run.Counts.Received, 20)
	require.InEpsilon(t, 5*time.Second, out.Run.ElapsedNs, 0.01)
	require.InEpsilon(t, 1000, out.Run.Rates.ReceivedPerSecond, 0.01)
	require.Zero(t, out.Run.Counts.Attempted)
	require.True(t, out.Run.Verdict.Valid, out.Run.Verdict.Reasons)
}

// A run that only consumes ends when nothing comes any more, and says how much was there.
func TestConsumeOnlyUntilNothingComes(t *testing.T) {
	d := definition(0, time.Minute)
	d.Producers.Count, d.Producers.Messages, d.Consumers.Count, d.Consumers.Idle = 0, 5000, 1, 3*time.Second
	out, err := execute(t, run.Spec{Definition: d}, synthetic.Script{}, nil)
	require.NoError(t, err)
	require.Zero(t, out.Run.Counts.Received)
	require.InDelta(t, 3*time.Second, out.Run.ElapsedNs, float64(50*ms))
	require.Contains(t, out.Run.Verdict.Warnings, "nothing was received for 3s (consumers.idle): 0 of the 5000 messages asked for were there")
}

// A producer that waits for arrivals has one message under way from end to end.
func TestAwaitReceived(t *testing.T) {
	d := consuming(0, 2*time.Second)
	d.Producers.Form, d.Producers.Await, d.Producers.Count, d.Consumers.Groups = "sync", "received", 1, 2
	script := synthetic.Script{Latency: ms, Delivery: 3 * ms, Partitions: 3, Groups: 2}
	out := measure(t, d, script)
	require.InDelta(t, 500, out.Run.Counts.Acked, 2, "4 ms each")
	require.Equal(t, 2*out.Run.Counts.Acked, out.Run.Counts.Received)
	near(t, 4*ms, out.Run.Series[results.SeriesE2E].P50Ns, "e2e")

	script.Lose, d.Phases.WarmUp = 100, 0
	out, err := execute(t, run.Spec{Definition: d}, script, nil)
	require.ErrorContains(t, err, "was acknowledged and did not arrive within phases.drain (30s)")
	require.EqualValues(t, 2, out.Run.Counts.Lost+out.Run.Counts.NotReceived, "in each group")
}

// Messages of another run in the same topic are in no figure.
func TestForeignMessages(t *testing.T) {
	out, err := execute(t, run.Spec{Definition: consuming(1000, 2*time.Second)},
		synthetic.Script{Latency: ms, Partitions: 2, Feed: 100}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 2000, out.Run.Counts.Received)
	require.Zero(t, out.Run.Counts.Lost+out.Run.Counts.Corrupted+out.Run.Counts.Duplicated)
	require.Contains(t, out.Run.Verdict.Warnings[0], "messages arrived that this run did not send")
}

// What is on its way when the drain ends is not lost: nobody knows.
func TestArrivalsBeyondTheDrainAreNotCalledLost(t *testing.T) {
	d := consuming(1000, 10*time.Second)
	d.Phases.Drain = time.Second
	out := measure(t, d, synthetic.Script{Latency: ms, Delivery: 20 * time.Second})
	c := out.Run.Counts
	require.EqualValues(t, 10_000, c.Acked)
	require.Zero(t, c.Lost)
	require.EqualValues(t, 10_000, c.NotReceived)
	require.False(t, out.Run.Verdict.Valid)
	require.Contains(t, out.Run.Verdict.Reasons[0], "had not been received when the drain of 1s ended")
	for _, judged := range out.Run.Thresholds {
		require.NotEqual(t, "lost=0", judged.Expression, "a figure that is not known neither holds nor breaks")
	}
}
