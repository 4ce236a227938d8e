package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// Call is one request of the hot path. The caller may use it again once it is decided.
type Call struct {
	Key, Version int16
	// Body is the encoded request after its header. It and the memory it points to stay the
	// caller's; they must not change until the call is decided. On a plain TCP connection it is
	// written by writev, without a copy.
	Body net.Buffers
	// NoResponse: the broker sends no answer (acks=0). Such a call uses no slot, and Done is
	// called by Submit itself after the write.
	NoResponse bool
	// Timeout for the answer, from the begin of the write. 0: Options.RequestTimeout.
	Timeout time.Duration
	// Buffer gives the memory to read an answer's body of n bytes into, n ≤ MaxResponseBytes.
	// nil, or a result shorter than n: the connection's own, valid during Done only.
	Buffer func(n int) []byte
	// Done gets the answer's body, or the error. It is called by the reader's goroutine or by
	// whoever closes the connection, and holds up every other answer: it must not block, and
	// must not call Acquire, Submit or Do. Dones of one connection come in the order of the
	// requests, one at a time, except that at its closing several may run at once.
	Done func(body []byte, t Times, err error)
}

// Times of a call; zero where it did not come so far.
type Times struct {
	// Written is when the write began (the answer may be there before the write has returned),
	// so that Read − Written holds the request's transfer too. With NoResponse it is when the
	// write had ended.
	Written time.Time
	// Read is when the whole answer had been read.
	Read time.Time
}

// Submit writes a call in the caller's goroutine, one caller at a time, and consumes the slot
// that the caller acquired (none for NoResponse). It may wait for other writers, for a throttle
// time and for re-authentication to end, and returns when the call is written.
//
// Either Submit returns nil, and Done is called exactly once; or it returns a *ClosedError, the
// slot is given back, and Done is not called. ClosedError.Sent says whether any of the request
// may have reached the broker.
func (c *Conn) Submit(call *Call) error {
	return c.submit(context.Background(), call)
}

// submit is Submit whose waits (not its write) obey ctx too.
func (c *Conn) submit(ctx context.Context, call *Call) error {
	slot := !call.NoResponse
	err := c.takeTurn(ctx)
	if err == nil {
		err = c.awaitThrottle(ctx)
		var written time.Time
		if err == nil {
			written, err = c.write(call, slot)
		}
		c.endTurn()
		if err == nil && !slot { // of a call with an answer nothing is looked at any more: it may be in use again
			call.Done(nil, Times{Written: written}, nil)
		}
	}
	if err != nil && slot {
		c.Release()
	}
	return err
}

func (c *Conn) takeTurn(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return waitError(ctx, c.addr, "its turn to write")
	}
}

func (c *Conn) endTurn() { <-c.turn }

// Throttle makes the next write wait for d from now, as a broker asks for in its answers
// (KIP-219): Do looks at them itself, who uses Submit calls Throttle. At most MaxThrottle.
func (c *Conn) Throttle(d time.Duration) {
	if d <= 0 {
		return
	}
	if c.o.Observer != nil {
		c.o.Observer.Throttled(d)
	}
	until := int64(c.since() + min(d, MaxThrottle))
	for {
		old := c.throttled.Load()
		if old >= until || c.throttled.CompareAndSwap(old, until) {
			return
		}
	}
}

// awaitThrottle is called with the turn held.
func (c *Conn) awaitThrottle(ctx context.Context) error {
	for {
		until := c.throttled.Load()
		if until == 0 {
			return nil
		}
		left := time.Duration(until) - c.since()
		if left <= 0 {
			c.throttled.CompareAndSwap(until, 0)
			continue
		}
		t := time.NewTimer(left)
		select {
		case <-t.C:
		case <-c.done:
			t.Stop()
			return c.Err()
		case <-ctx.Done():
			t.Stop()
			return waitError(ctx, c.addr, "the end of the broker's throttling")
		}
	}
}

// write writes a call with the turn held. The call is in pending before its first byte leaves,
// since the answer may overtake the end of the write. While it is being written neither the
// reader nor fail touches it, so that its memory is not given back under the write.
func (c *Conn) write(call *Call, slot bool) (written time.Time, err error) {
	c.corr++
	size := c.frame(call)
	now := time.Now()
	if err := c.beginWrite(call, now, slot); err != nil {
		return now, err
	}
	if c.o.Observer != nil {
		c.o.Observer.Sent(call.Key, size, !call.NoResponse)
	}
	n, werr := c.writeOut(size)
	if call.NoResponse && werr == nil {
		now = time.Now()
	}
	err = c.endWrite(call, n, werr)
	if err != nil && !call.NoResponse && c.o.Observer != nil {
		c.o.Observer.Lost(call.Key)
	}
	c.endIfRetired()
	return now, err
}

// frame builds header and body in out, and returns their size.
func (c *Conn) frame(call *Call) int {
	h := c.head[:0]
	h = append(h, 0, 0, 0, 0)
	h = wire.AppendInt16(h, call.Key)
	h = wire.AppendInt16(h, call.Version)
	h = wire.AppendInt32(h, c.corr)
	h = wire.AppendStr(h, c.o.ClientID, false) // never compact, also in header v2
	h = wire.AppendTags(h, wire.Flexible(call.Key, call.Version))
	size := len(h)
	c.out = append(c.out[:0], h)
	for _, b := range call.Body {
		if len(b) > 0 {
			c.out = append(c.out, b)
			size += len(b)
		}
	}
	binary.BigEndian.PutUint32(h, uint32(size-4))
	c.head = h
	return size
}

// beginWrite registers the call and its deadlines.
func (c *Conn) beginWrite(call *Call, now time.Time, slot bool) error {
	at := now.Sub(c.base)
	timeout := call.Timeout
	if timeout <= 0 {
		timeout = c.o.answerTimeout()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if cause := c.retiring.Load(); cause != nil {
		return &ClosedError{Addr: c.addr, Cause: *cause}
	}
	c.writeBy = at + c.o.WriteTimeout
	if !call.NoResponse {
		by := at + timeout
		c.pending.push(entry{call: call, written: now, by: by, corr: c.corr, slot: slot})
		c.writing = true
		c.armLocked(at, min(by, c.writeBy))
	} else {
		c.armLocked(at, c.writeBy)
	}
	c.lastUsed.Store(int64(at))
	return nil
}

// writeOut writes out by writev, or packed where the transport has none.
func (c *Conn) writeOut(size int) (int64, error) {
	if c.pack != nil {
		return c.pack.write(c.out, size)
	}
	c.bufs = c.out
	n, err := c.bufs.WriteTo(c.nc)
	clear(c.out) // keep nothing of the caller's alive
	return n, err
}

// endWrite takes the call back when it cannot be answered any more.
func (c *Conn) endWrite(call *Call, n int64, werr error) error {
	if werr != nil {
		if !c.isClosed() {
			c.fail(c.transportError("write", werr))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeBy = 0
	mine := c.writing
	c.writing = false
	c.wrote.Broadcast()
	if c.err == nil {
		return nil
	}
	if mine {
		c.pending.popLast()
	} else if werr == nil {
		return nil // NoResponse, and all of it had left before the connection closed
	}
	if n == 0 && werr != nil && c.pack == nil {
		return c.err
	}
	return c.errSent
}

func (c *Conn) isClosed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// packer writes many small buffers as few writes of up to 32 KiB: TLS makes a record of each
// write. Large buffers are not copied.
type packer struct {
	w   net.Conn
	buf []byte
}

const packBytes = 32 << 10

func (p *packer) write(bufs [][]byte, size int) (n int64, err error) {
	if p.buf == nil {
		p.buf = make([]byte, 0, packBytes)
	}
	p.buf = p.buf[:0]
	for _, b := range bufs {
		large := len(b) >= packBytes/2
		if large || len(p.buf)+len(b) > packBytes {
			if n, err = p.flush(n); err != nil {
				return n, err
			}
		}
		if large {
			m, err := p.w.Write(b)
			n += int64(m)
			if err != nil {
				return n, err
			}
			continue
		}
		p.buf = append(p.buf, b...)
	}
	n, err = p.flush(n)
	if err == nil && n != int64(size) {
		err = errors.New("short write")
	}
	clear(bufs)
	return n, err
}

func (p *packer) flush(n int64) (int64, error) {
	if len(p.buf) == 0 {
		return n, nil
	}
	m, err := p.w.Write(p.buf)
	p.buf = p.buf[:0]
	return n + int64(m), err
}
