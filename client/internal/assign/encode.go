package assign

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kbench/kbench/client/internal/wire"
)

// The newest version of the consumer protocol's two messages. Each version only appends fields, and
// readers ignore what they do not know, so that newer ones are understood by all.
const (
	subscriptionVersion = 3
	assignmentVersion   = 0 // later ones add nothing
)

// What members and leaders may have wrong; the errors of this package wrap one of them, or one of
// package wire's.
var (
	ErrVersion   = errors.New("version is negative")
	ErrPartition = errors.New("partition number is negative")
)

// encodeSubscription writes a ConsumerProtocolSubscription, with what m owns where owned is set.
func encodeSubscription(m Member, owned bool, userData []byte) []byte {
	b := wire.AppendInt16(nil, subscriptionVersion)
	topics := slices.Compact(slices.Sorted(slices.Values(m.Topics)))
	b = wire.AppendArrayLen(b, len(topics), false)
	for _, t := range topics {
		b = wire.AppendStr(b, t, false)
	}
	if userData == nil {
		b = wire.AppendNullBytes(b, false)
	} else {
		b = wire.AppendBytes(b, userData, false)
	}
	if !owned {
		m.Owned, m.Generation = nil, -1
	}
	b = appendPartitions(b, m.Owned)
	b = wire.AppendInt32(b, m.Generation)
	if m.Rack == "" {
		return wire.AppendNullStr(b, false)
	}
	return wire.AppendStr(b, m.Rack, false)
}

// DecodeMember makes a Member of what the coordinator sends the leader about it: the metadata that
// the member gave for the assignor that was chosen. Its memory is bounded by that of metadata.
func DecodeMember(assignor, id, instanceID string, metadata []byte) (Member, error) {
	m := Member{ID: id, InstanceID: instanceID, Generation: -1}
	userData, err := m.readSubscription(metadata)
	if err != nil {
		return Member{}, fmt.Errorf("subscription of group member %q: %w", id, err)
	}
	switch assignor {
	case Sticky:
		// An eager member owns nothing while it joins: what it held stands in its user data, and
		// unreadable user data are as good as none.
		m.Owned, m.Generation = readSticky(userData)
	case CooperativeSticky:
		if m.Generation < 0 && len(userData) >= 4 { // before version 2 it stood here alone
			var r wire.Reader
			r.Reset(userData, false)
			m.Generation = r.Int32()
		}
	}
	m.Owned = Normal(m.Owned)
	return m, nil
}

// readSubscription fills m and returns the assignor's own data.
func (m *Member) readSubscription(metadata []byte) (userData []byte, err error) {
	var r wire.Reader
	r.Reset(metadata, false)
	version := r.Int16()
	m.Topics = make([]string, r.Array(2))
	for i := range m.Topics {
		m.Topics[i] = string(r.Str())
	}
	userData, _ = r.NullableBytes()
	if version >= 1 && r.Remaining() > 0 { // some clients say 1 and send 0
		m.Owned, err = readPartitions(&r)
	}
	if version >= 2 {
		m.Generation = r.Int32()
	}
	if version >= 3 {
		rack, _ := r.NullableStr()
		m.Rack = string(rack)
	}
	switch {
	case r.Err() != nil:
		return nil, r.Err()
	case version < 0:
		return nil, ErrVersion
	}
	return userData, err
}

// appendSticky writes the StickyAssignor's user data, version 1: version 0 ended before the
// generation (KIP-341), and no number says which it is.
func appendSticky(m Member) []byte {
	return wire.AppendInt32(appendPartitions(nil, m.Owned), m.Generation)
}

func readSticky(userData []byte) (owned []TopicPartitions, generation int32) {
	var r wire.Reader
	r.Reset(userData, false)
	owned, err := readPartitions(&r)
	if err != nil || r.Err() != nil {
		return nil, -1
	}
	generation = -1
	if r.Remaining() >= 4 {
		generation = r.Int32()
	}
	return owned, generation
}

// EncodeAssignment is the ConsumerProtocolAssignment that the leader sends for one member.
func EncodeAssignment(parts []TopicPartitions) []byte {
	b := appendPartitions(wire.AppendInt16(nil, assignmentVersion), parts)
	return wire.AppendNullBytes(b, false)
}

// DecodeAssignment reads what a leader gave a member: sorted, every partition once. No bytes at
// all, which is what a coordinator gives a member that the leader left out, are no partitions.
func DecodeAssignment(b []byte) ([]TopicPartitions, error) {
	if len(b) == 0 {
		return nil, nil
	}
	var r wire.Reader
	r.Reset(b, false)
	version := r.Int16()
	parts, err := readPartitions(&r)
	if r.Err() == nil && r.Remaining() > 0 { // some leaders leave their user data out
		r.NullableBytes()
	}
	switch {
	case r.Err() != nil:
		err = r.Err()
	case version < 0:
		err = ErrVersion
	}
	if err != nil {
		return nil, fmt.Errorf("assignment from the group's leader: %w", err)
	}
	return Normal(parts), nil
}

func appendPartitions(b []byte, parts []TopicPartitions) []byte {
	b = wire.AppendArrayLen(b, len(parts), false)
	for _, t := range parts {
		b = wire.AppendStr(b, t.Topic, false)
		b = wire.AppendArrayLen(b, len(t.Partitions), false)
		for _, p := range t.Partitions {
			b = wire.AppendInt32(b, p)
		}
	}
	return b
}

// readPartitions reads what appendPartitions writes; the reader's own error is left to its Err.
func readPartitions(r *wire.Reader) (parts []TopicPartitions, err error) {
	n := r.Array(6)
	if n > 0 {
		parts = make([]TopicPartitions, n)
	}
	for i := range parts {
		parts[i].Topic = string(r.Str())
		parts[i].Partitions = make([]int32, r.Array(4))
		for j := range parts[i].Partitions {
			if parts[i].Partitions[j] = r.Int32(); parts[i].Partitions[j] < 0 && r.Err() == nil {
				err = fmt.Errorf("topic %q: %w (%d)", parts[i].Topic, ErrPartition, parts[i].Partitions[j])
			}
		}
	}
	return parts, err
}

// Normal is the same set of partitions sorted by topic and number, each partition once and no
// topic without any. parts itself is not changed.
func Normal(parts []TopicPartitions) []TopicPartitions {
	sorted := slices.Clone(parts)
	slices.SortStableFunc(sorted, func(a, b TopicPartitions) int { return strings.Compare(a.Topic, b.Topic) })
	var out []TopicPartitions
	for _, t := range sorted {
		if len(t.Partitions) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Topic == t.Topic {
			out[n-1].Partitions = append(out[n-1].Partitions, t.Partitions...)
			continue
		}
		out = append(out, TopicPartitions{t.Topic, slices.Clone(t.Partitions)})
	}
	for i := range out {
		slices.Sort(out[i].Partitions)
		out[i].Partitions = slices.Compact(out[i].Partitions)
	}
	return out
}

// Diff is what a member has to do when what it holds is owned and what it was given is assigned:
// give up revoked, then begin with added. Both are normal; what is in neither goes on untouched.
func Diff(owned, assigned []TopicPartitions) (revoked, added []TopicPartitions) {
	owned, assigned = Normal(owned), Normal(assigned)
	return minus(owned, assigned), minus(assigned, owned)
}

// minus is a without b; both are normal.
func minus(a, b []TopicPartitions) (out []TopicPartitions) {
	for _, t := range a {
		var left []int32
		other := of(b, t.Topic)
		for _, p := range t.Partitions {
			if _, there := slices.BinarySearch(other, p); !there {
				left = append(left, p)
			}
		}
		if len(left) > 0 {
			out = append(out, TopicPartitions{t.Topic, left})
		}
	}
	return out
}

// of is a topic's partitions in a normal set.
func of(parts []TopicPartitions, topic string) []int32 {
	i, there := slices.BinarySearchFunc(parts, topic, func(t TopicPartitions, topic string) int {
		return strings.Compare(t.Topic, topic)
	})
	if !there {
		return nil
	}
	return parts[i].Partitions
}
