package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files from what the code does now")

// golden compares with a file in testdata, or writes it under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to make it")
	require.Equal(t, string(want), string(got))
}

func TestTerminalColour(t *testing.T) {
	var plain, coloured bytes.Buffer
	f := invalidRun(t)
	require.NoError(t, Terminal(&plain, f.result, TerminalOptions{}))
	require.NoError(t, Terminal(&coloured, f.result, TerminalOptions{Colour: true}))
	require.Contains(t, coloured.String(), "\x1b[31;1mINVALID\x1b[0m")
	bare := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured.String(), "")
	require.Equal(t, plain.String(), bare, "colours change nothing else")
}

func TestTerminalNarrow(t *testing.T) {
	for _, f := range []fixture{openStall(t), sweep(t, 3)} {
		var b bytes.Buffer
		require.NoError(t, Terminal(&b, f.result, TerminalOptions{Width: 80}))
		for _, line := range strings.Split(b.String(), "\n") {
			require.LessOrEqual(t, columns.StringWidth(line), 80, line)
		}
	}
}

func TestTerminal(t *testing.T) {
	for _, test := range []struct {
		name    string
		fixture func(testing.TB) fixture
	}{
		{"open-stall", openStall}, {"invalid", invalidRun}, {"acks-0", acksNone}, {"closed", closedLoop}, {"backlog", backlogRun},
		{"sweep", func(t testing.TB) fixture { return sweep(t, 3) }},
		{"sweep-once", func(t testing.TB) fixture { return sweep(t, 1) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, Terminal(&b, test.fixture(t).result, TerminalOptions{Dir: "kbench-results/steady-20260314T150926Z", Report: "kbench-results/steady-20260314T150926Z/report.html"}))
			for _, line := range bytes.Split(b.Bytes(), []byte("\n")) {
				require.LessOrEqual(t, columns.StringWidth(string(line)), 100, "%s", line)
			}
			require.NotContains(t, b.String(), "\x1b", "no colour unless asked")
			golden(t, "terminal-"+test.name+".txt", b.Bytes())
		})
	}
}
