//go:build kafka

package client

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// sample is message number i: keys, values and headers of every kind in turn.
func sample(topic string, i int) *ProducerMessage {
	number := Header{Key: "number", Value: []byte(strconv.Itoa(i))}
	m := &ProducerMessage{
		Topic: topic, Key: fmt.Appendf(nil, "key %d", i%37),
		Value: fmt.Appendf(nil, "%d %s", i, strings.Repeat("words that come again ", 4)),
	}
	switch i % 10 {
	case 1:
		m.Key = nil
	case 2:
		m.Key = []byte{}
	case 3:
		m.Value, m.Headers = nil, []Header{number}
	case 4:
		m.Value, m.Headers = []byte{}, []Header{number, {Key: "null"}}
	case 5:
		m.Headers = []Header{{Key: "empty", Value: []byte{}}, {Key: "null"}, {Key: "", Value: []byte("no key")}, {Key: "empty", Value: []byte("again")}}
	}
	return m
}

func samples(topic string, from, n int) []*ProducerMessage {
	out := make([]*ProducerMessage, n)
	for i := range out {
		out[i] = sample(topic, from+i)
	}
	return out
}

// numberOf finds out which sample a message read is.
func numberOf(t *testing.T, m *Message) int {
	text := string(m.Value)
	if len(text) == 0 {
		require.NotEmpty(t, m.Headers)
		text = string(m.Headers[0].Value)
	}
	first, _, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(first)
	require.NoError(t, err)
	return n
}

// realSend hands over messages by one of the producer's forms and waits until all are decided.
func realSend(t *testing.T, ctx context.Context, p *AsyncProducer, form string, msgs []*ProducerMessage) {
	var out tally
	switch form {
	case "run":
		for run := range slices.Chunk(msgs, 100) {
			n, err := p.ProduceRun(ctx, run, &out)
			require.NoError(t, err)
			require.Equal(t, len(run), n)
		}
	case "callback":
		for _, m := range msgs {
			require.NoError(t, p.Produce(ctx, m, func(m *ProducerMessage, err error) {
				out.Delivered([]*ProducerMessage{m}, Delivery{Err: err})
			}))
		}
	case "channels":
		realSendByChannels(t, ctx, p, msgs)
		return
	}
	require.NoError(t, p.Flush(ctx))
	out.require(t, len(msgs), 0)
}

func realSendByChannels(t *testing.T, ctx context.Context, p *AsyncProducer, msgs []*ProducerMessage) {
	var reading sync.WaitGroup
	var ok []*ProducerMessage
	var bad []error
	reading.Go(func() { // both end when closing closes the channels
		for m := range p.Successes() {
			ok = append(ok, m)
		}
	})
	reading.Go(func() {
		for e := range p.Errors() {
			bad = append(bad, e)
		}
	})
	for _, m := range msgs {
		p.Input() <- m
	}
	p.AsyncClose(ctx)
	reading.Wait()
	require.Empty(t, bad)
	require.ElementsMatch(t, msgs, ok)
}

// readBack reads n messages with this client's own reader, each with memory of its own.
func (b *realBed) readBack(t *testing.T, topic string, n int) []Message {
	ids, err := b.c.Partitions(b.ctx, topic)
	require.NoError(t, err)
	r, err := b.c.NewReader(ReaderConfig{Topic: topic, Partitions: ids})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	out := make([]Message, 0, n)
	for len(out) < n {
		m, err := r.FetchMessage(b.ctx)
		require.NoError(t, err, "after %d of %d", len(out), n)
		out = append(out, m)
	}
	lag, err := r.ReadLag(b.ctx)
	require.NoError(t, err)
	require.Zero(t, lag, "more messages than were sent")
	return out
}

// content is what must arrive unchanged, null and empty apart.
type content struct {
	Key, Value []byte
	Headers    []Header
}

func contentOf(key, value []byte, headers []Header) content {
	if len(headers) == 0 {
		headers = nil
	}
	return content{key, value, headers}
}

// requireSamples checks that what was read is exactly what was sent: content, place where it is
// known, and order within each partition.
func requireSamples(t *testing.T, topic string, got []Message, sent []*ProducerMessage) {
	byNumber := map[int]*Message{}
	last, partitions := map[int32]int{}, map[string]int32{}
	for i := range got {
		m := &got[i]
		n := numberOf(t, m)
		require.Nil(t, byNumber[n], "message %d came twice", n)
		byNumber[n] = m
		if before, any := last[m.Partition]; any {
			require.Less(t, before, n, "order in partition %d", m.Partition)
		}
		last[m.Partition] = n
		if m.Key != nil {
			if p, known := partitions[string(m.Key)]; known {
				require.Equal(t, p, m.Partition, "partition of key %q", m.Key)
			}
			partitions[string(m.Key)] = m.Partition
		}
	}
	require.Len(t, got, len(sent))
	for _, s := range sent {
		n := numberOf(t, &Message{Value: s.Value, Headers: s.Headers})
		m := byNumber[n]
		require.NotNil(t, m, "message %d is missing", n)
		require.Equal(t, contentOf(s.Key, s.Value, s.Headers), contentOf(m.Key, m.Value, m.Headers), "message %d", n)
		require.Equal(t, s.Partition, m.Partition)
		require.WithinDuration(t, time.Now(), m.Time, realPatience)
		if s.Offset != -1 {
			require.Equal(t, s.Offset, m.Offset)
		}
	}
}

// One topic for each combination; Kafka's own consumer and its log dump judge all of them in the
// end.
func TestKafkaEveryAcksCodecAndDepth(t *testing.T) {
	const each, partitions = 2000, 6
	cluster := kafkatest.Shared(t, 1)
	admin := newRealBed(t, cluster, nil)
	prefix := fmt.Sprintf("kbench-test-matrix-%d", time.Now().UnixNano())
	forms := []string{"run", "callback", "channels"}
	var lines []string                  // of every message, as the console consumer prints them
	stored := map[string]record.Codec{} // topic to codec
	number := 0
	for ai, promise := range []struct {
		name       string
		acks       RequiredAcks
		idempotent bool
	}{{"0", AcksNone, false}, {"1", AcksLeader, false}, {"all", AcksAll, false}, {"idempotent", AcksAll, true}} {
		for ci, codec := range record.Codecs() {
			for oi, open := range []int{1, 5} {
				form := forms[(ai+ci+oi)%len(forms)]
				name := fmt.Sprintf("%s-%s-%s-%d", prefix, promise.name, codec, open)
				from := number
				number += each
				t.Run(fmt.Sprintf("acks %s, %s, %d in flight, %s", promise.name, codec, open, form), func(t *testing.T) {
					require.NoError(t, admin.c.CreateTopics(admin.ctx, TopicSpec{Name: name, Partitions: partitions, ReplicationFactor: 1}))
					b := newRealBed(t, cluster, func(c *Config) {
						c.Producer.RequiredAcks, c.Producer.Idempotent = promise.acks, promise.idempotent
						c.Producer.Compression, c.Net.MaxOpenRequests = codec, open
						c.Producer.Flush.MaxMessages = 50 // several batches of each partition in flight
						c.Producer.Return.Successes = true
					})
					p, err := NewAsyncProducerFromClient(b.c)
					require.NoError(t, err)
					msgs := samples(name, from, each)
					realSend(t, b.ctx, p, form, msgs)
					require.NoError(t, p.Close(b.ctx))
					for _, m := range msgs {
						require.Equal(t, promise.acks == AcksNone, m.Offset == -1, "acks=0 knows no offsets, others do")
					}
					got := b.readBack(t, name, each)
					requireSamples(t, name, got, msgs)
					require.Equal(t, []int16{12}, b.sent.of(produceKey))
					stored[name] = codec
					for i := range got {
						lines = append(lines, consoleLine(&got[i]))
					}
				})
			}
		}
	}
	if t.Failed() {
		return
	}
	requireConsole(t, cluster, prefix, lines)
	requireStored(t, cluster, stored, each)
	for name := range stored {
		require.NoError(t, admin.c.DeleteTopics(admin.ctx, name))
	}
}

// consoleLine is a message as Kafka's console consumer prints it with the options below.
func consoleLine(m *Message) string {
	text := func(b []byte) string {
		if b == nil {
			return "<null>"
		}
		return string(b)
	}
	var headers []string
	for _, h := range m.Headers {
		headers = append(headers, h.Key+":"+text(h.Value))
	}
	if len(headers) == 0 {
		headers = []string{"NO_HEADERS"}
	}
	return fmt.Sprintf("Partition:%d|Offset:%d|%s|%s|%s", m.Partition, m.Offset, strings.Join(headers, ","), text(m.Key), text(m.Value))
}

func requireConsole(t *testing.T, cluster *kafkatest.Cluster, prefix string, want []string) {
	out := cluster.Script(t, "tool", "ConsoleConsumer", "--bootstrap-server", strings.Join(cluster.Bootstrap, ","),
		"--include", prefix+".*", "--from-beginning", "--max-messages", strconv.Itoa(len(want)), "--timeout-ms", "60000",
		"--property", "print.partition=true", "--property", "print.offset=true", "--property", "print.headers=true",
		"--property", "print.key=true", "--property", "key.separator=|", "--property", "null.literal=<null>")
	got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	got = slices.DeleteFunc(got, func(line string) bool { return !strings.HasPrefix(line, "Partition:") }) // warnings
	require.Equal(t, len(want), len(got))
	slices.Sort(got)
	slices.Sort(want)
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
}

// requireStored looks at the log's files: every batch is in the codec it was sent in and intact.
func requireStored(t *testing.T, cluster *kafkatest.Cluster, stored map[string]record.Codec, each int) {
	var files []string
	for name := range stored {
		logs, err := filepath.Glob(filepath.Join(cluster.Dir, "data", "1", name+"-*", "*.log"))
		require.NoError(t, err)
		require.NotEmpty(t, logs, name)
		files = append(files, logs...)
	}
	out := cluster.Script(t, "tool", "DumpLogSegments", "--files", strings.Join(files, ","))
	counts := map[string]int{}
	name := ""
	for line := range strings.Lines(out) {
		if file, is := strings.CutPrefix(line, "Dumping "); is {
			name = topicOfLog(file)
		}
		if !strings.HasPrefix(line, "baseOffset: ") {
			continue
		}
		require.Contains(t, line, "isvalid: true")
		_, count, _ := strings.Cut(line, "count: ")
		n, err := strconv.Atoi(strings.Fields(count)[0])
		require.NoError(t, err)
		if n > 2 { // smaller ones do not shrink, and are sent as they are
			require.Contains(t, line, "compresscodec: "+stored[name].String(), "a batch of %s", name)
		}
		counts[name] += n
	}
	for name := range stored {
		require.Equal(t, each, counts[name], "messages in the log of %s", name)
	}
}

// topicOfLog is the topic of a partition's log file.
func topicOfLog(file string) string {
	dir := filepath.Base(filepath.Dir(strings.TrimSpace(file)))
	return dir[:strings.LastIndex(dir, "-")]
}

func TestKafkaSyncProducer(t *testing.T) {
	b := newRealBed(t, kafkatest.Shared(t, 1), nil)
	name := b.topic(t, 3, nil)
	p, err := NewSyncProducerFromClient(b.c)
	require.NoError(t, err)
	next := map[int32]int64{}
	var sent []*ProducerMessage
	for i := range 100 {
		m := sample(name, i)
		partition, offset, err := p.SendMessageContext(b.ctx, m)
		require.NoError(t, err)
		require.Equal(t, next[partition], offset)
		next[partition]++
		sent = append(sent, m)
	}
	more := samples(name, 100, 1000)
	require.NoError(t, p.SendMessagesContext(b.ctx, more))
	sent = append(sent, more...)
	var senders sync.WaitGroup
	for s := range 8 {
		senders.Go(func() { // ends with its messages, or with the context
			for i := range 50 {
				if _, _, err := p.SendMessageContext(b.ctx, &ProducerMessage{Topic: name, Key: []byte{byte(s)}, Value: fmt.Appendf(nil, "%d", 10_000+s*100+i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	require.NoError(t, p.Close(b.ctx))
	got := b.readBack(t, name, len(sent)+8*50)
	got = slices.DeleteFunc(got, func(m Message) bool { return numberOf(t, &m) >= 10_000 })
	requireSamples(t, name, got, sent)
}

// A batch that the topic refuses is made smaller until only the message that is too large fails.
func TestKafkaP25ABatchTooLargeIsSplit(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	for _, tc := range []struct {
		name       string
		open       int
		idempotent bool
	}{
		{"one in flight", 1, false},
		{"idempotent, five in flight", 5, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newRealBed(t, cluster, func(c *Config) { c.Net.MaxOpenRequests, c.Producer.Idempotent = tc.open, tc.idempotent })
			name := b.topic(t, 1, map[string]string{"max.message.bytes": "3000"})
			p, err := NewAsyncProducerFromClient(b.c)
			require.NoError(t, err)
			msgs := samples(name, 0, 3000)
			msgs[1500].Value = make([]byte, 4000)
			var out tally
			for run := range slices.Chunk(msgs, 250) {
				_, err = p.ProduceRun(b.ctx, run, &out)
				require.NoError(t, err)
			}
			require.NoError(t, p.Close(b.ctx))
			out.require(t, 2999, 1)
			require.ErrorIs(t, out.errs[0], wire.ErrMessageTooLarge)
			requireSamples(t, name, b.readBack(t, name, 2999), slices.Delete(msgs, 1500, 1501))
		})
	}
}

// M6: what is sent to a topic that goes away has its outcome in time, and the producer goes on
// with other topics.
func TestKafkaTopicDeletedWhileProducing(t *testing.T) {
	b := newRealBed(t, kafkatest.Shared(t, 1), func(c *Config) { c.Producer.DeliveryTimeout = 5 * time.Second })
	gone, stays := b.topic(t, 3, nil), b.topic(t, 3, nil)
	p, err := NewAsyncProducerFromClient(b.c)
	require.NoError(t, err)
	var out tally
	const each, rounds = 100, 20
	for i := range rounds {
		for _, name := range []string{gone, stays} {
			_, err := p.ProduceRun(b.ctx, samples(name, i*each, each), &out)
			require.NoError(t, err)
		}
		if i == rounds/2 {
			require.NoError(t, b.c.DeleteTopics(b.ctx, gone))
		}
	}
	require.NoError(t, p.Flush(b.ctx))
	require.Equal(t, 2*each*rounds, out.ok+out.bad)
	// A broker deletes a moment after the answer and takes what comes until then.
	for i, refused := rounds, 0; refused == 0; i++ {
		before, start := out.bad, time.Now()
		_, err = p.ProduceRun(b.ctx, samples(gone, i*each, each), &out)
		require.NoError(t, err)
		require.NoError(t, p.Flush(b.ctx))
		require.Less(t, time.Since(start), 30*time.Second, "bounded by the delivery timeout")
		refused = out.bad - before
	}
	for _, err := range out.errs {
		require.True(t, errors.Is(err, ErrTopicUnknown) || errors.Is(err, wire.ErrUnknownTopicOrPartition), "%v", err)
		require.ErrorContains(t, err, gone)
	}
	require.NoError(t, p.Close(b.ctx))
	require.Len(t, b.readBack(t, stays, each*rounds), each*rounds)
}
