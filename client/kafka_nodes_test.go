//go:build kafka

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// steadyLoad produces at a steady rate, message after message numbered, and reads at the same
// time with a reader that nobody helps.
type steadyLoad struct {
	bed   *realBed
	topic string
	p     *AsyncProducer
	r     *Reader

	stop     chan struct{} // closed by end
	sending  sync.WaitGroup
	receives sync.WaitGroup
	sent     atomic.Int64
	received atomic.Int64

	mu    sync.Mutex
	acked map[int]int // times by number
	errs  []error
	seen  map[int]int // times by number
	last  map[int32]int
	mixed int // messages that came after a later one of their partition
	read  error
}

func startLoad(t *testing.T, b *realBed, topic string) *steadyLoad {
	l := &steadyLoad{bed: b, topic: topic, stop: make(chan struct{}), acked: map[int]int{}, seen: map[int]int{}, last: map[int32]int{}}
	var err error
	l.p, err = NewAsyncProducerFromClient(b.c)
	require.NoError(t, err)
	ids, err := b.c.Partitions(b.ctx, topic)
	require.NoError(t, err)
	l.r, err = b.c.NewReader(ReaderConfig{Topic: topic, Partitions: ids})
	require.NoError(t, err)
	l.sending.Go(l.send)     // ends with stop
	l.receives.Go(l.receive) // ends when the reader is closed
	t.Cleanup(func() {
		l.endSending()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.p.Close(ctx)
		_ = l.r.Close()
		l.receives.Wait()
	})
	return l
}

// send hands over five messages every ten milliseconds.
func (l *steadyLoad) send() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		run := make([]*ProducerMessage, 5)
		for i := range run {
			n := l.sent.Add(1) - 1
			run[i] = &ProducerMessage{Topic: l.topic, Key: strconv.AppendInt(nil, n, 10), Value: strconv.AppendInt(nil, n, 10), Metadata: int(n)}
		}
		n, err := l.p.ProduceRun(l.bed.ctx, run, l)
		if err != nil {
			l.Delivered(run[n:], Delivery{Err: err})
		}
	}
}

// Delivered notes outcomes.
func (l *steadyLoad) Delivered(batch []*ProducerMessage, d Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range batch {
		if d.Err != nil {
			l.errs = append(l.errs, d.Err)
		} else {
			l.acked[m.Metadata.(int)]++
		}
	}
}

func (l *steadyLoad) receive() {
	for {
		m, err := l.r.FetchMessage(context.Background())
		l.mu.Lock()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				l.read = err
			}
			l.mu.Unlock()
			return
		}
		n, _ := strconv.Atoi(string(m.Value))
		l.seen[n]++
		if before, any := l.last[m.Partition]; any && n <= before {
			l.mixed++
		}
		l.last[m.Partition] = n
		l.mu.Unlock()
		l.received.Add(1)
	}
}

func (l *steadyLoad) endSending() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.sending.Wait()
}

// advance waits until n more messages have been acknowledged and read.
func (l *steadyLoad) advance(t *testing.T, n int64) {
	ackedBefore, _, _ := l.counts()
	readBefore := l.received.Load()
	require.Eventually(t, func() bool {
		acked, _, _ := l.counts()
		return int64(acked-ackedBefore) >= n && l.received.Load()-readBefore >= n
	}, realPatience, 20*time.Millisecond)
}

func (l *steadyLoad) counts() (acked, failed, seen int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked), len(l.errs), len(l.seen)
}

// A node is killed under load and comes back: nothing acknowledged is lost, every message has its
// outcome, the reader goes on by itself (C1), and the node is used again. An idempotent producer
// beside it also duplicates nothing and keeps the order.
func TestKafkaNodeIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	var answeredBy [4]atomic.Int64 // requests, by node
	cluster := kafkatest.Exclusive(t, 3)
	b := newRealBed(t, cluster, func(c *Config) {
		c.Producer.OnRequest = func(i RequestInfo) {
			if i.Err == nil && i.Broker < 4 {
				answeredBy[i.Broker].Add(1)
			}
		}
	})
	name := b.topic(t, 6, map[string]string{"min.insync.replicas": "2"})
	l := startLoad(t, b, name)
	exact := newRealBed(t, cluster, func(c *Config) { c.Producer.Idempotent = true })
	once := startLoad(t, exact, exact.topic(t, 6, map[string]string{"min.insync.replicas": "2"}))
	l.advance(t, 500)
	once.advance(t, 500)

	leader, err := b.c.Leader(b.ctx, name, 0)
	require.NoError(t, err)
	victim := leader.ID()
	start := time.Now()
	b.Script(t, "kill9", fmt.Sprint(victim))
	t.Cleanup(func() { _, _ = b.TryScript("start", fmt.Sprint(victim)) }) // for the tests that follow
	b.awaitTopic(t, name, func(d TopicDescription) bool {
		for _, led := range d.Leaders {
			if led < 0 || led == victim {
				return false
			}
		}
		return true
	})
	t.Logf("leaders moved after %v", time.Since(start))
	l.advance(t, 1000)
	once.advance(t, 1000)
	t.Logf("and messages go on after %v", time.Since(start))

	start = time.Now()
	b.Script(t, "start", fmt.Sprint(victim))
	b.awaitTopic(t, name, func(d TopicDescription) bool {
		for _, isr := range d.ISR {
			if len(isr) != 3 {
				return false
			}
		}
		return true
	})
	t.Logf("in sync again after %v", time.Since(start))
	b.electPreferred(t, name)
	b.awaitTopic(t, name, func(d TopicDescription) bool { return d.Leaders[0] == victim })
	before := answeredBy[victim].Load()
	l.advance(t, 1000)
	require.Eventually(t, func() bool { return answeredBy[victim].Load() > before }, realPatience, 20*time.Millisecond, "the node is used again")
	l.finish(t)
	once.finish(t)
	require.EqualValues(t, once.sent.Load(), once.received.Load(), "no duplicates")
	require.Zero(t, once.mixed, "in order")
}

// finish ends the load and balances its books.
func (l *steadyLoad) finish(t *testing.T) {
	l.endSending()
	require.NoError(t, l.p.Close(l.bed.ctx))
	acked, failed, _ := l.counts()
	require.Zero(t, failed, "errors: %v", l.errs)
	require.EqualValues(t, l.sent.Load(), acked, "every message has its outcome, each acknowledged")
	require.Eventually(t, func() bool { _, _, seen := l.counts(); return seen == acked }, realPatience, 20*time.Millisecond, "everything acknowledged is read")
	require.NoError(t, l.r.Close())
	l.receives.Wait()
	require.NoError(t, l.read, "the reader never returned an error")
	for n, times := range l.acked {
		require.Equal(t, 1, times, "outcomes of message %d", n)
	}
	t.Logf("%d sent and acknowledged, %d read, %d of them again after a retry", acked, l.received.Load(), int(l.received.Load())-acked)
}

func (b *realBed) awaitTopic(t *testing.T, name string, ok func(TopicDescription) bool) {
	require.Eventually(t, func() bool {
		d, err := b.c.DescribeTopic(b.ctx, name)
		return err == nil && ok(d)
	}, realPatience, 100*time.Millisecond)
}

// electPreferred makes the first replica of each partition its leader again.
func (b *realBed) electPreferred(t *testing.T, name string) {
	req := kmsg.NewPtrElectLeadersRequest()
	topic := kmsg.NewElectLeadersRequestTopic()
	topic.Topic = name
	ids, err := b.c.Partitions(b.ctx, name)
	require.NoError(t, err)
	topic.Partitions = ids
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 30_000
	require.NoError(t, b.c.askController(b.ctx, req, func(kmsg.Response) error { return nil }))
}

// A node that is stopped in good order hands its leaders over first: no message fails, and none is
// lost.
func TestKafkaNodeIsStoppedInGoodOrder(t *testing.T) {
	t.Parallel()
	b := newRealBed(t, kafkatest.Exclusive(t, 3), nil)
	name := b.topic(t, 6, map[string]string{"min.insync.replicas": "2"})
	l := startLoad(t, b, name)
	l.advance(t, 300)
	leader, err := b.c.Leader(b.ctx, name, 1)
	require.NoError(t, err)
	node := fmt.Sprint(leader.ID())
	t.Cleanup(func() { _, _ = b.TryScript("start", node) })
	b.Script(t, "stop", node)
	l.advance(t, 500)
	l.finish(t)
}
