//go:build kafka

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// steadyState are the figures of a tool's line about its steady state.
type steadyState struct{ records, perSecond, mean, most, p50, p95, p99, p999 float64 }

var steadyLine = regexp.MustCompile(`(?m)^(\d+) steady state records sent, ([0-9.]+) records/sec \([0-9.]+ MB/sec\), ([0-9.]+) ms avg latency, ([0-9.]+) ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99\.9th\.$`)

func steadyOf(t *testing.T, out string) steadyState {
	t.Helper()
	found := steadyLine.FindStringSubmatch(out)
	require.NotNil(t, found, out)
	var n [8]float64
	for i, text := range found[1:] {
		var err error
		n[i], err = strconv.ParseFloat(text, 64)
		require.NoError(t, err)
	}
	return steadyState{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]}
}

// median is that of a figure over rounds.
func median(rounds []steadyState, figure func(steadyState) float64) float64 {
	var values []float64
	for _, r := range rounds {
		values = append(values, figure(r))
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// Kafka's own producer tool and kbench say the same of the same load on the same broker, where both hold the rate
// and are warm: throughput within 5 %, the median, 95th and 99th percentile of latency within a millisecond, by
// the medians over interleaved rounds. The load is that of the built-in workload perf-test. In short, that both
// have every figure.
func TestKafkaProducerToolSaysTheSame(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	brokers := strings.Join(cluster.Bootstrap, ",")
	rounds, warmUp, records := 1, 1000, 3000
	soak := os.Getenv("KBENCH_SOAK") == "1"
	if soak {
		rounds, warmUp, records = 5, 10_000, 40_000
	}
	cl, err := client.NewClient(cluster.Bootstrap, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cl.Close()) }) // after the topics are gone
	dir := t.TempDir()
	flags := func(topic string) []string {
		require.NoError(t, cl.CreateTopics(t.Context(), client.TopicSpec{Name: topic, Partitions: 1, ReplicationFactor: 1}))
		t.Cleanup(func() { require.NoError(t, cl.DeleteTopics(context.Background(), topic)) })
		return args("--topic", topic, "--num-records", strconv.Itoa(records), "--warmup-records", strconv.Itoa(warmUp), "--record-size", "100", "--throughput", "2000",
			"--bootstrap-server", brokers, "--command-property", "acks=all", "linger.ms=5", "batch.size=16384")
	}
	var theirs, ours []steadyState
	for round := range rounds {
		topic := fmt.Sprintf("kbench-cross-%d-%d", time.Now().UnixNano(), round)
		java := func() {
			theirs = append(theirs, steadyOf(t, cluster.Script(t, args("tool", "ProducerPerformance", flags(topic+"-java"))...)))
		}
		if round%2 == 0 { // each begins as often as the other
			java()
		}
		e := kbenchIn(t, dir, args("produce", flags(topic+"-kbench"), carefree, "--out", fmt.Sprintf("r%d", round))...)
		e.requireCode(t, codeDone)
		ours = append(ours, steadyOf(t, e.out))
		run := loadResult(t, filepath.Join(dir, fmt.Sprintf("r%d", round))).Points[0].Runs[0]
		t.Logf("round %d: service p50 %.3f ms, p99 %.3f ms", round, float64(run.Series["service"].P50Ns)/1e6, float64(run.Series["service"].P99Ns)/1e6)
		if round%2 == 1 {
			java()
		}
		t.Logf("round %d: Kafka's tool %+v", round, theirs[round])
		t.Logf("round %d: kbench       %+v", round, ours[round])
		for _, figures := range []steadyState{theirs[round], ours[round]} {
			require.EqualValues(t, records-warmUp, figures.records)
			require.Positive(t, figures.perSecond)
			require.Positive(t, figures.mean)
			require.GreaterOrEqual(t, figures.most, figures.p999)
		}
	}
	for _, of := range []struct {
		name   string
		figure func(steadyState) float64
	}{
		{"p50", func(s steadyState) float64 { return s.p50 }}, {"p95", func(s steadyState) float64 { return s.p95 }}, {"p99", func(s steadyState) float64 { return s.p99 }},
	} {
		a, b := median(theirs, of.figure), median(ours, of.figure)
		t.Logf("%s: Kafka's tool %.1f ms, kbench %.1f ms", of.name, a, b)
		if soak {
			assert.LessOrEqual(t, math.Abs(a-b), 1.0, of.name) // all figures are told, whatever holds
		}
	}
	rate := func(s steadyState) float64 { return s.perSecond }
	t.Logf("records/s: Kafka's tool %.1f, kbench %.1f", median(theirs, rate), median(ours, rate))
	if soak {
		assert.InEpsilon(t, median(theirs, rate), median(ours, rate), 0.05)
	}
}
