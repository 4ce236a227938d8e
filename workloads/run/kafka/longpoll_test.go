package kafka

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

// longPoll is check 19: messages that come seldom while a consumer long-polls have the latency of
// messages, and none that creeps towards the time a fetch may wait.
func longPoll(t *testing.T, bootstrap []string) {
	wait, every, length := 5*time.Second, 400*time.Millisecond, 4*time.Second
	if os.Getenv("KBENCH_SOAK") == "1" {
		every, length = 5*time.Second, time.Minute
	}
	b := bench{d: load(0), cfg: client.NewConfig()}
	b.d.Producers.Count, b.d.Producers.Rate, b.d.Producers.Messages = 1, 1/every.Seconds(), 0
	b.d.Phases.Duration, b.d.Consumers.Count, b.d.Topics.Partitions = length, 1, 1
	b.cfg.Consumer.MaxWait = wait
	out := b.execute(t, bootstrap)
	n := int64(length / every)
	requireWhole(t, out, n)
	for _, name := range []string{results.SeriesResponse, results.SeriesE2E} {
		s := out.Run.Series[name]
		t.Logf("%s of %d messages, one every %v, while fetches wait %v: expected flat and a few ms, seen p50 %v max %v",
			name, s.Count, every, wait, time.Duration(s.P50Ns), time.Duration(s.MaxNs))
		require.Less(t, s.MaxNs, int64(wait/5), "%s is far from the fetch wait", name)
	}
	require.Less(t, meanOf(out, n/2, n), meanOf(out, 0, n/2)+float64(wait/10), "no creep from the first half to the second")
}

// meanOf is the mean e2e over the windows that hold messages from one number to another.
func meanOf(out *run.Outcome, from, to int64) float64 {
	var sum, n float64
	var seen int64
	for _, w := range out.Windows {
		h := w.Series[results.SeriesE2E]
		if h == nil {
			continue
		}
		if seen >= from && seen < to {
			sum += h.Mean() * float64(h.Count())
			n += float64(h.Count())
		}
		seen += h.Count()
	}
	return sum / max(n, 1)
}

func TestCheck19LongPoll(t *testing.T) {
	t.Parallel()
	longPoll(t, start(t, 1).Bootstrap())
}
