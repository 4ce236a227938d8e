package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// nightly is a result of the given day.
func nightly(t *testing.T, day int, p50s ...float64) string {
	t.Helper()
	path := writeResult(t, "a", p50s...)
	dir, err := results.OpenDir(path)
	require.NoError(t, err)
	r, err := dir.Load()
	require.NoError(t, err)
	r.StartedAt = time.Date(2026, 3, day, 6, 0, 0, 0, time.UTC)
	r.Points[0].Runs[0].Log = "p00-r0.hlog"
	require.NoError(t, dir.Save(r))
	return path
}

func TestGateBaseline(t *testing.T) {
	at := filepath.Join(t.TempDir(), "history")
	calm, slow := []float64{10, 10.1, 9.9, 10, 10.05, 9.95}, []float64{14, 14.1, 13.9, 14, 14.05, 13.95}
	slower := nightly(t, 4, slow...)
	for _, c := range []struct {
		about string
		args  []string
		code  int
		says  string
		kept  int
		name  string
	}{
		{"the first has nothing beside it, and is kept", []string{nightly(t, 1, calm...)}, codeInconclusive, "no result of the same work", 1, "steady-20260301T060000Z"},
		{"the second passes", []string{nightly(t, 2, calm...)}, codeDone, "PASS steady", 2, "steady-20260302T060000Z"},
		{"the third again", []string{nightly(t, 3, calm...)}, codeDone, "judged beside 2 results", 3, "steady-20260303T060000Z"},
		{"slower: kept, but no measure", []string{slower}, codeThreshold, "--accept makes it the new one", 4, "steady-20260304T060000Z-failed"},
		{"once more says the same", []string{slower}, codeThreshold, "already in the baseline", 4, "steady-20260304T060000Z-failed"},
		{"slower the next night fails too", []string{nightly(t, 5, slow...)}, codeThreshold, "judged beside 3 results", 5, "steady-20260305T060000Z-failed"},
		{"accepted", []string{slower, "--accept"}, codeThreshold, "accepted as the baseline's new measure", 5, "steady-20260304T060000Z-accepted"},
		{"then it is the measure", []string{nightly(t, 6, slow...)}, codeDone, "judged beside 1 results", 6, "steady-20260306T060000Z"},
		{"what cannot be trusted is not kept", []string{nightly(t, 7, 0, 0, 10)}, codeInvalid, "cannot be trusted", 6, ""},
		{"two results", []string{slower, slower}, codeUsage, "name one result", 6, ""},
		{"with --run", []string{"--run", "quick"}, codeUsage, "leave it out with --run", 6, ""},
	} {
		t.Run(c.about, func(t *testing.T) {
			code, out, errOut := command(append([]string{"gate", "--baseline", at}, c.args...)...)
			require.Equal(t, c.code, code, "%s%s", out, errOut)
			require.Contains(t, out+errOut, c.says)
			folders, err := filepath.Glob(filepath.Join(at, "steady-*"))
			require.NoError(t, err)
			require.Len(t, folders, c.kept)
			if c.name != "" {
				require.DirExists(t, filepath.Join(at, c.name))
			}
		})
	}
	page, err := os.ReadFile(filepath.Join(at, trendFile))
	require.NoError(t, err)
	require.Contains(t, string(page), "steady-20260305T060000Z-failed")
	kept := loadResult(t, filepath.Join(at, "steady-20260301T060000Z"))
	require.Empty(t, kept.Points[0].Runs[0].Log, "its files stay where they were")
	code, _, errOut := command("gate", slower, "--accept", "--threshold", "errors=0")
	require.Equal(t, codeUsage, code)
	require.Contains(t, errOut, "--accept goes with --baseline")
	require.NoError(t, os.Mkdir(filepath.Join(at, "stray"), 0o755))
	code, _, errOut = command("gate", "--baseline", at, slower)
	require.Equal(t, codeError, code, "a history must not lose entries silently")
	require.Contains(t, errOut, "stray")
}

// A host that is another each time has no baseline, and nothing of it gets into one.
func TestBaselineOfAPassingHost(t *testing.T) {
	path := nightly(t, 1, 10, 10.1, 9.9)
	dir, err := results.OpenDir(path)
	require.NoError(t, err)
	r, err := dir.Load()
	require.NoError(t, err)
	r.Provenance.Host.Passing = "a container named by its id"
	require.NoError(t, dir.Save(r))
	at := filepath.Join(t.TempDir(), "history")
	code, out, errOut := command("gate", "--baseline", at, path)
	require.Equal(t, codeUsage, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "measure both sides in one job (kbench gate --run)")
	require.NoDirExists(t, at)
	code, _, errOut = command("gate", "--baseline", at, path, "--force")
	require.Equal(t, codeInconclusive, code, errOut)
	require.DirExists(t, at)
}
