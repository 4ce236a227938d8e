package client

import (
	"context"
	"io"
	"slices"
)

// FetchBatch fills buf with messages of one fetched batch, at least one, and returns how many.
// It waits while there are none. The batch's other messages come with the next calls.
//
// This is the hot path: keys, values and headers alias the reader's buffers and are valid until
// the next FetchBatch, which uses their memory again. Copy what must live longer, or use
// FetchMessage. One goroutine at a time.
//
// Errors: io.EOF after Close, ErrClosed after the client's, ctx's error, or a *ReadError for one
// partition. After a *ReadError the other partitions can be read on; when none is left, every
// call returns the last one.
func (r *Reader) FetchBatch(ctx context.Context, buf []Message) (int, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	r.take.Lock()
	for i, b := range r.lent {
		b.release()
		r.lent[i] = nil
	}
	r.lent, r.headers, r.lentHeaders = r.lent[:0], r.headers[:0], 0
	r.take.Unlock()
	return r.fetch(ctx, buf, false, func() {
		r.cur.buf.retain()
		r.lent = append(r.lent, r.cur.buf)
		r.lentHeaders = len(r.headers)
	})
}

// FetchMessage returns the next message, which owns its memory. It waits while there is none.
// Errors are those of FetchBatch.
func (r *Reader) FetchMessage(ctx context.Context) (Message, error) {
	var one [1]Message
	_, err := r.fetch(ctx, one[:], true, func() {
		one[0].Headers = slices.Clone(one[0].Headers)
		r.headers = r.headers[:r.lentHeaders]
	})
	if err != nil {
		return Message{}, err
	}
	return one[0], nil
}

// fetch waits until there are messages, and calls keep with take held once they are in buf. Keys
// and values alias the reader's buffers unless own; headers are in r.headers either way.
func (r *Reader) fetch(ctx context.Context, buf []Message, own bool, keep func()) (int, error) {
	for {
		if err := r.usable(ctx); err != nil {
			return 0, err
		}
		r.take.Lock()
		n, err := r.fill(buf, own)
		if n > 0 {
			keep()
		}
		r.take.Unlock()
		if err != nil {
			r.asks.Add(1)
		}
		if n > 0 || err != nil {
			return n, err
		}
		r.await(ctx)
	}
}

// await waits until there may be something, or no more sense in waiting.
func (r *Reader) await(ctx context.Context) {
	r.asks.Add(1)
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	if r.away.Load() {
		signal(r.group.asked)
	}
	select {
	case <-r.ready:
	case <-ctx.Done():
	case <-r.life.Done():
	}
}

// asking says how many times the application has asked for messages so far, as a number that grows,
// and whether it waits for some.
func (r *Reader) asking() (times int64, waits bool) {
	r.mu.Lock()
	times = r.stats.Messages
	r.mu.Unlock()
	return times + r.asks.Load(), r.waiting.Load() > 0
}

func (r *Reader) usable(ctx context.Context) error {
	if r.life.Err() != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed {
			return io.EOF
		}
		return ErrClosed
	}
	return ctx.Err()
}

// Err is the error that every call for messages returns from now on: io.EOF after Close, ErrClosed after the
// client's, or why the reader's membership of its group has ended for good. nil while there may be messages. It
// waits for nothing, takes nothing, and may be called at any time: whoever waits for a group to settle before
// reading learns here that it never will.
func (r *Reader) Err() error {
	if err := r.usable(context.Background()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// fill takes what is there, without waiting: messages, an error, or neither. Called with take.
func (r *Reader) fill(buf []Message, own bool) (int, error) {
	if len(buf) == 1 && r.another(buf, own) {
		return 1, nil
	}
	for {
		next, ok, err := r.current()
		r.rewindMarks()
		if !ok || err != nil {
			return 0, err
		}
		n, after, err := r.read(buf, next, own)
		if !r.publish(buf[:n], after) {
			continue // SetOffset came in between: what was read is not wanted any more
		}
		if err != nil {
			if err = r.damaged(err); err == nil {
				continue
			}
			return 0, err
		}
		if n > 0 {
			return n, nil
		}
	}
}

// another is the short way of FetchMessage, while the batch that is being read has a next message:
// everything under one lock, for reading a record takes no longer than a lock does. False: nothing
// was delivered, and the long way must be gone, which also finds out why.
func (r *Reader) another(buf []Message, own bool) bool {
	c := &r.cur
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := c.block.p; r.failed != nil || p == nil || p.Version != c.block.version || c.left == 0 || c.bad != nil {
		return false
	}
	n, next, err := r.readBatch(buf, c.block.p.pos, own)
	if err != nil {
		return false // it is the cursor's now
	}
	r.publishLocked(buf[:n], next)
	return n == 1
}

// current makes sure that the cursor has something to read, and returns the position of its
// partition. Not ok: nothing is there.
func (r *Reader) current() (next int64, ok bool, err error) {
	c := &r.cur
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		r.againLocked() // for whoever else waits
		return 0, false, r.failed
	}
	for {
		if p := c.block.p; p != nil && p.Version == c.block.version && !c.empty() {
			return p.pos, true, nil
		}
		c.drop()
		if r.queue.n == 0 {
			r.roomLocked()
			if r.standsStillLocked() {
				return 0, false, r.lastErr
			}
			return 0, false, nil
		}
		b := r.queue.pop()
		r.batches -= b.batches
		r.roomLocked()
		if b.p.Version != b.version {
			b.buf.release()
			continue
		}
		if b.err != nil {
			r.againLocked()
			return 0, false, b.err
		}
		if b.from < b.p.pos && len(b.records) == 0 {
			r.cutLocked(b.p)
		}
		b.p.pos = b.from
		c.load(b)
	}
}

// publish moves the position of the cursor's partition, and counts. It returns false when the
// partition was moved elsewhere meanwhile.
func (r *Reader) publish(read []Message, next int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cur.block.p.Version != r.cur.block.version {
		return false
	}
	r.publishLocked(read, next)
	return true
}

func (r *Reader) publishLocked(read []Message, next int64) {
	p := r.cur.block.p
	p.pos = next
	if len(read) > 0 {
		p.posEpoch = read[len(read)-1].LeaderEpoch
		r.stats.Messages += int64(len(read))
		r.stats.Bytes += int64(r.cur.bytes)
	}
	if !r.cur.empty() {
		r.againLocked()
	}
}

// damaged stops the cursor's partition at what cannot be read, unless that is not wanted any more.
// Called with take.
func (r *Reader) damaged(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.cur.block.p
	if p.Version != r.cur.block.version {
		return nil
	}
	failure := r.errorLocked(p, err)
	r.stats.Errors++
	r.stopLocked(p, failure)
	r.cur.drop()
	r.againLocked()
	return failure
}

// againLocked leaves a token for the next consumer when something is there to read.
func (r *Reader) againLocked() {
	if r.queue.n > 0 || !r.cur.empty() || r.standsStillLocked() || r.failed != nil {
		signal(r.ready)
	}
}

// standsStillLocked says that there are partitions and that each of them was stopped by a failure.
func (r *Reader) standsStillLocked() bool { return r.moving == 0 && len(r.parts) > 0 }

// signal leaves a token unless one is there.
func signal(c chan struct{}) {
	if len(c) == cap(c) { // cheaper than to find it out by sending
		return
	}
	select {
	case c <- struct{}{}:
	default:
	}
}
