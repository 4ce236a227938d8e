package run

import (
	"context"
	"runtime"
	"time"
)

// pacer waits for due times on behalf of one load goroutine, which alone uses it.
type pacer interface {
	// wait returns true once the clock reads due or later, false when ctx ended before.
	wait(ctx context.Context, due int64) bool
	// close gives back what the pacer holds; called from the load goroutine.
	close()
}

// The kinds of pacer, as in the workload file.
const (
	pacerAuto      = "auto"
	pacerSleep     = "sleep"
	pacerNanosleep = "nanosleep"
	pacerSpin      = "spin"
)

// What a pacer of its own thread needs.
const (
	// threadCores must be left beside the pacers' threads, so that the client still has one.
	threadCores = 1
	// spinCores must be left for pacers that use up a core each.
	spinCores = 3
	// spinRate is the rate of one producer, messages a second, from which on its messages are due
	// closer together than the kernel wakes a thread: it would hardly sleep.
	spinRate = 20_000
)

// choosePacer settles what auto means for that many producers with so many messages a second
// together and so many cores. Where there are fewer producers than cores each waits on a thread of
// its own, 40–100 µs late; where messages follow faster than that and cores are plenty it spins,
// which counts as CPU a message; else they share the runtime's timers, which wake up to about a
// millisecond late and cost nothing.
func choosePacer(kind string, producers int, rate, cores float64) string {
	if kind != pacerAuto && kind != "" {
		return kind
	}
	spare := cores - float64(producers)
	switch {
	case rate <= 0 || producers < 1 || spare < threadCores || !haveNanosleep:
		return pacerSleep
	case spare >= spinCores && rate/float64(producers) >= spinRate:
		return pacerSpin
	}
	return pacerNanosleep
}

// newPacer makes a pacer of a settled kind. Called from the load goroutine.
func newPacer(kind string, clock Clock) pacer {
	s := &sleeper{clock: clock, timer: time.NewTimer(time.Hour)}
	switch kind {
	case pacerNanosleep:
		if haveNanosleep {
			return newThreadSleeper(s)
		}
	case pacerSpin:
		return &spinner{sleeper: s}
	}
	return s
}

// sleeper waits on one of the runtime's timers. On Linux it wakes up to ≈ 1.1 ms late, since
// the runtime's poller counts in milliseconds; everything due by then is handed over at once.
type sleeper struct {
	clock Clock
	timer *time.Timer
}

func (s *sleeper) wait(ctx context.Context, due int64) bool {
	for {
		left := due - s.clock.Now()
		if left <= 0 {
			return true
		}
		s.timer.Reset(time.Duration(left))
		select {
		case <-s.timer.C:
		case <-ctx.Done():
			return false
		}
	}
}

func (s *sleeper) close() { s.timer.Stop() }

// near is how long before a due time the finer pacers stop trusting timers.
const near = 2 * time.Millisecond

// spinner reads the clock without pause for the last two milliseconds. It is late by about the
// cost of reading it, and uses up a processor.
type spinner struct{ *sleeper }

func (s *spinner) wait(ctx context.Context, due int64) bool {
	if s.clock.Now() < due-int64(near) && !s.sleeper.wait(ctx, due-int64(near)) {
		return false
	}
	for i := 1; s.clock.Now() < due; i++ {
		if i%256 == 0 {
			if ctx.Err() != nil {
				return false
			}
			runtime.Gosched()
		}
	}
	return true
}
