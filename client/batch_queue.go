package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// batchQueue holds what the asynchronous mode has taken and not begun to send. One goroutine (run)
// moves it into a call that lasts as long as the producer, so that a partition that is being tried
// again holds up nobody but itself.
type batchQueue struct {
	p        *BatchProducer
	flushing atomic.Int32 // flushes under way: what waits goes, whatever the triggers say
	pressed  atomic.Int32 // who waits for room: the same

	mu     sync.Mutex
	msgs   []*BatchMessage
	spare  []*BatchMessage
	bytes  int64
	oldest time.Time  // when the first of msgs came
	call   *batchCall // nil before the first message
}

func (q *batchQueue) init(p *BatchProducer) { q.p = p }

// enqueue is Send in the asynchronous mode.
func (p *BatchProducer) enqueue(ctx context.Context, msgs []*BatchMessage) error {
	if p.closing.Load() {
		return notTaken(msgs, 0, ErrClosed)
	}
	looking, release := p.within(ctx)
	p.prepare(looking, msgs, 0)
	release()
	most := chunk
	if b := p.cfg.Producer.Buffer.Messages; b > 0 {
		most = min(most, b)
	}
	for taken := 0; taken < len(msgs); {
		n := min(most, len(msgs)-taken)
		if err := p.takeIn(ctx, msgs[taken:taken+n]); err != nil {
			return notTaken(msgs, taken, err)
		}
		taken += n
	}
	return nil
}

// takeIn enters messages into the books, waiting for room, and queues them.
func (p *BatchProducer) takeIn(ctx context.Context, msgs []*BatchMessage) error {
	n, size := int64(len(msgs)), int64(0)
	for _, m := range msgs {
		size += int64(m.encoded.size)
	}
	if err := p.room(ctx, msgs, n, size); err != nil {
		return err
	}
	epoch, err := p.accept(n)
	if err != nil {
		p.buffer.release(n, size)
		p.queue.wake() // it may have waited for this
		return err
	}
	now := sinceOrigin()
	for _, m := range msgs {
		m.epoch, m.accepted = epoch, now
	}
	p.queue.push(msgs, size)
	return nil
}

// room takes messages' share of the buffer. While it is full the queue does not wait for a trigger,
// which might never fire.
func (p *BatchProducer) room(ctx context.Context, msgs []*BatchMessage, n, size int64) error {
	if p.buffer.try(n, size) {
		return nil
	}
	p.queue.pressed.Add(1)
	defer p.queue.pressed.Add(-1)
	p.queue.wake()
	if _, err := p.buffer.acquire(ctx, p.life.Done(), n, size); err != nil {
		return err
	}
	now := sinceOrigin()
	for _, m := range msgs {
		m.encoded.waited = now
	}
	return nil
}

// push queues messages, and starts the goroutine with the first.
func (q *batchQueue) push(msgs []*BatchMessage, size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.call == nil {
		q.call = q.p.call(q.p.life)
		q.p.work.Add(1)
		// Owned by the producer; ends with its life, when everything was decided; Close waits.
		go q.run(q.call)
	}
	first := len(q.msgs) == 0
	if first {
		q.oldest = time.Now()
	}
	q.msgs = append(q.msgs, msgs...)
	q.bytes += size
	if first || q.full() {
		q.call.wake()
	}
}

// wake has the goroutine look at the queue.
func (q *batchQueue) wake() {
	q.mu.Lock()
	c := q.call
	q.mu.Unlock()
	if c != nil {
		c.wake()
	}
}

// run sends what is queued until the producer's end.
func (q *batchQueue) run(c *batchCall) {
	defer q.p.work.Done()
	for {
		c.collect()
		now := time.Now()
		msgs, until := q.take(now)
		c.admit(msgs)
		q.giveBack(msgs)
		if c.ctx.Err() != nil {
			c.abandon()
			if q.over() {
				return
			}
			<-c.wakened // whoever takes in a message, or does not after all, or closes, wakes
			continue
		}
		if at := c.step(now); at.Before(until) {
			until = at
		}
		c.wait(until)
	}
}

// take gives what is queued when a trigger has fired, or else when to look again.
func (q *batchQueue) take(now time.Time) (msgs []*BatchMessage, until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.msgs) == 0 {
		return nil, far
	}
	if until = q.due(now); now.Before(until) {
		return nil, until
	}
	msgs = q.msgs
	q.msgs, q.spare, q.bytes = q.spare[:0], nil, 0
	return msgs, far
}

// due is when the queue is to be sent, at the latest. Called with mu held.
func (q *batchQueue) due(now time.Time) time.Time {
	cfg := &q.p.cfg.Producer
	switch f := &cfg.Flush; {
	case q.full(), q.flushing.Load() > 0, q.pressed.Load() > 0, q.p.life.Err() != nil:
		return now
	case f.Frequency > 0:
		return q.oldest.Add(f.Frequency)
	case cfg.DeliveryTimeout > 0:
		return q.oldest.Add(cfg.DeliveryTimeout / 2) // rather early than never: no trigger may come any more
	}
	return far
}

// full says that there is no time trigger to wait for. Called with mu held.
func (q *batchQueue) full() bool {
	f := &q.p.cfg.Producer.Flush
	none := f.Messages <= 0 && f.Bytes <= 0 && f.Frequency <= 0
	return none || f.Messages > 0 && len(q.msgs) >= f.Messages || f.Bytes > 0 && q.bytes >= int64(f.Bytes)
}

// giveBack keeps the memory of what was taken.
func (q *batchQueue) giveBack(msgs []*BatchMessage) {
	if msgs == nil {
		return
	}
	clear(msgs)
	q.mu.Lock()
	q.spare = msgs[:0]
	q.mu.Unlock()
}

// over says that nothing is queued, nor will be: the producer's books are closed, and empty.
func (q *batchQueue) over() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.p.closing.Load() && len(q.msgs) == 0 && q.p.accounts.total() == 0
}

// Results delivers the outcomes of the asynchronous mode when there is no Producer.Batch.OnResults:
// acknowledged messages if Producer.Return.Successes is on, failed ones unless Producer.Return.Errors
// is off. It must be read then, or Send waits once the bounds are full and nothing more is sent. It
// is closed at the end of Close.
func (p *BatchProducer) Results() <-chan *BatchMessage { return p.results }
