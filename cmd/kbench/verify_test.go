package main

import (
	"context"
	endian "encoding/binary"
	"hash/crc32"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/broker"
)

// keptTopic is a broker with topics for runs to write to.
func keptTopic(t *testing.T, topics ...string) (*broker.Cluster, string) {
	c, err := broker.Start(broker.Options{Nodes: 2})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for _, name := range topics {
		require.NoError(t, c.CreateTopic(name, 3, nil))
	}
	return c, strings.Join(c.Bootstrap(), ",")
}

// write has kbench write a few messages to a topic: three producers and a warm-up, whose messages are
// not the same number for each.
func write(t *testing.T, brokers, topic string, more ...string) {
	run := args("run", "quick", "-b", brokers, "--quiet", "--set", "topics.name="+topic, "--set", "producers.count=3",
		"--set", "consumers.count=0", brief, "--rate", "500", "--duration", "1s", "--set", "phases.warmUp=205ms")
	kbenchIn(t, t.TempDir(), append(run, more...)...).requireCode(t, codeDone)
}

// verified is what kbench verify says in JSON.
func verified(t *testing.T, code int, brokers, topic string, more ...string) (v results.Verification) {
	e := kbenchIn(t, t.TempDir(), args("verify", topic, "-b", brokers, "--format", "json", more)...)
	e.requireCode(t, code)
	requireJSON(t, e.out, &v)
	return v
}

func TestVerifyReadsATopicBack(t *testing.T) {
	t.Parallel()
	_, brokers := keptTopic(t, "whole")
	write(t, brokers, "whole")
	write(t, brokers, "whole", "--set", "payload.stamp=header", "--set", "payload.keys.kind=uniform", "--set", "payload.keys.n=50", "--set", "payload.keys.size=4")

	v := verified(t, codeDone, brokers, "whole", "--partitioner", "hash")
	require.True(t, v.Complete)
	require.Len(t, v.Runs, 2)
	require.Equal(t, 3, v.Runs[0].Producers)
	n := v.Total.Messages
	require.Empty(t, v.Notes, "nothing is lost, so that nothing is to be said of gaps")
	require.Greater(t, n, int64(1000), "of both runs, with their warm-up")
	require.Equal(t, results.Findings{Messages: n, Distinct: n}, v.Total)
	require.Empty(t, v.Examples)
	require.Len(t, v.Partitions, 3)
	require.Equal(t, "misplaced=0", v.Thresholds[4].Expression)

	wrong := verified(t, codeThreshold, brokers, "whole", "--partitioner", "crc32")
	require.Positive(t, wrong.Total.Misplaced, "keys were placed by another partitioner")

	e := kbenchIn(t, t.TempDir(), "verify", "whole", "-b", brokers, "--threshold", "duplicated=0")
	e.requireCode(t, codeDone)
	for _, words := range []string{"topic whole", "INTACT", "lost 0 · duplicated 0 · reordered 0 · corrupted 0 · misplaced not checked", "3 producers",
		"partition", "✓ duplicated=0 held (0)", "✓ lost=0 held (0)"} {
		require.Contains(t, strings.Join(strings.Fields(e.out), " "), words)
	}
	quiet := kbenchIn(t, t.TempDir(), "verify", "whole", "-b", brokers, "--quiet")
	quiet.requireCode(t, codeDone)
	require.Empty(t, quiet.out+quiet.err)
}

// What a broker loses, alters and keeps twice is found, and named with the place.
func TestVerifyFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	c, brokers := keptTopic(t, "broken")
	var seen atomic.Int64
	var lost, altered atomic.Int64
	var request func(int32, kmsg.Request) (kmsg.Response, error)
	request = func(_ int32, r kmsg.Request) (kmsg.Response, error) {
		req := r.(*kmsg.ProduceRequest)
		n := seen.Add(1)
		if n == 5 { // acknowledged, and not stored
			c.Answer(0, request)
			resp := req.ResponseKind().(*kmsg.ProduceResponse)
			for _, asked := range req.Topics {
				topic := kmsg.NewProduceResponseTopic()
				topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
				for _, p := range asked.Partitions {
					part := kmsg.NewProduceResponseTopicPartition()
					part.Partition = p.Partition
					topic.Partitions = append(topic.Partitions, part)
					lost.Add(int64(endian.BigEndian.Uint32(p.Records[57:])))
				}
				resp.Topics = append(resp.Topics, topic)
			}
			return resp, nil
		}
		if b := req.Topics[0].Partitions[0].Records; n == 9 {
			b[len(b)-2] ^= 1 // of the last value
			endian.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
			altered.Add(1)
		}
		return nil, nil
	}
	c.Answer(0, request)
	c.LoseAnswers(0, 1)
	write(t, brokers, "broken")
	require.Positive(t, lost.Load())
	require.EqualValues(t, 1, altered.Load())

	v := verified(t, codeThreshold, brokers, "broken")
	require.Equal(t, lost.Load()+1, v.Total.Lost, "the one that was altered is nowhere either")
	require.EqualValues(t, 1, v.Total.Corrupted)
	require.Positive(t, v.Total.Duplicated)
	require.Zero(t, v.Total.Reordered)
	kinds := map[string]bool{}
	for _, e := range v.Examples {
		kinds[e.Kind] = true
		require.Equal(t, e.Kind == "lost", e.Offset < 0, "where it is: %+v", e)
	}
	require.Equal(t, map[string]bool{"lost": true, "corrupted": true, "duplicated": true}, kinds)
	require.NotEmpty(t, v.Producers)

	e := kbenchIn(t, t.TempDir(), "verify", "broken", "-b", brokers)
	e.requireCode(t, codeThreshold)
	for _, words := range []string{"BROKEN", "✗ lost=0 BROKEN", "✗ corrupted=0 BROKEN", "nowhere, and number", "the checksum is not that of",
		"a message that its run counted as failed or unknown leaves one as well: hold"} {
		require.Contains(t, strings.Join(strings.Fields(e.out), " "), words)
	}
	require.Empty(t, e.err)
	both := []string{"--threshold", "lost<=1000", "--threshold", "corrupted<=1"}
	verified(t, codeDone, brokers, "broken", both...)
	verified(t, codeThreshold, brokers, "broken", append(both, "--threshold", "duplicated=0")...)
}

// A run in which something arrives twice, where a threshold forbids that.
func TestRunBreaksItsThreshold(t *testing.T) {
	t.Parallel()
	c, brokers := keptTopic(t, "twice")
	c.LoseAnswers(0, 2)
	run := args("run", "quick", brief, "-b", brokers, "--set", "topics.name=twice", "--rate", "500", "--duration", "1s", "--set", "phases.warmUp=0s",
		"--set", "producer.idempotent=false", "--threshold", "duplicated=0")
	e := kbenchIn(t, t.TempDir(), run...)
	e.requireCode(t, codeThreshold)
	require.Contains(t, e.out, "✗ duplicated=0 BROKEN")
	verified(t, codeThreshold, brokers, "twice", "--threshold", "duplicated=0")
}

func TestVerifySaysWhatIsTheMatter(t *testing.T) {
	t.Parallel()
	c, brokers := keptTopic(t, "orders", "empty", "foreign")
	cl, err := client.NewSyncProducer(c.Bootstrap(), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, cl.SendMessagesContext(ctx, []*client.ProducerMessage{{Topic: "foreign", Value: []byte("somebody else's")}}))
	require.NoError(t, cl.Close(ctx))
	for _, tc := range []struct {
		says  string
		code  int
		args  []string
		words []string
	}{
		{"no topic", codeUsage, []string{"verify"}, []string{"name one topic"}},
		{"two topics", codeUsage, []string{"verify", "a", "b"}, []string{"name one topic"}},
		{"no cluster", codeUsage, []string{"verify", "orders"}, []string{"--brokers"}},
		{"a topic that is not there", codeError, []string{"verify", "order", "-b", brokers}, []string{`no topic "order"`, `did you mean "orders"?`}},
		{"a topic without messages", codeError, []string{"verify", "empty", "-b", brokers}, []string{`"empty" holds no message`}},
		{"messages without stamps", codeError, []string{"verify", "foreign", "-b", brokers}, []string{"none of the 1 messages", "stamp"}},
		{"a partitioner that is none", codeUsage, []string{"verify", "orders", "-b", brokers, "--partitioner", "sticky"}, []string{`"sticky"`, "murmur2"}},
		{"a condition on nothing", codeUsage, []string{"verify", "orders", "-b", brokers, "--threshold", "lots=0"}, []string{"--threshold", "did you mean lost?"}},
		{"no time", codeUsage, []string{"verify", "orders", "-b", brokers, "--timeout", "0s"}, []string{"--timeout"}},
		{"no memory", codeUsage, []string{"verify", "orders", "-b", brokers, "--memory", "0"}, []string{"--memory is 0"}},
		{"memory that is no number", codeUsage, []string{"verify", "orders", "-b", brokers, "--memory", "lots"}, []string{"--memory", `"lots"`, "64KiB"}},
		{"a format that is none", codeUsage, []string{"verify", "orders", "-b", brokers, "--format", "xml"}, []string{"xml"}},
		{"nobody there", codeError, []string{"verify", "orders", "-b", "127.0.0.1:1"}, []string{"127.0.0.1:1"}},
	} {
		t.Run(tc.says, func(t *testing.T) {
			e := kbenchIn(t, t.TempDir(), tc.args...)
			e.requireCode(t, tc.code)
			e.requireOneLine(t, tc.words...)
			require.Empty(t, e.out)
		})
	}
}

// A topic that does not come to its end is given up in time, with what was found until then.
func TestVerifyIsBoundedInTime(t *testing.T) {
	t.Parallel()
	c, brokers := keptTopic(t, "slow")
	write(t, brokers, "slow")
	c.StallKey(1, 0) // Fetch
	began := time.Now()
	e := kbenchIn(t, t.TempDir(), "verify", "slow", "-b", brokers, "--timeout", "1s")
	e.requireCode(t, codeError)
	require.Less(t, time.Since(began), 15*time.Second)
	e.requireOneLine(t, "not read to its end within 1s", "--timeout")
	require.Contains(t, e.out, "NOT READ TO THE END")
	require.Contains(t, e.out, "✗ lost=0 BROKEN (not checked)")
}

// A topic whose numbers are more than may be remembered is given up, with what was found until then.
func TestVerifyIsBoundedInMemory(t *testing.T) {
	t.Parallel()
	_, brokers := keptTopic(t, "large")
	write(t, brokers, "large")
	e := kbenchIn(t, t.TempDir(), "verify", "large", "-b", brokers, "--memory", "200B") // a word, and there are three producers
	e.requireCode(t, codeError)
	e.requireOneLine(t, "read to partition", "more than --memory 200B", "raise it")
	require.Contains(t, e.out, "NOT READ TO THE END")
	require.Contains(t, e.out, "✗ lost=0 BROKEN (not checked)")
}

// Messages of aborted transactions are gaps to who reads what is committed, and it says so.
func TestVerifySaysWhatAbortedTransactionsLeave(t *testing.T) {
	t.Parallel()
	_, brokers := keptTopic(t, "aborted")
	write(t, brokers, "aborted", "--set", "producer.idempotent=true", "--set", "producers.transactions.messages=20", "--set", "producers.transactions.abortShare=0.5")
	require.Empty(t, verified(t, codeDone, brokers, "aborted").Notes)
	v := verified(t, codeThreshold, brokers, "aborted", "--read-committed")
	require.Positive(t, v.Total.Lost)
	require.Len(t, v.Notes, 1)
	require.Contains(t, v.Notes[0], "and so does one of a transaction that was not committed (--read-committed)")
}
