// Producer.DeliveryTimeout: a message's time counts from its acceptance, and what has run out of
// it fails then, wherever it is: waiting for its batch to be sent, between two tries, or in flight.

package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// expiry is the timer of a producer's oldest batch. It is set when a batch begins and none is
// older, so that a stream of batches sets it about once per DeliveryTimeout; an idle producer has
// nothing running.
type expiry struct {
	next atomic.Int64 // when the timer fires, nanoseconds since origin; 0: it does not

	mu    sync.Mutex
	timer *time.Timer // nil: not made yet
	fire  func()
}

// by makes sure that the timer fires at or before at.
func (e *expiry) by(at time.Time) {
	nanos := int64(at.Sub(origin))
	if nanos == 0 {
		nanos = 1
	}
	if next := e.next.Load(); next != 0 && next <= nanos {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if next := e.next.Load(); next != 0 && next <= nanos {
		return
	}
	e.next.Store(nanos)
	if e.timer == nil {
		// Runs fire, each time on a goroutine of its own that does not wait for anything; stop ends it.
		e.timer = time.AfterFunc(time.Until(at), e.fire)
		return
	}
	e.timer.Reset(time.Until(at))
}

// fired says that the timer is not set any more.
func (e *expiry) fired() { e.next.Store(0) }

// stop stops the timer for good.
func (e *expiry) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next.Store(math.MinInt64) // earlier than anything: by does nothing any more
	if e.timer != nil {
		e.timer.Stop()
	}
}

// deadline is when a batch runs out of time whose oldest message is m, zero for never.
func (p *AsyncProducer) deadline(m *ProducerMessage, now time.Time) time.Time {
	timeout := p.cfg.Producer.DeliveryTimeout
	if timeout <= 0 {
		return time.Time{}
	}
	if m.accepted != 0 {
		now = m.accepted.time(now)
	}
	at := now.Add(timeout)
	p.expiry.by(at)
	return at
}

// lifeUntil is the producer's life, or m's time where that is shorter.
func (p *AsyncProducer) lifeUntil(m *ProducerMessage) (context.Context, context.CancelFunc) {
	timeout := p.cfg.Producer.DeliveryTimeout
	if timeout <= 0 {
		return context.WithCancel(p.life)
	}
	return context.WithDeadline(p.life, m.accepted.time(time.Now()).Add(timeout))
}

// expireAll fails what has run out of time in all partitions, and sets the timer for the rest.
func (p *AsyncProducer) expireAll() {
	p.expiry.fired()
	p.mu.Lock()
	parts := p.parts
	p.mu.Unlock()
	var next time.Time
	for _, pp := range parts {
		if at := pp.expireLate(time.Now()); next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	if !next.IsZero() && !p.aborted() {
		p.expiry.by(next)
	}
}

// errStillWaiting stands for the cause of an expiry before which nothing had failed.
var errStillWaiting = errors.New("no answer or no room on the connection yet")

// expireLate fails what has run out of time here and returns the earliest deadline of the rest,
// zero for none. What is in flight may be in the log: its outcome is unknown, and whatever its
// answer is, nobody hears of it.
func (p *partitionProducer) expireLate(now time.Time) (next time.Time) {
	p.stage.fetch()
	p.mu.Lock()
	waiting := p.takeLate(now)
	var flying [][]*ProducerMessage
	for _, b := range p.flying {
		if b.late(now) && !b.expired && !b.deferred.encoding {
			flying = append(flying, b.msgs)
			b.expired, b.msgs = true, nil
		}
	}
	next = p.earliest()
	var cause error
	if p.trouble != nil {
		cause = p.trouble.cause
	}
	p.mu.Unlock()
	p.stage.fetch() // a batch that was to be fetched may be gone
	if cause == nil {
		cause = errStillWaiting
	}
	for _, b := range waiting {
		p.giveUp(b, cause, now)
	}
	for _, msgs := range flying {
		p.producer.deliver(msgs, p.number, -1, Delivery{Err: fmt.Errorf("%w: %w (%v): %w",
			ErrOutcomeUnknown, ErrDeliveryTimeout, p.producer.cfg.Producer.DeliveryTimeout, cause)})
	}
	return next
}

// takeLate takes the batches out that wait here and have run out of time. Called with mu held.
func (p *partitionProducer) takeLate(now time.Time) (late []*batch) {
	p.sealed, late = split(p.sealed, func(b *batch) bool { return b.late(now) })
	if b := p.building; b != nil && b.late(now) {
		late = append(late, b)
		p.building = nil
	}
	if len(late) == 0 {
		return nil
	}
	if p.broker != nil {
		for _, b := range late {
			p.counted = p.counted.minus(b.weight())
			p.broker.removed(b.weight())
		}
	}
	p.recheck()
	p.makeRoom()
	return late
}

// earliest is the earliest deadline of what is undecided here. Called with mu held.
func (p *partitionProducer) earliest() (at time.Time) {
	look := func(b *batch) {
		if !b.expired && !b.deferred.encoding && !b.deadline.IsZero() && (at.IsZero() || b.deadline.Before(at)) {
			at = b.deadline
		}
	}
	for _, b := range p.sealed {
		look(b)
	}
	for _, b := range p.flying {
		look(b)
	}
	if p.building != nil {
		look(p.building)
	}
	return at
}
