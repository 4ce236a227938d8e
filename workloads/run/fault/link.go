package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// link is the way to one broker: a listener, and the connections that came through it.
type link struct {
	proxy  *Proxy
	target string   // the broker, as it was first called
	where  []string // ip:port that its name stood for
	number int      // among the proxy's links
	addr   string   // of the listener; stays the same when it is closed and opened again
	port   int32

	id  atomic.Int32 // node; −1: not known yet
	now atomic.Pointer[setting]

	changing sync.Mutex // held while the fault is changed; before mu

	mu       sync.Mutex
	ln       net.Listener // nil while connections are refused
	conns    map[*tunnel]struct{}
	accepted uint64
	closed   bool

	cuts, truncations, toBroker, toClient atomic.Int64
}

// setting is a fault in force.
type setting struct {
	Fault
	changed chan struct{} // closed when another takes its place; nobody writes
}

func newLink(p *Proxy, target string, where []string, number int) (*link, error) {
	l := &link{proxy: p, target: target, where: where, number: number, conns: map[*tunnel]struct{}{}}
	l.id.Store(-1)
	l.now.Store(&setting{changed: make(chan struct{})})
	ln, err := net.Listen("tcp", net.JoinHostPort(p.o.Host, "0"))
	if err != nil {
		return nil, fmt.Errorf("fault proxy: listening for broker %s: %w", target, err)
	}
	l.addr, l.port = ln.Addr().String(), int32(ln.Addr().(*net.TCPAddr).Port)
	l.listen(ln)
	return l, nil
}

// listen starts accepting. Called with mu held, or before anybody knows the link.
func (l *link) listen(ln net.Listener) {
	l.ln = ln
	l.proxy.running.Add(1)
	// Owned by the link; ends when its listener is closed, by a fault or with the proxy; the
	// proxy's Close waits.
	go l.accept(ln)
}

func (l *link) node() int32 { return l.id.Load() }

// at says whether the link leads to one of these places.
func (l *link) at(where []string) bool {
	return slices.ContainsFunc(where, func(w string) bool { return slices.Contains(l.where, w) })
}

func (l *link) accept(ln net.Listener) {
	defer l.proxy.running.Done()
	for {
		c, err := ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of files, or a connection that was gone before it was accepted.
			select {
			case <-l.proxy.life.Done():
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		l.adopt(c)
	}
}

// adopt serves a client's connection.
func (l *link) adopt(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.ln == nil {
		reset(c)
		return
	}
	t := newTunnel(l, c, l.accepted)
	l.accepted++
	l.conns[t] = struct{}{}
	l.proxy.running.Add(1)
	// Owned by the link; ends when the connection does: by either side, by a fault or with the
	// proxy, whose Close waits.
	go func() {
		defer l.proxy.running.Done()
		t.serve()
		l.mu.Lock()
		delete(l.conns, t)
		l.mu.Unlock()
	}()
}

// set changes the fault in force.
func (l *link) set(f Fault) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	old := l.now.Swap(&setting{Fault: f, changed: make(chan struct{})})
	close(old.changed)
	if f.ToBroker.Vanish || f.ToClient.Vanish {
		for _, t := range l.tunnels() {
			t.vanish(f)
		}
	}
	return l.refuse(f.Refuse)
}

func (l *link) tunnels() []*tunnel {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*tunnel, 0, len(l.conns))
	for t := range l.conns {
		out = append(out, t)
	}
	return out
}

// listenTries bounds the way back to a port that somebody else took meanwhile.
const listenTries = 50

// refuse closes the listener, or opens it again at the same address.
func (l *link) refuse(yes bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed || yes == (l.ln == nil):
		return nil
	case yes:
		err := l.ln.Close()
		l.ln = nil
		return err
	}
	var err error
	for range listenTries {
		var ln net.Listener
		if ln, err = net.Listen("tcp", l.addr); err == nil {
			l.listen(ln)
			return nil
		}
		select {
		case <-l.proxy.life.Done():
			return context.Cause(l.proxy.life)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("fault proxy: broker %s cannot be reached again: %w", l.target, err)
}

func (l *link) cut(how End) int {
	all := l.tunnels()
	for _, t := range all {
		t.cut(how)
	}
	l.cuts.Add(int64(len(all)))
	return len(all)
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	if l.ln != nil {
		_ = l.ln.Close()
		l.ln = nil
	}
	l.mu.Unlock()
	for _, t := range l.tunnels() {
		t.cut(Reset)
	}
}

func (l *link) count(s *Stats) {
	l.mu.Lock()
	s.Open += len(l.conns)
	s.Accepted += int64(l.accepted)
	l.mu.Unlock()
	s.Cut += l.cuts.Load()
	s.Truncated += l.truncations.Load()
	s.ToBroker += l.toBroker.Load()
	s.ToClient += l.toClient.Load()
}

// reset closes a connection with a TCP reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
