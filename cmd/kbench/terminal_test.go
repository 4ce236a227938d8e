//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal: what is written to ours is typed on theirs.
func openTerminal(t *testing.T, columns uint16) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ours.Close() }) // it may be closed already
	require.NoError(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns}))
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return ours, theirs
}

// session is a kbench that runs on a terminal of its own.
type session struct {
	t      *testing.T
	cmd    *exec.Cmd
	ours   *os.File
	screen *watched
	read   chan struct{} // closed once kbench and its terminal are gone
}

// onTerminal starts kbench on a terminal of so many columns, with env added to a clean environment.
func onTerminal(t *testing.T, columns uint16, env []string, args ...string) *session {
	t.Helper()
	ours, theirs := openTerminal(t, columns)
	s := &session{t: t, cmd: exec.Command(kbenchBinary(t), args...), ours: ours, screen: &watched{more: make(chan struct{}, 1)}, read: make(chan struct{})}
	s.cmd.Dir = t.TempDir()
	s.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "KBENCH_") || strings.HasPrefix(s, "NO_COLOR=") || strings.HasPrefix(s, "TERM=")
	}), append([]string{"TERM=xterm"}, env...)...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirs, theirs, theirs
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, s.cmd.Start())
	require.NoError(t, theirs.Close())
	t.Cleanup(func() { _ = s.cmd.Process.Kill() }) // it has ended when all is well
	// Owned by the session; ends when kbench and its terminal are gone; wait waits for it.
	go func() {
		defer close(s.read)
		buf := make([]byte, 4096)
		for {
			n, err := ours.Read(buf)
			_, _ = s.screen.Write(buf[:n]) // never fails
			if err != nil {                // of a terminal that nobody has open any more
				return
			}
		}
	}()
	return s
}

// wait waits for the end, and is what was shown.
func (s *session) wait(code int) string {
	s.t.Helper()
	err := s.cmd.Wait()
	select {
	case <-s.read:
	case <-time.After(patience):
		s.t.Fatal("the terminal stays open")
	}
	require.Equal(s.t, code, s.cmd.ProcessState.ExitCode(), "%v\n%s", err, s.screen)
	return s.screen.String()
}

// shows waits until text is on the screen.
func (s *session) shows(text string) {
	s.t.Helper()
	for bound := time.After(patience); !strings.Contains(s.screen.String(), text); {
		select {
		case <-s.screen.more:
		case <-bound:
			s.t.Fatalf("the screen never shows %q but\n%s", text, s.screen)
		}
	}
}

// On a terminal progress is drawn over, the summary has colours, and Ctrl-C is typed.
func TestRunOnATerminal(t *testing.T) {
	t.Parallel()
	s := onTerminal(t, 120, nil, long...)
	s.shows("measure")
	broker := childrenOf(t, s.cmd.Process.Pid)
	_, err := s.ours.WriteString("\x03")
	require.NoError(t, err)
	screen := s.wait(codeInterrupted)
	require.Len(t, broker, 1)
	requireGone(t, broker[0])
	for _, part := range []string{"Ctrl-C again stops at once", "INVALID", "\x1b[31;1m", "\x1b[0m", "what was measured is kept"} {
		require.Contains(t, screen, part)
	}
	require.Regexp(t, `\x1b\[Jinterrupted: waiting`, screen, "told above the bar, which would draw over it")
	require.True(t, loadResult(t, filepath.Join(s.cmd.Dir, "r")).Interrupted)
}

// colours are the terminal's sequences that set colours and weights; others move the cursor.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// With NO_COLOR nothing has a colour; progress is drawn as ever.
func TestNoColourOnATerminal(t *testing.T) {
	t.Parallel()
	tooBusy := args("run", "quick", light, "--set", "validity.maxCpuShare=0.0001") // what is INVALID is red
	require.Regexp(t, colours, onTerminal(t, 120, nil, tooBusy...).wait(codeInvalid))
	screen := onTerminal(t, 120, []string{"NO_COLOR=1"}, tooBusy...).wait(codeInvalid)
	require.NotRegexp(t, colours, screen)
	require.Contains(t, screen, "INVALID")
	require.Contains(t, screen, "measure 0s/1s")
}

var cursor = regexp.MustCompile(`\x1b\[[0-9;]*[A-Z]`)

// Progress fits 80 columns, however long the label: the point, the bar and the time left in one row, the
// figures in another.
func TestProgressFitsANarrowTerminal(t *testing.T) {
	t.Parallel()
	screen := onTerminal(t, 80, nil, args("run", "quick", light, "--sweep", "producer.requiredAcks=all", "--sweep", "producer.flush={bytes: 64KiB, frequency: 5ms}",
		"--sweep", "net.maxOpenRequests=1,5", "--sweep", "channelBufferSize=256")...).wait(codeDone)
	bars, figures := 0, 0
	for row := range strings.Lines(cursor.ReplaceAllString(screen, "")) {
		row = strings.TrimRight(row, "\r\n")
		switch {
		case strings.ContainsAny(row, "━─") && strings.HasPrefix(row, "["):
			bars++
			require.Regexp(t, `^\[[12]/2\] requiredAcks=all flush=.*… [━─]{24} `, row)
		case regexp.MustCompile(`^measure .*, \d+/s of 500, p50 \S+, p99 \S+, lag \d+$`).MatchString(row):
			figures++
		default:
			continue
		}
		require.LessOrEqual(t, len([]rune(row)), 80, row)
	}
	require.Positive(t, bars)
	require.Positive(t, figures)
}
