package fetch

import (
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// Key is the request key of Fetch.
const Key = 1

// The session fields of a request that neither has nor wants a fetch session (KIP-227).
const (
	NoSession    int32 = 0
	SessionEpoch int32 = -1
)

// FinalEpoch ends the session that a request names.
const FinalEpoch int32 = -1

// Request is one Fetch request. Fields that a version does not have are left out of it.
type Request struct {
	MaxWait   time.Duration // sent in whole milliseconds
	MinBytes  int32
	MaxBytes  int32
	Isolation int8
	// Session and Epoch name the fetch session (version 7 on).
	Session, Epoch int32
	Topics         []Topic
	// Forgotten are partitions to leave out of the session (version 7 on); only their numbers
	// count.
	Forgotten []Topic
	// Rack is where the client runs (version 11 on, KIP-392).
	Rack string
}

// Topic is the part of a request about one topic.
type Topic struct {
	Name       string
	ID         [16]byte // what names it from version 13 on
	Partitions []Asked
}

// Asked is the part of a request about one partition.
type Asked struct {
	Partition   int32
	Offset      int64
	LeaderEpoch int32 // -1: unknown; the broker then checks nothing (version 9 on, KIP-320)
	// LastEpoch is the epoch of the leader that wrote the record before Offset, which the broker
	// compares with its log (version 12 on). -1: unknown; nothing is compared.
	LastEpoch int32
	MaxBytes  int32
}

// addTo appends a partition to a list of topics: to the last one when that is its own. The memory
// of topics that the list held before is used again.
func addTo(list []Topic, topic string, id [16]byte, a Asked) []Topic {
	n := len(list)
	if n == 0 || list[n-1].Name != topic || list[n-1].ID != id {
		if n < cap(list) {
			list = list[:n+1]
		} else {
			list = append(list, Topic{})
		}
		list[n].Name, list[n].ID, list[n].Partitions = topic, id, list[n].Partitions[:0]
		n++
	}
	list[n-1].Partitions = append(list[n-1].Partitions, a)
	return list
}

// Append appends the request's body in a version from 4 to 18. The fields that came with versions
// 14 to 18 are for brokers.
func (r *Request) Append(dst []byte, version int16) []byte {
	flexible := wire.Flexible(Key, version)
	if version < 15 {
		dst = wire.AppendInt32(dst, -1) // replica id: a consumer
	}
	dst = wire.AppendInt32(dst, int32(min(r.MaxWait.Milliseconds(), 1<<31-1)))
	dst = wire.AppendInt32(dst, r.MinBytes)
	dst = wire.AppendInt32(dst, r.MaxBytes)
	dst = wire.AppendInt8(dst, r.Isolation)
	if version >= 7 {
		dst = wire.AppendInt32(dst, r.Session)
		dst = wire.AppendInt32(dst, r.Epoch)
	}
	dst = wire.AppendArrayLen(dst, len(r.Topics), flexible)
	for i := range r.Topics {
		dst = r.Topics[i].append(dst, version, flexible)
	}
	if version >= 7 {
		dst = appendForgotten(dst, r.Forgotten, version, flexible)
	}
	if version >= 11 {
		dst = wire.AppendStr(dst, r.Rack, flexible)
	}
	return wire.AppendTags(dst, flexible)
}

func (t *Topic) append(dst []byte, version int16, flexible bool) []byte {
	dst = t.appendName(dst, version, flexible)
	dst = wire.AppendArrayLen(dst, len(t.Partitions), flexible)
	for i := range t.Partitions {
		p := &t.Partitions[i]
		dst = wire.AppendInt32(dst, p.Partition)
		if version >= 9 {
			dst = wire.AppendInt32(dst, p.LeaderEpoch)
		}
		dst = wire.AppendInt64(dst, p.Offset)
		if version >= 12 {
			dst = wire.AppendInt32(dst, p.LastEpoch)
		}
		if version >= 5 {
			dst = wire.AppendInt64(dst, -1) // log start offset: for followers
		}
		dst = wire.AppendInt32(dst, p.MaxBytes)
		dst = wire.AppendTags(dst, flexible)
	}
	return wire.AppendTags(dst, flexible)
}

func (t *Topic) appendName(dst []byte, version int16, flexible bool) []byte {
	if version > lastWithNames {
		return append(dst, t.ID[:]...)
	}
	return wire.AppendStr(dst, t.Name, flexible)
}

func appendForgotten(dst []byte, topics []Topic, version int16, flexible bool) []byte {
	dst = wire.AppendArrayLen(dst, len(topics), flexible)
	for i := range topics {
		dst = topics[i].appendName(dst, version, flexible)
		dst = wire.AppendArrayLen(dst, len(topics[i].Partitions), flexible)
		for _, p := range topics[i].Partitions {
			dst = wire.AppendInt32(dst, p.Partition)
		}
		dst = wire.AppendTags(dst, flexible)
	}
	return dst
}
