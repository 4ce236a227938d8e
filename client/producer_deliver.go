package client

// decide gives every message of a batch its outcome, unless they ran out of time in flight and
// have it.
func (p *AsyncProducer) decide(b *batch, d Delivery, baseOffset int64) {
	b.p.mu.Lock()
	b.decided, b.msgs = b.msgs, nil
	b.p.mu.Unlock()
	p.deliver(b.decided, b.p.number, baseOffset, d)
}

// fail gives messages that never came into a batch their outcome.
func (p *AsyncProducer) fail(msgs []*ProducerMessage, err error) {
	p.deliver(msgs, -1, -1, Delivery{Err: err})
}

// deliver hands outcomes to where they are wanted, in runs with the same destination, and gives
// back what the messages held of the producer's bounds. baseOffset is the first message's, −1
// when it is not known.
func (p *AsyncProducer) deliver(msgs []*ProducerMessage, partition int32, baseOffset int64, d Delivery) {
	if d.Err != nil {
		p.failures.Add(int64(len(msgs)))
	}
	for len(msgs) > 0 {
		n, size := settle(msgs, partition, baseOffset)
		run := msgs[:n]
		msgs = msgs[n:]
		if baseOffset >= 0 {
			baseOffset += int64(n)
		}
		sink, epoch := run[0].sink, run[0].books.epoch()
		if sink == nil { // the channels give back when they have been read
			p.results.put(run, d)
		} else {
			p.buffer.release(int64(n), size)
			p.hand(sink, run, d)
		}
		p.accounts.decided(epoch, int64(n))
	}
}

// settle writes where messages went into a run of them with the same destination and epoch, short
// enough to be in the cache still when the user looks at it. It returns the run's length and what
// it holds of the bound in bytes.
func settle(msgs []*ProducerMessage, partition int32, baseOffset int64) (n int, size int64) {
	sink, epoch := msgs[0].sink, msgs[0].books.epoch()
	for _, m := range msgs[:min(len(msgs), chunk)] {
		if m.sink != sink || m.books.epoch() != epoch {
			break
		}
		m.Partition, m.Offset = partition, -1
		if baseOffset >= 0 {
			m.Offset = baseOffset + int64(n)
		}
		size += int64(m.books.size())
		n++
	}
	return n, size
}

// hand calls the user's code, whose panics stay there.
func (p *AsyncProducer) hand(sink deliveries, run []*ProducerMessage, d Delivery) {
	for len(run) > 0 {
		run = run[p.handSome(sink, run, d):]
	}
}

// handSome hands over a run, and returns how many messages were handed over: fewer when a
// callback panicked, that message included.
func (p *AsyncProducer) handSome(sink deliveries, run []*ProducerMessage, d Delivery) (n int) {
	userCode.Add(1)
	defer func() {
		userCode.Add(-1)
		if v := recover(); v != nil {
			_ = p.caught("a delivery callback", v) // the message has its outcome
		}
	}()
	if sink != deliveries(callbacks{}) {
		n = len(run)
		sink.Delivered(run, d)
		return n
	}
	for n < len(run) {
		m := run[n]
		n++
		done := m.done
		m.done, m.sink = nil, nil
		done(m, d.Err)
	}
	return n
}

// callbacks is the destination of messages that carry their own function.
type callbacks struct{}

// Delivered is never called: handSome knows callbacks and calls the functions itself.
func (callbacks) Delivered([]*ProducerMessage, Delivery) {}
