package run

import "time"

// SystemClock is the machine's monotonic clock, counted from when it was made. It is safe for
// concurrent use.
type SystemClock struct{ base time.Time }

// NewClock makes a clock that reads 1 ms now: an instant of 0 then still means "unknown".
func NewClock() *SystemClock {
	return &SystemClock{base: time.Now().Add(-time.Millisecond)}
}

// Now is nanoseconds since the clock's origin.
func (c *SystemClock) Now() int64 { return int64(time.Since(c.base)) }

// wallBase finds the wall-clock time of a clock's origin, so that instants can be told to other
// processes. It is read once a run: a wall clock that is stepped meanwhile does not tear it.
func wallBase(c Clock) int64 { return time.Now().UnixNano() - c.Now() }
