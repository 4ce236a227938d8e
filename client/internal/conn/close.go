package conn

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Close closes the connection; every call in flight gets a *ClosedError that wraps cause, before
// Close returns, unless its answer is being handed over or its Submit is still writing: that
// Submit returns the error. nil stands for ErrClosed. Only the first Close counts.
func (c *Conn) Close(cause error) {
	if cause == nil {
		cause = ErrClosed
	}
	c.fail(cause)
}

// fail closes the connection for a cause, once, and decides what is in flight: all of pending but
// the request being written, which its writer decides. What is being read is the reader's.
func (c *Conn) fail(cause error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = &ClosedError{Addr: c.addr, Cause: cause}
	c.errSent = &ClosedError{Addr: c.addr, Cause: cause, Sent: true}
	var orphans []entry
	left := 0
	if c.writing {
		left = 1
	}
	for c.pending.len() > left {
		orphans = append(orphans, c.pending.pop())
	}
	c.timer.Stop()
	if c.reauth != nil {
		c.reauth.Stop()
	}
	close(c.done)
	c.wrote.Broadcast()
	c.mu.Unlock()

	// The transport, not the TLS layer, which would wait to say goodbye to a peer that is gone.
	_ = c.raw.Close()
	c.o.Logger.Debug("connection closed", "broker", c.addr, "cause", cause, "inFlight", len(orphans))
	for _, e := range orphans {
		c.lose(e)
	}
}

// Retire closes the connection for a cause as soon as nothing is in flight; until then answers
// come as ever, each within its time, while what is submitted is refused with a *ClosedError.
func (c *Conn) Retire(cause error) {
	c.retiring.CompareAndSwap(nil, &cause)
	c.endIfRetired()
}

// endIfRetired closes a retired connection that has nothing left to do.
func (c *Conn) endIfRetired() {
	cause := c.retiring.Load()
	if cause == nil {
		return
	}
	c.mu.Lock()
	busy := c.inFlightLocked() > 0 || c.writeBy != 0
	c.mu.Unlock()
	if !busy {
		c.fail(*cause)
	}
}

// sentError is the error of a request that was sent; only after fail.
func (c *Conn) sentError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errSent
}

// armLocked makes sure that expire runs at or before by. In a steady stream of requests the timer
// is armed for an older request already, so that it is set about once per timeout, not once per
// request.
func (c *Conn) armLocked(now, by time.Duration) {
	if c.armed == 0 || by < c.armed {
		c.armed = by
		c.timer.Reset(by - now)
	}
}

// expire closes the connection when something took too long (any one of what is in flight: the
// broker answers in order, so those behind it wait too), and arms the timer again otherwise.
func (c *Conn) expire() {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	now := c.since()
	next, late := c.earliestLocked()
	if next == 0 || next > now {
		c.armed = 0
		if next != 0 {
			c.armLocked(now, next)
		}
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.fail(late)
}

// earliestLocked is the earliest deadline, 0 when there is none, and the error of missing it.
func (c *Conn) earliestLocked() (by time.Duration, late error) {
	what := ""
	if c.writeBy != 0 {
		by, what = c.writeBy, "a request could not be written; the network or the broker is stuck"
	}
	if c.readBy != 0 && (by == 0 || c.readBy < by) {
		by, what = c.readBy, "an answer stopped half-way"
	}
	for i := range c.pending.len() {
		if e := c.pending.at(i); by == 0 || e.by < by {
			by, what = e.by, fmt.Sprintf("no answer to %s within %v", kmsg.NameForKey(e.call.Key), e.by-e.written.Sub(c.base))
		}
	}
	return by, fmt.Errorf("%w: %s", ErrTimeout, what)
}
