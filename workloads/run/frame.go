package run

import (
	"math"
	"sync/atomic"
)

// frame is where a run's measured phase lies on the engine's clock, and how it is cut into
// windows. It is made before anything is opened; start and end become known later, so both
// are read atomically. Until then nothing is measured.
type frame struct {
	interval int64 // ns
	open     bool  // there is a schedule, so due times mean something
	start    atomic.Int64
	end      atomic.Int64
	// cool is when the cool-down begins, from which on what is due is not the measured phase's, and
	// last when all load ends; math.MaxInt64 without a cool-down.
	cool, last atomic.Int64
}

// notYet is the start of a measured phase that has not been set.
const notYet = math.MaxInt64

// newFrame is a frame whose measured phase has not begun.
func newFrame(interval int64, open bool) *frame {
	f := &frame{interval: interval, open: open}
	f.start.Store(notYet)
	f.end.Store(math.MaxInt64)
	f.cool.Store(math.MaxInt64)
	f.last.Store(math.MaxInt64)
	return f
}

// Where a due time lies.
const (
	beforeIt = iota // in the warm-up
	afterIt         // in the cool-down
	within          // in the measured phase
)

// side is where a due time lies.
func (f *frame) side(due int64) int {
	switch {
	case due < f.start.Load():
		return beforeIt
	case due >= f.cool.Load():
		return afterIt
	}
	return within
}

// measuredDue are the due times of the measured phase: from one on, up to before the other.
func (f *frame) measuredDue() (from, to int64) { return f.start.Load(), f.cool.Load() }

// over reports whether a closed loop has nothing more to send.
func (f *frame) over(now int64) bool {
	return now >= f.last.Load() || now >= f.end.Load() && f.cool.Load() == math.MaxInt64
}

// index is the number of the window that holds an instant at or after start.
func (f *frame) index(at int64) int { return int((at - f.start.Load()) / f.interval) }

// bounds are the instants at which window i begins and the next one does.
func (f *frame) bounds(i int) (from, to int64) {
	from = f.start.Load() + int64(i)*f.interval
	return from, from + f.interval
}

// measured reports whether an instant lies in the measured phase.
func (f *frame) measured(at int64) bool { return at >= f.start.Load() && at < f.end.Load() }
