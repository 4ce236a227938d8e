package security

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files that the guide shows are read, and connect as it says. The mark is
//
//	<!-- test: client.properties is SASL_SSL PLAIN as alice -->
var shown = regexp.MustCompile("(?s)<!-- test: (\\S+) is ([^\n]*?) -->\\s*```[a-z]+\n(.*?)```")

func TestTheGuidesFilesAreRead(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	ca := storeText(t, "ca.pem")
	blocks := shown.FindAllStringSubmatch(string(guide), -1)
	require.Len(t, blocks, 2)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("ca.pem", []byte(ca), 0o600))
	for _, b := range blocks {
		t.Run(b[1], func(t *testing.T) {
			// A password that is typed in place of the dots; Java reads no letters beyond ASCII.
			text := strings.ReplaceAll(b[3], "…", canary)
			require.NoError(t, os.WriteFile(b[1], []byte(text), 0o600))
			s, err := Load(b[1], []string{"KBENCH_SASL_PASSWORD=" + canary})
			require.NoError(t, err)
			require.Equal(t, b[2], s.String())
			require.Equal(t, canary, s.sasl.Password)
			require.NotNil(t, s.tls.RootCAs)
		})
	}
}
