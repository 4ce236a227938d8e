//go:build unix

package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Modes of the test binary as a child of a test.
const modeEnv = "KBENCH_TEST_MODE"

func TestMain(m *testing.M) {
	MaybeServeChild()
	switch os.Getenv(modeEnv) {
	case "parent": // starts a broker, prints its pid and address, and waits to be killed
		c, err := StartChild(context.Background(), ForTest(Options{}))
		if err != nil {
			panic(err)
		}
		fmt.Println(c.PID(), c.Bootstrap()[0])
		select {}
	case "fail":
		fmt.Fprintln(os.Stderr, "cannot bind: no such luck")
		os.Exit(7)
	case "gibberish":
		fmt.Println("Hello, I am a broker")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func startChild(t *testing.T, o Options) *Child {
	t.Helper()
	c, err := StartChild(bounded(t), ForTest(o))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestChildServesInAProcessGroupOfItsOwn(t *testing.T) {
	c := startChild(t, Options{Nodes: 2, Topics: oneTopic(3)})
	require.Len(t, c.Bootstrap(), 2)
	require.Len(t, dial(t, c.Bootstrap()[1]).metadata("t").Topics[0].Partitions, 3)
	group, err := syscall.Getpgid(c.PID())
	require.NoError(t, err)
	require.Equal(t, c.PID(), group)
	require.NotEqual(t, syscall.Getpgrp(), group)
	require.NoError(t, c.Err())

	require.NoError(t, c.Stop())
	require.NoError(t, c.Stop(), "stopping twice is fine")
	require.NoError(t, c.Err(), "an end that was asked for is no error")
	<-c.Exited()
	requireGone(t, c.PID())
}

func TestPausedChildDoesNotAnswerUntilResumed(t *testing.T) {
	c := startChild(t, Options{})
	r := dial(t, c.Bootstrap()[0])
	r.metadata()
	require.NoError(t, c.Pause())
	began := time.Now()
	answered := make(chan time.Duration, 1)
	go func() {
		r.metadata()
		answered <- time.Since(began)
	}()
	select {
	case <-answered:
		t.Fatal("a paused broker answered")
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, c.Resume())
	require.GreaterOrEqual(t, <-answered, 100*time.Millisecond)
}

func TestPausedChildCanBeStopped(t *testing.T) {
	c := startChild(t, Options{})
	require.NoError(t, c.Pause())
	began := time.Now()
	require.NoError(t, c.Stop())
	require.Less(t, time.Since(began), stopBound, "it was asked, not killed")
}

func TestChildThatDiesSaysWhy(t *testing.T) {
	c := startChild(t, Options{})
	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGKILL))
	<-c.Exited()
	var exit *ExitError
	require.ErrorAs(t, c.Err(), &exit)
	require.Contains(t, exit.Error(), "signal: killed")
	require.ErrorAs(t, c.Pause(), &exit)
	require.ErrorAs(t, c.Stop(), &exit, "stopping what has died is told")
}

func TestKillIsNoError(t *testing.T) {
	c := startChild(t, Options{})
	c.Kill()
	require.NoError(t, c.Err())
	requireGone(t, c.PID())
}

func TestFailedStartSaysWhatTheChildSaid(t *testing.T) {
	tests := []struct {
		name, mode string
		parts      []string
	}{
		{"it ends at once", "fail", []string{"ended at once (exit status 7)", "cannot bind: no such luck"}},
		{"it prints no address", "gibberish", []string{"no list of addresses", "Hello, I am a broker"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var heard bytes.Buffer
			_, err := StartChild(bounded(t), ChildOptions{Args: []string{}, Env: []string{modeEnv + "=" + tt.mode}, Stderr: &heard})
			var start *StartError
			require.ErrorAs(t, err, &start)
			for _, part := range tt.parts {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

func TestStartOfSilentChildEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(errors.New("interrupted")) })
	_, err := StartChild(ctx, ChildOptions{Args: []string{}, Env: []string{modeEnv + "=silent"}})
	require.ErrorIs(t, err, context.Canceled)
}

func TestStartWithoutABinary(t *testing.T) {
	_, err := StartChild(t.Context(), ChildOptions{Path: "/nonexistent/kbench"})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "did not start")
}

func TestTakenPortIsToldThroughTheProcess(t *testing.T) {
	bootstrap := serve(t, Options{})
	_, err := StartChild(bounded(t), ForTest(Options{Port: portOf(bootstrap[0])}))
	require.ErrorContains(t, err, "is in use by another program")
}

// A parent that is killed cannot clean up; the broker must end all the same.
func TestChildEndsWhenItsParentIsKilled(t *testing.T) {
	for name, freeze := range map[string]bool{"a running child": false, "a paused child": true} {
		t.Run(name, func(t *testing.T) {
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), modeEnv+"=parent")
			out, err := parent.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, parent.Start())
			var pid int
			var address string
			_, err = fmt.Fscan(out, &pid, &address)
			require.NoError(t, err)
			dial(t, address).metadata()
			if freeze {
				require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
			}
			require.NoError(t, parent.Process.Kill())
			_ = parent.Wait()
			requireGone(t, pid)
		})
	}
}

// requireGone waits until there is no process pid, or only what nobody has reaped yet.
func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") Z ")
	}, 10*time.Second, 5*time.Millisecond, "process %d still runs", pid)
}

func TestTailKeepsTheLastLines(t *testing.T) {
	var last tail
	for i := range 10_000 {
		fmt.Fprintf(&last, "line %d\n", i)
	}
	lines := strings.Split(last.String(), "\n")
	require.Len(t, lines, tailLines)
	require.Equal(t, "    line 9999", lines[len(lines)-1])
}

// A child fails requests for as long as its parent asks for it, and does not mind what is no command.
func TestChildFailsRequestsOnCommand(t *testing.T) {
	c := startChild(t, Options{Topics: oneTopic(1)})
	code := func() int16 { return dial(t, c.Bootstrap()[0]).metadata("t").Topics[0].ErrorCode }
	require.Zero(t, code())
	undo, err := c.Fail(Failure{Key: 3, Code: 5, Count: -1, Topic: "t"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return code() == 5 }, 10*time.Second, 10*time.Millisecond)
	_, err = c.lifeline.Write([]byte("no command\n"))
	require.NoError(t, err)
	require.EqualValues(t, 5, code())
	require.NoError(t, undo())
	require.Eventually(t, func() bool { return code() == 0 }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, c.Close())
	_, err = c.Fail(Failure{Key: 3, Code: 5, Count: -1})
	require.ErrorContains(t, err, "takes no commands any more")
}
