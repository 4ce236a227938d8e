package record

import (
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// zstdWindow bounds how far back zstd looks, and so the memory of an encoder. Batches are
// rarely larger: Kafka's default limit is 1 MiB.
const zstdWindow = 1 << 20

// Compressor compresses with one codec at one level. It keeps the codec's state and its output
// buffer, so that compressing allocates nothing once warm. Not safe for concurrent use; [Pool]
// shares several.
type Compressor struct {
	codec Codec
	out   []byte
	sink  sink
	gzip  *gzip.Writer
	lz4   *lz4Encoder
	zstd  *zstd.Encoder
}

// NewCompressor makes a compressor; level is one of [Codec.Levels] or [DefaultLevel]. The error
// is a *[CodecError] or a *[LevelError].
func NewCompressor(codec Codec, level int) (*Compressor, error) {
	if err := codec.CheckLevel(level); err != nil {
		return nil, err
	}
	c := &Compressor{codec: codec}
	var err error
	switch codec {
	case Gzip:
		c.gzip, err = gzip.NewWriterLevel(&c.sink, gzipLevel(level))
	case LZ4:
		c.lz4 = newLZ4Encoder(lz4Depth(level))
	case ZSTD:
		// The batch has a CRC32C of its own: one of the frame would be paid twice.
		c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstdLevel(level)), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(zstdWindow), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Codec is what it compresses with.
func (c *Compressor) Codec() Codec { return c.codec }

// Compress compresses src. The result aliases the compressor's buffer and is valid until its
// next use; with codec [None] it is src itself. It may be larger than src.
func (c *Compressor) Compress(src []byte) ([]byte, error) {
	if c.codec == None {
		return src, nil
	}
	return c.compress(0, src)
}

// SetBuffer replaces the output buffer by buf (nil for none; its content is overwritten) and
// returns the one it had. With it a caller takes over the buffer that the last batch is in, and
// gives another for the next.
func (c *Compressor) SetBuffer(buf []byte) []byte {
	old := c.out
	c.out = buf
	return old
}

// compress writes src compressed after reserve bytes left free in the output buffer.
func (c *Compressor) compress(reserve int, src []byte) ([]byte, error) {
	dst := slices.Grow(c.out[:0], reserve)[:reserve]
	var err error
	switch c.codec {
	case Gzip:
		dst, err = c.appendGzip(dst, src)
	case Snappy:
		dst = appendSnappy(dst, src)
	case LZ4:
		dst = c.lz4.appendFrame(dst, src)
	case ZSTD:
		dst = c.zstd.EncodeAll(src, dst)
	}
	if err != nil {
		return nil, err
	}
	c.out = dst
	return dst, nil
}

func (c *Compressor) appendGzip(dst, src []byte) ([]byte, error) {
	c.sink.buf = dst
	c.gzip.Reset(&c.sink)
	if _, err := c.gzip.Write(src); err != nil {
		return nil, err
	}
	if err := c.gzip.Close(); err != nil {
		return nil, err
	}
	dst, c.sink.buf = c.sink.buf, nil
	return dst, nil
}

func (c *Compressor) shrink() {
	if cap(c.out) > retained {
		c.out = nil
	}
}

// sink is an io.Writer that appends.
type sink struct{ buf []byte }

// Write appends p.
func (s *sink) Write(p []byte) (int, error) {
	s.buf = append(s.buf, p...)
	return len(p), nil
}
