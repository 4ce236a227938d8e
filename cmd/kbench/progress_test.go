package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run"
)

func TestTimeLeft(t *testing.T) {
	began := time.Unix(1000, 0)
	after := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	for about, row := range map[string]struct {
		r    remaining
		now  time.Time
		want string
	}{
		"not begun":                      {remaining{runs: 4, expected: time.Minute}, began, ""},
		"by what is expected":            {remaining{runs: 4, expected: time.Minute, began: began}, after(10), ", 50s left"},
		"by what finished runs took":     {remaining{runs: 4, expected: time.Minute, done: 1, began: began, finished: after(30)}, after(40), ", 1m20s left"},
		"nothing is known of the first":  {remaining{runs: 4, began: began}, after(10), ""},
		"the number of runs depends":     {remaining{runs: unknownRuns, expected: time.Minute, began: began}, after(10), ""},
		"it takes longer than it should": {remaining{runs: 1, expected: time.Minute, began: began}, after(61), ""},
		"less than a second":             {remaining{runs: 1, expected: time.Minute, began: began}, began.Add(59800 * time.Millisecond), ", 1s left"},
	} {
		require.Equal(t, row.want, row.r.text(row.now), about)
	}
}

// A line of a log says where in the plan it is, the phase, and how the run stands.
func TestProgressLines(t *testing.T) {
	var out bytes.Buffer
	show := newProgress(&out, false, 3)
	show.expect(3, time.Hour)
	show.begin(1, &plan.Point{Label: "requiredAcks=all"})
	show.update(run.Progress{Phase: run.PhaseMeasure, Elapsed: 2 * time.Second, Total: 8 * time.Second, Rate: 990, TargetRate: 1000,
		P50: 400 * time.Microsecond, P99: 3 * time.Millisecond, Acked: 1980, Failed: 3, Lag: 17})
	show.update(run.Progress{Phase: run.PhaseMeasure, Elapsed: 3 * time.Second, Total: 8 * time.Second, Acked: 2000})
	require.Regexp(t, `^\[2/3\] requiredAcks=all: measure 2s of 8s, 990 msg/s of 1000, p50 400µs, p99 3ms, lag 17, 3 failed, (59m59s|1h0m0s) left\n$`, out.String(), "and no other for some seconds")
	out.Reset()
	show.done(&results.Run{Rates: results.Rates{MessagesPerSecond: 990}, Verdict: results.Verdict{Reasons: []string{"too late"}}})
	require.Equal(t, "[2/3] requiredAcks=all: 990 msg/s, INVALID: too late\n", out.String())
	require.NotContains(t, out.String(), "\x1b", "no colour in a log")
}

// Lines of one phase come five seconds apart; a new phase has one at once.
func TestProgressLinesComeEveryFewSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		show := newProgress(&out, false, 1)
		show.begin(0, &plan.Point{})
		tell := func(phase run.Phase, acked int64) string {
			out.Reset()
			show.update(run.Progress{Phase: phase, Acked: acked, Rate: 100, Lag: -1})
			return out.String()
		}
		for _, row := range []struct {
			says  string
			after time.Duration // on the virtual clock
			phase run.Phase
			want  string
		}{
			{"the first", 0, run.PhaseMeasure, "measure, 100 msg/s, p50 0s, p99 0s\n"},
			{"too soon for another", lineEvery - time.Millisecond, run.PhaseMeasure, ""},
			{"the second", time.Millisecond, run.PhaseMeasure, "measure, 100 msg/s, p50 0s, p99 0s\n"},
			{"too soon again", time.Second, run.PhaseMeasure, ""},
			{"another phase", 0, run.PhaseDrain, "drain, 100 msg/s, p50 0s, p99 0s\n"},
			{"much later", time.Hour, run.PhaseDrain, "drain, 100 msg/s, p50 0s, p99 0s\n"},
		} {
			time.Sleep(row.after) // on the virtual clock
			require.Equal(t, row.want, tell(row.phase, 1), row.says)
		}
	})
}

// fourSettings is a point of a sweep over four settings.
const fourSettings = "requiredAcks=all flush={bytes: 64KiB, frequency: 5ms} maxOpenRequests=5 channelBufferSize=256"

// On a terminal all figures fit 80 columns, in a row of their own.
func TestProgressInARow(t *testing.T) {
	at := func(elapsed, total time.Duration, rate, target float64, lag int64) run.Progress {
		return run.Progress{Phase: run.PhaseMeasure, Elapsed: elapsed, Total: total, Rate: rate, TargetRate: target, Lag: lag, Acked: 1,
			P50: 412 * time.Microsecond, P99: 120500 * time.Microsecond}
	}
	failing := at(12*time.Second, 30*time.Second, 99_871, 100_000, 12_345)
	failing.Failed, failing.Unknown = 11, 1
	large := at(59*time.Minute+59*time.Second, time.Hour, 1_234_567, 2_000_000, 98_765_432)
	large.Failed, large.P50, large.P99 = 9_999_999, 9999*time.Microsecond, 119900*time.Millisecond
	large.Phase = run.PhaseDrain
	for _, row := range []struct {
		says string
		p    run.Progress
		want string
	}{
		{"before anything", run.Progress{Phase: run.PhasePrepare}, "prepare"},
		{"a rate", at(2*time.Second, 8*time.Second, 990, 1000, 17), "measure 2s/8s, 990/s of 1000, p50 412µs, p99 120.5ms, lag 17"},
		{"a closed loop without consumers", at(2*time.Second, 8*time.Second, 250_000, 0, -1), "measure 2s/8s, 250k/s, p50 412µs, p99 120.5ms"},
		{"failures", failing, "measure 12s/30s, 99.9k/s of 100k, p50 412µs, p99 120.5ms, lag 12.3k, errors 12"},
		{"large numbers", large, "drain 59m59s/1h0m0s, 1.2M/s of 2M, p50 9.999ms, p99 1m59.9s, lag 98.8M, errors 10M"},
	} {
		require.Equal(t, row.want, briefly(row.p), row.says)
	}
	for _, p := range []run.Progress{failing, at(12*time.Second, 30*time.Second, 99_871, 100_000, 12_345)} {
		require.LessOrEqual(t, len([]rune(briefly(p))), 80)
	}
	require.Equal(t, "requiredAcks=all fl…", clip(fourSettings, 20))
	require.Equal(t, fourSettings, clip(fourSettings, len(fourSettings)))
	require.Empty(t, clip(fourSettings, 0))
	require.Empty(t, clip(fourSettings, -5))
}
