//go:build kafka

package main

import (
	"context"
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

// A run on a real cluster during which a leader moves and connections are cut, and its topic read back.
func TestKafkaFaultsAndVerify(t *testing.T) {
	c := kafkatest.Shared(t, 3)
	cl, err := client.NewClient(c.Bootstrap, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cl.Close() })
	topic := fmt.Sprintf("kbench-test-verify-%d", time.Now().UnixNano())
	require.NoError(t, cl.CreateTopics(t.Context(), client.TopicSpec{Name: topic, Partitions: 2, ReplicationFactor: 3}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, cl.DeleteTopics(ctx, topic))
	})

	dir := filepath.Join(t.TempDir(), "r")
	e := kbenchIn(t, t.TempDir(), args("run", "quick", on(c, dir), "--rate", "500", "--duration", "3s", steady, "--set", "topics.name="+topic, "--set", "producer.idempotent=true",
		"--set", "faults=[at=500ms kind=leader partition=1, at=1500ms kind=cut for=200ms]", "--quiet")...)
	require.Contains(t, []int{codeDone, codeInvalid}, e.code, "a slow machine may have replicas out of sync: %s", e.err)
	run := loadResult(t, dir).Points[0].Runs[0]
	require.Contains(t, run.Faults[0].Text, "leaders of 1 partitions moved (1: ")
	require.Contains(t, run.Faults[1].Text, "new ones refused for 200ms")
	require.NotContains(t, strings.Join(run.Verdict.Reasons, " "), "leaders moved")
	require.Zero(t, run.Counts.Lost+run.Counts.Corrupted+run.Counts.Reordered+run.Counts.Failed)

	e = kbenchIn(t, t.TempDir(), "verify", topic, "-b", strings.Join(c.Bootstrap, ","), "--format", "json", "--threshold", "duplicated=0")
	e.requireCode(t, codeDone)
	var v results.Verification
	requireJSON(t, e.out, &v)
	require.True(t, v.Complete)
	require.Greater(t, v.Total.Messages, run.Counts.Acked-1)
	require.Equal(t, v.Total.Messages, v.Total.Distinct)
}
