// How the messages of a call find their partitions, and their outcomes the user.

package client

import "time"

// sinceOrigin is now as short instants are kept.
func sinceOrigin() int64 { return int64(time.Since(origin)) }

// admit takes messages into the call: each goes behind what its partition has already. Those that
// cannot be sent, as Err says, fail.
func (c *batchCall) admit(msgs []*BatchMessage) {
	for len(msgs) > 0 {
		n := 1
		for n < len(msgs) && msgs[n].encoded.Topic == msgs[0].encoded.Topic {
			n++
		}
		c.place(msgs[:n])
		msgs = msgs[n:]
	}
}

// place takes in messages of one topic.
func (c *batchCall) place(run []*BatchMessage) {
	name := run[0].encoded.Topic
	t := c.topics[name]
	if t == nil {
		t = &callTopic{shared: c.p.topic(name)}
		c.topics[name] = t
	}
	now := c.p.client.meta.Load().topics[name]
	if now == nil || len(now.partitions) == 0 {
		for _, m := range run {
			if m.Err == nil {
				m.Err = topicError(name, now)
			}
		}
	} else {
		t.shared.choose(c.p, now, run)
	}
	for i, m := range run {
		if m.Err != nil {
			c.failed++
			m.Partition, m.Offset = -1, -1
			c.p.settle(run[i:i+1], Delivery{Err: m.Err})
			continue
		}
		part := c.part(t, name, m.encoded.Partition)
		if part.left() == 0 {
			c.open = append(c.open, part)
		}
		part.msgs, part.wire = append(part.msgs, m), append(part.wire, &m.encoded)
	}
}

func (c *batchCall) part(t *callTopic, name string, partition int32) *batchPart {
	for len(t.parts) <= int(partition) {
		t.parts = append(t.parts, nil)
	}
	if t.parts[partition] == nil {
		t.parts[partition] = &batchPart{topic: name, number: partition, size: t.shared.size}
	}
	return t.parts[partition]
}

// choose gives messages their partition. Calls that send at the same time take turns here, a run of
// messages each.
func (t *batchTopic) choose(p *BatchProducer, now *topicMeta, run []*BatchMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(run) > 0 {
		run = run[t.chooseSome(p, now, run):]
	}
}

// chooseSome returns how many messages have their partition, or the reason why not, in Err: all of
// them, or those up to the one whose partitioner panicked.
func (t *batchTopic) chooseSome(p *BatchProducer, now *topicMeta, run []*BatchMessage) (n int) {
	userCode.Add(1)
	defer func() {
		userCode.Add(-1)
		if v := recover(); v != nil {
			run[n].Err = caught(&p.cfg, &p.panics, "the partitioner", v)
			n++
		}
	}()
	if t.by == nil {
		t.by = p.cfg.partitioner(run[0].encoded.Topic)
	}
	for n < len(run) {
		m := run[n]
		switch {
		case m.Err != nil:
		case t.by == nil:
			m.Err = errNoPartitioner
		default:
			if t.seen != now {
				noteRefresh(t.by, t.seen, now)
				t.seen = now
			}
			m.encoded.Partition, m.Err = choosePartition(t.by, now, &m.encoded)
		}
		n++
	}
	return n
}

// settle hands outcomes to where they are wanted, and takes the messages out of the books.
func (p *BatchProducer) settle(run []*BatchMessage, d Delivery) {
	if d.Err != nil {
		p.failures.Add(int64(len(run)))
	}
	for len(run) > 0 {
		n, size, epoch := ofOneEpoch(run)
		p.tell(run[:n], d)
		run = run[n:]
		if p.async {
			p.buffer.release(int64(n), size)
		}
		p.accounts.decided(epoch, int64(n))
	}
}

// ofOneEpoch is how many messages from the beginning of a run share an epoch of the books, and what
// they hold of the bound in bytes.
func ofOneEpoch(run []*BatchMessage) (n int, size int64, epoch uint8) {
	epoch = run[0].epoch
	for n < len(run) && run[n].epoch == epoch {
		size += int64(run[n].encoded.size)
		n++
	}
	return n, size, epoch
}

// tell calls the user's code, whose panics stay there, or writes to Results.
func (p *BatchProducer) tell(run []*BatchMessage, d Delivery) {
	if to := p.cfg.Producer.Batch.OnResults; to != nil {
		userCode.Add(1)
		defer func() {
			userCode.Add(-1)
			if v := recover(); v != nil {
				_ = caught(&p.cfg, &p.panics, "a delivery callback", v) // the messages have their outcome
			}
		}()
		to.DeliveredBatch(run, d)
		return
	}
	if want := &p.cfg.Producer.Return; !p.async || d.Err == nil && !want.Successes || d.Err != nil && !want.Errors {
		return
	}
	for _, m := range run {
		select {
		case p.results <- m:
		case <-p.drop:
			p.unread.Add(1)
		}
	}
}
