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

// probing makes searches of short probes that hold however slow the machine is, as far as the
// objective lets them.
var probing = args("quick", brief, "--rate", "500", "--ceiling", "none", "--duration", "500ms", "--hold", "900ms",
	"--set", "validity.minRateShare=0.7", "--set", "consumers.count=0")

// Check 16 on a broker: a rate of 1 500/s is the most that the objective allows.
func TestCheck16CapacityOnABroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("capacity", probing, "--slo", "rate<1500/s", "--slo", "errors<0.1%")...)
	e.requireCode(t, codeDone)
	e.requireWords(t, "probe 1 at 500/s: measure", "probe 2 at 1000/s holds", "probe 3 at 2000/s does not hold: ", "hold 1 at ")
	for _, pattern := range []string{
		`capacity +1,[0-9]+ msg/s held for 900 ms with rate<1500/s, errors<0.1%; [12],[0-9]+ msg/s did not\s+hold`,
		`probe 1 +500 +`, `probe 3 +2,000 .*✗ `, `hold [1-6] +1,.*✓ held`, `the figures below are those of the hold runs`, `VALID`,
	} {
		require.Regexp(t, pattern, e.out)
	}
	where := onlyResult(t, dir)
	r := loadResult(t, where)
	require.Len(t, r.Capacity, 1)
	c := r.Capacity[0]
	require.Equal(t, results.CapacityFound, c.Outcome)
	require.Equal(t, []string{"rate<1500/s", "errors<0.1%"}, c.Objectives)
	require.Less(t, c.MessagesPerSecond, 1500.0)
	require.Greater(t, c.MessagesPerSecond, 1000.0)
	require.Greater(t, c.UpperPerSecond, c.AskedPerSecond)
	require.LessOrEqual(t, len(c.Probes), 16)
	requireProbes(t, where, c)

	require.Len(t, r.Points[0].Runs, 1, "the hold run alone")
	hold := r.Points[0].Runs[0]
	require.InEpsilon(t, c.MessagesPerSecond, hold.Rates.MessagesPerSecond, 1e-9, "its figure is the one reported")
	require.Equal(t, int64(900e6), hold.ElapsedNs)
	for name, want := range map[string][]string{
		"report.html": {"chart wide capacity", `id="capacity"`, "did not hold"}, "report.md": {"## Capacity", "✗ rate&lt;1500/s"},
		"plots/capacity.svg": {"<svg"}, "plots/capacity.png": {"PNG"},
	} {
		text, err := os.ReadFile(filepath.Join(where, name))
		require.NoError(t, err)
		for _, part := range want {
			require.Contains(t, string(text), part, name)
		}
	}
}

// requireProbes asserts that every probe had a topic of its own and has its files.
func requireProbes(t *testing.T, where string, c results.Capacity) {
	t.Helper()
	topics, files := map[string]bool{}, map[string]bool{}
	for _, p := range c.Probes {
		require.Equal(t, p.Held, len(p.Reasons) == 0)
		require.False(t, topics[p.Run.Topics[0].Name], "a fresh topic each")
		topics[p.Run.Topics[0].Name] = true
		require.False(t, files[p.Run.Log], "files of its own")
		files[p.Run.Log] = true
		require.FileExists(t, filepath.Join(where, p.Run.Log))
		require.FileExists(t, filepath.Join(where, p.Run.Timeline))
		require.Positive(t, p.Run.Series["response"].P99Ns)
	}
}

func TestCapacityEndings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made, err := results.Create(filepath.Join(dir, "made"))
	require.NoError(t, err)
	e := kbenchIn(t, dir, args("run", "quick", light, "--ceiling", "measure", "--out", "r")...)
	e.requireCode(t, codeDone)
	low := loadResult(t, filepath.Join(dir, "r"))
	low.Ceilings[0].MessagesPerSecond = 900
	require.NoError(t, made.Save(low))
	for _, tt := range []struct {
		says    string
		args    []string
		code    int
		outcome string
		text    string
	}{
		{"everything holds: the generator's ceiling bounds it", args("--slo", "response.p99<60m", "--ceiling", "made"), codeDone,
			results.CapacityCeiling, "that is this generator's ceiling"},
		{"everything holds: the probes are used up", args("--slo", "response.p99<60m", "--probes", "2"), codeDone,
			results.CapacityProbes, "begin with a higher --rate or allow more --probes"},
		{"nothing holds", args("--slo", "response.p99<1ns", "--probes", "2"), codeThreshold,
			results.CapacityNothing, "none: no rate that was probed (250 to 500 msg/s) held"},
		{"nothing holds since the generator gives out", args("--slo", "errors<1%", "--probes", "2", "--set", "validity.maxCpuShare=1e-9"), codeInvalid,
			results.CapacityNothing, "that says nothing of the cluster: the generator gave out (the generator was too busy: "},
	} {
		t.Run(tt.says, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "r")
			e := kbenchIn(t, dir, args("capacity", probing, tt.args, "--out", out)...)
			e.requireCode(t, tt.code)
			require.Contains(t, strings.Join(strings.Fields(e.out), " "), tt.text, "whatever the width")
			r := loadResult(t, out)
			require.Equal(t, tt.outcome, r.Capacity[0].Outcome)
			require.FileExists(t, filepath.Join(out, "report.html"))
			again := kbenchIn(t, dir, "report", out)
			again.requireCode(t, codeDone)
		})
	}
}

func TestCapacityOfEverySetting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("capacity", probing, "--slo", "response.p99<60m", "--probes", "1", "--hold", "300ms",
		"--sweep", "producers.count=1,2,3,4,5", "--repeat", "1", "--out", "r")...)
	e.requireCode(t, codeDone)
	r := loadResult(t, filepath.Join(dir, "r"))
	require.Len(t, r.Capacity, 5)
	of := map[string]bool{}
	for _, c := range r.Capacity {
		of[c.Point] = true
	}
	require.Len(t, of, 5, "each point has a capacity of its own")
	for _, p := range r.Points {
		require.Len(t, p.Runs, 1)
	}
}

func TestInterruptKeepsWhatWasProbed(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, args("capacity", probing, "--slo", "response.p99<60m", "--probes", "50", "--duration", "1s", "--out", "r")...)
	p.says("probe 2 at 1000/s: measure")
	p.signal(syscall.SIGINT)
	e := p.wait()
	e.requireCode(t, codeInterrupted)
	require.Contains(t, e.out, "not finished: ")
	r := loadResult(t, filepath.Join(p.dir, "r"))
	require.True(t, r.Interrupted)
	require.Equal(t, results.CapacityUnfinished, r.Capacity[0].Outcome)
	require.True(t, r.Capacity[0].Probes[0].Held, "the first was finished before")
	require.Zero(t, r.Capacity[0].MessagesPerSecond, "there is no figure without a hold run")
}

func TestCapacityRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tt := range []struct {
		says  string
		args  []string
		parts []string
	}{
		{"no workload", args("--slo", "errors<1%"), []string{"name a workload", "kbench workloads"}},
		{"no objective", args("quick"), []string{"say what has to hold", "--slo 'response.p99<20ms'"}},
		{"no such metric, with the list of those there are", args("quick", "--slo", "latency.p99<20ms"),
			[]string{"--slo: ", `"latency.p99"`, "the metrics: SERIES.STATISTIC with response, service", "p99.99", "lag.growth"}},
		{"no condition", args("quick", "--slo", "fast"), []string{"is no condition", "response.p99<20ms"}},
		{"a unit that is missing", args("quick", "--slo", "response.p99<20"), []string{"needs a unit"}},
		{"what the workload cannot tell", args("quick", "--slo", "rebalance.p99<1s"), []string{"cannot tell", "consumers.mode group"}},
		{"a topic that exists", args("quick", "--slo", "errors<1%", "--set", "topics.name=orders"), []string{"topics.name", "fresh"}},
		{"a sweep of the rate", args("latency-at-rate", "--slo", "errors<1%"), []string{"sweep.producers.rate"}},
		{"no probes", args("quick", "--slo", "errors<1%", "--probes", "0"), []string{"--probes 0"}},
		{"a hold run of no length", args("quick", "--slo", "errors<1%", "--hold", "-1s"), []string{"--hold -1s"}},
	} {
		e := kbenchIn(t, dir, args("capacity", tt.args)...)
		e.requireCode(t, codeUsage)
		e.requireOneLine(t, tt.parts...)
	}
	require.NoDirExists(t, filepath.Join(dir, resultsFolder), "nothing was run")
}
