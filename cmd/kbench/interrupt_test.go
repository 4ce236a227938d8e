package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// long is a run that a test ends.
var long = args("run", "quick", "--rate", "500", brief, "--duration", "10m", "--out", "r")

func TestInterruptKeepsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			p := start(t, t.TempDir(), nil, long...)
			p.says("measure")
			broker := p.broker()
			p.signal(signal)
			e := p.wait()
			e.requireCode(t, codeInterrupted)
			requireGone(t, broker)
			e.requireWords(t, "interrupted: waiting shortly", "kbench: interrupted; what was measured is kept\n")
			require.Contains(t, e.out, "attempted ", "the summary is printed")
			require.Contains(t, e.out, "interrupted")
			r := loadResult(t, filepath.Join(p.dir, "r"))
			require.True(t, r.Interrupted)
			run := r.Points[0].Runs[0]
			require.False(t, run.Verdict.Valid)
			require.Contains(t, run.Verdict.Reasons[0], "interrupted")
			require.Less(t, run.ElapsedNs, int64(10*time.Minute))
			require.Zero(t, run.Counts.Lost, "what was on its way is not lost")
			require.FileExists(t, filepath.Join(p.dir, "r", "report.html"))
		})
	}
}

func TestInterruptBetweenRunsKeepsTheFinishedOnes(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, args("run", "quick", light, "--duration", "300ms", "--repeat", "1000", "--out", "r")...)
	p.says("[2/1000] quick: measure")
	p.signal(syscall.SIGINT)
	p.wait().requireCode(t, codeInterrupted)
	r := loadResult(t, filepath.Join(p.dir, "r"))
	require.GreaterOrEqual(t, len(r.Points[0].Runs), 1)
	require.NotContains(t, strings.Join(r.Points[0].Runs[0].Verdict.Reasons, "\n"), "interrupted", "the first was finished before")
}

func TestSecondInterruptStopsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, long...)
	p.says("measure")
	broker := p.broker()
	require.NoError(t, syscall.Kill(broker, syscall.SIGSTOP), "so that the first interrupt has to wait")
	p.signal(syscall.SIGINT)
	p.says("Ctrl-C again stops at once")
	second := time.Now()
	p.signal(syscall.SIGINT)
	e := p.wait()
	e.requireCode(t, codeInterrupted)
	require.Less(t, time.Since(second), 3*time.Second)
	requireGone(t, broker)
	e.requireWords(t, "kbench: stopped at once")
	require.NoDirExists(t, filepath.Join(p.dir, "r"), "nothing was finished")
}

// A cluster that does not answer any more holds up an interrupt, but not for long.
func TestInterruptOfAFrozenClusterIsBounded(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, args("run", "quick", light, "--out", "r")...)
	p.says("measure")
	broker := p.broker()
	require.NoError(t, syscall.Kill(broker, syscall.SIGSTOP))
	p.says("drain")
	interrupted := time.Now()
	p.signal(syscall.SIGINT)
	e := p.wait()
	e.requireCode(t, codeInterrupted)
	require.Less(t, time.Since(interrupted), 25*time.Second, "2 s for outcomes, 3 s twice to close, and 5 s until the broker is killed")
	requireGone(t, broker)
	run := loadResult(t, filepath.Join(p.dir, "r")).Points[0].Runs[0]
	require.Positive(t, run.Counts.Unknown)
	require.False(t, run.Verdict.Valid)
}

func TestInterruptBeforeMeasuringLeavesNothing(t *testing.T) {
	t.Parallel()
	t.Run("while the run is prepared", func(t *testing.T) {
		p := start(t, t.TempDir(), nil, long...)
		p.says("prepare")
		broker := p.broker()
		p.signal(syscall.SIGINT)
		e := p.wait()
		e.requireCode(t, codeInterrupted) // what it had got to by then depends on the machine
		requireGone(t, broker)
	})
	t.Run("while the cluster is looked for", func(t *testing.T) {
		address := silentPort(t)
		p := start(t, t.TempDir(), nil, args(long, "--brokers", address.String())...)
		<-address.accepted
		p.signal(syscall.SIGINT)
		e := p.wait()
		e.requireCode(t, codeInterrupted)
		e.requireWords(t, "kbench: interrupted before anything was measured\n")
		require.Empty(t, e.out)
		require.NoDirExists(t, filepath.Join(p.dir, "r"))
	})
}

// mutePort is a port that accepts and never answers.
type mutePort struct {
	net.Listener
	accepted chan struct{} // written per connection while somebody may read it; never closed
}

func (s *mutePort) String() string { return s.Addr().String() }

func silentPort(t *testing.T) *mutePort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &mutePort{Listener: l, accepted: make(chan struct{}, 1)}
	done := make(chan struct{})
	// Owned by the test; ends when Cleanup closes the listener, and is awaited there.
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			select {
			case s.accepted <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // ends Accept
		<-done
	})
	return s
}

// closedPort is an address at which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }() // it is the point
	return l.Addr().String()
}

func TestRunWithoutTheBrokerItIsTold(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	closed, mute, page := closedPort(t), silentPort(t).String(), strings.TrimPrefix(web.URL, "http://")
	tests := []struct {
		says, brokers string
		words         []string
	}{
		{"nothing listens", closed, []string{closed, "connection refused", "start a broker there", "--brokers"}},
		{"something else listens", page, []string{page, "--brokers"}},
		{"nobody answers", mute, []string{mute, "no answer in time", "--brokers"}},
		{"no such host", "nosuchhost.invalid:9092", []string{"nosuchhost.invalid:9092", "--brokers"}},
		{"all of several are down", closed + "," + mute, []string{closed, mute}},
	}
	for _, tt := range tests {
		t.Run(tt.says, func(t *testing.T) {
			dir := t.TempDir()
			e := kbenchIn(t, dir, args("run", "quick", light, "--set", "net.dialTimeout=1s", "--brokers", tt.brokers)...)
			e.requireCode(t, codeError)
			e.requireOneLine(t, tt.words...)
			require.Empty(t, e.out)
			require.Less(t, e.took, time.Minute)
			require.NoDirExists(t, filepath.Join(dir, resultsFolder))
		})
	}
}

// A variable that is not set in a script must not lead to figures of another broker.
func TestBrokersThatNameNone(t *testing.T) {
	t.Parallel()
	e := kbench(t, args("run", light, "--brokers", "")...)
	e.requireCode(t, codeUsage)
	e.requireOneLine(t, "--brokers names no broker")
	e = start(t, t.TempDir(), []string{"KBENCH_BROKERS= ,"}, args("run", light)...).wait()
	e.requireCode(t, codeUsage)
	e.requireOneLine(t, "$KBENCH_BROKERS names no broker")
}

// startBroker starts `kbench broker` and returns its address.
func startBroker(t *testing.T, flags ...string) (*process, string) {
	t.Helper()
	p := start(t, t.TempDir(), nil, args("broker", flags)...)
	p.says("embedded broker: ")
	_, address, found := strings.Cut(p.err.String(), "--brokers ")
	require.True(t, found)
	address, _, _ = strings.Cut(address, "\n")
	return p, address
}

func TestRunOnABrokerOfTheUsers(t *testing.T) {
	t.Parallel()
	broker, address := startBroker(t, "--topics", "orders:3", "--nodes", "2")
	dir := t.TempDir()
	e := start(t, dir, []string{"KBENCH_BROKERS=" + address}, args("run", "quick", light, "--set", "topics.name=orders", "--out", "r")...).wait()
	e.requireCode(t, codeDone)
	e.requireWords(t, "on brokers "+address)
	require.Contains(t, e.out, "embedded broker: figures say nothing about Apache Kafka", "also one that was started by hand")
	r := loadResult(t, filepath.Join(dir, "r"))
	require.True(t, r.Provenance.Cluster.Embedded)
	require.Len(t, r.Provenance.Cluster.Brokers, 2)
	require.Equal(t, "orders", r.Points[0].Runs[0].Topics[0].Name)
	require.Equal(t, int32(3), r.Points[0].Runs[0].Topics[0].Partitions)

	t.Run("a topic that is not there", func(t *testing.T) {
		e := kbenchIn(t, dir, args("run", "quick", light, "--bootstrap-server", address, "--set", "topics.name=nope", "--quiet", "--out", "n")...)
		e.requireCode(t, codeError)
		e.requireOneLine(t, `unknown topic "nope"`, "create it")
		require.NoDirExists(t, filepath.Join(dir, "n"))
	})
	t.Run("a broker that dies", func(t *testing.T) {
		p := start(t, dir, nil, args("run", "quick", light, "--duration", "3s", "--set", "phases.drain=1s",
			"--brokers", address, "--repeat", "50", "--out", "d")...)
		p.says("[1/50] quick: measure")
		require.NoError(t, broker.cmd.Process.Kill())
		e := p.wait()
		e.requireCode(t, codeError)
		e.requireWords(t, "the cluster went away during the run", strings.Split(address, ",")[0], "connection refused")
		require.Contains(t, e.out, "INVALID")
		r := loadResult(t, filepath.Join(dir, "d"))
		require.Len(t, r.Points[0].Runs, 1)
		require.Positive(t, r.Points[0].Runs[0].Counts.Attempted)
		require.Positive(t, r.Points[0].Runs[0].Counts.Failed+r.Points[0].Runs[0].Counts.Unknown)
		require.True(t, r.Interrupted)
	})
}

// T9: a run that fails says why, keeps what was measured, and does not exit with 0.
func TestT9EmbeddedBrokerThatDies(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, long...)
	p.says("measure")
	require.NoError(t, syscall.Kill(p.broker(), syscall.SIGKILL))
	killed := time.Now()
	e := p.wait()
	e.requireCode(t, codeError)
	require.Less(t, time.Since(killed), 30*time.Second)
	e.requireWords(t, "embedded broker process ended by itself (signal: killed)")
	require.Contains(t, e.out, "INVALID")
	r := loadResult(t, filepath.Join(p.dir, "r"))
	require.True(t, r.Interrupted)
	require.Zero(t, r.Points[0].Runs[0].Counts.Lost)
}

// Killed itself, kbench cannot clear up, but its broker notices.
func TestKilledRunLeavesNoBroker(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, long...)
	p.says("measure")
	broker := p.broker()
	require.NoError(t, p.cmd.Process.Kill())
	p.wait()
	requireGone(t, broker)
}

func TestBrokerPrintsItsAddressForScripts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	e := kbench(t, "broker", "--port", port)
	e.requireCode(t, codeError)
	e.requireOneLine(t, port, "in use")
	require.NoError(t, l.Close())

	p, address := startBroker(t, "--port", port)
	require.Equal(t, "127.0.0.1:"+port, address)
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	p.signal(syscall.SIGINT)
	e = p.wait()
	e.requireCode(t, codeDone)
	require.Equal(t, address+"\n", e.out)
}
