package client

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

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

// committedAt is what a group has committed of a partition.
type committedAt struct {
	offset int64 // -1: nothing
	epoch  int32
}

// committed asks for committed offsets until there is an answer.
func (m *membership) committed(ctx context.Context, parts []group.Partition) (map[group.Partition]committedAt, error) {
	for failures := 1; ; failures++ {
		resp, err := m.ask(ctx, &m.talks, m.offsetFetch(parts), 0)
		var out map[group.Partition]committedAt
		if err == nil {
			out, err = committedIn(resp, parts)
		}
		if err == nil {
			return out, nil
		}
		err = fmt.Errorf("offsets committed by group %q: %w", m.r.cfg.GroupID, err)
		if class := wire.Classify(err); !class.Has(wire.Retriable) && !class.Has(wire.Rejoin) {
			return nil, err
		}
		m.r.log.Debug("committed offsets not known yet", "group", m.r.cfg.GroupID, "error", err)
		if m.again(ctx, failures) != nil {
			return nil, err
		}
	}
}

// offsetFetch is the request in both of its shapes, for one group and (from version 8) for many.
func (m *membership) offsetFetch(parts []group.Partition) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.RequireStable = m.r.cfg.GroupID, true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = m.r.cfg.GroupID
	if m.usesConsumer() {
		m.mu.Lock()
		who := m.status.Identity
		m.mu.Unlock()
		g.MemberID, g.MemberEpoch = &who.MemberID, who.Generation
	}
	for _, t := range asAssignment(parts) {
		one := kmsg.NewOffsetFetchRequestTopic()
		one.Topic, one.Partitions = t.Topic, t.Partitions
		req.Topics = append(req.Topics, one)
		topic := kmsg.NewOffsetFetchRequestGroupTopic()
		topic.Topic, topic.Partitions = t.Topic, t.Partitions
		g.Topics = append(g.Topics, topic)
	}
	req.Groups = append(req.Groups, g)
	return req
}

// committedIn reads the answer; a partition left out of it is an error, since it would begin
// somewhere else than where the group is.
func committedIn(resp kmsg.Response, parts []group.Partition) (map[group.Partition]committedAt, error) {
	r, ok := resp.(*kmsg.OffsetFetchResponse)
	if !ok {
		return nil, fmt.Errorf("answered OffsetFetch with %T", resp)
	}
	if err := codeOf(r); err != nil {
		return nil, err
	}
	out := make(map[group.Partition]committedAt, len(parts))
	take := func(topic string, partition int32, offset int64, epoch int32, code int16) error {
		if err := wire.ErrorFor(code); err != nil {
			return fmt.Errorf("topic %q partition %d: %w", topic, partition, err)
		}
		out[group.Partition{Topic: topic, ID: partition}] = committedAt{offset, epoch}
		return nil
	}
	for i := range r.Topics {
		for _, p := range r.Topics[i].Partitions {
			if err := take(r.Topics[i].Topic, p.Partition, p.Offset, p.LeaderEpoch, p.ErrorCode); err != nil {
				return nil, err
			}
		}
	}
	for i := range r.Groups {
		for _, t := range r.Groups[i].Topics {
			for _, p := range t.Partitions {
				if err := take(t.Topic, p.Partition, p.Offset, p.LeaderEpoch, p.ErrorCode); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, p := range parts {
		if _, there := out[p]; !there {
			return nil, fmt.Errorf("topic %q partition %d: %w", p.Topic, p.ID, errLeftOut)
		}
	}
	return out, nil
}
