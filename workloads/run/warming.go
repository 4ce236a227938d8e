package run

import (
	"math"
	"sync"
)

// someDay is the start of a measured phase that a closed loop's warm-up has yet to come to: later than
// anything, and far enough from the largest instant for arithmetic.
const someDay = math.MaxInt64 / 4

// warming is the warm-up of a closed loop that ends with a number of messages. Load goroutines take
// their shares of it; whoever finds it used up begins the measured phase.
type warming struct {
	begin func(start int64) // fixes the measured phase's begin; called once, with the lock held
	over  chan struct{}     // closed by claim as the measured phase begins; the conductor reads it

	mu      sync.Mutex
	changed sync.Cond // of mu: left or filling
	left    int64
	filling int   // shares taken that may yet be given back in part
	from    int64 // when the measured phase began; 0 before
}

func newWarming(n int64, begin func(start int64)) *warming {
	w := &warming{left: n, begin: begin, over: make(chan struct{})}
	w.changed.L = &w.mu
	return w
}

// claim gives the caller up to most of the warm-up's messages, for which it calls filled soon. With none
// left, n is 0, and from is when the measured phase began: messages that are due then or later are
// measured. The clock is read after every share was taken, so that none of the warm-up's is due later.
func (w *warming) claim(most int, clock Clock) (n int, from int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.left == 0 && w.filling > 0 { // filled comes, at the latest when the run is stopped
		w.changed.Wait()
	}
	if w.left > 0 {
		n = int(min(int64(most), w.left))
		w.left -= int64(n)
		w.filling++
		return n, 0
	}
	if w.from == 0 {
		w.from = clock.Now() + 1
		w.begin(w.from)
		close(w.over)
	}
	return 0, w.from
}

// back gives back messages of the warm-up that could not be sent. When the measured phase has begun
// meanwhile, they are of it.
func (w *warming) back(n int) {
	w.mu.Lock()
	if w.from == 0 {
		w.left += int64(n)
	}
	w.mu.Unlock()
	w.changed.Broadcast()
}

// filled ends a claim; rest is what of it was not used.
func (w *warming) filled(rest int) {
	w.mu.Lock()
	w.left += int64(rest)
	w.filling--
	w.mu.Unlock()
	w.changed.Broadcast()
}
