package client

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/produce"
	"github.com/kbench/kbench/client/internal/wire"
)

// request is one Produce request from collection to answer. It belongs to its broker producer,
// which uses it again.
type request struct {
	exchange
	broker  *brokerProducer
	batches []*batch // at most one of each partition
	seen    int      // batches that outcomes have told about
}

// request takes a request that is not in use, or makes one.
func (b *brokerProducer) request() *request {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.idle); n > 0 {
		r := b.idle[n-1]
		b.idle[n-1] = nil // it may grow, and not come back
		b.idle = b.idle[:n-1]
		return r
	}
	r := &request{broker: b}
	r.init(&b.producer.cfg, &b.producer.panics, r.done)
	return r
}

// keptBatches is how many batches a request that is kept for another may have had: what a rare
// one to thousands of partitions needs is given back.
const keptBatches = 256

func (b *brokerProducer) reuse(r *request) {
	if cap(r.batches) > keptBatches {
		return
	}
	clear(r.batches)
	r.batches = r.batches[:0]
	r.forget()
	b.mu.Lock()
	b.idle = append(b.idle, r)
	b.mu.Unlock()
}

// submit finishes the batches, writes the request and leaves the rest to done.
func (r *request) submit(c *conn.Conn, version int16) {
	r.seen = 0
	buf := scratches.Get().(*scratch)
	defer scratches.Put(buf) // it is written then, or never will be
	r.begin(r.broker.id, c, version)
	r.encode(buf)
	r.broker.hand = nil
	if len(r.batches) == 0 {
		if r.cfg.Producer.RequiredAcks != AcksNone {
			c.Release()
		}
		r.broker.reuse(r)
		return
	}
	r.broker.using.Store(c)
	r.broker.outstanding.Add(1)
	var err error
	if r.broker.producer.aborted() { // abort may have looked at outstanding before: nobody would end the wait for a turn
		if err = errNotSent; r.cfg.Producer.RequiredAcks != AcksNone {
			c.Release()
		}
	} else {
		err = r.exchange.submit()
	}
	if err != nil {
		r.done(nil, conn.Times{}, err)
	}
}

// errNotSent fails a request that was ready when the producer was cut short.
var errNotSent = notSent{}

type notSent struct{}

func (notSent) Error() string     { return "the request was not sent" }
func (notSent) Class() wire.Class { return wire.Retriable | wire.DefinitelyRefused }

// drop fails the batches of a request that will not be sent.
func (r *request) drop(err error) {
	if r.broker.producer.cfg.Producer.RequiredAcks != AcksNone {
		r.conn.Release()
	}
	r.fail(slices.DeleteFunc(r.batches, isNil), err)
	r.broker.reuse(r)
}

func isNil(b *batch) bool { return b == nil }

// fail gives batches in flight their outcome, for good.
func (r *request) fail(batches []*batch, err error) {
	for _, b := range batches {
		r.broker.producer.decide(b, Delivery{Err: err}, -1)
		b.p.decided(b, false)
		b.free()
	}
}

// encode finishes the batches and adds them to the request, the partitions of a topic together. A
// batch that cannot be finished fails by itself. The deferred ones lie in s.
func (r *request) encode(s *scratch) {
	sortByTopic(r.batches)
	s.reserve(r.batches)
	for i, b := range r.batches {
		if data, ok := r.finish(b, s); ok {
			r.add(b.p.topic, b.p.number, b, data)
		} else {
			r.batches[i] = nil // it has its outcome, or two others took its place
		}
	}
	r.batches = slices.DeleteFunc(r.batches, isNil)
}

// finish completes a batch. One that is too large is split before a broker refuses it.
func (r *request) finish(b *batch, s *scratch) (data []byte, ok bool) {
	cfg := &r.broker.producer.cfg.Producer
	data, err := b.finish(r.broker.compressor, s)
	if err == nil && b.attempts == 0 {
		err = b.checkFinished(cfg, b.p.size)
	}
	if err == nil {
		return data, true
	}
	var large *MessageTooLargeError
	if errors.As(err, &large) && b.builder.Count() > 1 {
		b.p.halve(b)
		return nil, false
	}
	b.p.unnumber(b)
	r.broker.producer.decide(b, Delivery{Err: err}, -1)
	b.p.decided(b, false)
	b.free()
	return nil, false
}

// sortByTopic brings the batches of a topic together. Nearly always there is nothing to do.
func sortByTopic(bs []*batch) {
	for i := 1; i < len(bs); i++ {
		for j := i; j > 0 && bs[j].p.topic < bs[j-1].p.topic; j-- {
			bs[j], bs[j-1] = bs[j-1], bs[j]
		}
	}
}

// done takes the answer apart, or the failure; see conn.Call. Who asked to be told of requests is
// told before the outcomes are, so that what a message's sender knows includes its request.
func (r *request) done(body []byte, t conn.Times, err error) {
	defer r.broker.outstanding.Add(-1)
	defer func() { r.contain(recover()) }()
	r.times = t
	switch {
	case err != nil:
		r.report(err)
		r.failed(err)
	case r.call.NoResponse:
		r.times.Read = t.Written
		r.report(nil)
		for ; r.seen < len(r.batches); r.seen++ {
			r.acked(r.batches[r.seen], -1)
		}
	default:
		r.answered(body)
	}
	r.broker.reuse(r)
}

// contain keeps a panic from the connection's reader, which others need. The batches that are not
// decided have an unknown outcome; the request is not used again.
func (r *request) contain(v any) {
	if v == nil {
		return
	}
	err := r.broker.producer.caught("reading the answer to a request", v)
	r.fail(r.batches[r.seen:], fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
}

// answered reads the answer and decides each batch it tells about; one it leaves out has an
// unknown outcome.
func (r *request) answered(body []byte) {
	err := r.read(body)
	r.report(err)
	for i := range r.outcomes {
		if b := r.find(&r.outcomes[i]); b != nil {
			r.outcome(b, &r.outcomes[i])
			r.seen++
		}
	}
	clear(r.outcomes) // they alias the answer
	if err == nil && r.seen < len(r.batches) {
		err = r.strange()
	}
	if err != nil {
		r.failed(err)
	}
}

// failed is for a request without a (readable) answer: its undecided batches are tried again,
// or have an unknown outcome.
func (r *request) failed(err error) {
	class := wire.Classify(err)
	now := time.Now()
	for _, b := range r.batches[r.seen:] {
		b.mayBeWritten = b.mayBeWritten || !class.Has(wire.DefinitelyRefused)
		r.notAcked(b, err, class, now)
	}
}

// outcome decides one batch.
func (r *request) outcome(b *batch, o *produce.Outcome) {
	if o.Code == 0 {
		r.acked(b, o.BaseOffset)
		return
	}
	class, err := refusal(b.p.topic, o)
	if class.Has(wire.Duplicate) {
		r.acked(b, -1)
		return
	}
	if o.Leader >= 0 {
		b.p.producer.client.moved(b.p.topic, o.Partition, o.Leader, o.LeaderEpoch)
	}
	b.mayBeWritten = b.mayBeWritten || class.Has(wire.OutcomeUnknown)
	r.notAcked(b, err, class, time.Now())
}

// find is the batch that an outcome tells about. Those move to the front of r.batches, in the order
// of the answer, which is nearly always theirs.
func (r *request) find(o *produce.Outcome) *batch {
	for i := r.seen; i < len(r.batches); i++ {
		if b := r.batches[i]; b.p.number == o.Partition && b.p.topic == string(o.Topic) {
			r.batches[i], r.batches[r.seen] = r.batches[r.seen], b
			return b
		}
	}
	return nil
}

func (r *request) acked(b *batch, baseOffset int64) {
	p := r.broker.producer
	p.decide(b, Delivery{Written: r.times.Written, Acked: r.times.Read}, baseOffset)
	b.p.decided(b, true)
	b.free()
}

// notAcked tries a batch again where that may help, makes smaller ones of one that is too large,
// and fails it otherwise.
func (r *request) notAcked(b *batch, err error, class wire.Class, now time.Time) {
	switch {
	case class.Has(wire.Retriable), b.sequence.set && class.Has(wire.BumpEpoch):
		b.p.again(b, err, class, now)
	case b.tooLargeTogether(err):
		b.p.size.ask()
		r.broker.producer.splits.Add(1)
		b.p.halve(b)
	case isTooLarge(err):
		b.p.decided(b, false)
		r.broker.producer.tooLarge(b, Delivery{Err: err, Written: r.times.Written, Acked: r.times.Read})
	default:
		r.broker.producer.decide(b, Delivery{Err: b.orUnknown(err), Written: r.times.Written, Acked: r.times.Read}, -1)
		b.p.decided(b, false)
		b.free()
	}
}

func isTooLarge(err error) bool {
	return errors.Is(err, wire.ErrMessageTooLarge) || errors.Is(err, wire.ErrRecordListTooLarge)
}
