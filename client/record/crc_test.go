package record

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The checksum of a whole is what joining those of its pieces gives, wherever it is cut.
func TestJoinedCRCIsThatOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "bytes")
		cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
		require.Equal(t, CRC32C(all), joinCRC(CRC32C(all[:cut]), CRC32C(all[cut:]), len(all)-cut))
	})
}

// Summing records as they come changes nothing of the batch, however often it is done.
func TestSummedBatchIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SampledFrom([]*rapid.Generator[byte]{rapid.Byte(), rapid.Just[byte](7)}).Draw(t, "bytes") // the latter compress
		values := rapid.SliceOfN(rapid.SliceOfN(bytes, 0, 300), 1, 50).Draw(t, "values")
		codec := rapid.SampledFrom([]Codec{None, Snappy}).Draw(t, "codec")
		var summed, plain Builder
		summed.Reset(nil, 1)
		summed.Append(1, nil, []byte("of a batch before"), nil)
		summed.Sum(0)
		summed.Reset(summed.Bytes(), 1)
		plain.Reset(nil, 1)
		for _, v := range values {
			summed.Append(2, nil, v, nil)
			plain.Append(2, nil, v, nil)
			summed.Sum(rapid.IntRange(0, 1000).Draw(t, "least"))
		}
		for range 2 { // finishing again is allowed
			require.Equal(t, finished(t, &plain, codec), finished(t, &summed, codec))
		}
	})
}

func finished(t *rapid.T, b *Builder, codec Codec) []byte {
	c, err := NewCompressor(codec, DefaultLevel)
	require.NoError(t, err)
	batch, err := b.Finish(c, NoProducer)
	require.NoError(t, err)
	return batch
}

func BenchmarkJoinCRC(b *testing.B) {
	for range b.N {
		joinCRC(1, 2, 999_999)
	}
}
