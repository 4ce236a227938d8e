package results_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// keepCeiling writes a result with a ceiling below folder.
func keepCeiling(t *testing.T, folder, name, load string, rate float64, age time.Duration, change func(*results.Result)) {
	t.Helper()
	dir, err := results.Create(filepath.Join(folder, name))
	require.NoError(t, err)
	r := &results.Result{
		Provenance: results.Provenance{KbenchVersion: "v1", Host: results.Host{Hostname: "here", CPUs: 2, GOMAXPROCS: 2}},
		Ceilings:   []results.Ceiling{{Load: load, MessagesPerSecond: rate}},
	}
	if change != nil {
		change(r)
	}
	require.NoError(t, dir.Save(r))
	at := time.Now().Add(-age)
	require.NoError(t, os.Chtimes(filepath.Join(folder, name, results.FileName), at, at))
}

func TestFindCeilings(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "of [some] kind") // no pattern
	here := results.Host{Hostname: "here", CPUs: 2, GOMAXPROCS: 2, MemoryBytes: 5}
	require.Empty(t, results.FindCeilings(folder, here, "v1"), "a folder that is not there")
	keepCeiling(t, folder, "ceiling-a", "load", 1, time.Hour, nil)
	keepCeiling(t, folder, "ceiling-b", "load", 2, time.Minute, nil)
	keepCeiling(t, folder, "ceiling-c", "load", 3, 0, func(r *results.Result) { r.Provenance.Host.GOMAXPROCS = 1 })
	keepCeiling(t, folder, "ceiling-d", "load", 4, 0, func(r *results.Result) { r.Provenance.Host.Hostname = "elsewhere" })
	keepCeiling(t, folder, "ceiling-e", "load", 5, 0, func(r *results.Result) { r.Provenance.KbenchVersion = "v2" })
	keepCeiling(t, folder, "another", "load", 6, 0, nil)
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "ceiling-f"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "ceiling-f", results.FileName), []byte("{"), 0o644))

	found := results.FindCeilings(folder, here, "v1")
	require.Len(t, found, 2, "of this host, its processors and this version, in directories of that name, that can be read")
	require.Equal(t, 2.0, found[0].MessagesPerSecond, "the newest first")
	require.Equal(t, filepath.Join(folder, "ceiling-b"), found[0].From)
	require.Equal(t, 1.0, found[1].MessagesPerSecond)

	list, host, err := results.LoadCeilings(filepath.Join(folder, "another"))
	require.NoError(t, err)
	require.Equal(t, "here", host.Hostname)
	require.Equal(t, 6.0, list[0].MessagesPerSecond)
	keepCeiling(t, folder, "plain", "", 0, 0, func(r *results.Result) { r.Ceilings = nil })
	_, _, err = results.LoadCeilings(filepath.Join(folder, "plain"))
	require.ErrorContains(t, err, "no result of `kbench ceiling`")
	_, _, err = results.LoadCeilings(filepath.Join(folder, "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
