package produce

import (
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// Outcome is what an answer says about the batch of one partition. Topic and Message alias the
// answer.
type Outcome struct {
	Topic     []byte
	Partition int32
	Code      int16
	// BaseOffset is the offset of the batch's first record, −1 when the broker does not tell.
	BaseOffset int64
	// LogAppendTimeMs is the broker's time for the batch, −1 unless the topic uses it.
	LogAppendTimeMs int64
	// BadRecords are the indexes in the batch of the records that were refused (KIP-467); the
	// whole batch was then refused because of them. The slice is valid during the call only.
	BadRecords []int32
	Message    []byte
	// Leader and LeaderEpoch are the broker's hint where the partition is now (KIP-951),
	// −1 without one.
	Leader, LeaderEpoch int32
}

// Answer reads answers; it keeps its scratch from one to the next. Not safe for concurrent use.
type Answer struct {
	r   wire.Reader
	bad []int32
}

// Read calls each for every partition of the answer, in order, and returns how long the broker
// asks to be left alone. An error says that the answer cannot be read; each may have been called
// for its readable beginning.
func (a *Answer) Read(body []byte, version int16, each func(*Outcome)) (time.Duration, error) {
	r := &a.r
	r.Reset(body, wire.Flexible(Key, version))
	var o Outcome
	for range r.Array(6) {
		o.Topic = r.Str()
		for range r.Array(14) {
			a.outcome(&o, version)
			if r.Err() != nil {
				return 0, r.Err()
			}
			each(&o)
		}
		r.Tags()
	}
	throttle := time.Duration(r.Int32()) * time.Millisecond
	r.Tags()
	if err := r.Close(); err != nil {
		return 0, err
	}
	return max(throttle, 0), nil
}

func (a *Answer) outcome(o *Outcome, version int16) {
	r := &a.r
	o.Partition = r.Int32()
	o.Code = r.Int16()
	o.BaseOffset = r.Int64()
	o.LogAppendTimeMs = r.Int64()
	if version >= 5 {
		r.Int64() // log start offset
	}
	o.BadRecords, o.Message = nil, nil
	if version >= 8 {
		a.bad = a.bad[:0]
		for range r.Array(5) {
			a.bad = append(a.bad, r.Int32())
			r.NullableStr()
			r.Tags()
		}
		o.BadRecords = a.bad
		o.Message, _ = r.NullableStr()
	}
	o.Leader, o.LeaderEpoch = -1, -1
	a.tags(o, version)
}

// tags reads the tagged fields of a partition; tag 0 is the current leader since version 10.
func (a *Answer) tags(o *Outcome, version int16) {
	if !wire.Flexible(Key, version) {
		return
	}
	for range a.r.TagCount() {
		tag, value := a.r.Tag()
		if tag != 0 || version < 10 {
			continue
		}
		var in wire.Reader
		in.Reset(value, true)
		leader, epoch := in.Int32(), in.Int32()
		if in.Err() == nil {
			o.Leader, o.LeaderEpoch = leader, epoch
		}
	}
}
