package client

import (
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

// submit finishes the batches, writes the request and leaves the rest to done.
func (r *request) submit(c *conn.Conn, version int16) {
	r.seen = 0
	r.begin(r.broker.id, c, version)
	r.encode()
	if len(r.batches) == 0 {
		if r.cfg.Producer.RequiredAcks != AcksNone {
			c.Release()
		}
		r.broker.reuse(r)
		return
	}
	r.broker.using.Store(c)
	r.broker.outstanding.Add(1)
	if err := r.exchange.submit(); err != nil {
		r.done(nil, conn.Times{}, err)
	}
}

// encode finishes batches that were never sent and adds all of them to the request, the
// partitions of a topic together. A batch that cannot be finished fails by itself.
func (r *request) encode() {
	kept := r.batches[:0]
	for _, b := range r.batches {
		if err := b.finish(r.broker.compressor); err != nil {
			r.broker.producer.decide(b, Delivery{Err: err}, -1)
			b.p.decided(b, false)
			b.free()
			continue
		}
		kept = append(kept, b)
	}
	r.batches = kept
	sortByTopic(r.batches)
	for _, b := range r.batches {
		r.add(b.p.topic, b.p.number, b)
	}
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
	r.times = t
	switch {
	case err != nil:
		r.report(err)
		r.failed(err)
	case r.call.NoResponse:
		r.times.Read = t.Written
		r.report(nil)
		for _, b := range r.batches {
			r.acked(b, -1)
		}
	default:
		r.answered(body)
	}
	r.broker.outstanding.Add(-1)
	r.broker.reuse(r)
}

// answered reads the answer and decides each batch it tells about; one it leaves out has an
// unknown outcome.
func (r *request) answered(body []byte) {
	err := r.read(body)
	r.report(err)
	for i := range r.outcomes {
		r.outcome(&r.outcomes[i])
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

// outcome decides one batch. Batches told about move to the front of r.batches, in the order of
// the answer, which is nearly always theirs.
func (r *request) outcome(o *produce.Outcome) {
	b := r.find(o)
	if b == nil {
		return
	}
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

func (r *request) find(o *produce.Outcome) *batch {
	for i := r.seen; i < len(r.batches); i++ {
		if b := r.batches[i]; b.p.number == o.Partition && b.p.topic == string(o.Topic) {
			r.batches[i], r.batches[r.seen] = r.batches[r.seen], b
			r.seen++
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
		b.p.halve(b)
	default:
		r.broker.producer.decide(b, Delivery{Err: b.orUnknown(err), Written: r.times.Written, Acked: r.times.Read}, -1)
		b.p.decided(b, false)
		b.free()
	}
}
