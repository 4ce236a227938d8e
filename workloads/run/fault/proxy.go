package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Bounds of what the proxy does by itself.
const (
	dialBound    = 10 * time.Second
	resolveBound = 2 * time.Second
	lingerBound  = 2 * time.Second // from FIN to the other side's
	mostLinks    = 1000            // brokers; a hostile answer must not take every port
)

// Options of a Proxy. The zero value is fine.
type Options struct {
	// Seed of everything drawn: jitter and cut points. The n-th frame of the m-th connection to
	// a broker is as late in every run with the same seed.
	Seed uint64
	// Host is the address to listen on and to tell clients; empty: 127.0.0.1.
	Host string
	// Buffer bounds the bytes under way in each direction of a connection, beyond which the
	// sender is held up; 0: 16 MiB. Bandwidth times delay must fit.
	Buffer int
	// MaxFrame bounds the answers that are held whole to rewrite addresses in them; a larger one
	// passes as it is, and Stats.Untouched counts it. 0: 64 MiB.
	MaxFrame int
	// Dial opens connections to brokers; nil: a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Proxy stands in front of every broker of a cluster. Its methods are safe for concurrent use.
type Proxy struct {
	o     Options
	life  context.Context
	end   context.CancelCauseFunc
	seeds []string // addresses of the targets' links, in the targets' order

	learning sync.Mutex // held while a new broker's link is made; before mu

	mu        sync.Mutex
	links     []*link
	known     map[string]*link // by host:port, as given and as told by brokers
	faults    map[int32]Fault  // set for nodes that may not be known yet
	everyone  Fault            // set for all nodes, those to come included
	plans     []*Plan          // truncations with answers left
	untouched int64
	failure   error
	closed    bool
	running   sync.WaitGroup // accept loops and connections
}

// New listens in front of targets, broker addresses as host:port; clients are given Addrs.
// Brokers that are not among the targets get a listener when an answer first names them. It ends
// with ctx, or by Close.
func New(ctx context.Context, targets []string, o Options) (*Proxy, error) {
	if len(targets) == 0 {
		return nil, errors.New("fault proxy: no broker to stand in front of; give at least one host:port")
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Buffer <= 0 {
		o.Buffer = 16 << 20
	}
	if o.MaxFrame <= 0 {
		o.MaxFrame = 64 << 20
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	p := &Proxy{o: o, known: map[string]*link{}, faults: map[int32]Fault{}}
	p.life, p.end = context.WithCancelCause(ctx)
	for _, t := range targets {
		l, err := p.linkTo(t)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.seeds = append(p.seeds, l.addr)
	}
	context.AfterFunc(p.life, p.shut)
	return p, nil
}

// Addrs is the bootstrap list to give to clients: the proxy's address of each target.
func (p *Proxy) Addrs() []string { return slices.Clone(p.seeds) }

// Close ends every connection with a reset and waits for the proxy's goroutines. A second call
// does nothing more.
func (p *Proxy) Close() error {
	p.end(errors.New("fault proxy: closed"))
	p.shut()
	p.running.Wait()
	return nil
}

// shut closes everything, once.
func (p *Proxy) shut() {
	p.mu.Lock()
	p.closed = true
	links := slices.Clone(p.links)
	p.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}

// Nodes are the ids of the brokers that answers have told of so far, in order.
func (p *Proxy) Nodes() []int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []int32
	for _, l := range p.links {
		if n := l.node(); n >= 0 && !slices.Contains(ids, n) {
			ids = append(ids, n)
		}
	}
	slices.Sort(ids)
	return ids
}

// Set puts a fault in place of the one that the node's connections suffer now; the zero Fault
// ends it. It takes effect at once, on open connections too, but for what is under way already.
// A fault may be set for a node that no answer has told of yet. AllNodes replaces what was set
// for single nodes.
func (p *Proxy) Set(node int32, f Fault) error {
	if err := f.Validate(); err != nil {
		return err
	}
	p.mu.Lock()
	if node == AllNodes {
		clear(p.faults)
		p.everyone = f
	} else {
		p.faults[node] = f
	}
	links := p.of(node)
	p.mu.Unlock()
	var errs []error
	for _, l := range links {
		errs = append(errs, l.set(f))
	}
	return errors.Join(errs...)
}

// For is Set for a time: it puts the fault in place, waits for d or the end of ctx, and takes
// every fault of the node away.
func (p *Proxy) For(ctx context.Context, node int32, f Fault, d time.Duration) error {
	if err := p.Set(node, f); err != nil {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	var ended error
	select {
	case <-t.C:
	case <-ctx.Done():
		ended = ctx.Err()
	case <-p.life.Done():
		ended = context.Cause(p.life)
	}
	return errors.Join(ended, p.Set(node, Fault{}))
}

// Cut ends every open connection of a node, or of AllNodes, now, and returns how many there were.
func (p *Proxy) Cut(node int32, how End) int {
	p.mu.Lock()
	links := p.of(node)
	p.mu.Unlock()
	n := 0
	for _, l := range links {
		n += l.cut(how)
	}
	return n
}

// Err is why the proxy could not stay between a client and the cluster; nil: it could.
func (p *Proxy) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

func (p *Proxy) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
}

// of is the links of a node. Called with mu held.
func (p *Proxy) of(node int32) []*link {
	if node == AllNodes {
		return slices.Clone(p.links)
	}
	var out []*link
	for _, l := range p.links {
		if l.node() == node {
			out = append(out, l)
		}
	}
	return out
}

// front is the proxy's own address of a node, which gets a listener if it has none.
func (p *Proxy) front(node int32, host string, port int32) (string, int32, bool) {
	l, err := p.linkTo(net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		p.failed(err)
		p.passedUntouched()
		return "", 0, false
	}
	if node >= 0 && l.node() != node {
		p.name(l, node)
	}
	return p.o.Host, l.port, true
}

// name notes which node a link leads to, and gives it the fault that waits for that node.
func (p *Proxy) name(l *link, node int32) {
	p.mu.Lock()
	l.id.Store(node)
	f, ok := p.faults[node]
	p.mu.Unlock()
	if ok {
		if err := l.set(f); err != nil {
			p.failed(err)
		}
	}
}

// linkTo is the link to a broker, made when there is none.
func (p *Proxy) linkTo(target string) (*link, error) {
	p.mu.Lock()
	l := p.known[target]
	p.mu.Unlock()
	if l != nil {
		return l, nil
	}
	p.learning.Lock()
	defer p.learning.Unlock()
	where, err := p.resolve(target)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.known[target]; l != nil {
		return l, nil
	}
	for _, l := range p.links { // another name of the same place
		if l.at(where) {
			p.known[target] = l
			return l, nil
		}
	}
	if len(p.links) == mostLinks || p.closed {
		return nil, fmt.Errorf("fault proxy: no listener for broker %s: %d brokers already, or closed", target, len(p.links))
	}
	if l, err = newLink(p, target, where, len(p.links)); err != nil {
		return nil, err
	}
	p.links = append(p.links, l)
	p.known[target] = l
	err = l.set(p.everyone)
	return l, err
}

// resolve is every ip:port that a broker's address stands for; only itself when nothing resolves
// it, which may pass.
func (p *Proxy) resolve(target string) ([]string, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, fmt.Errorf("fault proxy: broker address %q: %w; write host:port", target, err)
	}
	ctx, cancel := context.WithTimeout(p.life, resolveBound)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return []string{target}, nil //nolint:nilerr // the name may come up later; dialling will tell
	}
	for i := range ips {
		ips[i] = net.JoinHostPort(ips[i], port)
	}
	return ips, nil
}
