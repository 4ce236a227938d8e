//go:build browser

package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDrafts is for looking at.
func TestDrafts(t *testing.T) {
	out := os.Getenv("DRAFTS")
	for name, f := range map[string]fixture{"open": openStall(t), "invalid": invalidRun(t), "sweep": sweep(t, 3), "closed": closedLoop(t)} {
		require.NoError(t, Write(f.dir, f.result))
		require.NoError(t, os.MkdirAll(filepath.Join(out, name), 0o755))
		require.NoError(t, os.CopyFS(filepath.Join(out, name), os.DirFS(f.dir.Path())))
	}
}
