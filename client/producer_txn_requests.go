// What a transactional producer asks coordinators, and what their errors mean.

package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/wire"
)

// txnVerdict is what a coordinator's error means for the producer.
type txnVerdict uint8

const (
	txnUndecided txnVerdict = iota // not answered in time, or cut short: the same call may be repeated
	txnAbortable                   // the transaction must be aborted, and the producer goes on
	txnFenced
	txnHopeless
)

// judgeTxn says what the error of a request means that is not worth another try. INVALID_PRODUCER_EPOCH
// is what coordinators before Kafka 2.7 call a fenced producer.
func judgeTxn(err error) txnVerdict {
	for _, fenced := range []error{wire.ErrProducerFenced, wire.ErrInvalidProducerEpoch, wire.ErrTransactionalIDNotFound, wire.ErrInvalidProducerIDMapping} {
		if errors.Is(err, fenced) {
			return txnFenced
		}
	}
	for _, abortable := range []error{
		wire.ErrTransactionAbortable, wire.ErrTopicAuthorizationFailed, wire.ErrGroupAuthorizationFailed, wire.ErrInvalidGroupID,
		wire.ErrIllegalGeneration, wire.ErrUnknownMemberID, wire.ErrFencedInstanceID, wire.ErrFencedMemberEpoch, wire.ErrStaleMemberEpoch,
		wire.ErrRebalanceInProgress, wire.ErrOffsetMetadataTooLarge, wire.ErrInvalidCommitOffsetSize, wire.ErrInvalidTopic,
		wire.ErrUnknownProducerID, wire.ErrGroupIDNotFound, errGroupTooOld,
	} {
		if errors.Is(err, abortable) {
			return txnAbortable
		}
	}
	var kafka *KafkaError
	var version *wire.VersionError
	var unreadable *conn.DecodeError
	switch {
	case errors.Is(err, errCannotRaise), errors.As(err, &kafka) && !kafka.Flags.Has(wire.Retriable), errors.As(err, &version), errors.As(err, &unreadable):
		return txnHopeless
	}
	return txnUndecided
}

// judgeMessage is judgeTxn for the failure of a message. A leader's INVALID_PRODUCER_EPOCH does not
// tell a fenced producer from one whose transaction has timed out: the abort will.
func judgeMessage(err error) txnVerdict {
	switch {
	case errors.Is(err, wire.ErrProducerFenced), errors.Is(err, wire.ErrInvalidProducerIDMapping):
		return txnFenced
	case errors.Is(err, wire.ErrTransactionalIDAuthorizationFailed), errors.Is(err, wire.ErrUnsupportedForMessageFormat):
		return txnHopeless
	}
	return txnAbortable
}

// fatalFor is the error that a producer ends with.
func fatalFor(v txnVerdict, err error) error {
	if v == txnFenced {
		return because(ErrProducerFenced, err)
	}
	return because(ErrProducerFailed, err)
}

// concurrentBackoff is the wait before another try, the first being 1, after
// CONCURRENT_TRANSACTIONS: the previous transaction's markers are being written, which takes
// milliseconds, so that the usual backoff would be most of a small transaction's time.
func concurrentBackoff(usual time.Duration, attempt int) time.Duration {
	const first, doublings = 5 * time.Millisecond, 10
	return min(usual, first<<min(attempt-1, doublings))
}

// txnAsk is one question to a coordinator.
type txnAsk struct {
	key  coordinatorKey
	what string // for errors: "committing the transaction"
	// make gives the request, and the highest version it may have (0: the newest both sides know),
	// for the connection it will go on.
	make func(*conn.Conn) (req kmsg.Request, most int16, err error)
	// read judges the answer.
	read func(kmsg.Response) error
}

// ask asks until there is an answer that another try would not change, following the
// coordinator, within ctx and Admin.Timeout. unsure: some try was sent whose answer never came.
func (t *transactions) ask(ctx context.Context, q txnAsk) (unsure bool, err error) {
	c := t.p.client
	bounded, cancel := context.WithTimeout(ctx, c.cfg.Admin.Timeout)
	defer cancel()
	concurrent := 0
	for attempt := 1; ; attempt++ {
		sent, err := t.askOnce(bounded, q)
		if err == nil {
			return unsure, nil
		}
		class := wire.Classify(err)
		unsure = unsure || sent && class.Has(wire.OutcomeUnknown)
		err = fmt.Errorf("%s: %w", q.what, err)
		if !class.Has(wire.Retriable) {
			return unsure, t.late(ctx, bounded, err)
		}
		var kafka *KafkaError
		if !errors.As(err, &kafka) || class.Has(wire.RefreshCoordinator) || errors.Is(err, wire.ErrRequestTimedOut) {
			c.forgetCoordinator(q.key)
		}
		wait := c.adminWait(attempt)
		switch {
		case errors.Is(err, wire.ErrConcurrentTransactions):
			concurrent++
			wait = concurrentBackoff(wait, concurrent)
		case attempt == 1 && errors.Is(err, conn.ErrClosedByBroker):
			wait = 0 // it was idle
		}
		if over := c.sleep(bounded, wait); over != nil {
			return unsure, t.late(ctx, bounded, err)
		}
	}
}

// late says which bound has passed.
func (t *transactions) late(ctx, bounded context.Context, err error) error {
	switch {
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	case ctx.Err() == nil && bounded.Err() != nil:
		return fmt.Errorf("%w (not within admin.timeout, %v)", err, t.p.client.cfg.Admin.Timeout)
	}
	return err
}

// askOnce is one try. sent: the request may have left.
func (t *transactions) askOnce(ctx context.Context, q txnAsk) (sent bool, err error) {
	b, err := t.p.client.coordinator(ctx, q.key)
	if err != nil {
		return false, err
	}
	c, err := b.connection(ctx)
	if err != nil {
		return false, err
	}
	req, most, err := q.make(c)
	if err != nil {
		return false, err
	}
	resp, err := c.DoWith(ctx, req, conn.Need{MaxVersion: most})
	if err != nil {
		return true, &addressError{b.addr, err}
	}
	return true, q.read(resp)
}

// capped is the version cap of a request that transactions v1 must not send newer.
func (t *transactions) capped(v1 int16) int16 {
	if t.v2() {
		return 0
	}
	return v1
}

// speaksV2 says whether the cluster and this client do transactions v2 (KIP-890): the feature is
// finalised, and no cap stands in the way.
func speaksV2(c *conn.Conn) bool {
	const feature, level = "transaction.version", 2
	if c.Feature(feature) < level {
		return false
	}
	for key, last := range map[int16]int16{
		produceKey:                  wire.LastProduceTxnV1,
		int16(kmsg.EndTxn):          wire.LastEndTxnTxnV1,
		int16(kmsg.TxnOffsetCommit): wire.LastTxnOffsetCommitTxnV1,
	} {
		if v, err := c.Version(key); err != nil || v <= last {
			return false
		}
	}
	return true
}

// errCannotRaise says that a broker is too old to raise an epoch without taking over.
var errCannotRaise = errors.New("the numbering of a partition is broken, and brokers before Kafka 2.5 cannot raise the epoch of a producer that goes on (KIP-360)")

func (*transactions) identity(id int64, epoch int16) identity {
	return identity{id: id, epoch: epoch, known: true, transactional: true}
}

// initProducer gets the producer an id and epoch, which fences every older producer with its
// transactional id and aborts what they left open; or, given old, raises the epoch of old.
func (t *transactions) initProducer(ctx context.Context, old identity) error {
	var next identity
	var v2 bool
	_, err := t.ask(ctx, txnAsk{
		key: t.key, what: "getting a producer id for transactions",
		make: func(c *conn.Conn) (kmsg.Request, int16, error) {
			v2 = speaksV2(c)
			req := kmsg.NewPtrInitProducerIDRequest()
			req.TransactionalID = &t.id
			req.TransactionTimeoutMillis = int32(t.p.cfg.Producer.Transaction.Timeout.Milliseconds())
			if old.known {
				req.ProducerID, req.ProducerEpoch = old.id, old.epoch
				if v, err := c.Version(req.Key()); err == nil && v < 3 {
					return nil, 0, errCannotRaise
				}
			}
			return req, 0, nil
		},
		read: func(r kmsg.Response) error {
			resp := r.(*kmsg.InitProducerIDResponse)
			next = t.identity(resp.ProducerID, resp.ProducerEpoch)
			return wire.ErrorFor(resp.ErrorCode)
		},
	})
	if err != nil {
		return err
	}
	t.p.identities.set(next)
	if !old.known {
		t.second.Store(v2)
	}
	return nil
}

// endTxn tells the coordinator of the end. With transactions v2 its answer has the identity for
// the next one.
func (t *transactions) endTxn(ctx context.Context, commit bool) (unsure, raised bool, err error) {
	who := t.p.identities.now()
	what := "aborting the transaction"
	if commit {
		what = "committing the transaction"
	}
	next := identity{}
	unsure, err = t.ask(ctx, txnAsk{
		key: t.key, what: what,
		make: func(*conn.Conn) (kmsg.Request, int16, error) {
			req := kmsg.NewPtrEndTxnRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = t.id, who.id, who.epoch, commit
			return req, t.capped(wire.LastEndTxnTxnV1), nil
		},
		read: func(r kmsg.Response) error {
			resp := r.(*kmsg.EndTxnResponse)
			if resp.ErrorCode == 0 && resp.Version > wire.LastEndTxnTxnV1 && resp.ProducerID >= 0 {
				next = t.identity(resp.ProducerID, resp.ProducerEpoch)
			}
			return wire.ErrorFor(resp.ErrorCode)
		},
	})
	if err == nil && next.known {
		t.p.identities.set(next)
	}
	return unsure, next.known && next != who, err
}
