package fault

import "slices"

// Truncation says which answers are cut off.
type Truncation struct {
	// Node whose answers are meant, or AllNodes.
	Node int32
	// Keys of the requests whose answers are meant; nil: of any.
	Keys []int16
	// Answers is how many; 0 means 1.
	Answers int
	// Bytes is how much of each arrives, its length prefix counted: never all of it, 0 nothing.
	// Random: between 1 and all but one, drawn from the seed.
	Bytes int
	// How the connection ends then.
	How End
}

// Random as Truncation.Bytes lets the seed choose.
const Random = -1

func (t Truncation) matches(node int32, key int16) bool {
	if t.Node != AllNodes && t.Node != node {
		return false
	}
	if t.Keys == nil {
		return true
	}
	for _, k := range t.Keys {
		if k == key {
			return true
		}
	}
	return false
}

// keep is how much of an answer of size bytes arrives; draw is a number in [0, 1).
func (t Truncation) keep(size int64, draw float64) int64 {
	if t.Bytes == Random {
		return 1 + int64(draw*float64(size-1))
	}
	return max(min(int64(t.Bytes), size-1), 0)
}

// Truncate plans to cut off answers that have not begun yet. Plans that match the same answer
// come to their turn in the order in which they were made.
func (p *Proxy) Truncate(t Truncation) *Plan {
	t.Keys = slices.Clone(t.Keys)
	plan := &Plan{proxy: p, what: t, left: max(t.Answers, 1), done: make(chan struct{})}
	p.mu.Lock()
	p.plans = append(p.plans, plan)
	p.mu.Unlock()
	return plan
}

// Plan is a planned truncation.
type Plan struct {
	proxy *Proxy
	what  Truncation
	left  int           // guarded by proxy.mu
	done  chan struct{} // closed when nothing is left
}

// Done is closed when every answer planned for was cut off, or the plan cancelled.
func (p *Plan) Done() <-chan struct{} { return p.done }

// Cancel ends the plan.
func (p *Plan) Cancel() {
	p.proxy.mu.Lock()
	defer p.proxy.mu.Unlock()
	p.end()
}

// end closes the plan. Called with the proxy's mu held.
func (p *Plan) end() {
	if at := slices.Index(p.proxy.plans, p); at >= 0 {
		p.proxy.plans = slices.Delete(p.proxy.plans, at, at+1)
		close(p.done)
	}
}

// truncates says whether an answer is to be cut off, and how.
func (p *Proxy) truncates(node int32, key int16) (t Truncation, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, plan := range p.plans {
		if !plan.what.matches(node, key) {
			continue
		}
		if plan.left--; plan.left == 0 {
			plan.end()
		}
		return plan.what, true
	}
	return Truncation{}, false
}
