package client

import (
	"runtime"
	"time"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/record"
)

// unpackers are shared by all readers: a decoder may hold megabytes, and is in use only while a
// batch is being decompressed.
var unpackers = record.NewDecompressorPool(runtime.GOMAXPROCS(0))

// cursor is the block being read, and the batch of it.
type cursor struct {
	block  block
	filter fetch.Filter
	batch  record.Batch
	data   []byte  // records of batch that are not read yet
	left   int32   // how many
	buf    *buffer // a reference to what data aliases
	bad    error   // found behind what was delivered; returned instead of going on
	bytes  int     // of keys and values that the last readBatch gave
	// own is a copy of what data begins with, for messages that own their memory; nil: none.
	own []byte
}

// empty says that nothing of the block is left to read.
func (c *cursor) empty() bool { return c.left == 0 && len(c.block.records) == 0 && c.bad == nil }

// drop gives back what the cursor holds.
func (c *cursor) drop() {
	c.buf.release()
	c.block.buf.release()
	c.block = block{}
	c.data, c.left, c.buf, c.bad, c.own = nil, 0, nil, nil, nil
}

// load starts on a block.
func (c *cursor) load(b block) {
	c.drop()
	c.block = b
	c.filter.Reset(b.aborted)
}

// read fills buf with messages at next or later, from what is left of the current batch or else
// from the block's following ones until one shows something. It returns how many, and the offset
// that follows all that was looked at. Messages alias the reader's buffers unless own.
func (r *Reader) read(buf []Message, next int64, own bool) (int, int64, error) {
	c := &r.cur
	for {
		if c.bad != nil {
			return 0, next, c.bad
		}
		if c.left == 0 {
			if len(c.block.records) == 0 {
				return 0, next, nil
			}
			shown, err := r.openBatch()
			if err != nil {
				return 0, next, err
			}
			if !shown {
				next = max(next, c.batch.NextOffset())
				continue
			}
		}
		n, after, err := r.readBatch(buf, next, own)
		if n > 0 || err != nil {
			return n, after, err
		}
		next = after
	}
}

// openBatch makes the block's next batch the current one. False: it shows nothing.
func (r *Reader) openBatch() (bool, error) {
	c := &r.cur
	b, rest, err := record.Next(c.block.records)
	if err != nil {
		// What is cut at the end of an answer was left out when the block was measured.
		return false, err
	}
	if r.consume.CheckCRC {
		if err := b.CheckCRC(); err != nil {
			return false, err
		}
	}
	hidden := c.filter.Hides(&b)
	if hidden && !(b.Control() && c.filter.Watching()) {
		c.batch, c.block.records = b, rest
		return false, nil
	}
	data, buf, err := r.decompress(&b)
	if err != nil {
		return false, err
	}
	c.buf.release()
	c.batch, c.block.records, c.data, c.buf, c.left, c.own = b, rest, data, buf, b.Count, nil
	if hidden {
		c.left = 0
		return false, c.takeMarkers()
	}
	return b.Count > 0, nil
}

// decompress is the batch's records and a reference to the buffer they are in.
func (r *Reader) decompress(b *record.Batch) ([]byte, *buffer, error) {
	if b.Codec() == record.None {
		r.cur.block.buf.retain()
		return b.RecordsSection(), r.cur.block.buf, nil
	}
	unpack := unpackers.Get()
	defer unpackers.Put(unpack)
	buf := r.plain.get(min(r.grown, r.consume.MaxDecompressed))
	data, err := b.Decompressed(unpack, buf.b, r.consume.MaxDecompressed)
	if err != nil {
		buf.release()
		return nil, nil, err
	}
	if cap(data) > cap(buf.b) {
		buf.replace(data[:cap(data)])
	}
	r.grown = len(data)
	return data, buf, nil
}

// takeMarkers looks for the end of an aborted transaction in a control batch.
func (c *cursor) takeMarkers() error {
	for n, data := c.batch.Count, c.data; n > 0; n-- {
		var rec record.Record
		rest, err := record.ReadRecord(data, &rec)
		if err != nil {
			return err
		}
		marker, err := record.ControlType(&rec)
		if err != nil {
			return err
		}
		c.filter.Marker(&c.batch, marker)
		data = rest
	}
	return nil
}

var (
	errBatchRest   = &record.CorruptError{What: "batch has bytes after its last record"}
	errBatchOffset = &record.CorruptError{What: "record has an offset beyond its batch"}
)

// readBatch fills buf from the current batch. When a record is damaged, what stands before it
// is returned first, and the error the next time. This is what a message costs.
func (r *Reader) readBatch(buf []Message, next int64, own bool) (n int, after int64, err error) {
	c := &r.cur
	if !own {
		c.own = nil
	}
	last := c.batch.LastOffset()
	data, left, bytes := c.data, c.left, 0
	var rec record.Record
	for left > 0 && n < len(buf) {
		from := data
		if own {
			from = r.owned(data)
		}
		rest, err := record.ReadRecord(from, &rec)
		offset := c.batch.Offset(&rec)
		if err == nil && offset > last {
			err = errBatchOffset
		}
		if err == nil && offset >= next {
			if err = r.show(&buf[n], &rec, offset); err == nil {
				next = offset + 1
				n++
				bytes += len(rec.Key) + len(rec.Value)
			}
		}
		if err != nil {
			c.data, c.left, c.bytes = data, left, bytes
			return n, next, c.damaged(err, n)
		}
		data = data[len(from)-len(rest):]
		if own {
			c.own = rest
		}
		left--
	}
	c.data, c.left, c.bytes = data, left, bytes
	if left > 0 {
		return n, next, nil
	}
	if len(data) > 0 {
		return n, next, c.damaged(errBatchRest, n)
	}
	return n, max(next, last+1), nil
}

// owned is the application's own copy of what data, the records that are left, begins with: of one
// record at least. Records are copied many at a time, which is cheaper than their fields one by one.
func (r *Reader) owned(data []byte) []byte {
	c := &r.cur
	if size := record.RecordSize(data); size > len(c.own) || len(c.own) == 0 {
		c.own = r.slab.copy(data[:min(len(data), max(size, slabBytes))])
	}
	return c.own
}

// damaged keeps an error for the next time when n messages come before it.
func (c *cursor) damaged(err error, n int) error {
	c.bad = err
	if n > 0 {
		return nil
	}
	return err
}

// show makes a record a message that aliases it.
func (r *Reader) show(m *Message, rec *record.Record, offset int64) error {
	b := &r.cur.batch
	var headers []Header
	if rec.HeaderCount() > 0 {
		from := len(r.headers)
		all, err := r.appendHeaders(r.headers, rec)
		if err != nil {
			return err
		}
		r.headers = all
		headers = all[from:len(all):len(all)]
	}
	p := r.cur.block.p // what is read of it here does not change
	m.Topic, m.Partition, m.LeaderEpoch, m.assignment = p.topic, p.id, b.PartitionLeaderEpoch, p.assignment
	m.Offset, m.HighWaterMark = offset, r.cur.block.hwm
	m.Key, m.Value, m.Headers = rec.Key, rec.Value, headers
	m.Time = time.UnixMilli(b.Timestamp(rec))
	return nil
}
