package record

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Kafka's snappy is the framing of the snappy-java project ("xerial"), not the official one: 16
// bytes of header, then blocks of a big-endian int32 length and that many bytes of raw snappy.
// Java writes nothing else; its reader, like librdkafka and this one, takes raw snappy as well,
// which other clients have written.
const (
	xerialHeader     = "\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" // magic, version 1, readable since 1
	xerialMagicSize  = 8
	xerialHeaderSize = 16
	// xerialBlock is the input of one block: snappy-java's default.
	xerialBlock = 32 << 10
	// xerialRepeat is how a header in the place of a block's length reads: Java's reader takes
	// concatenated streams.
	xerialRepeat = 0x82534e41
)

func appendSnappy(dst, src []byte) []byte {
	dst = append(dst, xerialHeader...)
	for len(src) > 0 {
		block := src[:min(len(src), xerialBlock)]
		src = src[len(block):]
		at := len(dst) + 4
		dst = slices.Grow(dst, 4+s2.MaxEncodedLen(len(block)))
		room := dst[at:cap(dst)]
		n := len(s2.EncodeSnappy(room, block))
		binary.BigEndian.PutUint32(dst[at-4:at], uint32(n))
		dst = dst[:at+n]
	}
	return dst
}

func isXerial(src []byte) bool {
	return len(src) >= xerialHeaderSize && string(src[:xerialMagicSize]) == xerialHeader[:xerialMagicSize]
}

func decodeSnappy(dst, src []byte, limit int) ([]byte, error) {
	size, err := snappySize(src)
	if err != nil {
		return nil, err
	}
	if size > int64(limit) {
		return nil, &TooLargeError{Codec: Snappy, Size: size, Limit: limit}
	}
	dst = slices.Grow(dst[:0], int(size))
	if !isXerial(src) {
		return appendSnappyBlock(dst, src)
	}
	for block, rest, err := nextXerial(src); ; block, rest, err = nextXerial(rest) {
		if err != nil || block == nil {
			return dst, err
		}
		if dst, err = appendSnappyBlock(dst, block); err != nil {
			return nil, err
		}
	}
}

// snappySize is the size that the data claim to decompress to, from the blocks' own headers.
func snappySize(src []byte) (int64, error) {
	if !isXerial(src) {
		return snappyBlockSize(src)
	}
	var size int64
	for block, rest, err := nextXerial(src); ; block, rest, err = nextXerial(rest) {
		if err != nil || block == nil {
			return size, err
		}
		n, err := snappyBlockSize(block)
		if err != nil {
			return 0, err
		}
		size += n
	}
}

// nextXerial takes the next block, skipping headers; block is nil at the end.
func nextXerial(src []byte) (block, rest []byte, err error) {
	for len(src) >= xerialHeaderSize && binary.BigEndian.Uint32(src) == xerialRepeat {
		if !isXerial(src) {
			return nil, nil, &CorruptError{What: "snappy: header in the middle is damaged"}
		}
		src = src[xerialHeaderSize:]
	}
	if len(src) == 0 {
		return nil, nil, nil
	}
	if len(src) < 4 {
		return nil, nil, &CorruptError{What: "snappy: block without its length"}
	}
	n := int(int32(binary.BigEndian.Uint32(src)))
	src = src[4:]
	if n <= 0 || n > len(src) {
		return nil, nil, &CorruptError{What: "snappy: block length is not within the data"}
	}
	return src[:n], src[n:], nil
}

func snappyBlockSize(block []byte) (int64, error) {
	n, err := s2.DecodedLen(block)
	if err != nil {
		return 0, &CorruptError{What: "snappy", Err: err}
	}
	return int64(n), nil
}

// appendSnappyBlock decodes into dst's spare capacity, which the caller made large enough.
func appendSnappyBlock(dst, block []byte) ([]byte, error) {
	n, err := s2.DecodedLen(block)
	if err != nil || n > cap(dst)-len(dst) {
		return nil, &CorruptError{What: "snappy", Err: err}
	}
	end := len(dst) + n
	if _, err := s2.Decode(dst[len(dst):end:end], block); err != nil {
		return nil, &CorruptError{What: "snappy", Err: err}
	}
	return dst[:end], nil
}
