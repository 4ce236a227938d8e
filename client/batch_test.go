package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
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

const keyProduce, keyMetadata = 0, 3

func batchProducer(t testing.TB, addrs []string, cfg *Config) *BatchProducer {
	p, err := NewBatchProducer(addrs, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close(within(t)) })
	return p
}

// numberedBatch is the messages 0 … n−1 of numbered, for a BatchProducer.
func numberedBatch(n, keys int) []*BatchMessage {
	out := make([]*BatchMessage, n)
	for i := range out {
		out[i] = &BatchMessage{Topic: "t", Key: "k" + strconv.Itoa(i%keys), Value: strconv.Itoa(i)}
	}
	return out
}

// placed is messages for given partitions, in turn; the manual partitioner is needed.
func placed(n int, partitions ...int32) []*BatchMessage {
	out := make([]*BatchMessage, n)
	for i := range out {
		out[i] = &BatchMessage{Topic: "t", Value: strconv.Itoa(i), Partition: partitions[i%len(partitions)]}
	}
	return out
}

// arrived is what came in one Produce request.
type arrived struct {
	node       int32
	partitions []int32
}

// watch notes every Produce request.
func watch(c *broker.Cluster) func() []arrived {
	var mu sync.Mutex
	var seen []arrived
	c.Observe(keyProduce, func(node int32, request kmsg.Request) {
		mu.Lock()
		defer mu.Unlock()
		p := arrived{node: node}
		for _, t := range request.(*kmsg.ProduceRequest).Topics {
			for i := range t.Partitions {
				p.partitions = append(p.partitions, t.Partitions[i].Partition)
			}
		}
		slices.Sort(p.partitions)
		seen = append(seen, p)
	})
	return func() []arrived {
		mu.Lock()
		defer mu.Unlock()
		out := seen
		seen = nil
		return out
	}
}

func TestBatchSendsEveryMessageOnceInOrder(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Config)
	}{
		{"by default", func(*Config) {}},
		{"queued", func(c *Config) { c.Producer.Batch.Async = true }},
		{"queued, with a trigger by messages", func(c *Config) { c.Producer.Batch.Async = true; c.Producer.Flush.Messages = 300 }},
		{"queued, with a trigger by bytes", func(c *Config) { c.Producer.Batch.Async = true; c.Producer.Flush.Bytes = 1000 }},
		{"queued, with a trigger by time", func(c *Config) {
			c.Producer.Batch.Async = true
			c.Producer.Flush.Frequency = 2 * time.Millisecond
		}},
		{"queued, with a tight buffer", func(c *Config) { c.Producer.Batch.Async = true; c.Producer.Buffer.Messages = 3 }},
		{"queued, with a trigger that the buffer never reaches", func(c *Config) {
			c.Producer.Batch.Async = true
			c.Producer.Buffer.Messages, c.Producer.Flush.Messages = 5, 1000
		}},
		{"with small batches", func(c *Config) { c.Producer.Flush.MaxMessages = 7 }},
		{"with small requests and batches", func(c *Config) { c.Producer.MaxMessageBytes = 200; c.Producer.MaxRequestBytes = 300 }},
		{"with acks from the leader", func(c *Config) { c.Producer.RequiredAcks = AcksLeader }},
		{"with zstd", func(c *Config) { c.Producer.Compression = record.ZSTD }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(t, 3, 6)
			cfg := quickConfig()
			tc.change(cfg)
			cfg.Producer.OnRequest = func(i RequestInfo) {
				if i.Err != nil || i.Bytes > cfg.Producer.MaxRequestBytes {
					t.Errorf("a request of %d bytes: %v", i.Bytes, i.Err)
				}
			}
			p := batchProducer(t, c.Bootstrap(), cfg)
			msgs := numberedBatch(2000, 10)
			if cfg.Producer.Buffer.Messages < 10 {
				msgs = msgs[:300]
			}
			for part := range slices.Chunk(msgs, 500) {
				require.NoError(t, p.Send(within(t), part...))
			}
			require.NoError(t, p.Flush(within(t)))
			at := map[string]bool{}
			for _, m := range msgs {
				require.NoError(t, m.Err)
				at[fmt.Sprint(m.Partition, "/", m.Offset)] = true
			}
			require.Len(t, at, len(msgs), "every message has an offset of its own")
			requireWhole(t, c, 6, len(msgs), 10)
		})
	}
}

// One Send is one request to each broker that leads anything of it, with all its partitions.
func TestBatchGroupsByLeader(t *testing.T) {
	c := cluster(t, 3, 6)
	cfg := quickConfig()
	cfg.Producer.Partitioner = "manual"
	p := batchProducer(t, c.Bootstrap(), cfg)
	seen := watch(c)
	require.NoError(t, p.Send(within(t), placed(600, 0, 1, 2, 3, 4, 5)...))
	want := map[int32][]int32{}
	for i := range int32(6) {
		want[c.Leader("t", i)] = append(want[c.Leader("t", i)], i)
	}
	got := map[int32][]int32{}
	requests := seen()
	for _, r := range requests {
		got[r.node] = r.partitions
	}
	require.Equal(t, want, got)
	require.Len(t, requests, len(want), "one request a broker")
}

// All brokers are asked at the same time: with one of them silent the others have their messages.
func TestBatchAsksBrokersInParallel(t *testing.T) {
	c := cluster(t, 3, 3)
	cfg := quickConfig()
	cfg.Producer.Partitioner = "manual"
	for i := range int32(3) {
		require.NoError(t, c.MoveLeader("t", i, i))
	}
	p := batchProducer(t, c.Bootstrap(), cfg)
	c.Stall(0)
	done := make(chan error, 1)
	go func() { done <- p.Send(within(t), placed(3, 0, 1, 2)...) }() // ends after Resume; received below
	require.NoError(t, c.AwaitRequests(within(t), keyProduce, 3), "no request waits for the answer to another")
	c.Resume()
	require.NoError(t, <-done)
}

// The leader of one partition has moved and nobody told: only its messages are sent again, to the
// new leader, after metadata was asked for.
func TestBatchSendsOnlyWhatFailedAgain(t *testing.T) {
	for _, async := range []bool{false, true} {
		t.Run(fmt.Sprintf("async=%v", async), func(t *testing.T) {
			c := cluster(t, 2, 4)
			for i := range int32(4) {
				require.NoError(t, c.MoveLeader("t", i, 0))
			}
			cfg := quickConfig()
			cfg.Version = Version{3, 6} // no hint of the new leader in the answer (KIP-951)
			cfg.Producer.Partitioner, cfg.Producer.Batch.Async, cfg.Metadata.RefreshFrequency = "manual", async, -1
			p := batchProducer(t, c.Bootstrap(), cfg)
			require.NoError(t, p.Send(within(t), placed(40, 0, 1, 2, 3)...))
			require.NoError(t, p.Flush(within(t)))
			seen := watch(c)
			require.NoError(t, c.MoveLeader("t", 2, 1))
			before := c.Requests(keyMetadata)
			msgs := placed(40, 0, 1, 2, 3)
			require.NoError(t, p.Send(within(t), msgs...))
			require.NoError(t, p.Flush(within(t)))
			require.Equal(t, []arrived{{0, []int32{0, 1, 2, 3}}, {1, []int32{2}}}, seen())
			require.EqualValues(t, 1, c.Requests(keyMetadata)-before, "asked once, after the failure")
			require.EqualValues(t, 1, p.Stats().Retries)
			for i := range int32(4) {
				_, vs := logOf(t, c, i)
				require.Len(t, vs, 20, "partition %d", i)
			}
		})
	}
}

// Retry.Max bounds the tries of what fails, and what does not fail is not held up.
func TestBatchRetriesUpToMax(t *testing.T) {
	c := cluster(t, 1, 2)
	cfg := quickConfig()
	cfg.Producer.Retry.Max, cfg.Producer.Partitioner = 2, "manual"
	var backoffs []int // asked for by Send's own goroutine
	cfg.Producer.Retry.BackoffFunc = func(attempt int) time.Duration {
		backoffs = append(backoffs, attempt)
		return 40 * time.Millisecond
	}
	p := batchProducer(t, c.Bootstrap(), cfg)
	require.NoError(t, p.Send(within(t), placed(1, 0)...), "the topic is known")
	f := c.Fail(broker.Failure{Key: keyProduce, Code: 19, Count: -1, Partitions: []int32{1}})
	defer f.Remove()
	before := c.Requests(keyMetadata)
	msgs, begun := placed(10, 0, 1), time.Now()
	err := p.Send(within(t), msgs...)
	require.GreaterOrEqual(t, time.Since(begun), 80*time.Millisecond, "a backoff before each further try")
	require.Equal(t, []int{1, 2}, backoffs)
	var bad *BatchError
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Failed, 5)
	require.Equal(t, 10, bad.Of)
	require.ErrorIs(t, err, ErrRetriesExhausted)
	require.ErrorIs(t, err, wire.ErrNotEnoughReplicas)
	require.NotErrorIs(t, err, ErrOutcomeUnknown, "the broker has refused it")
	for i, m := range msgs {
		if i%2 == 0 {
			require.NoError(t, m.Err)
			require.EqualValues(t, 1+i/2, m.Offset)
		} else {
			require.ErrorIs(t, m.Err, ErrRetriesExhausted)
			require.Equal(t, int64(-1), m.Offset)
		}
	}
	require.Equal(t, 3, f.Hits(), "the first try and two more")
	require.EqualValues(t, 2, c.Requests(keyMetadata)-before, "metadata is refreshed before each further try")
}

func TestBatchDeliveryTimeoutEndsRetrying(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.DeliveryTimeout = 60 * time.Millisecond
	p := batchProducer(t, c.Bootstrap(), cfg)
	c.FailProduce(19, -1)
	err := p.Send(within(t), numberedBatch(10, 1)...)
	require.ErrorIs(t, err, ErrDeliveryTimeout)
	require.ErrorIs(t, err, wire.ErrNotEnoughReplicas, "with the reason of the last try")
}

func TestBatchOrderIsKeptThroughRetries(t *testing.T) {
	for _, async := range []bool{false, true} {
		t.Run(fmt.Sprintf("async=%v", async), func(t *testing.T) {
			c := cluster(t, 2, 3)
			cfg := quickConfig()
			cfg.Producer.Flush.MaxMessages, cfg.Producer.Batch.Async = 20, async
			p := batchProducer(t, c.Bootstrap(), cfg)
			c.FailProduce(19, 5)
			for part := range slices.Chunk(numberedBatch(1000, 6), 100) {
				require.NoError(t, p.Send(within(t), part...))
			}
			require.NoError(t, p.Flush(within(t)))
			requireWhole(t, c, 3, 1000, 6)
			require.Positive(t, p.Stats().Retries)
		})
	}
}

// Without acks there is no offset, and nothing is awaited.
func TestBatchWithoutAcks(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.RequiredAcks, cfg.Net.MaxOpenRequests = AcksNone, 1
	p := batchProducer(t, c.Bootstrap(), cfg)
	for range 20 {
		msgs := numberedBatch(5, 1)
		require.NoError(t, p.Send(within(t), msgs...))
		require.Equal(t, int64(-1), msgs[0].Offset)
		require.Zero(t, msgs[0].Partition)
	}
	require.Eventually(t, func() bool { _, end, err := c.Offsets("t", 0); return err == nil && end == 100 }, patience, time.Millisecond)
}

// With acks=0 the loss of a connection is told, also to OnRequest: what was sent last may be lost.
func TestBatchWithoutAcksTellsOfDroppedConnections(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.RequiredAcks = AcksNone
	var mu sync.Mutex
	var told []error
	cfg.Producer.OnRequest = func(i RequestInfo) {
		mu.Lock()
		defer mu.Unlock()
		if i.Err != nil {
			told = append(told, i.Err)
		}
	}
	p := batchProducer(t, c.Bootstrap(), cfg)
	require.NoError(t, p.Send(within(t), numberedBatch(1, 1)...))
	require.NoError(t, c.AwaitRequests(within(t), keyProduce, 1))
	using := p.sender(0).using.Load()
	c.CloseConnections()
	<-using.Done()
	require.NoError(t, p.Send(within(t), numberedBatch(1, 1)...))
	require.EqualValues(t, 1, p.Stats().Dropped)
	mu.Lock()
	require.Len(t, told, 1)
	require.ErrorIs(t, told[0], ErrDropped)
	mu.Unlock()
	c.CloseConnections()
	<-p.sender(0).using.Load().Done()
	require.NoError(t, p.Close(within(t)))
	require.EqualValues(t, 2, p.Stats().Dropped, "also when nothing is sent any more")
}

// P26: with producer.checkCompressedSize the limit holds for what compression leaves.
func TestBatchChecksTheCompressedSize(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.MaxMessageBytes, cfg.Producer.Compression, cfg.Producer.CheckCompressedSize = 2000, record.ZSTD, true
	p := batchProducer(t, c.Bootstrap(), cfg)
	noise := make([]byte, 3000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	msgs := []*BatchMessage{{Topic: "t", Value: make([]byte, 100_000)}, {Topic: "t", Value: noise}, {Topic: "t", Value: "small"}}
	var large *MessageTooLargeError
	require.ErrorAs(t, p.Send(within(t), msgs...), &large)
	require.Equal(t, 2000, large.Limit)
	require.Greater(t, large.Size, 3000)
	require.NoError(t, msgs[0].Err)
	require.ErrorAs(t, msgs[1].Err, &large)
	require.NoError(t, msgs[2].Err)
}

// What would wait for itself in OnResults is refused at once.
func TestBatchWaitingInCallbacksIsRefused(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	var p *BatchProducer
	var errs []error
	cfg.Producer.Batch.Async, cfg.Producer.Buffer.Messages = true, 1
	again, called := &BatchMessage{Topic: "t"}, make(chan struct{})
	cfg.Producer.Batch.OnResults = batchDeliveries(func(run []*BatchMessage, _ Delivery) {
		if run[0] != again && errs == nil {
			errs = append(errs, p.Flush(context.Background()), p.Send(context.Background(), again), p.Close(context.Background()))
			close(called)
		}
	})
	p = batchProducer(t, c.Bootstrap(), cfg)
	require.NoError(t, p.Send(within(t), &BatchMessage{Topic: "t"}))
	<-called
	require.NoError(t, p.Close(within(t)))
	require.ErrorIs(t, errs[0], ErrInCallback)
	require.ErrorIs(t, errs[1], ErrBufferFull, "it would wait for itself")
	require.ErrorIs(t, errs[2], ErrInCallback)
}

// A batch that the broker takes for too large is made smaller until only what is too large by
// itself fails (KIP-126).
func TestBatchTooLargeIsSplit(t *testing.T) {
	c, err := broker.Start(broker.Options{Nodes: 1})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.CreateTopic("t", 1, map[string]string{"max.message.bytes": "400"}))
	p := batchProducer(t, c.Bootstrap(), quickConfig())
	msgs := numberedBatch(100, 1)
	msgs[50].Value = make([]byte, 500)
	err = p.Send(within(t), msgs...)
	var bad *BatchError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []*BatchMessage{msgs[50]}, bad.Failed)
	require.ErrorIs(t, err, wire.ErrMessageTooLarge)
	var large *MessageTooLargeError
	require.ErrorAs(t, err, &large)
	require.Greater(t, large.Size, 500)
	_, vs := logOf(t, c, 0)
	require.Len(t, vs, 99)
	require.True(t, slices.IsSortedFunc(vs, func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return x - y
	}), "order is kept")
	require.Less(t, c.Requests(keyProduce), int64(50), "after a small batch they grow again")
}

func TestBatchMessagesTooLargeForTheProducerFailAlone(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.MaxMessageBytes = 500
	p := batchProducer(t, c.Bootstrap(), cfg)
	msgs := numberedBatch(3, 1)
	msgs[1].Value = make([]byte, 1000)
	var large *MessageTooLargeError
	require.ErrorAs(t, p.Send(within(t), msgs...), &large)
	require.Equal(t, 500, large.Limit)
	require.NoError(t, msgs[0].Err)
	require.Error(t, msgs[1].Err)
	require.NoError(t, msgs[2].Err)
}

func TestBatchUnknownTopicsFailAlone(t *testing.T) {
	c := cluster(t, 1, 1)
	p := batchProducer(t, c.Bootstrap(), quickConfig())
	msgs := []*BatchMessage{{Topic: "missing"}, {Topic: "t"}, {Topic: "gone"}, {Topic: "missing"}}
	err := p.Send(within(t), msgs...)
	require.ErrorIs(t, err, ErrTopicUnknown)
	require.ErrorContains(t, err, "3 of 4 messages failed")
	require.NoError(t, msgs[1].Err)
	require.ErrorContains(t, msgs[2].Err, `"gone"`)
}

// What ends with its context is decided when Send returns: unknown where the request had left.
func TestBatchSendEndsWithItsContext(t *testing.T) {
	c := cluster(t, 1, 1)
	p := batchProducer(t, c.Bootstrap(), quickConfig())
	c.Stall(0)
	defer c.Resume()
	ctx, cancel := context.WithCancel(within(t))
	msgs := numberedBatch(10, 1)
	done := make(chan error, 1)
	go func() { done <- p.Send(ctx, msgs...) }() // ends with ctx; received below
	require.NoError(t, c.AwaitRequests(within(t), keyProduce, 1))
	cancel()
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, ErrOutcomeUnknown)
	for _, m := range msgs {
		require.Error(t, m.Err)
	}
	c.Resume()
	require.NoError(t, p.Send(within(t), numberedBatch(1, 1)...), "the producer goes on")

	c.FailProduce(19, -1)
	short, cancel := context.WithCancel(within(t))
	between := quickConfig() // the context ends between two tries
	between.Producer.Retry.BackoffFunc = func(int) time.Duration { cancel(); return time.Minute }
	err = batchProducer(t, c.Bootstrap(), between).Send(short, numberedBatch(1, 1)...)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, wire.ErrNotEnoughReplicas, "the last failure is told")
	require.NotErrorIs(t, err, ErrOutcomeUnknown)
}

func TestBatchCloseIsBounded(t *testing.T) {
	for _, tc := range []struct {
		name   string
		async  bool
		break_ func(*broker.Cluster)
	}{
		{"while the broker is silent", false, func(c *broker.Cluster) { c.Stall(0) }},
		{"queued, while the broker is silent", true, func(c *broker.Cluster) { c.Stall(0) }},
		{"while everything is refused", false, func(c *broker.Cluster) { c.FailProduce(5, -1) }},
		{"queued, while everything is refused", true, func(c *broker.Cluster) { c.FailProduce(5, -1) }},
		{"while no connection is let in", false, func(c *broker.Cluster) { c.Unreachable(0) }},
		{"queued, while no connection is let in", true, func(c *broker.Cluster) { c.Unreachable(0) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(t, 1, 1)
			cfg := quickConfig()
			cfg.Producer.Batch.Async = tc.async
			p := batchProducer(t, c.Bootstrap(), cfg)
			require.NoError(t, p.Send(within(t), numberedBatch(1, 1)...))
			require.NoError(t, p.Flush(within(t)))
			tc.break_(c)
			msgs := numberedBatch(100, 1)
			sent := make(chan error, 1)
			go func() { sent <- p.Send(context.Background(), msgs...) }() // Close ends it; received below
			require.Eventually(t, func() bool { return p.Stats().Open == 100 }, patience, time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			start := time.Now()
			require.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded)
			require.Less(t, time.Since(start), 5*time.Second)
			err := <-sent
			if tc.async {
				require.NoError(t, err, "queued before")
			} else {
				require.ErrorIs(t, err, ErrClosed)
			}
			for _, m := range msgs {
				require.ErrorIs(t, m.Err, ErrClosed)
			}
			require.ErrorIs(t, p.Send(within(t), numberedBatch(1, 1)...), ErrClosed)
			require.Zero(t, p.Stats().Open)
		})
	}
}

// stuck is a connection whose writes, once told, hang until it is closed.
type stuck struct {
	net.Conn
	hang   *atomic.Bool
	hung   chan struct{} // written by the write that hangs, read by the test
	closed chan struct{}
	once   sync.Once
}

func (s *stuck) Write(b []byte) (int, error) {
	if s.hang.Load() {
		s.hung <- struct{}{}
		<-s.closed
		return 0, net.ErrClosed
	}
	return s.Conn.Write(b)
}

func (s *stuck) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// A network that takes nothing holds up neither Send beyond its context nor Close.
func TestBatchCloseEndsAStuckWrite(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	hang, hung := new(atomic.Bool), make(chan struct{}, 10)
	cfg.Net.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &stuck{Conn: nc, hang: hang, hung: hung, closed: make(chan struct{})}, nil
	}
	shared, err := NewClient(c.Bootstrap(), cfg)
	require.NoError(t, err)
	defer shared.Close()
	p, err := NewBatchProducerFromClient(shared)
	require.NoError(t, err)
	require.NoError(t, p.Send(within(t), numberedBatch(1, 1)...))
	hang.Store(true)
	ctx, cancel := context.WithCancel(within(t))
	sent := make(chan error, 1)
	go func() { sent <- p.Send(ctx, numberedBatch(1, 1)...) }() // ends with ctx; received below
	<-hung
	cancel()
	require.ErrorIs(t, <-sent, ErrOutcomeUnknown)
	begun := time.Now()
	require.NoError(t, p.Close(within(t)), "everything has its outcome")
	require.Less(t, time.Since(begun), 5*time.Second, "far below the write timeout")
}

func TestBatchProducerRefuses(t *testing.T) {
	c := cluster(t, 1, 1)
	t.Run("idempotence", func(t *testing.T) {
		cfg := quickConfig()
		cfg.Producer.Idempotent = true
		var bad *ConfigError
		_, err := NewBatchProducer(c.Bootstrap(), cfg)
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "producer.idempotent", bad.Problems[0].Key)
		shared, err := NewClient(c.Bootstrap(), cfg)
		require.NoError(t, err)
		defer shared.Close()
		_, err = NewBatchProducerFromClient(shared)
		require.ErrorAs(t, err, &bad)
	})
	t.Run("a closed client", func(t *testing.T) {
		shared, err := NewClient(c.Bootstrap(), nil)
		require.NoError(t, err)
		require.NoError(t, shared.Close())
		_, err = NewBatchProducerFromClient(shared)
		require.ErrorIs(t, err, ErrClosed)
	})
	t.Run("a message that is nil", func(t *testing.T) {
		p := batchProducer(t, c.Bootstrap(), nil)
		require.Error(t, p.Send(within(t), &BatchMessage{Topic: "t"}, nil))
		require.NoError(t, p.Send(within(t)), "an empty list is nothing to do")
		_, end, err := c.Offsets("t", 0)
		require.NoError(t, err)
		require.Zero(t, end, "nothing of the list was sent")
	})
}

// A client that is closed before its producer fails what is sent then, and Close still ends.
func TestBatchProducerOutlivesItsClient(t *testing.T) {
	for _, async := range []bool{false, true} {
		t.Run(fmt.Sprintf("async=%v", async), func(t *testing.T) {
			c := cluster(t, 1, 1)
			cfg := quickConfig()
			cfg.Producer.Batch.Async = async
			shared, err := NewClient(c.Bootstrap(), cfg)
			require.NoError(t, err)
			p, err := NewBatchProducerFromClient(shared)
			require.NoError(t, err)
			require.NoError(t, p.Send(within(t), numberedBatch(3, 1)...))
			require.NoError(t, p.Flush(within(t)))
			require.NoError(t, shared.Close())
			msgs := numberedBatch(3, 1)
			err = p.Send(within(t), msgs...)
			if !async {
				require.ErrorIs(t, err, ErrClosed)
			}
			require.NoError(t, p.Flush(within(t)))
			for _, m := range msgs {
				require.ErrorIs(t, m.Err, ErrClosed)
			}
			require.NoError(t, p.Close(within(t)))
			require.NoError(t, p.Close(within(t)), "a second time is harmless")
		})
	}
}

func TestBatchConcurrentSends(t *testing.T) {
	c := cluster(t, 3, 6)
	require.NoError(t, c.CreateTopic("u", 3, nil))
	p := batchProducer(t, c.Bootstrap(), quickConfig())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { // ends after its sends
			for i := range 50 {
				err := p.Send(within(t), &BatchMessage{Topic: "t", Value: "x"}, &BatchMessage{Topic: "u"},
					&BatchMessage{Topic: "t", Key: strconv.Itoa(i)})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	total := int64(0)
	for _, topic := range []string{"t", "u"} {
		for i := range int32(6) {
			if _, end, err := c.Offsets(topic, i); err == nil {
				total += end
			}
		}
	}
	require.EqualValues(t, 8*50*3, total)
	require.Zero(t, p.Stats().Failures)
}

func TestBatchPanicsOfUserCodeAreContained(t *testing.T) {
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
	told := 0
	cfg.Producer.Batch.OnResults = batchDeliveries(func(run []*BatchMessage, _ Delivery) { told += len(run); panic("results") })
	p := batchProducer(t, c.Bootstrap(), cfg)
	msgs := numberedBatch(5, 1)
	err := p.Send(within(t), msgs...)
	var panicked *PanicError
	require.ErrorAs(t, err, &panicked)
	require.ErrorAs(t, msgs[2].Err, &panicked)
	require.Equal(t, 5, told)
	_, vs := logOf(t, c, 0)
	require.Equal(t, []string{"0", "1", "3", "4"}, vs, "only the message whose partitioner panicked failed")
	require.EqualValues(t, 5+1+2, p.Stats().Panics, "interceptors, the partitioner, results: a failure and the others")

	none := quickConfig()
	none.Producer.NewPartitioner = func(string) Partitioner { return nil }
	require.ErrorIs(t, batchProducer(t, c.Bootstrap(), none).Send(within(t), numberedBatch(1, 1)...), errNoPartitioner)
	none.Producer.NewPartitioner = func(string) Partitioner { panic("new") }
	require.ErrorAs(t, batchProducer(t, c.Bootstrap(), none).Send(within(t), numberedBatch(1, 1)...), &panicked)
}

type batchDeliveries func([]*BatchMessage, Delivery)

func (f batchDeliveries) DeliveredBatch(run []*BatchMessage, d Delivery) { f(run, d) }

// celsius is a user's type.
type celsius float64

func TestBatchEncoders(t *testing.T) {
	failing := errors.New("no such temperature")
	temperature := EncoderOf(func(topic string, v celsius) ([]byte, error) {
		switch {
		case v < -273.15:
			return nil, failing
		case v > 1e6:
			panic("too hot")
		}
		return fmt.Appendf(nil, "%s: %.1f °C", topic, v), nil
	})
	for _, tc := range []struct {
		name       string
		keys       Encoder
		key, value any
		want       []string // key and value in the log; nil: the message fails
		fails      string
	}{
		{"strings", nil, "k", "v", []string{"k", "v"}, ""},
		{"bytes", nil, []byte("k"), []byte("v"), []string{"k", "v"}, ""},
		{"nothing is null", nil, nil, nil, []string{"<nil>", "<nil>"}, ""},
		{"empty is not", nil, "", []byte{}, []string{"", ""}, ""},
		{"a user's type", temperature, celsius(21), "v", []string{"t: 21.0 °C", "v"}, ""},
		{"a user's encoder may leave the key out", temperature, nil, "v", []string{"<nil>", "v"}, ""},
		{"a type without an encoder", nil, 5, "v", nil, `topic "t": the key cannot be encoded: is a int, for which there is no encoder`},
		{"another type than the encoder's", temperature, "warm", "v", nil, "is a string, and the encoder is for client.celsius"},
		{"an error of the encoder", temperature, celsius(-300), "v", nil, failing.Error()},
		{"a panic in the encoder", temperature, celsius(1e7), "v", nil, "panic in the encoder: too hot"},
	} {
		for _, async := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, async=%v", tc.name, async), func(t *testing.T) {
				c := cluster(t, 1, 1)
				cfg := quickConfig()
				cfg.Producer.Batch.Keys, cfg.Producer.Batch.Async = tc.keys, async
				p := batchProducer(t, c.Bootstrap(), cfg)
				msgs := []*BatchMessage{{Topic: "t", Value: "before"}, {Topic: "t", Key: tc.key, Value: tc.value}, {Topic: "t", Value: "after"}}
				err := p.Send(within(t), msgs...)
				require.NoError(t, p.Flush(within(t)))
				require.NoError(t, msgs[0].Err)
				require.NoError(t, msgs[2].Err)
				keys, values := logOf(t, c, 0)
				if tc.want == nil {
					var bad *EncodeError
					require.ErrorAs(t, msgs[1].Err, &bad)
					require.ErrorContains(t, msgs[1].Err, tc.fails)
					require.Equal(t, "key", bad.Field)
					require.Equal(t, []string{"before", "after"}, values, "the others go")
					require.Equal(t, async, err == nil)
					return
				}
				require.NoError(t, msgs[1].Err)
				require.Equal(t, tc.want, []string{shown(msgs[1].encoded.Key), shown(msgs[1].encoded.Value)})
				require.Equal(t, []string{"before", shownInLog(tc.want[1]), "after"}, values)
				require.Equal(t, shownInLog(tc.want[0]), keys[1])
			})
		}
	}
}

func shown(b []byte) string {
	if b == nil {
		return "<nil>"
	}
	return string(b)
}

// shownInLog is a null as logOf shows it.
func shownInLog(s string) string {
	if s == "<nil>" {
		return ""
	}
	return s
}
