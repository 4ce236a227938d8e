//go:build kafka

package fault

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
	"github.com/kbench/kbench/workloads/run/verify"
)

// Order and loss under faults on real Kafka with three nodes: producers of every promise write
// numbered messages at a steady rate, all at the same time and under the same faults; afterwards
// two clients, kbench's and Kafka's own, read the logs back and have to agree.

const (
	orderPartitions = 6
	orderRate       = 300 // messages a second of each producer
	orderPatience   = 15 * time.Minute
	orderFaultEvery = 5 * time.Second
)

// orderLength is how long messages are written: short by default.
func orderLength() time.Duration {
	if os.Getenv("KBENCH_SOAK") == "1" {
		return 3 * time.Minute
	}
	return 20 * time.Second
}

// promise is what a producer under test is set up to keep.
type promise struct {
	name       string
	idempotent bool
	inFlight   int
	small      bool // the topic takes only small batches, so that larger ones are split (P25)
}

var promises = []promise{
	{name: "idempotent, 1 in flight", idempotent: true, inFlight: 1},
	{name: "idempotent, 5 in flight", idempotent: true, inFlight: 5},
	{name: "idempotent, 5 in flight, batches split", idempotent: true, inFlight: 5, small: true},
	{name: "acks=all, 1 in flight", inFlight: 1},
	{name: "acks=all, 5 in flight", inFlight: 5},
}

// orderBed is the cluster, the proxy in front of it, and an admin client that goes around it.
type orderBed struct {
	*kafkatest.Cluster
	t       *testing.T
	ctx     context.Context
	proxy   *Proxy
	admin   *client.Client
	prefix  string
	writers []*writer
	rand    *rand.Rand // of the test's own goroutine
	// elections of leaders, asked for, by their outcome's error code.
	elections map[int16]int
}

func newOrderBed(t *testing.T) *orderBed {
	b := &orderBed{Cluster: kafkatest.Exclusive(t, 3), t: t, elections: map[int16]int{}, rand: rand.New(rand.NewPCG(1, 2))}
	t.Cleanup(func() { // for the tests that follow
		for n := 1; t.Failed() && n <= 3; n++ {
			_, _ = b.TryScript("start", strconv.Itoa(n))
		}
	})
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(t.Context(), orderPatience)
	t.Cleanup(cancel)
	var err error
	b.admin, err = client.NewClientContext(b.ctx, b.Bootstrap, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.admin.Close() })
	b.proxy, err = New(b.ctx, b.Bootstrap, Options{Seed: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.proxy.Close()) })
	b.prefix = fmt.Sprintf("kbench-test-order-%d", time.Now().UnixNano())
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

func (b *orderBed) newWriter(number int, p promise) *writer {
	w := &writer{promise: p, number: number, topic: fmt.Sprintf("%s-%d", b.prefix, number), check: verify.New()}
	spec := client.TopicSpec{
		Name: w.topic, Partitions: orderPartitions, ReplicationFactor: 3,
		Config: map[string]string{"min.insync.replicas": "2"},
	}
	cfg := client.NewConfig()
	cfg.Producer.Partitioner = "manual"
	cfg.Producer.Idempotent, cfg.Net.MaxOpenRequests = p.idempotent, p.inFlight
	cfg.Producer.Flush.MaxMessages = 20 // several batches of a partition in flight after a fault
	cfg.ChannelBufferSize = 1 << 16     // the rate stays what it is, whatever happens to a partition
	// Short enough for requests to time out while a path is stalled.
	cfg.Producer.Timeout, cfg.Net.ReadTimeout, cfg.Net.DialTimeout = 2*time.Second, 2*time.Second, 5*time.Second
	if p.small {
		cfg.Producer.Flush.MaxMessages = 0
		spec.Config["max.message.bytes"] = "1000"
	}
	require.NoError(b.t, b.admin.CreateTopics(b.ctx, spec))
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(b.t, b.admin.DeleteTopics(ctx, w.topic))
	})
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
	return fmt.Sprintf("%d|%d|%s", w.number, n, strings.Repeat(strconv.FormatInt(n%97+10, 36), 20))
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
		require.Eventually(b.t, func() bool { return w.acked.Load() >= until }, orderPatience, 10*time.Millisecond, w.name)
	}
}

// moveLeaders makes another replica the preferred leader of every partition of a topic, and the
// leader. What cannot be done while a node is down is left.
func (b *orderBed) moveLeaders(topic string) {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	d, err := b.admin.DescribeTopic(ctx, topic)
	if err != nil {
		return
	}
	assign := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	assign.TimeoutMillis = 2000
	elect := kmsg.NewPtrElectLeadersRequest()
	elect.TimeoutMillis = 2000
	at, et := kmsg.NewAlterPartitionAssignmentsRequestTopic(), kmsg.NewElectLeadersRequestTopic()
	at.Topic, et.Topic = topic, topic
	for i, replicas := range d.Replicas {
		p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		p.Partition, p.Replicas = int32(i), slices.Concat(replicas[1:], replicas[:1])
		at.Partitions = append(at.Partitions, p)
		et.Partitions = append(et.Partitions, int32(i))
	}
	assign.Topics, elect.Topics = append(assign.Topics, at), append(elect.Topics, et)
	for _, c := range b.admin.Brokers() { // any that is up passes it on to the controller
		if b.elect(ctx, c, assign, elect) {
			return
		}
	}
}

// elect asks one broker, which may be starting: it is not waited for.
func (b *orderBed) elect(ctx context.Context, c *client.Broker, assign, elect kmsg.Request) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, err := c.Request(ctx, assign); err != nil {
		return false
	}
	resp, err := c.Request(ctx, elect)
	if err != nil {
		return false
	}
	for _, t := range resp.(*kmsg.ElectLeadersResponse).Topics {
		for _, p := range t.Partitions {
			b.elections[p.ErrorCode]++
		}
	}
	return true
}

// whole says whether every replica of every topic is in sync and every partition has a leader.
func (b *orderBed) whole() bool {
	for _, w := range b.writers {
		ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
		d, err := b.admin.DescribeTopic(ctx, w.topic)
		cancel()
		if err != nil {
			return false
		}
		for i := range d.ISR {
			if len(d.ISR[i]) != 3 || d.Leaders[i] < 0 {
				return false
			}
		}
	}
	return true
}

func (b *orderBed) awaitWhole() {
	require.Eventually(b.t, b.whole, orderPatience, 200*time.Millisecond, "every replica in sync")
}
