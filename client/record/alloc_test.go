package record

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSteadyStateAllocatesNothing(t *testing.T) {
	headers := []Header{{"trace", []byte("0123456789abcdef")}, {"none", nil}}
	key, value := []byte("key"), benchPayload(100, 1)
	var b Builder
	buf := make([]byte, 0, 1<<20)
	b.Reset(buf, 1)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if b.Len() > 1<<19 {
			b.Reset(buf, 1)
		}
		b.SizeWith(2, key, value, headers)
		b.Append(2, key, value, headers)
	}), "Append")

	section := append([]byte(nil), b.Bytes()[HeaderSize:]...)
	rest := section
	var r Record
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if len(rest) == 0 {
			rest = section
		}
		rest, _ = ReadRecord(rest, &r)
		h := r.Headers()
		for h.Next() {
		}
	}), "ReadRecord")

	for _, codec := range Codecs() {
		c := newCompressor(t, codec, DefaultLevel)
		d := new(Decompressor)
		batch, err := b.Finish(c, NoProducer)
		require.NoError(t, err)
		require.LessOrEqual(t, testing.AllocsPerRun(20, func() {
			batch, err = b.Finish(c, NoProducer)
		}), float64(poolAllocs), "Finish with %s", codec)
		require.NoError(t, err)

		dst := make([]byte, 0, 1<<20)
		require.LessOrEqual(t, testing.AllocsPerRun(20, func() {
			var got Batch
			if got, _, err = Next(batch); err != nil {
				return
			}
			if err = got.CheckCRC(); err != nil {
				return
			}
			_, err = got.Decompressed(d, dst, 1<<20)
		}), float64(poolAllocs), "Next, CheckCRC and Decompressed with %s", codec)
		require.NoError(t, err)
	}
}
