package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// Check 9: the ceiling is measured and kept, and a run asked for more than 70 % of it says so.
func TestCheck09CeilingAndTheRunsHeldAgainstIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("ceiling", "quick", brief, "--duration", "500ms")...)
	e.requireCode(t, codeDone)
	e.requireWords(t, "[1/2] null target: ", "[2/2] discarding broker: ")
	for _, pattern := range []string{
		`ceiling +[0-9.]+[kM] msg/s on a broker that discards · the engine alone [0-9.]+[kM] msg/s`,
		`p00 null target +1 `, `p01 discarding broker +1 `, "with no cluster behind it",
	} {
		require.Regexp(t, pattern, e.out)
	}
	where := onlyResult(t, dir)
	require.Contains(t, filepath.Base(where), results.CeilingPrefix+"quick-")
	r := loadResult(t, where)
	require.Len(t, r.Ceilings, 1)
	one := r.Ceilings[0]
	require.Greater(t, one.EngineMessagesPerSecond, one.MessagesPerSecond, "the client costs something")
	require.Positive(t, one.MessagesPerSecond)
	require.NotEmpty(t, r.Provenance.Host.Hostname)
	require.Len(t, r.Points, 2)
	for _, p := range r.Points {
		require.Equal(t, "closed", p.Runs[0].Loop, "whatever the workload's rate")
		require.True(t, p.Runs[0].Verdict.Valid, "%v", p.Runs[0].Verdict.Reasons)
		require.FileExists(t, filepath.Join(where, p.Runs[0].Log))
	}
	for _, name := range []string{"report.html", "report.md"} {
		text, err := os.ReadFile(filepath.Join(where, name))
		require.NoError(t, err)
		require.Contains(t, string(text), "on a broker that discards")
	}
	t.Run("a run finds it by itself", func(t *testing.T) {
		e := kbenchIn(t, dir, args("run", "quick", brief, "--rate", "500", "--out", "low")...)
		e.requireCode(t, codeDone)
		run := loadResult(t, filepath.Join(dir, "low")).Points[0].Runs[0]
		require.InEpsilon(t, one.MessagesPerSecond, run.Generator.CeilingPerSecond, 1e-9)
		require.NotContains(t, strings.Join(run.Verdict.Warnings, "\n"), "ceiling")
	})
	t.Run("a rate near it carries a warning", func(t *testing.T) {
		low := *r
		low.Ceilings = []results.Ceiling{one}
		low.Ceilings[0].MessagesPerSecond = 700
		at, err := results.Create(filepath.Join(dir, "made"))
		require.NoError(t, err)
		require.NoError(t, at.Save(&low))
		e := kbenchIn(t, dir, args("run", "quick", light, "--ceiling", "made", "--out", "near")...)
		e.requireCode(t, codeDone)
		require.Contains(t, e.out, "the rate asked for, 500/s, is 71.4 % of this generator's ceiling of 700/s, limit 70 %")
		got := loadResult(t, filepath.Join(dir, "near"))
		require.Equal(t, "made", got.Ceilings[0].From)
	})
	t.Run("none leaves it out, another load is not held against it", func(t *testing.T) {
		e := kbenchIn(t, dir, args("run", "quick", light, "--ceiling", "none", "--out", "without")...)
		e.requireCode(t, codeDone)
		require.Zero(t, loadResult(t, filepath.Join(dir, "without")).Points[0].Runs[0].Generator.CeilingPerSecond)
		e = kbenchIn(t, dir, args("run", "quick", light, "--set", "payload.size=333", "--out", "other")...)
		e.requireCode(t, codeDone)
		require.Zero(t, loadResult(t, filepath.Join(dir, "other")).Points[0].Runs[0].Generator.CeilingPerSecond)
		e = kbenchIn(t, dir, args("run", "quick", light, "--set", "payload.size=333", "--ceiling", where)...)
		e.requireCode(t, codeUsage)
		e.requireOneLine(t, "has no ceiling for this load (quick)", "run kbench ceiling with them")
	})
}

func TestCeilingIsMeasuredWhenAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "quick", light, "--ceiling", "measure", "--out", "r")...)
	e.requireCode(t, codeDone)
	e.requireWords(t, "measuring what this generator can do: quick, null target", "this generator can do ")
	r := loadResult(t, filepath.Join(dir, "r"))
	require.Len(t, r.Ceilings, 1)
	require.Empty(t, r.Ceilings[0].From, "it was measured for this result")
	require.InEpsilon(t, r.Ceilings[0].MessagesPerSecond, r.Points[0].Runs[0].Generator.CeilingPerSecond, 1e-9)
}

func TestCeilingRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "reads.yaml"), []byte("producers: {count: 0}\nconsumers: {count: 1}\ntopics: {name: orders}\n"), 0o644))
	e := kbenchIn(t, dir, args("run", "quick", light, "--out", "r")...)
	e.requireCode(t, codeDone)
	for _, tt := range []struct {
		says  string
		args  []string
		parts []string
	}{
		{"a workload that only reads", args("ceiling", "reads.yaml"), []string{"only consumes", "producers.count"}},
		{"a length that is none", args("ceiling", "--duration", "-1s"), []string{"--duration -1s"}},
		{"a directory that is not there", args("run", light, "--ceiling", "nowhere"), []string{"--ceiling", "nowhere"}},
		{"a result of something else", args("run", light, "--ceiling", "r"), []string{"--ceiling", "has no ceiling"}},
	} {
		e := kbenchIn(t, dir, tt.args...)
		e.requireCode(t, codeUsage)
		e.requireOneLine(t, tt.parts...)
	}
	require.NoDirExists(t, filepath.Join(dir, resultsFolder), "nothing is left behind")
}
