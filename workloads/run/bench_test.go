package run

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/payload"
)

// bed is what the benchmarks record with: one producer's pool and outcomes, and what is asked for beside.
type bed struct {
	rec     *recorder
	pool    *pool
	out     *outcomes
	batch   []*Message
	ledger  *ledger // nil: nobody looks for arrivals
	request bool    // one a run
	failing int     // one message in so many fails; 0: none
	now     int64
	seq     int64
}

func newBed(size int) *bed {
	f := newFrame(int64(time.Second), true)
	f.start.Store(1)
	b := &bed{rec: newRecorder(f), batch: make([]*Message, size)}
	b.pool = newPool(size, size, plain)
	b.out = &outcomes{pool: b.pool, rec: b.rec}
	return b
}

func (b *bed) looksForArrivals() *bed {
	b.ledger = newLedger(b.rec.frame)
	b.pool.ledgers = []*ledger{b.ledger}
	return b
}

func (b *bed) by(r workloads.Record) *bed {
	d := workloads.Default()
	d.Record, d.Producers.Count = r, 1
	b.rec.split = newSplit(&d)
	return b
}

var errBench = errors.New("refused")

// take fills the run with messages that were due one a microsecond.
func (b *bed) take() {
	size := int64(len(b.batch))
	for i := range b.batch {
		m := b.pool.take()
		m.Due, m.Accepted, m.open, m.Err = b.now+int64(i)*1000+1, b.now+size*1000, true, nil
		m.seq, m.Number, m.Partition = b.seq, b.seq, int32(b.seq>>7%6)
		if b.failing > 0 && b.seq%int64(b.failing) == 0 {
			m.Err = errBench
		}
		b.seq++
		b.batch[i] = m
	}
	if b.ledger != nil {
		b.ledger.reach(b.seq)
	}
	b.now += size * 1000
}

// decide records the run; answers take some milliseconds, each different.
func (b *bed) decide() {
	acked := b.now + int64(2*time.Millisecond) + b.now%1_000_003
	b.out.Decided(b.batch, 0, acked)
	if b.request {
		b.out.Request(results.SeriesProduce, b.now, acked)
	}
	b.now %= int64(100 * time.Second)
}

// BenchmarkRecordOutcome is what it costs to take down one message's outcome: response, service,
// delay, counts and the pool it goes back to; then each of what may come on top, and all of it. Bound: 25 ns
// and no allocation.
func BenchmarkRecordOutcome(b *testing.B) {
	both := workloads.Record{PerProducer: true, PerPartition: true}
	for _, bench := range []struct {
		name string
		make func(size int) *bed
	}{
		{"outcomes", newBed},
		{"one-in-100-failed", func(n int) *bed { bed := newBed(n); bed.failing = 100; return bed }},
		{"requests", func(n int) *bed { bed := newBed(n); bed.request = true; return bed }},
		{"ledger", func(n int) *bed { return newBed(n).looksForArrivals() }},
		{"perProducer", func(n int) *bed { return newBed(n).by(workloads.Record{PerProducer: true}) }},
		{"perPartition", func(n int) *bed { return newBed(n).by(workloads.Record{PerPartition: true}) }},
		{"everything", func(n int) *bed {
			bed := newBed(n).looksForArrivals().by(both)
			bed.request, bed.failing = true, 100
			return bed
		}},
	} {
		for _, size := range []int{128, 16, 1} {
			b.Run(fmt.Sprintf("%s/run=%d", bench.name, size), func(b *testing.B) {
				bed := bench.make(size)
				perMessage(b, size, func() {
					if bed.ledger != nil && bed.seq > 1<<20 { // a run's memory is not what is measured
						bed.looksForArrivals()
						bed.seq = 0
					}
					bed.take()
					bed.decide()
				})
			})
		}
	}
}

// BenchmarkRecordArrival is what it costs to take down one message's arrival: its stamp read and checked, e2e,
// whether it was there before, order, counts.
func BenchmarkRecordArrival(b *testing.B) {
	const lots = 1 << 13 // a multiple of every size
	for _, value := range []int{100, 1024} {
		for _, size := range []int{128, 16, 1} {
			b.Run(fmt.Sprintf("%dB/run=%d", value, size), func(b *testing.B) {
				bed := newBed(size).looksForArrivals()
				in := newReceiver(newRecorder(bed.rec.frame), stamping{where: stampInValue}, 0, []*ledger{bed.ledger})
				arrivals := make([]Arrival, lots)
				for i := range arrivals {
					v := make([]byte, value)
					payload.PutStamp(v, payload.Stamp{Number: int64(i), Due: int64(i)*1000 + 1}, nil, v[payload.StampSize:])
					arrivals[i].Value = v
				}
				at := 0
				perMessage(b, size, func() {
					if at == 0 { // or all would be duplicates
						in.ledgers = bed.looksForArrivals().pool.ledgers
						bed.ledger.reach(lots)
						clear(in.last)
						in.lastSeen = nil
					}
					in.Received(arrivals[at:at+size], int64(at+size)*1000+int64(3*time.Millisecond))
					at = (at + size) % lots
				})
				b.StopTimer()
				if in.found.corrupted+in.found.foreign+in.found.reordered+in.found.duplicated > 0 {
					b.Fatalf("the arrivals are not those that were meant: %+v", in.found)
				}
			})
		}
	}
}

// perMessage measures what one message of a run costs.
func perMessage(b *testing.B, size int, run func()) {
	b.ReportAllocs()
	b.ResetTimer()
	before := results.ReadUsage()
	for n := 0; n < b.N; n += size {
		run()
	}
	// On a busy machine the time on the clock is others' too.
	b.ReportMetric(float64(results.ReadUsage().CPUSince(before))/float64(b.N), "cpu-ns/op")
}

// plain makes messages without a target.
func plain(n int) []*Message {
	list := make([]*Message, n)
	for i := range list {
		list[i] = &Message{}
	}
	return list
}
