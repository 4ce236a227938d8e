package client

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

// readerBed is a cluster with a topic "in", and a client to it.
type readerBed struct {
	t       testing.TB
	cluster *broker.Cluster
	client  *Client
	ctx     context.Context
}

func newReaderBed(t testing.TB, o broker.Options, partitions int, change func(*Config)) *readerBed {
	c, err := broker.Start(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.CreateTopic("in", partitions, nil))
	cfg := NewConfig()
	cfg.Consumer.MaxWait = 50 * time.Millisecond
	cfg.Consumer.ReadBackoffMin, cfg.Consumer.ReadBackoffMax = 5*time.Millisecond, 50*time.Millisecond
	cfg.Metadata.Retry = RetryConfig{Max: 10, Backoff: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}
	if change != nil {
		change(cfg)
	}
	cl, err := NewClient(c.Bootstrap(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cl.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return &readerBed{t, c, cl, ctx}
}

func (b *readerBed) reader(cfg ReaderConfig) *Reader {
	cfg.Topic = "in"
	r, err := b.client.NewReader(cfg)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = r.Close() })
	return r
}

// msg is what tests write.
type msg struct {
	key, value []byte
	headers    []Header
	at         int64
}

func values(from, to int) (out []msg) {
	for i := from; i < to; i++ {
		out = append(out, msg{value: fmt.Appendf(nil, "value %d", i), at: 1_700_000_000_000 + int64(i)})
	}
	return out
}

func encode(t testing.TB, codec record.Codec, a record.Attributes, msgs []msg) []byte {
	var b record.Builder
	b.Reset(nil, msgs[0].at)
	for _, m := range msgs {
		b.Append(m.at, m.key, m.value, m.headers)
	}
	c, err := record.NewCompressor(codec, record.DefaultLevel)
	require.NoError(t, err)
	raw, err := b.Finish(c, a)
	require.NoError(t, err)
	return append([]byte(nil), raw...)
}

// put writes one batch, to whoever leads the partition by now.
func (b *readerBed) put(partition int32, raw []byte) { b.putTo("in", partition, raw) }

func (b *readerBed) putTo(topic string, partition int32, raw []byte) {
	for {
		err := b.tryPut(topic, partition, raw)
		if err == nil {
			return
		}
		require.True(b.t, wire.Classify(err).Has(wire.Retriable), err)
		require.NoError(b.t, b.client.RefreshMetadata(b.ctx, topic))
	}
}

func (b *readerBed) tryPut(name string, partition int32, raw []byte) error {
	leader, err := b.client.Leader(b.ctx, name, partition)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 5000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = name
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, raw
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	resp, err := leader.Request(b.ctx, req)
	if err != nil {
		return err
	}
	return wire.ErrorFor(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
}

func (b *readerBed) write(partition int32, msgs []msg) {
	b.writeTo("in", partition, msgs)
}

func (b *readerBed) writeTo(topic string, partition int32, msgs []msg) {
	b.putTo(topic, partition, encode(b.t, record.None, record.NoProducer, msgs))
}

// expect reads messages whose values count from one number to another.
func (b *readerBed) expect(r *Reader, from, to int) {
	for i := from; i < to; i++ {
		m, err := r.FetchMessage(b.ctx)
		require.NoError(b.t, err)
		require.Equal(b.t, fmt.Sprintf("value %d", i), string(m.Value))
	}
}

func TestReaderReadsEveryCodec(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, nil)
	r := b.reader(ReaderConfig{})
	n := 0
	for _, codec := range record.Codecs() {
		b.put(0, encode(t, codec, record.NoProducer, values(n, n+100)))
		n += 100
	}
	for i := range n {
		m, err := r.ReadMessage(b.ctx)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("value %d", i), string(m.Value))
		require.Equal(t, "in", m.Topic)
		require.EqualValues(t, i, m.Offset)
		require.Nil(t, m.Key)
		require.Empty(t, m.Headers)
		require.EqualValues(t, 1_700_000_000_000+i, m.Time.UnixMilli())
		require.Greater(t, m.HighWaterMark, m.Offset)
	}
	require.EqualValues(t, n, r.Offset())
	require.Zero(t, r.Lag())
	s := r.Stats()
	require.EqualValues(t, n, s.Messages)
	require.Positive(t, s.Fetches)
	require.Positive(t, s.FetchLatency.Count())
	require.Zero(t, s.Errors)
	require.ErrorIs(t, r.CommitMessages(b.ctx), ErrNeedsGroup)
}

func TestReaderPartitionsInOrderOverOneConnectionPerBroker(t *testing.T) {
	const nodes, partitions, each = 3, 12, 500
	b := newReaderBed(t, broker.Options{Nodes: nodes}, partitions, func(c *Config) { c.Consumer.MaxPartitionBytes = 2000 })
	var ids []int32
	for p := range int32(partitions) {
		ids = append(ids, p)
		require.NoError(t, b.cluster.MoveLeader("in", p, p%nodes))
		for i := 0; i < each; i += 50 {
			b.write(p, values(i, i+50))
		}
	}
	var mu sync.Mutex
	brokers := map[int32]bool{}
	r := b.reader(ReaderConfig{Partitions: ids, OnFetch: func(s FetchStats) {
		mu.Lock()
		defer mu.Unlock()
		brokers[s.Broker] = s.Err == nil && s.Bytes > 0 && !s.Read.Before(s.Written)
	}})
	next := map[int32]int64{}
	buf := make([]Message, 37)
	for total := 0; total < partitions*each; {
		n, err := r.FetchBatch(b.ctx, buf)
		require.NoError(t, err)
		for _, m := range buf[:n] {
			require.Equal(t, next[m.Partition], m.Offset)
			require.Equal(t, fmt.Sprintf("value %d", m.Offset), string(m.Value))
			next[m.Partition]++
		}
		total += n
	}
	require.EqualValues(t, nodes, r.Stats().Dials)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[int32]bool{0: true, 1: true, 2: true}, brokers)
	lag, err := r.ReadLag(b.ctx)
	require.NoError(t, err)
	require.Zero(t, lag)
	_, err = r.PartitionOffset(99)
	require.ErrorIs(t, err, ErrPartitionInvalid)
}

func TestReaderSetOffset(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, nil)
	for i := 0; i < 100; i += 10 {
		b.write(0, values(i, i+10))
	}
	r := b.reader(ReaderConfig{StartOffset: 35})
	require.EqualValues(t, 35, r.Offset())
	b.expect(r, 35, 42)
	require.EqualValues(t, 42, r.Offset())
	require.NoError(t, r.SetOffset(3))
	require.EqualValues(t, 3, r.Offset(), "at once, before anything was fetched")
	b.expect(r, 3, 20)
	require.NoError(t, r.SetOffsetAt(b.ctx, time.UnixMilli(1_700_000_000_077)))
	b.expect(r, 77, 100)
	require.NoError(t, r.SetOffset(FirstOffset))
	b.expect(r, 0, 5)
	require.NoError(t, r.SetOffsetAt(b.ctx, time.UnixMilli(1_900_000_000_000)), "younger than all: the end")
	lag, err := r.ReadLag(b.ctx)
	require.NoError(t, err)
	require.Zero(t, lag)
	waiting, cancel := context.WithTimeout(b.ctx, 300*time.Millisecond)
	defer cancel()
	_, err = r.FetchMessage(waiting)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	b.write(0, values(100, 101))
	b.expect(r, 100, 101)
	require.Error(t, r.SetOffset(-3))
}

func TestReaderLastOffset(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, nil)
	b.write(0, values(0, 10))
	r := b.reader(ReaderConfig{StartOffset: LastOffset})
	require.Eventually(t, func() bool { return r.Offset() == 10 }, 10*time.Second, time.Millisecond)
	b.write(0, values(10, 12))
	b.expect(r, 10, 12)
}

// A version tag sees to it that what was fetched before SetOffset never comes after it, whatever
// the moment.
func TestReaderSetOffsetNeverDeliversTheOldPosition(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, func(c *Config) { c.Consumer.MaxPartitionBytes = 500 })
	for i := 0; i < 1000; i += 10 {
		b.write(0, values(i, i+10))
	}
	r := b.reader(ReaderConfig{})
	buf := make([]Message, 7)
	for i := range 200 {
		to := int64(i * 37 % 990)
		require.NoError(t, r.SetOffset(to))
		for range i % 4 {
			n, err := r.FetchBatch(b.ctx, buf)
			require.NoError(t, err)
			for _, m := range buf[:n] {
				require.Equal(t, to, m.Offset)
				to++
			}
		}
	}
}

func TestReaderCloseAndCancel(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, func(c *Config) { c.Consumer.MaxWait = 20 * time.Second })
	r := b.reader(ReaderConfig{})
	done := make(chan error, 2) // both goroutines write, the test reads
	cancelled, cancel := context.WithCancel(b.ctx)
	// Owned by the test; ended by Close and cancel; awaited below.
	go func() {
		_, err := r.FetchMessage(b.ctx)
		done <- err
	}()
	require.NoError(t, b.cluster.AwaitRequests(b.ctx, 1, 1))
	cancel()
	_, err := r.FetchMessage(cancelled)
	require.ErrorIs(t, err, context.Canceled)
	start := time.Now()
	require.NoError(t, r.Close())
	require.ErrorIs(t, <-done, io.EOF)
	require.Less(t, time.Since(start), 5*time.Second, "a long poll does not hold Close up")
	_, err = r.FetchBatch(b.ctx, make([]Message, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, r.Close())
	require.ErrorIs(t, r.SetOffset(0), ErrClosed)
}

func TestReaderAfterItsClientIsClosed(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, nil)
	r := b.reader(ReaderConfig{})
	require.NoError(t, b.client.Close())
	_, err := r.FetchMessage(b.ctx)
	require.ErrorIs(t, err, ErrClosed)
	_, err = b.client.NewReader(ReaderConfig{Topic: "in"})
	require.ErrorIs(t, err, ErrClosed)
}

func TestReaderOfItsOwnClient(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, nil)
	b.write(0, values(0, 3))
	r, err := NewReader(ReaderConfig{Brokers: b.cluster.Bootstrap(), Topic: "in"})
	require.NoError(t, err)
	b.expect(r, 0, 3)
	require.NoError(t, r.Close())
	require.True(t, r.client.Closed())
}

func TestReaderConfigProblems(t *testing.T) {
	rows := []struct {
		what string
		cfg  ReaderConfig
		keys []string
	}{
		{"nothing at all", ReaderConfig{}, []string{"brokers", "topic"}},
		{"a partition twice", ReaderConfig{Brokers: []string{"x"}, Topic: "in", Partitions: []int32{1, 1, -1}}, []string{"partitions", "partitions"}},
		{"an offset below -2", ReaderConfig{Brokers: []string{"x"}, Topic: "in", StartOffset: -3, QueueBytes: -1}, []string{"startOffset", "queueBytes"}},
		{"a group without topics", ReaderConfig{Brokers: []string{"x"}, GroupID: "g", Partition: 1}, []string{"topics", "partitions"}},
		{"a pattern that is none", ReaderConfig{Brokers: []string{"x"}, GroupID: "g", TopicPattern: "a(", Topics: []string{""}}, []string{"topics", "topicPattern"}},
		{"unknown assignors", ReaderConfig{Brokers: []string{"x"}, GroupID: "g", Topic: "in", GroupBalancers: []string{"rang"}}, []string{"groupBalancers"}},
		{"a group's settings without one", ReaderConfig{Brokers: []string{"x"}, Topic: "in", Topics: []string{"a"}, GroupInstanceID: "i"}, []string{"topics", "groupID"}},
		{"both ways to name partitions", ReaderConfig{Brokers: []string{"x"}, Topic: "in", Partition: 1, Partitions: []int32{2}}, []string{"partition"}},
	}
	for _, row := range rows {
		_, err := NewReader(row.cfg)
		var problems *ConfigError
		require.ErrorAs(t, err, &problems, row.what)
		var keys []string
		for _, p := range problems.Problems {
			keys = append(keys, p.Key)
		}
		require.Equal(t, row.keys, keys, row.what)
	}
}

func TestReaderBoundsWhatItHolds(t *testing.T) {
	const batch = 10 << 10
	b := newReaderBed(t, broker.Options{}, 2, func(c *Config) {
		c.Consumer.MaxPartitionBytes, c.Consumer.MaxBytes, c.Consumer.QueueCapacity = 2*batch, 4*batch, 5
	})
	one := []msg{{value: make([]byte, batch)}}
	for range 100 {
		b.write(0, one)
		b.write(1, one)
	}
	r := b.reader(ReaderConfig{Partitions: []int32{0, 1}, QueueBytes: 1 << 20})
	other := b.reader(ReaderConfig{})
	require.Eventually(t, func() bool { return r.Stats().QueueLength >= 5 }, 10*time.Second, time.Millisecond)
	// Another reader's needs are not held up by this one, whose application does not read.
	for range 100 {
		_, err := other.FetchMessage(b.ctx)
		require.NoError(t, err)
	}
	s := r.Stats()
	require.LessOrEqual(t, s.QueueLength, 5+4, "the bound, and one answer that was under way")
	require.LessOrEqual(t, s.QueueBytes, int64(512<<10))
	r.mu.Lock()
	p := r.byPlace[topicPartition{"in", 1}]
	r.seekLocked(p, 0)
	left := 0
	for i := range r.queue.n {
		if r.queue.at(i).p == p {
			left++
		}
	}
	r.mu.Unlock()
	require.Zero(t, left, "SetOffset gives back what is queued of the partition")
	buf := make([]Message, 10)
	for total := 0; total < 200; {
		n, err := r.FetchBatch(b.ctx, buf)
		require.NoError(t, err)
		total += n
		require.LessOrEqual(t, r.Stats().QueueLength, 9)
	}
}

func TestReaderHookPanicIsContained(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, nil)
	b.write(0, values(0, 5))
	var calls atomic.Int64
	r := b.reader(ReaderConfig{OnFetch: func(FetchStats) {
		calls.Add(1)
		panic("a user's mistake")
	}})
	b.expect(r, 0, 5)
	require.NoError(t, r.Close())
	require.Equal(t, calls.Load(), r.Stats().Panics)
	require.Positive(t, calls.Load())
}

func TestGetOffset(t *testing.T) {
	b := newReaderBed(t, broker.Options{Nodes: 3}, 6, nil)
	for p := range int32(6) {
		b.write(p, values(0, 10*int(p)+1))
	}
	require.NoError(t, b.cluster.DeleteRecords("in", 5, 7))
	var queries []OffsetQuery
	for p := range int32(6) {
		queries = append(queries, OffsetQuery{"in", p, OffsetNewest}, OffsetQuery{"in", p, OffsetOldest}, OffsetQuery{"in", p, 1_700_000_000_009})
	}
	queries = append(queries, OffsetQuery{"in", 6, OffsetNewest}, OffsetQuery{"nowhere", 0, OffsetNewest})
	before := b.cluster.Requests(2)
	answers, err := b.client.ListOffsets(b.ctx, ReadUncommitted, queries...)
	require.NoError(t, err)
	leaders := map[int32]bool{}
	for p := range int32(6) {
		leaders[b.cluster.Leader("in", p)] = true
	}
	require.EqualValues(t, 3*len(leaders), b.cluster.Requests(2)-before, "per leader one request, and one more for each partition asked again")
	for p := range 6 {
		require.NoError(t, answers[3*p].Err)
		require.EqualValues(t, 10*p+1, answers[3*p].Offset)
		require.EqualValues(t, map[bool]int{true: 7}[p == 5], answers[3*p+1].Offset)
		if p > 0 {
			require.EqualValues(t, 9, answers[3*p+2].Offset)
		} else {
			require.EqualValues(t, -1, answers[2].Offset, "all are older")
		}
	}
	require.ErrorIs(t, answers[18].Err, ErrPartitionInvalid)
	require.ErrorIs(t, answers[19].Err, ErrTopicUnknown)

	// Failures that may pass are tried again.
	b.cluster.Fail(broker.Failure{Key: 2, Code: wire.ErrNotLeaderOrFollower.Code, Count: 2})
	at, err := b.client.GetOffset(b.ctx, "in", 3, OffsetNewest)
	require.NoError(t, err)
	require.EqualValues(t, 31, at)
}
