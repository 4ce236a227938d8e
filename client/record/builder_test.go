package record

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

func TestCRC32CVectors(t *testing.T) {
	require.Equal(t, uint32(0xe3069283), CRC32C([]byte("123456789")))
	require.Equal(t, uint32(608512271), CRC32C([]byte("Some String")))
}

// genBytes draws null, empty or other bytes, of lengths around where varints grow.
func genBytes() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return []byte{}
		case 2:
			n := rapid.SampledFrom([]int{55, 63, 64, 65, 127, 128, 8180, 8191, 8192, 8193, 70000}).Draw(t, "length")
			return []byte(strings.Repeat("kafka ", n)[:n])
		}
		return rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "bytes")
	})
}

func genMessages() *rapid.Generator[[]message] {
	header := rapid.Custom(func(t *rapid.T) Header {
		return Header{Key: rapid.StringN(0, 20, 100).Draw(t, "header key"), Value: genBytes().Draw(t, "header value")}
	})
	return rapid.Custom(func(t *rapid.T) []message {
		base := rapid.Int64Range(-1, 1<<42).Draw(t, "time")
		one := rapid.Custom(func(t *rapid.T) message {
			m := message{
				ts:  base + rapid.Int64Range(-1<<33, 1<<33).Draw(t, "later"),
				key: genBytes().Draw(t, "key"), value: genBytes().Draw(t, "value"),
			}
			if rapid.Bool().Draw(t, "headers") {
				m.headers = rapid.SliceOfN(header, 1, 4).Draw(t, "headers")
			}
			return m
		})
		return rapid.SliceOfN(one, 1, 40).Draw(t, "messages")
	})
}

// reference encodes with kmsg, an implementation that shares nothing with ours.
func reference(messages []message, a Attributes) []byte {
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: a.PartitionLeaderEpoch, Magic: 2, LastOffsetDelta: int32(len(messages) - 1),
		FirstTimestamp: messages[0].ts, MaxTimestamp: messages[0].ts,
		ProducerID: a.ProducerID, ProducerEpoch: a.ProducerEpoch, FirstSequence: a.BaseSequence,
		NumRecords: int32(len(messages)),
	}
	if a.Transactional {
		batch.Attributes |= 0x10
	}
	if a.Control {
		batch.Attributes |= 0x20
	}
	for n, m := range messages {
		batch.MaxTimestamp = max(batch.MaxTimestamp, m.ts)
		r := kmsg.Record{TimestampDelta64: m.ts - messages[0].ts, OffsetDelta: int32(n), Key: m.key, Value: m.value}
		for _, h := range m.headers {
			r.Headers = append(r.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
		}
		r.Length = int32(len(r.AppendTo(nil)) - 1) // a length of 0 takes one byte
		batch.Records = r.AppendTo(batch.Records)
	}
	batch.Length = int32(len(batch.AppendTo(nil)) - 12)
	batch.CRC = int32(CRC32C(batch.AppendTo(nil)[21:]))
	return batch.AppendTo(nil)
}

func TestBatchEqualsReference(t *testing.T) {
	var b Builder
	var buf []byte
	rapid.Check(t, func(rt *rapid.T) {
		messages := genMessages().Draw(rt, "messages")
		a := Attributes{
			ProducerID: rapid.Int64().Draw(rt, "id"), ProducerEpoch: rapid.Int16().Draw(rt, "epoch"),
			BaseSequence: rapid.Int32().Draw(rt, "sequence"), PartitionLeaderEpoch: rapid.Int32().Draw(rt, "leader epoch"),
			Transactional: rapid.Bool().Draw(rt, "transactional"), Control: rapid.Bool().Draw(rt, "control"),
		}
		b.Reset(buf, messages[0].ts)
		for _, m := range messages {
			want := b.SizeWith(m.ts, m.key, m.value, m.headers)
			b.Append(m.ts, m.key, m.value, m.headers)
			require.Equal(rt, want, b.Len())
		}
		batch, err := b.Finish(nil, a)
		require.NoError(rt, err)
		require.Equal(rt, reference(messages, a), batch)
		buf = batch // the next round overwrites it
	})
}

func TestRoundTripOfEveryCodec(t *testing.T) {
	var d Decompressor
	for _, codec := range Codecs() {
		t.Run(codec.String(), func(t *testing.T) {
			c := newCompressor(t, codec, DefaultLevel)
			var b Builder
			var dst []byte
			rapid.Check(t, func(rt *rapid.T) {
				messages := genMessages().Draw(rt, "messages")
				plain := build(t, &b, nil, NoProducer, messages)
				section := append([]byte(nil), plain[HeaderSize:]...)
				batch, err := b.Finish(c, NoProducer)
				require.NoError(rt, err)
				require.LessOrEqual(rt, len(batch), len(plain), "compressed only if smaller")

				got, rest, err := Next(append(batch[:len(batch):len(batch)], 'x'))
				require.NoError(rt, err)
				require.Equal(rt, []byte("x"), rest)
				require.NoError(rt, got.CheckCRC())
				require.Equal(rt, b.Compressed(), got.Codec() == codec && codec != None)
				out, err := got.Decompressed(&d, dst, len(section))
				require.NoError(rt, err)
				require.Equal(rt, section, out)
				requireMessages(rt, &got, out, messages)
				if b.Compressed() {
					dst = out // codec none gives the batch's own bytes, which the next round overwrites
				}

				packed, err := c.Compress(section) // also where Finish did not keep it
				require.NoError(rt, err)
				out, err = d.Decompress(nil, packed, codec, len(section))
				require.NoError(rt, err)
				require.Equal(rt, section, out)
			})
		})
	}
}

// C8: null and empty stay distinct, in every place at once.
func TestC8NullAndEmptyStayDistinct(t *testing.T) {
	kinds := [][]byte{nil, {}, []byte("x")}
	var messages []message
	for _, key := range kinds {
		for _, value := range kinds {
			messages = append(messages, message{ts: 1, key: key, value: value})
			for _, header := range kinds {
				messages = append(messages, message{ts: 1, key: key, value: value,
					headers: []Header{{"", header}, {"k", header}}})
			}
		}
	}
	for _, codec := range Codecs() {
		var b Builder
		var d Decompressor
		batch, _, err := Next(build(t, &b, newCompressor(t, codec, DefaultLevel), NoProducer, messages))
		require.NoError(t, err)
		require.Equal(t, codec, batch.Codec())
		section, err := batch.Decompressed(&d, nil, 1<<20)
		require.NoError(t, err)
		requireMessages(t, &batch, section, messages)
	}
}

func TestTimestampsAtTheEdges(t *testing.T) {
	for _, ts := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		for _, first := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
			var b Builder
			b.Reset(nil, first)
			want := b.SizeWith(ts, nil, nil, nil)
			b.Append(ts, nil, nil, nil)
			require.Equal(t, want, b.Len())
			batch, err := b.Finish(nil, NoProducer)
			require.NoError(t, err)
			require.LessOrEqual(t, len(batch), SizeUpperBound(nil, nil, nil))
			got, _, err := Next(batch)
			require.NoError(t, err)
			var r Record
			_, err = ReadRecord(got.RecordsSection(), &r)
			require.NoError(t, err)
			require.Equal(t, ts, got.Timestamp(&r), "first %d", first)
			require.Equal(t, ts, got.MaxTimestamp)
		}
	}
}

func TestFinish(t *testing.T) {
	text := []byte(strings.Repeat("compressible ", 100))
	t.Run("a batch without records is refused", func(t *testing.T) {
		var b Builder
		b.Reset(nil, 0)
		require.Equal(t, HeaderSize, b.Len())
		_, err := b.Finish(nil, NoProducer)
		require.ErrorIs(t, err, ErrEmpty)
	})
	for _, codec := range Codecs()[1:] {
		c := newCompressor(t, codec, DefaultLevel)
		t.Run(codec.String()+" is dropped where it does not help", func(t *testing.T) {
			var b Builder
			batch := build(t, &b, c, NoProducer, []message{{ts: 1, value: []byte("1")}})
			require.False(t, b.Compressed())
			require.Same(t, &b.Bytes()[0], &batch[0])
			require.Zero(t, batch[atAttributes+1]&codecMask)
		})
		t.Run(codec.String()+" may be finished again, with and without", func(t *testing.T) {
			var b Builder
			plain := append([]byte(nil), build(t, &b, nil, NoProducer, []message{{ts: 1, value: text}})...)
			packed, err := b.Finish(c, NoProducer)
			require.NoError(t, err)
			require.True(t, b.Compressed())
			require.Less(t, len(packed), len(plain))
			again, err := b.Finish(nil, NoProducer)
			require.NoError(t, err)
			require.Equal(t, plain, again)
		})
		t.Run(codec.String()+": the batch outlives the compressor's next use once its buffer is taken", func(t *testing.T) {
			var b Builder
			kept := build(t, &b, c, NoProducer, []message{{ts: 1, value: text}})
			before := string(kept)
			taken := c.SetBuffer(nil)
			require.Same(t, &kept[0], &taken[:1][0])
			other := build(t, &b, c, NoProducer, []message{{ts: 1, value: []byte(strings.Repeat("other ", 300))}})
			require.NotSame(t, &kept[0], &other[0])
			require.Equal(t, before, string(kept))
		})
	}
}

func TestSetProducer(t *testing.T) {
	var b Builder
	messages := goldenMessages(50)
	for _, codec := range Codecs() {
		c := newCompressor(t, codec, DefaultLevel)
		batch := append([]byte(nil), build(t, &b, c, Attributes{ProducerID: 1, BaseSequence: 2}, messages)...)
		SetProducer(batch, 4001, 3, 77)
		a := Attributes{ProducerID: 4001, ProducerEpoch: 3, BaseSequence: 77}
		require.Equal(t, build(t, &b, c, a, messages), batch, "as if built so: %s", codec)
	}
}

func TestBuilderReusesItsBuffer(t *testing.T) {
	buf := make([]byte, 5, 1000)
	var b Builder
	b.Reset(buf, 1)
	b.Append(1, nil, []byte("v"), nil)
	require.Same(t, &buf[0], &b.Bytes()[0])
	b.Reset(b.Bytes(), 1)
	require.Same(t, &buf[0], &b.Bytes()[0])
	require.Zero(t, b.Count())
}
