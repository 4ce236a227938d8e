//go:build kafka

package fault

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run/verify"
)

// Order and loss under faults on real Kafka with three nodes: producers of every promise write
// numbered messages at a steady rate, all at the same time and under the same faults; afterwards
// two clients, kbench's and Kafka's own, read the logs back and have to agree.

const (
	orderPartitions = 6
	orderRate       = 300 // messages a second of each producer
)

// promise is what a producer under test is set up to keep.
type promise struct {
	name       string
	idempotent bool
	inFlight   int
	most       int  // bytes of the largest batch its topic takes, so that larger ones are split (P25); 0: as many as usual
	long       bool // messages so long that the client encodes their batches when it sends them
}

var promises = []promise{
	{name: "idempotent, 1 in flight", idempotent: true, inFlight: 1},
	{name: "idempotent, 5 in flight", idempotent: true, inFlight: 5},
	{name: "idempotent, 5 in flight, batches split", idempotent: true, inFlight: 5, most: 1000},
	{name: "idempotent, 5 in flight, long messages", idempotent: true, inFlight: 5, long: true},
	{name: "idempotent, 5 in flight, batches of long messages split", idempotent: true, inFlight: 5, long: true, most: 5000},
	{name: "acks=all, 1 in flight", inFlight: 1},
	{name: "acks=all, 5 in flight", inFlight: 5},
}

// orderBed is a cluster with the producers under test.
type orderBed struct {
	*realBed
	writers []*writer
}

func newOrderBed(t *testing.T) *orderBed {
	b := &orderBed{realBed: newRealBed(t, "order")}
	for i, p := range promises {
		b.writers = append(b.writers, b.newWriter(i, p))
	}
	return b
}

// writer is one producer under test and what is known of its messages.
type writer struct {
	promise
	number int
	topic  string
	p      *client.AsyncProducer
	sent   int64 // of the sending goroutine

	mu     sync.Mutex
	check  *verify.Checker
	failed []error
	acked  atomic.Int64
}

func (b *realBed) newWriter(number int, p promise) *writer {
	w := &writer{promise: p, number: number, check: verify.New()}
	config := map[string]string{}
	cfg := client.NewConfig()
	cfg.Producer.Partitioner = "manual"
	cfg.Producer.Idempotent, cfg.Net.MaxOpenRequests = p.idempotent, p.inFlight
	cfg.Producer.Flush.MaxMessages = 20 // several batches of a partition in flight after a fault
	cfg.ChannelBufferSize = 1 << 16     // the rate stays what it is, whatever happens to a partition
	// Short enough for requests to time out while a path is stalled.
	cfg.Producer.Timeout, cfg.Net.ReadTimeout, cfg.Net.DialTimeout = 2*time.Second, 2*time.Second, 5*time.Second
	if p.most > 0 {
		cfg.Producer.Flush.MaxMessages = 0
		config["max.message.bytes"] = strconv.Itoa(p.most)
	}
	w.topic = b.topic(orderPartitions, config)
	var err error
	w.p, err = client.NewAsyncProducer(b.proxy.Addrs(), cfg)
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = w.p.Close(ctx)
	})
	return w
}

// text is the value of message n: whose it is, its number, and bytes that follow from both.
func (w *writer) text(n int64) string {
	times := 20
	if w.long {
		times = 600
	}
	return fmt.Sprintf("%d|%d|%s", w.number, n, strings.Repeat(strconv.FormatInt(n%97+10, 36), times))
}

// write hands over what has become due, every few milliseconds, until ctx ends.
func (w *writer) write(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var run []*client.ProducerMessage
		for due := int64(time.Since(began).Seconds() * orderRate); w.sent < due; w.sent++ {
			run = append(run, &client.ProducerMessage{
				Topic: w.topic, Partition: int32(w.sent % orderPartitions), Value: []byte(w.text(w.sent)), Metadata: w.sent,
			})
		}
		// Not ctx, which ends the writing and not what was begun.
		n, err := w.p.ProduceRun(context.WithoutCancel(ctx), run, w)
		if err != nil {
			w.Delivered(run[n:], client.Delivery{Err: err})
		}
	}
}

// Delivered notes outcomes.
func (w *writer) Delivered(batch []*client.ProducerMessage, d client.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range batch {
		if d.Err != nil {
			w.failed = append(w.failed, d.Err)
			continue
		}
		w.check.Acked(0, m.Metadata.(int64), m.Partition, m.Offset)
		w.acked.Add(1)
	}
}

// record takes a message read apart; ok is false when it is not what this writer sent.
func (w *writer) record(value []byte, partition int32, offset int64) (r verify.Record, ok bool) {
	rest, ok := bytes.CutPrefix(value, []byte(strconv.Itoa(w.number)+"|"))
	digits, _, _ := bytes.Cut(rest, []byte("|"))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if !ok || err != nil || w.text(n) != string(value) || n%orderPartitions != int64(partition) {
		return r, false
	}
	return verify.Record{Number: n, Partition: partition, Offset: offset}, true
}

// during writes while faults does what it does, then ends all producers.
func (b *orderBed) during(faults func()) {
	ctx, stop := context.WithCancel(b.ctx)
	var writing sync.WaitGroup
	for _, w := range b.writers {
		writing.Go(func() { w.write(ctx) }) // ends with ctx, below or by a failure
	}
	b.t.Cleanup(func() { stop(); writing.Wait() })
	b.awaitAcked(50)
	faults()
	b.awaitAcked(50) // everybody is at work again
	stop()
	writing.Wait()
	for _, w := range b.writers {
		require.NoError(b.t, w.p.Close(b.ctx), w.name)
	}
}

// awaitAcked waits until n more messages of each producer were acknowledged.
func (b *orderBed) awaitAcked(n int64) {
	for _, w := range b.writers {
		until := w.acked.Load() + n
		require.Eventually(b.t, func() bool { return w.acked.Load() >= until }, realPatience, 10*time.Millisecond, w.name)
	}
}
