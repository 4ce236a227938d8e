package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// The checks of truthful measuring that need the wall clock, processes and signals. Bounds are loose:
// the machine may be busy with other tests.

// stopFor stops a process for a while.
func stopFor(t *testing.T, pid int, length time.Duration) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	<-time.After(length)
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
}

// onlyRun is the run of a result that has one.
func onlyRun(t *testing.T, dir string) *results.Run {
	t.Helper()
	r := loadResult(t, dir)
	require.Len(t, r.Points, 1)
	require.Len(t, r.Points[0].Runs, 1)
	return &r.Points[0].Runs[0]
}

// discarding starts a broker that drops what it is sent, and gives its address.
func discarding(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(kbenchBinary(t), "broker", "--discard")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // an error: it has ended
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(io.LimitReader(out, 1000)).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// Check 8: a generator asked for three times what it can do says so: the run is invalid, exit code 5,
// with a reason. So does one that has a processor to spare, and a single producer that can do no more.
func TestCheck08GeneratorTooSlow(t *testing.T) {
	t.Parallel()
	broker := discarding(t)
	// A header that takes longer to make than a message to be sent: hardly anything but its producer is busy.
	laborious := "payload.headers={h: '" + strings.Repeat("{{uuid}} {{text 40 60}} ", 20) + "'}"
	for _, tt := range []struct {
		says   string
		procs  string
		reason string
	}{
		{"one processor", "GOMAXPROCS=1", `(?m)^(the generator was too busy|the generator woke up late|generator-bound): `},
		{"one producer, and processors to spare", "GOMAXPROCS=4", `(?m)^generator-bound: each producer was behind its schedule`},
	} {
		load := args("run", "quick", "-b", broker, "--duration", "1s", "--set", "phases.warmUp=300ms", "--set", "consumers.count=0", "--set", "producers.count=1", "--out", "r", "--set", laborious)
		p := start(t, t.TempDir(), []string{tt.procs}, append(load, "--rate", "0")...)
		p.wait()
		ceiling := onlyRun(t, filepath.Join(p.dir, "r")).Rates.MessagesPerSecond
		require.Positive(t, ceiling)

		p = start(t, t.TempDir(), []string{tt.procs}, append(load, "--rate", fmt.Sprintf("%.0f", 3*ceiling))...)
		e := p.wait()
		e.requireCode(t, codeInvalid)
		run := onlyRun(t, filepath.Join(p.dir, "r"))
		require.False(t, run.Verdict.Valid)
		said := strings.Join(run.Verdict.Reasons, "\n")
		t.Logf("%s: ceiling %.0f/s, asked for three times that: exit %d, expected 5\n%s", tt.says, ceiling, e.code, said)
		require.Contains(t, said, "rate not met (not sustained)")
		require.Regexp(t, tt.reason, said, "and whose fault it is")
		require.True(t, run.Verdict.GeneratorBound())
		require.Contains(t, e.out, "INVALID")
	}
}

// Check 22: a generator that was stopped for two seconds names the pause and its length, and does not
// leave it to read as a slow broker.
func TestCheck22GeneratorStopped(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, "run", "quick", "--rate", "500", "--duration", "5s", "--set", "phases.warmUp=300ms", "--out", "r")
	p.says("measure")
	<-time.After(time.Second)
	stopFor(t, p.cmd.Process.Pid, 2*time.Second)
	e := p.wait()
	e.requireCode(t, codeInvalid)
	run := onlyRun(t, filepath.Join(p.dir, "r"))
	t.Logf("stopped for 2 s: exit %d, expected 5; reasons %q; response p99 %v", e.code, run.Verdict.Reasons, time.Duration(run.Series[results.SeriesResponse].P99Ns))
	require.Regexp(t, regexp.MustCompile(`the generator itself stood still for (1\.9|2|2\.\d+)s, limit 100ms`), strings.Join(run.Verdict.Reasons, "\n"))
	require.GreaterOrEqual(t, run.Generator.PauseMaxNs, int64(1900*time.Millisecond))
	marked := false
	for _, event := range run.Events {
		marked = marked || event.Kind == "pause" && event.DurationNs >= int64(1900*time.Millisecond)
	}
	require.True(t, marked, "the pause is on the time axis")
}

// Check 21: the broker stands still from a second before the end until a second after it. What was due
// then is counted and waited for.
func TestCheck21BrokerStoppedAcrossTheEnd(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, args("run", "quick", "--rate", "2000", brief, "--duration", "4s", "--out", "r")...)
	p.says("measure")
	broker := p.broker()
	<-time.After(3 * time.Second)
	stopFor(t, broker, 2*time.Second)
	p.wait().requireCode(t, codeDone)
	run := onlyRun(t, filepath.Join(p.dir, "r"))
	r := run.Series[results.SeriesResponse]
	t.Logf("expected: 8000 messages, response p99 ≈ %v; seen: %d, %v (max %v)", 1960*time.Millisecond, run.Counts.Acked, time.Duration(r.P99Ns), time.Duration(r.MaxNs))
	require.EqualValues(t, 8000, run.Counts.Attempted)
	require.EqualValues(t, 8000, run.Counts.Acked)
	require.InDelta(t, 1.96, time.Duration(r.P99Ns).Seconds(), 0.8)
	require.InDelta(t, 4, time.Duration(run.ElapsedNs).Seconds(), 0.01, "the drain is no part of the measured phase")
}

// Check 3: a stall longer than what the client's buffer holds. Response, service and delay tell it
// apart: the buffered messages alone are slow in service.
func TestCheck03BrokerStoppedWithSmallBuffer(t *testing.T) {
	t.Parallel()
	const rate, buffer = 5000, 250
	p := start(t, t.TempDir(), nil, args("run", "quick", "--rate", fmt.Sprint(rate), brief, "--duration", "6s", "--out", "r",
		"--set", "producers.count=1", "--set", fmt.Sprintf("producer.buffer.messages=%d", buffer), "--set", "consumers.count=0")...)
	p.says("measure")
	broker := p.broker()
	<-time.After(2 * time.Second)
	stopFor(t, broker, time.Second)
	p.wait().requireCode(t, codeDone)
	dir, err := results.OpenDir(filepath.Join(p.dir, "r"))
	require.NoError(t, err)
	run := onlyRun(t, dir.Path())
	series, err := dir.ReadSeries(run)
	require.NoError(t, err)
	of := func(name string, q float64) time.Duration { return time.Duration(series[name].Quantile(q)) }
	t.Logf("expected: response p98 ≈ 880 ms, service p98 ≤ 100 ms, delay max ≈ 950 ms; seen: %v, %v, %v",
		of(results.SeriesResponse, 0.98), of(results.SeriesService, 0.98), of(results.SeriesDelay, 1))
	require.EqualValues(t, 6*rate, run.Counts.Acked)
	require.InDelta(t, 0.88, of(results.SeriesResponse, 0.98).Seconds(), 0.45)
	require.Less(t, of(results.SeriesService, 0.98), of(results.SeriesResponse, 0.98)/3, "most of the wait is before the client")
	require.InDelta(t, 0.95, of(results.SeriesDelay, 1).Seconds(), 0.5)
}
