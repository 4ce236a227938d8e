package results_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// One directory of every version, as the kbench of its time wrote it, is read with all its files, and
// what is written of it now is of this version. Whoever raises the version adds a directory.
func TestEveryVersionIsRead(t *testing.T) {
	for version := 1; version <= results.Schema; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			dir, err := results.OpenDir(filepath.Join("testdata", fmt.Sprintf("version-%d", version)))
			require.NoError(t, err)
			r, err := dir.Load()
			require.NoError(t, err)
			require.Equal(t, version, r.Schema)
			require.Equal(t, "quick", r.Workload.Name)
			require.Len(t, r.Points, 2)
			for i, point := range r.Points {
				require.Len(t, point.Runs, 1)
				run := &point.Runs[0]
				require.Equal(t, i, run.Repeat)
				require.EqualValues(t, 1000, run.Counts.Acked)
				series, err := dir.ReadSeries(run)
				require.NoError(t, err)
				for name, kept := range run.Series {
					if kept.Count > 0 {
						require.Equal(t, kept.Count, series[name].Count(), name)
						require.Equal(t, kept.P99Ns, results.Summarise(series[name]).P99Ns, name)
					}
				}
				rows, err := dir.ReadTimeline(run)
				require.NoError(t, err)
				acked := int64(0)
				for _, row := range rows {
					acked += row.Acked
					require.Zero(t, row.RSSBytes, "not known then")
				}
				require.GreaterOrEqual(t, acked, int64(1000), "with the warm-up's")
				require.Equal(t, version >= 2, run.Consumption != nil)
			}
			require.Equal(t, version >= 3, r.Design != nil)
			again, err := results.Encode(r)
			require.NoError(t, err)
			back, err := results.Decode("again", again)
			require.NoError(t, err)
			require.Equal(t, results.Schema, back.Schema)
		})
	}
}
