package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// The forms of the producer in one sweep: every one sends what was asked for, accounts for all of
// it, and has the same series.
func TestFormsOfTheProducerInOneSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "quick", light, "--sweep", "producers.form=callback,channels,sync,batch",
		"--set", "producers.messages=400", "--out", "r")...)
	e.requireWords(t, "form=callback", "form=channels", "form=sync", "form=batch")
	r := loadResult(t, filepath.Join(dir, "r"))
	require.Len(t, r.Points, 4)
	for _, point := range r.Points {
		require.Len(t, point.Runs, 1)
		run := point.Runs[0]
		n := run.Counts
		require.Equal(t, r.Points[0].Runs[0].Counts.Attempted, n.Attempted, point.Label)
		require.Equal(t, n.Attempted, n.Acked+n.Failed+n.Unknown, point.Label)
		require.Equal(t, n.Attempted, n.Acked, point.Label)
		require.Zero(t, n.Lost+n.Duplicated+n.Reordered+n.Corrupted, point.Label)
		for _, series := range []string{results.SeriesResponse, results.SeriesService, results.SeriesDelay, results.SeriesProduce} {
			require.Positive(t, run.Series[series].Count, "%s of %s", series, point.Label)
		}
		require.Equal(t, n.Acked, run.Series[results.SeriesResponse].Count, point.Label)
	}
}

// The forms of the readers in one sweep, by one group and by two: every one receives everything,
// and the lag by partition is kept beside each run.
func TestFormsOfTheReadersInOneSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "quick", light, "--sweep", "consumers.form=batch,message", "--sweep", "consumers.groups=1,2",
		"--set", "producers.messages=400", "--out", "r")...)
	e.requireWords(t, "form=batch", "form=message", "groups=2")
	r := loadResult(t, filepath.Join(dir, "r"))
	kept, err := results.OpenDir(filepath.Join(dir, "r"))
	require.NoError(t, err)
	require.Len(t, r.Points, 4)
	for _, point := range r.Points {
		require.Len(t, point.Runs, 1)
		run := point.Runs[0]
		n := run.Counts
		groups, known := point.Settings["consumers.groups"].(int64)
		require.True(t, known)
		require.Positive(t, n.Acked, point.Label)
		require.Equal(t, groups*n.Acked, n.Received, point.Label)
		require.Zero(t, n.Lost+n.Duplicated+n.Reordered+n.Corrupted, point.Label)
		require.Equal(t, n.Received, run.Series[results.SeriesE2E].Count, point.Label)
		require.Len(t, run.Consumption.Groups, int(groups), point.Label)
		lags, err := kept.ReadLags(&run)
		require.NoError(t, err)
		require.Len(t, lags.Columns, 6*int(groups), point.Label)
	}
}

// Every form in every mode can be laid side by side.
func TestModesOfTheReadersInOneSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "quick", light, "--sweep", "consumers.mode=partition,group", "--sweep", "consumers.form=batch,message",
		"--set", "producers.messages=400", "--out", "r")...)
	e.requireWords(t, "mode=partition", "mode=group", "form=batch", "form=message")
	r := loadResult(t, filepath.Join(dir, "r"))
	require.Len(t, r.Points, 4)
	for _, point := range r.Points {
		require.Len(t, point.Runs, 1)
		n := point.Runs[0].Counts
		require.Equal(t, r.Points[0].Runs[0].Counts.Attempted, n.Attempted, point.Label)
		require.Equal(t, n.Acked, n.Received, point.Label)
		require.Zero(t, n.Lost+n.Duplicated+n.Reordered+n.Corrupted, point.Label)
	}
}

func TestFormsThatMakeNoSenseAreNamed(t *testing.T) {
	t.Parallel()
	e := kbenchIn(t, t.TempDir(), "plan", "quick", "--sweep", "producers.form=callback,batch", "--set", "producer.idempotent=true")
	e.requireCode(t, codeDone)
	require.Contains(t, e.out, "form=batch  (skipped: producers.form: is batch, which cannot be idempotent, and producer.idempotent is true)")
	e = kbenchIn(t, t.TempDir(), "run", "quick", "--set", "producers.form=batch", "--set", "producer.idempotent=true")
	e.requireCode(t, codeUsage)
	e.requireWords(t, "producers.form: is batch, which cannot be idempotent")
}
