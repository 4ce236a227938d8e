package record

import (
	"encoding/binary"
	"slices"

	"github.com/pierrec/lz4/v4"
)

// The LZ4 frame format, as far as Kafka uses it. Java writes independent blocks of 64 KiB
// without content size or any checksum, and refuses dependent blocks. It should not be given a
// content checksum: 4.4 and earlier skip it, but code after that compares it with the XOR of the
// blocks' hashes, which is the real one only for a frame of a single block.
//
// The frame is read here, not with lz4.Reader: that one copies every block, allocates up to
// 8 MiB because a header says so, and recurses once per concatenated legacy header, which a
// hostile batch can repeat until the stack is full. The checksums of a frame are skipped: the
// batch's CRC32C covers the same bytes.
const (
	lz4Magic      = 0x184d2204
	lz4BlockSize  = 64 << 10
	lz4Stored     = 1 << 31 // of a block's length: the block is not compressed
	lz4DictWindow = 64 << 10
	// lz4MaxRatio bounds what a block of n bytes can decompress to: n × 255.
	lz4MaxRatio = 255

	lz4FlagVersion         = 0xc0 // must be 1
	lz4FlagIndependent     = 0x20
	lz4FlagBlockChecksum   = 0x10
	lz4FlagContentSize     = 0x08
	lz4FlagContentChecksum = 0x04
	lz4FlagReserved        = 0x03 // reserved, and dictionary id, which Kafka cannot transport
)

// lz4Header is the header of every frame written: magic, version 1 with independent blocks,
// block size 64 KiB, and the descriptor's checksum, the second byte of xxHash32(60 40).
const lz4Header = "\x04\x22\x4d\x18\x60\x40\x82"

type lz4Encoder struct {
	fast *lz4.Compressor
	high *lz4.CompressorHC
}

func newLZ4Encoder(depth lz4.CompressionLevel) *lz4Encoder {
	if depth == lz4.Fast {
		return &lz4Encoder{fast: new(lz4.Compressor)}
	}
	return &lz4Encoder{high: &lz4.CompressorHC{Level: depth}}
}

func (e *lz4Encoder) appendFrame(dst, src []byte) []byte {
	dst = append(dst, lz4Header...)
	for len(src) > 0 {
		block := src[:min(len(src), lz4BlockSize)]
		src = src[len(block):]
		dst = e.appendBlock(dst, block)
	}
	return append(dst, 0, 0, 0, 0) // end mark
}

func (e *lz4Encoder) appendBlock(dst, block []byte) []byte {
	at := len(dst) + 4
	dst = slices.Grow(dst, 4+len(block))[:at+len(block)]
	// A room as large as the block makes an incompressible one fail, with 0.
	n := e.compress(block, dst[at:])
	if n <= 0 || n >= len(block) {
		binary.LittleEndian.PutUint32(dst[at-4:], uint32(len(block))|lz4Stored)
		copy(dst[at:], block)
		return dst
	}
	binary.LittleEndian.PutUint32(dst[at-4:], uint32(n))
	return dst[:at+n]
}

// compress returns 0 when the compressed block does not fit in room. The library's error says
// no more than that.
func (e *lz4Encoder) compress(block, room []byte) int {
	var n int
	var err error
	if e.fast != nil {
		n, err = e.fast.CompressBlock(block, room)
	} else {
		n, err = e.high.CompressBlock(block, room)
	}
	if err != nil {
		return 0
	}
	return n
}

// lz4Frame is the frame being decoded.
type lz4Frame struct {
	flags    byte
	blockMax int
	start    int // of its content in the output
}

func decodeLZ4(dst, src []byte, limit int) ([]byte, error) {
	dst = dst[:0]
	for len(src) > 0 {
		f, rest, err := lz4Descriptor(src, len(dst), limit)
		if err != nil {
			return nil, err
		}
		if dst, src, err = f.decode(dst, rest, limit); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func lz4Descriptor(src []byte, start, limit int) (f lz4Frame, rest []byte, err error) {
	if len(src) < len(lz4Header) {
		return f, nil, &CorruptError{What: "lz4: frame header is cut short"}
	}
	if binary.LittleEndian.Uint32(src) != lz4Magic {
		return f, nil, &CorruptError{What: "lz4: no frame where one must start"}
	}
	f.flags, f.start = src[4], start
	size := src[5] >> 4
	if f.flags&lz4FlagVersion != 0x40 || f.flags&lz4FlagReserved != 0 || src[5]&0x8f != 0 || size < 4 {
		return f, nil, &CorruptError{What: "lz4: frame header with unknown flags"}
	}
	f.blockMax = 1 << (2*size + 8)
	src = src[6:]
	if f.flags&lz4FlagContentSize != 0 {
		if len(src) < 9 {
			return f, nil, &CorruptError{What: "lz4: frame header is cut short"}
		}
		if n := binary.LittleEndian.Uint64(src); n > uint64(limit-start) {
			return f, nil, &TooLargeError{Codec: LZ4, Size: int64(min(n, 1<<62)) + int64(start), Limit: limit}
		}
		src = src[8:]
	}
	return f, src[1:], nil // without the descriptor's checksum
}

// decode appends the content of the frame, whose blocks start src, to dst.
func (f *lz4Frame) decode(dst, src []byte, limit int) (out, rest []byte, err error) {
	for {
		block, stored, rest, err := f.next(src)
		if err != nil {
			return nil, nil, err
		}
		if block == nil {
			return dst, rest, nil
		}
		src = rest
		if stored {
			if len(block) > limit-len(dst) {
				return nil, nil, &TooLargeError{Codec: LZ4, Limit: limit}
			}
			dst = append(grow(dst, len(block), limit), block...)
		} else if dst, err = f.appendBlock(dst, block, limit); err != nil {
			return nil, nil, err
		}
	}
}

// next takes the next block; it is nil after the end mark.
func (f *lz4Frame) next(src []byte) (block []byte, stored bool, rest []byte, err error) {
	if len(src) < 4 {
		return nil, false, nil, &CorruptError{What: "lz4: frame ends without its end mark"}
	}
	word := binary.LittleEndian.Uint32(src)
	src = src[4:]
	if word == 0 {
		if f.flags&lz4FlagContentChecksum == 0 {
			return nil, false, src, nil
		}
		if len(src) < 4 {
			return nil, false, nil, &CorruptError{What: "lz4: content checksum is cut short"}
		}
		return nil, false, src[4:], nil
	}
	n, trailer := int(word&^lz4Stored), 0
	if f.flags&lz4FlagBlockChecksum != 0 {
		trailer = 4
	}
	if n == 0 || n > f.blockMax || n+trailer > len(src) {
		return nil, false, nil, &CorruptError{What: "lz4: block length is not within the data"}
	}
	return src[:n:n], word&lz4Stored != 0, src[n+trailer:], nil
}

func (f *lz4Frame) appendBlock(dst, block []byte, limit int) ([]byte, error) {
	most := min(f.blockMax, len(block)*lz4MaxRatio)
	room := min(most, limit-len(dst))
	dst = grow(dst, room, limit)
	err := error(lz4.ErrInvalidSourceShortBuffer)
	if room > 0 { // the library writes through a nil pointer when there is none
		var n int
		if n, err = f.block(dst[len(dst):len(dst)+room], block, dst); err == nil {
			return dst[:len(dst)+n], nil
		}
	}
	if room < most {
		// Does the block not fit, or is it damaged? Decode it aside to tell: it is bounded.
		n, aside := f.block(make([]byte, most), block, dst)
		switch {
		case aside == nil && n > room:
			return nil, &TooLargeError{Codec: LZ4, Limit: limit}
		case aside == nil && n == 0:
			return dst, nil
		}
	}
	return nil, &CorruptError{What: "lz4", Err: err}
}

// block decodes into room; before is what was decoded so far, which dependent blocks refer to.
func (f *lz4Frame) block(room, block, before []byte) (int, error) {
	if f.flags&lz4FlagIndependent != 0 {
		return lz4.UncompressBlock(block, room)
	}
	return lz4.UncompressBlockWithDict(block, room, before[max(f.start, len(before)-lz4DictWindow):])
}
