package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/wire"
)

// startAt is where a partition begins, and what the group has committed of it.
type startAt struct {
	assignedAt
	committed int64 // -1: nothing
}

// starts finds out where partitions begin: where the group has come to, or, where it has committed
// nothing, where it is to start. It tries until ctx ends; an error means that trying does not help.
func (m *membership) starts(ctx context.Context, parts []group.Partition) ([]startAt, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	committed, err := m.committed(ctx, parts)
	if err != nil {
		return nil, err
	}
	out := make([]startAt, len(parts))
	var ends []OffsetQuery
	var at []int
	for i, p := range parts {
		s := startAt{assignedAt: assignedAt{topicPartition: topicPartition{p.Topic, p.ID}, leaderEpoch: -1}, committed: -1}
		if c, some := committed[p]; some && c.offset >= 0 {
			s.offset, s.leaderEpoch, s.committed = c.offset, c.epoch, c.offset
		} else if s.offset = m.startOf(p); s.offset < 0 {
			ends = append(ends, OffsetQuery{p.Topic, p.ID, s.offset}) // the same numbers ask for the ends
			at = append(at, i)
		}
		out[i] = s
	}
	if len(ends) == 0 {
		return out, nil
	}
	answers, err := m.r.client.ListOffsets(ctx, m.r.consume.IsolationLevel, ends...)
	if err != nil {
		return nil, err
	}
	for j, a := range answers {
		if a.Err != nil {
			// It begins at that end all the same, once its leader can be asked.
			m.r.errLog.Warn("start not known yet", "topic", a.Topic, "partition", a.Partition, "error", a.Err)
			continue
		}
		out[at[j]].offset = a.Offset
	}
	return out, nil
}

// committed asks for committed offsets until there is an answer.
func (m *membership) committed(ctx context.Context, parts []group.Partition) (map[group.Partition]committedAt, error) {
	for failures := 1; ; failures++ {
		resp, err := m.ask(ctx, &m.talks, offsetFetch(m.r.cfg.GroupID, m.askedBy(), asAssignment(parts)), 0)
		var out map[group.Partition]committedAt
		if err == nil {
			out, err = committedIn(resp, m.r.cfg.GroupID)
		}
		if err == nil {
			err = complete(out, parts)
		}
		if err == nil {
			return out, nil
		}
		err = fmt.Errorf("offsets committed by group %q: %w", m.r.cfg.GroupID, err)
		if class := wire.Classify(err); !class.Has(wire.Retriable) && !class.Has(wire.Rejoin) || errors.Is(err, errLeftOut) && failures >= suspectTries {
			return nil, err
		}
		m.r.log.Debug("committed offsets not known yet", "group", m.r.cfg.GroupID, "error", err)
		if m.again(ctx, failures) != nil {
			return nil, err
		}
	}
}

// askedBy is whom OffsetFetch names as the one that asks, nil in the classic protocol.
func (m *membership) askedBy() *group.Identity {
	if !m.usesConsumer() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	who := m.status.Identity
	return &who
}

// complete says that a partition was left out of an answer: it would begin somewhere else than where
// the group is.
func complete(committed map[group.Partition]committedAt, parts []group.Partition) error {
	for _, p := range parts {
		if _, there := committed[p]; !there {
			return fmt.Errorf("topic %q partition %d: %w", p.Topic, p.ID, errLeftOut)
		}
	}
	return nil
}
