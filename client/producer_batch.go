package client

import (
	"sync"
	"time"

	"github.com/kbench/kbench/client/record"
)

// batch is the messages of one partition that go out, and are decided, together. While it is
// being built its records are encoded as messages arrive; once sealed and finished its bytes do
// not change (but for a new producer epoch), so that a resend is the same batch. One of large
// messages may be deferred instead: it keeps its messages, and is encoded each time that it is
// sent, always to the same bytes.
type batch struct {
	p       *partitionProducer
	ordinal int64 // number of its first message in the partition; a retry sorts by it
	msgs    []*ProducerMessage
	decided []*ProducerMessage // what msgs was, once they have their outcome
	builder record.Builder
	data    []byte // the finished batch; nil before, and always when it is deferred
	raw     int    // size before compression, once it is finished
	length  int    // size as it is sent, once it is finished
	// deferred has the builder only plan, when it is on.
	deferred deferred

	// What the outcome needs to know of the messages, which by then are in no cache any more: where
	// it goes, unless mixed, and what they hold of the bound in bytes.
	way   way
	sink  deliveries
	mixed bool
	size  int64

	firstAt  time.Time // when the first message came
	deadline time.Time // zero: none
	attempts int       // times sent or given up for lack of a leader
	sequence sequence  // of its first message, once it was sent by an idempotent producer
	stamped  sequence  // what stands in data
	// refused is a refusal for a gap before it that has not been dealt with.
	refused error
	// mayBeWritten is true once a request with it left whose answer did not say "refused".
	mayBeWritten bool
	// expired is set when its messages had to have their outcome while it was in flight: whatever
	// becomes of it, nobody waits for it. Guarded by the partition producer's mu, as msgs is while
	// the batch is in flight.
	expired bool
}

// batches keeps batches, with their buffers, between uses.
var batches = sync.Pool{New: func() any { return new(batch) }}

// clockEvery is how many messages share one reading of the clock: the timestamps of messages
// without one of their own are at most this many messages, or one batch, old.
const clockEvery = 64

func newBatch(p *partitionProducer, ordinal int64, now time.Time, timeout time.Duration) *batch {
	b := batches.Get().(*batch)
	*b = batch{p: p, ordinal: ordinal, msgs: b.msgs[:0], builder: b.builder, firstAt: now, deferred: deferred{clocks: b.deferred.clocks[:0]}}
	b.builder.Reset(b.builder.Bytes(), now.UnixMilli())
	if timeout > 0 {
		b.deadline = now.Add(timeout)
	}
	return b
}

// free gives the batch back once all its messages are decided.
func (b *batch) free() {
	if b.msgs == nil {
		b.msgs = b.decided
	}
	clear(b.msgs)
	b.msgs, b.decided, b.sink = b.msgs[:0], nil, nil
	batches.Put(b)
}

// add encodes messages from the beginning of run as long as the batch stays within limit bytes
// and most messages, and returns how many. The first message of a batch always fits. With
// panicked set, encoding the message after those panicked, as it does when a message's headers
// change meanwhile; the batch is as if it had not been tried.
func (b *batch) add(run []*ProducerMessage, nowMs int64, limit, most int) (n int, panicked any) {
	before := len(b.msgs)
	defer func() { n, panicked = len(b.msgs)-before, recover() }()
	if before == 0 && len(run) > 0 {
		b.deferred.on = b.p != nil && b.p.defers(run[0])
	}
	if b.deferred.on {
		b.deferred.clock(before, nowMs)
	}
	for _, m := range run {
		ts := timestamp(m, nowMs)
		if b.full(m, ts, limit, most) {
			return
		}
		if b.deferred.on {
			b.builder.Plan(ts, m.Key, m.Value, m.Headers)
		} else {
			b.builder.Append(ts, m.Key, m.Value, m.Headers)
		}
		b.join(m)
	}
	return
}

// timestamp is what a message has in its record, in milliseconds, if nowMs is the time.
func timestamp(m *ProducerMessage, nowMs int64) int64 {
	if m.Timestamp.IsZero() {
		return nowMs
	}
	return m.Timestamp.UnixMilli()
}

// join adds m to the messages that are decided together.
func (b *batch) join(m *ProducerMessage) {
	if len(b.msgs) == 0 {
		b.way, b.sink, b.mixed = m.way, m.sink, false
	} else if m.way != b.way || m.way.kind() == toDeliveries && m.sink != b.sink {
		b.mixed = true
	}
	b.size += int64(m.size)
	b.msgs = append(b.msgs, m)
}

// full says whether m does not fit any more. The exact size is worked out only near the limit.
func (b *batch) full(m *ProducerMessage, ts int64, limit, most int) bool {
	n := len(b.msgs)
	if n == 0 {
		return false
	}
	if most > 0 && n >= most {
		return true
	}
	if b.builder.Len()+int(m.size)+record.MaxRecordOverhead+maxHeaderOverhead*len(m.Headers) <= limit {
		return false
	}
	return b.builder.SizeWith(ts, m.Key, m.Value, m.Headers) > limit
}

// maxHeaderOverhead is the most that a header's two lengths take.
const maxHeaderOverhead = 10

// finish completes the encoded form, once; later only the sequence changes. The compressor's output,
// when it is the smaller, changes places with the builder's buffer, so that the batch owns its bytes.
// A deferred batch is encoded anew, into s, each time.
func (b *batch) finish(c *record.Compressor, s *scratch) (data []byte, err error) {
	if b.deferred.on {
		return b.encode(s)
	}
	if b.data != nil {
		if b.stamped != b.sequence { // numbered anew since
			b.stamped = b.sequence
			record.SetProducer(b.data, b.sequence.identity.id, b.sequence.identity.epoch, b.sequence.base)
		}
		return b.data, nil
	}
	b.raw, b.stamped = b.builder.Len(), b.sequence
	data, err = b.builder.Finish(c, b.sequence.attributes())
	if err != nil {
		return nil, err
	}
	if b.builder.Compressed() {
		c.SetBuffer(b.builder.Bytes()[:0])
		b.builder.Adopt(data) // for the next use; data stays as it is until then
	}
	b.data, b.length = data, len(data)
	return data, nil
}

// bytes is what the batch counts while it waits.
func (b *batch) bytes() int {
	if b.length > 0 {
		return b.length
	}
	return b.builder.Len()
}

// weight is what batches count towards the flush triggers: messages, and bytes of encoded
// records before compression. A batch weighs the same from its sealing to its outcome.
type weight struct{ messages, bytes int64 }

func (w weight) plus(v weight) weight  { return weight{w.messages + v.messages, w.bytes + v.bytes} }
func (w weight) minus(v weight) weight { return weight{w.messages - v.messages, w.bytes - v.bytes} }

func (b *batch) weight() weight {
	size := b.raw
	if b.length == 0 {
		size = b.builder.Len()
	}
	return weight{int64(len(b.msgs)), int64(size - record.HeaderSize)}
}
