package main

import (
	"bytes"
	"testing"
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
