package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/results"
)

// conductor holds what takes a run through its phases. The contexts nest: hard ends
// everything, drain ends waiting for outcomes, stop ends sending.
type conductor struct {
	*engine
	interrupt context.Context

	drain, stop, consume            context.Context
	endDrain, endSending, endReader context.CancelFunc

	loaded chan struct{} // closed when every load goroutine has ended
	// measured is closed by drive at the end of the measured phase; the crew's director reads it.
	measured chan struct{}
	broken   atomic.Bool // the measured phase was broken off
	idled    atomic.Bool // it ended since nothing was received any more
	others   sync.WaitGroup
	err      error // why the run ends early
}

// drive puts the load on, from the first message of the warm-up to the last outcome. Every
// goroutine it starts has ended when it returns.
func (e *engine) drive(ctx context.Context) error {
	c := &conductor{engine: e, interrupt: ctx, loaded: make(chan struct{}), measured: make(chan struct{})}
	c.drain, c.endDrain = context.WithCancel(e.spec.HardCtx)
	c.stop, c.endSending = context.WithCancel(c.drain)
	c.consume, c.endReader = context.WithCancel(e.spec.HardCtx)
	watching, endWatch := context.WithCancel(context.Background())
	defer endWatch()

	if len(c.loaders) == 0 { // what is received from the first moment on counts
		c.lay()
		c.crew.start(c.consume, &c.others)
	} else {
		c.crew.start(c.consume, &c.others)
		c.lay()
	}
	k := newKeeper(e)
	c.others.Go(func() { e.watch.run(watching) }) // both: ended by endWatch, awaited below
	c.others.Go(func() { k.run(watching) })
	c.startLoad()
	if steps := c.crew.steps(); len(steps) > 0 {
		c.others.Go(func() { c.direct(steps) }) // ends with consume; awaited below
	}

	c.disturb()
	c.measure(k)
	c.measuredEnds()
	c.coolDown(k)
	c.drained(k)
	c.endReader()
	cutAt := c.clock.Now()
	c.endDrain()
	<-c.loaded
	endWatch()
	c.others.Wait()
	c.cut(cutAt)
	c.endSending()
	return c.summon()
}

// summon gives the error the run ends with: what broke it off, or what failed meanwhile.
func (c *conductor) summon() error {
	select {
	case err := <-c.failed:
		if c.err == nil {
			c.err = err
		}
	default:
	}
	if c.err == nil {
		c.err = c.allFailed()
	}
	return c.err
}

// lay fixes when the phases begin and end. A moment is left for goroutines to get ready.
func (c *conductor) lay() {
	p := &c.def.Producers
	lead := 5*time.Millisecond + time.Duration(p.Count)*5*time.Microsecond
	if p.Count == 0 || !c.frame.open && c.def.Phases.WarmUp == 0 {
		lead = 0 // what comes in it would be of a warm-up that nobody asked for
	}
	begin := c.clock.Now() + int64(lead)
	start := begin + int64(c.def.Phases.WarmUp)
	length := int64(c.def.Phases.Length())
	if n := c.def.Phases.WarmUpMessages; n > 0 && c.frame.open {
		start = begin + steady(c.def, c.def.Seed+1).Due(n)
	} else if n > 0 {
		c.course.warming, start = newWarming(n, func(start int64) { c.begins(start, length) }), someDay
	}
	c.begun = begin
	if c.course.warming != nil {
		c.begun = c.clock.Now()
	}
	if c.frame.open {
		c.course.legs, length = openLegs(c.def, begin, start)
	} else if p.Messages > 0 && p.Count > 0 {
		c.course.quota = new(atomic.Int64)
		c.course.quota.Store(p.Messages)
	}
	c.begins(start, length)
}

// begins fixes when the measured phase begins, and with its length, where that is known, when it ends.
func (c *conductor) begins(start, length int64) {
	if length > 0 && start < someDay {
		c.frame.end.Store(start + length)
		if coolDown := int64(c.def.Phases.CoolDown); coolDown > 0 {
			c.frame.cool.Store(start + length)
			c.frame.last.Store(start + length + coolDown)
		}
	}
	c.frame.start.Store(start)
}

// startLoad starts a goroutine a producer. They end by themselves when everything due is
// decided, or are ended by endSending and endDrain; loaded tells when all have.
func (c *conductor) startLoad() {
	var load sync.WaitGroup
	for _, l := range c.loaders {
		load.Go(func() { l.load(c.stop, c.drain) })
	}
	go func() { // ends after the load goroutines; drive waits for loaded
		load.Wait()
		close(c.loaded)
	}()
}

// measure waits through warm-up and measured phase, and ends it early when it must.
func (c *conductor) measure(k *keeper) {
	var warm <-chan struct{}
	if c.course.warming == nil {
		k.enter(PhaseWarmUp, time.Duration(c.frame.start.Load()-c.clock.Now()))
	} else {
		k.enter(PhaseWarmUp, 0)
		warm = c.course.warming.over
	}
	if !c.sleep(c.frame.start.Load(), warm) {
		c.breakOff()
		return
	}
	c.spec.Target.Mark(c.drain, MeasureStart)
	c.edges[0], c.flows[0] = results.ReadUsage(), c.flow(c.clock.Now())
	k.enter(PhaseMeasure, c.def.Phases.Length())
	finished := c.finished()
	if !c.sleep(c.frame.end.Load(), finished) {
		c.breakOff()
	} else if now := c.clock.Now(); finished != nil && now < c.frame.end.Load() {
		c.endAtLast(now)
		c.noteIdle()
	}
	c.edges[1], c.flows[1] = results.ReadUsage(), c.flow(c.clock.Now())
	c.spec.Target.Mark(c.drain, MeasureEnd)
}

// measuredEnds reads off lag, messages in flight and memory at the end of the measured phase, and tells the
// director of the consumers.
func (c *conductor) measuredEnds() {
	defer close(c.measured)
	if elapsed := c.frame.end.Load() - c.frame.start.Load(); elapsed > 0 {
		end := c.markAt(elapsed)
		c.atEnd = &end
	}
}

// finished tells when a measured phase that is bounded by a number of messages is complete:
// when all of them are decided, or received where nothing is produced.
func (c *conductor) finished() <-chan struct{} {
	switch {
	case c.course.quota != nil:
		return c.loaded
	case len(c.loaders) == 0 && (c.def.Producers.Messages > 0 || c.def.Consumers.Idle > 0):
		return c.receivedAll()
	}
	return nil
}

// receivedAll gives a channel that is closed once enough was received, or nothing was for
// consumers.idle. The goroutine that closes it ends with endReader at the latest; others waits for it.
func (c *conductor) receivedAll() <-chan struct{} {
	done := make(chan struct{})
	enough, idle := c.def.Producers.Messages, int64(c.def.Consumers.Idle)
	c.others.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		seen, since := c.arrivals(), c.clock.Now()
		for enough == 0 || c.found().received < enough {
			select {
			case <-tick.C:
			case <-c.consume.Done():
				return
			}
			if n, now := c.arrivals(), c.clock.Now(); n != seen {
				seen, since = n, now
			} else if idle > 0 && now-since >= idle {
				c.idled.Store(true)
				break
			}
		}
		close(done)
	})
	return done
}

// noteIdle tells that there were fewer messages than asked for.
func (c *conductor) noteIdle() {
	if n, found := c.def.Producers.Messages, c.found().received; c.idled.Load() && n > 0 {
		c.note("nothing was received for %s (consumers.idle): %d of the %d messages asked for were there", c.def.Consumers.Idle, found, n)
	}
}

// endAtLast ends a phase bounded by messages at its last outcome; now, when there was none.
func (c *conductor) endAtLast(now int64) {
	var last int64
	for _, r := range c.allRecorders() {
		r.mu.Lock()
		last = max(last, r.lastAcked)
		r.mu.Unlock()
	}
	if last <= c.frame.start.Load() {
		last = now
	}
	c.frame.end.Store(last)
}

// sleep waits until the clock reads at. False when the run is interrupted or has failed; true
// at once when early is closed.
func (c *conductor) sleep(at int64, early <-chan struct{}) bool {
	timer := time.NewTimer(time.Duration(at - c.clock.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-early:
		return true
	case <-c.interrupt.Done():
		c.err = interruption(c.interrupt)
	case <-c.spec.HardCtx.Done():
		c.err = interruption(c.spec.HardCtx)
	case err := <-c.failed:
		c.err = err
	}
	return false
}

// interruption is the error of a run that ctx ended, with the reason if there is one.
func interruption(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ErrInterrupted) {
		return fmt.Errorf("%w: %w", ErrInterrupted, cause)
	}
	return ErrInterrupted
}

// breakOff ends the measured phase now.
func (c *conductor) breakOff() {
	c.broken.Store(true)
	c.endSending()
	now := c.clock.Now()
	c.frame.start.CompareAndSwap(someDay, now)
	c.frame.end.Store(max(min(now, c.frame.end.Load()), c.frame.start.Load()))
	c.ended = c.err.Error()
}

// coolDown waits while the load goes on after the measured phase.
func (c *conductor) coolDown(k *keeper) {
	if c.err != nil || c.def.Phases.CoolDown <= 0 {
		return
	}
	k.enter(PhaseCoolDown, c.def.Phases.CoolDown)
	if !c.sleep(c.frame.last.Load(), c.loaded) {
		c.endSending()
	}
}

// drained waits, within bounds, until every outcome is known and everything acked has arrived.
func (c *conductor) drained(k *keeper) {
	bound := c.def.Phases.Drain
	if c.err != nil {
		bound = c.spec.InterruptDrain
	}
	begin := c.clock.Now()
	k.enter(PhaseDrain, bound)
	deadline := begin + int64(bound)
	if !c.sleepDraining(deadline, c.loaded) {
		c.endSending()
		deadline = min(deadline, c.clock.Now()+int64(c.spec.InterruptDrain))
		bound = time.Duration(deadline - begin)
		c.sleepHard(deadline, c.loaded)
	}
	c.endDrain()
	<-c.loaded
	c.arrived(deadline)
	c.drainBound, c.drainTook = bound, time.Duration(c.clock.Now()-begin)
	k.enter(PhaseClose, 0)
}

// sleepDraining is sleep for the drain: an error that is known already does not end it.
func (c *conductor) sleepDraining(deadline int64, early <-chan struct{}) bool {
	if c.err != nil {
		c.sleepHard(deadline, early)
		return true
	}
	return c.sleep(deadline, early)
}

// sleepHard waits until the clock reads at, early is closed, or everything is to end at once.
func (c *conductor) sleepHard(at int64, early <-chan struct{}) {
	timer := time.NewTimer(time.Duration(at - c.clock.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-c.spec.HardCtx.Done():
	}
}

// arrived waits until every acked message was received, the consumers have nothing left to
// read, or deadline. When the wait is cut short, what is missing is not known to be lost.
func (c *conductor) arrived(deadline int64) {
	if len(c.receivers) == 0 || len(c.loaders) == 0 {
		return
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var seen int64
	since := c.clock.Now()
	for now := since; now < deadline && !c.allArrived(); now = c.clock.Now() {
		if n := c.arrivals(); n != seen || c.lag() != 0 {
			seen, since = n, now
		}
		if now-since >= int64(c.spec.Quiet) {
			return
		}
		if !c.sleepTick(tick.C) {
			break
		}
	}
	c.arrivalsCut, c.waitEnded = !c.allArrived(), c.err != nil
}

// sleepTick waits for one tick; false when the run is interrupted meanwhile, or at once if it
// was before.
func (c *conductor) sleepTick(tick <-chan time.Time) bool {
	if c.err != nil {
		select {
		case <-tick:
		case <-c.spec.HardCtx.Done():
		}
		return c.spec.HardCtx.Err() == nil
	}
	select {
	case <-tick:
		return true
	case <-c.interrupt.Done():
		c.err = interruption(c.interrupt)
	case <-c.spec.HardCtx.Done():
		c.err = interruption(c.spec.HardCtx)
	case err := <-c.failed:
		c.err = err
	}
	return false
}

// cut counts what is still open as unknown, and what was due and never taken as well, unless
// sending was broken off on purpose.
func (c *conductor) cut(now int64) {
	rec := newRecorder(c.frame)
	for _, l := range c.loaders {
		l.pool.cut(func(m *Message) { rec.unknown(m.Due, now-rec.since(m)) })
		if c.frame.open && c.ended == "" {
			c.withheld += l.withheld(func(due int64) { rec.unknown(due, now-due) })
		}
	}
	c.timeline.collectAll(rec)
}
