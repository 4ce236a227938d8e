package run

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/kbench/kbench/results"
)

// Transactional is a Producer that sends in transactions where the workload says so. Its calls come from
// the goroutine that sends.
type Transactional interface {
	// Begin opens a transaction, of which everything sent until End is part.
	Begin(ctx context.Context) error
	// End commits the open transaction or aborts it. It waits until every message of it has been
	// reported to Outcomes and the cluster has confirmed the end, or ctx ends: then it is not known how
	// the transaction ended. An error that wraps ErrTransactionFailed leaves it to be aborted.
	End(ctx context.Context, commit bool) error
}

// ErrTransactionFailed is wrapped by what Send and End of a Transactional return when something of the
// open transaction has failed, so that it can only be aborted. The run goes on with the next one.
var ErrTransactionFailed = errors.New("the transaction has failed")

// portion counts the messages of the measured phase that were decided since it was last read: those of the
// open transaction, as all of a transaction are decided before the next one. Outcomes add, the load
// goroutine reads.
type portion struct {
	frame          *frame
	decided, acked atomic.Int64
}

func (t *portion) add(batch []*Message) {
	decided, acked := int64(0), int64(0)
	for _, m := range batch {
		if t.frame.side(m.Due) == within {
			decided++
			if m.Err == nil {
				acked++
			}
		}
	}
	t.decided.Add(decided)
	t.acked.Add(acked)
}

// transacting is what a load goroutine of a producer with transactions knows of them.
type transacting struct {
	turns
	portion portion
	target  Transactional
	// end is target's, within what bounds the wait for outcomes.
	end func(commit bool) error
	// readCommitted says that consumers must not see what was aborted.
	readCommitted bool
	// counts are of those that held messages of the measured phase.
	counts results.Transactions
}

func newTransacting(d *turns, f *frame, readCommitted bool) *transacting {
	if d == nil {
		return nil
	}
	t := &transacting{turns: *d, readCommitted: readCommitted}
	t.portion.frame = f
	return t
}

// transact has a producer that was opened send in transactions.
func (l *loader) transact(p Producer, out *outcomes) error {
	target, can := p.(Transactional)
	if !can {
		_ = p.Close(context.Background()) // nothing was sent
		return fmt.Errorf("producer %d: producers.transactions are asked for, and this target has none", l.id)
	}
	l.txn.target, out.txn = target, &l.txn.portion
	return nil
}

// turn ends the open transaction if it is due, and opens one if none is. It gives the instant after it,
// and false when the load is over.
func (l *loader) turn(stop context.Context, now int64) (after int64, ok bool) {
	t := l.txn
	if t == nil {
		return now, true
	}
	if t.due(now) {
		if !l.endTransaction() {
			return now, false
		}
		now = l.clock.Now()
	}
	if t.open {
		return now, true
	}
	if err := t.target.Begin(stop); err != nil {
		if stop.Err() == nil {
			l.fatal(fmt.Errorf("producer %d: beginning a transaction: %w", l.id, err))
		}
		return now, false
	}
	t.begin(l.clock.Now(), l.seq)
	return t.began, true
}

// most is how many messages the next run may hold.
func (l *loader) most() int {
	if l.txn == nil || l.txn.room() >= int64(l.run) {
		return l.run
	}
	return int(l.txn.room())
}

// endTransaction ends the open transaction as it is its turn to. False when the load is over: it could not
// be ended in time, or the producer is of no more use.
func (l *loader) endTransaction() bool { return l.finishTransaction(l.txn.commits(), false) }

// finishTransaction ends the open transaction. failed says that something of it has.
func (l *loader) finishTransaction(commit, failed bool) bool {
	t := l.txn
	asked := l.clock.Now()
	err := t.end(commit)
	if commit && errors.Is(err, ErrTransactionFailed) {
		l.rec.transactionFailed(err, t.portion.decided.Load() > 0)
		commit, failed = false, true
		err = t.end(false)
	}
	switch {
	case err == nil:
		l.transactionEnded(asked, commit, failed)
		return true
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded): // counted as unknown
		return false
	}
	l.fatal(fmt.Errorf("producer %d: %s a transaction: %w", l.id, map[bool]string{true: "committing", false: "aborting"}[commit], err))
	return false
}

// transactionEnded takes down a transaction whose end was confirmed.
func (l *loader) transactionEnded(asked int64, committed, failed bool) {
	t := l.txn
	t.open = false
	decided, acked := t.portion.decided.Swap(0), t.portion.acked.Swap(0)
	if !committed {
		l.leaveOut(true)
	}
	if decided == 0 {
		return // of the warm-up or the cool-down, or empty
	}
	switch {
	case committed:
		t.counts.Committed++
		t.counts.CommittedMessages += acked
		now := l.clock.Now()
		l.rec.transaction(results.SeriesTransaction, t.began, now)
		l.rec.transaction(results.SeriesCommit, asked, now)
		return
	case failed:
		t.counts.Failed++
	default:
		t.counts.Aborted++
	}
	t.counts.AbortedMessages += acked
}

// leaveOut has messages of the open or just ended transaction not be missed among the arrivals: they were
// aborted, or it is not known.
func (l *loader) leaveOut(aborted bool) {
	t := l.txn
	if !t.readCommitted || l.seq == t.first {
		return
	}
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	for _, ledger := range l.pool.ledgers {
		ledger.leaveOut(t.first, l.seq, aborted)
	}
}

// lastTransaction ends what is open when the load is over.
func (l *loader) lastTransaction() {
	t := l.txn
	if t == nil || !t.open || l.endTransaction() {
		return
	}
	l.leaveOut(false)
	if t.portion.decided.Load() > 0 {
		t.counts.Unknown++
	}
}

// failedTransaction aborts a transaction that Send said has failed. False when the load is over.
func (l *loader) failedTransaction(err error) bool {
	l.rec.transactionFailed(err, l.txn.portion.decided.Load() > 0)
	return l.finishTransaction(false, true)
}

// transaction takes down the time to the end of a transaction that held messages of the measured phase.
func (r *recorder) transaction(series string, from, to int64) {
	r.mu.Lock()
	r.cell(r.frame.index(max(to, r.frame.start.Load()))).request(series).Record(to - from)
	r.mu.Unlock()
}

// transactionFailed counts why a transaction failed, if that is of the measured phase.
func (r *recorder) transactionFailed(err error, measured bool) {
	if !measured {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countError("transaction failed: " + errorKind(err))
}

// transactions adds up those of all producers; nil without any.
func (e *engine) transactions(acked int64) *results.Transactions {
	if !e.def.Producers.Transactions.On() || len(e.loaders) == 0 {
		return nil
	}
	sum := &results.Transactions{ReadCommitted: e.spec.ReadCommitted && len(e.groups) > 0}
	for _, l := range e.loaders {
		c := l.txn.counts
		sum.Committed += c.Committed
		sum.Aborted += c.Aborted
		sum.Failed += c.Failed
		sum.Unknown += c.Unknown
		sum.CommittedMessages += c.CommittedMessages
		sum.AbortedMessages += c.AbortedMessages
	}
	sum.UnknownMessages = acked - sum.CommittedMessages - sum.AbortedMessages
	sum.AbortedReceived = e.abortedReceived()
	return sum
}
