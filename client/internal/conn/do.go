package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Need are wishes of one Do beside the connection's options. The zero value has none.
type Need struct {
	// MaxVersion caps the request's version, e.g. at what transactions v1 allow. 0: no cap.
	MaxVersion int16
	// Timeout for the answer. 0: what Do says.
	Timeout time.Duration
}

// ErrNoResponse refuses produce requests with acks=0 in Do: the broker would never answer.
var ErrNoResponse = errors.New("a produce request with acks=0 has no answer to wait for: use Submit with NoResponse")

// Do sends a control request in the highest common version (it calls req.SetVersion), waits for
// a slot, its turn and the answer, and returns the decoded answer. Error codes in the answer are
// the caller's to look at; a throttle time in it holds the next write back (KIP-219).
//
// The answer must come within RequestTimeout, or longer where the request itself gives the broker
// time: the request's own timeout, or a JoinGroup's rebalance timeout, plus 5 s. When ctx ends
// first, Do returns and the connection stays usable; the slot is free when the answer has come.
// A write in progress is bounded by WriteTimeout only.
//
// Errors: *ClosedError, *wire.VersionError, *DecodeError, *WaitError (nothing was sent), or one
// that wraps ctx.Err() (it was).
func (c *Conn) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return c.DoWith(ctx, req, Need{})
}

// DoWith is Do with wishes.
func (c *Conn) DoWith(ctx context.Context, req kmsg.Request, need Need) (kmsg.Response, error) {
	if p, ok := req.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
		return nil, ErrNoResponse
	}
	version, err := c.version(req.Key(), need.MaxVersion)
	if err != nil {
		return nil, err
	}
	req.SetVersion(version)
	if err := c.Acquire(ctx); err != nil {
		return nil, err
	}
	call, answer := c.newCall(req, need.Timeout)
	if err := c.submit(ctx, call); err != nil {
		return nil, err
	}
	body, err := c.await(ctx, req, answer)
	if err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	resp.SetVersion(version)
	if err := c.decode(resp, body); err != nil {
		return nil, err
	}
	c.throttleBy(resp)
	return resp, nil
}

// answer is what Done got.
type answer struct {
	body []byte
	err  error
}

// newCall encodes a request. The channel holds one answer: Done writes it without blocking, await
// reads it, nobody closes it.
func (c *Conn) newCall(req kmsg.Request, timeout time.Duration) (*Call, <-chan answer) {
	if timeout <= 0 {
		timeout = c.patience(req)
	}
	got := make(chan answer, 1)
	return &Call{
		Key: req.Key(), Version: req.GetVersion(),
		Body:    net.Buffers{req.AppendTo(nil)},
		Timeout: timeout,
		Done: func(body []byte, _ Times, err error) {
			// A copy: decoded answers refer to their bytes.
			got <- answer{append([]byte(nil), body...), err}
		},
	}, got
}

const brokerSlack = 5 * time.Second

// patience is how long the answer to a request may take.
func (c *Conn) patience(req kmsg.Request) time.Duration {
	var own int32
	switch r := req.(type) {
	case *kmsg.JoinGroupRequest:
		own = max(r.RebalanceTimeoutMillis, r.SessionTimeoutMillis)
	case kmsg.TimeoutRequest:
		own = r.Timeout()
	}
	if own <= 0 {
		return c.o.answerTimeout()
	}
	return max(c.o.answerTimeout(), time.Duration(own)*time.Millisecond+brokerSlack)
}

func (c *Conn) await(ctx context.Context, req kmsg.Request, got <-chan answer) ([]byte, error) {
	select {
	case a := <-got:
		return a.body, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("broker %s: gave up waiting for the answer to %s: %w", c.addr, kmsg.NameForKey(req.Key()), ctx.Err())
	}
}

// decode parses an answer whose version is set. Bytes of a broker must never panic, whatever the
// generated decoder does.
func (c *Conn) decode(resp kmsg.Response, body []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoder panicked: %v", p)
		}
		if err != nil {
			err = &DecodeError{Addr: c.addr, Key: resp.Key(), Version: resp.GetVersion(), Err: err}
		}
	}()
	return resp.ReadFrom(body)
}

// throttleBy obeys the throttle time of an answer. Brokers before KIP-219 have waited already.
func (c *Conn) throttleBy(resp kmsg.Response) {
	t, ok := resp.(kmsg.ThrottleResponse)
	if !ok {
		return
	}
	if millis, after := t.Throttle(); after && millis > 0 {
		c.o.Logger.Debug("throttled", "broker", c.addr, "millis", millis)
		c.Throttle(time.Duration(millis) * time.Millisecond)
	}
}

// roundTrip is a request of the connection's own, whose version is set: no slot, no throttling,
// and the turn is held by the caller.
func (c *Conn) roundTrip(ctx context.Context, req kmsg.Request) ([]byte, error) {
	call, got := c.newCall(req, 0)
	if _, err := c.write(call, false); err != nil {
		return nil, err
	}
	return c.await(ctx, req, got)
}
