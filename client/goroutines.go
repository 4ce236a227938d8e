package client

import "sync"

// goroutines counts running goroutines for who waits for their end. Unlike a sync.WaitGroup it
// lets one be started from outside while somebody waits, as happens to a stage into which a
// message comes at the last moment. The zero value is ready.
type goroutines struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // made by who waits, closed and dropped when the last one ends
}

// started counts one that is about to be started.
func (g *goroutines) started() {
	g.mu.Lock()
	g.n++
	g.mu.Unlock()
}

// ended is the last thing that one does.
func (g *goroutines) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 && g.none != nil {
		close(g.none)
		g.none = nil
	}
}

// wait returns once none is running.
func (g *goroutines) wait() {
	g.mu.Lock()
	if g.n == 0 {
		g.mu.Unlock()
		return
	}
	if g.none == nil {
		g.none = make(chan struct{})
	}
	none := g.none
	g.mu.Unlock()
	<-none
}
