package run

import (
	"math"
	"time"
)

// Holder is a Producer that can tell how long its Send was held up: by its bounds, or by outcomes that it
// waits for. What is left of the time in Send is the generator's own work. Of other producers all of it is
// taken for the target's.
type Holder interface {
	// HeldUntil is the instant until which the last Send was held up; 0 when it was not, HeldThroughout when
	// all of it was waiting. Called from the goroutine that sends, once a run.
	HeldUntil() int64
}

// HeldThroughout is what HeldUntil gives of a Send that did nothing but wait.
const HeldThroughout = math.MaxInt64

// toil adds up what a load goroutine did with the time in which it was behind its schedule: the next message
// was due already when it had handed over the one before. It is what tells a generator that is too slow from
// a cluster that is, also where other cores are idle.
type toil struct {
	behind int64 // ns
	own    int64 // ns of it that it was at work, and neither held up by the target nor waiting for anything
}

// add takes in a run that was due when the goroutine came to it at an instant: idle is for how long it waited
// before it handed the run over, from and to are when Send was called and had returned, held is Holder's.
func (t *toil) add(came, idle, from, to, held int64) {
	t.behind += to - came
	t.own += max(0, from-came-idle) + to - min(max(held, from), to)
}

// account takes in the run that was just handed over.
func (l *loader) account(came int64) {
	held := int64(HeldThroughout)
	if l.holder != nil {
		held = l.holder.HeldUntil()
	}
	l.toil.add(came, l.idle, l.handed, l.took, held)
}

// toil is what the producers spent behind their schedule in the measured phase, each on average.
func (e *engine) toil() (behind, own time.Duration) {
	for _, l := range e.loaders {
		behind += time.Duration(l.toil.behind)
		own += time.Duration(l.toil.own)
	}
	n := time.Duration(max(len(e.loaders), 1))
	return behind / n, own / n
}
