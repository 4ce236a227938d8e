package fault

// Stats are what has happened so far.
type Stats struct {
	Open      int   // connections open now
	Accepted  int64 // connections ever accepted
	Cut       int64 // connections ended by Cut
	Truncated int64 // answers cut off
	ToBroker  int64 // bytes forwarded
	ToClient  int64
	Untouched int64 // answers with addresses that passed as they were: too large, or not understood
}

// Stats of a node's connections, or of all; those of a target whose node id is not known yet are
// in AllNodes only. Untouched is always that of all.
func (p *Proxy) Stats(node int32) Stats {
	p.mu.Lock()
	links := p.of(node)
	s := Stats{Untouched: p.untouched}
	p.mu.Unlock()
	for _, l := range links {
		l.count(&s)
	}
	return s
}

// passedUntouched counts an answer whose addresses were not replaced.
func (p *Proxy) passedUntouched() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.untouched++
}
