package record

import (
	"errors"
	"fmt"
)

// ErrPartial is the error of a batch whose end is missing. It is normal at the end of a Fetch
// response, which the broker cuts at a size, not at a batch.
var ErrPartial = errors.New("record: batch is not complete")

// FormatError is the error of records in another message format than v2.
type FormatError struct {
	// Magic is the format's number: 0 and 1 are those before Kafka 0.11.
	Magic int8
	// Offset is the base offset that the data claim.
	Offset int64
}

// Error says which format it is and what can be done.
func (e *FormatError) Error() string {
	if e.Magic == 0 || e.Magic == 1 {
		return fmt.Sprintf("record: data at offset %d are in message format v%d, written before Kafka 0.11; "+
			"only v2 is read: start at a later offset, or copy the topic with a client that knows the old format", e.Offset, e.Magic)
	}
	return fmt.Sprintf("record: data at offset %d have magic byte %d, which is no known message format; "+
		"only v2 is read: the data are damaged, or newer than this client", e.Offset, e.Magic)
}

// CRCError is the error of a batch whose bytes are not those that were checksummed.
type CRCError struct {
	// Offset is the base offset of the batch.
	Offset int64
	// Stored is the checksum in the batch, Computed that of its bytes.
	Stored, Computed uint32
}

// Error names the batch and both checksums.
func (e *CRCError) Error() string {
	return fmt.Sprintf("record: batch at offset %d is damaged: CRC32C is %#08x, its header says %#08x", e.Offset, e.Computed, e.Stored)
}

// CorruptError is the error of bytes that do not follow the format although they may have the
// right checksum.
type CorruptError struct {
	// What is wrong, in words.
	What string
	// Err is the codec's own error, if one said so.
	Err error
}

// Error says what is wrong.
func (e *CorruptError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("record: corrupt data: %s: %v", e.What, e.Err)
	}
	return "record: corrupt data: " + e.What
}

// Unwrap is the codec's own error.
func (e *CorruptError) Unwrap() error { return e.Err }

// TooLargeError is the error of data that decompress to more than the caller allows, and of a
// batch larger than the protocol can carry.
type TooLargeError struct {
	Codec Codec
	// Size in bytes that the data claim or have; 0 when all that is known is that it is over
	// Limit.
	Size int64
	// Limit in bytes.
	Limit int
}

// Error names codec, size and limit.
func (e *TooLargeError) Error() string {
	size := "more than that"
	if e.Size > 0 {
		size = fmt.Sprintf("%d bytes", e.Size)
	}
	if e.Codec == None {
		return fmt.Sprintf("record: batch of %s is over the limit of %d bytes", size, e.Limit)
	}
	return fmt.Sprintf("record: %s data over the limit of %d bytes decompressed: they have %s", e.Codec, e.Limit, size)
}

// CodecError is the error of a codec that Kafka does not define.
type CodecError struct{ Codec Codec }

// Error names the codec's number and what is known.
func (e *CodecError) Error() string {
	return fmt.Sprintf("record: unknown compression codec %d: known are none, gzip, snappy, lz4, zstd (0 to 4)", int8(e.Codec))
}
