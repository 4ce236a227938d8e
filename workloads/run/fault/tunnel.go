package fault

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// tunnel is one client's connection and the connection to the broker that goes with it. Four
// goroutines serve it: one reads and one writes in each direction.
type tunnel struct {
	link       *link
	client     net.Conn
	ctx        context.Context
	end        context.CancelFunc
	unanswered pending
	rand       [2]*rand.Rand // of requests and of answers; each its reader's own

	mu     sync.Mutex
	broker net.Conn // nil until dialled
	over   bool
	halves int     // directions that ended in order
	gone   [2]bool // directions that swallow everything, before there are lines
	lines  [2]*line
}

// The two directions.
const (
	up   = 0 // requests
	down = 1 // answers
)

func newTunnel(l *link, c net.Conn, number uint64) *tunnel {
	t := &tunnel{link: l, client: c}
	t.ctx, t.end = context.WithCancel(l.proxy.life)
	for way := range t.rand {
		t.rand[way] = rand.New(rand.NewPCG(l.proxy.o.Seed, uint64(l.number)<<48|number<<1|uint64(way)))
	}
	return t
}

// path is what a direction is like now.
func (t *tunnel) path(way int) (Path, <-chan struct{}) {
	s := t.link.now.Load()
	if way == up {
		return s.ToBroker, s.changed
	}
	return s.ToClient, s.changed
}

// serve forwards until the connection has ended.
func (t *tunnel) serve() {
	defer t.end()
	t.vanish(t.link.now.Load().Fault)
	if t.swallowed() {
		return
	}
	broker, err := t.dial()
	if err != nil {
		t.cut(Reset)
		return
	}
	t.mu.Lock()
	over := t.over
	t.broker = broker
	for way, to := range []net.Conn{broker, t.client} {
		l := newLine(t.ctx, to, t.link.proxy.o.Buffer)
		l.path = func() (Path, <-chan struct{}) { return t.path(way) }
		l.happen = func(e event) { t.happen(way, e) }
		l.total = &t.link.toBroker
		if way == down {
			l.total = &t.link.toClient
		}
		l.gone.Store(t.gone[way])
		t.lines[way] = l
	}
	t.mu.Unlock()
	if over {
		reset(broker)
		return
	}
	var all sync.WaitGroup
	// Owned by serve, which waits; all end when the connection does: readers and writers by
	// errors of the sockets, which cut closes, writers also by ctx.
	all.Go(func() { t.read(up, t.client) })
	all.Go(func() { t.read(down, broker) })
	all.Go(t.lines[up].write)
	all.Go(t.lines[down].write)
	all.Wait()
	_ = broker.Close()
	_ = t.client.Close()
}

// swallowed serves a connection that was made into a black hole, and says whether it was.
func (t *tunnel) swallowed() bool {
	t.mu.Lock()
	both := t.gone[up] && t.gone[down]
	t.mu.Unlock()
	if both {
		_, _ = io.Copy(io.Discard, t.client) // until the client gives up, or a cut
		_ = t.client.Close()
	}
	return both
}

func (t *tunnel) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(t.ctx, dialBound)
	defer cancel()
	return t.link.proxy.o.Dial(ctx, "tcp", t.link.target)
}

// vanish makes the directions that the fault swallows swallow everything from now on.
func (t *tunnel) vanish(f Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for way, p := range []Path{f.ToBroker, f.ToClient} {
		if p.Vanish {
			t.gone[way] = true
			if l := t.lines[way]; l != nil {
				l.gone.Store(true)
			}
		}
	}
}

// cut ends the connection now.
func (t *tunnel) cut(how End) {
	t.mu.Lock()
	again := t.over
	t.over = true
	client, broker := t.client, t.broker
	t.mu.Unlock()
	t.end()
	if how == Finish {
		if !again {
			finish(client, broker)
		}
		return
	}
	reset(client)
	if broker != nil {
		reset(broker)
	}
}

// finish ends both connections in order: each side reads the end of the stream. The readers read
// on, since closing a socket with something unread resets it, until the other sides close, or
// for a bounded time.
func finish(conns ...net.Conn) {
	for _, c := range conns {
		if c == nil {
			continue
		}
		_ = c.SetReadDeadline(time.Now().Add(lingerBound))
		closeWrite(c)
	}
}

func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite() // an error means that it has ended already
		return
	}
	_ = c.Close()
}

// happen is called by a direction's writer at the end of what it forwards.
func (t *tunnel) happen(way int, e event) {
	if t.ctx.Err() != nil {
		return // it has been cut
	}
	switch e {
	case halfClose:
		t.mu.Lock()
		t.halves++
		both := t.halves == 2
		to := t.lines[way].to
		t.mu.Unlock()
		closeWrite(to)
		if both {
			t.end()
		}
	case cutFinish:
		t.cut(Finish)
	case cutReset, nothing:
		t.cut(Reset)
	}
}

// broken is what an error of a socket means for the other side: a reset is passed on as one.
func broken(err error) event {
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return cutReset
	}
	return cutFinish
}

// read takes what one side sends and puts it on its way.
func (t *tunnel) read(way int, from net.Conn) {
	l := t.lines[way]
	var f feeder = newRequests(t, l)
	if way == down {
		f = newAnswers(t, l)
	}
	buf := make([]byte, chunkBytes)
	for {
		n, err := from.Read(buf)
		if n > 0 && t.ctx.Err() == nil {
			f.feed(buf[:n], time.Now())
			l.deliver()
		}
		if err != nil {
			t.ended(l, way, err)
			return
		}
	}
}

// feeder puts what was read on its way, frame by frame.
type feeder interface {
	feed(p []byte, now time.Time)
}

// ended passes on the end of what one side sends.
func (t *tunnel) ended(l *line, way int, err error) {
	if t.ctx.Err() != nil {
		return
	}
	if then := broken(err); then == cutReset || l.gone.Load() {
		t.cut(Reset)
		return
	}
	path, _ := t.path(way)
	l.end(halfClose, time.Now().Add(path.Delay))
	signal(l.more)
}

// shift is how much later than now the bytes of a frame arrive that begins now.
func (t *tunnel) shift(way int) time.Duration {
	path, _ := t.path(way)
	draw := t.rand[way].Float64() // for every frame, so that the n-th draw is the n-th frame's
	return path.Delay + time.Duration(draw*float64(path.Jitter))
}

// requests follows the frames that a client sends.
type requests struct {
	t     *tunnel
	line  *line
	split splitter
	now   time.Time
	shift time.Duration
	any   bool
}

// requestHead is length, key, version and correlation id.
const requestHead = 12

func newRequests(t *tunnel, l *line) *requests {
	return &requests{t: t, line: l, split: splitter{head: requestHead}}
}

func (r *requests) feed(p []byte, now time.Time) {
	if !r.any {
		r.any = true
		if p[0] == 0x16 { // of a TLS record; a request would have to be 369 MB long
			r.t.link.proxy.failed(fmt.Errorf("fault proxy: a client of broker %s speaks TLS, and its answers cannot be rewritten: "+
				"give the proxy the brokers' PLAINTEXT or SASL_PLAINTEXT listeners", r.t.link.target))
			r.t.cut(Reset)
			return
		}
	}
	r.now = now
	r.split.feed(p, r.begin, r.more)
}

func (r *requests) begin(head []byte, _ int64) {
	r.shift = r.t.shift(up)
	if len(head) == requestHead {
		r.t.unanswered.add(exchange{
			key:     int16(binary.BigEndian.Uint16(head[4:])),
			version: int16(binary.BigEndian.Uint16(head[6:])),
			corr:    int32(binary.BigEndian.Uint32(head[8:])),
		})
	}
	r.more(head, false)
}

func (r *requests) more(p []byte, _ bool) { r.line.add(p, r.now.Add(r.shift)) }
