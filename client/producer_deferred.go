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
	on bool
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

// clock notes the time of the messages that come from the place from on.
func (d *deferred) clock(from int, ms int64) {
	if n := len(d.clocks); n == 0 || d.clocks[n-1].ms != ms {
		d.clocks = append(d.clocks, clock{from: from, ms: ms})
	}
}

// scratch is where the deferred batches of one request are encoded. It belongs to who writes the
// request, and is used again when that is done.
type scratch struct {
	buf  []byte
	used int
}

// scratches keeps them between uses: as many are in use as requests are being written.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// reserve makes room for the deferred ones among batches.
func (s *scratch) reserve(batches []*batch) {
	n := 0
	for _, b := range batches {
		if b.deferred.on {
			n += b.builder.Len()
		}
	}
	s.buf, s.used = slices.Grow(s.buf[:0], n), 0
}

// take is the next n bytes of what was reserved.
func (s *scratch) take(n int) []byte {
	from := s.used
	s.used += n
	return s.buf[from:from:s.used]
}

// errChanged is why a batch cannot be encoded.
var errChanged = errors.New("a message was changed before it had its outcome")

// encode encodes a deferred batch into s.
func (b *batch) encode(s *scratch) (data []byte, err error) {
	defer b.encodedNow()
	defer func() {
		if v := recover(); v != nil {
			err = b.p.producer.caught("encoding a message", v)
		}
	}()
	planned := b.builder.Len()
	var builder record.Builder
	builder.Reset(s.take(planned), b.firstAt.UnixMilli())
	clocks, nowMs := b.deferred.clocks, int64(0)
	for i, m := range b.msgs {
		for len(clocks) > 0 && clocks[0].from <= i {
			nowMs, clocks = clocks[0].ms, clocks[1:]
		}
		builder.Append(timestamp(m, nowMs), m.Key, m.Value, m.Headers)
		builder.Sum(summedAtOnce)
	}
	if builder.Len() != planned {
		return nil, errChanged
	}
	data, err = builder.Finish(nil, b.sequence.attributes())
	b.raw, b.length = planned, len(data)
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
