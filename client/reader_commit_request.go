package client

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/wire"
)

// commitDue sends one commit of everything that is due, after those that are on their way, and
// returns what went wrong with the partitions that want names (nil: with any).
func (m *membership) commitDue(ctx context.Context, who group.Identity, want func(group.Partition) bool) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return fmt.Errorf("committing offsets of group %q: %w", m.r.cfg.GroupID, ctx.Err())
	}
	m.mu.Lock()
	due := m.book.Due(nil, nil)
	m.mu.Unlock()
	if len(due) == 0 {
		return nil // the one before has taken ours along
	}
	slices.SortFunc(due, func(a, b group.Offset) int { return a.Partition.Compare(b.Partition) })
	began := time.Now()
	resp, err := m.ask(ctx, &m.talks, m.offsetCommit(who, due), 0)
	if err != nil {
		return fmt.Errorf("committing offsets of group %q: %w", m.r.cfg.GroupID, err)
	}
	answer, ok := resp.(*kmsg.OffsetCommitResponse)
	if !ok {
		return fmt.Errorf("answered OffsetCommit with %T", resp)
	}
	return m.committedOf(answer, due, want, time.Since(began))
}

// committedOf takes in the answer to a commit of due, which took so long.
func (m *membership) committedOf(r *kmsg.OffsetCommitResponse, due []group.Offset, want func(group.Partition) bool, took time.Duration) (first error) {
	said := make(map[group.Partition]error, len(due))
	for i := range r.Topics {
		for _, p := range r.Topics[i].Partitions {
			said[group.Partition{Topic: r.Topics[i].Topic, ID: p.Partition}] = wire.ErrorFor(p.ErrorCode)
		}
	}
	taken := int64(0)
	m.mu.Lock()
	for _, o := range due {
		err, there := said[o.Partition]
		if !there {
			err = errLeftOut
		}
		if err == nil {
			m.book.Told(o)
			taken++
			continue
		}
		if first == nil && (want == nil || want(o.Partition)) {
			first = fmt.Errorf("committing offset %d of group %q, topic %q partition %d: %w", o.Offset, m.r.cfg.GroupID, o.Topic, o.ID, err)
		}
	}
	m.mu.Unlock()
	m.r.count(func(st *ReaderStats) {
		if taken > 0 {
			st.Commits++
			m.r.commitTimes.record(took)
		}
	})
	return first
}

func (m *membership) offsetCommit(who group.Identity, due []group.Offset) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = m.r.cfg.GroupID, who.MemberID, who.Generation
	req.RetentionTimeMillis = -1 // the broker's own
	if who.InstanceID != "" {
		req.InstanceID = &who.InstanceID
	}
	for i := range due {
		o := &due[i]
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != o.Topic {
			topic := kmsg.NewOffsetCommitRequestTopic()
			topic.Topic = o.Topic
			req.Topics = append(req.Topics, topic)
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch = o.ID, o.Offset, o.Epoch
		topic := &req.Topics[len(req.Topics)-1]
		topic.Partitions = append(topic.Partitions, p)
	}
	return req
}
