// What keeps the batches of a partition in order: taking them out, putting them back, giving them
// up.

package client

import (
	"errors"
	"slices"
	"time"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/wire"
)

// take gives the broker producer b the next batch to send, if there is one it may send now. more
// says that another waits behind it. until is when to come back for a batch in backoff, zero
// when completions or new messages will say.
//
// b.turn is the number of the request being collected, which holds at most one batch of this
// partition: a partition that left and came back may stand on the list twice. on is the
// connection that the request will leave on.
func (p *partitionProducer) take(b *brokerProducer, on *conn.Conn, who identity, now time.Time, room int) (t *batch, more bool, until time.Time) {
	p.stage.fetch()
	t, more, until = p.takeBatch(b, on, who, now, room)
	if !p.listed.Load() {
		p.stage.fetch() // what was gathered before listed was false has nobody else to come for it
	}
	return t, more, until
}

func (p *partitionProducer) takeBatch(b *brokerProducer, on *conn.Conn, who identity, now time.Time, room int) (t *batch, more bool, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broker != b || p.taken == b.turn {
		return nil, false, time.Time{}
	}
	if txn := p.producer.txn; txn != nil {
		if txn.doom() != nil { // what is still here, sweep fails
			more = p.first() != nil
			p.listed.Store(more)
			return nil, more, time.Time{}
		}
		who = p.producer.identities.now() // who may have been asked for before the transaction began
	}
	t = p.first()
	if t == nil { // also in a backoff: who listens to listed must not wait for one that is nobody's
		p.listed.Store(false)
		return nil, false, time.Time{}
	}
	if p.holds(on, who) {
		p.held = true
		p.listed.Store(false)
		return nil, false, time.Time{}
	}
	if p.trouble != nil && now.Before(p.trouble.notUntil) {
		return nil, true, p.trouble.notUntil
	}
	p.draining, p.held = false, false
	if t.bytes() > room || p.producer.txn != nil && !p.producer.txn.carries(p) || who.known && !p.giveNumber(t, who) {
		return nil, true, time.Time{}
	}
	p.counted = p.counted.minus(t.weight())
	b.removed(t.weight())
	t.deferred.encoding = t.deferred.on
	if t == p.building {
		p.building = nil
	} else {
		p.sealed = p.sealed[:copy(p.sealed, p.sealed[1:])]
	}
	p.taken, p.on = b.turn, on
	p.inFlight++
	p.flying = append(p.flying, t)
	p.makeRoom()
	more = p.first() != nil
	p.listed.Store(more)
	return t, more, time.Time{}
}

// first is the batch that goes next. Called with mu held.
func (p *partitionProducer) first() *batch {
	if len(p.sealed) > 0 {
		return p.sealed[0]
	}
	return p.building
}

// decided ends a batch that was in flight: its messages have their outcome. accepted says that
// the leader took it.
func (p *partitionProducer) decided(b *batch, accepted bool) {
	p.mu.Lock()
	p.landed(b)
	if accepted && p.trouble != nil {
		p.trouble.cause = nil
	}
	if accepted && b.sequence.identity == p.numbers.identity {
		p.numbers.proven = true
	}
	p.wakeHeld()
	p.mu.Unlock()
}

// landed says that b is not in flight any more. Called with mu held.
func (p *partitionProducer) landed(b *batch) {
	p.inFlight--
	if i := slices.Index(p.flying, b); i >= 0 {
		p.flying = slices.Delete(p.flying, i, i+1)
	}
	if p.inFlight == 0 && p.producer.txn != nil {
		p.producer.txn.landed()
	}
}

// wakeHeld lets the broker producer look again once nothing is in flight. Called with mu held.
func (p *partitionProducer) wakeHeld() {
	if p.inFlight == 0 && (p.draining || p.held) && p.broker != nil && p.first() != nil {
		p.held = false
		p.broker.retry(p)
	}
}

// again puts a batch that was in flight back in its place after err, for another try after the
// backoff, or fails it when it is out of tries or time.
func (p *partitionProducer) again(b *batch, err error, class wire.Class, now time.Time) {
	b.attempts++
	wait := p.producer.retryWait(b.attempts)
	if errors.Is(err, wire.ErrConcurrentTransactions) {
		wait = concurrentBackoff(wait, b.attempts)
	}
	p.mu.Lock()
	p.landed(b)
	p.inTrouble().cause = err
	over := b.expired || p.exhausted(b, now) || p.producer.halted() != nil
	if !over {
		if b.refused = nil; class.Has(wire.BumpEpoch) {
			b.refused = err
		}
		p.insert(b)
		p.draining = true
		p.trouble.notUntil = now.Add(wait)
		p.producer.retries.Add(1)
	}
	if class.Has(wire.RefreshMetadata) {
		p.detach()
	}
	p.relist(err)
	p.mu.Unlock()
	p.stage.fetch() // see detach
	if over {
		p.giveUp(b, err, now)
	}
}

// lost is called when the leader's broker cannot be reached: what waits here has had a try, and
// the leader is looked for anew.
func (p *partitionProducer) lost(b *brokerProducer, err error, now time.Time) {
	p.mu.Lock()
	if p.broker != b {
		p.mu.Unlock()
		return
	}
	late := p.tried(err, now)
	p.detach()
	p.relist(err)
	p.mu.Unlock()
	p.stage.fetch() // see detach
	for _, t := range late {
		p.giveUp(t, err, now)
	}
}

// detach leaves the broker producer. Called with mu held, after which the caller fetches what the
// stage gathered for it.
func (p *partitionProducer) detach() {
	if p.broker == nil {
		return
	}
	b := p.broker
	b.removed(p.counted)
	p.broker, p.counted = nil, weight{}
	p.listed.Store(false)
	p.producer.leave(b)
}

// relist makes sure that somebody will come for what is to be sent. Called with mu held.
func (p *partitionProducer) relist(cause error) {
	switch {
	case p.first() == nil:
	case p.broker == nil:
		p.resolveLater(cause)
	default:
		p.wakeHeld()
	}
}

// insert puts a batch back in order. Called with mu held.
func (p *partitionProducer) insert(b *batch) {
	at := len(p.sealed)
	for at > 0 && p.sealed[at-1].ordinal > b.ordinal {
		at--
	}
	p.sealed = append(p.sealed, nil)
	copy(p.sealed[at+1:], p.sealed[at:])
	p.sealed[at] = b
	if p.broker != nil {
		p.counted = p.counted.plus(b.weight())
		p.broker.put(b.weight())
	}
}

func (p *partitionProducer) exhausted(b *batch, now time.Time) bool {
	return b.attempts > p.producer.cfg.Producer.Retry.Max || b.late(now)
}

func (b *batch) late(now time.Time) bool { return !b.deadline.IsZero() && !now.Before(b.deadline) }

// giveUp fails a batch for good.
func (p *partitionProducer) giveUp(b *batch, err error, now time.Time) {
	if halt := p.producer.halted(); halt == nil || errors.Is(halt, ErrClosed) {
		err = b.gaveUp(&p.producer.cfg, halt != nil, err, now)
	} else {
		err = b.orUnknown(because(halt, err))
	}
	p.producer.decide(b, Delivery{Err: err}, -1)
	b.free()
}

// tried counts a try for everything that waits and takes out what is out of tries or time, or
// all of it after an error that no other try will mend. Called with mu held, and a broker
// producer attached or not.
func (p *partitionProducer) tried(err error, now time.Time) (late []*batch) {
	fatal := wire.Classify(err).Has(wire.Fatal)
	p.inTrouble().cause = err
	out := func(b *batch) bool { b.attempts++; return fatal || p.exhausted(b, now) }
	p.sealed, late = split(p.sealed, out)
	if b := p.building; b != nil && out(b) {
		late = append(late, b)
		p.building = nil
	}
	p.makeRoom()
	return late
}

// split moves out of bs what takes says.
func split(bs []*batch, takes func(*batch) bool) (kept, taken []*batch) {
	kept = bs[:0]
	for _, b := range bs {
		if takes(b) {
			taken = append(taken, b)
		} else {
			kept = append(kept, b)
		}
	}
	return kept, taken
}

// failAll fails everything that waits here.
func (p *partitionProducer) failAll(err error) {
	p.stage.fetch()
	p.mu.Lock()
	all := p.sealed
	if p.building != nil {
		all = append(all, p.building)
	}
	p.sealed, p.building = nil, nil
	if p.broker != nil {
		p.broker.removed(p.counted)
		p.counted = weight{}
	}
	p.recheck()
	p.makeRoom()
	p.mu.Unlock()
	for _, b := range all {
		p.giveUp(b, err, time.Time{})
	}
}

// recheck has the broker producer look at a partition of which batches were taken otherwise than by
// it, and which it may have nothing to send of any more: while the partition is listed the stage
// leaves messages for it to fetch. Called with mu held.
func (p *partitionProducer) recheck() {
	if p.broker != nil && p.listed.Load() {
		p.broker.urgent.Store(true)
		p.broker.signal()
	}
}

// halve puts two batches in the place of one that was refused for its size (KIP-126), so that in
// the end only a message that is too large by itself fails.
func (p *partitionProducer) halve(b *batch) {
	p.mu.Lock()
	p.landed(b)
	half := len(b.msgs) / 2 // both are empty when it has expired
	var failed []*ProducerMessage
	var err error
	for i, msgs := range [][]*ProducerMessage{b.msgs[:half], b.msgs[half:]} {
		n := newBatch(p, b.ordinal+int64(i*half), b.firstAt, 0)
		n.deadline, n.attempts = b.deadline, b.attempts
		if n.sequence = b.sequence; n.sequence.set {
			n.sequence.base = sequenceAfter(b.sequence.base, i*half)
		}
		added, panicked := n.add(msgs, b.firstAt.UnixMilli(), 1<<31-1, 0)
		if panicked != nil { // a message was changed meanwhile
			err = p.producer.caught("encoding the message", panicked)
			failed = append(failed, msgs[added:]...)
		}
		if added == 0 {
			n.free()
			continue
		}
		p.insert(n)
	}
	p.draining = true
	b.free()
	p.relist(nil)
	p.mu.Unlock()
	p.producer.fail(failed, err)
}
