package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// begun is a sweep of four runs of which the first is done and the second was interrupted.
func begun(t *testing.T, signal syscall.Signal, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	p := start(t, dir, nil, args("run", "quick", light, "--duration", "1500ms", "--sweep", "payload.size=100,200", "--repeat", "2",
		"--ceiling", "none", "--out", "r", more)...)
	p.says("[2/4] size=200: measure")
	p.signal(signal)
	p.wait()
	return dir
}

// runsOf are the runs by point and repeat, with when each began.
func runsOf(r *results.Result) map[string]string {
	out := map[string]string{}
	for _, p := range r.Points {
		for _, one := range p.Runs {
			out[p.ID+string(rune('0'+one.Repeat))] = one.StartedAt.String()
		}
	}
	return out
}

func TestResumeGoesOn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		says   string
		signal syscall.Signal
		given  []string // beside --resume
	}{
		{"after Ctrl-C", syscall.SIGINT, nil},
		{"after the process was killed, with the workload named again", syscall.SIGKILL, args("quick", light, "--duration", "1500ms",
			"--sweep", "payload.size=100,200", "--repeat", "2")},
	} {
		t.Run(row.says, func(t *testing.T) {
			dir := begun(t, row.signal)
			before := loadResult(t, filepath.Join(dir, "r"))
			require.True(t, before.Interrupted, "whatever ended it, the result says that it is not all")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "r", ".p01-r1.hlog-123456"), []byte("half"), 0o600))
			done := map[string]string{}
			for _, p := range before.Points {
				for _, one := range p.Runs {
					if one.Incomplete {
						require.Equal(t, syscall.SIGINT, row.signal, "a process that was killed keeps nothing of what it was doing")
						require.Contains(t, one.Verdict.Reasons[0], "interrupted")
					} else {
						done[p.ID+string(rune('0'+one.Repeat))] = one.StartedAt.String()
					}
				}
			}
			require.NotEmpty(t, done)
			require.Less(t, len(done), 4)
			kbenchIn(t, dir, args("run", row.given, "--ceiling", "none", "--resume", "r", "-q")...).requireCode(t, codeDone)
			after := loadResult(t, filepath.Join(dir, "r"))
			require.False(t, after.Interrupted)
			runs := runsOf(after)
			require.Len(t, runs, 4, "all points, all repeats, once")
			for at, began := range done {
				require.Equal(t, began, runs[at], "what was finished is kept")
			}
			require.Len(t, after.Resumed, 1)
			require.Equal(t, len(done), after.Resumed[0].Kept)
			require.Equal(t, before.StartedAt, after.StartedAt)
			for i, p := range after.Points {
				for j := range p.Runs {
					series, err := opened(t, dir).ReadSeries(&after.Points[i].Runs[j])
					require.NoError(t, err)
					require.Equal(t, p.Runs[j].Counts.Acked, series[results.SeriesResponse].Count(), "the files are those of the run")
				}
			}
			left, err := filepath.Glob(filepath.Join(dir, "r", ".*"))
			require.NoError(t, err)
			require.Empty(t, left, "nothing half-written is left")

			e := kbenchIn(t, dir, "run", "--resume", "r", "--ceiling", "none")
			e.requireCode(t, codeDone)
			require.Equal(t, runs, runsOf(loadResult(t, filepath.Join(dir, "r"))), "nothing was left to do")
		})
	}
}

func opened(t *testing.T, dir string) *results.Dir {
	d, err := results.OpenDir(filepath.Join(dir, "r"))
	require.NoError(t, err)
	return d
}

// What does not go with a result is refused, in a line, and the result stays as it was.
func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	dir := begun(t, syscall.SIGINT)
	path := filepath.Join(dir, "r", "result.json")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	same := args("quick", light, "--duration", "1500ms", "--sweep", "payload.size=100,200", "--repeat", "2")
	for _, row := range []struct {
		says  string
		given []string
		alter []string // text in the result and what it becomes
		want  string
	}{
		{"another rate", args(same, "--rate", "501"), nil, "the workload is another one: producers.rate was 500 and is 501; begin anew, or give what was given then"},
		{"another workload", args("max-throughput"), nil, "the workload is another one: "},
		{"more repeats", args(same, "--repeat", "3"), nil, "repeat was 2 and is 3"},
		{"another seed", args(same, "--set", "seed=5"), nil, "seed was 1 and is 5"},
		{"a place for results", args("--out", "x"), nil, "--out and --resume: results go where those are"},
		{"an older kbench's", nil, []string{`"schema": 3`, `"schema": 2`}, "the result has schema version 2, and this kbench writes 3"},
		{"a newer kbench's", nil, []string{`"schema": 3`, `"schema": 9`}, "was written by a newer kbench"},
		{"a plan that this kbench would not make", nil, []string{`"label": "size=200"`, `"label": "size=20"`}, `point p01 is "size=200" here and "size=20" in the result`},
		{"another machine", nil, []string{`"hostname": "`, `"hostname": "not-`}, "points would differ by the machine"},
		{"another cluster", nil, []string{`"clusterId": "`, `"clusterId": "not-`}, "points would differ by the cluster"},
		{"files that hold something else", nil, []string{`"hash": "`, `"hash": "0`}, "the files that the workload names hold something else"},
	} {
		t.Run(row.says, func(t *testing.T) {
			text := string(whole)
			if row.alter != nil {
				require.Contains(t, text, row.alter[0])
				text = strings.Replace(text, row.alter[0], row.alter[1], 1)
			}
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			e := kbenchIn(t, dir, args("run", row.given, "--resume", "r", "--ceiling", "none")...)
			require.Contains(t, []int{codeUsage, codeError}, e.code)
			require.Contains(t, e.err, row.want)
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, string(now))
		})
	}
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	e := kbenchIn(t, dir, "run", "--resume", "nowhere")
	require.Contains(t, e.err, "--resume: results: cannot open the result directory")

	d, _, err := results.Resume(filepath.Join(dir, "r"))
	require.NoError(t, err)
	e = kbenchIn(t, dir, "run", "--resume", "r")
	require.Contains(t, e.err, "another kbench writes in r; wait until it has ended")
	require.NoError(t, d.Release())
}
