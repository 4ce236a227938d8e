package synthetic_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// Every group receives everything, and what one of them does not get is lost in that one only.
func TestGroupsAreCountedByThemselves(t *testing.T) {
	d := consuming(1000, 5*time.Second)
	d.Consumers.Groups = 3
	out := measure(t, d, synthetic.Script{Latency: ms, Delivery: ms, Partitions: 4, DeafGroup: 2, Deaf: 500})
	c := out.Run.Counts
	require.EqualValues(t, 5000, c.Acked)
	require.InDelta(t, 10, c.Lost, 1, "of one group: every 500th number, of which some are the warm-up's")
	require.EqualValues(t, 3*5000-c.Lost, c.Received, "of all groups")
	groups := out.Run.Consumption.Groups
	require.Len(t, groups, 3)
	for i, lost := range []int64{0, c.Lost, 0} {
		require.Equal(t, lost, groups[i].Lost, "group %d", i)
		require.Equal(t, 5000-lost, groups[i].Received, "group %d", i)
		require.Zero(t, groups[i].Duplicated+groups[i].Reordered, "what another group received is no duplicate")
	}
	require.InEpsilon(t, 3*1000, out.Run.Rates.ReceivedPerSecond, 0.01)
	require.False(t, out.Run.Thresholds[0].Held, "lost=0 is about all groups")
}

// Consumers at half the rate fall behind by a known amount, in every partition alike.
func TestLagByPartition(t *testing.T) {
	d := consuming(1000, 10*time.Second)
	d.Producers.Count, d.Consumers.Count, d.Phases.WarmUp = 1, 1, 0
	d.Thresholds = []string{"lag.max<4900", "lag.final>=4900", "lag.growth>490/s"}
	out := measure(t, d, synthetic.Script{Latency: ms, Partitions: 4, Reading: 500})
	lag := out.Run.Consumption.Lag
	require.InDelta(t, 5000, lag.MaxMessages, 5)
	require.Equal(t, lag.MaxMessages, lag.FinalMessages)
	require.EqualValues(t, 10*time.Second, lag.MaxAtNs)
	require.InDelta(t, 500, *lag.GrowthPerSecond, 1)
	group := out.Run.Consumption.Groups[0].Lag
	require.Equal(t, []int64{lag.MaxMessages, lag.MaxAtNs, lag.FinalMessages}, []int64{group.MaxMessages, group.MaxAtNs, group.FinalMessages})
	require.Len(t, out.Lags.Columns, 4)
	for i := range 10 {
		row := out.Lags.Rows[i]
		require.EqualValues(t, time.Duration(i+1)*time.Second, row.EndNs)
		var sum int64
		for _, n := range row.Messages {
			require.InDelta(t, 125*(i+1), n, 3)
			sum += n
		}
		require.Equal(t, out.Windows[i].Lag, sum, "the timeline has the sum")
	}
	held := map[string]bool{}
	for _, th := range out.Run.Thresholds {
		held[th.Expression] = th.Held
	}
	require.False(t, held["lag.max<4900"])
	require.True(t, held["lag.final>=4900"])
	require.True(t, held["lag.growth>490/s"])
}

// The last reading is that at the end of the measured phase, also where no window ends there.
func TestFinalLagIsThatAtTheEnd(t *testing.T) {
	d := consuming(1000, 2500*time.Millisecond)
	d.Producers.Count, d.Consumers.Count, d.Phases.WarmUp = 1, 1, 0
	out := measure(t, d, synthetic.Script{Latency: ms, Partitions: 2, Reading: 600})
	require.InDelta(t, 1000, out.Run.Consumption.Lag.FinalMessages, 5)
	require.Equal(t, out.Run.Consumption.Lag.FinalMessages, out.Windows[2].Lag)
	require.EqualValues(t, 2500*time.Millisecond, out.Lags.Rows[2].EndNs)
}

// backlog is 1000 messages a second for 2 s before two consumers begin, of 1500 a second each.
func backlog() (workloads.Definition, synthetic.Script) {
	d := consuming(1000, 10*time.Second)
	d.Phases.WarmUp, d.Consumers.StartAfter = 0, 2*time.Second
	return d, synthetic.Script{Latency: ms, Partitions: 4, Groups: 1, Reading: 1500}
}

// A backlog of 2000 worked off at 3000 a second while 1000 come in: one second, 3000 received.
func TestCatchUp(t *testing.T) {
	d, script := backlog()
	d.Thresholds = []string{"catchUp.time<900ms", "catchUp.time<1100ms", "catchUp.rate>2.9k/s"}
	out := measure(t, d, script)
	c := out.Run.Consumption.CatchUp
	require.InDelta(t, 2000, c.BacklogMessages, 3)
	near(t, 2*time.Second, c.BeganNs, "began")
	require.True(t, c.Reached)
	require.InDelta(t, time.Second, c.TookNs, float64(30*ms))
	require.InEpsilon(t, 3000, c.MessagesPerSecond, 0.02)
	require.Equal(t, results.SeriesResponse, c.Series)
	require.EqualValues(t, 10_000, c.Before.Count+c.During.Count+c.After.Count, "every message is in one part")
	require.EqualValues(t, 2000, c.Before.Count)
	require.Positive(t, c.During.Count)
	near(t, ms, c.Before.P99Ns, "response before")
	require.EqualValues(t, 10_000, out.Run.Counts.Received)
	require.Zero(t, out.Run.Counts.Lost)
	require.True(t, out.Run.Verdict.Valid, out.Run.Verdict.Reasons)
	require.Contains(t, eventTexts(out, "consumers")[0], "the consumers begin, ")
	for i, held := range []bool{false, true, true} {
		require.Equal(t, held, out.Run.Thresholds[i].Held, out.Run.Thresholds[i].Expression)
	}
	require.Greater(t, out.Run.Consumption.Lag.MaxMessages, int64(1900), "the backlog is lag, though nobody reads")
	require.Less(t, out.Run.Consumption.Lag.FinalMessages, int64(10))
}

// Too slow to catch up: the figures say so, and a condition on them does not hold.
func TestCatchUpNotReached(t *testing.T) {
	d, script := backlog()
	script.Reading, d.Phases.Drain = 400, 2*time.Second
	d.Thresholds = []string{"catchUp.time<60m"}
	out := measure(t, d, script)
	c := out.Run.Consumption.CatchUp
	require.False(t, c.Reached)
	require.Zero(t, c.TookNs)
	require.Nil(t, c.After)
	require.Equal(t, "not measured", out.Run.Thresholds[0].Value)
	require.False(t, out.Run.Thresholds[0].Held)
	require.Positive(t, out.Run.Counts.NotReceived)
	require.Zero(t, out.Run.Counts.Lost)
}

// A phase that its messages end before the consumers were to begin: they begin then.
func TestConsumersBeginAtTheEndAtTheLatest(t *testing.T) {
	d, script := backlog()
	d.Phases.Duration, d.Producers.Messages, d.Consumers.StartAfter = 0, 1000, time.Hour
	out := measure(t, d, script)
	require.EqualValues(t, 1000, out.Run.Counts.Received)
	require.InDelta(t, time.Second, out.Run.Consumption.CatchUp.BeganNs, float64(20*ms))
}

// An interrupt before the consumers begin: nothing is called lost, and nothing begins.
func TestInterruptBeforeTheConsumersBegin(t *testing.T) {
	d, script := backlog()
	out, err := execute(t, run.Spec{Definition: d}, script, func(p run.Progress) bool { return p.Phase == run.PhaseMeasure })
	require.ErrorIs(t, err, run.ErrInterrupted)
	require.Nil(t, out.Run.Consumption.CatchUp)
	require.Zero(t, out.Run.Counts.Lost+out.Run.Counts.Received)
	require.Equal(t, out.Run.Counts.Acked, out.Run.Counts.NotReceived)
}

// Members come and go: everything is received once whoever is there.
func TestMembersComeAndGo(t *testing.T) {
	d := consuming(1000, 10*time.Second)
	d.Consumers.Count, d.Consumers.Groups, d.Consumers.Mode = 1, 2, "group"
	d.Consumers.Changes = []workloads.Change{
		{At: 2 * time.Second, Kind: workloads.Add, Count: 2}, {At: 4 * time.Second, Kind: workloads.Remove, Count: 1}, {At: 6 * time.Second, Kind: workloads.Kill, Count: 1}}
	synctest.Test(t, func(t *testing.T) {
		clock := run.NewClock()
		target := synthetic.New(synthetic.Script{Latency: ms, Delivery: ms, Partitions: 6}, clock)
		out, err := run.Execute(t.Context(), run.Spec{Definition: d, Clock: clock, Target: target})
		require.NoError(t, err)
		consistent(t, out)
		require.EqualValues(t, 2*10_000, out.Run.Counts.Received)
		require.Zero(t, out.Run.Counts.Lost+out.Run.Counts.Duplicated)
		require.Equal(t, []string{"2 consumers joined in each group", "a consumer left in each group", "a consumer was killed in each group"}, eventTexts(out, "consumers"))
		require.EqualValues(t, 2, target.Killed(), "one of each group, and only by kill")
		require.Empty(t, out.Run.Verdict.Warnings)
	})
}

// Changes that the phase was too short for are told, since the run is not what was asked for.
func TestChangesThatCameTooLate(t *testing.T) {
	d := consuming(1000, 0)
	d.Producers.Messages = 1000
	d.Consumers.Mode, d.Consumers.Changes = "group", []workloads.Change{{At: 500 * ms, Kind: workloads.Add, Count: 1}, {At: time.Hour, Kind: workloads.Kill, Count: 1}}
	out := measure(t, d, synthetic.Script{Latency: ms, Partitions: 2})
	require.Equal(t, []string{"a consumer joined"}, eventTexts(out, "consumers"))
	require.Contains(t, out.Run.Verdict.Warnings, "the measured phase was too short for 1 of consumers.changes")
}

// A consumer that cannot be opened later ends the run, with what was measured.
func TestConsumersThatCannotBegin(t *testing.T) {
	d, script := backlog()
	script.OpenConsumerErr = errors.New("no such topic")
	out, err := execute(t, run.Spec{Definition: d}, script, nil)
	require.ErrorContains(t, err, "opening consumer 0: no such topic")
	require.Positive(t, out.Run.Counts.Acked)
	require.False(t, out.Run.Verdict.Valid)
}

// In a group messages may come twice; that breaks no promise of the producer's.
func TestDuplicatesOfAGroupBreakNothing(t *testing.T) {
	for mode, want := range map[string]int{"group": 3, "partition": 4} {
		d := consuming(1000, 2*time.Second)
		d.Consumers.Mode = mode
		out, err := execute(t, run.Spec{Definition: d, Idempotent: true}, synthetic.Script{Latency: ms, Partitions: 2}, nil)
		require.NoError(t, err)
		require.Len(t, out.Run.Thresholds, want, mode)
	}
}

// settling is a target whose consumers need a while, or never read.
type settling struct {
	run.Target
	settle func(context.Context) error
}

func (s settling) Settle(ctx context.Context) error { return s.settle(ctx) }

// The load waits until consumers read.
func TestTheLoadWaitsForTheConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := run.NewClock()
		d := consuming(1000, 2*time.Second)
		begun := clock.Now()
		target := settling{synthetic.New(synthetic.Script{Latency: ms, Partitions: 2}, clock), func(context.Context) error { time.Sleep(3 * time.Second); return nil }}
		out, err := run.Execute(t.Context(), run.Spec{Definition: d, Clock: clock, Target: target})
		require.NoError(t, err)
		require.EqualValues(t, 2000, out.Run.Counts.Received)
		require.InDelta(t, 3*time.Second+d.Phases.WarmUp+d.Phases.Duration, clock.Now()-begun, float64(time.Second))
	})
	synctest.Test(t, func(t *testing.T) {
		clock := run.NewClock()
		target := settling{synthetic.New(synthetic.Script{}, clock), func(context.Context) error { return errors.New("the group does not settle") }}
		_, err := run.Execute(t.Context(), run.Spec{Definition: consuming(1000, time.Second), Clock: clock, Target: target})
		require.EqualError(t, err, "waiting for the consumers: the group does not settle")
	})
}

func eventTexts(out *run.Outcome, kind string) (list []string) {
	for _, e := range out.Run.Events {
		if e.Kind == kind {
			list = append(list, e.Text)
		}
	}
	return list
}

// marking is a target that tells an event of its own, half a second into the measured phase.
type marking struct {
	run.Target
	clock run.Clock
	at    int64
}

func (m *marking) Mark(ctx context.Context, edge run.Edge) {
	if edge == run.MeasureStart {
		m.at = m.clock.Now() + int64(500*ms)
	}
	m.Target.Mark(ctx, edge)
}

func (m *marking) Report(ctx context.Context) (run.Report, error) {
	r, err := m.Target.Report(ctx)
	r.Events = append(r.Events, results.Event{AtNs: m.at, DurationNs: int64(ms), Kind: "rebalance", Text: "told"})
	return r, err
}

// A target's events are told on the engine's clock, and kept since the start of the measured phase.
func TestEventsOfTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := run.NewClock()
		target := &marking{Target: synthetic.New(synthetic.Script{Latency: ms, Partitions: 2}, clock), clock: clock}
		out, err := run.Execute(t.Context(), run.Spec{Definition: consuming(1000, 2*time.Second), Clock: clock, Target: target})
		require.NoError(t, err)
		require.Contains(t, out.Run.Events, results.Event{AtNs: int64(500 * ms), DurationNs: int64(ms), Kind: "rebalance", Text: "told"})
	})
}
