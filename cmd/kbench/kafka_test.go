//go:build kafka

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// steady makes a run valid however slow the machine is; a broken threshold still shows.
var steady = []string{
	"--set", "phases.warmUp=500ms", "--set", "phases.drain=60s", "--set", "validity.minRateShare=0",
	"--set", "validity.maxLateness=1h", "--set", "validity.maxPause=1h", "--set", "validity.maxCpuShare=1",
	"--set", "validity.maxStolenShare=1",
}

// on are the flags of a run on a cluster, into dir.
func on(c *kafkatest.Cluster, dir string) []string {
	return []string{"-b", strings.Join(c.Bootstrap, ","), "--out", dir}
}

// kafkaTopics lists the topics of a cluster that this package's runs have made. Tests of other
// packages share the cluster: theirs, and Kafka's own, are left out.
func kafkaTopics(t *testing.T, c *kafkatest.Cluster) []string {
	cl, err := client.NewClient(c.Bootstrap, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	all, err := cl.Topics(t.Context())
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(name string) bool {
		return !strings.HasPrefix(name, "kbench-quick-")
	})
}

// requireTopics waits until a cluster has these topics again: brokers learn of a deletion one after
// the other.
func requireTopics(t *testing.T, c *kafkatest.Cluster, want []string) {
	require.Eventually(t, func() bool { return slices.Equal(want, kafkaTopics(t, c)) }, patience, 100*time.Millisecond, "nothing is left behind")
}

// requireTopicGone waits until a topic is deleted.
func requireTopicGone(t *testing.T, c *kafkatest.Cluster, topic string) {
	require.Eventually(t, func() bool { return !slices.Contains(kafkaTopics(t, c), topic) }, patience, 100*time.Millisecond, "deleted after the run")
}

// requireWholeRun checks a run in which nothing went wrong, and what is told about its topic.
func requireWholeRun(t *testing.T, r *results.Run, nodes int) {
	c := r.Counts
	require.Positive(t, c.Acked)
	require.Equal(t, c.Attempted, c.Acked)
	require.Equal(t, c.Acked, c.Received)
	require.Equal(t, []int64{0, 0, 0, 0, 0, 0}, []int64{c.Failed, c.Unknown, c.Lost, c.Duplicated, c.Reordered, c.Corrupted})
	require.Len(t, r.Topics, 1)
	topic := r.Topics[0]
	require.EqualValues(t, min(3, nodes), topic.ReplicationFactor)
	require.Len(t, topic.LeadersBefore, int(topic.Partitions))
	require.Len(t, topic.LeadersAfter, int(topic.Partitions))
	for _, isr := range [][]int{topic.ISRBefore, topic.ISRAfter} {
		require.Equal(t, slices.Repeat([]int{min(3, nodes)}, int(topic.Partitions)), isr)
	}
	require.NotEmpty(t, topic.Config["max.message.bytes"])
	require.Positive(t, r.Batches.Requests)
}

func TestKafkaQuickRun(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			cluster := kafkatest.Shared(t, nodes)
			dir := filepath.Join(t.TempDir(), "result")
			e := kbench(t, args("run", "quick", on(cluster, dir), "--rate", "2000", "--duration", "3s", steady)...)
			e.requireCode(t, codeDone)
			require.NotContains(t, e.out+e.err, "embedded")
			r := loadResult(t, dir)
			p := r.Provenance.Cluster
			require.False(t, p.Embedded)
			require.NotEmpty(t, p.ClusterID)
			require.Regexp(t, `^[34]\.\d+`, p.Version)
			require.Len(t, p.Brokers, nodes)
			require.Positive(t, p.RTTNs)
			require.Len(t, r.Points, 1)
			run := &r.Points[0].Runs[0]
			requireWholeRun(t, run, nodes)
			require.EqualValues(t, 6000, run.Counts.Attempted, "what the schedule says")
			require.True(t, run.Verdict.Valid, run.Verdict.Reasons)
			for _, s := range []string{results.SeriesResponse, results.SeriesService, results.SeriesDelay, results.SeriesE2E} {
				require.EqualValues(t, 6000, run.Series[s].Count, s)
			}
			require.Positive(t, run.Series[results.SeriesProduce].Count)
			require.Positive(t, run.Series[results.SeriesFetch].Count)
			require.FileExists(t, filepath.Join(dir, run.Log))
			require.FileExists(t, filepath.Join(dir, run.Timeline))
			requireTopicGone(t, cluster, run.Topics[0].Name)
		})
	}
}

// The warm-up is longer than followers of a new topic may take to begin: until then nothing that
// is sent without waiting for them can be read.
func TestKafkaSweep(t *testing.T) {
	cluster := kafkatest.Shared(t, 3)
	dir := filepath.Join(t.TempDir(), "result")
	e := kbench(t, args("run", "quick", on(cluster, dir), "--rate", "500", "--duration", "1s", steady, "--set", "phases.warmUp=3s",
		"--sweep", "producer.requiredAcks=0,1,all", "--sweep", "net.maxOpenRequests=1,5", "--set", "producer.compression=lz4")...)
	e.requireCode(t, codeDone)
	r := loadResult(t, dir)
	require.Len(t, r.Points, 6)
	require.False(t, r.Interrupted)
	for i := range r.Points {
		p := &r.Points[i]
		require.Len(t, p.Runs, 1, p.Label)
		requireWholeRun(t, &p.Runs[0], 3)
		written := fmt.Sprint(p.Settings["producer.requiredAcks"]) == "0"
		require.Equal(t, written, p.Runs[0].AckMeaning == "written", p.Label)
		require.Equal(t, !written, p.Runs[0].Series[results.SeriesProduce].Count > 0, p.Label)
		requireTopicGone(t, cluster, p.Runs[0].Topics[0].Name)
	}
}

func TestKafkaTopicsKeptAndNamed(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	dir := t.TempDir()
	cl, err := client.NewClient(cluster.Bootstrap, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()

	kept := filepath.Join(dir, "kept")
	kbench(t, args("run", "quick", on(cluster, kept), "--rate", "500", "--duration", "1s", steady, "--set", "topics.keep=true")...).requireCode(t, codeDone)
	name := loadResult(t, kept).Points[0].Runs[0].Topics[0].Name
	defer func() { require.NoError(t, cl.DeleteTopics(t.Context(), name)) }()
	before, err := cl.DescribeTopic(t.Context(), name)
	require.NoError(t, err, "kept")

	named := filepath.Join(dir, "named")
	kbench(t, args("run", "quick", on(cluster, named), "--rate", "500", "--duration", "1s", steady, "--set", "topics.name="+name)...).requireCode(t, codeDone)
	run := &loadResult(t, named).Points[0].Runs[0]
	require.Equal(t, name, run.Topics[0].Name)
	requireWholeRun(t, run, 1)
	after, err := cl.DescribeTopic(t.Context(), name)
	require.NoError(t, err, "still there")
	require.Equal(t, before, after)
}

func TestKafkaExitCodes(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	before := kafkaTopics(t, cluster)
	for _, tc := range []struct {
		name  string
		flags []string
		code  int
		says  string
	}{
		{"a threshold that is broken", []string{"--threshold", "response.p99<1us"}, codeThreshold, ""},
		{"a threshold that holds", []string{"--threshold", "response.p99<120s"}, codeDone, ""},
		{"an invalid run", []string{"--set", "validity.maxLateness=1ns", "--set", "validity.maxLatenessShare=0"}, codeInvalid, ""},
		{"a topic that is not there", []string{"--set", "topics.name=no-such-topic"}, codeError, `unknown topic "no-such-topic"`},
		{"more replicas than brokers", []string{"--set", "topics.replicationFactor=3"}, codeError, "INVALID_REPLICATION_FACTOR"},
		{"a key that is none", []string{"--set", "producer.requiredAck=1"}, codeUsage, "producer.requiredAcks"},
		{"as Kafka 2.8 speaks", []string{"--set", "version=2.8"}, codeDone, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := kbench(t, args("run", "quick", on(cluster, filepath.Join(t.TempDir(), "result")), "--rate", "500", "--duration", "1s", steady, tc.flags)...)
			e.requireCode(t, tc.code)
			e.requireWords(t, tc.says)
		})
	}
	requireTopics(t, cluster, before)
}

func TestKafkaInterruptedRunCleansUp(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	before := kafkaTopics(t, cluster)
	dir := filepath.Join(t.TempDir(), "result")
	p := start(t, t.TempDir(), nil, args("run", "quick", on(cluster, dir), "--rate", "500", "--duration", "10m", steady)...)
	awaitNewTopic(t, cluster, before)
	time.Sleep(2 * time.Second) // into the measured phase, which nothing outside can see
	p.signal(syscall.SIGINT)
	p.wait().requireCode(t, codeInterrupted)
	r := loadResult(t, dir)
	require.True(t, r.Interrupted)
	c := r.Points[0].Runs[0].Counts
	require.Positive(t, c.Acked)
	require.Zero(t, c.Lost)
	requireTopics(t, cluster, before)
}

// awaitNewTopic waits until a run has made its topic.
func awaitNewTopic(t *testing.T, cluster *kafkatest.Cluster, before []string) {
	require.Eventually(t, func() bool { return len(kafkaTopics(t, cluster)) > len(before) }, patience, 100*time.Millisecond)
}

// A broker that stands still for a second shows in the response of what was due meanwhile, and
// nothing less is offered.
func TestKafkaStalledBroker(t *testing.T) {
	cluster := kafkatest.Exclusive(t, 1)
	before := kafkaTopics(t, cluster)
	dir := filepath.Join(t.TempDir(), "result")
	p := start(t, t.TempDir(), nil, args("run", "quick", on(cluster, dir), "--rate", "1000", "--duration", "8s", steady)...)
	awaitNewTopic(t, cluster, before)
	pid := cluster.PID(t, 1)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	time.Sleep(4 * time.Second) // into the measured phase, which nothing outside can see
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	time.Sleep(time.Second) // the length of the stall
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	p.wait().requireCode(t, codeDone)
	run := &loadResult(t, dir).Points[0].Runs[0]
	requireWholeRun(t, run, 1)
	require.EqualValues(t, 8000, run.Counts.Attempted, "what the schedule says")
	response := run.Series[results.SeriesResponse]
	require.GreaterOrEqual(t, response.MaxNs, int64(900*time.Millisecond))
	require.GreaterOrEqual(t, response.P99Ns, int64(200*time.Millisecond), "an eighth of the messages were due meanwhile")
}
