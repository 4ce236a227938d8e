package fault

import (
	"context"
	"time"
)

// near is how long before a due time timers are not trusted any more: on Linux they fire up to
// about 1.1 ms late, since the runtime's poller counts in milliseconds.
const near = 1200 * time.Microsecond

// fine bounds how many goroutines sleep in the kernel at once, each on a thread. Others rely on
// timers and are up to a millisecond late.
var fine = make(chan struct{}, 32)

// waiter waits for due times, for one goroutine.
type waiter struct{ timer *time.Timer }

func newWaiter() *waiter { return &waiter{timer: time.NewTimer(time.Hour)} }

func (w *waiter) close() { w.timer.Stop() }

// wait returns at the time given, or as soon as there is something in wake, or changed is
// closed, or ctx ends.
func (w *waiter) wait(ctx context.Context, until time.Time, wake, changed <-chan struct{}) {
	left := time.Until(until)
	if left <= 0 {
		return
	}
	if left <= near {
		select {
		case fine <- struct{}{}:
			sleepFine(left)
			<-fine
			return
		default:
		}
	} else {
		left -= near
	}
	w.timer.Reset(left)
	select {
	case <-w.timer.C:
	case <-wake:
	case <-changed:
	case <-ctx.Done():
	}
}
