package client

import "reflect"

// decide gives every message of a batch its outcome, unless they ran out of time in flight and
// have it.
func (p *AsyncProducer) decide(b *batch, d Delivery, baseOffset int64) {
	b.p.mu.Lock()
	all := b.msgs
	b.decided, b.msgs = all, nil
	b.p.mu.Unlock()
	if d.Err != nil && p.txn != nil && b.sequence.set {
		p.txn.numberedFailed()
	}
	if b.mixed {
		p.deliver(all, b.p.number, baseOffset, d)
		return
	}
	if len(all) == 0 {
		return
	}
	if d.Err != nil && p.failed(len(all), d.Err) {
		defer p.sweep()
	}
	if b.way.kind() != toChannels {
		p.buffer.release(int64(len(all)), b.size)
	}
	for msgs := all; len(msgs) > 0; {
		run := msgs[:min(len(msgs), chunk)]
		msgs = msgs[len(run):]
		settle(run, b.p.number, baseOffset)
		if baseOffset >= 0 {
			baseOffset += int64(len(run))
		}
		p.hand(b.way.kind(), b.sink, run, d)
	}
	p.accounts.decided(b.way.epoch(), int64(len(all)))
}

// failed counts n failed messages, and says whether their transaction has failed with them, so that
// what else waits is to be swept out.
func (p *AsyncProducer) failed(n int, err error) (sweep bool) {
	p.failures.Add(int64(n))
	return p.txn != nil && p.txn.messageFailed(err)
}

// fail gives messages that never came into a batch their outcome.
func (p *AsyncProducer) fail(msgs []*ProducerMessage, err error) {
	p.deliver(msgs, -1, -1, Delivery{Err: err})
}

// deliver hands outcomes to where they are wanted, in runs with the same destination, and gives
// back what the messages held of the producer's bounds. baseOffset is the first message's, −1
// when it is not known.
func (p *AsyncProducer) deliver(msgs []*ProducerMessage, partition int32, baseOffset int64, d Delivery) {
	if d.Err != nil && p.failed(len(msgs), d.Err) {
		defer p.sweep()
	}
	for len(msgs) > 0 {
		n, size := alike(msgs)
		run := msgs[:n]
		msgs = msgs[n:]
		settle(run, partition, baseOffset)
		if baseOffset >= 0 {
			baseOffset += int64(n)
		}
		way, sink := run[0].way, run[0].sink
		if way.kind() != toChannels {
			p.buffer.release(int64(n), size)
		}
		p.hand(way.kind(), sink, run, d)
		p.accounts.decided(way.epoch(), int64(n))
	}
}

// alike is how many messages from the beginning have the same destination and epoch, a chunk at
// most, and what they hold of the bound in bytes.
func alike(msgs []*ProducerMessage) (n int, size int64) {
	way, sink := msgs[0].way, msgs[0].sink
	for _, m := range msgs[:min(len(msgs), chunk)] {
		if m.way != way || way.kind() == toDeliveries && m.sink != sink {
			break
		}
		size += int64(m.size)
		n++
	}
	return n, size
}

// settle writes where messages went into a run of them, short enough to be in the cache still when
// the user looks at it.
func settle(run []*ProducerMessage, partition int32, baseOffset int64) {
	for i, m := range run {
		m.Partition, m.Offset = partition, -1
		if baseOffset >= 0 {
			m.Offset = baseOffset + int64(i)
		}
	}
}

// hand passes outcomes to the channels, which give back what the messages hold when they have
// been read, or calls the user's code, whose panics stay there.
func (p *AsyncProducer) hand(kind way, sink deliveries, run []*ProducerMessage, d Delivery) {
	if kind == toChannels {
		p.results.put(run, d)
		return
	}
	for len(run) > 0 {
		run = run[p.handSome(kind, sink, run, d):]
	}
}

// handSome hands over a run, and returns how many messages were handed over: fewer when a
// callback panicked, that message included.
func (p *AsyncProducer) handSome(kind way, sink deliveries, run []*ProducerMessage, d Delivery) (n int) {
	userCode.Add(1)
	defer func() {
		userCode.Add(-1)
		if v := recover(); v != nil {
			_ = p.caught("a delivery callback", v) // the message has its outcome
		}
	}()
	if kind == toDeliveries {
		n = len(run)
		sink.Delivered(run, d)
		return n
	}
	for n < len(run) {
		m := run[n]
		n++
		done := m.sink.(callback)
		m.sink = nil
		done(m, d.Err)
	}
	return n
}

// comparableOf is d, or something that stands for it where two of d's type cannot be compared:
// outcomes are handed over in runs with the same destination.
func comparableOf(d Deliveries) Deliveries {
	if reflect.TypeOf(d).Kind() == reflect.Pointer || reflect.ValueOf(d).Comparable() {
		return d
	}
	return &standIn{d}
}

type standIn struct{ Deliveries }
