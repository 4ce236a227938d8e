package run

import (
	"testing"
	"time"

	"github.com/kbench/kbench/results"
)

// BenchmarkRecordOutcome is what it costs to take down one message's outcome: response, service,
// delay, counts and the pool it goes back to. Bound: 25 ns and no allocation.
func BenchmarkRecordOutcome(b *testing.B) {
	for name, size := range map[string]int{"run=128": 128, "run=16": 16, "run=1": 1} {
		b.Run(name, func(b *testing.B) {
			f := newFrame(int64(time.Second), true)
			f.start.Store(1)
			rec := newRecorder(f)
			pool := newPool(size, size, plain)
			out := &outcomes{pool: pool, rec: rec}
			batch := make([]*Message, size)
			var now int64
			b.ReportAllocs()
			b.ResetTimer()
			before := results.ReadUsage()
			for n := 0; n < b.N; n += size {
				for i := range batch {
					m := pool.take()
					m.Due, m.Accepted, m.open = now+int64(i)*1000+1, now+int64(size)*1000, true
					batch[i] = m
				}
				now += int64(size) * 1000
				out.Decided(batch, 0, now+int64(2*time.Millisecond)+now%1_000_003)
				now %= int64(100 * time.Second)
			}
			// On a busy machine the time on the clock is others' too.
			b.ReportMetric(float64(results.ReadUsage().CPUSince(before))/float64(b.N), "cpu-ns/op")
		})
	}
}

// plain makes messages without a target.
func plain(n int) []*Message {
	list := make([]*Message, n)
	for i := range list {
		list[i] = &Message{}
	}
	return list
}
