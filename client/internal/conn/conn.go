// Package conn is one connection to one broker: dial, TLS, ApiVersions, SASL, pipelined requests
// in order, timeouts, throttling, re-authentication. It knows nothing of topics or batches.
//
// Two ways lead through it. Do sends a request of the protocol's definitions and waits: for
// control requests. Acquire and Submit are the hot path of produce and fetch: a slot is waited
// for first, so that a batch can be collected as late as possible, then an encoded body is
// written from the caller's own memory, and its Done is called when the answer is there.
//
// A connection that failed stays failed: everything in flight gets a *ClosedError, and the owner
// opens another one. Nothing is retried in here.
//
// # Goroutines and locks
//
// A Conn owns one goroutine, the reader, and at most two more while it re-authenticates; all end
// when it closes. Lock order: the writer's turn, then mu. Neither is held while Done is called.
package conn

import (
	"bufio"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// Defaults of Options.
const (
	DefaultTimeout          = 30 * time.Second
	DefaultMaxResponseBytes = 100<<20 + 1<<20
	// MaxThrottle bounds how long a broker can hold back the next request of a connection.
	MaxThrottle = 5 * time.Minute
)

// Options say how to connect. The zero value is a plaintext connection with one request in flight
// and all timeouts of 30 s. They are read only and may be shared by connections.
type Options struct {
	// Dial makes the transport; nil: a net.Dialer with KeepAlive. It must obey its context.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTimeout bounds Open as a whole. 0: 30 s.
	DialTimeout time.Duration
	// RequestTimeout is the longest wait for the answer to a request without a Timeout of its own,
	// counted from when its write began. 0: ReadTimeout.
	RequestTimeout time.Duration
	// ReadTimeout is the longest that the rest of an answer may take once it has begun to arrive.
	// 0: 30 s.
	ReadTimeout time.Duration
	// WriteTimeout is the longest that one write may take. 0: 30 s.
	WriteTimeout time.Duration
	// KeepAlive is the period of TCP keep-alive probes. 0: Go's default; negative: none.
	KeepAlive time.Duration
	// TLS makes it a TLS connection; nil: plaintext. ServerName is taken from the address when empty.
	TLS *tls.Config
	// SASL authenticates; nil: not at all.
	SASL Authenticator
	// ClientID is in every request's header.
	ClientID string
	// MaxInFlight is how many requests may await their answer; below 1 counts as 1.
	MaxInFlight int
	// MaxResponseBytes: a longer answer closes the connection before anything is allocated for
	// it. 0: 101 MiB.
	MaxResponseBytes int
	// MaxVersions caps the version of requests (the user's Version setting); nil: no cap.
	MaxVersions func(key int16) (max int16, capped bool)
	// Observer is told of requests and answers; nil: nobody is.
	Observer Observer
	// Logger gets what happens to the connection, at debug level; nil: silent.
	Logger *slog.Logger
}

// Observer is told what connections do, for metrics. Several goroutines call it at once, once or
// twice a request, and it holds them up: it must be short, and call nothing of the Conn.
type Observer interface {
	// Sent: a request of size bytes, its whole frame, is about to be written; awaited says that it
	// will be answered, and that Answered or Lost follows.
	Sent(key int16, size int, awaited bool)
	// Answered: the answer of size bytes, its whole frame, was read, took after the request's
	// write began.
	Answered(key int16, size int, took time.Duration)
	// Lost: no answer will come, since the connection closed.
	Lost(key int16)
	// Throttled: the broker asked for no request before d has passed.
	Throttled(d time.Duration)
}

// answerTimeout is how long an answer may take when its request does not say.
func (o Options) answerTimeout() time.Duration {
	if o.RequestTimeout > 0 {
		return o.RequestTimeout
	}
	return o.ReadTimeout
}

func (o Options) withDefaults() Options {
	for _, d := range []*time.Duration{&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout} {
		if *d <= 0 {
			*d = DefaultTimeout
		}
	}
	o.MaxInFlight = max(o.MaxInFlight, 1)
	if o.MaxResponseBytes <= 0 {
		o.MaxResponseBytes = DefaultMaxResponseBytes
	}
	if o.Dial == nil {
		d := net.Dialer{KeepAlive: o.KeepAlive}
		if o.KeepAlive > 0 { // by itself that is only how long it waits before the first probe
			d.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: o.KeepAlive, Interval: o.KeepAlive}
		}
		o.Dial = d.DialContext
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Conn is an open connection. All methods are safe for concurrent use.
type Conn struct {
	addr string
	o    Options
	raw  net.Conn // the transport; closing it ends every read and write
	nc   net.Conn // raw, or TLS over it
	base time.Time
	done chan struct{} // closed by fail; read by everything that waits

	slots chan struct{} // MaxInFlight tokens; Acquire writes, answers and Release read

	// turn is the right to write, held by whoever sends to it and given back by a receive. It
	// guards the fields up to mu.
	turn chan struct{}
	head []byte   // request header being built
	out  [][]byte // header and body being written
	pack *packer  // coalesces writes where there is no writev; nil on plain TCP
	bufs net.Buffers
	corr int32

	broker   map[int16]wire.Range // set once in Open, before anyone else has the Conn
	features map[string]int16

	retiring  atomic.Pointer[error] // why nothing more is sent; nil: not retired
	throttled atomic.Int64          // no write before this time since base; 0: not throttled
	lastUsed  atomic.Int64          // time since base of the last write or answer
	answers   atomic.Int64          // answers to what callers sent; 0 makes for a better error

	mu      sync.Mutex
	wrote   sync.Cond     // on mu: the write of the youngest request ended, or the Conn failed
	pending queue         // requests written (the youngest perhaps in part) and not answered
	writing bool          // the youngest of pending is still being written
	writeBy time.Duration // deadline of the write in progress, since base; 0: none
	readBy  time.Duration // deadline of the answer being read, no longer in pending; 0: none
	armed   time.Duration // when timer fires, since base; 0: not at all
	timer   *time.Timer   // runs expire
	reauth  *time.Timer   // runs reauthenticate; nil: sessions do not end
	drained chan struct{} // made by drain, closed by the reader when nothing is in flight
	err     *ClosedError  // nil while open; for requests that were not sent
	errSent *ClosedError  // the same for requests that were
}

// readBytes is what a connection reads ahead: enough for several answers to Produce requests in one
// read. Longer answers are read straight into their own memory. Idle connections hold it too.
const readBytes = 4 << 10

func newConn(addr string, raw, nc net.Conn, o Options) *Conn {
	c := &Conn{
		addr: addr, o: o, raw: raw, nc: nc, base: time.Now(),
		done:  make(chan struct{}),
		slots: make(chan struct{}, o.MaxInFlight),
		turn:  make(chan struct{}, 1),
	}
	if _, ok := nc.(*net.TCPConn); !ok {
		c.pack = &packer{w: nc}
	}
	c.wrote.L = &c.mu
	c.timer = time.AfterFunc(time.Hour, c.expire)
	c.timer.Stop()
	// Owned by the Conn; fail stops it by closing the transport. Nobody waits for it: it may be
	// the one that closes. It is gone soon after Done is closed.
	go c.read(bufio.NewReaderSize(nc, readBytes))
	return c
}

// Addr is the address given to Open.
func (c *Conn) Addr() string { return c.addr }

// Observer is that of the connection's Options.
func (c *Conn) Observer() Observer { return c.o.Observer }

// Done is closed when the connection is.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is nil while the connection is open, then a *ClosedError.
func (c *Conn) Err() error {
	select {
	case <-c.done:
		return c.err // written before done was closed
	default:
		return nil
	}
}

// InFlight is how many requests await their answer now.
func (c *Conn) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlightLocked()
}

func (c *Conn) inFlightLocked() int {
	n := c.pending.len()
	if c.readBy != 0 {
		n++
	}
	return n
}

// LastUsed is when the connection last wrote a request or read an answer.
func (c *Conn) LastUsed() time.Time { return c.base.Add(time.Duration(c.lastUsed.Load())) }

// Acquire waits for a slot, to be consumed by Submit or given back by Release. It fails when ctx
// ends or the connection is closed.
func (c *Conn) Acquire(ctx context.Context) error {
	if err := c.Err(); err != nil {
		return err
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return waitError(ctx, c.addr, "a free request slot")
	}
}

// TryAcquire is Acquire without waiting. It is false on a closed connection.
func (c *Conn) TryAcquire() bool {
	select {
	case <-c.done:
		return false
	default:
	}
	select {
	case c.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// Release gives back a slot that was acquired and not used.
func (c *Conn) Release() {
	select {
	case <-c.slots:
	default: // more released than acquired: a caller's mistake that must not block
	}
}

// since is the time since base, on the monotonic clock.
func (c *Conn) since() time.Duration { return time.Since(c.base) }
