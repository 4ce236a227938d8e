// How partitions become part of a transaction, and leave the pipeline when it fails.

package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/wire"
)

// carries says whether a batch of p may be sent now: with transactions v2 always, for sending adds
// the partition; with v1 once the coordinator knows of the partition, which is asked for. Called
// with p.mu held.
func (t *transactions) carries(p *partitionProducer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.round == t.round {
		return true
	}
	if t.v2() {
		t.machine.touch(true)
		p.round = t.round
		return true
	}
	t.pending = append(t.pending, p)
	return false
}

// addPartitions adds what was asked for to the transaction, which fails when that does.
func (t *transactions) addPartitions() {
	if err := t.addPending(); err != nil && t.doom() == nil { // else it was cut short
		t.failed(judgeTxn(err), err)
	}
}

// addPending adds all that was asked for in one request. Broker producers that come meanwhile wait
// for it.
func (t *transactions) addPending() error {
	t.adding.Lock()
	defer t.adding.Unlock()
	t.mu.Lock()
	parts, round, ctx := t.pending, t.round, t.life
	t.pending = nil
	if len(parts) > 0 {
		t.machine.touch(false)
	}
	t.mu.Unlock()
	if len(parts) == 0 || t.doom() != nil {
		return nil
	}
	if err := t.addToTxn(ctx, parts); err != nil {
		return err
	}
	t.touch(true)
	for _, p := range parts {
		p.mu.Lock()
		p.round = round
		p.mu.Unlock()
	}
	return nil
}

func (t *transactions) addToTxn(ctx context.Context, parts []*partitionProducer) error {
	who := t.p.identities.now()
	_, err := t.ask(ctx, txnAsk{
		key: t.key, what: "adding partitions to the transaction",
		make: func(*conn.Conn) (kmsg.Request, int16, error) {
			req := kmsg.NewPtrAddPartitionsToTxnRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.id, who.id, who.epoch
			req.Topics = partitionTopics(parts)
			return req, 0, nil
		},
		read: func(r kmsg.Response) error { return partitionsAdded(r.(*kmsg.AddPartitionsToTxnResponse), parts) },
	})
	return err
}

// partitionTopics groups partitions by topic; one that asked twice is named once.
func partitionTopics(parts []*partitionProducer) (topics []kmsg.AddPartitionsToTxnRequestTopic) {
	at, seen := map[string]int{}, map[*partitionProducer]bool{}
	for _, p := range parts {
		if seen[p] {
			continue
		}
		seen[p] = true
		n, known := at[p.topic]
		if !known {
			n = len(topics)
			at[p.topic] = n
			topic := kmsg.NewAddPartitionsToTxnRequestTopic()
			topic.Topic = p.topic
			topics = append(topics, topic)
		}
		topics[n].Partitions = append(topics[n].Partitions, p.number)
	}
	return topics
}

// partitionsAdded is nil when the answer says of every partition asked about that it was added.
// The coordinator adds all or none; those that did not cause a refusal say OPERATION_NOT_ATTEMPTED.
func partitionsAdded(r *kmsg.AddPartitionsToTxnResponse, parts []*partitionProducer) error {
	added := map[place]bool{}
	var refused error
	for i := range r.Topics {
		for _, p := range r.Topics[i].Partitions {
			err := wire.ErrorFor(p.ErrorCode)
			if err == nil {
				added[place{r.Topics[i].Topic, p.Partition}] = true
			} else if refused == nil || errors.Is(refused, wire.ErrOperationNotAttempted) {
				refused = fmt.Errorf("topic %q partition %d: %w", r.Topics[i].Topic, p.Partition, err)
			}
		}
	}
	if refused != nil {
		return refused
	}
	for _, p := range parts {
		if !added[place{p.topic, p.number}] {
			return fmt.Errorf("topic %q partition %d: %w", p.topic, p.number, errLeftOut)
		}
	}
	return nil
}

// halted is why nothing that waits may be sent any more, nil while it may: the producer was cut short,
// or its transaction is doomed.
func (p *AsyncProducer) halted() error {
	if p.aborted() {
		return ErrClosed
	}
	return p.txn.doom()
}

// halting is halted for the stages: cheaper, and a moment later.
func (p *AsyncProducer) halting() error {
	if p.over.Load() {
		return ErrClosed
	}
	return p.txn.doom()
}

// flies says whether anything is in flight.
func (p *AsyncProducer) flies() bool {
	p.mu.Lock()
	parts := p.parts
	p.mu.Unlock()
	for _, pp := range parts {
		pp.mu.Lock()
		n := pp.inFlight
		pp.mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

// sweep fails what waits in partitions of a doomed transaction.
func (p *AsyncProducer) sweep() {
	err := p.txn.doom()
	if err == nil {
		return
	}
	p.mu.Lock()
	parts := p.parts
	p.mu.Unlock()
	for _, pp := range parts {
		pp.failAll(err)
	}
}

// prepare does what is due before the next request is collected, and gives its version on a
// connection whose newest is v. Batches get their identity when they are taken: the transaction may
// have changed by then.
func (t *transactions) prepare(v int16) (int16, error) {
	t.p.sweep() // what came too late for it
	t.addPartitions()
	switch {
	case !t.v2():
		return min(v, wire.LastProduceTxnV1), nil
	case v <= wire.LastProduceTxnV1:
		return 0, fmt.Errorf("the cluster has transaction.version 2, for which Produce version %d is too old: upgrade the broker", v)
	}
	return v, nil
}
