package run

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/workloads/pace"
)

// leg is one stretch of an open loop: the warm-up, the measured phase, or the cool-down.
type leg struct {
	schedule pace.Schedule
	origin   int64 // instant its due times count from
	count    int64 // messages, over all producers
}

// due is when the leg's i-th message is due, on the engine's clock.
func (l *leg) due(i int64) int64 { return l.origin + l.schedule.Due(i) }

// course is what all load goroutines follow; it is complete before they start.
type course struct {
	clock     Clock
	producers int64
	run       int // most messages handed over in one call
	pacer     string
	legs      []leg // open loop; empty in a closed one
	frame     *frame
	filler    *filler
	// quota counts down the messages a closed loop may still send in the measured phase; nil
	// when it is bounded by time alone.
	quota *atomic.Int64
	// warming is the warm-up of a closed loop that a number of messages ends; nil without.
	warming *warming
	// await bounds the wait for a message's arrival before the next; 0: nobody waits for that.
	await time.Duration
	// fatal ends the run, with the first error it is given.
	fatal func(error)
}

// loader drives one producer. Everything in it belongs to its goroutine until that has ended.
type loader struct {
	*course
	id     int64
	target Producer
	pool   *pool
	rec    *recorder
	pacer  pacer
	taken  *intake // messages the target took, shared with the producers of a recorder
	batch  []*Message
	// arrived holds a token once something of this producer was received; see ledger.
	arrived chan struct{}
	// txn is nil for a producer without transactions.
	txn *transacting

	// holder is the target where that tells how long it held a run up; nil where it does not.
	holder Holder
	toil   toil
	// Of the run that was just handed over: for how long it was waited for before, when Send was called, and
	// when it had returned.
	idle, handed, took int64

	attempted int64 // messages of the measured phase the target took
	exhausted bool  // the pool's bound was reached
	// at and next are the leg and the first message of it that the target has not taken; seq is
	// that message's place among all of this producer's.
	at   int
	next int64
	seq  int64
	// ready is the next message, made while there was time; nil when there was none.
	ready *Message
}

// load hands over everything due, then waits until all of it is decided. stop ends the sending
// (an interrupt); ctx ends everything (the drain's bound).
func (l *loader) load(stop, ctx context.Context) {
	l.pacer = newPacer(l.course.pacer, l.clock)
	defer l.pacer.close()
	if w, waits := l.target.(Waiter); waits {
		w.AwaitUntil(ctx)
	}
	if l.txn != nil {
		l.txn.end = func(commit bool) error { return l.txn.target.End(ctx, commit) }
	}
	const usual = 16 // it grows to what is due at once, which is little with many producers
	l.batch = make([]*Message, 0, min(l.run, usual))
	if l.frame.open {
		for l.at = 0; l.at < len(l.legs); l.at++ {
			if !l.open(stop, &l.legs[l.at]) {
				break
			}
		}
	} else {
		l.closed(stop)
	}
	l.lastTransaction()
	if err := l.target.Flush(ctx); err != nil && ctx.Err() == nil {
		l.fatal(fmt.Errorf("producer %d: flushing: %w", l.id, err))
	}
}

// open goes through one leg. It reads the clock twice a run: as the run is handed over, and after,
// which also tells whether the next message was due by then. False when stopped.
func (l *loader) open(stop context.Context, g *leg) bool {
	l.next = l.id // seq runs on: a producer's messages are numbered without gaps
	now := l.clock.Now()
	for l.next < g.count {
		due, behind := g.due(l.next), true
		if due > now {
			behind = false
			l.prepare()
			var ok bool
			if now, ok = l.awaitDue(stop, due); !ok {
				l.unprepare()
				return false
			}
		}
		came, ok := now, false
		if now, ok = l.turn(stop, now); !ok {
			return false
		}
		l.idle = now - came
		if !l.gather(stop, g, due, now) {
			return false
		}
		var sent bool
		if now, sent = l.send(stop, l.clock.Now()); !sent {
			return false
		}
		if behind && l.at == legMeasured {
			l.account(came)
		}
	}
	return true
}

// awaitDue waits until a message is due, and ends meanwhile the transaction that is to end before. What that
// takes beyond the due time is not the pacer's lateness: it is in the delay of the messages.
func (l *loader) awaitDue(stop context.Context, due int64) (now int64, ok bool) {
	if t := l.txn; t != nil && t.open && t.ends < due {
		if !l.pacer.wait(stop, t.ends) || !l.endTransaction() {
			return 0, false
		}
		if now = l.clock.Now(); now >= due {
			return now, true
		}
	}
	if !l.pacer.wait(stop, due) {
		return 0, false
	}
	now = l.clock.Now()
	l.rec.late(due, now)
	return now, true
}

// gather fills a run with what is due by now, beginning with message l.next, due at due. It
// moves l.next past the run.
func (l *loader) gather(stop context.Context, g *leg, due, now int64) bool {
	l.batch = l.batch[:0]
	most := l.most()
	for {
		m := l.message(stop, len(l.batch) == 0)
		if m == nil {
			return len(l.batch) > 0
		}
		l.add(m, due)
		l.next += l.producers
		if len(l.batch) == most || l.next >= g.count {
			return true
		}
		if due = g.due(l.next); due > now {
			return true
		}
	}
}

// prepare makes the next message before it is due, so that what its payload takes is in no figure.
func (l *loader) prepare() {
	if l.ready = l.pool.take(); l.ready != nil {
		l.make(l.ready)
	}
}

// unprepare gives up the message that was made.
func (l *loader) unprepare() {
	if l.ready != nil {
		l.pool.untake(l.ready)
		l.ready = nil
	}
}

// make gives a message what the next of this producer's messages holds.
func (l *loader) make(m *Message) {
	m.seq, m.Number = l.seq, l.seq*l.producers+l.id
	l.filler.make(m)
}

// add makes the next of this producer's messages the last of the run.
func (l *loader) add(m *Message, due int64) {
	if m != l.ready {
		l.make(m)
	}
	l.ready = nil
	m.Due = due
	l.filler.seal(m, l.id)
	l.batch = append(l.batch, m)
	l.seq++
}

// message takes one from the pool; when none is left and it must, it waits for one. nil when it
// did not get any.
func (l *loader) message(stop context.Context, must bool) *Message {
	if l.ready != nil {
		return l.ready
	}
	m := l.pool.take()
	for m == nil && must {
		l.exhausted = true
		from := l.clock.Now()
		if !l.pool.wait(stop) {
			return nil
		}
		l.idle += l.clock.Now() - from
		m = l.pool.take()
	}
	return m
}

// send hands the run over, and gives the instant after it. What the target does not take goes back
// and is next again.
func (l *loader) send(stop context.Context, now int64) (after int64, sent bool) {
	for _, m := range l.batch {
		m.Accepted, m.Err, m.Unknown, m.open = now, nil, false, true
	}
	for _, ledger := range l.pool.ledgers {
		ledger.reach(l.batch[len(l.batch)-1].seq)
	}
	measured := l.frame.side(l.batch[0].Due) == within // a run never spans two legs
	n, err := l.target.Send(stop, l.batch)
	n = min(max(n, 0), len(l.batch))
	after = l.clock.Now()
	l.handed, l.took = now, after
	l.taken.add(int64(n), now, after)
	if measured {
		l.attempted += int64(n)
	}
	l.back(l.batch[n:])
	if l.txn != nil {
		l.txn.sent += int64(n)
		if stop.Err() == nil && errors.Is(err, ErrTransactionFailed) {
			l.unclaim(int64(len(l.batch)-n), measured)
			sent = l.failedTransaction(err)
			return l.clock.Now(), sent
		}
	}
	if err == nil && n == len(l.batch) {
		if l.await > 0 {
			sent = l.awaitArrival(stop)
			return l.clock.Now(), sent
		}
		if l.txn != nil && l.txn.due(after) {
			sent = l.endTransaction()
			return l.clock.Now(), sent
		}
		return after, true
	}
	if stop.Err() == nil {
		if err == nil {
			err = errors.New("it took only part of a run and gave no reason")
		}
		l.fatal(fmt.Errorf("producer %d: sending: %w", l.id, err))
	}
	return after, false
}

// unclaim gives back what a closed loop of so many messages claimed and could not send.
func (l *loader) unclaim(n int64, measured bool) {
	switch {
	case measured && l.quota != nil:
		l.quota.Add(n)
	case !measured && l.warming != nil:
		l.warming.back(int(n))
	}
}

// back makes messages that were not taken the next ones again.
func (l *loader) back(batch []*Message) {
	for _, m := range batch {
		l.pool.untake(m)
	}
	l.seq -= int64(len(batch))
	l.next -= int64(len(batch)) * l.producers
}

// withheld calls f with the due time of every message of the measured phase that the target
// did not take, and counts them. Called when the load goroutine has ended.
func (l *loader) withheld(f func(due int64)) (n int64) {
	next := l.next
	switch {
	case l.at < legMeasured:
		next = l.id
	case l.at > legMeasured:
		return 0
	}
	for g := &l.legs[legMeasured]; next < g.count; next += l.producers {
		f(g.due(next))
		n++
	}
	return n
}

// closed hands over runs back to back until the load's phases end or its quota is used up.
func (l *loader) closed(stop context.Context) {
	from, sent := l.clock.Now(), true // from: what is due now or later is not of a warm-up of messages
	if l.warming != nil {
		from, sent = l.warm(stop, l.warming)
	}
	for now := from; sent && stop.Err() == nil && !l.frame.over(now); now = max(now, from) {
		if now, sent = l.turn(stop, now); !sent {
			return
		}
		n := l.claim(now)
		if n == 0 || !l.fillRun(stop, n, now) {
			return
		}
		if left := n - len(l.batch); l.quota != nil && now >= l.frame.start.Load() {
			l.quota.Add(int64(left))
		}
		now, sent = l.send(stop, l.clock.Now())
	}
}

// warm hands over runs until the warm-up's messages are used up, and gives when the measured phase
// began. False when stopped.
func (l *loader) warm(stop context.Context, w *warming) (from int64, done bool) {
	for now := l.clock.Now(); stop.Err() == nil; {
		var ok bool
		if now, ok = l.turn(stop, now); !ok {
			return 0, false
		}
		n, from := w.claim(l.most(), l.clock)
		if n == 0 {
			return from, true
		}
		filled := l.fillRun(stop, n, now)
		w.filled(n - len(l.batch))
		if !filled {
			return 0, false
		}
		var sent bool
		if now, sent = l.send(stop, l.clock.Now()); !sent {
			return 0, false
		}
	}
	return 0, false
}

// claim is how many messages the next run may hold.
func (l *loader) claim(now int64) int {
	most := int64(l.most())
	if l.quota == nil || now < l.frame.start.Load() {
		return int(most)
	}
	left := l.quota.Add(-most) + most
	return int(max(0, min(left, most)))
}

// fillRun fills a run of n messages; fewer when the pool has no more, the rest of the claim is
// then filled by later turns of the loop.
func (l *loader) fillRun(stop context.Context, n int, now int64) bool {
	l.batch = l.batch[:0]
	for len(l.batch) < n {
		m := l.message(stop, len(l.batch) == 0)
		if m == nil {
			break
		}
		l.add(m, now)
	}
	return len(l.batch) > 0
}
