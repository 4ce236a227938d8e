package record

import (
	"bytes"
	"encoding"
	"io"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
)

var (
	_ encoding.TextMarshaler   = Codec(0)
	_ encoding.TextUnmarshaler = (*Codec)(nil)
)

func TestCodecNames(t *testing.T) {
	for n, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		var c Codec
		require.NoError(t, c.UnmarshalText([]byte(name)))
		require.Equal(t, Codec(n), c)
		text, err := c.MarshalText()
		require.NoError(t, err)
		require.Equal(t, name, string(text))
		require.Equal(t, name, c.String())
	}
	var c Codec
	require.EqualError(t, c.UnmarshalText([]byte("brotli")), `unknown compression codec "brotli": use one of none, gzip, snappy, lz4, zstd`)
	for _, bad := range []Codec{-1, 5} {
		_, err := bad.MarshalText()
		var unknown *CodecError
		require.ErrorAs(t, err, &unknown)
		_, err = NewCompressor(bad, DefaultLevel)
		require.ErrorAs(t, err, &unknown)
		_, err = new(Decompressor).Decompress(nil, []byte("x"), bad, 10)
		require.ErrorAs(t, err, &unknown)
	}
	require.Equal(t, "codec(5)", Codec(5).String())
}

func TestEveryLevelRoundTripsAndOthersAreRefused(t *testing.T) {
	text := []byte(strings.Repeat("levels of compression, ", 4000))
	var d Decompressor
	for _, codec := range Codecs()[1:] {
		levels := []int{DefaultLevel}
		low, high, ok := codec.Levels()
		if ok {
			for l := max(low, -3); l <= high; l++ {
				levels = append(levels, l)
			}
			levels = append(levels, low)
		}
		for _, level := range levels {
			packed, err := newCompressor(t, codec, level).Compress(text)
			require.NoError(t, err)
			got, err := d.Decompress(nil, packed, codec, len(text))
			require.NoError(t, err, "%s %d", codec, level)
			require.Equal(t, text, got, "%s %d", codec, level)
		}
		for _, bad := range []int{low - 1, high + 1} {
			_, err := NewCompressor(codec, bad)
			var level *LevelError
			require.ErrorAs(t, err, &level, "%s %d", codec, bad)
			_, err = NewCompressorPool(codec, bad, 1)
			require.ErrorAs(t, err, &level)
		}
	}
	require.EqualError(t, Gzip.CheckLevel(10), "compression level 10: gzip has levels -2 to 9")
	require.EqualError(t, Snappy.CheckLevel(3), "compression level 3: snappy has no levels; leave the level at its default")
}

func TestHigherLevelsCompressBetter(t *testing.T) {
	text := benchBatch(100 << 10).Bytes()
	for codec, levels := range map[Codec][2]int{Gzip: {1, 9}, LZ4: {0, 9}, ZSTD: {1, 19}} {
		fast, err := newCompressor(t, codec, levels[0]).Compress(text)
		require.NoError(t, err)
		best, err := newCompressor(t, codec, levels[1]).Compress(text)
		require.NoError(t, err)
		require.Less(t, len(best), len(fast), codec.String())
	}
}

// Java's reader refuses dependent blocks, and a later one sums a content checksum differently:
// the frame must say independent blocks of 64 KiB, and nothing else. lz4.Reader checks the
// checksum of the header, which is a constant here.
func TestLZ4FrameIsThatOfJava(t *testing.T) {
	text := []byte(strings.Repeat("independent blocks, ", 10_000))
	frame, err := newCompressor(t, LZ4, DefaultLevel).Compress(text)
	require.NoError(t, err)
	require.Equal(t, javaBatch(t, "lz4")[HeaderSize:HeaderSize+7], frame[:7])
	got, err := io.ReadAll(lz4.NewReader(bytes.NewReader(frame)))
	require.NoError(t, err)
	require.Equal(t, text, got)
}

func TestLZ4OfOtherWritersIsRead(t *testing.T) {
	text := []byte(strings.Repeat("blocks of all sizes, ", 300_000)) // 6 MB: several blocks of the largest size
	for _, size := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block256Kb, lz4.Block1Mb, lz4.Block4Mb} {
		for _, sums := range []bool{false, true} {
			var out bytes.Buffer
			w := lz4.NewWriter(&out)
			require.NoError(t, w.Apply(lz4.BlockSizeOption(size), lz4.ChecksumOption(sums), lz4.BlockChecksumOption(sums)))
			_, err := w.Write(text)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			var d Decompressor
			got, err := d.Decompress(nil, out.Bytes(), LZ4, len(text))
			require.NoError(t, err)
			require.True(t, bytes.Equal(text, got))
			_, err = d.Decompress(nil, out.Bytes(), LZ4, len(text)-1)
			var large *TooLargeError
			require.ErrorAs(t, err, &large)
		}
	}
}

func TestSnappyFraming(t *testing.T) {
	text := []byte(strings.Repeat("framed by snappy-java, ", 5000))
	framed, err := newCompressor(t, Snappy, DefaultLevel).Compress(text)
	require.NoError(t, err)
	require.Equal(t, javaBatch(t, "snappy")[HeaderSize:HeaderSize+16], framed[:16])
	framed = append([]byte(nil), framed...)
	raw := rawSnappy(text)
	var d Decompressor
	for name, row := range map[string]struct {
		src  []byte
		want string
	}{
		"framed":                        {framed, string(text)},
		"raw":                           {raw, string(text)},
		"raw and shorter than a header": {rawSnappy([]byte("abc")), "abc"},
		"raw and empty":                 {[]byte{0}, ""},
		"framed and empty":              {framed[:16], ""},
		"two streams, concatenated":     {append(framed[:len(framed):len(framed)], framed...), string(text) + string(text)},
		"headers and nothing else":      {append(framed[:16:16], framed[:16]...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := d.Decompress(nil, row.src, Snappy, len(row.want))
			require.NoError(t, err)
			require.Equal(t, row.want, string(got))
		})
	}
}

func TestDamagedDataAreRefused(t *testing.T) {
	text := []byte(strings.Repeat("soon damaged ", 10_000))
	var d Decompressor
	for _, codec := range Codecs()[1:] {
		t.Run(codec.String(), func(t *testing.T) {
			packed, err := newCompressor(t, codec, DefaultLevel).Compress(text)
			require.NoError(t, err)
			var corrupt *CorruptError
			for n := range packed {
				got, err := d.Decompress(nil, packed[:n:n], codec, 1<<20)
				if err == nil {
					// snappy's framing has no end: a cut between blocks cannot be seen, nor by Java.
					require.Equal(t, Snappy, codec)
					require.True(t, bytes.HasPrefix(text, got))
					continue
				}
				require.ErrorAs(t, err, &corrupt, "cut at %d", n)
			}
			for n := range packed { // whatever comes out, it must come out: no panic, no excess
				damaged := append([]byte(nil), packed...)
				damaged[n] ^= 0xff
				if got, err := d.Decompress(nil, damaged, codec, 1<<20); err == nil {
					require.LessOrEqual(t, len(got), 1<<20)
				}
			}
			got, err := d.Decompress(nil, packed, codec, 1<<20)
			require.NoError(t, err, "the decompressor is still good")
			require.Equal(t, text, got)
		})
	}
}

func TestCorruptErrorKeepsTheCodecsOwn(t *testing.T) {
	_, err := new(Decompressor).Decompress(nil, nil, ZSTD, 10)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.EqualError(t, err, "record: corrupt data: zstd: no data: unexpected EOF")
}

func TestNoneIsPassedThrough(t *testing.T) {
	src := []byte("as it is")
	packed, err := newCompressor(t, None, DefaultLevel).Compress(src)
	require.NoError(t, err)
	require.Same(t, &src[0], &packed[0])
	got, err := new(Decompressor).Decompress(nil, src, None, 1)
	require.NoError(t, err)
	require.Same(t, &src[0], &got[0])
}
