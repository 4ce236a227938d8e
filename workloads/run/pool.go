package run

import (
	"context"
	"sync"
)

// pool holds one producer's messages. The load goroutine takes them one by one from a list of
// its own; outcomes hand back whole runs to a second list under the lock, and when the first
// is used up the two change places. So neither side locks per message.
//
// It starts small and grows as messages stay open, up to max: that is the engine's own bound,
// far above a client's, so that a target without one cannot fill memory.
type pool struct {
	grow func(n int) []*Message // makes n more
	max  int

	// Of the load goroutine alone.
	local []*Message
	all   []*Message // every message made

	mu   sync.Mutex
	free []*Message // handed back
	// waiting is true while the load goroutine waits for one to come back.
	waiting bool
	// closed is true once open messages were counted as unknown: outcomes come too late.
	closed  bool
	ledgers []*ledger // one a group of consumers; none when arrivals are not checked

	// wake holds a token when waiting ended. Outcomes write it, the load goroutine reads it, it
	// is never closed.
	wake chan struct{}
}

func newPool(first, most int, grow func(n int) []*Message) *pool {
	p := &pool{grow: grow, max: most, wake: make(chan struct{}, 1)}
	p.more(min(first, most))
	return p
}

// more makes n messages, with room to hand all of them back without allocating.
func (p *pool) more(n int) {
	made := p.grow(n)
	p.all = append(p.all, made...)
	p.local = append(p.local, made...)
	p.mu.Lock()
	if cap(p.free) < len(p.all) {
		p.free = append(make([]*Message, 0, 2*len(p.all)), p.free...)
	}
	p.mu.Unlock()
}

// take gives a message to fill, or nil when all are open and no more may be made.
func (p *pool) take() *Message {
	if len(p.local) == 0 && !p.refill() {
		return nil
	}
	n := len(p.local) - 1
	m := p.local[n]
	p.local = p.local[:n]
	return m
}

// refill fetches what was handed back, or makes more.
func (p *pool) refill() bool {
	p.mu.Lock()
	p.local, p.free = p.free, p.local
	p.mu.Unlock()
	if len(p.local) > 0 {
		return true
	}
	if n := min(len(p.all), p.max-len(p.all)); n > 0 {
		p.more(n)
		return true
	}
	return false
}

// untake puts back a message that was taken and not sent.
func (p *pool) untake(m *Message) {
	m.open = false
	p.local = append(p.local, m)
}

// wait blocks until a message was handed back or ctx ended; false when it ended.
func (p *pool) wait(ctx context.Context) bool {
	p.mu.Lock()
	if len(p.free) > 0 {
		p.mu.Unlock()
		return true
	}
	p.waiting = true
	p.mu.Unlock()
	select {
	case <-p.wake:
		return true
	case <-ctx.Done():
		return false
	}
}

// decided records a run through rec and takes its messages back. The pool's lock is held
// throughout (lock order: pool, then recorder), so that a message is counted as decided or as
// unknown and never as both.
func (p *pool) decided(batch []*Message, acked int64, rec *recorder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	for _, m := range batch {
		m.open = false
	}
	rec.record(batch, acked)
	for _, l := range p.ledgers {
		l.ack(batch)
	}
	p.free = append(p.free, batch...)
	if p.waiting {
		p.waiting = false
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// cut ends the pool: f is called with every message that is still open, whose outcome will not
// be waited for any longer. Called when the load goroutine has ended.
func (p *pool) cut(f func(m *Message)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, m := range p.all {
		if m.open {
			f(m)
		}
	}
}
