package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/wire"
)

// GroupMetadata says which consumer group offsets are committed for, and, where the committing
// process is a member, which one: then the coordinator refuses them when the group has moved on
// without that member (KIP-447).
type GroupMetadata struct {
	GroupID string
	// MemberID and GenerationID are those of the member, as the group last told it; without a
	// MemberID the GenerationID is not looked at, and offsets are committed from outside the group.
	MemberID     string
	GenerationID int32
	// InstanceID is the group.instance.id of a static member; empty for none.
	InstanceID string
}

// GroupOffset is how far a group has come in one partition.
type GroupOffset struct {
	Topic     string
	Partition int32
	// Offset is that of the next message to read: one more than that of the last one dealt with.
	Offset int64
	// LeaderEpoch is the leader epoch of the last message dealt with; 0 or less: not told.
	LeaderEpoch int32
	// Metadata is kept beside the offset, for the group's own use.
	Metadata string
}

var errGroupTooOld = errors.New("the broker is older than Kafka 2.5 and cannot check the member (KIP-447): give the group id alone")

// sendOffsets makes a group's offsets part of the open transaction.
func (t *transactions) sendOffsets(ctx context.Context, offsets []GroupOffset, group GroupMetadata) error {
	if !t.v2() { // with v2 the group's coordinator adds the group by itself
		err := t.addGroup(ctx, group.GroupID)
		if err != nil {
			return err
		}
	}
	_, err := t.ask(ctx, t.txnOffsetCommit(offsets, group))
	return err
}

// addGroup tells the transaction's coordinator of the group.
func (t *transactions) addGroup(ctx context.Context, group string) error {
	who := t.p.identities.now()
	_, err := t.ask(ctx, txnAsk{
		key: t.key, what: fmt.Sprintf("adding the offsets of group %q to the transaction", group),
		make: func(*conn.Conn) (kmsg.Request, int16, error) {
			req := kmsg.NewPtrAddOffsetsToTxnRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = t.id, who.id, who.epoch, group
			return req, 0, nil
		},
		read: func(r kmsg.Response) error { return wire.ErrorFor(r.(*kmsg.AddOffsetsToTxnResponse).ErrorCode) },
	})
	if err == nil {
		t.touch(true)
	}
	return err
}

// txnOffsetCommit is the question to the group's coordinator.
func (t *transactions) txnOffsetCommit(offsets []GroupOffset, group GroupMetadata) txnAsk {
	who := t.p.identities.now()
	return txnAsk{
		key: coordinatorKey{coordinatorOfGroup, group.GroupID}, what: fmt.Sprintf("committing offsets of group %q in the transaction", group.GroupID),
		make: func(c *conn.Conn) (kmsg.Request, int16, error) {
			req := kmsg.NewPtrTxnOffsetCommitRequest()
			req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = t.id, group.GroupID, who.id, who.epoch
			req.Generation = -1
			if group.MemberID != "" || group.InstanceID != "" {
				if v, err := c.Version(req.Key()); err == nil && v < 3 {
					return nil, 0, errGroupTooOld
				}
			}
			if group.MemberID != "" {
				req.MemberID, req.Generation = group.MemberID, group.GenerationID
			}
			if group.InstanceID != "" {
				req.InstanceID = &group.InstanceID
			}
			req.Topics = offsetTopics(offsets)
			return req, t.capped(wire.LastTxnOffsetCommitTxnV1), nil
		},
		read: func(r kmsg.Response) error { return offsetsTaken(r.(*kmsg.TxnOffsetCommitResponse), offsets) },
	}
}

// offsetTopics groups offsets by topic.
func offsetTopics(offsets []GroupOffset) (topics []kmsg.TxnOffsetCommitRequestTopic) {
	at := map[string]int{}
	for i := range offsets {
		o := &offsets[i]
		n, known := at[o.Topic]
		if !known {
			n = len(topics)
			at[o.Topic] = n
			topic := kmsg.NewTxnOffsetCommitRequestTopic()
			topic.Topic = o.Topic
			topics = append(topics, topic)
		}
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch = o.Partition, o.Offset, -1
		if o.LeaderEpoch > 0 {
			p.LeaderEpoch = o.LeaderEpoch
		}
		p.Metadata = &o.Metadata
		topics[n].Partitions = append(topics[n].Partitions, p)
	}
	return topics
}

// offsetsTaken is nil when the answer says of every partition asked about that it was taken.
func offsetsTaken(r *kmsg.TxnOffsetCommitResponse, offsets []GroupOffset) error {
	taken := map[place]bool{}
	for i := range r.Topics {
		for _, p := range r.Topics[i].Partitions {
			if err := wire.ErrorFor(p.ErrorCode); err != nil {
				return fmt.Errorf("topic %q partition %d: %w", r.Topics[i].Topic, p.Partition, err)
			}
			taken[place{r.Topics[i].Topic, p.Partition}] = true
		}
	}
	for i := range offsets {
		if o := &offsets[i]; !taken[place{o.Topic, o.Partition}] {
			return fmt.Errorf("topic %q partition %d: %w", o.Topic, o.Partition, errLeftOut)
		}
	}
	return nil
}
