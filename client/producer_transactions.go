package client

import (
	"context"
	"errors"
	"fmt"
)

// A producer with producer.transaction.id sends messages in transactions only: readers with
// read_committed see all messages of one, in every partition, or none, and so it is with a
// consumer group's offsets that were made part of it. The calls below run one at a time; messages
// are produced beside them as without transactions. In a transaction that has failed (a message
// that was given up, a request that was refused) messages are refused, those that wait fail, and
// nothing but AbortTransaction is possible, after which the next one may begin. Requests to the
// cluster are tried again for admin.timeout at most, and until ctx ends.
//
// Errors: ErrNotTransactional, ErrNoTransaction, ErrTransactionOpen and ErrTransactionEnding for
// calls out of place; ErrTransactionFailed when the transaction is to be aborted;
// ErrOutcomeUnknown when a commit was sent and its answer never came; ErrProducerFenced and
// ErrProducerFailed when the producer can only be closed, which every later call repeats.

// InitTransactions gets the producer its id: it ends every older producer with the same
// producer.transaction.id and aborts what they left open. Without it the first BeginTransaction
// does so. A second call does nothing.
func (p *AsyncProducer) InitTransactions(ctx context.Context) error {
	return p.inTurn(ctx, func(ctx context.Context, t *transactions) error {
		if err := t.refuses(); errors.Is(err, ErrProducerFenced) || errors.Is(err, ErrProducerFailed) {
			return err
		}
		return t.init(ctx)
	})
}

// BeginTransaction opens a transaction. The cluster hears of it with its first message or offsets.
func (p *AsyncProducer) BeginTransaction(ctx context.Context) error {
	return p.inTurn(ctx, func(ctx context.Context, t *transactions) error { return t.begin(ctx) })
}

// CommitTransaction waits until everything accepted is decided, and commits the transaction when
// nothing has failed. nil means that the cluster has confirmed it. With ErrOutcomeUnknown the
// transaction may be committed or not, and is to be committed again until that is known; with
// another error that is neither ErrTransactionFailed nor the end of the producer, it is open as
// before.
func (p *AsyncProducer) CommitTransaction(ctx context.Context) error {
	return p.inTurn(ctx, func(ctx context.Context, t *transactions) error { return t.commit(ctx) })
}

// AbortTransaction ends the transaction without its messages and offsets. Messages that were not
// sent fail with ErrTransactionAborted; those in flight are waited for. After an error that is not
// the end of the producer it is to be called again.
func (p *AsyncProducer) AbortTransaction(ctx context.Context) error {
	return p.inTurn(ctx, func(ctx context.Context, t *transactions) error { return t.abort(ctx) })
}

// SendOffsetsToTransaction commits a consumer group's offsets as part of the transaction. When it
// fails the transaction has to be aborted.
func (p *AsyncProducer) SendOffsetsToTransaction(ctx context.Context, offsets []GroupOffset, group GroupMetadata) error {
	return p.inTurn(ctx, func(ctx context.Context, t *transactions) error { return t.offsets(ctx, offsets, group) })
}

// inTurn runs a call of the transaction when no other runs.
func (p *AsyncProducer) inTurn(ctx context.Context, call func(context.Context, *transactions) error) error {
	if p.txn == nil {
		return ErrNotTransactional
	}
	if inCallback() {
		return fmt.Errorf("a transaction's call: %w", ErrInCallback)
	}
	if p.closing.Load() {
		return ErrClosed
	}
	ctx, leave, err := p.txn.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if p.closing.Load() { // it may have waited for its turn
		return ErrClosed
	}
	return call(ctx, p.txn)
}

// InitTransactions is AsyncProducer.InitTransactions.
func (p *SyncProducer) InitTransactions(ctx context.Context) error {
	return p.async.InitTransactions(ctx)
}

// BeginTransaction is AsyncProducer.BeginTransaction.
func (p *SyncProducer) BeginTransaction(ctx context.Context) error {
	return p.async.BeginTransaction(ctx)
}

// CommitTransaction is AsyncProducer.CommitTransaction.
func (p *SyncProducer) CommitTransaction(ctx context.Context) error {
	return p.async.CommitTransaction(ctx)
}

// AbortTransaction is AsyncProducer.AbortTransaction.
func (p *SyncProducer) AbortTransaction(ctx context.Context) error {
	return p.async.AbortTransaction(ctx)
}

// SendOffsetsToTransaction is AsyncProducer.SendOffsetsToTransaction.
func (p *SyncProducer) SendOffsetsToTransaction(ctx context.Context, offsets []GroupOffset, group GroupMetadata) error {
	return p.async.SendOffsetsToTransaction(ctx, offsets, group)
}
