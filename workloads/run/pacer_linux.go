package run

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const haveNanosleep = true

// threadSleeper sleeps in the kernel on a thread of its own, with the kernel's timer slack
// (50 µs by default) turned down for that thread.
type threadSleeper struct{ *sleeper }

func newThreadSleeper(s *sleeper) pacer {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // without it wake-ups are later, which is recorded
	return &threadSleeper{s}
}

// wait leaves long waits to a timer, which ctx can end.
func (t *threadSleeper) wait(ctx context.Context, due int64) bool {
	if t.clock.Now() < due-int64(near) && !t.sleeper.wait(ctx, due-int64(near)) {
		return false
	}
	for {
		left := due - t.clock.Now()
		if left <= 0 {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		ts := unix.NsecToTimespec(min(left, int64(near/time.Nanosecond)))
		_ = unix.Nanosleep(&ts, nil) // interrupted by a signal: the loop looks again
	}
}

func (t *threadSleeper) close() {
	t.sleeper.close()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
	runtime.UnlockOSThread()
}
