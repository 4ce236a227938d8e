package broker

import (
	"net"
	"sync"
	"time"
)

// faults is what a Cluster does to its connections. All methods are safe for concurrent use.
type faults struct {
	mu       sync.Mutex
	conns    map[*conn]struct{}
	unreach  map[int]bool            // ports whose connections are closed at once
	requests map[int16]int64         // requests seen, by key
	versions map[[2]int16]struct{}   // key and version of the requests seen
	accepted int64                   // connections ever accepted
	stalled  map[int16]chan struct{} // key → closed by resume
	held     map[int16]int           // answers that a stall holds now, by key
	delay    map[int16]time.Duration
	lose     map[int16]int // answers still to lose, by key
	changed  chan struct{} // closed and replaced when requests, held or conns change
	closing  bool
}

func newFaults() *faults {
	return &faults{
		conns:    make(map[*conn]struct{}),
		unreach:  make(map[int]bool),
		requests: make(map[int16]int64),
		versions: make(map[[2]int16]struct{}),
		stalled:  make(map[int16]chan struct{}),
		held:     make(map[int16]int),
		delay:    make(map[int16]time.Duration),
		lose:     make(map[int16]int),
		changed:  make(chan struct{}),
	}
}

// adopt follows a new connection; nil when it must be closed.
func (f *faults) adopt(c net.Conn, port int) *conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepted++
	if f.unreach[port] || f.closing {
		return nil
	}
	w := &conn{Conn: c, faults: f, port: port, closed: make(chan struct{})}
	f.conns[w] = struct{}{}
	f.wake()
	return w
}

func (f *faults) forget(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
	f.wake()
}

// wake tells every waiter that something changed; f.mu is held.
func (f *faults) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *faults) requested(key, version int16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests[key]++
	f.versions[[2]int16{key, version}] = struct{}{}
	f.wake()
}

// admit holds the answer to a request of this key as long as the faults say, and reports
// whether it may be sent; false also when the connection closed in the meantime.
func (f *faults) admit(key int16, closed <-chan struct{}) bool {
	f.mu.Lock()
	d := f.delay[key]
	f.mu.Unlock()
	if !wait(d, closed) {
		return false
	}
	for {
		f.mu.Lock()
		gate := f.stalled[key]
		if gate == nil {
			lost := f.lose[key] > 0
			if lost {
				f.lose[key]--
			}
			f.mu.Unlock()
			return !lost
		}
		f.holdLocked(key, 1)
		f.mu.Unlock()
		open := true
		select {
		case <-gate:
		case <-closed:
			open = false
		}
		f.mu.Lock()
		f.holdLocked(key, -1)
		f.mu.Unlock()
		if !open {
			return false
		}
	}
}

// holdLocked counts answers that a stall holds; f.mu is held.
func (f *faults) holdLocked(key int16, n int) {
	f.held[key] += n
	f.wake()
}

func (f *faults) stall(key int16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stalled[key] == nil {
		f.stalled[key] = make(chan struct{})
	}
}

func (f *faults) resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, gate := range f.stalled {
		close(gate)
		delete(f.stalled, key)
	}
}

// cut closes every connection that which picks.
func (f *faults) cut(which func(*conn) bool) int {
	f.mu.Lock()
	var doomed []*conn
	for c := range f.conns {
		if which(c) {
			doomed = append(doomed, c)
		}
	}
	f.mu.Unlock()
	for _, c := range doomed {
		c.reset()
	}
	return len(doomed)
}
