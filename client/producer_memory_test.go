package client

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/broker"
)

// usedMemory is what this process holds in heap and stacks.
func usedMemory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools keep what they hold over one collection
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// idleProducers makes n producers, each with a client of its own, has each send a message to each
// of the six partitions of topic "t", and returns what one holds when it is idle.
func idleProducers(t testing.TB, addrs []string, n int) (bytesEach int64) {
	cfg := NewConfig()
	cfg.Producer.Partitioner = "manual"
	var all []*AsyncProducer
	defer func() {
		for _, p := range all {
			_ = p.Close(context.Background())
		}
	}()
	begin := func(count int) {
		for range count {
			p, err := NewAsyncProducer(addrs, cfg)
			require.NoError(t, err)
			all = append(all, p)
			for i := range int32(6) {
				require.NoError(t, p.Produce(context.Background(), &ProducerMessage{Topic: "t", Partition: i, Value: make([]byte, 100)}, func(_ *ProducerMessage, err error) {
					if err != nil {
						t.Error(err)
					}
				}))
			}
			require.NoError(t, p.Flush(context.Background()))
		}
	}
	begin(10) // what is made once
	before := usedMemory()
	begin(n)
	return (usedMemory() - before) / int64(n)
}

// mostIdleBytes is what an idle producer may hold that was used once.
const mostIdleBytes = 64 << 10

func TestAnIdleProducerHoldsLittle(t *testing.T) {
	c, err := broker.StartChild(context.Background(), broker.ForTest(broker.Options{Discard: true, Topics: []broker.Topic{{Name: "t", Partitions: 6}}}))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.LessOrEqual(t, idleProducers(t, c.Bootstrap(), 50), int64(mostIdleBytes))
}

// A partition that has sent once holds little more than one that never has: neither its share of a
// request to thousands of partitions, nor what was left of a goroutine that looked for its leader.
func TestPartitionsThatSentOnceHoldLittle(t *testing.T) {
	const partitions = 10_000
	o := broker.Options{Discard: true, Topics: []broker.Topic{{Name: "many", Partitions: partitions}}}
	c, err := broker.StartChild(context.Background(), broker.ForTest(o))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	cfg := NewConfig()
	cfg.Producer.Partitioner = "manual"
	p, err := NewAsyncProducer(c.Bootstrap(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close(context.Background())) }()
	send := func(n int) (held int64) {
		run := make([]*ProducerMessage, n)
		for i := range run {
			run[i] = &ProducerMessage{Topic: "many", Partition: int32(i), Value: make([]byte, 100)}
		}
		_, err := p.ProduceRun(context.Background(), run, nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(context.Background()))
		return usedMemory()
	}
	first := send(1)
	require.Less(t, (send(partitions)-first)/partitions, int64(100))
	require.LessOrEqual(t, unsafe.Sizeof(partitionProducer{}), uintptr(352), "a class of sizes that Go allocates")
}

// A leader that the metadata name is not looked for: the message is with its broker producer when it
// has been handed over.
func TestAKnownLeaderIsNotLookedFor(t *testing.T) {
	c := cluster(t, 1, 2)
	cfg := NewConfig()
	cfg.Producer.Partitioner, cfg.Producer.Flush.Frequency = "manual", time.Hour
	p, err := NewAsyncProducer(c.Bootstrap(), cfg)
	require.NoError(t, err)
	_, err = p.ProduceRun(context.Background(), []*ProducerMessage{{Topic: "t"}}, nil)
	require.NoError(t, err)
	require.NoError(t, p.Flush(context.Background()))
	require.Eventually(t, func() bool { // whoever took that message on does not take the next on as well
		s := &p.topic("t").stage
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.busy
	}, 30*time.Second, time.Millisecond)
	_, err = p.ProduceRun(context.Background(), []*ProducerMessage{{Topic: "t", Partition: 1}}, nil)
	require.NoError(t, err)
	pp := p.parts[1]
	pp.mu.Lock()
	require.NotNil(t, pp.broker)
	require.False(t, pp.resolving)
	pp.mu.Unlock()
	require.NoError(t, p.Close(context.Background()))
	require.Nil(t, p.brokerFor(77), "nobody would wait for its goroutine any more")
	require.NotNil(t, p.brokerFor(0), "that of a node that is known")
}

// A request that waits to be used again keeps no batch alive, and one that does not come back is
// forgotten.
func TestIdleRequestsHoldNothing(t *testing.T) {
	b := &brokerProducer{producer: new(AsyncProducer)}
	r := b.request()
	r.begin(0, nil, 9)
	x := &batch{p: &partitionProducer{topic: "t"}, data: make([]byte, 100)}
	r.batches = append(r.batches, x)
	r.add("t", 0, x, x.data)
	r.call.Body = r.encoder.End()
	body := r.call.Body
	require.Len(t, body, 3)
	b.reuse(r)
	require.Equal(t, []*batch{nil}, r.batches[:1])
	require.Equal(t, net.Buffers{nil, nil, nil}, body)
	require.Nil(t, r.call.Body)

	idle := b.idle
	require.Same(t, r, b.request())
	require.Equal(t, []*request{nil}, idle)
	r.batches = make([]*batch, keptBatches+1)
	b.reuse(r)
	require.Empty(t, b.idle)
}

// BenchmarkIdleProducers reports what each of a thousand idle producers holds, heap and stacks.
func BenchmarkIdleProducers(b *testing.B) {
	addrs := discarding(b, 100)
	var each int64
	for range b.N {
		each = idleProducers(b, addrs, 1000)
	}
	b.ReportMetric(float64(each), "bytes/producer")
}

// BenchmarkManyPartitions makes a producer for a topic of 10 000 partitions: time from its making to
// the first message acknowledged, and memory then, and after a message to each partition.
func BenchmarkManyPartitions(b *testing.B) {
	const partitions = 10_000
	o := broker.Options{Discard: true, Topics: []broker.Topic{{Name: "many", Partitions: partitions}}}
	c, err := broker.StartChild(context.Background(), broker.ForTest(o))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	cfg := NewConfig()
	cfg.Producer.Partitioner = "manual"
	var first time.Duration
	var memory, all int64
	for range b.N {
		before := usedMemory()
		start := time.Now()
		p, err := NewAsyncProducer(c.Bootstrap(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		send := func(partition int32) {
			m := &ProducerMessage{Topic: "many", Partition: partition, Value: make([]byte, 100)}
			if err := p.Produce(context.Background(), m, func(_ *ProducerMessage, err error) {
				if err != nil {
					b.Error(err)
				}
			}); err != nil {
				b.Fatal(err)
			}
		}
		send(0)
		if err := p.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
		first += time.Since(start)
		memory = usedMemory() - before
		for i := range int32(partitions) {
			send(i)
		}
		if err := p.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
		all = usedMemory() - before
		if err := p.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(first.Milliseconds())/float64(b.N), "ms-to-first")
	b.ReportMetric(float64(memory), "bytes-at-first")
	b.ReportMetric(float64(all), "bytes-after-each")
}
