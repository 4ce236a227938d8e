package conn

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// keepBuffer is the largest own buffer that outlives the answer it was made for.
const keepBuffer = 1 << 20

// read is the reader goroutine: it takes answers off the transport and gives them to their calls,
// in order, until the transport fails.
func (c *Conn) read(br *bufio.Reader) {
	var own []byte
	var head [8]byte // out of the loop: it is allocated where it is declared
	for {
		if n, err := io.ReadFull(br, head[:]); err != nil {
			c.fail(c.readError(n, head, err))
			return
		}
		e, n, err := c.match(head)
		if err != nil {
			c.fail(err)
			return
		}
		if e.call == nil { // closed meanwhile
			return
		}
		if br.Buffered() < n {
			c.boundRead(e)
		}
		body, err := c.readBody(br, e.call, n, &own)
		if err != nil {
			c.fail(c.transportError("read", err))
			c.endRead(time.Time{})
			c.lose(e)
			return
		}
		now := time.Now()
		c.endRead(now)
		if c.o.Observer != nil {
			c.o.Observer.Answered(e.call.Key, n+len(head), now.Sub(e.written))
		}
		c.settle(e, body, Times{Written: e.written, Read: now}, nil)
		c.endIfRetired()
		if cap(own) > keepBuffer {
			own = nil
		}
	}
}

// match finds the call that an answer belongs to, and takes it out of pending: from here on the
// reader alone decides it. n is the number of bytes that follow.
func (c *Conn) match(head [8]byte) (e entry, n int, err error) {
	size := int32(binary.BigEndian.Uint32(head[:4]))
	corr := int32(binary.BigEndian.Uint32(head[4:]))
	if size < 4 || int64(size) > int64(c.o.MaxResponseBytes) {
		return e, 0, c.protocolError(head, fmt.Sprintf("an answer of %d bytes (allowed are 4 … %d)", size, c.o.MaxResponseBytes))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The answer may overtake the end of its request's write: wait for that, it is near.
	for c.writing && c.pending.len() == 1 && c.err == nil {
		c.wrote.Wait()
	}
	if c.err != nil {
		return e, 0, nil
	}
	if c.pending.len() == 0 {
		return e, 0, c.protocolError(head, fmt.Sprintf("an answer with correlation id %d while none is awaited", corr))
	}
	if want := c.pending.at(0).corr; want != corr {
		return e, 0, c.protocolError(head, fmt.Sprintf("an answer with correlation id %d where %d is awaited", corr, want))
	}
	e = c.pending.pop()
	c.readBy = e.by
	return e, int(size) - 4, nil
}

// boundRead lets the rest of an answer, which is not there yet, take ReadTimeout at most.
func (c *Conn) boundRead(e entry) {
	now := c.since()
	by := now + c.o.ReadTimeout
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && by < e.by {
		c.readBy = by
		c.armLocked(now, by)
	}
}

// endRead ends what match began; now is when the answer was complete, zero when it failed.
func (c *Conn) endRead(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readBy = 0
	if !now.IsZero() {
		c.lastUsed.Store(int64(now.Sub(c.base)))
	}
	if c.drained != nil && c.pending.len() == 0 {
		close(c.drained)
		c.drained = nil
	}
}

// settle decides a call that is in no list any more. The slot is given back after Done, so that
// with one request in flight nothing is sent before the outcome of what was is dealt with: what
// has to be sent again then goes first.
func (c *Conn) settle(e entry, body []byte, t Times, err error) {
	e.call.Done(body, t, err)
	if e.slot {
		c.Release()
		if err == nil {
			c.answers.Add(1)
		}
	}
}

// lose decides a call whose answer will not come; only after fail.
func (c *Conn) lose(e entry) {
	if c.o.Observer != nil {
		c.o.Observer.Lost(e.call.Key)
	}
	c.settle(e, nil, Times{Written: e.written}, c.sentError())
}

// readBody reads what follows the correlation id: the header's tagged fields, if it has any, and
// the body, into the caller's buffer or the connection's own.
func (c *Conn) readBody(br *bufio.Reader, call *Call, n int, own *[]byte) ([]byte, error) {
	if wire.FlexibleResponseHeader(call.Key, call.Version) {
		used, err := skipTags(br, n)
		if err != nil {
			return nil, err
		}
		n -= used
	}
	if call.Buffer != nil {
		if b := call.Buffer(n); len(b) >= n {
			b = b[:n]
			_, err := io.ReadFull(br, b)
			return b, err
		}
	}
	return readInto(br, n, own)
}

// readInto reads n bytes into *own, which grows as bytes arrive: a length alone, which costs a
// broker nothing, does not make us allocate it.
func readInto(br io.Reader, n int, own *[]byte) ([]byte, error) {
	const step = 1 << 20
	b := (*own)[:0]
	for len(b) < n {
		have := len(b)
		next := min(n, max(cap(b), have+max(step, have)))
		if next > cap(b) {
			grown := make([]byte, have, next)
			copy(grown, b)
			b = grown
		}
		b = b[:next]
		if _, err := io.ReadFull(br, b[have:]); err != nil {
			*own = b
			return nil, err
		}
	}
	*own = b
	return b, nil
}

// skipTags skips the tagged fields of a response header, within n bytes.
func skipTags(br *bufio.Reader, n int) (used int, err error) {
	uvarint := func() (v uint32) {
		for shift := 0; err == nil; shift += 7 {
			var b byte
			if used >= n || shift > 28 {
				err = fmt.Errorf("response header: %w", wire.ErrVarint)
				return 0
			}
			if b, err = br.ReadByte(); err != nil {
				return 0
			}
			used++
			v |= uint32(b&0x7f) << shift
			if b < 0x80 {
				return v
			}
		}
		return 0
	}
	for tags := uvarint(); tags > 0 && err == nil; tags-- {
		uvarint() // number
		size := uvarint()
		if err == nil && int64(size) > int64(n-used) {
			err = fmt.Errorf("response header: %w", wire.ErrLength)
		}
		if err == nil {
			var m int
			m, err = br.Discard(int(size))
			used += m
		}
	}
	return used, err
}
