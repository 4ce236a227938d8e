package synthetic_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// T8: one message at a time, 500 a second, 1000 messages: exactly 1000 in 2 s.
func TestT8SyncBoundedByMessages(t *testing.T) {
	d := definition(500, time.Minute)
	d.Producers.Form, d.Producers.Messages = "sync", 1000
	out := measure(t, d, synthetic.Script{Latency: ms})
	require.EqualValues(t, 1000, out.Run.Counts.Acked)
	require.EqualValues(t, 2*time.Second, out.Run.ElapsedNs)
	require.InEpsilon(t, 500, out.Run.Rates.MessagesPerSecond, tolerance)
}

// A closed loop bounded by messages ends with the last outcome.
func TestClosedLoopBoundedByMessages(t *testing.T) {
	d := definition(0, 0)
	d.Producers.Count, d.Producers.Messages, d.Phases.WarmUp = 4, 50_001, time.Second
	d.Producers.Run = 10
	out := measure(t, d, synthetic.Script{Capacity: 10_000, Buffer: 100})
	require.EqualValues(t, 50_001, out.Run.Counts.Acked)
	require.InEpsilon(t, 5*time.Second, out.Run.ElapsedNs, 0.01)
	require.InEpsilon(t, 10_000, out.Run.Rates.MessagesPerSecond, 0.01)
	require.Zero(t, out.Run.Rates.TargetMessagesPerSecond)
}

// Without a warm-up a closed loop sends what it is bounded by, and nothing before it.
func TestClosedLoopWithoutWarmUpSendsNoMore(t *testing.T) {
	d := definition(0, 0)
	d.Producers.Count, d.Producers.Messages, d.Producers.Run = 3, 1000, 10
	var most int64
	out, err := execute(t, run.Spec{Definition: d}, synthetic.Script{Capacity: 1000, Buffer: 100}, func(p run.Progress) bool {
		most = max(most, p.Acked)
		return false
	})
	require.NoError(t, err)
	require.EqualValues(t, 1000, out.Run.Counts.Acked)
	require.Zero(t, out.Run.Phases[0].StartNs, "there is no warm-up")
	require.LessOrEqual(t, most, int64(1000))
	require.InDelta(t, time.Second, out.Run.ElapsedNs, float64(ms))
}

// The warm-up's cold start is in no figure.
func TestWarmUpIsLeftOut(t *testing.T) {
	d := definition(1000, 3*time.Second)
	d.Phases.WarmUp = 2 * time.Second
	out := measure(t, d, synthetic.Script{Latency: ms})
	require.EqualValues(t, 3000, out.Run.Counts.Attempted)
	for _, w := range out.Windows[:3] {
		require.EqualValues(t, 1000, w.Acked)
	}
	near(t, ms, out.Run.Series[results.SeriesResponse].MaxNs, "max")
}

// A steady latency as long as a tenth of the run is not read as a rate that was not met.
func TestLatencyIsNotMissingRate(t *testing.T) {
	d := definition(1000, 10*time.Second)
	out := measure(t, d, synthetic.Script{Latency: time.Second})
	require.True(t, out.Run.Verdict.Valid, out.Run.Verdict.Reasons)
	d.Phases.WarmUp = 2 * time.Second
	out = measure(t, d, synthetic.Script{Latency: time.Second})
	require.True(t, out.Run.Verdict.Valid, out.Run.Verdict.Reasons)
	require.InEpsilon(t, 1000, out.Run.Rates.MessagesPerSecond, tolerance)
}

func TestSchedules(t *testing.T) {
	d := definition(1000, 10*time.Second)
	d.Producers.Schedule.Kind, d.Producers.Schedule.From = "ramp", 100
	out := measure(t, d, synthetic.Script{Latency: ms})
	require.EqualValues(t, 5500, out.Run.Counts.Acked)
	require.True(t, out.Run.Verdict.Valid, out.Run.Verdict.Reasons)

	d.Producers.Rate, d.Producers.Schedule.Kind, d.Producers.Schedule.Steps = 0, "step", []float64{100, 300}
	out = measure(t, d, synthetic.Script{Latency: ms})
	require.EqualValues(t, 2000, out.Run.Counts.Acked)
	require.InEpsilon(t, 200, out.Run.Rates.TargetMessagesPerSecond, tolerance)

	d.Producers.Rate, d.Producers.Schedule.Kind, d.Producers.Schedule.BurstEvery = 100, "burst", time.Second
	out = measure(t, d, synthetic.Script{Capacity: 1000})
	near(t, 100*ms, out.Run.Series[results.SeriesResponse].MaxNs, "the last of a burst waits for the others")
}

// What was due and never taken is offered load too: counted, as unknown.
func TestDueAndNeverTaken(t *testing.T) {
	d := definition(1000, 10*time.Second)
	d.Phases.Drain, d.Producers.Count = 5*time.Second, 3
	out := measure(t, d, synthetic.Script{Buffer: 100, Stalls: []synthetic.Stall{{Start: 4 * time.Second, Length: time.Hour}}})
	require.EqualValues(t, 10_000, out.Run.Counts.Attempted)
	require.EqualValues(t, 6000, out.Run.Counts.Unknown)
	near(t, 11*time.Second, out.Run.Series[results.SeriesUnknown].MaxNs, "age")
	require.Contains(t, out.Run.Verdict.Reasons[len(out.Run.Verdict.Reasons)-1],
		"6000 messages have no known outcome (drain 5s), limit 0 (5900 of them were never taken by the client)")
}

func TestInterrupt(t *testing.T) {
	d := definition(1000, time.Minute)
	out, err := execute(t, run.Spec{Definition: d}, synthetic.Script{Latency: ms}, func(p run.Progress) bool {
		return p.Phase == run.PhaseMeasure && p.Elapsed >= 3*time.Second
	})
	require.ErrorIs(t, err, run.ErrInterrupted)
	require.InDelta(t, 3*time.Second, out.Run.ElapsedNs, float64(time.Second))
	require.InEpsilon(t, 1000, out.Run.Rates.MessagesPerSecond, 0.01)
	require.Zero(t, out.Run.Counts.Unknown, "what was sent is waited for")
	require.Contains(t, out.Run.Verdict.Reasons[0], "interrupted")
}

// Nothing divides by zero, and nothing is negative, when a run ends before it begins.
func TestInterruptDuringWarmUp(t *testing.T) {
	d := definition(1000, time.Minute)
	d.Phases.WarmUp = time.Minute
	out, err := execute(t, run.Spec{Definition: d}, synthetic.Script{Latency: ms}, func(run.Progress) bool { return true })
	require.ErrorIs(t, err, run.ErrInterrupted)
	require.Equal(t, results.Rates{}, out.Run.Rates)
	require.Equal(t, results.Counts{}, out.Run.Counts)
	require.Zero(t, out.Run.ElapsedNs)
	require.False(t, out.Run.Verdict.Valid)
}

// A second interrupt does not wait for outcomes.
func TestHardInterrupt(t *testing.T) {
	d := definition(1000, time.Minute)
	var cancelled, returned time.Time
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		hard, cancelHard := context.WithCancel(t.Context())
		clock := run.NewClock()
		target := synthetic.New(synthetic.Script{Latency: time.Hour}, clock)
		time.AfterFunc(3*time.Second, cancel)
		time.AfterFunc(4*time.Second, func() { cancelled = time.Now(); cancelHard() })
		_, err := run.Execute(ctx, run.Spec{Definition: d, Target: target, Clock: clock, HardCtx: hard,
			InterruptDrain: 30 * time.Second})
		returned = time.Now()
		require.ErrorIs(t, err, run.ErrInterrupted)
	})
	require.Equal(t, cancelled, returned)
}

func TestTargetFailuresEndTheRun(t *testing.T) {
	broken := errors.New("broken")
	d := consuming(1000, time.Hour)
	for _, row := range []struct {
		sentence string
		script   synthetic.Script
		err      error
		text     string
		within   time.Duration
		kept     bool
	}{
		{"opening a producer fails", synthetic.Script{OpenErr: broken}, broken, "opening producer", 0, false},
		{"sending fails for good", synthetic.Script{SendErr: broken, SendErrAfter: 3000}, broken, "sending", 3 * time.Second, true},
		{"a consumer fails", synthetic.Script{RunErr: broken, RunErrAfter: 2000}, broken, "consumer", 5 * time.Second, true},
		{"every message fails", synthetic.Script{Refuse: 1}, run.ErrAllFailed, "refused by the script", 7 * time.Second, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			out, err := execute(t, run.Spec{Definition: d}, row.script, nil)
			require.ErrorIs(t, err, row.err)
			require.ErrorContains(t, err, row.text)
			require.Equal(t, row.kept, out != nil, "results so far are kept")
			if out != nil {
				require.LessOrEqual(t, time.Duration(out.Run.ElapsedNs), row.within)
				require.Positive(t, out.Run.Counts.Attempted)
				require.False(t, out.Run.Verdict.Valid)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	d := consuming(1000, 5*time.Second)
	var seen []run.Progress
	_, err := execute(t, run.Spec{Definition: d}, synthetic.Script{Latency: 20 * ms, Delivery: ms, Partitions: 3},
		func(p run.Progress) bool { seen = append(seen, p); return false })
	require.NoError(t, err)
	require.InDelta(t, 24, len(seen), 2, "four a second")
	p := seen[len(seen)-3]
	require.Equal(t, run.PhaseMeasure, p.Phase)
	require.Equal(t, 5*time.Second, p.Total)
	require.InEpsilon(t, 1000, p.Rate, 0.05)
	require.InEpsilon(t, 1000, p.TargetRate, 1e-9)
	near(t, 20*ms, int64(p.P50), "p50")
	require.InDelta(t, 20, p.InFlight, 1)
}

// Check 22, on a clock that jumps as it does for a process that was stopped: the verdict names
// the pause and its length.
func TestCheck22GeneratorStandsStill(t *testing.T) {
	var out *run.Outcome
	synctest.Test(t, func(t *testing.T) {
		clock := &jumping{SystemClock: run.NewClock(), at: int64(4 * time.Second), by: int64(2 * time.Second)}
		var err error
		out, err = run.Execute(t.Context(), run.Spec{Definition: definition(1000, 10*time.Second), Clock: clock,
			Target: synthetic.New(synthetic.Script{Latency: ms}, clock)})
		require.NoError(t, err)
	})
	t.Logf("expected a pause of 2 s by name, seen %q", out.Run.Verdict.Reasons)
	require.Contains(t, out.Run.Verdict.Reasons, "the generator itself stood still for 2s, limit 100ms: latency of that time is its own")
	require.Equal(t, "pause", out.Run.Events[0].Kind)
	require.InDelta(t, 4*time.Second, out.Run.Events[0].AtNs, float64(10*ms))
	near(t, 2*time.Second, out.Run.Events[0].DurationNs, "length")
}

// jumping is a clock that jumps ahead once.
type jumping struct {
	*run.SystemClock
	at, by int64
}

func (c *jumping) Now() int64 {
	now := c.SystemClock.Now()
	if now >= c.at {
		now += c.by
	}
	return now
}

func TestSpecIsChecked(t *testing.T) {
	_, err := run.Execute(t.Context(), run.Spec{})
	require.ErrorContains(t, err, "Target is nil")
	d := definition(1, 0)
	target := synthetic.New(synthetic.Script{}, run.NewClock())
	_, err = run.Execute(t.Context(), run.Spec{Definition: d, Target: target})
	require.ErrorContains(t, err, "neither phases.duration nor producers.messages")
	d = definition(1, time.Second)
	d.Payload.Stamp, d.Payload.Size = "value", 10
	_, err = run.Execute(t.Context(), run.Spec{Definition: d, Target: target})
	require.ErrorContains(t, err, "no room for a stamp of 32")
	d.Producers.Count = 0
	_, err = run.Execute(t.Context(), run.Spec{Definition: d, Target: target})
	require.ErrorContains(t, err, "at least one is needed")
}

// The engine's own bound on open messages holds the load back, honestly.
func TestEngineBoundsOpenMessages(t *testing.T) {
	out, err := execute(t, run.Spec{Definition: definition(1000, 10*time.Second), MaxOpen: 500},
		synthetic.Script{Latency: ms, Stalls: []synthetic.Stall{{Start: 5 * time.Second, Length: time.Second}}}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 10_000, out.Run.Counts.Acked)
	near(t, time.Second, out.Run.Series[results.SeriesResponse].MaxNs, "the wait is in response")
	near(t, 500*ms, out.Run.Series[results.SeriesDelay].MaxNs, "and in delay")
	require.Contains(t, out.Run.Verdict.Warnings[0], "500 messages were open at once")
}
