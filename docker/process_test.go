//go:build linux

package docker_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A node that is becoming a JVM has no command line for a moment. It must not be taken for one that
// has ended: its pid would be forgotten, and the node with it.
func TestNodeIsKnownByItsCommandLine(t *testing.T) {
	dir := t.TempDir()
	sleeper := exec.Command("bash", "-c", "sleep 600; :", filepath.Join(dir, "node-1.properties"))
	require.NoError(t, sleeper.Start())
	pid := sleeper.Process.Pid
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = sleeper.Process.Kill()
			_ = sleeper.Wait()
		}
	})
	pidFile := filepath.Join(dir, "node-1.pid")
	require.NoError(t, os.WriteFile(pidFile, fmt.Appendln(nil, pid), 0o600))

	// A tr that is given an empty command line the first times.
	tr, err := exec.LookPath("tr")
	require.NoError(t, err)
	late := fmt.Sprintf("#!/bin/sh\necho x >>%[1]s/asked\n[ $(wc -l <%[1]s/asked) -gt 3 ] || exit 0\nexec %[2]s \"$@\"\n", dir, tr)
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "tr"), []byte(late), 0o700)) //nolint:gosec // it is to be run
	require.Equal(t, "yes", running(t, dir, bin+":"+os.Getenv("PATH")), "its command line comes late")
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(asked), "x"))

	require.Equal(t, "yes", running(t, dir, os.Getenv("PATH")), "it runs")
	require.FileExists(t, pidFile)
	require.NoError(t, sleeper.Process.Kill())
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") Z ")
	}, time.Minute, time.Millisecond)
	require.Equal(t, "no", running(t, dir, os.Getenv("PATH")), "it was killed and its parent has not asked for it")
	require.NoFileExists(t, pidFile)
	_ = sleeper.Wait()
	ended = true

	require.NoError(t, os.WriteFile(pidFile, fmt.Appendln(nil, os.Getpid()), 0o600))
	require.Equal(t, "no", running(t, dir, os.Getenv("PATH")), "a stranger has its pid by now")
}

func running(t *testing.T, dir, path string) string {
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "source lib/process.sh; if running 1; then echo yes; else echo no; fi")
	cmd.Env = append(os.Environ(), "DIR="+dir, "PATH="+path)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}
