// How a call's requests end: what is tried again, made smaller or failed.

package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// collect looks at what was answered since the last time, and at the end of a refresh.
func (c *batchCall) collect() {
	c.mu.Lock()
	over := c.over
	c.over = c.spare[:0]
	refreshed, learned := c.refreshed, c.learned
	c.refreshed, c.learned = false, nil
	c.mu.Unlock()
	if refreshed {
		c.refreshing = false
		for _, part := range c.open {
			if part.asked {
				part.stale, part.asked = false, false
			}
		}
	}
	for _, tell := range learned {
		if !c.dead {
			tell()
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
	if len(over)+len(learned) > 0 {
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
	b := part.batch
	b.attempts++
	part.cause = err
	unsent := errors.As(err, new(*MessageTooLargeError))
	switch {
	case isTooLarge(err) && len(b.msgs) > 1:
		c.halve(part, !unsent)
	case isTooLarge(err) && !unsent:
		c.tooLarge(part, err, d)
	case !class.Has(wire.Retriable):
		c.give(part, b.orUnknown(err), d)
	case b.attempts > c.p.cfg.Producer.Retry.Max || b.late(now):
		c.give(part, b.gaveUp(&c.p.cfg, false, err, now), d)
	default:
		part.notUntil, part.stale, part.asked = now.Add(c.p.retryWait(b.attempts)), true, false
		c.p.retries.Add(1)
	}
}

// halve has smaller batches made of what was too large together (KIP-126).
func (c *batchCall) halve(part *batchPart, refused bool) {
	if refused {
		part.size.ask()
		c.p.splits.Add(1)
	}
	part.most = len(part.batch.msgs) / 2
	part.batch.free()
	part.batch = nil
}

// tooLarge fails a message that a broker found too large by itself, once the topic's limit is known.
func (c *batchCall) tooLarge(part *batchPart, err error, d Delivery) {
	b := part.batch
	part.asking = true
	part.size.then(func(limit int) {
		c.later(func() {
			part.asking = false
			c.give(part, b.orUnknown(b.largeForBroker(limit, err)), d)
		})
	})
}

// later has the call's goroutine do something, unless the call is abandoned before.
func (c *batchCall) later(do func()) {
	c.mu.Lock()
	c.learned = append(c.learned, do)
	c.mu.Unlock()
	c.wake()
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
