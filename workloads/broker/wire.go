package broker

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"
)

// errCut is what a write to a connection that a fault closed returns to kfake.
var errCut = errors.New("connection cut by a scripted fault")

// listener hands kfake connections that the cluster's faults can reach.
type listener struct {
	net.Listener
	faults *faults
	port   int
}

// Accept waits for a connection; while the node is unreachable it closes what it accepts.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if w := l.faults.adopt(c, l.port); w != nil {
			return w, nil
		}
		_ = c.Close()
	}
}

// conn follows the frames of one connection, to know which request each answer belongs to.
//
// kfake reads a connection from one goroutine, writes whole answers from another, and answers
// in order. Closing is safe from any goroutine.
type conn struct {
	net.Conn
	faults *faults
	port   int

	in framer // reading goroutine only

	mu      sync.Mutex // guards pending
	pending []exchange // requests without an answer so far, oldest first

	once   sync.Once
	closed chan struct{} // closed by Close; ends a write that a fault holds
}

// exchange is one request: its key, version and correlation id.
type exchange struct {
	key, version int16
	corr         int32
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.feed(p[:n], func(x exchange) {
		c.mu.Lock()
		c.pending = append(c.pending, x)
		c.mu.Unlock()
		c.faults.requested(x.key, x.version)
	})
	return n, err
}

// Write sends one answer, after what the faults say about it.
func (c *conn) Write(p []byte) (int, error) {
	key, known := c.answered(p)
	if known {
		if !c.faults.admit(key, c.closed) {
			_ = c.Close()
			return 0, errCut
		}
	}
	return c.Conn.Write(p)
}

// answered finds the request that the frame answers. Requests before it had no answer
// (acks=0) and are forgotten.
func (c *conn) answered(frame []byte) (key int16, known bool) {
	if len(frame) < 8 {
		return 0, false
	}
	corr := int32(binary.BigEndian.Uint32(frame[4:8]))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, x := range c.pending {
		if x.corr == corr {
			c.pending = append(c.pending[:0], c.pending[i+1:]...)
			return x.key, true
		}
	}
	return 0, false
}

// Close closes the connection once and ends a held write.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		close(c.closed)
		c.faults.forget(c)
		err = c.Conn.Close()
	})
	return err
}

// reset closes the connection with a TCP reset, as a crashed process does.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// framer cuts a byte stream into request frames and reads the first fields of each. The zero
// value is at the start of a stream.
type framer struct {
	head [12]byte // size, key, version, correlation id
	have int      // bytes of head read
	skip int64    // bytes of the frame still to come after head
}

// feed takes the next bytes and calls request for every frame whose head is complete.
func (f *framer) feed(p []byte, request func(exchange)) {
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, int64(len(p)))
			f.skip -= n
			p = p[n:]
			continue
		}
		n := copy(f.head[f.have:], p)
		f.have += n
		p = p[n:]
		if f.have < len(f.head) {
			return
		}
		f.have = 0
		f.skip = max(int64(binary.BigEndian.Uint32(f.head[0:4]))-8, 0)
		request(exchange{
			key:     int16(binary.BigEndian.Uint16(f.head[4:6])),
			version: int16(binary.BigEndian.Uint16(f.head[6:8])),
			corr:    int32(binary.BigEndian.Uint32(f.head[8:12])),
		})
	}
}

// wait returns true after d, or false as soon as done is closed.
func wait(d time.Duration, done <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}
