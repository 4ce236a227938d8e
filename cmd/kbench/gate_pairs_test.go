package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/gate"
)

// gateOf is a gate of runs that take no longer than they must. Their measurement is trusted
// whatever the machine does: what is looked at is how the gate goes, not its figures.
func gateOf(more ...string) []string {
	return args("gate", "--run", "quick", "--rate", "500", "--duration", "200ms", "--out", "g",
		"--set", "phases.warmUp=0s", "--set", "phases.interval=100ms", "--set", "consumers.count=0", "--set", "topics.partitions=1",
		"--set", "validity.maxLateness=1m", "--set", "validity.maxPause=1m", "--set", "validity.maxStolenShare=1",
		"--set", "validity.maxCpuShare=1", "--set", "validity.minRateShare=0.01", more)
}

func decisionIn(t *testing.T, dir string) *gate.Decision {
	t.Helper()
	return decisionOf(t, filepath.Join(dir, "g"))
}

// decisionOf is what the gate in a directory has come to.
func decisionOf(t *testing.T, dir string) *gate.Decision {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, gateJSONFile))
	require.NoError(t, err)
	var d gate.Decision
	require.NoError(t, json.Unmarshal(data, &d))
	return &d
}

// A linger of 50 ms is found in a few seconds, and everything about it is kept.
func TestGateFailsOnADelay(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, gateOf("--a", "producer.flush.messages=1", "--b", "producer.flush.frequency=50ms", "--b", "producer.flush.messages=0", "--junit", "j.xml")...)
	p.says("[1/40] ")
	broker := p.broker()
	e := p.wait()
	e.requireCode(t, codeThreshold)
	requireGone(t, broker)
	require.Contains(t, e.out, "FAIL quick: A producer.flush.messages=1 → B producer.flush.frequency=50ms")
	require.Contains(t, e.err, "look after 8 pairs: FAIL: ")
	d := decisionIn(t, p.dir)
	require.Equal(t, gate.Fail, d.Verdict)
	require.Equal(t, 8, d.Pairs)
	require.Equal(t, "response.p50", d.Metrics[1].Name)
	require.Equal(t, gate.Fail, d.Metrics[1].Verdict)
	require.Greater(t, *d.Metrics[1].AtLeast, 1.05)
	for _, name := range []string{gateMarkdownFile, gateJUnitFile, gateAnnotationsFile, gateBenchFile, gateHTMLFile, "../j.xml", "a/report.html", "b/report.html"} {
		require.FileExists(t, filepath.Join(p.dir, "g", name))
	}
	a, b := loadResult(t, filepath.Join(p.dir, "g", "a")), loadResult(t, filepath.Join(p.dir, "g", "b"))
	require.Len(t, a.Points[0].Runs, 8)
	require.Len(t, b.Points[0].Runs, 8)
	require.NotEqual(t, a.Workload.Hash, b.Workload.Hash)
	orders := map[int]bool{}
	for i := range 8 {
		x, y := a.Points[0].Runs[i], b.Points[0].Runs[i]
		require.Equal(t, x.Repeat, y.Repeat)
		require.Equal(t, 1, max(x.Order, y.Order)-min(x.Order, y.Order), "next to each other")
		orders[x.Order], orders[y.Order] = true, true
	}
	require.Len(t, orders, 16)
	require.NoFileExists(t, filepath.Join(p.dir, "g", ".running"))
	code, out, _ := command("compare", filepath.Join(p.dir, "g", "a"), filepath.Join(p.dir, "g", "b"))
	require.Equal(t, codeDone, code)
	require.Contains(t, out, "unlike     producer.flush.")
}

// Conditions are judged on side B; against them even a better B does not pass.
func TestGateConditionsOnTheNewSide(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, gateOf("--a", "producer.flush.frequency=30ms", "--threshold", "response.p50<1us", "-q")...)
	e := p.wait()
	e.requireCode(t, codeThreshold)
	require.Empty(t, e.out)
	d := decisionIn(t, p.dir)
	require.Equal(t, "response.p50<1us", d.Thresholds[len(d.Thresholds)-1].Expression)
	require.False(t, d.Thresholds[len(d.Thresholds)-1].Held)
}

func TestGateGivesUpOnInvalidRuns(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, gateOf("--set", "validity.maxPause=1ns", "--format", "json")...)
	e := p.wait()
	e.requireCode(t, codeInvalid)
	e.requireWords(t, "[1/40] ", "[2/41] ", "[6/45] ") // a lost pair is run again
	d := decisionIn(t, p.dir)
	require.Equal(t, gate.Invalid, d.Verdict)
	require.Len(t, d.Invalid, 6, "five are forgiven")
	require.Contains(t, d.Invalid[0], "the generator itself stood still")
	var printed gate.Decision
	require.NoError(t, json.Unmarshal([]byte(e.out), &printed), "the decision alone is on standard output")
}

func TestGateInterrupted(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, gateOf()...)
	p.says("[4/40] ")
	p.signal(syscall.SIGINT)
	p.wait().requireCode(t, codeInterrupted)
	d := decisionIn(t, p.dir)
	require.Equal(t, gate.Inconclusive, d.Verdict, "broken off it decides nothing")
	require.True(t, loadResult(t, filepath.Join(p.dir, "g", "a")).Interrupted)
	p = start(t, t.TempDir(), nil, gateOf("--duration", "10m")...)
	p.says("measure")
	p.signal(syscall.SIGINT)
	p.wait().requireCode(t, codeInterrupted)
	require.NoDirExists(t, filepath.Join(p.dir, "g"), "nothing was measured, nothing is left")
}

func TestGateWithoutACluster(t *testing.T) {
	t.Parallel()
	e := kbench(t, "gate", "--run", "quick", "--a-brokers", "127.0.0.1:1", "--b-brokers", "127.0.0.1:1")
	e.requireCode(t, codeError)
	require.Contains(t, e.err, "127.0.0.1:1")
}
