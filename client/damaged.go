package client

import (
	"errors"

	"github.com/kbench/kbench/client/record"
)

// IsDamaged says whether reading failed since the records that a broker gave are not what was written:
// a checksum that is not theirs, or a format that cannot be read. Asking again does not help.
func IsDamaged(err error) bool {
	var (
		crc     *record.CRCError
		corrupt *record.CorruptError
		format  *record.FormatError
		codec   *record.CodecError
		large   *record.TooLargeError
	)
	return errors.As(err, &crc) || errors.As(err, &corrupt) || errors.As(err, &format) || errors.As(err, &codec) || errors.As(err, &large)
}
