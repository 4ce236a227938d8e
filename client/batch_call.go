package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// batchCall takes messages to the brokers and back to their outcomes. It belongs to one goroutine:
// Send's in the synchronous mode, the queue's in the asynchronous one. Answers are noted by others
// and looked at in that goroutine (collect), so that its state needs no lock.
type batchCall struct {
	p      *BatchProducer
	ctx    context.Context // ends the call
	topics map[string]*callTopic
	open   []*batchPart            // those with messages undecided
	busy   map[int32]*batchRequest // by node: being sent or in flight, one at a time
	turn   int                     // which part is looked at first, so that none starves
	failed int                     // messages
	timer  *time.Timer
	// dead is set once the call was abandoned: what it holds may still be looked at by others.
	dead bool
	// refreshing is set while a refresh is under way, which then is about the parts marked asked.
	refreshing bool

	wakened chan struct{} // capacity 1; written by wake, read by wait; never closed

	mu        sync.Mutex
	over      []*batchRequest // answered, to be looked at
	spare     []*batchRequest
	refreshed bool // the refresh is over
}

// callTopic is a topic's parts by partition, made when first needed.
type callTopic struct {
	shared *batchTopic
	parts  []*batchPart
}

// batchPart is what a call has for one partition.
type batchPart struct {
	topic  string
	number int32

	msgs []*BatchMessage // from head on: undecided, in order
	wire []*ProducerMessage
	head int

	batch    *batch    // of the first of msgs, from its first try to its outcome; nil: to be made
	most     int       // messages in a batch, after one was too large; 0: as many as fit
	notUntil time.Time // end of the backoff
	cause    error     // of the last failure
	stale    bool      // metadata is to be refreshed before the next try
	asked    bool      // the refresh under way is about it
	request  *batchRequest
}

func (p *batchPart) left() int { return len(p.msgs) - p.head }

// call makes a call, or takes one that was used before.
func (p *BatchProducer) call(ctx context.Context) *batchCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		c.ctx, c.failed = ctx, 0
		return c
	}
	c := &batchCall{p: p, ctx: ctx, topics: map[string]*callTopic{}, busy: map[int32]*batchRequest{}, wakened: make(chan struct{}, 1)}
	c.timer = time.NewTimer(time.Hour)
	c.timer.Stop()
	return c
}

// maxIdleCalls bounds what is kept of calls while nobody sends.
const maxIdleCalls = 16

// putBack keeps a call for the next Send, unless something that was given up still refers to it.
func (p *BatchProducer) putBack(c *batchCall) {
	if c.dead || c.refreshing {
		return
	}
	c.ctx = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < maxIdleCalls {
		p.idle = append(p.idle, c)
	}
}

// finish sends until every message is decided, or ctx ends.
func (c *batchCall) finish() {
	for {
		c.collect()
		if len(c.open) == 0 {
			return
		}
		if c.ctx.Err() != nil {
			c.abandon()
			return
		}
		if until := c.step(time.Now()); len(c.open) > 0 {
			c.wait(until)
		}
	}
}

// wake makes wait return.
func (c *batchCall) wake() {
	select {
	case c.wakened <- struct{}{}:
	default:
	}
}

func (c *batchCall) wait(until time.Time) {
	c.timer.Reset(time.Until(until))
	defer c.timer.Stop()
	select {
	case <-c.wakened:
	case <-c.timer.C:
	case <-c.ctx.Done():
	}
}

// step sends to every broker that has nothing of this call on its way, starts a refresh where one is
// needed, and returns when to look again if nothing else happens.
func (c *batchCall) step(now time.Time) (until time.Time) {
	until = far
	refresh := false
	c.turn++
	for i := range c.open {
		part := c.open[(i+c.turn)%len(c.open)]
		if at := c.look(part, now); at.Before(until) {
			until = at
		}
		refresh = refresh || part.stale && !part.asked && !now.Before(part.notUntil)
	}
	c.compact()
	for _, r := range c.busy {
		if r.ready {
			r.ready = false
			c.launch(r)
		}
	}
	if refresh && !c.refreshing {
		c.refresh(now)
	}
	return until
}

// look puts a part's next batch into its leader's request, if it may go now, and returns when to
// look at it again.
func (c *batchCall) look(part *batchPart, now time.Time) (until time.Time) {
	if part.request != nil || part.left() == 0 {
		return far
	}
	if part.batch == nil && !c.build(part, now) {
		return now
	}
	b := part.batch
	switch {
	case b.late(now):
		c.give(part, b.gaveUp(&c.p.cfg, false, part.reason(), now), Delivery{})
		return now
	case now.Before(part.notUntil):
		return b.orLate(part.notUntil)
	case part.stale:
		return b.orLate(far)
	}
	node, err := c.leader(part)
	if err != nil {
		c.again(part, err, wire.Classify(err), Delivery{}, now)
		return part.notUntil
	}
	r := c.busy[node]
	if r == nil {
		r = c.p.sender(node).request(c)
		c.busy[node] = r
	}
	if !r.ready || len(r.parts) > 0 && r.bytes+b.bytes() > c.p.cfg.Producer.MaxRequestBytes {
		return b.orLate(far) // with the next one
	}
	r.bytes += b.bytes()
	r.parts = append(r.parts, part)
	part.request = r
	return far
}

// orLate is at, or the batch's deadline when that is earlier.
func (b *batch) orLate(at time.Time) time.Time {
	if !b.deadline.IsZero() && b.deadline.Before(at) {
		return b.deadline
	}
	return at
}

// errNotItsTurn is why a batch was not sent that never failed.
var errNotItsTurn = errors.New("what was before it took too long")

func (p *batchPart) reason() error {
	if p.cause == nil {
		return errNotItsTurn
	}
	return p.cause
}

// build makes the batch of a part's first messages. It is false when the first of them failed
// instead: one whose headers were changed meanwhile.
func (c *batchCall) build(part *batchPart, now time.Time) bool {
	cfg := &c.p.cfg.Producer
	b := newBatch(nil, 0, now, 0)
	if cfg.DeliveryTimeout > 0 {
		b.deadline = origin.Add(time.Duration(part.msgs[part.head].accepted) + cfg.DeliveryTimeout)
	}
	most := cfg.Flush.MaxMessages
	if part.most > 0 && (most == 0 || part.most < most) {
		most = part.most
	}
	part.batch, part.cause = b, nil
	n, panicked := b.add(part.wire[part.head:], now.UnixMilli(), cfg.MaxMessageBytes, most)
	if panicked == nil || n > 0 {
		return true
	}
	b.msgs = append(b.msgs, part.wire[part.head])
	c.give(part, caught(&c.p.cfg, &c.p.panics, "encoding a message", panicked), Delivery{})
	return false
}

// leader is the node that leads a part's partition.
func (c *batchCall) leader(part *batchPart) (int32, error) {
	t := c.p.client.meta.Load().topics[part.topic]
	if t == nil || int(part.number) >= len(t.partitions) {
		return 0, topicError(part.topic, t)
	}
	at := t.partitions[part.number]
	if c.p.client.node(at.leader) == nil {
		return 0, leaderless(part.topic, part.number, at.err)
	}
	return at.leader, nil
}

// collect looks at what was answered since the last time, and at the end of a refresh.
func (c *batchCall) collect() {
	c.mu.Lock()
	over := c.over
	c.over = c.spare[:0]
	refreshed := c.refreshed
	c.refreshed = false
	c.mu.Unlock()
	if refreshed {
		c.refreshing = false
		for _, part := range c.open {
			if part.asked {
				part.stale, part.asked = false, false
			}
		}
	}
	now := time.Time{}
	for _, r := range over {
		if c.dead {
			continue // its messages have been told about
		}
		if now.IsZero() {
			now = time.Now()
		}
		delete(c.busy, r.sender.node)
		c.answered(r, now)
		r.sender.reuse(r)
	}
	clear(over)
	c.spare = over[:0]
	if len(over) > 0 {
		c.compact()
	}
}

// answered decides the parts of a request.
func (c *batchCall) answered(r *batchRequest, now time.Time) {
	d := Delivery{Written: r.times.Written, Acked: r.times.Read}
	for i, part := range r.parts {
		part.request = nil
		a := &r.answers[i]
		if a.err == nil {
			c.acked(part, a.baseOffset, d)
			continue
		}
		written := r.sent.Load() && !a.class.Has(wire.DefinitelyRefused)
		if r.err == nil { // the broker has answered about this batch
			written = a.class.Has(wire.OutcomeUnknown)
		}
		part.batch.mayBeWritten = part.batch.mayBeWritten || written
		if r.err != nil && c.ctx.Err() != nil { // all that is left fails for that
			part.cause = a.err
			continue
		}
		c.again(part, a.err, a.class, d, now)
	}
}

func (c *batchCall) acked(part *batchPart, base int64, d Delivery) {
	b := part.batch
	part.batch, part.most = nil, part.most*2
	n := len(b.msgs)
	b.free()
	c.decide(part, n, base, d)
}

// again has a part's batch tried another time where that may help, makes it smaller when it is too
// large, and fails it otherwise.
func (c *batchCall) again(part *batchPart, err error, class wire.Class, d Delivery, now time.Time) {
	b, retry := part.batch, &c.p.cfg.Producer.Retry
	b.attempts++
	part.cause = err
	switch {
	case !class.Has(wire.Retriable) && len(b.msgs) > 1 && (isTooLarge(err) || errors.As(err, new(*MessageTooLargeError))):
		part.most = len(b.msgs) / 2
		part.batch = nil
		b.free()
	case !class.Has(wire.Retriable):
		if isTooLarge(err) {
			err = largeForBroker(b, err)
		}
		c.give(part, b.orUnknown(err), d)
	case b.attempts > retry.Max || b.late(now):
		c.give(part, b.gaveUp(&c.p.cfg, false, err, now), d)
	default:
		part.notUntil, part.stale, part.asked = now.Add(retry.wait(b.attempts)), true, false
		c.p.retries.Add(1)
	}
}

// largeForBroker is the error of one message that is too large for a broker, or for us once it is
// compressed, which has been said.
func largeForBroker(b *batch, err error) error {
	var said *MessageTooLargeError
	if errors.As(err, &said) {
		return err
	}
	return &MessageTooLargeError{Size: len(b.data), Whose: topicLimit, Err: err}
}

// give fails a part's batch for good.
func (c *batchCall) give(part *batchPart, err error, d Delivery) {
	n := len(part.batch.msgs)
	part.batch.free()
	part.batch, part.stale, part.asked, part.notUntil = nil, false, false, time.Time{}
	d.Err = err
	c.decide(part, n, -1, d)
}

// decide gives a part's first n messages their outcome.
func (c *batchCall) decide(part *batchPart, n int, base int64, d Delivery) {
	run := part.msgs[part.head : part.head+n]
	part.head += n
	for i, m := range run {
		m.Partition, m.Offset, m.Err = part.number, -1, d.Err
		if base >= 0 {
			m.Offset = base + int64(i)
		}
	}
	if d.Err != nil {
		c.failed += n
	}
	c.p.settle(run, d)
}

// compact drops parts that have nothing left from the list.
func (c *batchCall) compact() {
	c.open = slices.DeleteFunc(c.open, func(p *batchPart) bool {
		if p.left() > 0 {
			return false
		}
		clear(p.msgs)
		clear(p.wire)
		p.msgs, p.wire, p.head, p.most = p.msgs[:0], p.wire[:0], 0, 0
		p.notUntil, p.cause, p.stale, p.asked = time.Time{}, nil, false, false
		return true
	})
}

// refresh asks for metadata about the parts that wait for it, beside whatever else goes on.
func (c *batchCall) refresh(now time.Time) {
	var topics []string
	for _, part := range c.open {
		if part.stale && !now.Before(part.notUntil) {
			part.asked = true
			if !slices.Contains(topics, part.topic) {
				topics = append(topics, part.topic)
			}
		}
	}
	c.refreshing = true
	c.p.work.Add(1)
	// Owned by the call; ends with the refresh, which Metadata.Timeout and the call's context
	// bound; the producer's Close waits.
	go func(ctx context.Context) {
		defer c.p.work.Done()
		_ = c.p.client.RefreshMetadata(ctx, topics...) // the next try finds out what is wrong
		c.mu.Lock()
		c.refreshed = true
		c.mu.Unlock()
		c.wake()
	}(c.ctx)
}

// abandon fails everything that is undecided because the call's context has ended. What is on its
// way is not waited for.
func (c *batchCall) abandon() {
	closed := c.p.life.Err() != nil
	for _, part := range c.open {
		if part.left() == 0 {
			continue
		}
		err := fmt.Errorf("gave up waiting for the outcome: %w", c.ctx.Err())
		if closed {
			err = fmt.Errorf("%w before the message was decided", ErrClosed)
		}
		if part.cause != nil {
			err = fmt.Errorf("%w (last: %w)", err, part.cause)
		}
		if b := part.batch; b != nil {
			n, mine := len(b.msgs), err
			if b.mayBeWritten || part.request != nil && part.request.sent.Load() {
				mine = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
			}
			part.batch, part.request = nil, nil // not freed: it may be being written
			c.decide(part, n, -1, Delivery{Err: mine})
		}
		if n := part.left(); n > 0 {
			c.decide(part, n, -1, Delivery{Err: err})
		}
	}
	c.open, c.dead = nil, true
}
