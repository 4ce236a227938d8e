package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// Disturber makes the faults of a workload happen, each by its number in the definition's list. It is
// used by several goroutines.
type Disturber interface {
	// Begin puts a fault in place and says in words what was done; ctx bounds what takes time. An error
	// ends the run: it would not be the one that was asked for.
	Begin(ctx context.Context, fault int) (text string, err error)
	// End takes a fault away that has a length; called once after each Begin that succeeded.
	End(fault int) error
}

// disturbance is one fault on its way. It belongs to its goroutine until that has ended.
type disturbance struct {
	workloads.Fault
	number       int
	text         string
	began, ended int64 // 0: not yet
	skipped      string
}

// disturb starts a goroutine for each fault. They end with their faults, and before the consumers do, so
// that the drain sees the load without them; others waits.
func (c *conductor) disturb() {
	for i, f := range c.def.Faults {
		d := &disturbance{Fault: f, number: i, skipped: "the measured phase ended before"}
		c.disturbances = append(c.disturbances, d)
		c.others.Go(func() { c.suffer(d) })
	}
}

// suffer waits for the time of a fault, and lets it last.
func (c *conductor) suffer(d *disturbance) {
	if !c.until(c.frame.start.Load() + int64(d.At)) {
		return
	}
	ctx, cancel := context.WithTimeout(c.consume, c.spec.CloseTimeout)
	defer cancel()
	began := c.clock.Now()
	text, err := c.spec.Disturber.Begin(ctx, d.number)
	if err != nil {
		d.skipped = err.Error()
		if c.consume.Err() == nil {
			c.fatal(fmt.Errorf("fault %d (%s): %w", d.number+1, d.Fault, err))
		}
		return
	}
	d.began, d.text, d.skipped = began, text, ""
	d.ended = c.clock.Now()
	if d.For <= 0 {
		return
	}
	c.last(began + int64(d.For))
	if err := c.spec.Disturber.End(d.number); err != nil {
		c.fatal(fmt.Errorf("ending fault %d (%s): %w", d.number+1, d.Fault, err))
	}
	d.ended = c.clock.Now()
}

// last waits for an instant, or until nothing is waited for any more.
func (c *conductor) last(at int64) {
	timer := time.NewTimer(time.Duration(at - c.clock.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.interrupt.Done():
	case <-c.consume.Done():
	}
}

// faults sums up what the faults did, in the order of the workload's list.
func (e *engine) faults(windows []results.Window, elapsed int64) []results.Fault {
	start := e.frame.start.Load()
	var list []results.Fault
	for _, d := range e.disturbances {
		f := results.Fault{Given: d.String(), Kind: string(d.Kind), Text: d.text, Skipped: d.skipped}
		if f.Skipped == "" {
			f.AtNs = d.began - start
			f.DurationNs = d.ended - d.began
			if d.For <= 0 && !d.took() {
				f.DurationNs = 0
			}
		}
		list = append(list, f)
	}
	noteFaults(list, windows)
	measured := slices.DeleteFunc(slices.Clone(windows), func(w results.Window) bool { return w.StartNs >= elapsed })
	recoveries(list, measured, e.watched())
	return list
}

// noteFaults tells each window which faults were in force in it.
func noteFaults(faults []results.Fault, windows []results.Window) {
	for i := range windows {
		w := &windows[i]
		var kinds []string
		for _, f := range faults {
			if f.Skipped == "" && f.AtNs < w.StartNs+w.LengthNs && f.AtNs+f.DurationNs >= w.StartNs && !slices.Contains(kinds, f.Kind) {
				kinds = append(kinds, f.Kind)
			}
		}
		w.Faults = strings.Join(kinds, "+")
	}
}

// took says whether the fault itself took a while, as moving a leader does.
func (d *disturbance) took() bool { return d.Kind == workloads.FaultLeader }

// watched is what is looked at for recovery.
func (e *engine) watched() watched {
	switch {
	case len(e.loaders) == 0:
		return watched{series: results.SeriesE2E, received: true}
	case e.frame.open:
		return watched{series: results.SeriesResponse}
	}
	return watched{series: results.SeriesService}
}

// marks are the faults on the time axis.
func (e *engine) marks() (list []results.Event) {
	start := e.frame.start.Load()
	for _, d := range e.disturbances {
		if d.skipped == "" {
			list = append(list, results.Event{AtNs: d.began - start, DurationNs: d.ended - d.began, Kind: "fault", Text: d.text})
		}
	}
	return list
}
