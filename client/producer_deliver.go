package client

// decide gives every message of a batch its outcome.
func (p *AsyncProducer) decide(b *batch, d Delivery, baseOffset int64) {
	for i, m := range b.msgs {
		m.Partition = b.p.number
		m.Offset = -1
		if baseOffset >= 0 {
			m.Offset = baseOffset + int64(i)
		}
	}
	p.deliver(b.msgs, d)
}

// fail gives messages that never came into a batch their outcome.
func (p *AsyncProducer) fail(msgs []*ProducerMessage, err error) {
	for _, m := range msgs {
		m.Partition, m.Offset = -1, -1
	}
	p.deliver(msgs, Delivery{Err: err})
}

// deliver hands outcomes to where they are wanted, in runs with the same destination, and gives
// back what the messages held of the producer's bounds.
func (p *AsyncProducer) deliver(msgs []*ProducerMessage, d Delivery) {
	if d.Err != nil {
		p.failures.Add(int64(len(msgs)))
	}
	for len(msgs) > 0 {
		sink, epoch := msgs[0].sink, msgs[0].epoch
		n, size := 0, int64(0)
		for ; n < len(msgs) && msgs[n].sink == sink && msgs[n].epoch == epoch; n++ {
			size += int64(msgs[n].size)
		}
		run := msgs[:n]
		msgs = msgs[n:]
		if sink == nil { // the channels give back when they have been read
			p.results.put(run, d)
			p.accounts.decided(epoch, int64(n))
			continue
		}
		p.buffer.release(int64(n), size)
		p.hand(sink, run, d)
		p.accounts.decided(epoch, int64(n))
	}
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
	defer func() {
		if v := recover(); v != nil {
			p.panics.Add(1)
			if p.cfg.Logger != nil {
				p.cfg.Logger.Error("panic in a delivery callback", "panic", v)
			}
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
