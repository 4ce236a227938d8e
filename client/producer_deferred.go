package client

import (
	"errors"
	"slices"
	"sync"

	"github.com/kbench/kbench/client/record"
)

// deferFrom is the size in bytes from which on a message's batch is deferred, if it is the batch's
// first. Encoding a message when it comes saves looking at it again; but its copy is written to
// memory that nothing was in for as long as the batches before it are waiting and in flight, which
// soon is no processor's cache any more, and for messages that are not small that costs more. A
// deferred batch is copied where the one before it was, just before it is written.
const deferFrom = 512

// defers says whether the batch that m is the first message of is to be deferred. A batch that is
// compressed is not: the compressor's output is kept for another try, and is what costs.
func (p *partitionProducer) defers(m *ProducerMessage) bool {
	return m.size >= deferFrom && p.producer.cfg.Producer.Compression == record.None
}

// deferred is what a batch whose messages are encoded when it is sent knows of them until then.
// Messages must not be changed before they have their outcome, so that each encoding is the same.
type deferred struct {
	on   bool
	plan record.Plan
	// clocks are the times that messages without one of their own got.
	clocks []clock
	// encoding is set from the time that the batch is taken to be sent until it is encoded: its
	// messages must not have their outcome meanwhile. Guarded by the partition producer's mu.
	encoding bool
}

// clock is the time in milliseconds of the messages from the place from on.
type clock struct {
	from int
	ms   int64
}

// reset is d for a new batch.
func (d *deferred) reset(firstMs int64) deferred {
	n := deferred{clocks: d.clocks[:0]}
	n.plan.Reset(firstMs)
	return n
}

// clock notes the time of the messages that come from the place from on.
func (d *deferred) clock(from int, ms int64) {
	if n := len(d.clocks); n == 0 || d.clocks[n-1].ms != ms {
		d.clocks = append(d.clocks, clock{from: from, ms: ms})
	}
}

// keep is add of a deferred batch.
func (b *batch) keep(run []*ProducerMessage, nowMs int64, limit, most int) {
	d := &b.deferred
	d.clock(len(b.msgs), nowMs)
	for _, m := range run {
		ts := timestamp(m, nowMs)
		if len(b.msgs) > 0 && b.full(m, d.plan.Len(), most, limit) && b.over(m, ts, most, limit) {
			return
		}
		d.plan.Add(ts, m.Key, m.Value, m.Headers)
		b.join(m)
	}
}

// room is where the deferred batches of one request are encoded. It belongs to who writes the
// request, and is used again when that is done.
type room struct {
	buf  []byte
	used int
}

// rooms keeps rooms between uses: as many are in use as requests are being written.
var rooms = sync.Pool{New: func() any { return new(room) }}

// reserve makes room for the deferred ones among batches.
func (r *room) reserve(batches []*batch) {
	n := 0
	for _, b := range batches {
		if b.deferred.on {
			n += b.encoded()
		}
	}
	r.buf, r.used = slices.Grow(r.buf[:0], n), 0
}

// take is the next n bytes of what was reserved.
func (r *room) take(n int) []byte {
	from := r.used
	r.used += n
	return r.buf[from:from:r.used]
}

// errChanged is why a batch cannot be encoded.
var errChanged = errors.New("a message was changed before it had its outcome")

// encode encodes a deferred batch into room.
func (b *batch) encode(room *room) (data []byte, err error) {
	defer b.encodedNow()
	defer func() {
		if v := recover(); v != nil {
			err = b.p.producer.caught("encoding a message", v)
		}
	}()
	d := &b.deferred
	var builder record.Builder
	builder.Reset(room.take(d.plan.Len()), d.plan.First())
	clocks, nowMs := d.clocks, int64(0)
	for i, m := range b.msgs {
		for len(clocks) > 0 && clocks[0].from <= i {
			nowMs, clocks = clocks[0].ms, clocks[1:]
		}
		builder.Append(timestamp(m, nowMs), m.Key, m.Value, m.Headers)
		builder.Sum(summedAtOnce)
	}
	if builder.Len() != d.plan.Len() {
		return nil, errChanged
	}
	data, err = builder.Finish(nil, b.sequence.attributes())
	b.raw, b.sent, b.stamped = d.plan.Len(), len(data), b.sequence
	return data, err
}

// encodedNow says that the messages may have their outcome, and sees to it that those get it whose
// time ran out while they could not.
func (b *batch) encodedNow() {
	b.p.mu.Lock()
	b.deferred.encoding = false
	b.p.mu.Unlock()
	if !b.deadline.IsZero() {
		b.p.producer.expiry.by(b.deadline)
	}
}
