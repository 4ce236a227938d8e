package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

// TestFetchBatchAllocatesNothing measures the whole way from a queued answer to messages, for
// every codec that can do without, headers included.
func TestFetchBatchAllocatesNothing(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, func(c *Config) { c.Consumer.MaxWait = 20 * time.Second })
	r := b.reader(ReaderConfig{})
	require.NoError(t, b.cluster.AwaitRequests(b.ctx, 1, 1)) // a long poll: nothing moves from here on
	msgs := values(0, 1000)
	for i := range msgs {
		msgs[i].key, msgs[i].headers = []byte("key"), []Header{{Key: "trace", Value: []byte("0123456789")}, {Key: "null"}}
	}
	buf := make([]Message, 300)
	for _, codec := range record.Codecs() {
		raw := batchOf(t, shape{codec: codec}, msgs)
		round := func() {
			e := fetch.Measure(raw, 0)
			held := r.answers.get(len(raw))
			records := held.b[:copy(held.b, raw)]
			r.mu.Lock()
			r.queue.push(block{p: r.parts[0], version: r.parts[0].Version, buf: held, records: records, batches: e.Batches})
			r.batches += e.Batches
			r.mu.Unlock()
			for total := 0; total < len(msgs); {
				n, err := r.FetchBatch(b.ctx, buf)
				if err != nil || buf[0].Headers[0].Key != "trace" || buf[n-1].Offset != int64(total+n-1) {
					t.Fatal(n, err)
				}
				total += n
			}
		}
		round()
		allowed := 0.0
		if codec == record.Gzip || codec == record.ZSTD {
			allowed = 8 // of the decoder, per batch of 1 000 messages
		}
		require.LessOrEqual(t, testing.AllocsPerRun(50, round), allowed, codec)
	}
	require.Zero(t, r.batches)
}

func TestFetchMessageAllocatesSlabsOnly(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, func(c *Config) { c.Consumer.MaxWait = 20 * time.Second })
	r := b.reader(ReaderConfig{})
	require.NoError(t, b.cluster.AwaitRequests(b.ctx, 1, 1))
	raw := batchOf(t, shape{}, values(0, 10_000))
	e := fetch.Measure(raw, 0)
	held := r.answers.get(len(raw))
	records := held.b[:copy(held.b, raw)]
	r.mu.Lock()
	r.queue.push(block{p: r.parts[0], version: r.parts[0].Version, buf: held, records: records, batches: e.Batches})
	r.mu.Unlock()
	require.LessOrEqual(t, testing.AllocsPerRun(5000, func() {
		if _, err := r.FetchMessage(b.ctx); err != nil {
			t.Fatal(err)
		}
	}), 0.01)
}

// BenchmarkFetchBatch reads synthetic batches of a broker in a process of its own: the figures
// are those of the client and the loopback.
func BenchmarkFetchBatch(b *testing.B) {
	child, err := broker.StartChild(b.Context(), broker.ForTest(broker.Options{Discard: true, Topics: []broker.Topic{{Name: "in", Partitions: 4}}}))
	require.NoError(b, err)
	defer child.Close()
	cl, err := NewClient(child.Bootstrap(), nil)
	require.NoError(b, err)
	defer cl.Close()
	r, err := cl.NewReader(ReaderConfig{Topic: "in", Partitions: []int32{0, 1, 2, 3}})
	require.NoError(b, err)
	defer r.Close()
	buf := make([]Message, 1024)
	_, err = r.FetchBatch(b.Context(), buf)
	require.NoError(b, err)
	b.SetBytes(int64(len(buf[0].Value)))
	b.ReportAllocs()
	b.ResetTimer()
	start := time.Now()
	total := 0
	for total < b.N {
		n, err := r.FetchBatch(b.Context(), buf)
		if err != nil {
			b.Fatal(err)
		}
		total += n
	}
	b.ReportMetric(float64(total)/time.Since(start).Seconds(), "messages/s")
}
