package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

const patience = 20 * time.Second

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// cluster starts an in-process broker with topic "t".
func cluster(t testing.TB, nodes, partitions int) *broker.Cluster {
	c, err := broker.Start(broker.Options{Nodes: nodes})
	require.NoError(t, err)
	t.Cleanup(func() { requireVersions(t, c); c.Close() })
	require.NoError(t, c.CreateTopic("t", partitions, nil))
	return c
}

// requireVersions is the guard of M11 and M12 in every test: the embedded broker takes request
// versions that Kafka 4 has dropped.
func requireVersions(t testing.TB, c *broker.Cluster) {
	for key, versions := range c.Versions() {
		for _, v := range versions {
			require.False(t, wire.Dropped(key, v), "%s version %d was sent, which Kafka 4 refuses", kmsg.NameForKey(key), v)
		}
	}
}

// quickConfig retries fast, so that tests of failures are.
func quickConfig() *Config {
	cfg := NewConfig()
	quick := RetryConfig{Max: 1 << 20, Backoff: 2 * time.Millisecond, MaxBackoff: 20 * time.Millisecond}
	cfg.Producer.Retry, cfg.Metadata.Retry, cfg.Admin.Retry = quick, quick, quick
	cfg.Metadata.Retry.Max = 5
	return cfg
}

func asyncProducer(t testing.TB, c *broker.Cluster, cfg *Config) *AsyncProducer {
	p, err := NewAsyncProducer(c.Bootstrap(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close(within(t)) })
	return p
}

// logOf reads a partition of topic "t" from the broker, straight by the protocol: key and value of
// each record.
func logOf(t testing.TB, c *broker.Cluster, partition int32) (keys, values []string) {
	return logOfTopic(t, c, "t", partition)
}

func logOfTopic(t testing.TB, c *broker.Cluster, topic string, partition int32) (keys, values []string) {
	cl, err := NewClient(c.Bootstrap(), nil)
	require.NoError(t, err)
	defer cl.Close()
	d := new(record.Decompressor)
	for at := int64(0); ; {
		b, err := cl.Leader(within(t), topic, partition)
		require.NoError(t, err)
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes, req.MaxWaitMillis = 50<<20, 10
		ft := kmsg.NewFetchRequestTopic()
		ft.Topic, ft.TopicID = topic, cl.meta.Load().topics[topic].id
		fp := kmsg.NewFetchRequestTopicPartition()
		fp.Partition, fp.FetchOffset, fp.PartitionMaxBytes = partition, at, 50<<20
		ft.Partitions = append(ft.Partitions, fp)
		req.Topics = append(req.Topics, ft)
		resp, err := b.Request(within(t), req)
		require.NoError(t, err)
		got := resp.(*kmsg.FetchResponse)
		require.Zero(t, got.ErrorCode)
		if len(got.Topics) == 0 { // nothing new
			return keys, values
		}
		require.Zero(t, got.Topics[0].Partitions[0].ErrorCode)
		rest := got.Topics[0].Partitions[0].RecordBatches
		if len(rest) == 0 {
			return keys, values
		}
		for len(rest) > 0 {
			var batch record.Batch
			batch, rest, err = record.Next(rest)
			require.NoError(t, err)
			require.NoError(t, batch.CheckCRC())
			section, err := batch.Decompressed(d, nil, 1<<30)
			require.NoError(t, err)
			for range batch.Count {
				var r record.Record
				section, err = record.ReadRecord(section, &r)
				require.NoError(t, err)
				keys, values = append(keys, string(r.Key)), append(values, string(r.Value))
			}
			at = batch.NextOffset()
		}
	}
}

// numbered is the messages 0 … n−1, keyed so that they spread over partitions.
func numbered(n, keys int) []*ProducerMessage {
	out := make([]*ProducerMessage, n)
	for i := range out {
		out[i] = &ProducerMessage{Topic: "t", Key: fmt.Appendf(nil, "k%d", i%keys), Value: fmt.Appendf(nil, "%d", i)}
	}
	return out
}

// requireWhole checks that topic "t" holds every message of numbered(n, keys) once, in order within
// each key.
func requireWhole(t testing.TB, c *broker.Cluster, partitions, n, keys int) {
	requireWholeTopic(t, c, "t", partitions, n, keys)
}

func requireWholeTopic(t testing.TB, c *broker.Cluster, topic string, partitions, n, keys int) {
	next := map[string]int{}
	total := 0
	for p := range partitions {
		ks, vs := logOfTopic(t, c, topic, int32(p))
		for i, k := range ks {
			want, seen := next[k]
			if !seen {
				_, err := fmt.Sscanf(k, "k%d", &want)
				require.NoError(t, err)
			}
			require.Equal(t, fmt.Sprint(want), vs[i], "order within key %s", k)
			next[k] = want + keys
		}
		total += len(ks)
	}
	require.Equal(t, n, total, "messages in the log")
}

// tally counts outcomes.
type tally struct {
	mu      sync.Mutex
	ok, bad int
	unknown int // of the bad ones, those that may be in the log
	errs    []error
	at      map[string]bool
}

func (o *tally) Delivered(batch []*ProducerMessage, d Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d.Err != nil {
		o.bad += len(batch)
		if errors.Is(d.Err, ErrOutcomeUnknown) {
			o.unknown += len(batch)
		}
		o.errs = append(o.errs, d.Err)
		return
	}
	o.ok += len(batch)
	if o.at == nil {
		o.at = map[string]bool{}
	}
	for _, m := range batch {
		o.at[fmt.Sprint(m.Partition, "/", m.Offset)] = true
	}
}

func (o *tally) require(t testing.TB, ok, bad int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Equal(t, ok, o.ok, "acknowledged; errors: %v", o.errs)
	require.Equal(t, bad, o.bad, "failed: %v", o.errs)
}

func TestEveryMessageArrivesOnceInOrder(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Config)
	}{
		{"by default", func(*Config) {}},
		{"with a queue bound of nothing", func(c *Config) { c.ChannelBufferSize = 0 }},
		{"with a queue bound of one", func(c *Config) { c.ChannelBufferSize = 1 }},
		{"with one request in flight", func(c *Config) { c.Net.MaxOpenRequests = 1 }},
		{"with acks from the leader", func(c *Config) { c.Producer.RequiredAcks = AcksLeader }},
		{"with small batches", func(c *Config) { c.Producer.Flush.MaxMessages = 7 }},
		{"with a trigger by messages", func(c *Config) { c.Producer.Flush.Messages = 100; c.Producer.Flush.Frequency = 5 * time.Millisecond }},
		{"with a trigger by bytes", func(c *Config) { c.Producer.Flush.Bytes = 4096; c.Producer.Flush.Frequency = 5 * time.Millisecond }},
		{"with a trigger by time", func(c *Config) { c.Producer.Flush.Frequency = 2 * time.Millisecond }},
		{"with a tight buffer", func(c *Config) { c.Producer.Buffer.Messages = 3 }},
		{"with small requests and batches", func(c *Config) { c.Producer.MaxMessageBytes = 200; c.Producer.MaxRequestBytes = 300 }},
		{"with gzip", func(c *Config) { c.Producer.Compression = record.Gzip }},
		{"with snappy", func(c *Config) { c.Producer.Compression = record.Snappy }},
		{"with lz4", func(c *Config) { c.Producer.Compression = record.LZ4 }},
		{"with zstd", func(c *Config) { c.Producer.Compression = record.ZSTD }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(t, 3, 6)
			cfg := quickConfig()
			tc.change(cfg)
			p := asyncProducer(t, c, cfg)
			var out tally
			const n = 2000
			got, err := p.ProduceRun(within(t), numbered(n, 10), &out)
			require.NoError(t, err)
			require.Equal(t, n, got)
			require.NoError(t, p.Flush(within(t)))
			out.require(t, n, 0)
			require.Len(t, out.at, n, "every message has an offset of its own")
			requireWhole(t, c, 6, n, 10)
		})
	}
}

func TestCallbackForm(t *testing.T) {
	c := cluster(t, 1, 3)
	p := asyncProducer(t, c, nil)
	var done atomic.Int64
	msgs := numbered(500, 5)
	for _, m := range msgs {
		require.NoError(t, p.Produce(within(t), m, func(got *ProducerMessage, err error) {
			if err == nil && got.Offset >= 0 {
				done.Add(1)
			}
		}))
	}
	require.NoError(t, p.Flush(within(t)))
	require.EqualValues(t, 500, done.Load())
	requireWhole(t, c, 3, 500, 5)
}

func TestChannelFormDeliversAllByAsyncClose(t *testing.T) { // P21
	c := cluster(t, 1, 3)
	cfg := quickConfig()
	cfg.Producer.Return.Successes = true
	cfg.Producer.MaxMessageBytes = 1000
	p, err := NewAsyncProducer(c.Bootstrap(), cfg)
	require.NoError(t, err)
	const n = 300
	go func() { // ends when all are in
		for i, m := range numbered(n, 5) {
			if i == 7 {
				m.Value = make([]byte, 2000)
			}
			p.Input() <- m
		}
		p.AsyncClose(context.Background())
	}()
	ok, bad := 0, 0
	var failures sync.WaitGroup
	failures.Go(func() { // ends when the channel is closed
		for e := range p.Errors() {
			var large *MessageTooLargeError
			if assert.ErrorAs(t, e, &large) {
				assert.Equal(t, 1000, large.Limit)
			}
			bad++
		}
	})
	for range p.Successes() {
		ok++
	}
	failures.Wait()
	require.Equal(t, n-1, ok)
	require.Equal(t, 1, bad)
	require.NoError(t, p.Close(within(t)))
}

func TestSyncProducer(t *testing.T) {
	c := cluster(t, 1, 1)
	p, err := NewSyncProducer(c.Bootstrap(), nil)
	require.NoError(t, err)
	for i := range 3 {
		partition, offset, err := p.SendMessage(&ProducerMessage{Topic: "t", Value: []byte("x")})
		require.NoError(t, err)
		require.Equal(t, int32(0), partition)
		require.Equal(t, int64(i), offset)
	}
	large := &ProducerMessage{Topic: "t", Value: make([]byte, 2_000_000)}
	err = p.SendMessages([]*ProducerMessage{{Topic: "t", Value: []byte("a")}, large, {Topic: "t", Value: []byte("b")}})
	var failed MessageErrors
	require.ErrorAs(t, err, &failed)
	require.Len(t, failed, 1, "only the oversize message fails")
	require.Same(t, large, failed[0].Msg)
	require.NoError(t, p.Close(within(t)))
	_, _, err = p.SendMessage(&ProducerMessage{Topic: "t"})
	require.ErrorIs(t, err, ErrClosed)
}

func TestP27NoResponseIsAwaitedWithoutAcks(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.RequiredAcks = AcksNone
	cfg.Net.MaxOpenRequests = 1
	p := asyncProducer(t, c, cfg)
	var out tally
	for range 50 {
		_, err := p.ProduceRun(within(t), numbered(1, 1), &out)
		require.NoError(t, err)
	}
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 50, 0)
	require.Equal(t, map[string]bool{"0/-1": true}, out.at, "no offset is known")
}

func TestRetriesKeepOrder(t *testing.T) {
	for _, tc := range []struct {
		name string
		code int16
	}{
		{"P1: the first batch fails retriably while others are in flight", 19},
		{"M3: the leader says it is none", 6},
		{"M14: a batch damaged on the way", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(t, 1, 1)
			cfg := quickConfig()
			cfg.Net.MaxOpenRequests = 1 // without idempotence more in flight may be reordered
			cfg.Producer.Flush.MaxMessages = 20
			p := asyncProducer(t, c, cfg)
			c.FailProduce(tc.code, 3)
			var out tally
			_, err := p.ProduceRun(within(t), numbered(400, 1), &out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(within(t)))
			out.require(t, 400, 0)
			requireWhole(t, c, 1, 400, 1)
			require.Positive(t, p.retries.Load())
		})
	}
}

func TestP25ABatchTooLargeIsSplit(t *testing.T) {
	c, err := broker.Start(broker.Options{Nodes: 1})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.CreateTopic("t", 1, map[string]string{"max.message.bytes": "400"}))
	cfg := quickConfig()
	cfg.Net.MaxOpenRequests = 1
	p := asyncProducer(t, c, cfg)
	msgs := numbered(100, 1)
	msgs[50].Value = make([]byte, 500)
	var out tally
	_, err = p.ProduceRun(within(t), msgs, &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 99, 1)
	require.ErrorIs(t, out.errs[0], wire.ErrMessageTooLarge)
	_, vs := logOf(t, c, 0)
	require.Len(t, vs, 99)
	for i, v := range vs {
		if i >= 50 {
			i++
		}
		require.Equal(t, fmt.Sprint(i), v, "order is kept")
	}
}

func TestLeaderMovesAndConnectionsBreak(t *testing.T) {
	c := cluster(t, 3, 6)
	p := asyncProducer(t, c, quickConfig())
	var out tally
	const rounds, each = 20, 200
	for i := range rounds {
		_, err := p.ProduceRun(within(t), numbered(each, 10), &out)
		require.NoError(t, err)
		require.NoError(t, c.MoveLeader("t", int32(i%6), int32((i+1)%3)))
		if i%5 == 4 {
			c.CloseConnections()
		}
	}
	require.NoError(t, p.Flush(within(t)))
	out.require(t, rounds*each, 0)
	total := 0
	for i := range int32(6) {
		_, vs := logOf(t, c, i)
		total += len(vs)
	}
	require.GreaterOrEqual(t, total, rounds*each, "nothing acknowledged is lost; a cut connection may duplicate without idempotence")
}

func TestM8AnIdleConnectionIsOpenedAgain(t *testing.T) {
	c := cluster(t, 1, 1)
	p, err := NewSyncProducer(c.Bootstrap(), quickConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close(within(t))) }()
	for range 3 {
		_, _, err := p.SendMessage(&ProducerMessage{Topic: "t", Value: []byte("x")})
		require.NoError(t, err)
		c.CloseConnections()
	}
}

func TestP20CloseIsBoundedWithoutALeader(t *testing.T) {
	c := cluster(t, 1, 1)
	p, err := NewAsyncProducer(c.Bootstrap(), quickConfig())
	require.NoError(t, err)
	var out tally
	c.FailProduce(5, 1<<30)
	accepted, err := p.ProduceRun(within(t), numbered(200, 1), &out)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	require.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded)
	require.Less(t, time.Since(start), 5*time.Second)
	out.require(t, 0, accepted)
	for _, err := range out.errs {
		require.ErrorIs(t, err, ErrClosed)
	}
}

func TestCloseIsBoundedWhileTheBrokerIsSilent(t *testing.T) {
	c := cluster(t, 1, 1)
	p, err := NewAsyncProducer(c.Bootstrap(), quickConfig())
	require.NoError(t, err)
	var out tally
	c.Stall(time.Hour)
	defer c.Resume()
	_, err = p.ProduceRun(within(t), numbered(100, 1), &out)
	require.NoError(t, err)
	require.NoError(t, c.AwaitRequests(within(t), 0, 1))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, p.Close(ctx))
	out.require(t, 0, 100)
	require.ErrorIs(t, out.errs[0], ErrOutcomeUnknown)
}

func TestDeliveryTimeoutEndsRetrying(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.DeliveryTimeout = 60 * time.Millisecond
	p := asyncProducer(t, c, cfg)
	c.FailProduce(19, 1<<30)
	var out tally
	_, err := p.ProduceRun(within(t), numbered(10, 1), &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 0, 10)
	require.ErrorIs(t, out.errs[0], ErrDeliveryTimeout)
}

func TestRetryMaxEndsRetrying(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.Retry.Max = 2
	p := asyncProducer(t, c, cfg)
	f := c.FailProduce(19, 1<<30)
	var out tally
	_, err := p.ProduceRun(within(t), numbered(1, 1), &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 0, 1)
	require.ErrorIs(t, out.errs[0], ErrRetriesExhausted)
	require.Equal(t, 3, f.Hits(), "the first try and two more")
}

func TestUnknownTopicFailsEveryMessage(t *testing.T) {
	c := cluster(t, 1, 1)
	p := asyncProducer(t, c, quickConfig())
	var out tally
	_, err := p.ProduceRun(within(t), []*ProducerMessage{{Topic: "missing"}, {Topic: "t"}, {Topic: "missing"}}, &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 1, 2)
	require.ErrorIs(t, out.errs[0], ErrTopicUnknown)
}

func TestBoundsHoldWhileTheBrokerIsSilent(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.Buffer.Messages = 50
	p := asyncProducer(t, c, cfg)
	c.Stall(time.Hour)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var out tally
	n, err := p.ProduceRun(ctx, numbered(200, 1), &out)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.LessOrEqual(t, n, 50)
	require.Positive(t, n)
	c.Resume()
	require.NoError(t, p.Flush(within(t)))
	out.require(t, n, 0)
}

func TestPanicsOfUserCodeAreContained(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.Interceptors = []ProducerInterceptor{panicky{}}
	turns := 0
	cfg.Producer.NewPartitioner = func(string) Partitioner {
		return partitionerFunc(func() int32 {
			if turns++; turns == 3 {
				panic("third")
			}
			return 0
		})
	}
	p := asyncProducer(t, c, cfg)
	var outcomes atomic.Int64
	for range 10 {
		require.NoError(t, p.Produce(within(t), &ProducerMessage{Topic: "t"}, func(*ProducerMessage, error) {
			outcomes.Add(1)
			panic("callback")
		}))
	}
	require.NoError(t, p.Flush(within(t)))
	require.EqualValues(t, 10, outcomes.Load())
	require.EqualValues(t, 10+1+10, p.panics.Load())
	_, vs := logOf(t, c, 0)
	require.Len(t, vs, 9, "only the message whose partitioner panicked failed")
}

type panicky struct{}

func (panicky) OnSend(*ProducerMessage) { panic("interceptor") }

type partitionerFunc func() int32

func (f partitionerFunc) Partition(*ProducerMessage, int32) (int32, error) { return f(), nil }
func (f partitionerFunc) RequiresConsistency(*ProducerMessage) bool        { return true }

func TestP24ACallbackMayProduceAgain(t *testing.T) {
	c := cluster(t, 1, 1)
	p := asyncProducer(t, c, quickConfig())
	var wg sync.WaitGroup
	var again func(left int) func(*ProducerMessage, error)
	again = func(left int) func(*ProducerMessage, error) {
		return func(m *ProducerMessage, err error) {
			defer wg.Done()
			if err != nil || left == 0 {
				return
			}
			wg.Add(1)
			if p.Produce(context.Background(), m, again(left-1)) != nil {
				wg.Done()
			}
		}
	}
	for range 10 {
		wg.Add(1)
		require.NoError(t, p.Produce(within(t), &ProducerMessage{Topic: "t"}, again(5)))
	}
	wg.Wait()
	_, vs := logOf(t, c, 0)
	require.Len(t, vs, 60)
}

func TestManySendersManyTopics(t *testing.T) {
	c := cluster(t, 2, 2)
	for i := range 5 {
		require.NoError(t, c.CreateTopic(fmt.Sprint("u", i), 3, nil))
	}
	cfg := quickConfig()
	cfg.ChannelBufferSize = 4
	p := asyncProducer(t, c, cfg)
	var out tally
	var wg sync.WaitGroup
	for s := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 200 {
				run := []*ProducerMessage{{Topic: fmt.Sprint("u", (s+i)%5)}, {Topic: "t"}, {Topic: fmt.Sprint("u", i%5)}}
				_, err := p.ProduceRun(within(t), run, &out)
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 8*200*3, 0)
}
