package client

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/group"
)

// holding is one change of what is held, under way or done.
type holding struct {
	stop context.CancelFunc // breaks it off
	done chan struct{}      // closed by its goroutine
}

// nextHolding changes what is held, once the change before, which is broken off, has come to its
// end. Called by the loop.
func (m *membership) nextHolding(change func(context.Context)) {
	before := m.holding
	if before != nil {
		before.stop()
	}
	ctx, stop := context.WithCancel(m.life)
	now := &holding{stop: stop, done: make(chan struct{})}
	m.holding = now
	m.work(func() {
		defer close(now.done)
		defer stop()
		if before != nil {
			<-before.done // bounded by what the user's hooks take, and once the member leaves by lastWait
		}
		change(ctx)
	})
}

// reconcile makes what is held what the member wants, and tells it.
func (m *membership) reconcile(want group.Reconcile) {
	m.nextHolding(func(ctx context.Context) {
		if ctx.Err() != nil {
			return
		}
		m.giveUp(ctx, want, false)
		if err := m.takeUp(ctx, want); err != nil {
			if ctx.Err() == nil {
				m.fatal(err)
			}
			return
		}
		held := asAssignment(slices.Collect(maps.Keys(m.held)))
		m.tell(func(now time.Time) { m.member.Held(now, want.Serial, held) })
	})
}

// giveUp stops reading what is not wanted any more, lets the application and the book commit what has
// been dealt with, and forgets it. Unless the member is leaving, no other generation can commit it
// than the one there is: the next one comes when this is done.
func (m *membership) giveUp(ctx context.Context, want group.Reconcile, leaving bool) {
	keep := map[group.Partition]bool{}
	for _, p := range partitionsIn(want.Hold) {
		keep[p] = true
	}
	var gone []group.Partition
	var stop []topicPartition
	for p := range m.held {
		if !keep[p] {
			gone = append(gone, p)
			stop = append(stop, topicPartition{p.Topic, p.ID})
		}
	}
	if len(gone) == 0 {
		return
	}
	slices.SortFunc(gone, group.Partition.Compare)
	m.r.revoke(stop)
	m.mu.Lock()
	m.ending = map[group.Partition]bool{}
	for _, p := range gone {
		if !leaving {
			m.ending[p] = true
		}
		if want.Lost {
			m.book.Close(p) // at once: the hook must not wait for a commit of it
		}
	}
	m.wakeLocked()
	m.mu.Unlock()
	m.hook("ReaderConfig.OnRevoked", m.r.cfg.OnRevoked, want.Generation, gone)
	m.drain(ctx, gone, leaving) // of what is lost the book holds nothing
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range gone {
		m.book.Close(p)
		delete(m.held, p)
	}
	m.ending = nil
	m.wakeLocked() // whoever waits to commit for one of them
}

// endAll is for a member that is leaving and has lost its place: nothing can be committed any more.
func (m *membership) endAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.book.Held() {
		m.book.Close(p)
	}
	m.wakeLocked()
}

// takeUp begins to read what is not held yet, where the group has come to.
func (m *membership) takeUp(ctx context.Context, want group.Reconcile) error {
	var fresh []group.Partition
	for _, p := range partitionsIn(want.Hold) {
		if !m.held[p] {
			fresh = append(fresh, p)
		}
	}
	starts, err := m.starts(ctx, fresh)
	if err != nil {
		return err
	}
	m.tag++
	m.mu.Lock()
	for i := range starts {
		s := &starts[i]
		p := group.Partition{Topic: s.topic, ID: s.id}
		m.held[p] = true
		m.book.Open(p, m.tag, s.committed)
		if s.committed < 0 && s.offset >= 0 {
			m.book.Mark(group.Offset{Partition: p, Tag: m.tag, Offset: s.offset, Epoch: -1})
		}
	}
	m.mu.Unlock()
	m.commitStarts(ctx, starts)
	if want.Adopt {
		m.hook("ReaderConfig.OnAssigned", m.r.cfg.OnAssigned, want.Generation, fresh)
	}
	begin := make([]assignedAt, len(starts))
	for i := range starts {
		begin[i] = starts[i].assignedAt
	}
	if len(begin) > 0 {
		m.r.assign(m.tag, begin)
	}
	return nil
}

// partitionsIn lists the partitions of an assignment in order.
func partitionsIn(parts []assign.TopicPartitions) (out []group.Partition) {
	for _, t := range parts {
		for _, p := range t.Partitions {
			out = append(out, group.Partition{Topic: t.Topic, ID: p})
		}
	}
	return out
}

// asAssignment is the opposite.
func asAssignment(parts []group.Partition) []assign.TopicPartitions {
	out := make([]assign.TopicPartitions, len(parts))
	for i, p := range parts {
		out[i] = assign.TopicPartitions{Topic: p.Topic, Partitions: []int32{p.ID}}
	}
	return assign.Normal(out)
}
