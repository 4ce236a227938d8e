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

// Check 15: a warm-up that decays from +200 % is found and left out, and the steady value is right
// within 0.5 %; one that has not decayed within half of the run is no steady state.
func TestCheck15SteadyState(t *testing.T) {
	T := 180 * time.Second
	d := definition(lengthOf1(1000, 200), T)
	d.Phases.Steady = true
	for _, row := range []struct {
		tau    time.Duration
		steady bool
	}{{10 * time.Second, true}, {time.Minute, false}} {
		out := measure(t, d, synthetic.Script{Latency: 10 * ms, Cold: 2, Decay: row.tau})
		s := out.Run.Steady
		require.Equal(t, row.steady, s.Found, "τ=%v: %+v", row.tau, s)
		t.Logf("τ=%v: expected steady %v, seen %+v", row.tau, row.steady, *s)
		if !row.steady {
			require.Contains(t, out.Run.Verdict.Reasons[0], "no steady state: the figure was still rising or falling")
			require.EqualValues(t, T, out.Run.ElapsedNs, "the figures are of everything")
			continue
		}
		require.True(t, out.Run.Verdict.Valid, out.Run.Verdict.Reasons)
		within(t, float64(10*ms), s.Value, 0.005, "steady value, ns")
		within(t, float64(10*ms), float64(out.Run.Series[results.SeriesResponse].MeanNs), 0.005, "mean response of the run's figures, ns")
		require.Equal(t, int64(T)-s.AfterNs, out.Run.ElapsedNs)
		require.EqualValues(t, d.Producers.Rate*time.Duration(out.Run.ElapsedNs).Seconds(), out.Run.Counts.Attempted)
		within(t, d.Producers.Rate, out.Run.Rates.MessagesPerSecond, tolerance, "rate")
		require.Equal(t, -s.AfterNs, out.Windows[0].StartNs, "windows from before stand in the timeline, and not in the log")
		names := phaseNames(out)
		require.Equal(t, []string{"settling", "measure"}, names)
		require.Greater(t, out.Run.Phases[0].Series[results.SeriesResponse].MeanNs, int64(11*ms))
	}
}

// lengthOf1 is a rate that is whole under soak.
func lengthOf1(whole, short float64) float64 {
	if soak {
		return whole
	}
	return short
}

func phaseNames(out *run.Outcome) (names []string) {
	for _, p := range out.Run.Phases {
		names = append(names, p.Name)
	}
	return names
}

// A closed loop's steady state is that of its rate.
func TestSteadyStateOfAClosedLoop(t *testing.T) {
	d := definition(0, time.Minute)
	d.Phases.Steady = true
	out := measure(t, d, synthetic.Script{Latency: 10 * ms, Cold: 2, Decay: 2 * time.Second, Buffer: 10})
	require.True(t, out.Run.Steady.Found, out.Run.Steady)
	within(t, 1000, out.Run.Rates.MessagesPerSecond, 0.005, "ten in flight for 10 ms each")
	require.Equal(t, out.Run.Counts.Attempted, out.Run.Counts.Acked)
}

// Warm-up, named phases with rates of their own and cool-down are kept apart, and only the named ones
// are in the run's figures.
func TestPhasesAreKeptApart(t *testing.T) {
	d := consuming(0, 0)
	d.Producers.Rate = 1000
	d.Phases.WarmUp, d.Phases.CoolDown = 2*time.Second, 3*time.Second
	d.Phases.Named = []workloads.Stage{{Name: "base", For: 4 * time.Second}, {Name: "peak", For: 2 * time.Second, Rate: 5000},
		{Name: "after", For: 4 * time.Second, Rate: 500}}
	out := measure(t, d, synthetic.Script{Latency: ms, Delivery: ms, Partitions: 4,
		Stalls: []synthetic.Stall{{Start: 5 * time.Second, Length: 500 * ms}}})
	require.Equal(t, []string{"warm-up", "base", "peak", "after", "cool-down"}, phaseNames(out))
	for i, want := range []struct {
		kind          string
		start, length time.Duration
		attempted     int64
		rate          float64
	}{
		{results.PhaseWarmUp, -2 * time.Second, 2 * time.Second, 10_000, 5000},
		{results.PhaseMeasure, 0, 4 * time.Second, 4000, 1000},
		{results.PhaseMeasure, 4 * time.Second, 2 * time.Second, 10_000, 5000},
		{results.PhaseMeasure, 6 * time.Second, 4 * time.Second, 2000, 500},
		{results.PhaseCoolDown, 10 * time.Second, 3 * time.Second, 15_000, 5000},
	} {
		p := out.Run.Phases[i]
		require.Equal(t, want.kind, p.Kind, p.Name)
		require.EqualValues(t, want.start, p.StartNs, p.Name)
		require.EqualValues(t, want.length, p.LengthNs, p.Name)
		require.Equal(t, want.attempted, p.Counts.Attempted, p.Name)
		require.Equal(t, want.attempted, p.Counts.Acked, p.Name)
		require.InEpsilon(t, want.rate, p.Rates.MessagesPerSecond, tolerance, p.Name)
		require.InEpsilon(t, want.rate, p.Rates.TargetMessagesPerSecond, tolerance, p.Name)
		series := p.Series[results.SeriesResponse]
		require.Equal(t, want.attempted, series.Count, p.Name)
		if p.Name == "peak" {
			near(t, 501*ms, series.MaxNs, "the stall is the peak's")
		} else {
			near(t, ms, series.MaxNs, p.Name)
		}
	}
	require.EqualValues(t, 16_000, out.Run.Counts.Acked, "the run's figures are the named phases'")
	require.EqualValues(t, 16_000, out.Run.Counts.Received)
	require.EqualValues(t, 10*time.Second, out.Run.ElapsedNs)
	require.Zero(t, out.Run.Counts.Lost)
	require.True(t, out.Run.Verdict.Valid, out.Run.Verdict.Reasons)
}

// The cool-down keeps the load on while the last messages are answered, in a closed loop too.
func TestCoolDown(t *testing.T) {
	d := definition(0, 5*time.Second)
	d.Phases.CoolDown, d.Producers.Run = 2*time.Second, 10
	out := measure(t, d, synthetic.Script{Latency: 10 * ms, Buffer: 10})
	require.Equal(t, []string{"measure", "cool-down"}, phaseNames(out))
	within(t, 1000, out.Run.Rates.MessagesPerSecond, 0.01, "rate")
	cool := out.Run.Phases[1]
	within(t, 2000, float64(cool.Counts.Acked), 0.01, "acked in the cool-down")
	require.InDelta(t, 5000, out.Run.Counts.Acked, 20)

	d = definition(1000, 5*time.Second)
	d.Phases.CoolDown = 2 * time.Second
	out = measure(t, d, synthetic.Script{Latency: ms, Stalls: []synthetic.Stall{{Start: 5500 * ms, Length: time.Second}}})
	near(t, ms, out.Run.Series[results.SeriesResponse].MaxNs, "what happens in the cool-down is in no figure")
	near(t, 1001*ms, out.Run.Phases[1].Series[results.SeriesResponse].MaxNs, "but in its own")
	require.EqualValues(t, 5000, out.Run.Counts.Attempted)
}

// An interrupt in the cool-down leaves the measured phase whole.
func TestInterruptDuringCoolDown(t *testing.T) {
	d := definition(1000, 3*time.Second)
	d.Phases.CoolDown = time.Minute
	out, err := execute(t, run.Spec{Definition: d}, synthetic.Script{Latency: ms},
		func(p run.Progress) bool { return p.Phase == run.PhaseCoolDown && p.Elapsed > time.Second })
	require.ErrorIs(t, err, run.ErrInterrupted)
	require.EqualValues(t, 3000, out.Run.Counts.Acked)
	require.EqualValues(t, 3*time.Second, out.Run.ElapsedNs)
	require.Zero(t, out.Run.Counts.Unknown)
}

// A replayed schedule is due at the times of its file, by all producers in turn or by each.
func TestReplay(t *testing.T) {
	var times []int64
	for i := range int64(1000) {
		times = append(times, i*i*int64(10*time.Microsecond)) // 0 to 9.98 s, ever slower
	}
	d := definition(0, 0)
	d.Producers.Schedule.Kind, d.Times = "replay", times
	d.Producers.Count = 3
	out := measure(t, d, synthetic.Script{Latency: ms})
	require.EqualValues(t, 1000, out.Run.Counts.Acked)
	require.EqualValues(t, times[999]+1, out.Run.ElapsedNs, "to the last of them")
	near(t, ms, out.Run.Series[results.SeriesResponse].MaxNs, "response")
	require.EqualValues(t, 317, out.Windows[0].Attempted, "√(1 s ÷ 10 µs) of them in the first second")
	require.True(t, out.Run.Verdict.Valid, out.Run.Verdict.Reasons)

	d.Producers.RateOf, d.Phases.Duration = "each", 5*time.Second
	out = measure(t, d, synthetic.Script{Latency: ms})
	require.EqualValues(t, 3*708, out.Run.Counts.Acked, "those of the first five seconds, by each of three")
	require.EqualValues(t, 3*317, out.Windows[0].Attempted)
}

// Producers and partitions can be told apart.
func TestSplits(t *testing.T) {
	d := definition(1000, 4*time.Second)
	d.Producers.Count = 4
	d.Record = workloads.Record{PerProducer: true, PerPartition: true}
	d.Phases.WarmUp = time.Second
	out := measure(t, d, synthetic.Script{Latency: ms, Partitions: 8, Refuse: 0.25, Stalls: []synthetic.Stall{{Start: 2 * time.Second, Length: 100 * ms}},
		Topics: []results.Topic{{Name: "t", Partitions: 10}}})
	require.Len(t, out.Parts.Producers, 4)
	require.Len(t, out.Parts.Partitions, 10, "those nobody wrote to as well")
	var acked, failed int64
	for i, p := range out.Parts.Producers {
		require.Equal(t, i, p.Producer)
		require.EqualValues(t, 1000, p.Acked+p.Failed)
		acked += p.Acked
		failed += p.Failed
	}
	require.Equal(t, out.Run.Counts.Acked, acked)
	require.Equal(t, out.Run.Counts.Failed, failed)
	acked = 0
	for _, p := range out.Parts.Partitions[:8] {
		require.EqualValues(t, 500, p.Acked+p.Failed)
		require.Equal(t, "t", p.Topic)
		require.LessOrEqual(t, p.Latency.MaxNs, int64(101*ms))
		acked += p.Acked
	}
	require.Equal(t, out.Run.Counts.Acked, acked)
	require.Zero(t, out.Parts.Partitions[9].Acked)
	require.Len(t, out.Run.Parts, 2)
	require.Equal(t, results.ByProducer, out.Run.Parts[0].By)
	require.Equal(t, 10, out.Run.Parts[1].N)

	d.Record = workloads.Record{}
	require.Empty(t, measure(t, d, synthetic.Script{Latency: ms}).Run.Parts, "nobody asked")
}
