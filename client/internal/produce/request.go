// Package produce is the wire form of Produce requests and answers, versions 3 to 12, written by
// hand because they are the producer's hot path: a request is a few small pieces around batches
// that are never copied, an answer is read in place. Pure: no I/O, no clock.
package produce

import (
	"encoding/binary"
	"net"

	"github.com/kbench/kbench/client/internal/wire"
)

// Key is the request key of Produce.
const Key = 0

// Head are the fields of a request that are not batches.
type Head struct {
	Version         int16
	TransactionalID *string
	Acks            int16
	TimeoutMs       int32
}

// Encoder builds the body of one request at a time. The zero value is ready; it may be used
// again once the body it gave out is no longer needed. Not safe for concurrent use.
type Encoder struct {
	small    []byte   // every byte that is not of a batch, in order
	cuts     []cut    // where batches go between them
	bufs     [][]byte // the body, pieces of small and batches in turn
	flexible bool

	topics, partitions     int // in the request; of the topic being written
	topicsAt, partitionsAt int // where their counts stand in small
}

// cut is a batch that follows the first at bytes of small.
type cut struct {
	at    int
	batch []byte
}

// countWidth is the space kept for a count that is not known yet: a fixed-width int32, or a
// varint written in its longest form, which is valid if not the shortest.
const countWidth = 4

// Begin starts a request.
func (e *Encoder) Begin(h Head) {
	e.Forget()
	*e = Encoder{small: e.small[:0], cuts: e.cuts[:0], bufs: e.bufs[:0], flexible: wire.Flexible(Key, h.Version)}
	if h.TransactionalID == nil {
		e.small = wire.AppendNullStr(e.small, e.flexible)
	} else {
		e.small = wire.AppendStr(e.small, *h.TransactionalID, e.flexible)
	}
	e.small = wire.AppendInt16(e.small, h.Acks)
	e.small = wire.AppendInt32(e.small, h.TimeoutMs)
	e.topicsAt = len(e.small)
	e.small = append(e.small, make([]byte, countWidth)...)
}

// Forget lets go of the batches of a body that is no longer needed, so that an encoder which waits to be
// used again keeps none of their memory.
func (e *Encoder) Forget() {
	clear(e.cuts)
	clear(e.bufs)
	e.cuts, e.bufs = e.cuts[:0], e.bufs[:0]
}

// Topic starts the batches of one topic.
func (e *Encoder) Topic(name string) {
	e.endTopic()
	e.topics++
	e.small = wire.AppendStr(e.small, name, e.flexible)
	e.partitions, e.partitionsAt = 0, len(e.small)
	e.small = append(e.small, make([]byte, countWidth)...)
}

// Batch adds the batch of one partition of the topic begun last. It is aliased, not copied.
func (e *Encoder) Batch(partition int32, batch []byte) {
	e.partitions++
	e.small = wire.AppendInt32(e.small, partition)
	e.small = wire.AppendBytesLen(e.small, len(batch), e.flexible)
	e.cuts = append(e.cuts, cut{at: len(e.small), batch: batch})
	e.small = wire.AppendTags(e.small, e.flexible)
}

func (e *Encoder) endTopic() {
	if e.topics == 0 {
		return
	}
	e.putCount(e.partitionsAt, e.partitions)
	e.small = wire.AppendTags(e.small, e.flexible)
}

// putCount writes the count of an array into the space kept for it.
func (e *Encoder) putCount(at, n int) {
	b := e.small[at : at+countWidth]
	if !e.flexible {
		binary.BigEndian.PutUint32(b, uint32(n))
		return
	}
	n++ // compact arrays count from 1; 0 is null
	b[0], b[1], b[2], b[3] = byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)|0x80, byte(n>>21)&0x7f
}

// End completes the request and returns its body. It aliases the encoder and the batches, and
// is valid until the next Begin.
func (e *Encoder) End() net.Buffers {
	e.endTopic()
	e.putCount(e.topicsAt, e.topics)
	e.small = wire.AppendTags(e.small, e.flexible)
	from := 0
	for _, c := range e.cuts {
		e.bufs = append(e.bufs, e.small[from:c.at], c.batch)
		from = c.at
	}
	e.bufs = append(e.bufs, e.small[from:])
	return e.bufs
}
