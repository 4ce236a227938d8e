package client

import (
	"errors"
	"fmt"
)

// Errors of transactional producers, for errors.Is. Those of the state a transaction is in wrap
// its cause where there is one.
var (
	// ErrNotTransactional refuses the transaction calls of a producer that has none.
	ErrNotTransactional = errors.New("the producer is not transactional: set producer.transaction.id")
	// ErrNoTransaction refuses messages and calls outside of a transaction.
	ErrNoTransaction = errors.New("no transaction is open: call BeginTransaction first")
	// ErrTransactionOpen refuses to begin a transaction inside another.
	ErrTransactionOpen = errors.New("a transaction is open: commit or abort it first")
	// ErrTransactionEnding refuses what comes while the transaction is being ended, or when the
	// call that was to end it has failed and must be repeated.
	ErrTransactionEnding = errors.New("the transaction is being ended")
	// ErrTransactionFailed refuses everything but AbortTransaction after a message or a request of
	// the transaction has failed, and marks the messages that were not sent because of it.
	ErrTransactionFailed = errors.New("the transaction has failed and can only be aborted")
	// ErrTransactionAborted marks messages that were not sent because their transaction was
	// aborted. Those that were sent are in the log, where read_committed does not see them.
	ErrTransactionAborted = errors.New("the transaction was aborted")
	// ErrProducerFenced ends a transactional producer: another one with the same
	// producer.transaction.id has taken over, or the transaction was open for longer than
	// producer.transaction.timeout and the cluster has ended it. Close it; a new one takes over.
	ErrProducerFenced = errors.New("the producer was fenced: another with its producer.transaction.id took over, or its transaction timed out")
	// ErrProducerFailed ends a transactional producer for another reason, which it wraps. Close
	// it; a new one may do.
	ErrProducerFailed = errors.New("the transactional producer cannot go on and must be made anew")
)

// txnState is where a transactional producer stands. See txnMachine.
type txnState uint8

const (
	txnNew        txnState = iota // without a producer id
	txnReady                      // no transaction is open
	txnOpen                       // messages are taken
	txnFailed                     // open, and can only be aborted
	txnCommitting                 // no more messages are taken; those there are may still fail
	txnUnknown                    // a commit was asked for, and its answer never came
	txnAborting                   // also: an abort was asked for, and its answer never came
	txnFatal                      // for good
)

func (s txnState) String() string {
	return [...]string{"new", "ready", "open", "failed", "committing", "commit unknown", "aborting", "fatal"}[s]
}

// txnMachine is the state of a transactional producer (KIP-98, KIP-360, KIP-890). It knows of no
// request, clock or lock: what happens is told by its methods, and it answers what may be done.
type txnMachine struct {
	state txnState
	cause error // of txnFailed, txnFatal, and of a failure noticed while committing
	// asked: the coordinator may know of the transaction, and has to be told of its end; begun: it
	// does.
	asked, begun bool
	// broken: a batch that had its sequence has failed, so that the numbering of its partition
	// has, or may have, a gap. Without an end of the transaction that raises the epoch, it has to
	// be raised (KIP-360).
	broken bool
	// ended: the coordinator has confirmed the abort, and only the epoch is to be raised.
	ended bool
	// unsure: an EndTxn with commit was sent and may have been carried out.
	unsure bool
}

// initialised takes in that the producer has an id.
func (m *txnMachine) initialised() {
	if m.state == txnNew {
		m.state = txnReady
	}
}

// mayBegin is why a transaction cannot be opened now, nil when it can.
func (m *txnMachine) mayBegin() error {
	switch m.state {
	case txnNew, txnReady:
		return nil
	case txnOpen:
		return ErrTransactionOpen
	}
	return m.refusal()
}

// begin opens a transaction.
func (m *txnMachine) begin() error {
	err := m.mayBegin()
	if err == nil {
		*m = txnMachine{state: txnOpen}
	}
	return err
}

// admit is why a message may not be taken now, nil when it may.
func (m *txnMachine) admit() error {
	switch m.state {
	case txnNew, txnReady:
		return ErrNoTransaction
	case txnOpen:
		return nil
	}
	return m.refusal()
}

// refusal is the error of the states in which nearly nothing is possible.
func (m *txnMachine) refusal() error {
	switch m.state {
	case txnFailed:
		return because(ErrTransactionFailed, m.cause)
	case txnUnknown:
		return fmt.Errorf("%w: whether it was committed is not known yet, call CommitTransaction again", ErrTransactionEnding)
	case txnFatal:
		return m.cause
	}
	return ErrTransactionEnding
}

func because(what, cause error) error {
	if cause == nil || errors.Is(cause, what) {
		return what
	}
	return fmt.Errorf("%w: %w", what, cause)
}

// touch says that the coordinator is about to hear of the transaction, or with certain that it
// has.
func (m *txnMachine) touch(certain bool) {
	m.asked, m.begun = true, m.begun || certain
}

// breakNumbering says that a numbered batch has failed.
func (m *txnMachine) breakNumbering() { m.broken = true }

// fail says that a message or request of the transaction has failed, so that it must be aborted.
// first is true when that is news.
func (m *txnMachine) fail(err error) (first bool) {
	switch m.state {
	case txnOpen:
		m.state, m.cause = txnFailed, err
		return true
	case txnCommitting:
		first = m.cause == nil
		if first {
			m.cause = err
		}
		return first
	}
	return false
}

// die says that the producer is of no more use. first is true when that is news.
func (m *txnMachine) die(err error) (first bool) {
	if m.state == txnFatal {
		return false
	}
	if m.unsure {
		err = because(ErrOutcomeUnknown, err)
	}
	m.state, m.cause = txnFatal, err
	return true
}

// commit asks for a commit. flush: everything accepted has to be decided first, which flushed
// then ends; otherwise the commit had been sent before, and is only to be confirmed.
func (m *txnMachine) commit() (flush bool, err error) {
	switch m.state {
	case txnOpen:
		m.state = txnCommitting
		return true, nil
	case txnUnknown:
		return false, nil
	case txnNew, txnReady:
		return false, ErrNoTransaction
	}
	return false, m.refusal()
}

// flushed says that everything accepted is decided, or with err that waiting for it was given up,
// which leaves the transaction open. An error returned is why the commit must not be sent.
func (m *txnMachine) flushed(err error) error {
	if m.state != txnCommitting {
		return m.refusal()
	}
	switch {
	case m.cause != nil:
		m.state = txnFailed
		return m.refusal()
	case err != nil:
		m.state = txnOpen
		return err
	}
	return nil
}

// commitGivenUp says that no try to commit was answered. Unless one may have been carried out the
// transaction is open as before.
func (m *txnMachine) commitGivenUp(unsure bool, err error) error {
	m.unsure = m.unsure || unsure
	if !m.unsure {
		m.state = txnOpen
		return err
	}
	m.state = txnUnknown
	return because(ErrOutcomeUnknown, err)
}

// commitRefused says that the coordinator wants the transaction aborted. After a try whose answer
// was lost that says nothing certain about the first.
func (m *txnMachine) commitRefused(unsure bool, err error) error {
	m.unsure = m.unsure || unsure
	if m.unsure {
		err = because(ErrOutcomeUnknown, err)
	}
	m.state, m.cause, m.unsure = txnFailed, err, false
	return m.refusal()
}

// abort asks for an abort.
func (m *txnMachine) abort() error {
	switch m.state {
	case txnOpen, txnFailed:
		m.state = txnAborting
		return nil
	case txnAborting:
		return nil
	case txnNew, txnReady:
		return ErrNoTransaction
	}
	return m.refusal()
}

// endNeeded says whether the coordinator has to be told of the end.
func (m *txnMachine) endNeeded() bool { return m.asked && !m.ended }

// absent says that the coordinator, asked to abort, has no transaction of this producer. ok is
// false when it should have one.
func (m *txnMachine) absent() (ok bool) { return m.state == txnAborting && !m.begun && !m.unsure }

// confirmed says that the coordinator has ended the transaction. raised: it gave the producer a
// new epoch (KIP-890). What is returned says whether the epoch has to be asked for (KIP-360);
// otherwise the producer is ready for the next transaction.
func (m *txnMachine) confirmed(raised bool) (raise bool) {
	if m.state == txnFatal {
		return false
	}
	m.ended = true
	m.broken = m.broken && !raised
	if m.broken {
		return true
	}
	m.ready()
	return false
}

// ready says that the producer may begin another transaction.
func (m *txnMachine) ready() {
	if m.state != txnFatal {
		*m = txnMachine{state: txnReady}
	}
}
