//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal: what is written to ours is typed on theirs.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ours.Close() }) // it may be closed already
	require.NoError(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}))
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return ours, theirs
}

// On a terminal progress is a line that is drawn over, the summary has colours, and Ctrl-C is
// typed.
func TestRunOnATerminal(t *testing.T) {
	t.Parallel()
	ours, theirs := openTerminal(t)
	cmd := exec.Command(kbenchBinary(t), long...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "KBENCH_") || strings.HasPrefix(s, "NO_COLOR=") || strings.HasPrefix(s, "TERM=")
	}), "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, theirs.Close())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended when all is well

	screen := &watched{more: make(chan struct{}, 1)}
	read := make(chan struct{})
	// Owned by the test; ends when kbench and its terminal are gone, and is awaited below.
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := ours.Read(buf)
			_, _ = screen.Write(buf[:n]) // never fails
			if err != nil {              // of a terminal that nobody has open any more
				return
			}
		}
	}()
	shows(t, screen, "measure")
	broker := childrenOf(t, cmd.Process.Pid)
	_, err := ours.WriteString("\x03")
	require.NoError(t, err)
	err = cmd.Wait()
	select {
	case <-read:
	case <-time.After(patience):
		t.Fatal("the terminal stays open")
	}
	require.Equal(t, codeInterrupted, cmd.ProcessState.ExitCode(), "%v\n%s", err, screen)
	require.Len(t, broker, 1)
	requireGone(t, broker[0])
	for _, part := range []string{"Ctrl-C again stops at once", "INVALID", "\x1b[31;1m", "\x1b[0m", "what was measured is kept"} {
		require.Contains(t, screen.String(), part)
	}
	require.Regexp(t, `\x1b\[Jinterrupted: waiting`, screen.String(), "told above the bar, which would draw over it")
	require.True(t, loadResult(t, filepath.Join(cmd.Dir, "r")).Interrupted)
}

// shows waits until text is on the screen.
func shows(t *testing.T, screen *watched, text string) {
	t.Helper()
	for bound := time.After(patience); !strings.Contains(screen.String(), text); {
		select {
		case <-screen.more:
		case <-bound:
			t.Fatalf("the screen never shows %q but\n%s", text, screen)
		}
	}
}
