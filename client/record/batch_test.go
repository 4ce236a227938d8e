package record

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// sound is a small batch of three records at offset 40.
func sound(t testing.TB) []byte {
	var b Builder
	batch := append([]byte(nil), build(t, &b, nil, goldenAttributes, goldenMessages(3))...)
	binary.BigEndian.PutUint64(batch, 40)
	return batch
}

func TestNextTakesBatchesOneByOne(t *testing.T) {
	one := sound(t)
	buf := append(append([]byte(nil), one...), one...)
	buf = append(buf, one[:70]...)
	for range 2 {
		b, rest, err := Next(buf)
		require.NoError(t, err)
		require.NoError(t, b.CheckCRC())
		require.Equal(t, one, b.Raw())
		require.Equal(t, int64(42), b.LastOffset())
		require.Equal(t, int64(43), b.NextOffset())
		require.Equal(t, []any{int64(4001), int16(3), int32(77), int32(3), int32(-1)},
			[]any{b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Count, b.PartitionLeaderEpoch})
		require.False(t, b.Control() || b.Transactional() || b.LogAppendTime())
		buf = rest
	}
	b, rest, err := Next(buf)
	require.ErrorIs(t, err, ErrPartial)
	require.Len(t, rest, 70)
	require.Equal(t, int64(40), b.BaseOffset)
	require.Equal(t, len(one), b.Size(), "how much the batch needs")
}

// C9: whatever the length at which a response is cut, it is partial and nothing else.
func TestC9EveryTruncationIsPartial(t *testing.T) {
	one := sound(t)
	for n := range one {
		b, rest, err := Next(one[:n:n])
		require.ErrorIs(t, err, ErrPartial, "cut at %d", n)
		require.Len(t, rest, n)
		require.Empty(t, b.RecordsSection())
		require.ErrorIs(t, b.CheckCRC(), ErrPartial)
		if n >= 12 {
			require.Equal(t, len(one), b.Size())
		} else {
			require.Zero(t, b.Size())
		}
	}
}

func TestNextRefusesHostileHeaders(t *testing.T) {
	i32 := func(at int, v int32) func([]byte) {
		return func(b []byte) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
	}
	i64 := func(at int, v int64) func([]byte) {
		return func(b []byte) { binary.BigEndian.PutUint64(b[at:], uint64(v)) }
	}
	for name, change := range map[string]func([]byte){
		"a length of 0":                            i32(atLength, 0),
		"a length below that of the header":        i32(atLength, 48),
		"a negative length":                        i32(atLength, -1),
		"the most negative length":                 i32(atLength, math.MinInt32),
		"a negative record count":                  i32(atCount, -1),
		"more records than bytes":                  func(b []byte) { i32(atCount, 1<<30)(b); i32(atLastOffsetDelta, 1<<30)(b) },
		"more records than offsets":                i32(atCount, 4),
		"a negative last offset delta":             i32(atLastOffsetDelta, -1),
		"a negative base offset":                   i64(atBaseOffset, -1),
		"offsets that overflow":                    i64(atBaseOffset, math.MaxInt64-2),
		"compressed records with no bytes at all":  func(b []byte) { b[atAttributes+1] = 4; i32(atLength, 49)(b) },
		"uncompressed records with no bytes":       i32(atLength, 49),
		"records that do not fit the size by half": func(b []byte) { i32(atCount, 6)(b); i32(atLastOffsetDelta, 6)(b) },
	} {
		t.Run(name, func(t *testing.T) {
			b := sound(t)
			change(b)
			_, rest, err := Next(b)
			var corrupt *CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Equal(t, b, rest)
		})
	}
	t.Run("a length beyond the data is partial", func(t *testing.T) {
		b := sound(t)
		i32(atLength, math.MaxInt32)(b)
		_, _, err := Next(b)
		require.ErrorIs(t, err, ErrPartial)
	})
}

// C2: a batch that compaction emptied keeps its offsets.
func TestC2EmptyBatchMovesThePosition(t *testing.T) {
	for _, codec := range Codecs() {
		b := sound(t)[:HeaderSize]
		binary.BigEndian.PutUint32(b[atLength:], HeaderSize-logOverhead)
		binary.BigEndian.PutUint32(b[atCount:], 0)
		b[atAttributes+1] = byte(codec)
		got, rest, err := Next(b)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, int64(43), got.NextOffset())
		section, err := got.Decompressed(new(Decompressor), nil, 1<<20)
		require.NoError(t, err)
		require.Empty(t, section)
	}
}

// M14: another format is named as such, never called damaged by its checksum.
func TestM14OtherFormatsAreNamed(t *testing.T) {
	// A message of format v1 as Kafka 0.10 wrote it: offset, size, CRC, magic, attributes, time, key, value.
	v1 := binary.BigEndian.AppendUint64(nil, 7)
	v1 = binary.BigEndian.AppendUint32(v1, 22+5)
	v1 = append(v1, 1, 2, 3, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 5)
	v1 = append(v1, "value"...)
	for magic, want := range map[byte]string{
		0: "message format v0, written before Kafka 0.11", 1: "message format v1, written before Kafka 0.11",
		3: "magic byte 3, which is no known", 0xff: "magic byte -1, which is no known",
	} {
		v1[atMagic] = magic
		for _, data := range [][]byte{v1, v1[:17]} {
			_, rest, err := Next(data)
			var format *FormatError
			require.ErrorAs(t, err, &format)
			require.Equal(t, int8(magic), format.Magic)
			require.Equal(t, int64(7), format.Offset)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "CRC")
			require.Equal(t, data, rest)
		}
	}
}

func TestEveryFlippedBitAfterTheCRCIsFound(t *testing.T) {
	one := sound(t)
	for at := atCRC; at < len(one); at++ {
		damaged := append([]byte(nil), one...)
		damaged[at] ^= 0x10
		b, _, err := Next(damaged)
		if err != nil {
			continue // the header contradicts itself
		}
		var crc *CRCError
		require.ErrorAs(t, b.CheckCRC(), &crc, "byte %d", at)
		require.Equal(t, int64(40), crc.Offset)
		require.ErrorContains(t, crc, "batch at offset 40 is damaged")
	}
}

func TestAttributesOfABatch(t *testing.T) {
	for _, row := range []struct {
		bits                      byte
		codec                     Codec
		append, transact, control bool
	}{
		{0x00, None, false, false, false},
		{0x0b, LZ4, true, false, false},
		{0x14, ZSTD, false, true, false},
		{0x30, None, false, true, true},
		{0x40 | 0x01, Gzip, false, false, false}, // 0x40: delete horizon, of no interest
	} {
		b := Batch{Attributes: int16(row.bits), FirstTimestamp: 100, MaxTimestamp: 900}
		require.Equal(t, row.codec, b.Codec())
		require.Equal(t, []bool{row.append, row.transact, row.control}, []bool{b.LogAppendTime(), b.Transactional(), b.Control()})
		want := int64(105)
		if row.append {
			want = 900
		}
		require.Equal(t, want, b.Timestamp(&Record{TimestampDelta: 5}))
	}
}

func TestDecompressedChecksTheCount(t *testing.T) {
	var b Builder
	batch := build(t, &b, newCompressor(t, ZSTD, DefaultLevel), NoProducer, goldenMessages(100))
	binary.BigEndian.PutUint32(batch[atCount:], 1<<20)
	binary.BigEndian.PutUint32(batch[atLastOffsetDelta:], 1<<20)
	got, _, err := Next(batch)
	require.NoError(t, err)
	_, err = got.Decompressed(new(Decompressor), nil, 1<<20)
	require.ErrorContains(t, err, "claims 1048576 records")
}

func TestUnknownCodecIsNamed(t *testing.T) {
	b := sound(t)
	b[atAttributes+1] = 6
	got, _, err := Next(b)
	require.NoError(t, err)
	_, err = got.Decompressed(new(Decompressor), nil, 1<<20)
	var codec *CodecError
	require.ErrorAs(t, err, &codec)
	require.ErrorContains(t, err, "batch at offset 40: record: unknown compression codec 6")
}
