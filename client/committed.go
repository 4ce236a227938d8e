package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/wire"
)

// CommittedOffsets asks a consumer group's coordinator for the offsets the group has committed of
// some partitions of a topic, in their order; -1 where it has committed none. Offsets of
// transactions that are open are waited for (KIP-447), within Admin.Timeout.
func (c *Client) CommittedOffsets(ctx context.Context, groupID, topic string, partitions ...int32) ([]int64, error) {
	out := make([]int64, len(partitions))
	for i := range out {
		out[i] = -1
	}
	wanted := []assign.TopicPartitions{{Topic: topic, Partitions: partitions}}
	var committed map[group.Partition]committedAt
	err := c.askCoordinator(ctx, coordinatorKey{coordinatorOfGroup, groupID},
		func() kmsg.Request { return offsetFetch(groupID, nil, wanted) },
		func(resp kmsg.Response) (err error) {
			committed, err = committedIn(resp, groupID)
			return err
		})
	if errors.Is(err, wire.ErrGroupIDNotFound) { // some brokers say so of a group that has committed nothing
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("offsets committed by group %q: %w", groupID, err)
	}
	for i, p := range partitions {
		if at, some := committed[group.Partition{Topic: topic, ID: p}]; some {
			out[i] = at.offset
		}
	}
	return out, nil
}

// committedAt is what a group has committed of a partition.
type committedAt struct {
	offset int64 // -1: nothing
	epoch  int32 // of the leader that wrote the message before it; -1: unknown
}

// firstOfManyGroups is the version of OffsetFetch from which on it is about several groups.
const firstOfManyGroups = 8

// offsetFetch is the request in both of its shapes, for one group and (from version 8) for many. who
// is the member that asks, where the group's protocol wants to know; else nil.
func offsetFetch(groupID string, who *group.Identity, parts []assign.TopicPartitions) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.RequireStable = groupID, true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = groupID
	if who != nil {
		g.MemberID, g.MemberEpoch = &who.MemberID, who.Generation
	}
	for _, t := range parts {
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

// committedIn reads an answer of either shape about a group. An error about one partition is one about all.
func committedIn(resp kmsg.Response, groupID string) (map[group.Partition]committedAt, error) {
	r, ok := resp.(*kmsg.OffsetFetchResponse)
	if !ok {
		return nil, fmt.Errorf("answered OffsetFetch with %T", resp)
	}
	if err := codeOf(r); err != nil {
		return nil, err
	}
	out := map[group.Partition]committedAt{}
	take := func(topic string, partition int32, at committedAt, code int16) error {
		if err := wire.ErrorFor(code); err != nil {
			return fmt.Errorf("topic %q partition %d: %w", topic, partition, err)
		}
		out[group.Partition{Topic: topic, ID: partition}] = at
		return nil
	}
	for i := range r.Topics {
		for _, p := range r.Topics[i].Partitions {
			if err := take(r.Topics[i].Topic, p.Partition, committedAt{p.Offset, p.LeaderEpoch}, p.ErrorCode); err != nil {
				return nil, err
			}
		}
	}
	if r.Version >= firstOfManyGroups && (len(r.Groups) != 1 || r.Groups[0].Group != groupID) {
		return nil, errLeftOut // of another group nothing may be taken
	}
	for i := range r.Groups {
		for _, t := range r.Groups[i].Topics {
			for _, p := range t.Partitions {
				if err := take(t.Topic, p.Partition, committedAt{p.Offset, p.LeaderEpoch}, p.ErrorCode); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}
