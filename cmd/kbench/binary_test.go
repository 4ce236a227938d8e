package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// The tests of the command line run the built binary, as its users do: exit codes, streams,
// signals and processes are part of what is promised.

// binary is kbench, built once by the first test that needs it.
var binary struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if binary.dir != "" {
		_ = os.RemoveAll(binary.dir) // in the system's folder for such
	}
	os.Exit(code)
}

func kbenchBinary(t testing.TB) string {
	t.Helper()
	binary.once.Do(func() {
		if binary.dir, binary.err = os.MkdirTemp("", "kbench-test-"); binary.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", filepath.Join(binary.dir, "kbench"), ".").CombinedOutput()
		if err != nil {
			binary.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	require.NoError(t, binary.err)
	return filepath.Join(binary.dir, "kbench")
}

// patience bounds whatever a test waits for. It is no measure of kbench: machines that run tests
// may be slow.
const patience = 2 * time.Minute

// brief makes any run short, and valid however slow the machine is.
var brief = []string{
	"--duration", "1s", "--set", "phases.warmUp=200ms", "--set", "validity.minRateShare=0",
	"--set", "validity.maxLateness=1h", "--set", "validity.maxPause=1h", "--set", "validity.maxCpuShare=1",
	"--set", "validity.maxStolenShare=1",
}

// light is brief at a rate that any machine holds.
var light = append([]string{"--rate", "500"}, brief...)

// args joins arguments.
func args(parts ...any) []string {
	var all []string
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			all = append(all, p)
		case []string:
			all = append(all, p...)
		}
	}
	return all
}

// ending is how a process ended and what it said.
type ending struct {
	code     int
	out, err string
	took     time.Duration
}

// process is a kbench that runs, leader of a process group of its own, as a shell would start it.
type process struct {
	t       testing.TB
	cmd     *exec.Cmd
	dir     string
	out     *watched
	err     *watched
	started time.Time
	done    chan struct{} // closed once the process has ended and its output was read
}

// start starts kbench in dir, with env added to a clean environment.
func start(t testing.TB, dir string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, dir: dir, out: &watched{more: make(chan struct{}, 1)}, err: &watched{more: make(chan struct{}, 1)}, done: make(chan struct{})}
	p.cmd = exec.Command(kbenchBinary(t), args...)
	p.cmd.Dir = dir
	p.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "KBENCH_")
	}), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	p.cmd.WaitDelay = 10 * time.Second
	p.started = time.Now()
	require.NoError(t, p.cmd.Start())
	// Owned by the process; ends with it, which Cleanup sees to; wait waits.
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the state says how it ended
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // an error: it has ended
		<-p.done
	})
	return p
}

// wait waits for the end.
func (p *process) wait() ending {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("kbench has not ended; standard error so far:\n%s", p.err)
	}
	return ending{code: p.cmd.ProcessState.ExitCode(), out: p.out.String(), err: p.err.String(), took: time.Since(p.started)}
}

// says waits until text is on standard error.
func (p *process) says(text string) {
	p.t.Helper()
	p.tells(p.err, text)
}

// prints waits until text is on standard output.
func (p *process) prints(text string) {
	p.t.Helper()
	p.tells(p.out, text)
}

func (p *process) tells(w *watched, text string) {
	p.t.Helper()
	bound := time.After(patience)
	for !strings.Contains(w.String(), text) {
		select {
		case <-w.more:
		case <-p.done:
			require.Contains(p.t, w.String(), text, "before it ended")
		case <-bound:
			p.t.Fatalf("never said %q but\n%s", text, w)
		}
	}
}

// signal sends s to the whole group, as a terminal does.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, syscall.Kill(-p.cmd.Process.Pid, s))
}

// broker is the process of the embedded broker.
func (p *process) broker() int {
	p.t.Helper()
	children := childrenOf(p.t, p.cmd.Process.Pid)
	require.Len(p.t, children, 1, "the embedded broker")
	return children[0]
}

// childrenOf finds the processes whose parent is pid.
func childrenOf(t testing.TB, pid int) (children []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		// pid (name) state ppid …, and the name may hold anything.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(t, err)
			children = append(children, id)
		}
	}
	return children
}

// requireGone asserts that a process has ended. Its parent has, so that its end may be some
// instants away.
func requireGone(t testing.TB, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid)
	}, 10*time.Second, 10*time.Millisecond, "process %d is left behind", pid)
}

// zombie says whether a process has ended and only waits to be noticed by its new parent.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	return len(fields) > 0 && fields[0] == "Z"
}

// watched is what a process prints, kept and watched. Written by one goroutine of os/exec.
type watched struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{} // written after something was added, read by says; never closed
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	select {
	case w.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// kbench runs the binary to its end in a folder of its own.
func kbench(t testing.TB, args ...string) ending {
	t.Helper()
	return start(t, t.TempDir(), nil, args...).wait()
}

// kbenchIn runs it in dir.
func kbenchIn(t testing.TB, dir string, args ...string) ending {
	t.Helper()
	return start(t, dir, nil, args...).wait()
}

// requireCode asserts an exit code, showing what was said.
func (e ending) requireCode(t testing.TB, code int) {
	t.Helper()
	require.Equal(t, code, e.code, "stdout:\n%s\nstderr:\n%s", e.out, e.err)
}

// requireOneLine asserts that standard error is one line for people that holds parts.
func (e ending) requireOneLine(t testing.TB, parts ...string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(e.err, "\n"), e.err)
	require.True(t, strings.HasPrefix(e.err, "kbench: "), e.err)
	e.requireWords(t, parts...)
}

// requireWords asserts that standard error holds parts, and nothing that only programmers read.
func (e ending) requireWords(t testing.TB, parts ...string) {
	t.Helper()
	for _, part := range parts {
		require.Contains(t, e.err, part)
	}
	for _, trace := range []string{"goroutine ", "panic", ".go:", "0x", "%!"} {
		require.NotContains(t, e.err, trace)
	}
}

// loadResult reads and checks the result in dir.
func loadResult(t testing.TB, dir string) *results.Result {
	t.Helper()
	d, err := results.OpenDir(dir)
	require.NoError(t, err)
	r, err := d.Load()
	require.NoError(t, err)
	for _, p := range r.Points {
		for _, run := range p.Runs {
			c := run.Counts
			require.Equal(t, c.Attempted, c.Acked+c.Failed+c.Unknown, "every message is counted once")
		}
	}
	return r
}

// onlyResult finds the one result below dir that --out did not name.
func onlyResult(t testing.TB, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, resultsFolder, "*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// requireJSON asserts that text is one JSON value.
func requireJSON(t testing.TB, text string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	require.NoError(t, d.Decode(into))
	require.False(t, d.More(), "more than one value")
}
