// How a partition finds its leader, and what becomes of its batches while it has none.

package client

import (
	"context"
	"time"
)

// findLeader gives the partition to its leader's broker producer. Where the metadata say who that is
// there is nothing to wait for, and no goroutine: a message to each of thousands of partitions would
// start as many at once. Called with mu held.
func (p *partitionProducer) findLeader() {
	if !p.resolving && !p.producer.aborted() {
		if b, err := p.known(); err == nil && b != nil {
			p.join(b)
			return
		}
	}
	p.resolveLater(nil)
}

// resolveLater starts looking for the leader unless somebody does. Called with mu held.
func (p *partitionProducer) resolveLater(cause error) {
	if p.resolving || p.producer.aborted() { // closing waits for such goroutines already
		return
	}
	p.resolving = true
	p.producer.stages.started()
	// Owned by the partition; ends when the leader is known, when nothing is left to send, or
	// when the producer is aborted; the producer's Close waits.
	go p.resolve(cause)
}

// resolve looks for the leader until it is known, failing what runs out of time or tries.
func (p *partitionProducer) resolve(cause error) {
	defer p.producer.stages.ended()
	defer func() {
		if v := recover(); v != nil {
			p.mu.Lock()
			p.resolving = false
			p.mu.Unlock()
			p.failAll(p.producer.caught("the search for a leader", v))
		}
	}()
	ctx := p.producer.life
	for attempt := 0; ; attempt++ {
		b, err := p.lookUp(ctx, attempt > 0 || cause != nil)
		if err == nil {
			p.attach(b)
			return
		}
		cause = err
		if p.expire(err) {
			return
		}
		_ = p.producer.client.sleep(ctx, p.producer.retryWait(attempt+1)) // expire looks at why
	}
}

// lookUp is the leader's broker producer, in use by the caller, after a refresh if one is asked for.
func (p *partitionProducer) lookUp(ctx context.Context, refresh bool) (*brokerProducer, error) {
	if refresh {
		if err := p.producer.client.RefreshMetadata(ctx, p.topic); err != nil {
			return nil, err
		}
	}
	return p.known()
}

// known is the broker producer of the leader that the metadata name, in use by the caller; nil once the
// producer was cut short.
func (p *partitionProducer) known() (*brokerProducer, error) {
	c := p.producer.client
	t := c.meta.Load().topics[p.topic]
	if t == nil || int(p.number) >= len(t.partitions) {
		return nil, topicError(p.topic, t)
	}
	at := t.partitions[p.number]
	if c.node(at.leader) == nil {
		return nil, leaderless(p.topic, p.number, at.err)
	}
	return p.producer.brokerFor(at.leader), nil
}

// attach gives the partition to the broker producer of its leader.
func (p *partitionProducer) attach(b *brokerProducer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resolving = false
	if p.trouble != nil {
		p.trouble.circuit.succeeded()
	}
	if p.producer.aborted() { // also where b is nil
		if b != nil {
			p.producer.leave(b)
		}
		p.mu.Unlock()
		p.failAll(ErrClosed)
		p.mu.Lock()
		return
	}
	p.join(b)
}

// join is attach for a partition that is to be sent from. Called with mu held.
func (p *partitionProducer) join(b *brokerProducer) {
	p.broker, p.taken, p.numbers.proven = b, 0, false
	p.listed.Store(false)
	if p.counted = p.waiting(); p.counted.messages > 0 {
		b.added(p, p.counted, len(p.sealed) > 0)
	}
}

// waiting weighs what is to be sent. Called with mu held.
func (p *partitionProducer) waiting() (w weight) {
	for _, b := range p.sealed {
		w = w.plus(b.weight())
	}
	if p.building != nil {
		w = w.plus(p.building.weight())
	}
	return w
}

// expire fails the batches that are out of time or tries after another look for the leader
// failed, and says whether the search is over: nothing is left, or the producer is aborted.
func (p *partitionProducer) expire(err error) (over bool) {
	if p.producer.halted() != nil {
		p.mu.Lock()
		p.resolving = false
		p.mu.Unlock()
		p.failAll(err)
		return true
	}
	now := time.Now()
	p.mu.Lock()
	if t := p.inTrouble(); t.circuit.failed(now, err) && t.tripped != nil {
		close(t.tripped)
		t.tripped = nil
	}
	late := p.tried(err, now)
	if over = p.first() == nil; over {
		p.resolving = false
	}
	p.mu.Unlock()
	for _, b := range late {
		p.giveUp(b, err, now)
	}
	return over
}

// always is closed.
var always = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// circuitOpens is closed while nobody is to wait for room here, or when that begins: the leader
// could not be found several times in a row. The look-ups themselves go on, a backoff apart and
// shared with other partitions, and what has its place here keeps it for as long as it has time.
func (p *partitionProducer) circuitOpens() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.inTrouble()
	if t.circuit.open(time.Now()) {
		return always
	}
	if t.tripped == nil {
		t.tripped = make(chan struct{})
	}
	return t.tripped
}

// circuitFailure is the error of what found no room while the circuit was open.
func (p *partitionProducer) circuitFailure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inTrouble().circuit.failure(p.topic, p.number)
}
