package run

import (
	"context"
	"fmt"
	"time"

	"github.com/kbench/kbench/results"
)

// watch notices when the generator itself stands still: a goroutine that only sleeps a
// millisecond and reads the clock, over and over. When the process is stopped, swapped out or
// held up by its own collector, the reading jumps.
type watch struct {
	clock Clock
	frame *frame
	limit int64 // ns; longer pauses become events. 0: none do

	// Of the goroutine in run until it has ended, then of who waited for it.
	longest int64
	pauses  []results.Event
}

const (
	hiccupSleep = time.Millisecond
	// maxPauseEvents bounds the events of a generator that stutters all the time.
	maxPauseEvents = 1000
)

func newWatch(clock Clock, f *frame, limit int64) *watch {
	return &watch{clock: clock, frame: f, limit: limit}
}

// run watches until ctx ends.
func (w *watch) run(ctx context.Context) {
	timer := time.NewTimer(hiccupSleep)
	defer timer.Stop()
	for last := w.clock.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := w.clock.Now()
		w.saw(last, now)
		last = now
		timer.Reset(hiccupSleep)
	}
}

// saw judges one sleep, from last to now. Pauses of the warm-up are no matter of the figures,
// those of the drain are: messages of the measured phase are still open.
func (w *watch) saw(last, now int64) {
	start := w.frame.start.Load()
	pause := now - last - int64(hiccupSleep)
	if now < start || pause <= 0 {
		return
	}
	w.longest = max(w.longest, pause)
	if w.limit <= 0 || pause <= w.limit || len(w.pauses) >= maxPauseEvents {
		return
	}
	w.pauses = append(w.pauses, results.Event{
		AtNs: last - start, DurationNs: pause, Kind: "pause",
		Text: fmt.Sprintf("the generator stood still for %s", span(time.Duration(pause))),
	})
}
