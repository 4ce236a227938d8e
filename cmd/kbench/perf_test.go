package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

func TestPerfArgs(t *testing.T) {
	for _, row := range []struct{ says, given, want string }{
		{"several values after one flag", "produce --command-property a=1 b=2 c=3 --topic x", "produce --command-property a=1 --command-property b=2 --command-property c=3 --topic x"},
		{"the first within the flag", "produce --producer-props=a=1 b=2", "produce --producer-props=a=1 --producer-props b=2"},
		{"at the end, twice", "consume --command-property a=1 --command-property b=2 c=3", "consume --command-property a=1 --command-property b=2 --command-property c=3"},
		{"one value and something else", "produce --topic x --command-property a=1 -b h:1", "produce --topic x --command-property a=1 -b h:1"},
		{"other flags have one value", "produce --set a=1 b=2", "produce --set a=1 b=2"},
		{"other commands are left alone", "run --command-property a=1 b=2", "run --command-property a=1 b=2"},
		{"nothing", "", ""},
	} {
		require.Equal(t, row.want, strings.Join(perfArgs(strings.Fields(row.given)), " "), row.says)
	}
}

// carefree makes a run of these tests valid however slow the machine is.
var carefree = args("--set", "validity.minRateShare=0", "--set", "validity.maxLateness=1h", "--set", "validity.maxPause=1h",
	"--set", "validity.maxCpuShare=1", "--set", "validity.maxStolenShare=1", "--set", "validity.maxGcPauseShare=0")

const producedLine = `(?m)^%s records sent, [0-9.]+ records/sec \([0-9.]+ MB/sec\), [0-9.]+ ms avg latency, [0-9.]+ ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\.$`

func requireLine(t *testing.T, out, pattern string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		pattern = strings.Replace(pattern, "%s", part, 1)
	}
	require.Regexp(t, pattern, out)
}

// The last line that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// What produce writes, consume reads, as Kafka's tools would; each keeps a result as any run.
func TestProduceAndConsume(t *testing.T) {
	t.Parallel()
	_, brokers := keptTopic(t, "orders-1", "orders-2")
	dir := t.TempDir()
	file := filepath.Join(dir, "client.properties")
	require.NoError(t, os.WriteFile(file, []byte("bootstrap.servers="+brokers+"\nlinger.ms=100\nacks=1\nfetch.min.bytes=1\nmax.block.ms=5\n"), 0o600))

	e := kbenchIn(t, dir, args("produce", "--topic", "orders-1", "--num-records", "5000", "--record-size", "100", "--throughput", "5000",
		"--warmup-records", "1000", "--reporting-interval", "200", "--key-distribution", "range", "--record-key-range", "7", "--random-seed", "3",
		"--command-config", file, "--producer-props", "acks=all", "linger.ms=5", "--print-metrics", carefree, "--out", "p")...)
	e.requireCode(t, codeDone)
	e.requireWords(t, "--producer-props is deprecated in Kafka; use --command-property", "max.block.ms: is not used", "result: p")
	require.Contains(t, e.out, "Warmup first 1000 records.")
	requireLine(t, e.out, producedLine, "5000")
	requireLine(t, lastLine(e.out), producedLine, "4000 steady state")
	require.Regexp(t, `(?m)^counts\.acked +: 4000\.000$`, e.out)
	r := loadResult(t, filepath.Join(dir, "p"))
	run := &r.Points[0].Runs[0]
	require.EqualValues(t, 4000, run.Counts.Acked)
	require.Equal(t, []string{results.PhaseWarmUp, results.PhaseMeasure}, []string{run.Phases[0].Name, run.Phases[1].Name})
	require.EqualValues(t, 1000, run.Phases[0].Counts.Acked)
	require.EqualValues(t, 4000, run.Series[results.SeriesResponse].Count)
	inEffect := map[string]any{}
	for _, key := range []string{"producer.requiredAcks", "producer.flush.frequency", "producer.idempotent"} {
		inEffect[key] = r.Settings[key]
	}
	require.Equal(t, map[string]any{"producer.requiredAcks": "all", "producer.flush.frequency": "5ms", "producer.idempotent": true}, inEffect, "flags go before the file")
	require.FileExists(t, filepath.Join(dir, "p", "report.html"))

	// The same workload stands in the result, as a file that kbench run takes.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "again.yaml"), []byte(r.Workload.Given), 0o600))
	kbenchIn(t, dir, "plan", "again.yaml").requireCode(t, codeDone)
	kbenchIn(t, dir, "report", "p").requireCode(t, codeDone)
	kbenchIn(t, dir, "verify", "orders-1", "-b", brokers).requireCode(t, codeDone)

	e = kbenchIn(t, dir, args("consume", "--topic", "orders-1", "--messages", "5000", "--group", "readers", "--bootstrap-server", brokers, carefree, "--out", "c")...)
	e.requireCode(t, codeDone)
	e.requireWords(t, "--messages is deprecated in Kafka; use --num-records")
	require.Contains(t, e.out, "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n")
	fields := strings.Split(lastLine(e.out), ", ")
	require.Len(t, fields, 10)
	require.Equal(t, []string{"0.4816", "5000"}, []string{fields[2], fields[4]}, "5000 keys of one byte and values of 100")
	require.EqualValues(t, 5000, loadResult(t, filepath.Join(dir, "c")).Points[0].Runs[0].Counts.Received)

	e = kbenchIn(t, dir, args("consume", "--include", "orders-.*", "--num-records", "1", "--group", "readers", "--timeout", "700", "--hide-header", "-b", brokers, carefree, "--out", "none")...)
	e.requireCode(t, codeInvalid)
	require.True(t, strings.HasPrefix(e.out, "WARNING: Exiting before consuming the expected number of records: timeout (700 ms) exceeded."), "the group has read everything: %s", e.out)
	e.requireWords(t, "nothing was received for 700ms (consumers.idle): 0 of the 1 messages asked for were there")

	e = kbenchIn(t, dir, args("consume", "--include", "orders-.*", "--num-records", "5000", "--show-detailed-stats", "--consumer.config", file, carefree, "--out", "all")...)
	e.requireCode(t, codeDone)
	e.requireWords(t, "--consumer.config is deprecated in Kafka; use --command-config")
	require.True(t, strings.HasPrefix(e.out, "time, threadId, data.consumed.in.MB"), e.out)
	require.Equal(t, "5000", strings.Split(lastLine(e.out), ", ")[4])
}

// As fast as possible sends exactly what was asked for, on the embedded broker, which gets the topic.
func TestProduceAsFastAsPossible(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("produce", "--topic", "new", "--num-records", "20001", "--record-size", "10", "--throughput", "-1",
		"--command-property", "acks=1", "linger.ms=0", "compression.type=lz4", carefree, "--out", "p")...)
	e.requireCode(t, codeDone)
	e.requireWords(t, "on an embedded broker", "figures say nothing about Apache Kafka")
	requireLine(t, lastLine(e.out), producedLine, "20001")
	r := loadResult(t, filepath.Join(dir, "p"))
	require.EqualValues(t, 20001, r.Points[0].Runs[0].Counts.Acked)
	require.Equal(t, false, r.Settings["producer.idempotent"], "acks=1 rules it out, as in Kafka's producer")
	require.Equal(t, "0s", r.Settings["producer.flush.frequency"])
	require.EqualValues(t, 0, r.Settings["producer.flush.bytes"], "nothing waits for a full batch")
}

func TestEndToEndCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("e2e", "--topic", "probe", "--num-records", "300", "--producer-acks", "all", "--record-size", "20", "--record-key-size", "4",
		"--num-headers", "2", "--record-header-key-size", "3", "--record-header-size", "5", carefree, "--out", "e")...)
	e.requireCode(t, codeDone)
	require.Regexp(t, `^Topic "probe" does not exist\. Will create topic with 1 partition\(s\) and replication factor = 1
0\t[0-9.]+
Avg latency: [0-9.]+ ms
Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+
$`, e.out)
	run := &loadResult(t, filepath.Join(dir, "e")).Points[0].Runs[0]
	require.EqualValues(t, 300, run.Series[results.SeriesE2E].Count)
	require.EqualValues(t, 300, run.Counts.Received)
	require.EqualValues(t, 1, run.Batches.MessagesPerRequest, "one at a time")
}

// Values from a file and numbers as values are what the topic holds, without anything of kbench's.
func TestProduceOtherValues(t *testing.T) {
	t.Parallel()
	_, brokers := keptTopic(t, "lines", "numbers")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "values.txt"), []byte("one|two|three|"), 0o600))
	flags := args("--num-records", "300", "--throughput", "-1", "-b", brokers, carefree)
	kbenchIn(t, dir, args("produce", "--topic", "lines", "--payload-file", "values.txt", "--payload-delimiter", "|", "--out", "l", flags)...).requireCode(t, codeDone)
	require.Equal(t, map[string]bool{"one": true, "two": true, "three": true}, valuesOf(t, brokers, "lines", 300))
	kbenchIn(t, dir, args("produce", "--topic", "numbers", "--payload-monotonic", "--warmup-records", "100", "--out", "n", flags)...).requireCode(t, codeDone)
	numbers := valuesOf(t, brokers, "numbers", 300)
	require.Len(t, numbers, 300)
	require.True(t, numbers["0"] && numbers["299"])
}

// valuesOf are the values of a topic's n messages.
func valuesOf(t *testing.T, brokers, topic string, n int) map[string]bool {
	t.Helper()
	values := map[string]bool{}
	for _, m := range messagesOf(t, brokers, topic, n) {
		require.Empty(t, m.Headers)
		values[string(m.Value)] = true
	}
	return values
}

func TestInterruptOfProduceKeepsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, args("produce", "--topic", "new", "--num-records", "1000000", "--record-size", "100", "--throughput", "500",
		"--reporting-interval", "100", carefree, "--out", "p")...)
	p.prints("records sent")
	p.signal(syscall.SIGINT)
	e := p.wait()
	e.requireCode(t, codeInterrupted)
	e.requireWords(t, "interrupted: waiting shortly", "kbench: interrupted; what was measured is kept")
	requireLine(t, lastLine(e.out), producedLine, `\d+`)
	require.True(t, loadResult(t, filepath.Join(p.dir, "p")).Interrupted)
}

func TestWrongUsageOfKafkasFlags(t *testing.T) {
	t.Parallel()
	produce := args("produce", "--topic", "x", "--num-records", "10", "--throughput", "-1", "--record-size", "10")
	consume := args("consume", "--topic", "x", "--num-records", "10", "-b", "127.0.0.1:1")
	e2e := args("e2e", "--topic", "x", "--num-records", "10", "--producer-acks", "all", "--record-size", "10")
	for _, row := range []struct {
		says  string
		args  []string
		words []string
	}{
		{"no topic", args("produce", "--num-records", "10"), []string{"--topic", "missing"}},
		{"no records", args("produce", "--topic", "x"), []string{"--num-records is 0"}},
		{"no payload", args("produce", "--topic", "x", "--num-records", "10", "--throughput", "-1"), []string{"exactly one of --record-size, --payload-file and --payload-monotonic"}},
		{"two payloads", args(produce, "--payload-monotonic"), []string{"exactly one of"}},
		{"a record of nothing", args(produce, "--record-size", "0"), []string{"--record-size is 0"}},
		{"no throughput", args("produce", "--topic", "x", "--num-records", "10", "--record-size", "10"), []string{"--throughput is missing"}},
		{"a throughput of nothing", args(produce, "--throughput", "0"), []string{"--throughput is 0", "-1"}},
		{"nothing but warm-up", args(produce, "--warmup-records", "10"), []string{"--warmup-records is 10", "below --num-records, 10"}},
		{"keys without their number", args(produce, "--key-distribution", "random"), []string{"needs --record-key-range"}},
		{"a number of keys for none", args(produce, "--record-key-range", "5"), []string{"--record-key-range needs --key-distribution"}},
		{"keys of no kind", args(produce, "--key-distribution", "zipf"), []string{`"zipf" is none of none, range and random`}},
		{"lines at once", args(produce, "--reporting-interval", "0"), []string{"--reporting-interval is 0"}},
		{"a mistyped setting", args(produce, "--command-property", "acks=all", "lingr.ms=5"), []string{"--command-property: lingr.ms: unknown setting; did you mean linger.ms?"}},
		{"a setting of consumers", args(produce, "--command-property", "group.id=x"), []string{"group.id: is a setting of consumers"}},
		{"code of the JVM's", args(produce, "--command-property", "interceptor.classes=a.B"), []string{"interceptor.classes: cannot be had", "Java code"}},
		{"no setting at all", args(produce, "--command-property", "acks"), []string{`"acks" is no property: name=value is needed`}},
		{"a secret in a flag", args(produce, "--command-property", "sasl.jaas.config=c4n4ry"), []string{"sasl.jaas.config: is about how to connect", "--command-config"}},
		{"a value that the client refuses, in Kafka's words", args(produce, "--command-property", "max.in.flight.requests.per.connection=6", "enable.idempotence=true"), []string{"idempotent"}},
		{"two files", args(produce, "--command-config", "a", "--producer.config", "b"), []string{"--command-config and --producer.config"}},
		{"transactions of no time", args(produce, "--transaction-duration-ms", "0"), []string{"--transaction-duration-ms is 0", "from 1 to"}},
		{"transactions of nobody", args(produce, "--transactional-id", ""), []string{"--transactional-id is empty"}},
		{"transactions that brokers cannot tell the order of", args(produce, "--transactional-id", "x", "--command-property", "acks=1"), []string{"--transactional-id", "needs producer.idempotent=true"}},
		{"transactions that are open for too long", args(produce, "--transaction-duration-ms", "60000"), []string{"--transaction-duration-ms", "is 1m", "producer.transaction.timeout=1m"}},
		{"transactions of a producer that has none", args(produce, "--transaction-duration-ms", "100", "--set", "producers.form=batch", "--command-property", "enable.idempotence=false"), []string{"the batch producer has no transactions"}},
		{"a sweep", args(produce, "--set", "repeat=2"), []string{"kbench produce is one run"}},
		{"an argument", args(produce, "orders"), []string{`"orders"`, "kbench produce --help"}},
		{"a topic and a pattern", args(consume, "--include", "y"), []string{"exactly one of --topic and --include"}},
		{"a pattern that is none", args("consume", "--include", "a(", "--num-records", "1", "-b", "127.0.0.1:1"), []string{"--include: topics.include: is no regular expression"}},
		{"records by two names", args(consume, "--messages", "3"), []string{"--num-records and --messages"}},
		{"reading from an embedded broker", args("consume", "--topic", "x", "--num-records", "10"), []string{"--bootstrap-server", "embedded broker"}},
		{"no patience", args(consume, "--timeout", "0"), []string{"--timeout is 0"}},
		{"sizes of sockets", args(consume, "--socket-buffer-size", "5"), []string{"--socket-buffer-size is not supported"}},
		{"formats of dates", args(consume, "--date-format", "yyyy"), []string{"--date-format is not supported"}},
		{"a setting of producers", args(consume, "--command-property", "acks=1"), []string{"acks: is a setting of producers"}},
		{"headers of no number", args(e2e, "--record-header-size", "5"), []string{"--num-headers is missing"}},
		{"headers that cannot be told apart", args(e2e, "--num-headers", "11", "--record-header-key-size", "1"), []string{"names of 11 headers need 2 bytes each"}},
		{"a file of values that is not there", args("produce", "--topic", "x", "--num-records", "10", "--throughput", "-1", "--payload-file", "none"), []string{"--payload-file", "none"}},
		{"a latency without acknowledgement", args(e2e, "--producer-acks", "0"), []string{`--producer-acks is "0"`}},
	} {
		t.Run(row.says, func(t *testing.T) {
			dir := t.TempDir()
			e := kbenchIn(t, dir, row.args...)
			e.requireCode(t, codeUsage)
			e.requireWords(t, row.words...)
			require.NotContains(t, e.err, "c4n4ry")
			require.Empty(t, e.out)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left, "nothing was begun")
		})
	}
}

// A topic that is not there is said, with the nearest.
func TestConsumeOfNoTopic(t *testing.T) {
	t.Parallel()
	_, brokers := keptTopic(t, "orders")
	dir := t.TempDir()
	e := kbenchIn(t, dir, "consume", "--topic", "order", "--num-records", "1", "-b", brokers, "--hide-header")
	e.requireCode(t, codeError)
	e.requireOneLine(t, `there is no topic "order" on the cluster; did you mean "orders"?`)
	require.NoDirExists(t, filepath.Join(dir, resultsFolder))
	e = kbenchIn(t, dir, "consume", "--include", "none.*", "--num-records", "1", "-b", brokers, "--hide-header")
	e.requireCode(t, codeError)
	e.requireWords(t, `none of the cluster's 1 topics matches topics.include="none.*"`)
}
