package client

import (
	"context"
	"errors"
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
	learned   []func() // what limits of topics are for
	refreshed bool     // the refresh is over
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
	size   *sizeLimit // of the topic

	msgs []*BatchMessage // from head on: undecided, in order
	wire []*ProducerMessage
	head int

	batch    *batch    // of the first of msgs, from its first try to its outcome; nil: to be made
	most     int       // messages in a batch, after one was too large; 0: as many as fit
	notUntil time.Time // end of the backoff
	cause    error     // of the last failure
	stale    bool      // metadata is to be refreshed before the next try
	asked    bool      // the refresh under way is about it
	asking   bool      // its batch, of one message, was refused as too large: the topic's limit is asked for
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
	if part.request != nil || part.asking || part.left() == 0 {
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
	limit, _ := part.size.batchLimit(cfg)
	n, panicked := b.add(part.wire[part.head:], now.UnixMilli(), limit, most)
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

// compact drops parts that have nothing left from the list.
func (c *batchCall) compact() {
	c.open = slices.DeleteFunc(c.open, func(p *batchPart) bool {
		if p.left() > 0 {
			return false
		}
		clear(p.msgs)
		clear(p.wire)
		p.msgs, p.wire, p.head, p.most = p.msgs[:0], p.wire[:0], 0, 0
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
