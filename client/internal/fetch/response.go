package fetch

import (
	"fmt"
	"slices"
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// Response is one Fetch answer. Decode reuses its memory; topics and records alias the body.
type Response struct {
	// Throttle is how long the broker wants to be left alone (KIP-219).
	Throttle time.Duration
	// Code and Session answer the request as a whole (version 7 on).
	Code    int16
	Session int32
	// Partitions are those of all topics, in the order of the answer.
	Partitions []Answered

	aborted []Aborted
}

// Answered is the part of an answer about one partition. Offsets are -1 where unknown.
type Answered struct {
	Topic            []byte   // to version 12
	TopicID          [16]byte // from version 13 on
	Partition        int32
	Code             int16
	HighWatermark    int64
	LastStableOffset int64
	LogStart         int64
	PreferredReplica int32 // node to read from instead (KIP-392); -1: none
	Leader           int32 // the partition's leader where the broker says so (version 12); -1
	LeaderEpoch      int32
	// Diverging says that the log does not go on from what LastEpoch and Offset of the request
	// stand for: the leader's records up to DivergingEpoch, at most, are the same, and they end
	// before DivergingEnd (version 12 on).
	Diverging      bool
	DivergingEpoch int32
	DivergingEnd   int64
	Records        []byte

	from, to int // the aborted transactions, in Response.aborted
}

// Aborted is one aborted transaction that reaches into the records fetched.
type Aborted struct {
	ProducerID  int64
	FirstOffset int64
}

// Aborted are the aborted transactions of one of r's partitions, in rising order of FirstOffset,
// valid until the next Decode.
func (r *Response) Aborted(p *Answered) []Aborted { return r.aborted[p.from:p.to:p.to] }

// Smallest sizes of the answer's repeated parts, which bound what a count can make us do: name
// (an id takes more) and count of a topic; the fields that every version has of a partition; an aborted transaction.
const (
	minTopic     = 2
	minPartition = 4 + 2 + 8 + 8 + 1 + 1
	minAborted   = 16
)

// Decode reads an answer of a version from 4 to 18. The error wraps one of wire's sentinels for
// malformed messages; r is then not to be used.
func (r *Response) Decode(body []byte, version int16) error {
	var in wire.Reader
	in.Reset(body, wire.Flexible(Key, version))
	*r = Response{Partitions: r.Partitions[:0], aborted: r.aborted[:0]}
	r.Throttle = time.Duration(max(in.Int32(), 0)) * time.Millisecond
	if version >= 7 {
		r.Code = in.Int16()
		r.Session = in.Int32()
	}
	for topics := in.Array(minTopic); topics > 0; topics-- {
		of := Answered{DivergingEpoch: -1, DivergingEnd: -1}
		if version > lastWithNames {
			of.TopicID = in.UUID()
		} else {
			of.Topic = in.Str()
		}
		for n := in.Array(minPartition); n > 0 && in.Err() == nil; n-- {
			r.Partitions = append(r.Partitions, of)
			r.decodePartition(&in, version, &r.Partitions[len(r.Partitions)-1])
		}
		in.Tags()
		if in.Err() != nil {
			break
		}
	}
	in.Tags()
	if err := in.Close(); err != nil {
		return fmt.Errorf("fetch response (version %d): %w", version, err)
	}
	return nil
}

func (r *Response) decodePartition(in *wire.Reader, version int16, p *Answered) {
	p.LogStart, p.PreferredReplica, p.Leader, p.LeaderEpoch = -1, -1, -1, -1
	p.Partition = in.Int32()
	p.Code = in.Int16()
	p.HighWatermark = in.Int64()
	p.LastStableOffset = in.Int64()
	if version >= 5 {
		p.LogStart = in.Int64()
	}
	r.decodeAborted(in, p)
	if version >= 11 {
		p.PreferredReplica = in.Int32()
	}
	p.Records, _ = in.NullableBytes()
	for n := in.TagCount(); n > 0 && in.Err() == nil; n-- {
		switch number, value := in.Tag(); number {
		case 0:
			p.decodeDiverging(value)
		case 1:
			p.decodeLeader(value)
		}
	}
}

func (r *Response) decodeAborted(in *wire.Reader, p *Answered) {
	p.from = len(r.aborted)
	for n := in.Array(minAborted); n > 0 && in.Err() == nil; n-- {
		r.aborted = append(r.aborted, Aborted{ProducerID: in.Int64(), FirstOffset: in.Int64()})
		in.Tags()
	}
	p.to = len(r.aborted)
	// Brokers list them in the order in which the transactions ended.
	slices.SortFunc(r.aborted[p.from:p.to], func(a, b Aborted) int {
		switch {
		case a.FirstOffset < b.FirstOffset:
			return -1
		case a.FirstOffset > b.FirstOffset:
			return 1
		}
		return 0
	})
}

// decodeDiverging reads the tagged field that says where the logs part. A damaged one is as good as
// none.
func (p *Answered) decodeDiverging(value []byte) {
	var in wire.Reader
	in.Reset(value, true)
	epoch, end := in.Int32(), in.Int64()
	in.Tags()
	if in.Close() == nil && (epoch >= 0 || end >= 0) { // brokers may send the field empty
		p.Diverging, p.DivergingEpoch, p.DivergingEnd = true, epoch, end
	}
}

// decodeLeader reads the tagged field that names the leader. A damaged one is as good as none.
func (p *Answered) decodeLeader(value []byte) {
	var in wire.Reader
	in.Reset(value, true)
	leader, epoch := in.Int32(), in.Int32()
	in.Tags()
	if in.Close() == nil {
		p.Leader, p.LeaderEpoch = leader, epoch
	}
}
