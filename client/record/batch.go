package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Batch is a batch as read: its header, and the bytes it is in.
type Batch struct {
	// BaseOffset is the offset of the batch, that is of its first record when it was written;
	// compaction removes records but keeps it.
	BaseOffset int64
	// Length is the size in bytes less 12, as the protocol counts; see Size.
	Length int32
	// PartitionLeaderEpoch is the epoch of the leader that appended the batch, -1 if unknown.
	PartitionLeaderEpoch int32
	// CRC is the checksum in the header; see CheckCRC.
	CRC uint32
	// Attributes are the bits that Codec, Transactional, Control and LogAppendTime read.
	Attributes int16
	// LastOffsetDelta is the offset of the last record, when it was written, less BaseOffset.
	LastOffsetDelta int32
	// FirstTimestamp is what the timestamp deltas of records are relative to, MaxTimestamp the
	// latest timestamp, both in milliseconds since the Unix epoch.
	FirstTimestamp, MaxTimestamp int64
	// ProducerID, ProducerEpoch and BaseSequence are -1 for a producer that is not idempotent.
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	// Count is the number of records that are still there, at most LastOffsetDelta + 1.
	Count int32

	raw []byte
}

// Next takes one batch from the start of buf, which is the records field of a Fetch response or
// what an earlier Next left of it. It reads the header and checks it against itself and the
// bytes that are there, but not the CRC. rest is what follows the batch.
//
// The error is [ErrPartial] when buf ends within the batch (always when it is empty): b then has
// BaseOffset and Length if those were there, so that Size says how much is needed, and Size is 0
// otherwise. It is a *[FormatError] for another message format, and a *[CorruptError] for a header that
// contradicts itself.
func Next(buf []byte) (b Batch, rest []byte, err error) {
	if len(buf) >= logOverhead {
		b.BaseOffset = int64(binary.BigEndian.Uint64(buf[atBaseOffset:]))
		b.Length = int32(binary.BigEndian.Uint32(buf[atLength:]))
	}
	// All formats have their number at the same place. It comes before anything else: what the
	// other fields mean depends on it.
	if len(buf) <= atMagic {
		return b, buf, ErrPartial
	}
	if magic := int8(buf[atMagic]); magic != magicV2 {
		return b, buf, &FormatError{Magic: magic, Offset: b.BaseOffset}
	}
	if b.Length < HeaderSize-logOverhead {
		return b, buf, corruptf("batch at offset %d has a length of %d, less than its header", b.BaseOffset, b.Length)
	}
	size := b.Size()
	if size > len(buf) {
		return b, buf, ErrPartial
	}
	b.raw = buf[:size:size]
	b.readHeader()
	if err := b.check(); err != nil {
		return b, buf, err
	}
	return b, buf[size:], nil
}

func (b *Batch) readHeader() {
	h := b.raw[:HeaderSize:HeaderSize]
	b.PartitionLeaderEpoch = int32(binary.BigEndian.Uint32(h[atLeaderEpoch:]))
	b.CRC = binary.BigEndian.Uint32(h[atCRC:])
	b.Attributes = int16(binary.BigEndian.Uint16(h[atAttributes:]))
	b.LastOffsetDelta = int32(binary.BigEndian.Uint32(h[atLastOffsetDelta:]))
	b.FirstTimestamp = int64(binary.BigEndian.Uint64(h[atFirstTimestamp:]))
	b.MaxTimestamp = int64(binary.BigEndian.Uint64(h[atMaxTimestamp:]))
	b.ProducerID = int64(binary.BigEndian.Uint64(h[atProducerID:]))
	b.ProducerEpoch = int16(binary.BigEndian.Uint16(h[atProducerEpoch:]))
	b.BaseSequence = int32(binary.BigEndian.Uint32(h[atBaseSequence:]))
	b.Count = int32(binary.BigEndian.Uint32(h[atCount:]))
}

func (b *Batch) check() error {
	switch {
	case b.BaseOffset < 0 || b.LastOffsetDelta < 0 || b.BaseOffset > math.MaxInt64-1-int64(b.LastOffsetDelta):
		return corruptf("batch at offset %d with last offset delta %d: out of range", b.BaseOffset, b.LastOffsetDelta)
	case b.Count < 0 || int64(b.Count) > int64(b.LastOffsetDelta)+1:
		return corruptf("batch at offset %d has %d records for %d offsets", b.BaseOffset, b.Count, int64(b.LastOffsetDelta)+1)
	case b.Codec() == None:
		return b.checkCount(len(b.RecordsSection()))
	case b.Count > 0 && len(b.RecordsSection()) == 0:
		return b.checkCount(0)
	}
	return nil
}

// checkCount holds the record count against the size of the uncompressed records.
func (b *Batch) checkCount(size int) error {
	if int64(b.Count)*minRecordSize > int64(size) {
		return corruptf("batch at offset %d claims %d records in %d bytes", b.BaseOffset, b.Count, size)
	}
	return nil
}

func corruptf(format string, args ...any) error {
	return &CorruptError{What: fmt.Sprintf(format, args...)}
}

// Codec is how the records are compressed; it may be one that Kafka does not define.
func (b *Batch) Codec() Codec { return Codec(b.Attributes & codecMask) }

// LogAppendTime says that the broker's time, MaxTimestamp, is the timestamp of every record.
func (b *Batch) LogAppendTime() bool { return b.Attributes&logAppendTimeFlag != 0 }

// Transactional says that the batch is part of a transaction, or a marker that ends one.
func (b *Batch) Transactional() bool { return b.Attributes&transactionalFlag != 0 }

// Control says that the batch holds markers for clients, see [ControlType], and no messages.
func (b *Batch) Control() bool { return b.Attributes&controlFlag != 0 }

// LastOffset is the last offset that the batch covers, whether or not that record is still
// there.
func (b *Batch) LastOffset() int64 { return b.BaseOffset + int64(b.LastOffsetDelta) }

// NextOffset is where to read on after the batch, even if it has no records (left).
func (b *Batch) NextOffset() int64 { return b.LastOffset() + 1 }

// Offset is the offset of one of the batch's records.
func (b *Batch) Offset(r *Record) int64 { return b.BaseOffset + int64(r.OffsetDelta) }

// Timestamp is the timestamp of one of the batch's records, in milliseconds since the Unix
// epoch: the producer's, or the broker's if LogAppendTime.
func (b *Batch) Timestamp(r *Record) int64 {
	if b.LogAppendTime() {
		return b.MaxTimestamp
	}
	return b.FirstTimestamp + r.TimestampDelta
}

// Size is the size of the whole batch in bytes. After [ErrPartial] it is what the batch says it
// needs, 0 if not even that was there.
func (b *Batch) Size() int {
	if b.Length <= 0 {
		return 0
	}
	return int(b.Length) + logOverhead
}

// Raw is the whole batch as it was read.
func (b *Batch) Raw() []byte { return b.raw }

// CheckCRC compares the bytes with the checksum in the header. The error is a *[CRCError].
func (b *Batch) CheckCRC() error {
	if len(b.raw) < HeaderSize {
		return ErrPartial
	}
	if crc := CRC32C(b.raw[atAttributes:]); crc != b.CRC {
		return &CRCError{Offset: b.BaseOffset, Stored: b.CRC, Computed: crc}
	}
	return nil
}

// RecordsSection is the records as they are in the batch, compressed or not.
func (b *Batch) RecordsSection() []byte {
	if len(b.raw) < HeaderSize {
		return nil
	}
	return b.raw[HeaderSize:]
}

// Decompressed is the records section ready for [ReadRecord]: the batch's own bytes if it is not
// compressed, otherwise decompressed by d into the capacity of dst, within limit bytes; see
// [Decompressor.Decompress] for dst, limit and errors.
func (b *Batch) Decompressed(d *Decompressor, dst []byte, limit int) ([]byte, error) {
	section := b.RecordsSection()
	if b.Codec() == None || b.Count == 0 && len(section) == 0 {
		return section, nil
	}
	out, err := d.Decompress(dst, section, b.Codec(), limit)
	if err != nil {
		return nil, fmt.Errorf("batch at offset %d: %w", b.BaseOffset, err)
	}
	return out, b.checkCount(len(out))
}
