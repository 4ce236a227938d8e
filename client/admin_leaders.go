package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// leaderPoll is how often the cluster is asked who leads, while a leader moves.
const leaderPoll = 50 * time.Millisecond

// MoveLeader makes another replica of a partition its leader, and waits until the cluster says so,
// within Admin.Timeout: the node to, which must be a replica, or with −1 the next one in the list of
// replicas that is in sync. The replicas stay where they are; their order changes, so that the new leader
// is the preferred one. It returns who led before and who leads now.
func (c *Client) MoveLeader(ctx context.Context, topic string, partition, to int32) (from, now int32, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Admin.Timeout)
	defer cancel()
	fail := func(err error) (int32, int32, error) {
		return -1, -1, fmt.Errorf("moving the leader of topic %q partition %d: %w", topic, partition, err)
	}
	d, err := c.DescribeTopic(ctx, topic)
	if err != nil {
		return fail(err)
	}
	if partition < 0 || int(partition) >= len(d.Leaders) {
		return fail(fmt.Errorf("%w: there are %d", ErrPartitionInvalid, len(d.Leaders)))
	}
	from = d.Leaders[partition]
	replicas, err := reordered(d.Replicas[partition], d.ISR[partition], from, to)
	if err != nil {
		return fail(err)
	}
	if err := c.reorder(ctx, topic, partition, replicas); err != nil {
		return fail(err)
	}
	if err := c.electPreferred(ctx, topic, partition); err != nil {
		return fail(err)
	}
	for {
		if d, err = c.DescribeTopic(ctx, topic); err == nil && int(partition) < len(d.Leaders) {
			if now = d.Leaders[partition]; now >= 0 && now != from {
				return from, now, nil
			}
		}
		if c.sleep(ctx, leaderPoll) != nil {
			return fail(fmt.Errorf("it still is node %d after %s", from, c.cfg.Admin.Timeout))
		}
	}
}

// reordered are the replicas with the next leader first.
func reordered(replicas, inSync []int32, leader, to int32) ([]int32, error) {
	at := slices.Index(replicas, to)
	switch {
	case len(replicas) < 2:
		return nil, errors.New("it has one replica, and no other can lead; topics.replicationFactor of 2 or more is needed")
	case to >= 0 && at < 0:
		return nil, fmt.Errorf("node %d is none of its replicas %v", to, replicas)
	case to >= 0 && to == leader:
		return nil, fmt.Errorf("node %d is its leader already", to)
	case to < 0:
		begin := slices.Index(replicas, leader)
		for i := 1; i <= len(replicas) && at < 0; i++ {
			if next := (begin + i + len(replicas)) % len(replicas); replicas[next] != leader && slices.Contains(inSync, replicas[next]) {
				at = next
			}
		}
	}
	if at < 0 || !slices.Contains(inSync, replicas[at]) {
		return nil, fmt.Errorf("no replica beside the leader that may lead is in sync: replicas %v, in sync %v", replicas, inSync)
	}
	return slices.Concat(replicas[at:at+1], replicas[:at], replicas[at+1:]), nil
}

// reorder changes the order of a partition's replicas.
func (c *Client) reorder(ctx context.Context, topic string, partition int32, replicas []int32) error {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = int32(c.cfg.Admin.Timeout.Milliseconds())
	t, p := kmsg.NewAlterPartitionAssignmentsRequestTopic(), kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	t.Topic, p.Partition, p.Replicas = topic, partition, replicas
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return c.askController(ctx, req, func(r kmsg.Response) error {
		answer := r.(*kmsg.AlterPartitionAssignmentsResponse)
		errs := []error{wire.ErrorWith(answer.ErrorCode, answer.ErrorMessage)}
		for i := range answer.Topics {
			for j := range answer.Topics[i].Partitions {
				p := &answer.Topics[i].Partitions[j]
				errs = append(errs, wire.ErrorWith(p.ErrorCode, p.ErrorMessage))
			}
		}
		return errors.Join(errs...)
	})
}

// electPreferred makes the first replica the leader.
func (c *Client) electPreferred(ctx context.Context, topic string, partition int32) error {
	req := kmsg.NewPtrElectLeadersRequest()
	req.TimeoutMillis = int32(c.cfg.Admin.Timeout.Milliseconds())
	t := kmsg.NewElectLeadersRequestTopic()
	t.Topic, t.Partitions = topic, []int32{partition}
	req.Topics = append(req.Topics, t)
	return c.askController(ctx, req, func(r kmsg.Response) error {
		answer := r.(*kmsg.ElectLeadersResponse)
		errs := []error{wire.ErrorWith(answer.ErrorCode, nil)}
		for i := range answer.Topics {
			for j := range answer.Topics[i].Partitions {
				p := &answer.Topics[i].Partitions[j]
				if err := wire.ErrorWith(p.ErrorCode, p.ErrorMessage); p.ErrorCode != electionNotNeeded {
					errs = append(errs, err)
				}
			}
		}
		return errors.Join(errs...)
	})
}

// electionNotNeeded is ELECTION_NOT_NEEDED: the controller has elected the first replica by itself.
const electionNotNeeded = 84
