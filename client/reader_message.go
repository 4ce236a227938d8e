package client

import (
	"time"

	"github.com/kbench/kbench/client/record"
)

// Message is one message read.
type Message struct {
	Topic     string
	Partition int32
	// LeaderEpoch is the epoch of the leader that wrote it; -1 when unknown.
	LeaderEpoch int32
	assignment  int32 // number of the group's assignment that it was read under; see membership.tag
	Offset      int64
	// Key and Value are nil for null, which is distinct from empty.
	Key, Value []byte
	Headers    []Header
	// Time is the producer's time, or the broker's where the topic says so, to the millisecond.
	Time time.Time
	// HighWaterMark is the offset behind the last message of the partition that consumers could
	// read when this one was fetched.
	HighWaterMark int64
}

// headerKeys bounds the header keys that a reader remembers, so that a key that comes again
// costs no memory.
const (
	headerKeys   = 1024
	headerKeyLen = 128
)

// key is the header key as a string, the same one for the same key where it is remembered.
func (r *Reader) key(k []byte) string {
	if s, known := r.keys[string(k)]; known {
		return s
	}
	s := string(k)
	if len(r.keys) < headerKeys && len(s) <= headerKeyLen {
		r.keys[s] = s
	}
	return s
}

// appendHeaders appends a record's headers, whose values alias the record.
func (r *Reader) appendHeaders(dst []Header, rec *record.Record) ([]Header, error) {
	h := rec.Headers()
	for h.Next() {
		dst = append(dst, Header{Key: r.key(h.Key), Value: h.Value})
	}
	return dst, h.Err()
}

// slab gives out memory for copies from larger pieces, which live as long as any copy in them.
type slab struct{ free []byte }

const (
	slabBytes = 64 << 10
	slabShare = slabBytes / 8 // what is larger gets memory of its own
)

// copy is b in memory of its own.
func (s *slab) copy(b []byte) []byte {
	n := len(b)
	if n > slabShare {
		return append([]byte(nil), b...) // which clears nothing that is written at once
	}
	if n > len(s.free) {
		s.free = make([]byte, slabBytes)
	}
	own := s.free[:n:n]
	s.free = s.free[n:]
	copy(own, b)
	return own
}
