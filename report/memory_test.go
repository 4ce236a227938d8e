package report

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// Memory over time is in the page and in the picture where it is known, and nowhere where it is not: in what an
// earlier kbench wrote.
func TestMemoryOverTime(t *testing.T) {
	f := acksNone(t)
	timeline := filepath.Join(f.dir.Path(), f.result.Points[0].Runs[0].Timeline)
	whole, err := os.ReadFile(timeline)
	require.NoError(t, err)
	for _, known := range []bool{true, false} {
		if !known {
			without := regexp.MustCompile(`rss_bytes`).ReplaceAll(whole, []byte("something_else"))
			require.NotEqual(t, whole, without)
			require.NoError(t, os.WriteFile(timeline, without, 0o644))
		}
		require.NoError(t, Write(f.dir, f.result))
		for _, name := range []string{HTMLFile, "plots/timeline-p00.svg"} {
			drawn, err := os.ReadFile(filepath.Join(f.dir.Path(), name))
			require.NoError(t, err)
			require.Equal(t, known, bytes.Contains(drawn, []byte("memory, MiB")), name)
		}
	}
}

// The worst of the windows that a moment stands for is kept, and what is not known stays so.
func TestMemoryOfMoments(t *testing.T) {
	at := func(bytes int64) moment {
		return momentOf(&results.TimelineRow{LengthNs: 1e9, RSSBytes: bytes}, "response")
	}
	require.True(t, math.IsNaN(at(0).rss))
	require.Equal(t, 300.0, together([]moment{at(100), at(300), at(0), at(200)}).rss)
	require.True(t, math.IsNaN(together([]moment{at(0), at(0)}).rss))
}
