package client

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kbench/kbench/results/hist"
	"github.com/kbench/kbench/workloads/broker"
)

// The benchmarks of this file run against a broker process that discards what is produced and
// serves synthetic batches, so that its work is in none of the figures: CPU ns per message is
// user and system time of this process alone.

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// discarding starts the broker process with topic "t" of six partitions.
func discarding(b *testing.B, valueBytes int) []string {
	o := broker.Options{Discard: true, SyntheticValueBytes: valueBytes, Topics: []broker.Topic{{Name: "t", Partitions: 6}}}
	c, err := broker.StartChild(context.Background(), broker.ForTest(o))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c.Bootstrap()
}

// batching is the setting of all of them: batches of up to a megabyte, ten milliseconds.
func batching() *Config {
	cfg := NewConfig()
	cfg.Producer.Flush.Frequency = 10 * time.Millisecond
	return cfg
}

// measure reports messages/s and CPU ns per message of f, which sends b.N messages.
func measure(b *testing.B, f func()) {
	b.ReportAllocs()
	b.ResetTimer()
	start, cpu := time.Now(), cpuTime()
	f()
	took, used := time.Since(start), cpuTime()-cpu
	b.StopTimer()
	b.ReportMetric(float64(b.N)/took.Seconds(), "msg/s")
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/msg")
}

func BenchmarkProduce(b *testing.B) {
	for _, tc := range []struct {
		name string
		size int
	}{{"100B", 100}, {"1KiB", 1024}} {
		b.Run("callback/"+tc.name, func(b *testing.B) { benchCallback(b, tc.size) })
		b.Run("run/"+tc.name, func(b *testing.B) { benchRuns(b, tc.size) })
		b.Run("channels/"+tc.name, func(b *testing.B) { benchChannels(b, tc.size) })
	}
}

// timed is a message that knows when it was handed over.
type timed struct {
	ProducerMessage
	at int64 // nanoseconds since the benchmark began
}

// messagePool lends messages in runs and takes them back in runs, so that no more of them exist
// than are under way at a time. What comes back is given by one goroutine.
type messagePool struct {
	free  chan []*ProducerMessage // full runs: written by give, read by take; never closed
	empty chan []*ProducerMessage // written by taken, read by give; never closed
	back  []*ProducerMessage      // the run that give fills
	value []byte
}

const poolRun = 256

func newMessagePool(size int) *messagePool {
	return &messagePool{free: make(chan []*ProducerMessage, 4096), empty: make(chan []*ProducerMessage, 4096), value: make([]byte, size)}
}

// take lends a run; taken says that its slice may be used again.
func (p *messagePool) take(at int64) []*ProducerMessage {
	var run []*ProducerMessage
	select {
	case run = <-p.free:
	default:
		msgs := make([]timed, poolRun)
		for i := range msgs {
			msgs[i].Topic, msgs[i].Value, msgs[i].Metadata = "t", p.value, &msgs[i]
			run = append(run, &msgs[i].ProducerMessage)
		}
	}
	for _, m := range run {
		m.Metadata.(*timed).at = at
	}
	return run
}

func (p *messagePool) taken(run []*ProducerMessage) {
	select {
	case p.empty <- run[:0]:
	default:
	}
}

// give takes a message back, and returns when it was handed over.
func (p *messagePool) give(m *ProducerMessage) (at int64) {
	at = m.Metadata.(*timed).at
	p.back = append(p.back, m)
	if len(p.back) < poolRun {
		return at
	}
	p.free <- p.back
	select {
	case p.back = <-p.empty:
	default:
		p.back = make([]*ProducerMessage, 0, poolRun)
	}
	return at
}

func benchCallback(b *testing.B, size int) {
	p, err := NewAsyncProducer(discarding(b, size), batching())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	ctx := context.Background()
	h := hist.New()
	var now, done atomic.Int64 // now is read once for a run of messages
	start := time.Now()
	pool := newMessagePool(size)
	callback := func(m *ProducerMessage, err error) {
		if err != nil {
			panic(err)
		}
		h.Record(now.Load() - pool.give(m))
		done.Add(1)
	}
	measure(b, func() {
		for i := 0; i < b.N; i += poolRun {
			now.Store(int64(time.Since(start)))
			run := pool.take(now.Load())
			for _, m := range run[:min(poolRun, b.N-i)] {
				if err := p.Produce(ctx, m, callback); err != nil {
					b.Fatal(err)
				}
			}
			pool.taken(run)
		}
		if err := p.Flush(ctx); err != nil {
			b.Fatal(err)
		}
	})
	if done.Load() != int64(b.N) || h.Count() != int64(b.N) {
		b.Fatalf("%d outcomes, %d recorded, of %d", done.Load(), h.Count(), b.N)
	}
}

// runTally records what comes back in runs.
type runTally struct {
	pool  *messagePool
	h     *hist.Histogram
	start time.Time
}

func (t *runTally) Delivered(batch []*ProducerMessage, d Delivery) {
	if d.Err != nil {
		panic(d.Err)
	}
	acked := int64(d.Acked.Sub(t.start))
	for _, m := range batch {
		t.h.Record(acked - t.pool.give(m))
	}
}

func benchRuns(b *testing.B, size int) {
	p, err := NewAsyncProducer(discarding(b, size), batching())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	ctx := context.Background()
	tally := &runTally{pool: newMessagePool(size), h: hist.New(), start: time.Now()}
	measure(b, func() {
		for i := 0; i < b.N; i += poolRun {
			run := tally.pool.take(int64(time.Since(tally.start)))
			if _, err := p.ProduceRun(ctx, run[:min(poolRun, b.N-i)], tally); err != nil {
				b.Fatal(err)
			}
			tally.pool.taken(run)
		}
		if err := p.Flush(ctx); err != nil {
			b.Fatal(err)
		}
	})
	if n := tally.h.Count(); n != int64(b.N) {
		b.Fatalf("%d outcomes of %d", n, b.N)
	}
}

func benchChannels(b *testing.B, size int) {
	cfg := batching()
	cfg.Producer.Return.Successes = true
	cfg.ChannelBufferSize = 4096
	p, err := NewAsyncProducer(discarding(b, size), cfg)
	if err != nil {
		b.Fatal(err)
	}
	pool, h := newMessagePool(size), hist.New()
	var now atomic.Int64
	start := time.Now()
	read := make(chan int)
	go func() { // ends with the channel, at the end of AsyncClose
		n := 0
		for m := range p.Successes() {
			h.Record(now.Load() - pool.give(m))
			n++
		}
		read <- n
	}()
	go func() { // ends with the channel
		for e := range p.Errors() {
			panic(e)
		}
	}()
	measure(b, func() {
		for i := 0; i < b.N; i += poolRun {
			now.Store(int64(time.Since(start)))
			run := pool.take(now.Load())
			for _, m := range run[:min(poolRun, b.N-i)] {
				p.Input() <- m
			}
			pool.taken(run)
		}
		p.AsyncClose(context.Background())
		if n := <-read; n != b.N {
			b.Fatalf("%d outcomes of %d", n, b.N)
		}
	})
}

func BenchmarkSync(b *testing.B) {
	p, err := NewSyncProducer(discarding(b, 100), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	m := &ProducerMessage{Topic: "t", Value: make([]byte, 100)}
	h := hist.New()
	measure(b, func() {
		for range b.N {
			start := time.Now()
			if _, _, err := p.SendMessage(m); err != nil {
				b.Fatal(err)
			}
			h.Record(int64(time.Since(start)))
		}
	})
	b.ReportMetric(float64(h.Quantile(0.5)), "p50-ns")
	b.ReportMetric(float64(h.Quantile(0.99)), "p99-ns")
}

func BenchmarkConsume(b *testing.B) {
	b.Run("FetchBatch/100B", func(b *testing.B) {
		r := discardedReader(b)
		buf := make([]Message, 512)
		ctx := context.Background()
		bytes := 0
		measure(b, func() {
			for n := 0; n < b.N; {
				got, err := r.FetchBatch(ctx, buf)
				if err != nil {
					b.Fatal(err)
				}
				for i := range buf[:got] {
					bytes += len(buf[i].Value)
				}
				n += got
			}
		})
		if bytes < 100*b.N {
			b.Fatalf("%d bytes in %d messages", bytes, b.N)
		}
	})
	b.Run("FetchMessage/100B", func(b *testing.B) {
		r := discardedReader(b)
		ctx := context.Background()
		measure(b, func() {
			for range b.N {
				m, err := r.FetchMessage(ctx)
				if err != nil || len(m.Value) != 100 {
					b.Fatal(len(m.Value), err)
				}
			}
		})
	})
}

// discardedReader reads synthetic messages without end from all six partitions.
func discardedReader(b *testing.B) *Reader {
	r, err := NewReader(ReaderConfig{Brokers: discarding(b, 100), Topic: "t", Partitions: []int32{0, 1, 2, 3, 4, 5}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.Close() })
	if _, err := r.FetchMessage(context.Background()); err != nil { // connected, offsets known
		b.Fatal(err)
	}
	return r
}
