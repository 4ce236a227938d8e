package record

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
)

// Header is a header of a message. A nil Value is null, which is distinct from empty; keys are
// never null (KIP-82).
type Header struct {
	Key   string
	Value []byte
}

// ErrEmpty is the error of finishing a batch without records, which brokers refuse.
var ErrEmpty = errors.New("record: batch has no records")

var errPlanned = errors.New("record: the batch's records were planned, not encoded")

// Attributes are the fields of a batch that the producer, not the records, decide. Zero is a
// valid producer id: start from [NoProducer] when the producer is not idempotent.
type Attributes struct {
	// ProducerID and ProducerEpoch are those of InitProducerId, -1 when not idempotent.
	ProducerID    int64
	ProducerEpoch int16
	// BaseSequence is the sequence number of the first record, -1 when not idempotent.
	BaseSequence int32
	// Transactional marks the batch as part of a transaction, Control as a transaction marker;
	// a client never produces the latter.
	Transactional, Control bool
	// PartitionLeaderEpoch is -1 from a producer; the broker fills it in and ignores what it got.
	PartitionLeaderEpoch int32
}

// NoProducer are the attributes of a batch that is neither idempotent nor transactional.
var NoProducer = Attributes{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, PartitionLeaderEpoch: -1}

// Builder encodes one batch in place: records are in their final form as soon as they are
// appended. Call Reset before the first Append and for each further batch; the zero value is
// ready for that. Not safe for concurrent use.
type Builder struct {
	buf        []byte // header space, then encoded records
	first, max int64
	count      int32
	compressed bool
	planned    int // bytes of records that are counted and not in buf; see Plan

	sum    uint32 // of the records up to summed, a place in buf; see Sum
	summed int
}

// Reset starts a new batch in the capacity of buf, whose content is overwritten (nil is fine),
// and lets go of the earlier buffer. Timestamps, in milliseconds since the Unix epoch, are
// stored as differences to firstTimestampMs, by convention the first message's: any value is
// correct, near ones are small.
func (b *Builder) Reset(buf []byte, firstTimestampMs int64) {
	*b = Builder{
		buf:   slices.Grow(buf[:0], HeaderSize)[:HeaderSize],
		first: firstTimestampMs,
		max:   math.MinInt64,
	}
}

// Adopt gives the builder of a finished batch other memory, for the next one, and lets go of the
// batch's; Count stays what it is until Reset.
func (b *Builder) Adopt(buf []byte) { b.buf = buf }

// Append encodes one message as the next record. A nil key or value is null, an empty one is
// empty. Everything is copied. It allocates only to grow the buffer.
//
// There is no error: it is for the caller to keep a batch under 2 GiB with [Builder.SizeWith];
// [Builder.Finish] refuses a larger one.
func (b *Builder) Append(timestampMs int64, key, value []byte, headers []Header) {
	delta, offset := zigzag(timestampMs-b.first), uint64(uint32(b.count))<<1
	body := bodySize(delta, offset, key, value)
	if len(headers) == 0 {
		body++
	} else {
		body += headersSize(headers)
	}
	n := len(b.buf)
	need := uvarintLen(zigzagLen(body)) + body
	if cap(b.buf)-n < need {
		b.buf = slices.Grow(b.buf, need)
	}
	dst := b.buf[n : n+need]

	i := putUvarint(dst, 0, zigzagLen(body))
	dst[i] = 0 // attributes of a record: none are defined
	i = putUvarint(dst, i+1, delta)
	i = putUvarint(dst, i, offset)
	i = putBytes(dst, i, key)
	i = putBytes(dst, i, value)
	if len(headers) == 0 {
		dst[i] = 0
	} else {
		putHeaders(dst, i, headers)
	}
	b.buf = b.buf[:n+need] // only now: a panic on the way leaves the batch as it was
	b.max = max(b.max, timestampMs)
	b.count++
}

// Plan counts one message as the next record without encoding it, or looking at a byte of its key and
// value: Len, Count and SizeWith are what they would be after Append. A builder that plans has nothing
// but these to give until Reset; another one encodes the batch later, from the same first timestamp and
// the same messages.
func (b *Builder) Plan(timestampMs int64, key, value []byte, headers []Header) {
	b.planned += b.recordSize(timestampMs, key, value, headers)
	b.count++
}

// Sum takes the records so far into the checksum, while they are still in the processor's cache, if
// they are at least least bytes: by the time a large batch is finished its first ones are not any
// more. Finish has to put the pieces together then, which takes as long as the checksum of some
// ten kilobytes. It is for batches that will not be compressed.
func (b *Builder) Sum(least int) {
	if from := max(b.summed, HeaderSize); len(b.buf)-from >= least {
		b.sum = crc32.Update(b.sum, castagnoli, b.buf[from:])
		b.summed = len(b.buf)
	}
}

// bodySize is what a record's length field counts, without headers. A null and an empty field
// are equally long: one byte.
func bodySize(delta, offset uint64, key, value []byte) int {
	return 1 + uvarintLen(delta) + uvarintLen(offset) +
		uvarintLen(zigzagLen(len(key))) + len(key) +
		uvarintLen(zigzagLen(len(value))) + len(value)
}

func headersSize(headers []Header) int {
	n := uvarintLen(zigzagLen(len(headers)))
	for i := range headers {
		k, v := len(headers[i].Key), len(headers[i].Value)
		n += uvarintLen(zigzagLen(k)) + k + uvarintLen(zigzagLen(v)) + v
	}
	return n
}

func putBytes(dst []byte, i int, b []byte) int {
	if b == nil {
		dst[i] = 1 // zigzag of -1: null
		return i + 1
	}
	i = putUvarint(dst, i, zigzagLen(len(b)))
	return i + copy(dst[i:], b)
}

func putHeaders(dst []byte, i int, headers []Header) {
	i = putUvarint(dst, i, zigzagLen(len(headers)))
	for h := range headers {
		key := headers[h].Key
		i = putUvarint(dst, i, zigzagLen(len(key)))
		i += copy(dst[i:], key)
		i = putBytes(dst, i, headers[h].Value)
	}
}

// SizeWith is the exact size in bytes of the uncompressed batch if this message were appended.
func (b *Builder) SizeWith(timestampMs int64, key, value []byte, headers []Header) int {
	return b.Len() + b.recordSize(timestampMs, key, value, headers)
}

// recordSize is the size of a message as the next record, the record's length field included.
func (b *Builder) recordSize(timestampMs int64, key, value []byte, headers []Header) int {
	body := bodySize(zigzag(timestampMs-b.first), uint64(uint32(b.count))<<1, key, value) + headersSize(headers)
	return uvarintLen(zigzagLen(body)) + body
}

// SizeUpperBound bounds the size in bytes of an uncompressed batch that holds nothing but this
// message, whatever its timestamp: what to hold against a limit on the size of a message.
func SizeUpperBound(key, value []byte, headers []Header) int {
	n := HeaderSize + MaxRecordOverhead + 3*maxVarint32 + len(key) + len(value)
	for i := range headers {
		n += 2*maxVarint32 + len(headers[i].Key) + len(headers[i].Value)
	}
	return n
}

// Len is the size in bytes of the uncompressed batch so far; HeaderSize when empty.
func (b *Builder) Len() int { return max(len(b.buf), HeaderSize) + b.planned }

// Count is the number of records so far.
func (b *Builder) Count() int { return int(b.count) }

// Bytes is the builder's buffer: space for the header, then the records uncompressed. The
// header is only filled by Finish. Valid until the next Append or Reset.
func (b *Builder) Bytes() []byte { return b.buf }

// Compressed says whether the last Finish kept the compressor's output, which the batch then
// aliases.
func (b *Builder) Compressed() bool { return b.compressed }

// Finish completes the batch: it compresses the records with c, keeps that only if it is
// smaller, fills the header in and computes the CRC last. A nil c, or one of codec [None],
// compresses nothing. It may be called again, with other attributes or another compressor.
//
// The batch aliases the builder's buffer, or c's when [Builder.Compressed] is true; see the
// package comment for how long either lives. The error is [ErrEmpty], a *[TooLargeError] for a
// batch beyond 2 GiB, or that of the codec.
func (b *Builder) Finish(c *Compressor, a Attributes) (batch []byte, err error) {
	b.compressed = false
	if b.count <= 0 {
		return nil, ErrEmpty
	}
	if b.planned > 0 {
		return nil, errPlanned
	}
	if int64(len(b.buf)) > math.MaxInt32 {
		return nil, &TooLargeError{Codec: None, Size: int64(len(b.buf)), Limit: math.MaxInt32}
	}
	batch, codec := b.buf, None
	if c != nil && c.codec != None {
		out, err := c.compress(HeaderSize, b.buf[HeaderSize:])
		if err != nil {
			return nil, err
		}
		if len(out) < len(batch) {
			batch, codec, b.compressed = out, c.codec, true
		}
	}
	b.putHeader(batch, codec, a)
	if b.summed == 0 || b.compressed {
		setCRC(batch)
		return batch, nil
	}
	b.Sum(0)
	records := len(batch) - HeaderSize
	binary.BigEndian.PutUint32(batch[atCRC:], joinCRC(CRC32C(batch[atAttributes:HeaderSize]), b.sum, records))
	return batch, nil
}

func (b *Builder) putHeader(batch []byte, codec Codec, a Attributes) {
	h := batch[:HeaderSize:HeaderSize]
	binary.BigEndian.PutUint64(h[atBaseOffset:], 0)
	binary.BigEndian.PutUint32(h[atLength:], uint32(len(batch)-logOverhead))
	binary.BigEndian.PutUint32(h[atLeaderEpoch:], uint32(a.PartitionLeaderEpoch))
	h[atMagic] = magicV2
	binary.BigEndian.PutUint16(h[atAttributes:], a.bits(codec))
	binary.BigEndian.PutUint32(h[atLastOffsetDelta:], uint32(b.count-1))
	binary.BigEndian.PutUint64(h[atFirstTimestamp:], uint64(b.first))
	binary.BigEndian.PutUint64(h[atMaxTimestamp:], uint64(b.max))
	binary.BigEndian.PutUint64(h[atProducerID:], uint64(a.ProducerID))
	binary.BigEndian.PutUint16(h[atProducerEpoch:], uint16(a.ProducerEpoch))
	binary.BigEndian.PutUint32(h[atBaseSequence:], uint32(a.BaseSequence))
	binary.BigEndian.PutUint32(h[atCount:], uint32(b.count))
}

func (a Attributes) bits(codec Codec) uint16 {
	bits := uint16(codec)
	if a.Transactional {
		bits |= transactionalFlag
	}
	if a.Control {
		bits |= controlFlag
	}
	return bits
}
