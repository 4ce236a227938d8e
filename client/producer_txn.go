package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kbench/kbench/client/internal/wire"
)

// transactions is what makes a producer transactional. Its calls run one at a time; messages are
// taken and sent beside them. What may be done when is the machine's to say.
//
// A transaction that has failed is doomed: what waits to be sent fails at once, wherever it is in
// the pipeline, and only what is in flight is awaited.
type transactions struct {
	p   *AsyncProducer
	id  string
	key coordinatorKey

	call   chan struct{} // capacity 1, held by the call under way
	ground chan struct{} // capacity 1; written by landed, read by settle, never closed

	second atomic.Bool           // transactions v2 (KIP-890); decided with the first producer id
	gate   atomic.Pointer[error] // what a message handed over now is refused with; nil: it is taken
	doomed atomic.Pointer[error] // what messages that wait to be sent fail with; nil: they are sent

	mu      sync.Mutex
	machine txnMachine
	round   int             // the transaction's number
	life    context.Context // of the transaction's partitions being added; ends when it is doomed
	end     context.CancelFunc
	pending []*partitionProducer // to be added to the transaction (v1)

	adding sync.Mutex // held while partitions are added, and while the transaction is ended; before mu
}

func newTransactions(p *AsyncProducer, id string) *transactions {
	t := &transactions{p: p, id: id, key: coordinatorKey{coordinatorOfTransaction, id}, call: make(chan struct{}, 1), ground: make(chan struct{}, 1)}
	t.life, t.end = context.WithCancel(p.life)
	t.publish()
	return t
}

func (t *transactions) v2() bool { return t.second.Load() }

// refuses is why a message is not taken now.
func (t *transactions) refuses() error {
	if e := t.gate.Load(); e != nil {
		return *e
	}
	return nil
}

// doom is what messages that wait fail with. t may be nil.
func (t *transactions) doom() error {
	if t == nil {
		return nil
	}
	if e := t.doomed.Load(); e != nil {
		return *e
	}
	return nil
}

// change has the machine take something in, and makes what follows for messages known.
func (t *transactions) change(take func(*txnMachine) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := take(&t.machine)
	t.publish()
	return err
}

// publish is called with mu held, or before anybody else knows t.
func (t *transactions) publish() {
	if err := t.machine.admit(); err != nil {
		t.gate.Store(&err)
		return
	}
	t.gate.Store(nil)
}

func (t *transactions) touch(certain bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machine.touch(certain)
}

// enter waits for its turn among the calls. The context it returns also ends with the producer.
func (t *transactions) enter(ctx context.Context) (context.Context, func(), error) {
	select {
	case t.call <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("waiting for another call of the transaction: %w", ctx.Err())
	case <-t.p.life.Done():
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.p.life, cancel)
	return ctx, func() { stop(); cancel(); <-t.call }, nil
}

// init gets the producer its id, once.
func (t *transactions) init(ctx context.Context) error {
	if t.p.identities.now().known {
		return nil
	}
	if err := t.initProducer(ctx, identity{}); err != nil {
		if v := judgeTxn(err); v != txnUndecided {
			return fatalFor(v, err)
		}
		return err
	}
	return t.change(func(m *txnMachine) error { m.initialised(); return nil })
}

func (t *transactions) begin(ctx context.Context) error {
	if err := t.change(func(m *txnMachine) error { return m.mayBegin() }); err != nil {
		return err
	}
	if err := t.init(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	t.round++
	t.end()
	t.life, t.end = context.WithCancel(t.p.life)
	t.pending = nil
	t.doomed.Store(nil)
	err := t.machine.begin()
	t.publish()
	t.mu.Unlock()
	return err
}

// failed takes in that something of the transaction has failed, and dooms what waits. It is called
// without a lock of the pipeline held.
func (t *transactions) failed(v txnVerdict, err error) {
	if t.fail(v, err) {
		t.p.sweep()
	}
}

// fail is failed but for the sweep, which is due when it returns true; partitions' mu may be held.
func (t *transactions) fail(v txnVerdict, err error) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v == txnFenced || v == txnHopeless {
		err = fatalFor(v, err)
		news = t.machine.die(err)
	} else {
		news = t.machine.fail(err)
		err = because(ErrTransactionFailed, err)
	}
	t.publish()
	if news {
		t.doomed.Store(&err)
		t.end()
	}
	return news
}

// messageFailed takes in that a message has failed.
func (t *transactions) messageFailed(err error) (news bool) {
	if t.doom() != nil {
		return false
	}
	return t.fail(judgeMessage(err), err)
}

// numberedFailed takes in that a batch with a sequence has failed.
func (t *transactions) numberedFailed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machine.breakNumbering()
}

func (t *transactions) commit(ctx context.Context) error {
	var flush bool
	err := t.change(func(m *txnMachine) (err error) { flush, err = m.commit(); return err })
	if err != nil {
		if !errors.Is(err, ErrNoTransaction) {
			_ = t.p.Flush(ctx) // as promised, everything is decided; the refusal says more than this could
		}
		return err
	}
	if flush {
		err := t.p.Flush(ctx)
		if err := t.change(func(m *txnMachine) error { return m.flushed(err) }); err != nil {
			return fmt.Errorf("committing the transaction: %w", err)
		}
	}
	if !t.endNeeded() {
		return t.change(func(m *txnMachine) error { m.ready(); return nil })
	}
	unsure, raised, err := t.endTxn(ctx, true)
	if err == nil {
		return t.change(func(m *txnMachine) error { m.confirmed(raised); return nil })
	}
	v := judgeTxn(err)
	if t.v2() && !unsure && errors.Is(err, wire.ErrInvalidTxnState) {
		v = txnAbortable // it has timed out and was aborted; the abort brings the epoch to go on with
	}
	switch v {
	case txnUndecided:
		return t.change(func(m *txnMachine) error { return m.commitGivenUp(unsure, err) })
	case txnAbortable:
		return t.change(func(m *txnMachine) error { return m.commitRefused(unsure, err) })
	default:
		return t.die(v, unsure, err)
	}
}

// die ends the producer's use, and returns the error that every later call will return.
func (t *transactions) die(v txnVerdict, unsure bool, err error) error {
	_ = t.change(func(m *txnMachine) error { m.unsure = m.unsure || unsure; return nil })
	t.failed(v, err)
	return t.refuses()
}

func (t *transactions) endNeeded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.endNeeded()
}

func (t *transactions) abort(ctx context.Context) error {
	if err := t.change(func(m *txnMachine) error { return m.abort() }); err != nil {
		return err
	}
	aborted := ErrTransactionAborted
	t.doomed.CompareAndSwap(nil, &aborted)
	t.mu.Lock()
	t.end()
	t.mu.Unlock()
	t.p.sweep()
	if err := t.settle(ctx); err != nil {
		return fmt.Errorf("aborting the transaction: %w", err)
	}
	t.adding.Lock()
	defer t.adding.Unlock()
	raised := false
	if t.endNeeded() {
		var err error
		if _, raised, err = t.endTxn(ctx, false); err != nil && !t.absent(err) {
			return t.abortFailed(err)
		}
	}
	raise := false
	_ = t.change(func(m *txnMachine) error { raise = m.confirmed(raised); return nil })
	if raise {
		if err := t.initProducer(ctx, t.p.identities.now()); err != nil {
			return t.abortFailed(err)
		}
		return t.change(func(m *txnMachine) error { m.ready(); return nil })
	}
	return nil
}

// settle waits until everything accepted is decided and nothing is in flight: what arrives after
// the end of its transaction would be part of the next, or of none that ever ends. Batches whose
// messages have run out of time are in flight still when those are decided.
func (t *transactions) settle(ctx context.Context) error {
	if err := t.p.Flush(ctx); err != nil {
		return err
	}
	for t.p.flies() {
		select {
		case <-t.ground:
		case <-ctx.Done():
			return fmt.Errorf("requests are in flight still: %w", ctx.Err())
		}
	}
	return nil
}

// landed says that a partition has nothing in flight any more.
func (t *transactions) landed() {
	select {
	case t.ground <- struct{}{}:
	default:
	}
}

// absent says that the coordinator has nothing to abort: no partition was ever added.
func (t *transactions) absent(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Is(err, wire.ErrInvalidTxnState) && t.machine.absent()
}

// abortFailed leaves the transaction aborting, to be called again, unless the producer is done for.
func (t *transactions) abortFailed(err error) error {
	if v := judgeTxn(err); v == txnFenced || v == txnHopeless {
		return t.die(v, false, err)
	}
	return err
}

// offsets makes offsets part of the transaction. When that fails the transaction has: a commit
// without them would commit messages whose origin is read again.
func (t *transactions) offsets(ctx context.Context, offsets []GroupOffset, group GroupMetadata) error {
	if err := t.refuses(); err != nil {
		return err
	}
	if len(offsets) == 0 {
		return nil
	}
	t.touch(false)
	err := t.sendOffsets(ctx, offsets, group)
	if err == nil {
		t.touch(true)
		return nil
	}
	t.failed(judgeTxn(err), err)
	return t.refuses()
}

// close aborts what is open when the producer closes.
func (t *transactions) close(ctx context.Context) error {
	ctx, leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	t.mu.Lock()
	state := t.machine.state
	t.mu.Unlock()
	switch state {
	case txnOpen, txnFailed, txnAborting:
		if err := t.abort(ctx); err != nil {
			return fmt.Errorf("close: %w", err)
		}
	case txnUnknown:
		return fmt.Errorf("close: whether the last transaction was committed: %w", ErrOutcomeUnknown)
	}
	return nil
}
