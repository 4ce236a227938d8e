package record

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// zstdBlock is the most that one block decompresses to (RFC 8878, 3.1.1.2).
	zstdBlock = 128 << 10
	// zstdMaxWindow is the largest window that the reference implementation writes, at level 22.
	// Decoding at once needs no memory for the window: the output is the window.
	zstdMaxWindow = 128 << 20
	// zstdSlack is room behind the output that lets the decoder copy in larger steps.
	zstdSlack = 32
)

// zstdBounds walks the headers of frames and blocks and says between which sizes the
// decompressed data must lie, without decompressing. Java writes frames without their content
// size, so that the blocks are all there is to size the output by.
func zstdBounds(src []byte) (least, most int64, err error) {
	for len(src) > 0 {
		var h zstd.Header
		if err := h.Decode(src); err != nil {
			return 0, 0, &CorruptError{What: "zstd", Err: err}
		}
		src = src[h.HeaderSize:]
		if h.Skippable {
			if int64(h.SkippableSize) > int64(len(src)) {
				return 0, 0, errZstdCut
			}
			src = src[h.SkippableSize:]
			continue
		}
		low, high, rest, err := zstdFrameBounds(&h, src)
		if err != nil {
			return 0, 0, err
		}
		least, most, src = least+low, most+high, rest
	}
	return least, most, nil
}

var errZstdCut = &CorruptError{What: "zstd", Err: io.ErrUnexpectedEOF}

// zstdFrameBounds walks the blocks of one frame, which follow its header in src.
func zstdFrameBounds(h *zstd.Header, src []byte) (least, most int64, rest []byte, err error) {
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	blockMax := int64(min(window, zstdBlock))
	for last := false; !last; {
		if len(src) < 3 {
			return 0, 0, nil, errZstdCut
		}
		word := uint32(src[0]) | uint32(src[1])<<8 | uint32(src[2])<<16
		last = word&1 != 0
		size := int64(word >> 3)
		stored := size
		switch word >> 1 & 3 {
		case 0: // raw: as it stands
			least, most = least+size, most+size
		case 1: // one byte, repeated
			least, most, stored = least+size, most+size, 1
		default: // compressed; the reserved type fails when decoded
			most += blockMax
		}
		src = src[3:]
		if stored > int64(len(src)) {
			return 0, 0, nil, errZstdCut
		}
		src = src[stored:]
	}
	if h.HasCheckSum {
		if len(src) < 4 {
			return 0, 0, nil, errZstdCut
		}
		src = src[4:]
	}
	if h.HasFCS {
		// A size that its blocks cannot have is a lie, which the decoder finds out.
		most = min(most, int64(min(h.FrameContentSize, 1<<62)))
		if h.FrameContentSize > uint64(least) {
			least = most
		}
	}
	return least, most, src, nil
}

func newZstdDecoder() (*zstd.Decoder, error) {
	// The limit on the output is per call, by the capacity of dst. The memory limit cannot serve
	// for it: it also refuses frames for their window, and 2 MiB windows around a few bytes are
	// what Java writes.
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdMaxWindow), zstd.WithDecoderMaxMemory(maxLimit), zstd.WithDecodeAllCapLimit(true))
}

func (d *Decompressor) decodeZstd(dst, src []byte, limit int) ([]byte, error) {
	least, most, err := zstdBounds(src)
	if err != nil {
		return nil, err
	}
	if least > int64(limit) {
		return nil, &TooLargeError{Codec: ZSTD, Size: least, Limit: limit}
	}
	if d.zstd == nil {
		if d.zstd, err = newZstdDecoder(); err != nil {
			return nil, err
		}
	}
	// One block more than the limit: where decoding fails then tells too large from damaged.
	room := int(min(most, int64(limit)+zstdBlock))
	if cap(dst) < room {
		dst = make([]byte, 0, room+zstdSlack)
	}
	out, err := d.zstd.DecodeAll(src, dst[:0:min(cap(dst), room+zstdSlack)])
	if len(out) > limit {
		return nil, &TooLargeError{Codec: ZSTD, Limit: limit}
	}
	if err != nil {
		return nil, &CorruptError{What: "zstd", Err: err}
	}
	return out, nil
}
