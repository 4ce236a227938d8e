package record

import (
	"fmt"
	"math"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec is how the records of a batch are compressed; the values are Kafka's.
type Codec int8

// The codecs of Kafka. ZSTD needs brokers since 2.1, Produce 7 and Fetch 10 (KIP-110).
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	ZSTD
)

var codecNames = [...]string{None: "none", Gzip: "gzip", Snappy: "snappy", LZ4: "lz4", ZSTD: "zstd"}

// Codecs are all codecs, None first.
func Codecs() []Codec { return []Codec{None, Gzip, Snappy, LZ4, ZSTD} }

// Valid says whether Kafka defines the codec.
func (c Codec) Valid() bool { return c >= None && c <= ZSTD }

// String is the name that Kafka's own configuration uses.
func (c Codec) String() string {
	if !c.Valid() {
		return fmt.Sprintf("codec(%d)", int8(c))
	}
	return codecNames[c]
}

// MarshalText is the codec's name.
func (c Codec) MarshalText() ([]byte, error) {
	if !c.Valid() {
		return nil, &CodecError{c}
	}
	return []byte(codecNames[c]), nil
}

// UnmarshalText reads the codec's name.
func (c *Codec) UnmarshalText(text []byte) error {
	for i, name := range codecNames {
		if string(text) == name {
			*c = Codec(i)
			return nil
		}
	}
	return fmt.Errorf("unknown compression codec %q: use one of %s", text, strings.Join(codecNames[:], ", "))
}

// DefaultLevel stands for each codec's own default level: gzip 6, lz4 fast, zstd 3.
const DefaultLevel = -1000

// Levels is the range of levels of a codec, both included; ok is false for a codec that has
// none (none, snappy). [DefaultLevel] is accepted besides.
//
//   - gzip: -2 (Huffman only), -1 (default), 0 (stored) to 9 (best), as in Go and zlib.
//   - lz4: 0 (fast, the default) to 9 (best); 1 and up are the slower high-compression mode.
//   - zstd: those of the reference implementation, -131072 to 22 (0 is the default, 3), mapped
//     to the nearest of four: below 3, 3–5, 6–9, 10 and more.
func (c Codec) Levels() (lowest, highest int, ok bool) {
	switch c {
	case Gzip:
		return gzip.HuffmanOnly, gzip.BestCompression, true
	case LZ4:
		return 0, 9, true
	case ZSTD:
		return -131072, 22, true
	}
	return 0, 0, false
}

// LevelError is the error of a level that a codec does not have.
type LevelError struct {
	Codec Codec
	Level int
}

// Error names the range of levels.
func (e *LevelError) Error() string {
	low, high, ok := e.Codec.Levels()
	if !ok {
		return fmt.Sprintf("compression level %d: %s has no levels; leave the level at its default", e.Level, e.Codec)
	}
	return fmt.Sprintf("compression level %d: %s has levels %d to %d", e.Level, e.Codec, low, high)
}

// CheckLevel says whether the codec is one and has the level. The error is a *[CodecError] or a
// *[LevelError].
func (c Codec) CheckLevel(level int) error {
	if !c.Valid() {
		return &CodecError{c}
	}
	low, high, ok := c.Levels()
	if level == DefaultLevel || ok && low <= level && level <= high {
		return nil
	}
	return &LevelError{c, level}
}

func gzipLevel(level int) int {
	if level == DefaultLevel {
		return gzip.DefaultCompression
	}
	return level
}

// lz4Depth is the search depth of the level: 0 for the fast mode.
func lz4Depth(level int) lz4.CompressionLevel {
	if level == DefaultLevel || level == 0 {
		return lz4.Fast
	}
	return lz4.Level1 << (level - 1)
}

func zstdLevel(level int) zstd.EncoderLevel {
	if level == DefaultLevel || level == 0 {
		return zstd.SpeedDefault
	}
	return zstd.EncoderLevelFromZstd(level)
}

// retained is the largest buffer that a pooled compressor or decompressor keeps: one huge batch
// must not hold its memory for ever.
const retained = 4 << 20

// maxLimit is the largest size of anything in the protocol.
const maxLimit = math.MaxInt32
