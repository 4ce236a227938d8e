package synthetic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// A warm-up that a number of messages ends has exactly these, and the measured phase begins with the
// next one.
func TestWarmUpOfANumberOfMessages(t *testing.T) {
	for _, row := range []struct {
		says              string
		producers         int
		rate              float64
		warm, messages    int64
		length            time.Duration
		measured, elapsed int64 // 0: not looked at
	}{
		{"closed loop, ended by messages", 1, 0, 1000, 5000, 0, 5000, 0},
		{"closed loop, a warm-up of less than a run", 1, 0, 1, 5000, 0, 5000, 0},
		{"closed loop of three producers", 3, 0, 1000, 5000, 0, 5000, 0},
		{"closed loop, ended by time", 2, 0, 1000, 0, 2 * time.Second, 0, int64(2 * time.Second)},
		{"by a schedule, ended by messages", 1, 1000, 500, 2000, 0, 2000, int64(2 * time.Second)},
		{"by a schedule, ended by time", 2, 1000, 500, 0, 2 * time.Second, 2000, int64(2 * time.Second)},
	} {
		t.Run(row.says, func(t *testing.T) {
			d := definition(row.rate, row.length)
			d.Producers.Count, d.Producers.Messages, d.Producers.Run = row.producers, row.messages, 64
			d.Phases.WarmUpMessages = row.warm
			out := measure(t, d, synthetic.Script{Capacity: 10_000, Buffer: 100})
			require.Equal(t, []string{"warm-up", "measure"}, phaseNames(out))
			warm := out.Run.Phases[0]
			require.Equal(t, row.warm, warm.Counts.Acked)
			require.Equal(t, -warm.StartNs, warm.LengthNs, "it ends where the measured phase begins")
			require.EqualValues(t, row.warm, warm.Series[results.SeriesService].Count)
			if row.measured > 0 {
				require.Equal(t, row.measured, out.Run.Counts.Acked)
			}
			if row.elapsed > 0 {
				require.Equal(t, row.elapsed, out.Run.ElapsedNs)
			}
			require.EqualValues(t, out.Run.Counts.Acked, out.Run.Series[results.SeriesService].Count)
		})
	}
}

// An interrupt in a warm-up whose end nobody knows leaves a result of nothing measured, with sane times.
func TestInterruptInAWarmUpOfMessages(t *testing.T) {
	d := definition(0, 0)
	d.Producers.Messages, d.Producers.Run, d.Phases.WarmUpMessages = 1, 64, 1e9
	out, err := execute(t, run.Spec{Definition: d}, synthetic.Script{Capacity: 10_000, Buffer: 100},
		func(p run.Progress) bool { return p.Phase == run.PhaseWarmUp && p.Acked > 100 })
	require.ErrorIs(t, err, run.ErrInterrupted)
	require.Zero(t, out.Run.ElapsedNs)
	require.Zero(t, out.Run.Counts.Acked)
	require.Less(t, time.Since(out.Run.StartedAt).Abs(), 100*365*24*time.Hour)
	require.Equal(t, "warm-up", out.Run.Phases[0].Name)
	require.Less(t, out.Run.Phases[0].LengthNs, int64(time.Hour))
}
