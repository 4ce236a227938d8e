package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// disturbedBriefly is the built-in workload of faults in a few seconds.
var disturbedBriefly = []string{"--rate", "2k", "--duration", "6s", "--set", "phases.interval=250ms", "--set",
	"faults=[at=1s kind=stall for=500ms, at=3s kind=cut for=300ms, at=4500ms kind=delay for=500ms delay=100ms]"}

// The built-in workload on the embedded broker: each fault happens, is got over, and is told everywhere.
func TestFaultsOfAWorkload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "stall", brief, disturbedBriefly, "--set", "phases.drain=60s", "--out", "r")...)
	e.requireCode(t, codeDone)
	run := loadResult(t, filepath.Join(dir, "r")).Points[0].Runs[0]
	require.Len(t, run.Faults, 3)
	for i, kind := range []string{"stall", "cut", "delay"} {
		f := run.Faults[i]
		require.Equal(t, kind, f.Kind)
		require.Empty(t, f.Skipped)
		require.NotNil(t, f.Before)
		require.Positive(t, f.AtNs)
		require.Positive(t, f.DurationNs)
	}
	require.GreaterOrEqual(t, run.Faults[0].WorstP99Ns, int64(300*time.Millisecond), "the stall was felt")
	require.GreaterOrEqual(t, run.Faults[0].Affected, int64(500))
	require.Zero(t, run.Counts.Lost+run.Counts.Corrupted+run.Counts.Failed)
	require.Contains(t, strings.Join(run.Verdict.Warnings, " "), "proxy")
	marks := 0
	for _, event := range run.Events {
		if event.Kind == "fault" {
			marks++
		}
	}
	require.Equal(t, 3, marks)
	for _, words := range []string{"all connections stalled", "connections cut, new ones refused for 300ms", "all connections delayed by 100ms", "messages affected"} {
		require.Contains(t, strings.Join(strings.Fields(e.out), " "), words)
	}
	for file, words := range map[string]string{"report.html": "all connections stalled", "report.md": "all connections stalled", run.Timeline: ",stall,"} {
		text, err := os.ReadFile(filepath.Join(dir, "r", file))
		require.NoError(t, err)
		require.Contains(t, string(text), words, file)
	}
}

// A limit on the time to recover, held and broken, and one that nothing is known for.
func TestRecoveryThreshold(t *testing.T) {
	t.Parallel()
	stall := []string{"--rate", "2k", "--duration", "4s", "--set", "phases.interval=250ms", "--set", "phases.drain=60s", "--set", "faults=[at=1s kind=stall for=800ms]"}
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "quick", brief, stall, "--threshold", "fault.recovery<1ms", "--out", "r")...)
	e.requireCode(t, codeThreshold)
	run := loadResult(t, filepath.Join(dir, "r")).Points[0].Runs[0]
	held := map[string]bool{}
	for _, c := range run.Thresholds {
		held[c.Expression] = c.Held
	}
	require.Contains(t, held, "fault.recovery<1ms")
	require.False(t, held["fault.recovery<1ms"])
	if run.Faults[0].Recovered { // a machine that is busy may not let it
		code, out, _ := command("gate", filepath.Join(dir, "r"), "--threshold", "fault.recovery<60m")
		require.Equal(t, codeThreshold, code, "the run's own condition stays broken")
		require.Contains(t, out, "✓ fault.recovery<60m held")
	}
	e = kbench(t, args("run", "quick", light, "--threshold", "fault.recovery<1s")...)
	e.requireCode(t, codeUsage)
	e.requireOneLine(t, `"fault.recovery<1s" needs faults`)
}

// On the embedded broker requests fail as asked, and only meanwhile; without a proxy nothing stands
// between.
func TestFaultsOfTheEmbeddedBroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "stall", brief, "--rate", "1k", "--duration", "3s", "--set", "phases.interval=250ms", "--out", "r",
		"--set", "faults=[at=1s kind=error for=500ms request=produce code=not_enough_replicas]")...)
	e.requireCode(t, codeDone)
	run := loadResult(t, filepath.Join(dir, "r")).Points[0].Runs[0]
	require.Equal(t, "Produce answered with NOT_ENOUGH_REPLICAS", run.Faults[0].Text)
	require.Positive(t, run.Batches.Retries, "what was refused is sent again")
	require.Zero(t, run.Counts.Failed+run.Counts.Lost)
	require.NotContains(t, strings.Join(run.Verdict.Warnings, " "), "proxy")
}

func TestFaultsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	_, brokers := keptTopic(t, "orders")
	for _, tc := range []struct {
		says, fault string
		code        int
		words       []string
	}{
		{"a mistyped kind", "at=1s kind=stal for=1s", codeUsage, []string{"--set", "did you mean stall?"}},
		{"after the end", "at=1h kind=cut", codeUsage, []string{"the measured phase ends at 1s"}},
		{"errors of somebody else's broker", "at=100ms kind=error for=1s request=Produce code=NOT_ENOUGH_REPLICAS", codeError, []string{"embedded broker"}},
		{"a broker that is not there", "at=100ms kind=stall for=1s broker=9", codeError, []string{"fault 1", "there is no broker 9"}},
	} {
		t.Run(tc.says, func(t *testing.T) {
			e := kbenchIn(t, t.TempDir(), args("run", "quick", light, "-b", brokers, "--quiet", "--set", "faults=["+tc.fault+"]")...)
			e.requireCode(t, tc.code)
			e.requireOneLine(t, tc.words...)
		})
	}
}

// Leaders that a listed fault moves do not make the run invalid; others do.
func TestLeadersThatAFaultMoves(t *testing.T) {
	t.Parallel()
	c, brokers := keptTopic(t, "moving")
	before := c.Leader("moving", 0)
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "quick", light, "-b", brokers, "--duration", "2s", "--set", "topics.name=moving", "--out", "r",
		"--set", "faults=[at=500ms kind=leader partition=0]")...)
	e.requireCode(t, codeDone)
	run := loadResult(t, filepath.Join(dir, "r")).Points[0].Runs[0]
	require.NotEqual(t, before, c.Leader("moving", 0))
	require.NotEqual(t, run.Topics[0].LeadersBefore, run.Topics[0].LeadersAfter)
	require.Contains(t, run.Faults[0].Text, "leaders of 1 partitions moved (0: ")
	require.True(t, run.Verdict.Valid, "%v", run.Verdict.Reasons)
}
