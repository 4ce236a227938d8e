package record

import (
	"encoding/binary"
)

// HeaderSize is the size in bytes of a batch without its records.
const HeaderSize = 61

// MaxRecordOverhead bounds what a record needs besides its key, value and headers with their
// length fields: length (5), attributes (1), timestamp delta (10), offset delta (5).
const MaxRecordOverhead = 21

// maxVarint32 is the longest varint of an int32: any length or count field.
const maxVarint32 = 5

// Offsets of the fields of a batch; see the package comment.
const (
	atBaseOffset      = 0
	atLength          = 8
	atLeaderEpoch     = 12
	atMagic           = 16
	atCRC             = 17
	atAttributes      = 21
	atLastOffsetDelta = 23
	atFirstTimestamp  = 27
	atMaxTimestamp    = 35
	atProducerID      = 43
	atProducerEpoch   = 51
	atBaseSequence    = 53
	atCount           = 57

	// logOverhead is what the length field does not count: base offset and length itself.
	logOverhead = 12
	// minRecordSize is the smallest record: seven fields of one byte each.
	minRecordSize = 7

	magicV2 = 2
)

// Bits of the attributes of a batch.
const (
	codecMask         = 0x07
	logAppendTimeFlag = 0x08
	transactionalFlag = 0x10
	controlFlag       = 0x20
)

// SetProducer rewrites who produced a finished batch and in what place of his sequence, and
// recomputes the CRC. It is for a batch that must be sent again under another producer epoch:
// the records, compressed or not, stay as they are. batch must come from [Builder.Finish].
func SetProducer(batch []byte, id int64, epoch int16, baseSequence int32) {
	h := batch[:HeaderSize:HeaderSize]
	binary.BigEndian.PutUint64(h[atProducerID:], uint64(id))
	binary.BigEndian.PutUint16(h[atProducerEpoch:], uint16(epoch))
	binary.BigEndian.PutUint32(h[atBaseSequence:], uint32(baseSequence))
	setCRC(batch)
}

func setCRC(batch []byte) {
	binary.BigEndian.PutUint32(batch[atCRC:], CRC32C(batch[atAttributes:]))
}
