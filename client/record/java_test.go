package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files under testdata/java were written by Apache Kafka 4.4.0's own classes; Golden.java
// beside them says how.

const goldenTime = 1_700_000_000_000

// message is one message as a test gives it.
type message struct {
	ts         int64
	key, value []byte
	headers    []Header
}

// goldenMessages are those of Golden.java.
func goldenMessages(count int) []message {
	ms := []message{
		{ts: goldenTime},
		{ts: goldenTime + 1, key: []byte{}, value: []byte{}},
		{ts: goldenTime - 5, key: []byte("key"), value: []byte("value"),
			headers: []Header{{"n", nil}, {"e", []byte{}}, {"k", []byte("v")}}},
	}
	for n := len(ms); n < count; n++ {
		ms = append(ms, message{ts: goldenTime + int64(n), key: fmt.Appendf(nil, "key-%d", n%10),
			value: []byte(strings.Repeat(fmt.Sprintf("message %d ", n), 20))})
	}
	return ms
}

var goldenAttributes = Attributes{ProducerID: 4001, ProducerEpoch: 3, BaseSequence: 77, PartitionLeaderEpoch: -1}

func javaBatch(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "java", name+".batch"))
	require.NoError(t, err)
	return data
}

func TestUncompressedBatchIsByteForByteThatOfJava(t *testing.T) {
	var b Builder
	got := build(t, &b, nil, goldenAttributes, goldenMessages(3))
	require.Equal(t, javaBatch(t, "none"), got)
}

// Compressed bytes differ between implementations, but what is in them, and the rest of the
// header, must not.
func TestCompressedBatchOfJavaHoldsOurRecords(t *testing.T) {
	messages := goldenMessages(600)
	var ours Builder
	want := build(t, &ours, nil, goldenAttributes, messages)
	for _, codec := range Codecs()[1:] {
		t.Run(codec.String(), func(t *testing.T) {
			b, rest, err := Next(javaBatch(t, codec.String()))
			require.NoError(t, err)
			require.Empty(t, rest)
			require.NoError(t, b.CheckCRC())
			require.Equal(t, codec, b.Codec())
			require.Equal(t, want[atLastOffsetDelta:HeaderSize], b.Raw()[atLastOffsetDelta:HeaderSize])
			var d Decompressor
			section, err := b.Decompressed(&d, nil, 1<<20)
			require.NoError(t, err)
			require.Equal(t, want[HeaderSize:], section)
			requireMessages(t, &b, section, messages)

			_, err = b.Decompressed(&d, nil, len(section)-1)
			var large *TooLargeError
			require.ErrorAs(t, err, &large)
			section, err = b.Decompressed(&d, nil, len(section))
			require.NoError(t, err, "the limit itself is allowed")
			require.Equal(t, want[HeaderSize:], section)
		})
	}
}

func TestControlBatchesOfJava(t *testing.T) {
	for name, want := range map[string]Control{"abort": Abort, "commit": Commit} {
		b, _, err := Next(javaBatch(t, name))
		require.NoError(t, err)
		require.NoError(t, b.CheckCRC())
		require.True(t, b.Control())
		require.True(t, b.Transactional())
		require.Equal(t, int64(500), b.LastOffset())
		require.Equal(t, int64(501), b.NextOffset())
		require.Equal(t, int64(4001), b.ProducerID)
		require.Equal(t, int16(3), b.ProducerEpoch)
		require.Equal(t, int32(9), b.PartitionLeaderEpoch)
		var r Record
		_, err = ReadRecord(b.RecordsSection(), &r)
		require.NoError(t, err)
		got, err := ControlType(&r)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, name, got.String())
	}
}

// TestReferenceFrames reads frames of the reference implementations' command lines: lz4 with
// dependent blocks, checksums and content size; zstd as a stream, without content size, and with
// the largest window.
func TestReferenceFrames(t *testing.T) {
	var text strings.Builder
	for range 40 {
		for n := 1; n <= 1000; n++ {
			fmt.Fprintln(&text, n)
		}
	}
	for name, codec := range map[string]Codec{
		"lz4/linked.lz4": LZ4, "lz4/independent.lz4": LZ4, "zstd/stream.zst": ZSTD, "zstd/ultra22.zst": ZSTD,
	} {
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(filepath.Join("testdata", name))
			require.NoError(t, err)
			var d Decompressor
			for _, limit := range []int{text.Len(), text.Len() + 1, 1 << 30} {
				got, err := d.Decompress(nil, src, codec, limit)
				require.NoError(t, err, "limit %d", limit)
				require.Equal(t, text.String(), string(got))
			}
			for _, limit := range []int{-1, 0, 1, 65536, 70000, text.Len() - 1} {
				_, err = d.Decompress(nil, src, codec, limit)
				var large *TooLargeError
				require.ErrorAs(t, err, &large, "limit %d", limit)
			}
			twice, err := d.Decompress(nil, append(src[:len(src):len(src)], src...), codec, 1<<20)
			require.NoError(t, err, "two frames, one behind the other")
			require.Equal(t, text.String()+text.String(), string(twice))
		})
	}
}
