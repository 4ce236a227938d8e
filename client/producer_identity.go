package client

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
)

// identity is what an idempotent producer's batches carry, so that brokers know a resend from
// a new batch and a gap from a beginning (KIP-98): a producer id, and an epoch that is raised
// when a partition has to start anew at sequence 0 (KIP-360). The zero value is none.
type identity struct {
	id    int64
	epoch int16
	known bool
	// transactional batches are part of a transaction.
	transactional bool
}

// identities gets and raises the producer's identity. One broker producer at a time asks the
// cluster; the others wait for it.
type identities struct {
	asking sync.Mutex // held while the cluster is asked; before mu

	mu      sync.Mutex
	current identity
}

// get is the identity to give to new batches, asking the cluster for an id when there is none.
func (i *identities) get(ctx context.Context, c *Client) (identity, error) {
	if now := i.now(); now.known {
		return now, nil
	}
	i.asking.Lock()
	defer i.asking.Unlock()
	if now := i.now(); now.known {
		return now, nil
	}
	next, err := c.initProducerID(ctx)
	if err != nil {
		return identity{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current = next
	return next, nil
}

// set gives a transactional producer the identity that its coordinator wants it to go on with.
func (i *identities) set(next identity) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current = next
}

func (i *identities) now() identity {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.current
}

// raise says that a partition cannot go on with old. The epoch of a producer without transactions
// is its own to raise; after the last one it needs another id.
func (i *identities) raise(old identity) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.current != old: // raised already, for another partition
	case old.epoch == math.MaxInt16:
		i.current = identity{}
	default:
		i.current.epoch++
	}
}

// sendAs is who a request is from, and its version, where the newest that the broker takes is v.
func (p *AsyncProducer) sendAs(v int16) (who identity, version int16, err error) {
	switch {
	case p.txn != nil:
		version, err = p.txn.prepare(v)
		return identity{}, version, err
	case p.cfg.Producer.Idempotent:
		who, err = p.identities.get(p.life, p.client)
	}
	return who, v, err
}

// initProducerID asks any broker for a producer id.
func (c *Client) initProducerID(ctx context.Context) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Admin.Timeout)
	defer cancel()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionTimeoutMillis = int32(time.Minute / time.Millisecond) // asked for, and of no use here
	b, err := c.anyBroker()
	if err != nil {
		return identity{}, err
	}
	resp, err := b.Request(ctx, req)
	if err != nil {
		return identity{}, fmt.Errorf("getting a producer id: %w", err)
	}
	r := resp.(*kmsg.InitProducerIDResponse)
	if err := wire.ErrorFor(r.ErrorCode); err != nil {
		return identity{}, fmt.Errorf("getting a producer id: %w", err)
	}
	return identity{id: r.ProducerID, epoch: r.ProducerEpoch, known: true}, nil
}

// sequence is where a batch stands in its partition's numbering of messages.
type sequence struct {
	identity identity
	base     int32
	set      bool
}

// sequenceAfter is the sequence number n messages on; it wraps from 2³¹−1 to 0.
func sequenceAfter(base int32, n int) int32 { return int32((int64(base) + int64(n)) & math.MaxInt32) }

// attributes are what the batch's header says of its producer.
func (s sequence) attributes() record.Attributes {
	a := record.NoProducer
	if s.set {
		a.ProducerID, a.ProducerEpoch, a.BaseSequence = s.identity.id, s.identity.epoch, s.base
		a.Transactional = s.identity.transactional
	}
	return a
}

// numbering numbers the batches of one partition. It is guarded by the partition producer's mu.
//
// Numbers are given when a batch is first sent, and stay with it: a resend is the same batch.
// After a gap (a batch failed for good), or when the broker has lost its memory of the producer,
// the broker refuses what comes next as out of order. When the refused batch is the oldest that
// is undecided, the numbering starts anew under a raised epoch.
type numbering struct {
	identity identity
	next     int32
	// proven is true once the leader has accepted a batch of this identity: until then one
	// batch at a time is sent, since the refusal of the first would leave the second, if it was
	// accepted, as the beginning.
	proven bool
}

// giveNumber gives a batch of the partition its sequence. ok is false when t cannot be sent with
// now, because the numbering has to start anew under a raised identity; it is then asked for, but
// for a transaction, which fails. Nothing of the partition is in flight when refused is set.
func (p *partitionProducer) giveNumber(t *batch, now identity) (ok bool) {
	n := &p.numbers
	if t.refused != nil && p.producer.txn != nil { // a transaction cannot go on with another epoch
		p.producer.txn.fail(judgeMessage(t.refused), t.refused)
		return false
	}
	if t.refused != nil { // the oldest undecided: it was not a follow-up of another refusal
		t.refused = nil
		p.producer.identities.raise(t.sequence.identity)
		for _, b := range p.sealed {
			b.sequence, b.refused = sequence{}, nil
		}
		n.identity = identity{}
		return false
	}
	for _, b := range p.sealed {
		b.refused = nil // a follow-up of what is sent again now
	}
	if t.sequence.set {
		return true
	}
	if n.identity != now {
		*n = numbering{identity: now}
	}
	t.sequence = sequence{identity: now, base: n.next, set: true}
	n.next = sequenceAfter(n.next, len(t.msgs))
	return true
}

// holds says that nothing more may leave on a connection while something is in flight: batches are
// to leave in order again, or the leader has to accept one of this identity first. What is in
// flight on another connection will come back, since that one has ended or the leader has moved;
// that it has not come back yet must not let anything overtake it. Called with mu held.
func (p *partitionProducer) holds(on *conn.Conn, now identity) bool {
	if p.inFlight == 0 {
		return false
	}
	return p.draining || p.on != on || p.producer.cfg.Producer.Idempotent && (!p.numbers.proven || p.numbers.identity != now)
}

// unnumber takes back the sequence of a batch that was never sent, if it is the last one given.
func (p *partitionProducer) unnumber(b *batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := &p.numbers
	if b.sequence.set && n.identity == b.sequence.identity && n.next == sequenceAfter(b.sequence.base, b.builder.Count()) {
		n.next = b.sequence.base
	}
}
