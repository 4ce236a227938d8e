package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// CommittedOffsets asks a consumer group's coordinator for the offsets the group has committed of
// some partitions of a topic, in their order; -1 where it has committed none. Offsets of
// transactions that are open are waited for (KIP-447), within Admin.Timeout.
func (c *Client) CommittedOffsets(ctx context.Context, group, topic string, partitions ...int32) ([]int64, error) {
	out := make([]int64, len(partitions))
	at := make(map[int32]int, len(partitions))
	for i, p := range partitions {
		out[i], at[p] = -1, i
	}
	err := c.askCoordinator(ctx, coordinatorKey{coordinatorOfGroup, group},
		func() kmsg.Request { return offsetFetch(group, topic, partitions) },
		func(resp kmsg.Response) error {
			return readCommitted(resp, topic, func(partition int32, offset int64) {
				if i, asked := at[partition]; asked {
					out[i] = offset
				}
			})
		})
	if errors.Is(err, wire.ErrGroupIDNotFound) { // some brokers say so of a group that has committed nothing
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("offsets committed by group %q: %w", group, err)
	}
	return out, nil
}

// offsetFetch is the request in both of its shapes, for one group and (from version 8) for many.
func offsetFetch(group, topic string, partitions []int32) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.RequireStable = group, true
	one := kmsg.NewOffsetFetchRequestTopic()
	one.Topic, one.Partitions = topic, partitions
	req.Topics = append(req.Topics, one)
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.Partitions = topic, partitions
	g.Topics = append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	return req
}

// readCommitted gives each partition's offset to found.
func readCommitted(resp kmsg.Response, topic string, found func(int32, int64)) error {
	r, ok := resp.(*kmsg.OffsetFetchResponse)
	if !ok {
		return fmt.Errorf("answered OffsetFetch with %T", resp)
	}
	if err := wire.ErrorFor(r.ErrorCode); err != nil {
		return err
	}
	take := func(name string, partition int32, offset int64, code int16) error {
		if err := wire.ErrorFor(code); err != nil {
			return fmt.Errorf("topic %q partition %d: %w", name, partition, err)
		}
		if name == topic {
			found(partition, offset)
		}
		return nil
	}
	for i := range r.Topics {
		for _, p := range r.Topics[i].Partitions {
			if err := take(r.Topics[i].Topic, p.Partition, p.Offset, p.ErrorCode); err != nil {
				return err
			}
		}
	}
	for i := range r.Groups {
		if err := wire.ErrorFor(r.Groups[i].ErrorCode); err != nil {
			return err
		}
		for _, t := range r.Groups[i].Topics {
			for _, p := range t.Partitions {
				if err := take(t.Topic, p.Partition, p.Offset, p.ErrorCode); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
