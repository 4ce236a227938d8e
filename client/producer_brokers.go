// Which broker producers there are: one for each node that partitions send to.

package client

import (
	"fmt"
	"time"
)

// unusedFor is how long a broker producer lives that no partition sends to, so that leaders which come
// and go do not each time cost a goroutine, a compressor and its requests.
const unusedFor = 30 * time.Second

// brokerFor is the broker producer of a node, made when first needed; nil when there is none and the
// producer was cut short, which may wait for their goroutines already. The caller uses it until it
// calls leave: a partition from when it looks for its leader until it detaches, so that none ends
// that somebody is about to join. The configuration was validated, so that making its compressor cannot
// fail.
func (p *AsyncProducer) brokerFor(id int32) *brokerProducer {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.brokers[id]
	if b == nil && !p.over.Load() { // abort sets it before it looks at brokers
		var err error
		if b, err = newBrokerProducer(p, id); err != nil {
			panic(fmt.Sprintf("kafka client: a validated codec cannot be made: %v", err))
		}
		p.brokers[id] = b
		p.senders.Add(1)
		// Owned by the producer; ends with its life, or when nobody has used it for unusedFor; Close
		// waits.
		go b.run()
	}
	if b != nil {
		b.users++
	}
	return b
}

// leave ends one use of a broker producer.
func (p *AsyncProducer) leave(b *brokerProducer) {
	p.mu.Lock()
	b.users--
	p.mu.Unlock()
	b.left.Store(true)
	b.signal()
}

// retire takes out a broker producer that nobody uses. What its list still holds are partitions that
// have left.
func (p *AsyncProducer) retire(b *brokerProducer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.users > 0 || b.outstanding.Load() > 0 {
		return false
	}
	delete(p.brokers, b.id)
	return true
}

// needed says whether there is still something to run for, and when to look again: far, unless a
// partition has left and there was no look since. Called by run while there is nothing to send.
func (b *brokerProducer) needed(now time.Time) (again time.Time, needed bool) {
	if b.left.Load() && b.left.Swap(false) {
		b.lookAt = now.Add(unusedFor)
	}
	switch {
	case b.lookAt.IsZero():
		return far, true
	case now.Before(b.lookAt):
		return b.lookAt, true
	case b.producer.retire(b):
		return far, false
	}
	b.lookAt = time.Time{}
	b.sendAway()
	if b.outstanding.Load() > 0 {
		b.lookAt = now.Add(unusedFor)
		return b.lookAt, true
	}
	return far, true
}

// sendAway detaches the partitions that have nothing to send and that the node does not lead any more,
// as far as metadata say: nothing would come back that tells them. They find their leader when
// they need it.
func (b *brokerProducer) sendAway() {
	p := b.producer
	p.mu.Lock()
	parts := p.parts
	p.mu.Unlock()
	topics := p.client.meta.Load().topics
	for _, pp := range parts {
		if t := topics[pp.topic]; t != nil && int(pp.number) < len(t.partitions) && t.partitions[pp.number].leader == b.id {
			continue
		}
		pp.mu.Lock()
		idle := pp.broker == b && pp.inFlight == 0 && pp.first() == nil && !pp.listed.Load()
		if idle {
			pp.detach()
		}
		pp.mu.Unlock()
		if idle {
			pp.stage.fetch() // see detach
		}
	}
}
