package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// crew is the run's consumers: who is there, who joins, who leaves, and who is killed. Its
// director is the only goroutine that changes who is there while the load is on.
type crew struct {
	*engine

	mu      sync.Mutex // guards what follows
	members []*member  // that are there, in the order of joining
	places  []int      // next free place, by group
	events  []results.Event
	tooLate int      // changes that the measured phase was too short for
	notes   []string // what went wrong in closing

	leaving sync.WaitGroup // those that were sent away and are not closed yet
}

// member is one consumer at work.
type member struct {
	Member
	reader Consumer
	stop   context.CancelFunc // ends its Run; nil before it was started
	ended  chan struct{}      // closed by its goroutine when Run returned; read by who sends it away
}

// joining counts the consumers that changes add to a group.
func joining(changes []workloads.Change) (n int) {
	for _, c := range changes {
		if c.Kind == workloads.Add {
			n += c.Count
		}
	}
	return n
}

// open opens n consumers in every group; nobody reads yet.
func (c *crew) open(ctx context.Context, n int) error {
	for g := range c.groups {
		for range n {
			if err := c.openOne(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *crew) openOne(ctx context.Context, g int) error {
	c.mu.Lock()
	for len(c.places) <= g {
		c.places = append(c.places, 0)
	}
	place := c.places[g]
	c.places[g]++
	c.mu.Unlock()
	group := c.groups[g]
	who := Member{ID: g*len(group.receivers) + place, Group: g, Place: place}
	reader, err := c.spec.Target.OpenConsumer(ctx, who, group.receivers[place])
	if err != nil {
		return fmt.Errorf("opening consumer %d: %w", who.ID, err)
	}
	c.mu.Lock()
	c.members = append(c.members, &member{Member: who, reader: reader, ended: make(chan struct{})})
	c.mu.Unlock()
	return nil
}

// start lets everybody read who does not yet. Owned by the crew; ctx stops them, as leaving does;
// others is waited for by the conductor.
func (c *crew) start(ctx context.Context, others *sync.WaitGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if m.stop != nil {
			continue
		}
		own, stop := context.WithCancel(ctx)
		m.stop = stop
		others.Go(func() {
			defer stop()
			defer close(m.ended)
			if err := m.reader.Run(own); err != nil && own.Err() == nil {
				c.fatal(fmt.Errorf("consumer %d: %w", m.ID, err))
			}
		})
	}
}

// step is something that happens to the crew at a time of the measured phase.
type step struct {
	at     time.Duration
	start  bool // the consumers begin
	change workloads.Change
}

// steps are what is going to happen, in order of time.
func (c *crew) steps() []step {
	var list []step
	if c.def.Consumers.StartAfter > 0 {
		list = append(list, step{at: c.def.Consumers.StartAfter, start: true})
	}
	for _, change := range c.def.Consumers.Changes {
		list = append(list, step{at: change.At, change: change})
	}
	slices.SortStableFunc(list, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return list
}

// direct makes the changes at their times, until the consumers end or the run is broken off. At the
// end of the measured phase consumers begin that have not yet; other changes do not come any more.
func (c *conductor) direct(steps []step) {
	for i, s := range steps {
		over := !c.until(c.frame.start.Load() + int64(s.at))
		switch {
		case c.broken.Load() || c.interrupt.Err() != nil:
			return
		case over && !s.start:
			c.late(steps[i:])
			return
		case c.consume.Err() != nil:
			return
		}
		if err := c.take(s); err != nil {
			c.fatal(err)
			return
		}
	}
}

// late notes the changes that the measured phase was too short for.
func (c *conductor) late(rest []step) {
	c.crew.mu.Lock()
	defer c.crew.mu.Unlock()
	c.crew.tooLate = len(rest)
}

// until waits for an instant; false when the measured phase, or the run, ended before.
func (c *conductor) until(at int64) bool {
	timer := time.NewTimer(time.Duration(at - c.clock.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.measured:
	case <-c.interrupt.Done():
	case <-c.consume.Done():
	}
	return false
}

// take makes one change.
func (c *conductor) take(s step) error {
	ctx, cancel := context.WithTimeout(c.consume, c.spec.CloseTimeout)
	defer cancel()
	if r, asks := c.spec.Target.(EndReader); s.start && asks {
		if err := r.ReadEnds(ctx); err != nil {
			return fmt.Errorf("finding what the consumers begin with: %w", err)
		}
	}
	now := c.clock.Now()
	switch {
	case s.start:
		c.catching.begin(now, c.arrivals(), c.spec.Target.Lags(nil))
		if err := c.crew.open(ctx, c.def.Consumers.Count); err != nil {
			return err
		}
		c.crew.start(c.consume, &c.others)
		c.others.Go(func() { c.watchCatchUp(c.consume) }) // ends with consume; others is waited for
		c.crew.tell(now, "the consumers begin, %d messages behind", max(0, c.catching.backlog))
	case s.change.Kind == workloads.Add:
		if err := c.crew.open(ctx, s.change.Count); err != nil {
			return err
		}
		c.crew.start(c.consume, &c.others)
		c.crew.tell(now, "%s", c.crew.said(s.change.Count, "joined", "joined"))
	default:
		for g := range c.groups {
			for range s.change.Count {
				c.crew.dismiss(g, s.change.Kind == workloads.Kill)
			}
		}
		verb := map[bool][2]string{true: {"was killed", "were killed"}, false: {"left", "left"}}[s.change.Kind == workloads.Kill]
		c.crew.tell(now, "%s", c.crew.said(s.change.Count, verb[0], verb[1]))
	}
	return nil
}

// said is "2 consumers left", with the groups when there are several.
func (c *crew) said(n int, one, many string) string {
	text := fmt.Sprintf("%d consumers %s", n, many)
	if n == 1 {
		text = "a consumer " + one
	}
	if len(c.groups) > 1 {
		text += " in each group"
	}
	return text
}

// tell notes an event.
func (c *crew) tell(at int64, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, results.Event{AtNs: at - c.frame.start.Load(), Kind: "consumers", Text: fmt.Sprintf(format, args...)})
}

// dismiss sends away who has been in a group longest: to leave it, or dead at once. Closing takes a
// while, in a goroutine of its own that leaving waits for.
func (c *crew) dismiss(group int, kill bool) {
	c.mu.Lock()
	i := slices.IndexFunc(c.members, func(m *member) bool { return m.Group == group })
	if i < 0 {
		c.mu.Unlock()
		return
	}
	m := c.members[i]
	c.members = slices.Delete(c.members, i, i+1)
	c.mu.Unlock()
	m.stop() // what Run returns from here on is no failure
	if k, mortal := m.reader.(Killer); kill && mortal {
		k.Kill()
	}
	c.leaving.Go(func() { // ends with Run and Close, which the context bounds
		<-m.ended
		ctx, cancel := context.WithTimeout(c.spec.HardCtx, c.spec.CloseTimeout)
		defer cancel()
		if err := m.reader.Close(ctx); err != nil && !kill {
			c.mu.Lock()
			c.notes = append(c.notes, fmt.Sprintf("closing consumer %d: %v", m.ID, err))
			c.mu.Unlock()
		}
	})
}
