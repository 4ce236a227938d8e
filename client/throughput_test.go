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
	cfg.Producer.Flush.Bytes = 6 << 20
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

// ring are messages used in turn. There are twice as many as the producer's bound holds, so that
// the one used longest ago is back.
type ring struct{ msgs []ProducerMessage }

func newRing(n, size int) *ring {
	r := &ring{msgs: make([]ProducerMessage, n)}
	value := make([]byte, size)
	for i := range r.msgs {
		r.msgs[i] = ProducerMessage{Topic: "t", Value: value}
	}
	return r
}

func benchCallback(b *testing.B, size int) {
	p, err := NewAsyncProducer(discarding(b, size), batching())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	ctx := context.Background()
	h := hist.New()
	var now atomic.Int64
	var done atomic.Int64
	start := time.Now()
	callback := func(_ *ProducerMessage, err error) {
		if err != nil {
			panic(err)
		}
		h.Record(now.Load())
		done.Add(1)
	}
	r := newRing(2*p.cfg.Producer.Buffer.Messages, size)
	measure(b, func() {
		for i := range b.N {
			if i%256 == 0 {
				now.Store(int64(time.Since(start)))
			}
			if err := p.Produce(ctx, &r.msgs[i%len(r.msgs)], callback); err != nil {
				b.Fatal(err)
			}
		}
		if err := p.Flush(ctx); err != nil {
			b.Fatal(err)
		}
	})
	if done.Load() != int64(b.N) {
		b.Fatalf("%d outcomes of %d", done.Load(), b.N)
	}
}

// runTally records what comes back in runs.
type runTally struct {
	h     *hist.Histogram
	done  atomic.Int64
	start time.Time
}

func (t *runTally) Delivered(batch []*ProducerMessage, d Delivery) {
	if d.Err != nil {
		panic(d.Err)
	}
	at := int64(d.Acked.Sub(t.start))
	for range batch {
		t.h.Record(at)
	}
	t.done.Add(int64(len(batch)))
}

func benchRuns(b *testing.B, size int) {
	p, err := NewAsyncProducer(discarding(b, size), batching())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	ctx := context.Background()
	tally := &runTally{h: hist.New(), start: time.Now()}
	r := newRing(2*p.cfg.Producer.Buffer.Messages, size)
	pointers := make([]*ProducerMessage, len(r.msgs))
	for i := range pointers {
		pointers[i] = &r.msgs[i]
	}
	const run = 128
	measure(b, func() {
		for i := 0; i < b.N; i += run {
			at := i % (len(pointers) - run)
			if _, err := p.ProduceRun(ctx, pointers[at:at+min(run, b.N-i)], tally); err != nil {
				b.Fatal(err)
			}
		}
		if err := p.Flush(ctx); err != nil {
			b.Fatal(err)
		}
	})
	if tally.done.Load() != int64(b.N) {
		b.Fatalf("%d outcomes of %d", tally.done.Load(), b.N)
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
	r := newRing(2*p.cfg.Producer.Buffer.Messages, size)
	h := hist.New()
	read := make(chan int)
	go func() { // ends with the channel, at the end of AsyncClose
		n := 0
		for range p.Successes() {
			h.Record(int64(n))
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
		for i := range b.N {
			p.Input() <- &r.msgs[i%len(r.msgs)]
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
