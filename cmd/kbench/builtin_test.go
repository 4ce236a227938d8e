package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// shortened makes every built-in workload a matter of a second, valid however slow the machine is.
var shortened = args(carefree, "--rate", "500", "--duration", "1s", "--repeat", "1", "--ceiling", "none", "-q", "--format", "json",
	"--set", "phases.warmUp=200ms", "--set", "phases.interval=100ms", "--set", "phases.drain=60s")

// builtInRow is a built-in workload, what shortens it beyond that, and what shows that it does what it is for.
type builtInRow struct {
	name  string
	flags []string
	says  func(t *testing.T, r *results.Result, dir string)
}

// set is "--set" before each assignment.
func set(assignments ...string) (flags []string) {
	for _, a := range assignments {
		flags = append(flags, "--set", a)
	}
	return flags
}

// only is the run of a workload with one point.
func only(t *testing.T, r *results.Result) *results.Run {
	t.Helper()
	require.Len(t, r.Points, 1)
	require.Len(t, r.Points[0].Runs, 1)
	return &r.Points[0].Runs[0]
}

var builtInRows = []builtInRow{ // the longest first
	{"rebalance", args(set("consumer.group={heartbeatInterval: 100ms, sessionTimeout: 6s}", "consumers.changes=[300ms add 1, 1s remove 1, 1500ms kill 1]"), "--duration", "4s"),
		func(t *testing.T, r *results.Result, _ string) {
			run := only(t, r)
			require.GreaterOrEqual(t, run.Consumption.Groups[0].Rebalances, int64(1))
			require.Positive(t, run.Consumption.Groups[0].RebalanceMaxNs)
			require.Len(t, eventsOf(run, "consumers"), 3, "one joined, one left, one was killed")
		}},
	{"acks-flush-inflight", args("--sweep", "producer.requiredAcks=0,all", "--sweep", "producer.flush={messages: 100, frequency: 5ms}",
		"--sweep", "net.maxOpenRequests=5", "--sweep", "channelBufferSize=16"), acksFlushInFlight},
	{"backlog", args(set("consumers.startAfter=500ms"), "--duration", "2s"), func(t *testing.T, r *results.Result, _ string) {
		run := only(t, r)
		require.GreaterOrEqual(t, run.Consumption.CatchUp.BacklogMessages, int64(1), "something was written before they began")
		require.GreaterOrEqual(t, run.Consumption.CatchUp.BeganNs, int64(500*time.Millisecond))
		require.True(t, run.Consumption.CatchUp.Reached)
		require.NotNil(t, run.Consumption.CatchUp.Before)
	}},
	{"broker-restart", args(set("faults=[at=1s kind=cut for=500ms broker=first]"), "--duration", "3s"), func(t *testing.T, r *results.Result, _ string) {
		require.Equal(t, true, r.Settings["producer.idempotent"])
		requireGotOver(t, only(t, r), "cut", 300*time.Millisecond)
	}},
	{"channel-buffer", args("--sweep", "channelBufferSize=1,16", set("phases.interval=50ms")), bursts},
	{"compression", args("--sweep", "producer.compression=none,zstd"), func(t *testing.T, r *results.Result, _ string) {
		require.Len(t, r.Points, 2)
		require.EqualValues(t, 1, r.Points[0].Runs[0].Batches.CompressionRatio)
		require.Greater(t, r.Points[1].Runs[0].Batches.CompressionRatio, 1.5, "half of a message compresses away")
	}},
	{"end-to-end", nil, func(t *testing.T, r *results.Result, _ string) {
		run := only(t, r)
		require.EqualValues(t, 500, run.Series[results.SeriesE2E].Count)
		require.Equal(t, run.Counts.Acked, run.Counts.Received)
	}},
	{"fan-out", args("--sweep", "consumers.groups=1,3"), func(t *testing.T, r *results.Result, _ string) {
		for i, groups := range []int{1, 3} {
			run := r.Points[i].Runs[0]
			require.Len(t, run.Consumption.Groups, groups)
			require.EqualValues(t, 500*groups, run.Counts.Received, "each receives everything")
		}
	}},
	{"idempotent-vs-not", args("--sweep", "net.maxOpenRequests=5"), func(t *testing.T, r *results.Result, _ string) {
		require.Equal(t, "all", r.Settings["producer.requiredAcks"])
		require.Equal(t, []any{false, true}, []any{r.Points[0].Settings["producer.idempotent"], r.Points[1].Settings["producer.idempotent"]})
	}},
	{"keys-skewed", args("--rate", "2k", "--sweep", "payload.keys={kind: uniform, n: 100000},{kind: zipf, n: 100000, skew: 2}"), func(t *testing.T, r *results.Result, _ string) {
		even, skewed := r.Points[0].Runs[0].Parts[0].Acked, r.Points[1].Runs[0].Parts[0].Acked
		require.Less(t, even.Max, 2*even.Median, "evenly spread")
		require.Greater(t, skewed.Max, 5*skewed.Median, "one partition has most of the load")
	}},
	{"latency-at-rate", args("--sweep", "producers.rate=500,1k"), func(t *testing.T, r *results.Result, _ string) {
		for i, rate := range []float64{500, 1000} {
			require.Equal(t, rate, r.Points[i].Runs[0].Rates.TargetMessagesPerSecond)
			require.Positive(t, r.Points[i].Runs[0].Series[results.SeriesResponse].P99Ns)
		}
	}},
	{"many-producers", args("--sweep", "producers.count=20", set("record.perProducer=true")), func(t *testing.T, r *results.Result, _ string) {
		parts := only(t, r).Parts[0]
		require.Equal(t, 20, parts.N)
		require.Equal(t, results.Ends{Min: 25, Median: 25, Max: 25}, parts.Acked, "they share the rate")
	}},
	{"many-topics", args("--sweep", "topics.count=5"), func(t *testing.T, r *results.Result, _ string) { require.Len(t, only(t, r).Topics, 5) }},
	{"max-throughput", args("--rate", "0"), func(t *testing.T, r *results.Result, _ string) {
		run := only(t, r)
		require.Equal(t, "closed", run.Loop)
		require.Equal(t, run.Counts.Acked, run.Series[results.SeriesService].Count)
		require.NotContains(t, run.Series, results.SeriesResponse, "there are no due times")
	}},
	{"message-size", args("--rate", "0", "--sweep", "payload.size=10KiB"), func(t *testing.T, r *results.Result, path string) {
		acked, bytes := int64(0), int64(0)
		for _, row := range timelineOf(t, path, only(t, r)) {
			acked, bytes = acked+row.Acked, bytes+row.AckedBytes
		}
		require.Positive(t, acked)
		require.Equal(t, 10240*acked, bytes)
	}},
	{"partitions", args("--sweep", "topics.partitions=60"), func(t *testing.T, r *results.Result, _ string) {
		require.EqualValues(t, 60, only(t, r).Topics[0].Partitions)
	}},
	{"perf-test", args("--duration", "0s", set("phases.warmUp=0s", "phases.warmUpMessages=100", "producers.messages=300")), func(t *testing.T, r *results.Result, _ string) {
		run := only(t, r)
		require.EqualValues(t, []int64{100, 300}, []int64{run.Phases[0].Counts.Acked, run.Counts.Acked}, "warm-up, and what is in the figures")
		require.EqualValues(t, 300, run.Series[results.SeriesService].Count)
	}},
	{"quick", nil, func(t *testing.T, r *results.Result, _ string) {
		run := only(t, r)
		require.EqualValues(t, []int64{500, 500}, []int64{run.Series[results.SeriesResponse].Count, run.Series[results.SeriesE2E].Count})
	}},
	{"soak", nil, func(t *testing.T, r *results.Result, _ string) {
		require.Subset(t, expressions(only(t, r).Thresholds), []string{"lost=0", "duplicated=0", "reordered=0", "corrupted=0", "errors=0"})
	}},
	{"stall", args(set("faults=[at=500ms kind=stall for=500ms, at=1500ms kind=cut for=100ms, at=2s kind=delay for=300ms delay=40ms]"), "--duration", "3s"),
		func(t *testing.T, r *results.Result, _ string) {
			run := only(t, r)
			requireGotOver(t, run, "stall", 300*time.Millisecond)
			require.Equal(t, []string{"stall", "cut", "delay"}, []string{run.Faults[0].Kind, run.Faults[1].Kind, run.Faults[2].Kind})
		}},
	{"transactions", args("--duration", "600ms"), committed},
}

// Without acknowledgement a message counts once it is written, and there are no answers to measure.
func acksFlushInFlight(t *testing.T, r *results.Result, _ string) {
	require.Len(t, r.Points, 2)
	none, all := r.Points[0].Runs[0], r.Points[1].Runs[0]
	require.Equal(t, []string{"written", "acked"}, []string{none.AckMeaning, all.AckMeaning})
	require.NotContains(t, none.Series, "request.produce")
	require.Positive(t, all.Series["request.produce"].Count)
	require.Len(t, r.Points[0].Settings, 4, "every factor is a setting of the point")
}

// All messages of a burst are due at its start: windows of half its distance have all or nothing.
func bursts(t *testing.T, r *results.Result, path string) {
	require.Len(t, r.Points, 2)
	sizes := map[int64]int{}
	for _, row := range timelineOf(t, path, &r.Points[0].Runs[0]) {
		if row.StartNs >= 0 && row.StartNs < int64(time.Second) {
			sizes[row.Attempted]++
		}
	}
	require.Equal(t, map[int64]int{0: 10, 50: 10}, sizes, "of 500 messages a second")
	require.Positive(t, r.Points[0].Runs[0].Series[results.SeriesDelay].Count)
}

// Without transactions there are none, and with them everything is committed and received.
func committed(t *testing.T, r *results.Result, _ string) {
	require.Len(t, r.Points, 4)
	require.Nil(t, r.Points[0].Runs[0].Transactions)
	for _, p := range r.Points[1:] {
		run := p.Runs[0]
		require.GreaterOrEqual(t, run.Transactions.Committed, int64(1), p.Label)
		require.Equal(t, run.Counts.Acked, run.Transactions.CommittedMessages)
		require.Equal(t, run.Counts.Acked, run.Counts.Received)
		require.Positive(t, run.Series[results.SeriesCommit].Count)
	}
	require.Greater(t, r.Points[3].Runs[0].Transactions.Committed, r.Points[1].Runs[0].Transactions.Committed, "every 10 ms and every second")
}

// requireGotOver asserts that a run's first fault happened, was felt, and that its recovery was looked for.
func requireGotOver(t *testing.T, run *results.Run, kind string, felt time.Duration) {
	t.Helper()
	f := run.Faults[0]
	require.Equal(t, kind, f.Kind)
	require.Empty(t, f.Skipped)
	require.NotNil(t, f.Before)
	require.GreaterOrEqual(t, f.WorstP99Ns, int64(felt))
	require.Equal(t, f.Recovered, f.NotRecovered == "", "a busy machine may not let it, and then it is said why")
	if f.Recovered && f.Before.P99Ns < int64(felt)/results.RecoveredP99Factor {
		require.GreaterOrEqual(t, f.RecoverNs, int64(felt))
	}
	require.Zero(t, run.Counts.Failed+run.Counts.Unknown)
}

func timelineOf(t *testing.T, path string, run *results.Run) []results.TimelineRow {
	t.Helper()
	dir, err := results.OpenDir(path)
	require.NoError(t, err)
	rows, err := dir.ReadTimeline(run)
	require.NoError(t, err)
	return rows
}

func eventsOf(run *results.Run, kind string) (found []results.Event) {
	for _, e := range run.Events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// Every workload that comes with kbench runs, on the embedded broker, and does what its description says.
func TestBuiltInWorkloadsDoWhatTheySay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const atOnce = 8 // they wait most of the time
	slots := make(chan struct{}, atOnce)
	var running []*process
	for _, row := range builtInRows {
		slots <- struct{}{}
		p := start(t, dir, nil, args("run", row.name, shortened, row.flags, "--out", row.name)...)
		running = append(running, p)
		// Owned by the test; ends with its process, which is waited for below.
		go func() {
			<-p.done
			<-slots
		}()
	}
	ended := make([]ending, len(running))
	for i, p := range running {
		ended[i] = p.wait()
	}
	for i, row := range builtInRows {
		t.Run(row.name, func(t *testing.T) {
			ended[i].requireCode(t, codeDone)
			r := loadResult(t, filepath.Join(dir, row.name))
			for _, p := range r.Points {
				require.Empty(t, p.Skipped, p.Label)
				require.Len(t, p.Runs, 1, p.Label)
				counts := p.Runs[0].Counts
				require.Positive(t, counts.Acked, p.Label)
				require.Equal(t, counts.Attempted, counts.Acked, p.Label)
				require.Zero(t, counts.Lost+counts.Corrupted, p.Label)
			}
			row.says(t, r, filepath.Join(dir, row.name))
		})
	}
}

// None is forgotten above.
func TestEveryBuiltInWorkloadIsRun(t *testing.T) {
	var names, rows []string
	for _, i := range workloads.BuiltIn() {
		names = append(names, i.Name)
	}
	for _, row := range builtInRows {
		rows = append(rows, row.name)
	}
	slices.Sort(rows)
	require.Equal(t, strings.Join(names, "\n"), strings.Join(rows, "\n"))
}
