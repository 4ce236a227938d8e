package synthetic_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// Check 4 is made of every outcome, in consistent; here with all four kinds of message at once.
func TestCheck04NoInventedSamples(t *testing.T) {
	d := definition(1000, 10*time.Second)
	d.Phases.WarmUp, d.Phases.Drain = 2*time.Second, 5*time.Second
	out := measure(t, d, synthetic.Script{Latency: ms, Refuse: 0.1, Silent: 9 * time.Second})
	c := out.Run.Counts
	t.Logf("expected attempted 10000 = acked 8100 + failed 900 + unknown 1000, seen %d = %d + %d + %d", c.Attempted, c.Acked, c.Failed, c.Unknown)
	require.EqualValues(t, 10_000, c.Attempted)
	require.EqualValues(t, 1000, c.Unknown)
	require.EqualValues(t, 900, c.Failed)
	require.Contains(t, out.Run.Verdict.Reasons[len(out.Run.Verdict.Reasons)-1], "1000 messages have no known outcome (drain 5s)")
	near(t, 6*time.Second, out.Run.Series[results.SeriesUnknown].MaxNs, "age of the oldest unknown one at the drain's end")
}

// Overload, λ > μ: the latency of the message due at t is t(λ−μ)/μ.
func TestCheck05Overload(t *testing.T) {
	T := 10 * time.Second
	d := definition(11_000, T)
	out := measure(t, d, synthetic.Script{Capacity: 10_000})
	r := out.Run.Series[results.SeriesResponse]
	within(t, 10_000, out.Run.Rates.MessagesPerSecond, tolerance, "goodput")
	require.InEpsilon(t, 11_000, out.Run.Rates.TargetMessagesPerSecond, 1e-9)
	near(t, T/20, r.P50Ns, "p50")
	near(t, T/10, r.MaxNs, "max")
	require.False(t, out.Run.Verdict.Valid)
	require.Contains(t, out.Run.Verdict.Reasons[0], "not sustained")
	for i, w := range out.Windows[:10] {
		require.InEpsilon(t, 1000*(i+1), w.InFlight, 0.01, "backlog at the end of second %d", i+1)
		require.Equal(t, runtime.GOOS == "linux", w.RSSBytes > 0, "memory at the end of second %d", i+1)
	}
}

// M/M/1: quantile q is −ln(1−q)/(μ−λ).
func TestCheck06PoissonArrivals(t *testing.T) {
	d := definition(800, lengthOf(3*time.Hour, 5*time.Minute))
	d.Producers.Schedule.Kind = "poisson"
	d.Phases.Interval = 10 * time.Second
	out := measure(t, d, synthetic.Script{Capacity: 1000, Exponential: true, Seed: 3})
	h := merged(out, results.SeriesResponse)
	share := 0.05 // of 240 000 correlated samples
	if soak {
		share = 0.03
	}
	within(t, float64(5*ms), h.Mean(), share, "mean, ns")
	for _, q := range []float64{0.5, 0.99, 0.999} {
		want := -math.Log(1-q) / 200 * 1e9
		within(t, want, float64(h.Quantile(q)), 2*share, fmt.Sprintf("quantile %v, ns", q))
	}
}

func TestCheck07RateOverManyProducers(t *testing.T) {
	d := definition(14_000, 2*time.Second)
	d.Producers.Count = 14_000
	d.Phases.WarmUp, d.Phases.Interval = time.Second, 10*ms
	out := measure(t, d, synthetic.Script{Latency: ms})
	require.EqualValues(t, 28_000, out.Run.Counts.Acked)
	for i, w := range out.Windows[:200] {
		require.EqualValues(t, 140, w.Attempted, "window %d", i)
	}
	within(t, 14_000, out.Run.Rates.MessagesPerSecond, 0.001, "14 000 producers at 1/s")
}

// The same, asked for by producer.
func TestCheck07RateOfEachProducer(t *testing.T) {
	d := definition(1, 2*time.Second)
	d.Producers.Count, d.Producers.RateOf = 1400, "each"
	d.Phases.Interval = 10 * ms
	out := measure(t, d, synthetic.Script{Latency: ms})
	require.EqualValues(t, 2800, out.Run.Counts.Acked)
	for i, w := range out.Windows[:200] {
		require.EqualValues(t, 14, w.Attempted, "window %d", i)
	}
	within(t, 1400, out.Run.Rates.TargetMessagesPerSecond, 1e-9, "asked of all producers")
}

// The engine keeps to the rates that a schedule is exact at.
func TestCheck07MeanRate(t *testing.T) {
	for _, rate := range []float64{1, 7, 1000, 14_000, 100_000} {
		length := 10 * time.Second
		if rate > 1000 {
			length = lengthOf(10*time.Second, time.Second)
		}
		out := measure(t, definition(rate, length), synthetic.Script{Latency: ms})
		within(t, rate, out.Run.Rates.MessagesPerSecond, 0.001, "mean rate")
	}
}

// Little's law: mean in flight = rate × mean latency.
func TestCheck11LittlesLaw(t *testing.T) {
	d := definition(2000, 20*time.Second)
	d.Phases.Interval = 10 * ms
	out := measure(t, d, synthetic.Script{Latency: 20 * ms, Capacity: 4000,
		Stalls: []synthetic.Stall{{Start: 5 * time.Second, Length: time.Second}}})
	var sum float64
	for _, w := range out.Windows[:2000] {
		sum += float64(w.InFlight)
	}
	mean := float64(out.Run.Series[results.SeriesService].MeanNs) / 1e9
	within(t, 2000*mean, sum/2000, 0.02, "messages in flight")
	law := out.Run.LittlesLaw
	within(t, 2000*mean, law.InFlight, 0.02, "as counted by the run itself")
	within(t, law.InFlight, law.RateTimesService, 0.02, "rate × service")
	require.True(t, law.Holds)
	require.Empty(t, out.Run.Verdict.Warnings)
}

// A short latency is reported as what it is, not as 0 or a millisecond.
func TestCheck13QuarterOfAMillisecond(t *testing.T) {
	out := measure(t, definition(1000, 5*time.Second), synthetic.Script{Latency: 250 * time.Microsecond})
	for _, name := range []string{results.SeriesResponse, results.SeriesService, results.SeriesProduce} {
		s := out.Run.Series[name]
		for _, got := range []int64{s.MinNs, s.MeanNs, s.P50Ns, s.P9999Ns, s.MaxNs} {
			near(t, 250*time.Microsecond, got, name)
		}
	}
	require.Zero(t, out.Run.Series[results.SeriesDelay].MaxNs)
}

func TestCheck14Failures(t *testing.T) {
	T := lengthOf(60*time.Second, 6*time.Second)
	d := definition(10_000, T)
	d.Thresholds = []string{"errors<0.1%"}
	out := measure(t, d, synthetic.Script{Latency: ms, Refuse: 0.01})
	total := int64(10_000 * T.Seconds())
	t.Logf("of %d messages 1 %% refused: expected %d, seen %d in their own histogram of %d", total, total/100, out.Run.Counts.Failed, out.Run.Series[results.SeriesFailed].Count)
	require.EqualValues(t, total/100, out.Run.Counts.Failed)
	within(t, 9900, out.Run.Rates.MessagesPerSecond, tolerance, "the rate counts acked messages only")
	require.Equal(t, map[string]int64{synthetic.ErrRefused.Error(): total / 100}, out.Run.Errors)
	require.False(t, out.Run.Thresholds[0].Held)
	require.Equal(t, "1 %", out.Run.Thresholds[0].Value)

	out = measure(t, d, synthetic.Script{Latency: ms, Refuse: 0.18})
	c := out.Run.Counts
	require.EqualValues(t, total, c.Acked+c.Failed)
	require.InDelta(t, total*18/100, c.Failed, 1)
	require.Contains(t, out.Run.Verdict.Reasons[0], "18 % of the messages failed")
}
