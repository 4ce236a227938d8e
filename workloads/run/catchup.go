package run

import (
	"context"
	"time"

	"github.com/kbench/kbench/results"
)

// catchUp follows consumers from when they begin on a backlog until they have been at the end of
// every partition. It is pure: readings and their times are what it is given.
type catchUp struct {
	began   int64 // on the engine's clock
	backlog int64 // messages, over all groups; −1 when unknown
	already int64 // received before it began

	behind  map[PartitionLag]bool // partitions not seen at their end yet
	reached int64                 // when the last of them was; 0: not yet
	drained int64                 // messages received until then
}

// begin notes what there is to catch up with.
func (c *catchUp) begin(now, received int64, lags []PartitionLag) {
	*c = catchUp{began: now, already: received}
	for _, p := range lags {
		if p.Messages < 0 {
			c.backlog = -1
			return
		}
		c.backlog += p.Messages
	}
}

// saw takes a reading; true once every partition has been seen at its end.
func (c *catchUp) saw(now, received int64, lags []PartitionLag) bool {
	if c.reached > 0 {
		return true
	}
	if c.behind == nil {
		c.behind = map[PartitionLag]bool{}
	}
	for _, p := range lags {
		messages := p.Messages
		p.Messages = 0
		if _, before := c.behind[p]; messages == 0 {
			c.behind[p] = false
		} else if !before {
			c.behind[p] = true
		}
	}
	for _, behind := range c.behind {
		if behind {
			return false
		}
	}
	if len(c.behind) == 0 {
		return false
	}
	c.reached, c.drained = now, received-c.already
	return true
}

const (
	catchUpTick     = 10 * time.Millisecond
	catchUpTickMany = 100 * time.Millisecond // from catchUpMany partitions on
	catchUpMany     = 1000
)

// watchCatchUp takes readings until everything was caught up with, or ctx ends.
func (e *engine) watchCatchUp(ctx context.Context) {
	lags := e.spec.Target.Lags(nil)
	tick := time.NewTicker(map[bool]time.Duration{true: catchUpTickMany, false: catchUpTick}[len(lags) > catchUpMany])
	defer tick.Stop()
	for !e.catching.saw(e.clock.Now(), e.arrivals(), lags) {
		select {
		case <-ctx.Done(): // perhaps since everything has arrived
			e.catching.saw(e.clock.Now(), e.arrivals(), e.spec.Target.Lags(lags[:0]))
			return
		case <-tick.C:
		}
		lags = e.spec.Target.Lags(lags[:0])
	}
}

// catchUpResult sums up; nil when consumers did not start on a backlog.
func (e *engine) catchUpResult(elapsed int64) *results.CatchUp {
	c := &e.catching
	if c.began == 0 {
		return nil
	}
	start := e.frame.start.Load()
	out := &results.CatchUp{BacklogMessages: c.backlog, BeganNs: c.began - start, Reached: c.reached > 0}
	end := start + elapsed
	if out.Reached {
		out.TookNs = c.reached - c.began
		if out.TookNs > 0 {
			out.MessagesPerSecond = float64(c.drained) / (float64(out.TookNs) / 1e9)
		}
		end = c.reached
	}
	out.Series = results.SeriesService
	slot := slotService
	if e.frame.open {
		out.Series, slot = results.SeriesResponse, slotResponse
	}
	out.Before, out.During, out.After = e.timeline.around(slot, c.began, end)
	return out
}

// around sums up a series in the windows before an instant, in those that touch the time between
// the two, and in those after the other. Parts without a message are nil.
func (t *timeline) around(slot int, from, to int64) (before, during, after *results.Series) {
	var parts [3]cell
	for i, c := range t.cells {
		if c == nil || c.series[slot] == nil {
			continue
		}
		begin, end := t.frame.bounds(i)
		part := &parts[1]
		if end <= from {
			part = &parts[0]
		} else if begin >= to {
			part = &parts[2]
		}
		part.at(slot).Merge(c.series[slot])
	}
	sum := func(c *cell) *results.Series {
		if c.series[slot] == nil || c.series[slot].Count() == 0 {
			return nil
		}
		s := results.Summarise(c.series[slot])
		return &s
	}
	return sum(&parts[0]), sum(&parts[1]), sum(&parts[2])
}
