package conn

import (
	"context"
	"math/rand/v2"
	"time"
)

// Re-authentication (KIP-368): a broker says how long a session lasts, and cuts a connection that
// sends anything but a new authentication after its end.

// scheduleReauth sets the timer of the next authentication at 85 … 95 % of a session's lifetime,
// spread so that many connections do not come at once. 0: the session does not end.
func (c *Conn) scheduleReauth(life time.Duration) {
	if life <= 0 {
		return
	}
	c.reauthIn(reauthAfter(life, rand.Float64()), c.since()+life)
}

// reauthAfter: share is 0 … 1. A lifetime too short to work with does not make a busy loop.
func reauthAfter(life time.Duration, share float64) time.Duration {
	return max(time.Duration(float64(life)*(0.85+0.10*share)), 10*time.Millisecond)
}

// reauthIn sets the timer, for a session that ends at a time since base.
func (c *Conn) reauthIn(after, end time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	// Owned by the Conn; fail stops the timer, and everything that reauthenticate waits for ends
	// with the connection. Nobody waits for it.
	c.reauth = time.AfterFunc(after, func() { c.reauthenticate(end) })
}

// reauthenticate has what it needs (a token may come from afar) while requests still flow. Then
// it keeps others from writing, lets what is in flight be answered (the broker takes nothing but
// SASL requests in between), authenticates, and goes on. A refusal closes the connection, as the
// broker would a little later.
func (c *Conn) reauthenticate(end time.Duration) {
	ctx, cancel := c.whileOpen()
	defer cancel()
	l, err := c.begin(ctx)
	if err != nil {
		c.reauthLater(err, end)
		return
	}
	if err := c.takeTurn(context.Background()); err != nil {
		return // closed
	}
	defer c.endTurn()
	if err := c.drain(); err != nil {
		return // closed
	}
	ctx, cancel = context.WithTimeout(context.Background(), c.o.DialTimeout)
	defer cancel()
	life, err := c.authenticate(ctx, l)
	if err != nil {
		c.fail(c.saslError(err))
		return
	}
	c.o.Logger.Debug("authenticated again", "broker", c.addr, "lifetime", life)
	c.scheduleReauth(life)
}

// reauthLater tries again for a token in half of the time that is left, or gives the connection
// up when there is little left: the next one will ask for a token of its own.
func (c *Conn) reauthLater(err error, end time.Duration) {
	const least = time.Second
	left := end - c.since()
	if left < 2*least {
		c.fail(err)
		return
	}
	c.o.Logger.Warn("no token yet to authenticate again with", "broker", c.addr, "error", err, "session ends in", left)
	c.reauthIn(left/2, end)
}

// whileOpen is a context that ends with the connection, and after DialTimeout.
func (c *Conn) whileOpen() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), c.o.DialTimeout)
	// Owned by reauthenticate; ends with the context, at its return at the latest. Nobody waits.
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// drain waits until nothing is in flight, with the turn held, so that nothing is added. It is
// bounded, since every request in flight has its deadline.
func (c *Conn) drain() error {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return c.err
	}
	if c.inFlightLocked() == 0 {
		c.mu.Unlock()
		return nil
	}
	drained := make(chan struct{})
	c.drained = drained
	c.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-c.done:
		return c.Err()
	}
}
