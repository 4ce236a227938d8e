package run

import "fmt"

// What the engine asks of all its recorders and readers together, while they are at work.

func (e *engine) readerRecorders() []*recorder {
	list := make([]*recorder, len(e.receivers))
	for i, in := range e.receivers {
		list[i] = in.rec
	}
	return list
}

func (e *engine) allRecorders() []*recorder {
	return append(e.readerRecorders(), e.recorders...)
}

// handled counts the messages recorders have seen the end of.
func (e *engine) handled(list []*recorder) (n int64) {
	for _, r := range list {
		r.mu.Lock()
		n += r.decided
		r.mu.Unlock()
	}
	return n
}

// inFlight is the number of messages taken and not decided.
func (e *engine) inFlight() int64 {
	n := -e.handled(e.recorders)
	for i := range e.taken {
		n += e.taken[i].messages.Load()
	}
	return max(0, n) // a message may be decided before its taking is counted
}

// allFailed is the error of a run of which no message was acked and some were refused.
func (e *engine) allFailed() error {
	var first error
	for _, r := range e.recorders {
		r.mu.Lock()
		acked := r.ackedEver
		if first == nil {
			first = r.firstFailure
		}
		r.mu.Unlock()
		if acked > 0 {
			return nil
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("%w, %d of them; the first: %w", ErrAllFailed, e.handled(e.recorders), first)
}
