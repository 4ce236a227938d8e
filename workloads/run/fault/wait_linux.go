package fault

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sleepFine sleeps in the kernel for at most near, with the kernel's timer slack (50 µs by
// default) turned down meanwhile.
func sleepFine(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // without it the wake-up is a little later
	ts := unix.NsecToTimespec(int64(min(d, near)))
	_ = unix.Nanosleep(&ts, nil) // interrupted by a signal: the caller looks at the time again
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
}
