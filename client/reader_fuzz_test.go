package client

import (
	"io"
	"testing"
	"time"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

// FuzzReaderRecords feeds a reader whatever a broker may send as a partition's records: no panic,
// offsets rise, the position never goes back, and damage is an error of a known kind.
func FuzzReaderRecords(f *testing.F) {
	for _, codec := range record.Codecs() {
		f.Add(batchOf(f, shape{base: 5, codec: codec}, values(0, 20)), true)
	}
	f.Add(append(emptied(0, 9), batchOf(f, shape{base: 10, lastDelta: 30}, values(0, 3))...), true)
	f.Add(append(inTxn(f, 1, 8, values(1, 3)), marker(f, 3, 8, record.Abort)...), true)
	b := newReaderBed(f, broker.Options{}, 1, func(c *Config) {
		c.Consumer.MaxWait = 20 * time.Second
		c.Consumer.MaxDecompressed = 1 << 20
		c.Consumer.CheckCRC = false // or hardly anything would get further
	})
	f.Fuzz(func(t *testing.T, raw []byte, aborted bool) {
		r, err := b.client.NewReader(ReaderConfig{Topic: "in"})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		feed(r, raw, aborted)
		buf := make([]Message, 7)
		next := int64(0)
		for {
			n, err := r.FetchBatch(b.ctx, buf)
			if err != nil {
				return
			}
			for _, m := range buf[:n] {
				if m.Offset < next {
					t.Fatalf("offset %d after %d", m.Offset, next)
				}
				next = m.Offset + 1
			}
			if at := r.Offset(); at < next {
				t.Fatalf("position %d behind %d", at, next)
			}
		}
	})
}

// feed queues records as if they had been the last ones fetched.
func feed(r *Reader, raw []byte, aborted bool) {
	held := r.answers.get(len(raw))
	records := held.b[:copy(held.b, raw)]
	e := fetch.Measure(records, 0)
	if e.Err == nil {
		records = records[:e.Bytes]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.parts[0]
	p.leave()
	p.Version++
	bl := block{p: p, version: p.Version, buf: held, records: records, batches: e.Batches}
	if aborted {
		bl.aborted = []fetch.Aborted{{ProducerID: 8, FirstOffset: 1}}
	}
	r.queue.push(bl)
	r.batches += e.Batches
	p.stopped, r.lastErr = true, io.EOF // behind it all, instead of waiting for more
	r.moving--
	signal(r.ready)
}
