package client

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
)

// Broker is one node of the cluster, or a bootstrap address whose node is not known yet. It
// holds one connection, opened when first needed and again after it was lost, which producers
// and control requests of a Client share. All methods are safe for concurrent use.
type Broker struct {
	addr string
	id   atomic.Int32 // −1: a bootstrap address
	rack atomic.Pointer[string]

	life context.Context // the client's; ends every dial
	opts conn.Options    // its Observer is metrics

	metrics *brokerMetrics

	mu      sync.Mutex
	refused lockout
	conn    *conn.Conn // nil, open or broken
	opening *opening   // nil, or the dial under way that everybody waits for
	ended   error      // why there will be no connection any more; nil: there may be
}

// opening is one dial, shared by everybody who needs the connection.
type opening struct {
	done chan struct{} // closed by the dialling goroutine once conn and err are set
	conn *conn.Conn
	err  error
}

func newBroker(life context.Context, id int32, addr string, opts conn.Options) *Broker {
	b := &Broker{addr: addr, life: life, opts: opts, metrics: &brokerMetrics{}}
	b.opts.Observer = b.metrics
	b.id.Store(id)
	return b
}

// ID is the node's id, −1 for a bootstrap address.
func (b *Broker) ID() int32 { return b.id.Load() }

// Addr is host:port as the cluster advertises it, or as it was given.
func (b *Broker) Addr() string { return b.addr }

// Rack is where the broker says it runs; empty when it does not say.
func (b *Broker) Rack() string {
	if r := b.rack.Load(); r != nil {
		return *r
	}
	return ""
}

// Connected says whether the shared connection is open now.
func (b *Broker) Connected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conn != nil && b.conn.Err() == nil
}

// Dials is how many connections to it were opened or tried, those of readers included.
func (b *Broker) Dials() int64 { return b.metrics.snapshot(0, "").Dials }

// Open opens the shared connection unless it is open, and waits until it is or ctx ends.
func (b *Broker) Open(ctx context.Context) error {
	_, err := b.connection(ctx)
	return err
}

// Request sends one request on the shared connection and returns the answer. The version is
// chosen from what the broker offers. A connection that the broker had closed while it was idle
// is opened again and the request sent once more.
func (b *Broker) Request(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	for attempt := 0; ; attempt++ {
		c, err := b.connection(ctx)
		if err != nil {
			return nil, err
		}
		resp, err := c.Do(ctx, req)
		if err == nil {
			return resp, nil
		}
		if attempt == 0 && c.Err() != nil && errors.Is(err, conn.ErrClosedByBroker) && ctx.Err() == nil {
			continue
		}
		return nil, &addressError{b.addr, err}
	}
}

// connection returns the open shared connection, dialling when there is none. Everybody who
// asks while a dial is under way gets its outcome.
func (b *Broker) connection(ctx context.Context) (*conn.Conn, error) {
	b.mu.Lock()
	if b.ended != nil {
		defer b.mu.Unlock()
		return nil, b.ended
	}
	if b.conn != nil && b.conn.Err() == nil {
		defer b.mu.Unlock()
		return b.conn, nil
	}
	if b.opening == nil {
		b.opening = &opening{done: make(chan struct{})}
		// Owned by the broker; ends within DialTimeout or with the client; its outcome is
		// awaited by whoever is in this function.
		go b.dial(b.opening)
	}
	o := b.opening
	b.mu.Unlock()
	select {
	case <-o.done:
		return o.conn, o.err
	case <-ctx.Done():
		return nil, &addressError{b.addr, ctx.Err()}
	}
}

func (b *Broker) dial(o *opening) {
	o.conn, o.err = b.openPrivate(b.life)
	b.mu.Lock()
	b.opening = nil
	if b.ended != nil && o.conn != nil {
		o.conn.Close(b.ended)
		o.conn, o.err = nil, b.ended
	}
	if o.conn != nil {
		b.conn = o.conn
	}
	b.mu.Unlock()
	close(o.done)
}

// openPrivate opens a connection of the caller's own, which it must close: readers use one per
// broker, so that their long polls hold nobody up.
func (b *Broker) openPrivate(ctx context.Context) (*conn.Conn, error) {
	if err := b.refusedNow(); err != nil {
		return nil, err
	}
	b.metrics.dialled()
	c, err := conn.Open(ctx, b.addr, b.opts)
	b.noteOpened(err)
	if err != nil {
		if b.life.Err() != nil {
			err = ErrClosed
		}
		return nil, &addressError{b.addr, err}
	}
	return c, nil
}

// close ends the shared connection; requests on it fail with cause.
func (b *Broker) close(cause error) {
	b.mu.Lock()
	b.ended = ErrClosed
	c, o := b.conn, b.opening
	b.conn = nil
	b.mu.Unlock()
	if c != nil {
		c.Close(cause)
	}
	if o != nil {
		<-o.done // bounded: the dial ends with the client's life
	}
}

// retire is for a node that is gone, or has moved: nothing more is sent to it, and its connection
// ends once what is in flight has been answered, each request within its time.
func (b *Broker) retire() {
	gone := &nodeGoneError{b.ID(), b.addr}
	b.mu.Lock()
	if b.ended == nil {
		b.ended = gone
	}
	c := b.conn
	b.mu.Unlock()
	if c != nil {
		c.Retire(gone)
	}
}

func joinHostPort(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
