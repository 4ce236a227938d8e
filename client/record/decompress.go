package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Decompressor decompresses every codec. It keeps the codecs' state, so that decompressing
// into a large enough buffer allocates nothing once warm. The zero value is ready to use. Not
// safe for concurrent use; [Pool] shares several.
type Decompressor struct {
	src   bytes.Reader
	gzip  *gzip.Reader
	zstd  *zstd.Decoder
	probe [1]byte
}

// Decompress decompresses src into the capacity of dst, whose content is overwritten and which
// must not overlap src; it allocates a new buffer when that is too small (nil is fine). With
// codec [None] the result is src itself.
//
// limit bounds the size in bytes of the result. Data that are larger give a *[TooLargeError]
// before their buffer is larger than limit and a constant (twice that counting the buffer it
// grew from); a decoder uses less than 5 MiB of its own. Other errors are *[CodecError] and *[CorruptError].
func (d *Decompressor) Decompress(dst, src []byte, codec Codec, limit int) ([]byte, error) {
	if codec == None {
		return src, nil
	}
	if !codec.Valid() {
		return nil, &CodecError{codec}
	}
	if len(src) == 0 {
		return nil, &CorruptError{What: codec.String() + ": no data", Err: io.ErrUnexpectedEOF}
	}
	limit = min(max(limit, 0), maxLimit)
	switch codec {
	case Gzip:
		return d.decodeGzip(dst, src, limit)
	case Snappy:
		return decodeSnappy(dst, src, limit)
	case LZ4:
		return decodeLZ4(dst, src, limit)
	default:
		return d.decodeZstd(dst, src, limit)
	}
}

func (d *Decompressor) decodeGzip(dst, src []byte, limit int) ([]byte, error) {
	d.src.Reset(src)
	defer d.src.Reset(nil)
	if d.gzip == nil {
		d.gzip = new(gzip.Reader)
	}
	if err := d.gzip.Reset(&d.src); err != nil {
		return nil, &CorruptError{What: "gzip", Err: err}
	}
	dst = grow(dst[:0], min(gzipSize(src), limit), limit)
	for {
		end := min(cap(dst), limit)
		if len(dst) == end {
			if end == limit {
				return d.endGzip(dst, limit)
			}
			dst = grow(dst, 1, limit)
			continue
		}
		n, err := d.gzip.Read(dst[len(dst):end])
		dst = dst[:len(dst)+n]
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return nil, &CorruptError{What: "gzip", Err: err}
		}
	}
}

// gzipSize guesses the decompressed size. The trailer has it (RFC 1952), unless there are several
// members; it is not believed beyond what deflate can do, 1032 : 1.
func gzipSize(src []byte) int {
	if len(src) >= 4 {
		size := int64(binary.LittleEndian.Uint32(src[len(src)-4:]))
		if size > 0 && size <= 1032*int64(len(src)) {
			return int(min(size, maxLimit))
		}
	}
	return 4 * len(src)
}

// endGzip finds out whether the stream ends where the limit is reached.
func (d *Decompressor) endGzip(dst []byte, limit int) ([]byte, error) {
	for {
		n, err := d.gzip.Read(d.probe[:])
		if n > 0 {
			return nil, &TooLargeError{Codec: Gzip, Limit: limit}
		}
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return nil, &CorruptError{What: "gzip", Err: err}
		}
	}
}

func (d *Decompressor) shrink() {}

// grow makes room for n more bytes, which must fit under limit, at least doubling but never
// beyond limit.
func grow(dst []byte, n, limit int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	size := min(max(len(dst)+n, 2*cap(dst), 4<<10), max(limit, len(dst)+n))
	grown := make([]byte, len(dst), size)
	copy(grown, dst)
	return grown
}
