package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/produce"
	"github.com/kbench/kbench/client/internal/wire"
)

const produceKey = produce.Key

// request is one Produce request from collection to answer. It belongs to its broker producer,
// which uses it again.
type request struct {
	broker  *brokerProducer
	conn    *conn.Conn
	batches []*batch // at most one of each partition
	call    conn.Call
	encoder produce.Encoder
	answer  produce.Answer
	// outcomes are what the answer says of partitions; collect adds one, and is made once.
	outcomes []produce.Outcome
	collect  func(*produce.Outcome)
	seen     int // batches that outcomes have told about
	times    conn.Times
	info     RequestInfo
}

// RequestInfo describes one finished Produce request; see ProducerConfig.OnRequest.
type RequestInfo struct {
	Broker   int32 // node id
	Err      error // why there is no answer; errors of single batches are not counted here
	Written  time.Time
	Read     time.Time // zero without an answer
	Batches  int
	Messages int
	Bytes    int           // of the batches as sent
	RawBytes int           // of the batches before compression
	Throttle time.Duration // asked for by the broker
}

// submit finishes the batches, writes the request and leaves the rest to done.
func (r *request) submit(c *conn.Conn, version int16) {
	p := r.broker.producer
	r.conn, r.seen, r.times = c, 0, conn.Times{}
	r.info = RequestInfo{Broker: r.broker.id}
	r.encoder.Begin(produce.Head{
		Version: version, Acks: int16(p.cfg.Producer.RequiredAcks), TimeoutMs: int32(p.cfg.Producer.Timeout.Milliseconds()),
	})
	r.encode()
	if len(r.batches) == 0 {
		if p.cfg.Producer.RequiredAcks != AcksNone {
			c.Release()
		}
		r.broker.reuse(r)
		return
	}
	r.call.Key, r.call.Version, r.call.Body = produceKey, version, r.encoder.End()
	r.call.NoResponse = p.cfg.Producer.RequiredAcks == AcksNone
	r.call.Timeout = p.cfg.Producer.Timeout + p.cfg.Net.ReadTimeout
	r.broker.using.Store(c)
	r.broker.outstanding.Add(1)
	if err := c.Submit(&r.call); err != nil {
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
	topic := ""
	for i, b := range r.batches {
		if i == 0 || b.p.topic != topic {
			topic = b.p.topic
			r.encoder.Topic(topic)
		}
		r.encoder.Batch(b.p.number, b.data)
		r.info.Batches++
		r.info.Messages += len(b.msgs)
		r.info.Bytes += len(b.data)
		r.info.RawBytes += b.raw
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

func (r *request) report(err error) {
	if hook := r.broker.producer.cfg.Producer.OnRequest; hook != nil {
		r.info.Err, r.info.Written, r.info.Read = err, r.times.Written, r.times.Read
		hook(r.info)
	}
}

// answered reads the answer and decides each batch it tells about; one it leaves out has an
// unknown outcome.
func (r *request) answered(body []byte) {
	r.outcomes = r.outcomes[:0]
	throttle, err := r.answer.Read(body, r.call.Version, r.collect)
	if err == nil && len(r.outcomes) < len(r.batches) {
		err = errors.New("the broker's answer leaves out a partition of the request")
	}
	if err != nil {
		err = &conn.DecodeError{Key: produceKey, Version: r.call.Version, Err: err}
	} else {
		r.info.Throttle = throttle
		r.conn.Throttle(throttle)
	}
	r.report(err)
	for i := range r.outcomes {
		r.outcome(&r.outcomes[i])
	}
	clear(r.outcomes) // they alias the answer
	if err == nil && r.seen < len(r.batches) {
		err = &conn.DecodeError{Key: produceKey, Version: r.call.Version,
			Err: errors.New("the broker's answer is about partitions that were not asked about")}
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
	var text *string
	if len(o.Message) > 0 {
		s := string(o.Message)
		text = &s
	}
	err := wire.ErrorWith(o.Code, text)
	class := wire.Classify(err)
	if class.Has(wire.Duplicate) {
		r.acked(b, -1)
		return
	}
	if o.Leader >= 0 {
		b.p.producer.client.moved(b.p.topic, o.Partition, o.Leader, o.LeaderEpoch)
	}
	b.mayBeWritten = b.mayBeWritten || class.Has(wire.OutcomeUnknown)
	r.notAcked(b, fmt.Errorf("topic %q partition %d: %w", b.p.topic, b.p.number, err), class, time.Now())
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
	case len(b.msgs) > 1 && (errors.Is(err, wire.ErrMessageTooLarge) || errors.Is(err, wire.ErrRecordListTooLarge)):
		b.p.halve(b)
	default:
		if b.mayBeWritten {
			err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
		r.broker.producer.decide(b, Delivery{Err: err, Written: r.times.Written, Acked: r.times.Read}, -1)
		b.p.decided(b, false)
		b.free()
	}
}
