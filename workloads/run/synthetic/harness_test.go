package synthetic_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soak is true when checks are to run in their whole length.
var soak = os.Getenv("KBENCH_SOAK") == "1"

// lengthOf is the length of a check's measured phase: whole under soak, else a share of it.
// The formulas that follow take it as T, so they are the same.
func lengthOf(whole, short time.Duration) time.Duration {
	if soak {
		return whole
	}
	return short
}

// definition is a workload of one producer at a rate, paced exactly: on a virtual clock the
// sleep pacer is never late. CPU limits are off, since virtual time has no CPU.
func definition(rate float64, length time.Duration) workloads.Definition {
	return workloads.Definition{
		Seed:      7,
		Producers: workloads.Producers{Count: 1, Rate: rate, Pacer: "sleep", Run: 1000, Schedule: workloads.Schedule{Kind: "constant"}},
		Payload:   workloads.Payload{Size: 0, Stamp: "none"},
		Phases:    workloads.Phases{Duration: length, Drain: 30 * time.Second, Interval: time.Second},
		Validity: workloads.Validity{MinRateShare: 0.99, MaxLateness: 2 * time.Millisecond, MaxLatenessShare: 0.1,
			MaxPause: 100 * time.Millisecond, MaxLittleError: 0.05},
	}
}

// measure executes a definition against a script on a virtual clock.
func measure(t *testing.T, d workloads.Definition, s synthetic.Script) *run.Outcome {
	t.Helper()
	out, err := execute(t, run.Spec{Definition: d}, s, nil)
	require.NoError(t, err)
	return out
}

// execute runs a spec against a script on a virtual clock. When interrupt is given and true,
// the run is interrupted.
func execute(t *testing.T, spec run.Spec, s synthetic.Script, interrupt func(run.Progress) bool) (out *run.Outcome, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if interrupt != nil {
			spec.Progress = func(p run.Progress) {
				if interrupt(p) {
					cancel()
				}
			}
		}
		spec.Clock = run.NewClock()
		spec.Target = synthetic.New(s, spec.Clock)
		out, err = run.Execute(ctx, spec)
	})
	if out != nil {
		consistent(t, out)
	}
	return out, err
}

// consistent is check 4, made of every outcome: no sample is invented and none is lost.
func consistent(t *testing.T, out *run.Outcome) {
	t.Helper()
	c, s := out.Run.Counts, out.Run.Series
	require.Equal(t, c.Attempted, c.Acked+c.Failed+c.Unknown, "attempted = acked + failed + unknown")
	require.Equal(t, c.Acked, s[results.SeriesService].Count, "service has one value a message acked")
	require.Equal(t, c.Failed, s[results.SeriesFailed].Count, "failed ones are in their own series")
	require.Equal(t, c.Unknown, s[results.SeriesUnknown].Count)
	require.Equal(t, c.Received-0, max(s[results.SeriesE2E].Count, c.Received), "at most one e2e value a message received")
	if out.Run.Loop == run.LoopOpen {
		require.Equal(t, c.Acked, s[results.SeriesResponse].Count)
		require.Equal(t, c.Acked, s[results.SeriesDelay].Count)
	}
	var attempted, acked int64
	for _, w := range out.Windows {
		if w.StartNs < 0 {
			continue // left out by a steady state found
		}
		attempted += w.Attempted
		acked += w.Acked
	}
	require.Equal(t, c.Attempted, attempted, "the windows sum to the total")
	require.Equal(t, c.Acked, acked)
}

// tolerance is that of the histograms: 0.2 %.
const tolerance = 0.002

func near(t *testing.T, want time.Duration, gotNs int64, what string) {
	t.Helper()
	t.Logf("%s: expected %v, seen %v", what, want, time.Duration(gotNs))
	require.InEpsilon(t, float64(want), float64(gotNs), tolerance, "%s: want %v, got %v", what, want, time.Duration(gotNs))
}

// within is near for figures that are no times, within a share.
func within(t *testing.T, want, got, share float64, what string) {
	t.Helper()
	t.Logf("%s: expected %.6g ± %.2g %%, seen %.6g", what, want, share*100, got)
	require.InEpsilon(t, want, got, share, what)
}

const ms = time.Millisecond

func merged(out *run.Outcome, series string) *hist.Histogram {
	sum := hist.New()
	for _, w := range out.Windows {
		if h := w.Series[series]; h != nil {
			sum.Merge(h)
		}
	}
	return sum
}
