package record

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
)

func rawSnappy(b []byte) []byte { return s2.EncodeSnappy(nil, b) }

// bombs are small inputs that decompress, or claim to decompress, to a GiB or more.
func bombs(t testing.TB) map[string]struct {
	codec Codec
	data  []byte
} {
	type bomb = struct {
		codec Codec
		data  []byte
	}
	zeros := make([]byte, 16<<20)

	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	_, err := w.Write(zeros)
	require.NoError(t, err)
	require.NoError(t, w.Close())

	block := make([]byte, lz4.CompressBlockBound(4<<20))
	n, err := lz4.CompressBlock(zeros[:4<<20], block, nil)
	require.NoError(t, err)
	frame := []byte("\x04\x22\x4d\x18\x60\x70\x73")
	for range 256 {
		frame = append(binary.LittleEndian.AppendUint32(frame, uint32(n)), block[:n]...)
	}
	frame = append(frame, 0, 0, 0, 0)

	chunk := rawSnappy(zeros[:1<<20])
	xerial := []byte(xerialHeader)
	for range 1024 {
		xerial = append(binary.BigEndian.AppendUint32(xerial, uint32(len(chunk))), chunk...)
	}

	rle := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88} // no content size, window of 128 MiB
	for range 8191 {
		rle = append(rle, 0x02, 0x00, 0x10, 'x') // a byte, 128 Ki times
	}
	rle = append(rle, 0x03, 0x00, 0x10, 'x')

	var stream bytes.Buffer
	z, err := zstd.NewWriter(&stream, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	require.NoError(t, err)
	for range 4 {
		_, err = z.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())

	return map[string]bomb{
		"gzip, 64 members":                       {Gzip, bytes.Repeat(member.Bytes(), 64)},
		"lz4, 256 blocks of 4 MiB":               {LZ4, frame},
		"lz4 that claims 1 EiB":                  {LZ4, []byte("\x04\x22\x4d\x18\x68\x70\x00\x00\x00\x00\x00\x00\x00\x10\x73\x00\x00\x00\x00")},
		"snappy, 1024 blocks of 1 MiB":           {Snappy, xerial},
		"snappy that claims 4 GiB":               {Snappy, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}},
		"zstd, 8192 blocks of a byte repeated":   {ZSTD, rle},
		"zstd without a size":                    {ZSTD, stream.Bytes()},
		"zstd, 64 frames without a size, joined": {ZSTD, bytes.Repeat(stream.Bytes(), 64)},
	}
}

// TestBombsAreRefusedBeforeTheirMemoryIsAllocated counts every byte allocated, freed or not.
func TestBombsAreRefusedBeforeTheirMemoryIsAllocated(t *testing.T) {
	const constant = 6 << 20
	for name, bomb := range bombs(t) {
		for _, limit := range []int{0, 1000, 1 << 20, 16 << 20} {
			d := new(Decompressor)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := d.Decompress(nil, bomb.data, bomb.codec, limit)
			runtime.ReadMemStats(&after)
			var large *TooLargeError
			require.ErrorAs(t, err, &large, "%s, limit %d", name, limit)
			require.Equal(t, bomb.codec, large.Codec)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*limit+constant), "%s, limit %d", name, limit)
		}
	}
}

// What the block headers already say need not be decoded to be refused.
func TestZstdSizeIsKnownBeforehand(t *testing.T) {
	_, err := new(Decompressor).Decompress(nil, bombs(t)["zstd, 8192 blocks of a byte repeated"].data, ZSTD, 1<<20)
	var large *TooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, int64(1<<30), large.Size)
	require.EqualError(t, err, "record: zstd data over the limit of 1048576 bytes decompressed: they have 1073741824 bytes")
}

// A zstd frame that claims more than its blocks can have is a lie, whatever the limit.
func TestZstdContentSizeIsNotBelieved(t *testing.T) {
	frame := []byte("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x00\x00\x10\x03\x00\x10x") // 1 EiB, a block of 128 KiB
	_, err := new(Decompressor).Decompress(nil, frame, ZSTD, 1<<30)
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
}

// The limit is on the result, not on the capacity that a pooled buffer happens to have.
func TestLimitHoldsInALargerBuffer(t *testing.T) {
	text := []byte(strings.Repeat("limit ", 10_000))
	var d Decompressor
	for _, codec := range Codecs()[1:] {
		packed, err := newCompressor(t, codec, DefaultLevel).Compress(text)
		require.NoError(t, err)
		dst := make([]byte, 7, 1<<20)
		_, err = d.Decompress(dst, packed, codec, len(text)-1)
		var large *TooLargeError
		require.ErrorAs(t, err, &large, codec.String())
		got, err := d.Decompress(dst, packed, codec, len(text))
		require.NoError(t, err)
		require.Equal(t, text, got)
		require.Same(t, &dst[0], &got[0], "%s decodes in place", codec)
	}
}

// A window is not memory: Java writes 2 MiB windows around a few bytes.
func TestZstdWindowIsNotHeldAgainstTheLimit(t *testing.T) {
	var stream bytes.Buffer
	w, err := zstd.NewWriter(&stream, zstd.WithWindowSize(64<<20), zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	for range 3 {
		_, err = w.Write([]byte("few bytes "))
		require.NoError(t, err)
		require.NoError(t, w.Flush()) // so that the frame cannot know its size
	}
	require.NoError(t, w.Close())
	got, err := new(Decompressor).Decompress(nil, stream.Bytes(), ZSTD, 30)
	require.NoError(t, err)
	require.Equal(t, "few bytes few bytes few bytes ", string(got))
}

// A hostile frame of nothing but legacy LZ4 headers must not exhaust the stack.
func TestLZ4LegacyHeadersAreRefused(t *testing.T) {
	legacy := bytes.Repeat([]byte{0x02, 0x21, 0x4c, 0x18}, 1<<20)
	for _, src := range [][]byte{legacy, append([]byte(lz4Header+"\x00\x00\x00\x00"), legacy...)} {
		_, err := new(Decompressor).Decompress(nil, src, LZ4, 1<<20)
		require.ErrorContains(t, err, "no frame where one must start")
	}
}
