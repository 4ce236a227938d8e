package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run"
)

// transactionalID is the transactional id of producer number id, empty without transactions. It differs
// from one producer to the next, since a second one of the same name ends the first.
func (t *Target) transactionalID(id int) string {
	p := &t.o.Definition.Producers
	if !p.Transactions.On() {
		return ""
	}
	name := t.o.Config.Producer.Transaction.ID
	switch {
	case name == "":
		name = fmt.Sprintf("kbench-%s-%s", safe(t.o.Definition.Name), t.suffix)
	case p.Count == 1:
		return name
	}
	return fmt.Sprintf("%s-%d", name, id)
}

// txnFailure is a failure after which the open transaction can only be aborted.
type txnFailure struct{ failure }

// Is says that it is one.
func (txnFailure) Is(target error) bool { return target == run.ErrTransactionFailed }

// transactionError makes known to the engine what it goes on after.
func transactionError(err error) error {
	if errors.Is(err, client.ErrTransactionFailed) {
		return txnFailure{failure{err}}
	}
	return err
}

// Begin opens a transaction.
func (p *producer) Begin(ctx context.Context) error { return p.async.BeginTransaction(ctx) }

// endAgain is how long to wait before a transaction is ended again, after the cluster could not be asked
// for admin.timeout.
const endAgain = 100 * time.Millisecond

// End commits the transaction or aborts it, again and again until the cluster has said that it did, the
// transaction or the producer has failed, or ctx ends. What is aborted is sent before, as what is committed:
// the client would fail messages that it has not sent yet.
func (p *producer) End(ctx context.Context, commit bool) error {
	end := p.async.AbortTransaction
	if commit {
		end = p.async.CommitTransaction
	} else if err := p.async.Flush(ctx); err != nil {
		return err
	}
	for {
		err := end(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case errors.Is(err, client.ErrTransactionFailed), errors.Is(err, client.ErrProducerFenced),
			errors.Is(err, client.ErrProducerFailed), errors.Is(err, client.ErrClosed):
			return transactionError(err)
		}
		select {
		case <-time.After(endAgain):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}
