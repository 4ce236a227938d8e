package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/broker"
)

// messagesOf are a topic's n messages, of each partition in the order of the log.
func messagesOf(t *testing.T, brokers, topic string, n int) (all []client.Message) {
	t.Helper()
	cl, err := client.NewClient(strings.Split(brokers, ","), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	r, err := cl.NewReader(client.ReaderConfig{Topic: topic, Partitions: []int32{0, 1, 2}, StartOffset: client.FirstOffset})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for range n {
		m, err := r.FetchMessage(t.Context())
		require.NoError(t, err)
		all = append(all, m)
	}
	return all
}

// keysOf are the keys of a topic's n messages, by partition.
func keysOf(t *testing.T, brokers, topic string, n int) (keys [3][]string) {
	t.Helper()
	for _, m := range messagesOf(t, brokers, topic, n) {
		keys[m.Partition] = append(keys[m.Partition], string(m.Key))
	}
	return keys
}

// Random keys are of the range asked for and not in turn; --random-seed decides which.
func TestProduceRandomKeysBySeed(t *testing.T) {
	t.Parallel()
	_, brokers := keptTopic(t, "range", "one", "same", "other")
	dir := t.TempDir()
	written := func(topic, distribution, seed string) [3][]string {
		kbenchIn(t, dir, args("produce", "--topic", topic, "--num-records", "400", "--record-size", "40", "--throughput", "-1", "-b", brokers, "--out", topic,
			"--key-distribution", distribution, "--record-key-range", "50", "--random-seed", seed, carefree)...).requireCode(t, codeDone)
		return keysOf(t, brokers, topic, 400)
	}
	times := func(keys [3][]string) map[string]int {
		n := map[string]int{}
		for _, partition := range keys {
			for _, key := range partition {
				n[key]++
			}
		}
		return n
	}
	one := written("one", "random", "7")
	drawn := times(one)
	unequal := false
	for key, n := range drawn {
		number, err := strconv.Atoi(key)
		require.NoError(t, err)
		require.True(t, number >= 0 && number < 50, key)
		unequal = unequal || n != 8
	}
	require.True(t, unequal, "by chance, some more often than others: %v", drawn)
	require.Equal(t, one, written("same", "random", "7"))
	require.NotEqual(t, drawn, times(written("other", "random", "8")))
	for key, n := range times(written("range", "range", "7")) {
		require.Equal(t, 8, n, "in turn: %s", key)
	}
}

// Texts are told apart by the delimiter as it is: no pattern, and of several characters.
func TestProducePayloadDelimiters(t *testing.T) {
	t.Parallel()
	_, brokers := keptTopic(t, "words", "lines")
	dir := t.TempDir()
	for _, row := range []struct {
		topic, text string
		flags       []string
		want        map[string]bool
	}{
		{"words", "a.b::c d::e\nf", args("--payload-delimiter", "::"), map[string]bool{"a.b": true, "c d": true, "e\nf": true}},
		{"lines", "one\ntwo::2\n", nil, map[string]bool{"one": true, "two::2": true}},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, row.topic), []byte(row.text), 0o600))
		kbenchIn(t, dir, args("produce", "--topic", row.topic, "--payload-file", row.topic, row.flags, "--num-records", "200", "--throughput", "-1", "-b", brokers,
			"--out", row.topic+"-result", carefree)...).requireCode(t, codeDone)
		require.Equal(t, row.want, valuesOf(t, brokers, row.topic, 200))
	}
}

// Files of settings by their deprecated flags have effect, and secrets in them stay there.
func TestDeprecatedFilesOfSettings(t *testing.T) {
	t.Parallel()
	_, brokers := keptTopic(t, "orders")
	dir := t.TempDir()
	file := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("bootstrap.servers="+brokers+"\n"+text), 0o600))
	}
	file("producer.properties", "acks=1\nlinger.ms=7\ncompression.type=lz4\nclient.id=c4n4ry\n")
	e := kbenchIn(t, dir, args("produce", "--topic", "orders", "--num-records", "300", "--record-size", "100", "--throughput", "-1", "--producer.config", "producer.properties", carefree, "--out", "p")...)
	e.requireCode(t, codeDone)
	e.requireWords(t, "--producer.config is deprecated in Kafka; use --command-config")
	inEffect := loadResult(t, filepath.Join(dir, "p")).Settings
	require.Equal(t, []any{"leader", "7ms", "lz4", "c4n4ry"},
		[]any{word(inEffect["producer.requiredAcks"]), inEffect["producer.flush.frequency"], inEffect["producer.compression"], inEffect["clientID"]})

	file("consumer.properties", "fetch.min.bytes=17\nisolation.level=read_committed\n")
	e = kbenchIn(t, dir, args("consume", "--topic", "orders", "--num-records", "300", "--consumer.config", "consumer.properties", "--print-metrics", carefree, "--out", "c")...)
	e.requireCode(t, codeDone)
	e.requireWords(t, "--consumer.config is deprecated in Kafka; use --command-config")
	inEffect = loadResult(t, filepath.Join(dir, "c")).Settings
	require.Equal(t, []any{float64(17), "read_committed"}, []any{number(t, inEffect["consumer.minBytes"]), inEffect["consumer.isolationLevel"]})
	require.Regexp(t, `(?m)^Metric Name +Value$`, e.out, "--print-metrics of a consumer")
	require.Regexp(t, `(?m)^counts\.received +: 300\.000$`, e.out)
	require.Len(t, strings.Split(lastLine(e.out), ", "), 10, "the figures come last")
}

// word is acks by one of its names.
func word(acks any) string {
	switch text, _ := json.Marshal(acks); string(text) {
	case "1", `"1"`, `"leader"`:
		return "leader"
	default:
		return string(text)
	}
}

func number(t *testing.T, v any) float64 {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	n, err := strconv.ParseFloat(string(text), 64)
	require.NoError(t, err)
	return n
}

// --fetch-size is what one request asks for of a partition, and --from-latest leaves out what is there already.
func TestConsumeFromLatestByFetchSize(t *testing.T) {
	t.Parallel()
	c, brokers := keptTopic(t, "orders")
	var mu sync.Mutex
	asked := map[int32]bool{}
	c.Observe(int16(kmsg.Fetch), func(_ int32, request kmsg.Request) {
		mu.Lock()
		defer mu.Unlock()
		for _, topic := range request.(*kmsg.FetchRequest).Topics {
			for _, p := range topic.Partitions {
				asked[p.PartitionMaxBytes] = true
			}
		}
	})
	dir := t.TempDir()
	send := func(n, out string) {
		kbenchIn(t, dir, args("produce", "--topic", "orders", "--num-records", n, "--record-size", "1000", "--throughput", "-1", "-b", brokers, carefree, "--out", out)...).requireCode(t, codeDone)
	}
	send("600", "before")
	consume := args("consume", "--topic", "orders", "-b", brokers, "--hide-header", carefree)
	for _, row := range []struct {
		flags []string
		want  int32
	}{{nil, 1 << 20}, {args("--fetch-size", "3000", "--command-property", "max.partition.fetch.bytes=5000"), 3000}} {
		mu.Lock()
		clear(asked)
		mu.Unlock()
		kbenchIn(t, dir, args(consume, "--num-records", "600", row.flags, "--out", fmt.Sprint(row.want))...).requireCode(t, codeDone)
		mu.Lock()
		require.Equal(t, map[int32]bool{row.want: true}, asked)
		mu.Unlock()
	}
	before := c.Requests(int16(kmsg.Fetch))
	p := start(t, dir, nil, args(consume, "--num-records", "50", "--from-latest", "--timeout", "110000", "--out", "latest")...)
	arrives(t, c, kmsg.Fetch, before+1)
	send("50", "after")
	p.wait().requireCode(t, codeDone)
	run := loadResult(t, filepath.Join(dir, "latest")).Points[0].Runs[0]
	require.EqualValues(t, 50, run.Counts.Received, "none of the 600 before")
	require.EqualValues(t, 50, run.Series[results.SeriesE2E].Count, "all are younger than the run")
}

// arrives waits until the cluster has had n requests of a kind.
func arrives(t *testing.T, c *broker.Cluster, kind kmsg.Key, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, c.AwaitRequests(ctx, int16(kind), n))
}

// T5: a short run of consumers with a rebalance in it. No figure, in the lines or in the result, is negative, no
// number at all, or an instant in the place of a duration.
func TestT5ConsumersWithARebalance(t *testing.T) {
	t.Parallel()
	c, brokers := keptTopic(t, "orders")
	dir := t.TempDir()
	p := start(t, dir, nil, args("consume", "--topic", "orders", "--num-records", "1000", "--group", "readers", "--timeout", "110000", "--show-detailed-stats",
		"--reporting-interval", "50", "--print-metrics", "-b", brokers, carefree, "--out", "c", "--set", "consumer.group.heartbeatInterval=50ms",
		"--set", "consumers.changes=[100ms add 1, 400ms remove 1]")...)
	arrives(t, c, kmsg.LeaveGroup, 1)
	kbenchIn(t, dir, args("produce", "--topic", "orders", "--num-records", "1000", "--record-size", "100", "--throughput", "1000", "-b", brokers, carefree, "--out", "p")...).requireCode(t, codeDone)
	e := p.wait()
	e.requireCode(t, codeDone)
	run := loadResult(t, filepath.Join(dir, "c")).Points[0].Runs[0]
	require.EqualValues(t, 1000, run.Counts.Received)
	require.GreaterOrEqual(t, run.Consumption.Groups[0].Rebalances, int64(1))

	dates := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}`)
	lines := dates.ReplaceAllString(e.out, "DATE")
	require.Contains(t, lines, "DATE, 0, ")
	require.NotRegexp(t, `(?i)nan|inf\b|-\d`, lines)
	for _, figure := range regexp.MustCompile(`, ([\d.]+)`).FindAllStringSubmatch(lines, -1) {
		value, err := strconv.ParseFloat(figure[1], 64)
		require.NoError(t, err)
		require.Less(t, value, 1e9, "an instant in seconds, milliseconds or more: %s", lines)
	}
	text, err := os.ReadFile(filepath.Join(dir, "c", results.FileName))
	require.NoError(t, err)
	var tree struct{ Points any }
	require.NoError(t, json.Unmarshal(text, &tree))
	requireSaneFigures(t, "points", tree.Points)
}

// signed are figures that may be negative: instants on an axis whose zero is the start of the measured phase, and
// by how much the lag grew.
var signed = []string{"startNs", "atNs", "growthPerSecond"}

func requireSaneFigures(t *testing.T, path string, v any) {
	t.Helper()
	switch v := v.(type) {
	case float64:
		name := path[strings.LastIndexByte(path, '.')+1:]
		require.False(t, math.IsNaN(v) || math.IsInf(v, 0), path)
		require.Less(t, math.Abs(v), float64(time.Hour), "%s: an instant, in ns or µs, where none is expected", path)
		if !slices.Contains(signed, name) {
			require.GreaterOrEqual(t, v, 0.0, path)
		}
	case map[string]any:
		for key, inner := range v {
			requireSaneFigures(t, path+"."+key, inner)
		}
	case []any:
		for _, inner := range v {
			requireSaneFigures(t, path, inner)
		}
	}
}
