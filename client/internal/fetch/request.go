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
	Partitions []Asked
}

// Asked is the part of a request about one partition.
type Asked struct {
	Partition   int32
	Offset      int64
	LeaderEpoch int32 // -1: unknown; the broker then checks nothing (version 9 on, KIP-320)
	MaxBytes    int32
}

// Append appends the request's body in a version from 4 to 12.
func (r *Request) Append(dst []byte, version int16) []byte {
	flexible := wire.Flexible(Key, version)
	dst = wire.AppendInt32(dst, -1) // replica id: a consumer
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
		dst = appendForgotten(dst, r.Forgotten, flexible)
	}
	if version >= 11 {
		dst = wire.AppendStr(dst, r.Rack, flexible)
	}
	return wire.AppendTags(dst, flexible)
}

func (t *Topic) append(dst []byte, version int16, flexible bool) []byte {
	dst = wire.AppendStr(dst, t.Name, flexible)
	dst = wire.AppendArrayLen(dst, len(t.Partitions), flexible)
	for i := range t.Partitions {
		p := &t.Partitions[i]
		dst = wire.AppendInt32(dst, p.Partition)
		if version >= 9 {
			dst = wire.AppendInt32(dst, p.LeaderEpoch)
		}
		dst = wire.AppendInt64(dst, p.Offset)
		if version >= 12 {
			dst = wire.AppendInt32(dst, -1) // last fetched epoch: for followers
		}
		if version >= 5 {
			dst = wire.AppendInt64(dst, -1) // log start offset: for followers
		}
		dst = wire.AppendInt32(dst, p.MaxBytes)
		dst = wire.AppendTags(dst, flexible)
	}
	return wire.AppendTags(dst, flexible)
}

func appendForgotten(dst []byte, topics []Topic, flexible bool) []byte {
	dst = wire.AppendArrayLen(dst, len(topics), flexible)
	for i := range topics {
		dst = wire.AppendStr(dst, topics[i].Name, flexible)
		dst = wire.AppendArrayLen(dst, len(topics[i].Partitions), flexible)
		for _, p := range topics[i].Partitions {
			dst = wire.AppendInt32(dst, p.Partition)
		}
		dst = wire.AppendTags(dst, flexible)
	}
	return dst
}
