package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// shards are results of one workload that two processes ran at the same time.
func shards(t *testing.T, more ...string) string {
	dir := t.TempDir()
	var both sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		// Each is this test's own, ends with its process, and is waited for below.
		both.Go(func() {
			kbenchIn(t, dir, args("run", "quick", light, "--duration", "3s", "--set", "consumers.count=1", "--ceiling", "none",
				"--threshold", "rate>=400/s", "--threshold", "rate>=900/s", "-q", "--out", name, more)...)
		})
	}
	both.Wait()
	return dir
}

func TestMergeJoinsShards(t *testing.T) {
	t.Parallel()
	dir := shards(t)
	e := kbenchIn(t, dir, "merge", "a", "b", "--out", "all")
	a, b, all := loadResult(t, filepath.Join(dir, "a")), loadResult(t, filepath.Join(dir, "b")), loadResult(t, filepath.Join(dir, "all"))
	one, two, run := a.Points[0].Runs[0], b.Points[0].Runs[0], all.Points[0].Runs[0]
	require.Equal(t, one.Counts.Acked+two.Counts.Acked, run.Counts.Acked)
	require.EqualValues(t, 3000, run.Counts.Attempted)
	require.Equal(t, one.Series["response"].Count+two.Series["response"].Count, run.Series["response"].Count)
	require.Equal(t, max(one.Series["response"].MaxNs, two.Series["response"].MaxNs), run.Series["response"].MaxNs)
	require.Equal(t, 1000.0, run.Rates.TargetMessagesPerSecond)
	require.False(t, one.Thresholds[1].Held, "half the load")
	held := run.Rates.MessagesPerSecond >= 900 // on a busy machine the shards may not have begun together
	require.Equal(t, held, run.Thresholds[1].Held, "judged anew, on the whole of it")
	require.Contains(t, []int{codeDone, codeInvalid, codeThreshold}, e.code)
	require.Contains(t, e.out, "merged from 2 results that were measured at the same time: shard-1 on ")
	for _, name := range []string{"report.html", "report.md", "p00-r0.hlog", "p00-r0.csv", "shard-1/result.json", "shard-2/p00-r0.hlog"} {
		require.FileExists(t, filepath.Join(dir, "all", name))
	}
	require.NoFileExists(t, filepath.Join(dir, "all", ".running"))

	e = kbenchIn(t, dir, "merge", "again", "all", "b")
	e.requireCode(t, codeUsage)
	require.Contains(t, e.err, "was merged itself; name its shards")
	require.NoDirExists(t, filepath.Join(dir, "again"), "nothing is left of it")
	e = kbenchIn(t, dir, "merge", "a", "b", "--out", "all")
	e.requireCode(t, codeUsage)
	require.Contains(t, e.err, "is not empty")
	mergedByPlace(t, dir, run)
	e = kbenchIn(t, dir, "merge", "x", "a", "nowhere")
	e.requireCode(t, codeUsage)
	require.Contains(t, e.err, "cannot open the result directory")

	text, err := os.ReadFile(filepath.Join(dir, "b", results.FileName))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b", results.FileName), []byte(strings.Replace(string(text), `"hash": "`, `"hash": "x`, 1)), 0o600))
	e = kbenchIn(t, dir, "merge", "x", "a", "b")
	e.requireCode(t, codeUsage)
	require.Contains(t, e.err, "their workloads differ")
}

// mergedByPlace: the new directory may come first, without --out; what cannot be meant is said.
func mergedByPlace(t *testing.T, dir string, run results.Run) {
	t.Helper()
	kbenchIn(t, dir, "merge", "placed", "a", "b", "-q")
	placed := loadResult(t, filepath.Join(dir, "placed")).Points[0].Runs[0]
	require.Equal(t, run.Counts, placed.Counts)
	require.Equal(t, run.Series, placed.Series)
	for about, row := range map[string]struct {
		args []string
		want string
	}{
		"one result":                    {[]string{"a", "--out", "x"}, "merge needs at least two results and a new directory: kbench merge A B --out DIR"},
		"a place and one result":        {[]string{"x", "a"}, "merge needs at least two results"},
		"results and no place":          {[]string{"a", "b"}, "kbench merge A B --out DIR"},
		"a result where the place goes": {[]string{"a", "b", "placed"}, "a is a result, and the first argument is the new directory; name that with --out: kbench merge a b placed --out DIR"},
		"a place by both":               {[]string{"y", "a", "b", "--out", "x"}, "y is no result, and the new directory is x already: with --out every argument is a result"},
	} {
		e := kbenchIn(t, dir, append([]string{"merge"}, row.args...)...)
		e.requireCode(t, codeUsage)
		e.requireOneLine(t, row.want)
		require.NoDirExists(t, filepath.Join(dir, "x"), about)
	}
}
