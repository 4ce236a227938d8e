package client

import (
	"fmt"
	"slices"
)

// topicPartition names one partition of the cluster.
type topicPartition struct {
	topic string
	id    int32
}

func (tp topicPartition) String() string {
	return fmt.Sprintf("topic %q partition %d", tp.topic, tp.id)
}

// noAssignment is the number of no group's assignment: partitions that no group gave have it, and
// messages of an application's own making.
const noAssignment int32 = 0

// assignedAt is a partition to be read, and where to start.
type assignedAt struct {
	topicPartition
	offset int64 // of the first message wanted, FirstOffset or LastOffset
	// leaderEpoch is that of the leader which wrote the message before offset, as it was
	// committed; the log is compared with it before anything is fetched (KIP-320). -1: unknown.
	leaderEpoch int32
}

// positionAt is where the reading of a partition stands.
type positionAt struct {
	topicPartition
	offset      int64 // of the next message to be delivered; negative while it is not looked up
	leaderEpoch int32 // of the message before it; -1 when unknown
}

// assign starts to read partitions, under the number of an assignment that messages are tagged
// with. What is read already is left alone, which is a mistake of the caller's.
func (r *Reader) assign(assignment int32, starts []assignedAt) {
	var topics []string
	for i := range starts {
		if t := starts[i].topic; len(topics) == 0 || topics[len(topics)-1] != t {
			topics = append(topics, t)
		}
	}
	r.client.use(topics)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	for _, at := range starts {
		if r.byPlace[at.topicPartition] != nil {
			r.errLog.Error("partition assigned twice", "topic", at.topic, "partition", at.id)
			continue
		}
		p := newPartition(at, assignment)
		r.parts = append(r.parts, p)
		r.byPlace[p.topicPartition] = p
		r.moving++
	}
	signal(r.wakeDirector)
}

// revoke ends the reading of partitions. When it returns, no message of them is delivered any more;
// what the application holds of them stays valid as before. Other partitions go on undisturbed.
// Partitions that are not read are ignored.
func (r *Reader) revoke(parts []topicPartition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := make(map[*partition]bool, len(parts))
	for _, tp := range parts {
		p := r.byPlace[tp]
		if p == nil {
			continue
		}
		delete(r.byPlace, tp)
		gone[p] = true
		if !p.stopped {
			r.moving--
		}
		p.leave()
		p.Version++ // what is on its way, and what the consumer holds, is worthless now
		p.stopped = true
	}
	r.parts = slices.DeleteFunc(r.parts, func(p *partition) bool { return gone[p] })
	r.purgeLocked(func(p *partition) bool { return gone[p] })
}

// positions is where the reading of every partition stands.
func (r *Reader) positions() []positionAt {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]positionAt, len(r.parts))
	for i, p := range r.parts {
		out[i] = p.position()
	}
	return out
}

// fail makes every Fetch call return err from now on, instead of what is left to read: what the
// reader is for, being a member of its group, cannot go on.
func (r *Reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
	r.againLocked()
}

// PartitionState is where the reading of one partition stands.
type PartitionState struct {
	Topic     string
	Partition int32
	// Offset is that of the next message that the application gets; FirstOffset or LastOffset
	// until that was looked up.
	Offset int64
	// HighWaterMark is the offset behind the last message that consumers can read, as of the
	// last answer; -1 until there was one.
	HighWaterMark int64
	// Lag is how many offsets lie between them; -1 until both are known.
	Lag int64
}

// PartitionStates is the state of every partition that is read at this moment, in the order in
// which they came. It asks nobody.
func (r *Reader) PartitionStates() []PartitionState {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]PartitionState, len(r.parts))
	for i, p := range r.parts {
		out[i] = PartitionState{Topic: p.topic, Partition: p.id, Offset: p.pos, HighWaterMark: p.hwm, Lag: p.lag()}
	}
	return out
}
