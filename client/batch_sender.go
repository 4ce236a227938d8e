package client

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/wire"
)

// batchSender makes the requests of a BatchProducer to one node, over the connection that the
// client has with it.
type batchSender struct {
	p    *BatchProducer
	node int32

	writing atomic.Int64              // requests being written
	using   atomic.Pointer[conn.Conn] // the connection of the last one

	mu   sync.Mutex
	idle []*batchRequest
}

// batchRequest is one Produce request of a call. From launch until it is noted in the call's over,
// it belongs to its own goroutine and then to the connection's, which only read what it refers to.
type batchRequest struct {
	exchange
	sender *batchSender
	owner  *batchCall

	ready   bool         // being filled; not launched
	parts   []*batchPart // in the order of their topics
	batches []*batch     // by part, one of each
	bytes   int
	answers []batchAnswer // by part
	seen    int           // parts that answers tell about
	sent    atomic.Bool   // handed to the connection
	err     error         // why there is no answer
}

// batchAnswer is what became of one batch.
type batchAnswer struct {
	told       bool
	baseOffset int64
	err        error
	class      wire.Class
}

// request takes a request that is not in use, or makes one.
func (s *batchSender) request(c *batchCall) *batchRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var r *batchRequest
	if n := len(s.idle); n > 0 {
		r = s.idle[n-1]
		s.idle = s.idle[:n-1]
	} else {
		r = &batchRequest{sender: s}
		r.init(&s.p.cfg, &s.p.panics, r.done)
	}
	r.owner, r.ready, r.bytes, r.seen, r.err, r.times = c, true, 0, 0, nil, conn.Times{}
	r.sent.Store(false)
	return r
}

func (s *batchSender) reuse(r *batchRequest) {
	clear(r.parts)
	clear(r.batches)
	clear(r.answers)
	r.parts, r.batches, r.owner = r.parts[:0], r.batches[:0], nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, r)
}

// launch sends a request that was filled.
func (c *batchCall) launch(r *batchRequest) {
	slices.SortStableFunc(r.parts, func(a, b *batchPart) int { return cmp.Compare(a.topic, b.topic) })
	for _, part := range r.parts {
		r.batches = append(r.batches, part.batch)
	}
	r.answers = slices.Grow(r.answers[:0], len(r.parts))[:len(r.parts)]
	clear(r.answers)
	c.p.work.Add(1)
	// Owned by the call; ends when the request is written, which dial and write timeout bound, and
	// its waits for room end with the call's context; the producer's Close waits, and closes the
	// connection when it is still being written to.
	go r.send(c.ctx)
}

// send connects, finishes the batches and writes.
func (r *batchRequest) send(ctx context.Context) {
	p := r.sender.p
	defer p.work.Done()
	c, version, err := p.client.produceConn(ctx, r.sender.node)
	if err != nil {
		r.failed(err)
		return
	}
	r.begin(r.sender.node, c, version)
	if r.encode(); r.info.Batches == 0 {
		r.owner.answer(r)
		return
	}
	if p.cfg.Producer.RequiredAcks != AcksNone {
		if err := c.Acquire(ctx); err != nil {
			r.failed(err)
			return
		}
	}
	if last := r.sender.using.Swap(c); last != nil && last != c && last.Err() != nil && p.cfg.Producer.RequiredAcks == AcksNone {
		reportDropped(&p.cfg, &p.panics, &p.dropped, r.sender.node, last)
	}
	r.sender.writing.Add(1)
	defer r.sender.writing.Add(-1)
	if p.life.Err() != nil { // Close may have looked at writing before
		r.release(c, ErrClosed)
		return
	}
	r.sent.Store(true)
	if err = r.submit(); err != nil {
		r.done(nil, conn.Times{}, err)
	}
}

// release gives a slot back that is not used after all.
func (r *batchRequest) release(c *conn.Conn, err error) {
	if r.cfg.Producer.RequiredAcks != AcksNone {
		c.Release()
	}
	r.failed(err)
}

// encode finishes the batches and adds them to the request. One that cannot be finished fails by
// itself.
func (r *batchRequest) encode() {
	p := r.sender.p
	codec := p.compressors.Get()
	defer p.compressors.Put(codec)
	for i, b := range r.batches {
		data, err := b.finish(codec, nil)
		if err == nil && b.attempts == 0 {
			err = b.checkFinished(&p.cfg.Producer, r.parts[i].size)
		}
		if err != nil {
			r.answers[i] = batchAnswer{told: true, err: err, class: wire.Fatal | wire.DefinitelyRefused}
			continue
		}
		r.add(r.parts[i].topic, r.parts[i].number, b, data)
	}
}

// done notes the answer, or the failure, and leaves what to do about it to the call; see conn.Call.
func (r *batchRequest) done(body []byte, t conn.Times, err error) {
	r.times = t
	switch {
	case err != nil:
		r.report(err)
		r.failed(err)
		return
	case r.call.NoResponse:
		r.times.Read = t.Written
		r.report(nil)
		for i := range r.answers {
			if a := &r.answers[i]; !a.told {
				*a = batchAnswer{told: true, baseOffset: -1}
			}
		}
	default:
		r.answered(body)
	}
	r.owner.answer(r)
}

// answered reads the answer; a batch it leaves out has an unknown outcome.
func (r *batchRequest) answered(body []byte) {
	err := r.read(body)
	r.report(err)
	for i := range r.outcomes {
		r.note(i)
	}
	clear(r.outcomes) // they alias the answer
	if err == nil && slices.ContainsFunc(r.answers, func(a batchAnswer) bool { return !a.told }) {
		err = r.strange()
	}
	if err != nil {
		r.untold(err)
	}
}

// note keeps what an outcome says of its batch.
func (r *batchRequest) note(i int) {
	o := &r.outcomes[i]
	at := r.find(o.Topic, o.Partition)
	if at < 0 {
		return
	}
	a := &r.answers[at]
	a.told, a.baseOffset = true, o.BaseOffset
	if o.Code == 0 {
		return
	}
	a.class, a.err = refusal(r.parts[at].topic, o)
	if a.class.Has(wire.Duplicate) {
		*a = batchAnswer{told: true, baseOffset: -1}
		return
	}
	if o.Leader >= 0 {
		r.sender.p.client.moved(r.parts[at].topic, o.Partition, o.Leader, o.LeaderEpoch)
	}
}

// find is the place of a partition that nothing was told about, −1 when there is none. Answers are
// nearly always in the order of the request.
func (r *batchRequest) find(topic []byte, partition int32) int {
	for i := range r.parts {
		at := (i + r.seen) % len(r.parts)
		if p := r.parts[at]; !r.answers[at].told && p.number == partition && p.topic == string(topic) {
			r.seen = at + 1
			return at
		}
	}
	return -1
}

// failed is for a request without an answer.
func (r *batchRequest) failed(err error) {
	r.err = err
	r.untold(err)
	r.owner.answer(r)
}

// untold makes err what became of every batch that nothing is known about.
func (r *batchRequest) untold(err error) {
	class := wire.Classify(err)
	for i := range r.answers {
		if a := &r.answers[i]; !a.told {
			*a = batchAnswer{told: true, err: err, class: class}
		}
	}
}

// answer notes that a request is over, for the call's goroutine to look at.
func (c *batchCall) answer(r *batchRequest) {
	c.mu.Lock()
	c.over = append(c.over, r)
	c.mu.Unlock()
	c.wake()
}
