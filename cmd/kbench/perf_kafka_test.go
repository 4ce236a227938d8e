//go:build kafka

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// Kafka's own tools and kbench do the same work by the same flags: each writes as many records of the
// same size, each reads all of them back, and the counts and bytes that they print are the same.
func TestKafkaToolsDoTheSame(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	brokers := strings.Join(cluster.Bootstrap, ",")
	topic := fmt.Sprintf("kbench-tools-%d", time.Now().UnixNano())
	cl, err := client.NewClient(cluster.Bootstrap, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	require.NoError(t, cl.CreateTopics(t.Context(), client.TopicSpec{Name: topic, Partitions: 1, ReplicationFactor: 1}))
	defer func() { require.NoError(t, cl.DeleteTopics(t.Context(), topic)) }()

	flags := args("--topic", topic, "--num-records", "1000", "--record-size", "100", "--throughput", "1000", "--warmup-records", "500",
		"--bootstrap-server", brokers, "--command-property", "acks=all", "linger.ms=5", "compression.type=none")
	theirs := cluster.Script(t, args("tool", "ProducerPerformance", flags)...)
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("produce", flags, carefree, "--out", "p")...)
	e.requireCode(t, codeDone)
	for _, out := range []string{theirs, e.out} {
		requireLine(t, out, producedLine, "1000")
		requireLine(t, lastLine(out), producedLine, "500 steady state")
	}
	run := &loadResult(t, filepath.Join(dir, "p")).Points[0].Runs[0]
	require.EqualValues(t, []int64{500, 0, 0}, []int64{run.Counts.Acked, run.Counts.Failed, run.Counts.Unknown})
	require.EqualValues(t, 500, run.Series[results.SeriesService].Count)

	read := args("--topic", topic, "--num-records", "2000", "--bootstrap-server", brokers, "--timeout", "30000")
	theirs = cluster.Script(t, args("tool", "ConsumerPerformance", read)...)
	e = kbenchIn(t, dir, args("consume", read, carefree, "--out", "c")...)
	e.requireCode(t, codeDone)
	require.Equal(t, strings.SplitN(theirs, "\n", 2)[0], strings.SplitN(e.out, "\n", 2)[0], "the names of the columns")
	for _, out := range []string{theirs, e.out} {
		fields := strings.Split(lastLine(out), ", ")
		require.Len(t, fields, 10, out)
		require.Equal(t, []string{"0.1907", "2000"}, []string{fields[2], fields[4]}, "values of 100 bytes")
	}
}

// One message at a time, each back before the next, on a topic that is made for it.
func TestKafkaEndToEndTool(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	topic := fmt.Sprintf("kbench-tools-e2e-%d", time.Now().UnixNano())
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("e2e", "--topic", topic, "--num-records", "200", "--record-size", "20", "--producer-acks", "all",
		"--bootstrap-server", strings.Join(cluster.Bootstrap, ","), carefree, "--out", "e")...)
	e.requireCode(t, codeDone)
	require.Contains(t, e.out, "does not exist. Will create topic with 1 partition(s) and replication factor = 1")
	require.Regexp(t, `^Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+$`, lastLine(e.out))
	require.EqualValues(t, 200, loadResult(t, filepath.Join(dir, "e")).Points[0].Runs[0].Series[results.SeriesE2E].Count)
	cl, err := client.NewClient(cluster.Bootstrap, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	require.NoError(t, cl.DeleteTopics(t.Context(), topic))
}
