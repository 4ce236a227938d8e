package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// Thousands of topics, partitions and producers in one process: every producer sends, every message
// has its outcome, and memory stays within what the guide says. The full size is a soak test.
func TestScale(t *testing.T) {
	// The guide says 1.2 GiB for 14 000 producers, and this a third more; a tenth of them has more each.
	topics, producers, mostRSS := 500, 1400, int64(768<<20)
	if os.Getenv("KBENCH_SOAK") == "1" {
		topics, producers, mostRSS = 5000, 14_000, 1638<<20
	} else {
		t.Parallel()
	}
	brokers := discarding(t)
	e := kbenchIn(t, t.TempDir(), args("run", "quick", brief, "--brokers", brokers, "--format", "json", "--ceiling", "none", "--out", "r",
		"--set", fmt.Sprintf("topics={count: %d, partitions: 2}", topics), "--set", fmt.Sprintf("producers={count: %d, messages: %d, rate: %d}", producers, 5*producers, producers),
		"--duration", "1m", "--set", "consumers.count=0", "--set", "phases.warmUp=1s", "--set", "phases.drain=2m", "--set", "record.perProducer=true")...)
	var r results.Result
	require.NoError(t, json.Unmarshal([]byte(e.out), &r), "%s", e.err)
	run := r.Points[0].Runs[0]
	require.EqualValues(t, 5*producers, run.Counts.Attempted)
	require.Equal(t, run.Counts.Attempted, run.Counts.Acked, "errors: %v, %v", run.Errors, run.Verdict.Reasons)
	require.Len(t, run.Topics, topics)
	require.Equal(t, producers, run.Parts[0].N)
	require.Positive(t, run.Parts[0].Acked.Min, "every producer has sent")
	require.Less(t, run.Generator.MaxRSSBytes, mostRSS)
}

// What there are not enough files for is refused before it begins, with what to do.
func TestFilesAreCounted(t *testing.T) {
	for _, row := range []struct {
		says    string
		set     []string
		brokers int
		want    int
	}{
		{"a connection for each producer", []string{"producers.count=14000"}, 1, 14_000},
		{"to each broker", []string{"producers.count=100"}, 3, 300},
		{"that has one of its partitions", []string{"producers.count=100", "topics.partitions=2"}, 3, 200},
		{"or one for all", []string{"producers.count=14000", "producers.shareConnection=true"}, 3, 3},
		{"consumers of every group", []string{"producers.count=1", "consumers.count=4", "consumers.groups=3"}, 1, 13},
	} {
		d, err := workloads.Load("quick", client.Schema{}, workloads.Overrides{Set: append([]string{"consumers.count=0"}, row.set...)})
		require.NoError(t, err)
		require.Equal(t, row.want+otherFiles, filesNeeded(d, row.brokers), row.says)
	}
	l := loading{overrides: workloads.Overrides{Set: []string{"producers.count=14000"}}}
	_, p, err := l.load([]string{"quick"})
	require.NoError(t, err)
	require.NoError(t, requireFiles(p, 1, 20_000))
	require.ErrorContains(t, requireFiles(p, 1, 1024), "and this process may have 1024: raise the limit (ulimit -n), or set producers.shareConnection=true")
	require.Greater(t, fileLimit(), 64)
}
