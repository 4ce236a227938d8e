package record

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fuzzLimit keeps what a fuzzed input may decompress to small.
const fuzzLimit = 1 << 20

// FuzzNext reads whatever it is given as a Fetch response: it must end, stay within bounds, and
// what it reads must be the same when written again.
func FuzzNext(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("testdata", "java", "*.batch"))
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	one := sound(f)
	f.Add(append(append([]byte(nil), one...), one[:30]...))
	f.Add([]byte{})
	d := new(Decompressor)
	f.Fuzz(func(t *testing.T, data []byte) {
		for len(data) > 0 {
			b, rest, err := Next(data)
			if err != nil {
				require.Equal(t, data, rest)
				return
			}
			require.Equal(t, len(data)-len(rest), b.Size())
			require.Greater(t, b.NextOffset(), b.BaseOffset)
			section, err := b.Decompressed(d, nil, fuzzLimit)
			if err == nil {
				fuzzRecords(t, &b, section)
			}
			data = rest
		}
	})
}

// fuzzRecords reads the section's records and, if all are sound, writes and reads them again.
func fuzzRecords(t *testing.T, b *Batch, section []byte) {
	var w Builder
	w.Reset(nil, b.FirstTimestamp)
	var r Record
	var messages []message
	for range b.Count {
		rest, err := ReadRecord(section, &r)
		if err != nil {
			return
		}
		require.Less(t, len(rest), len(section))
		require.LessOrEqual(t, len(r.Key)+len(r.Value), len(section)-len(rest))
		headers, err := r.AppendHeaders(nil)
		if err != nil {
			return
		}
		require.Len(t, headers, r.HeaderCount())
		m := message{ts: b.FirstTimestamp + r.TimestampDelta, key: r.Key, value: r.Value, headers: headers}
		messages = append(messages, m)
		w.Append(m.ts, m.key, m.value, m.headers)
		section = rest
	}
	if len(messages) == 0 {
		return
	}
	batch, err := w.Finish(nil, NoProducer)
	require.NoError(t, err)
	again, _, err := Next(batch)
	require.NoError(t, err)
	require.NoError(t, again.CheckCRC())
	requireMessages(t, &again, again.RecordsSection(), messages)
}

// FuzzReadRecord reads records from bytes that no CRC protects.
func FuzzReadRecord(f *testing.F) {
	var b Builder
	f.Add(build(f, &b, nil, NoProducer, goldenMessages(5))[HeaderSize:])
	f.Add([]byte{12, 0, 0, 0, 1, 1, 0})
	f.Add([]byte{18, 0, 0, 0, 1, 1, 2, 2, 'k', 1})
	f.Add([]byte{0xfe, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, src []byte) {
		var r Record
		for len(src) > 0 {
			rest, err := ReadRecord(src, &r)
			if err != nil {
				require.Equal(t, src, rest)
				return
			}
			require.GreaterOrEqual(t, len(src)-len(rest), minRecordSize)
			require.GreaterOrEqual(t, r.OffsetDelta, int32(0))
			src = rest
		}
	})
}

// FuzzHeaders reads the headers part of a record.
func FuzzHeaders(f *testing.F) {
	f.Add([]byte{0}, true)
	f.Add([]byte{4, 2, 'k', 2, 'v', 0, 1}, true)
	f.Add([]byte{2, 1, 1}, false)
	f.Fuzz(func(t *testing.T, part []byte, null bool) {
		body := append([]byte{0, 0, 0, 1, 1}, part...)
		if !null {
			body = append([]byte{0, 0, 0, 0, 0}, part...)
		}
		src := make([]byte, 10, 10+len(body))
		src = append(src[:putUvarint(src, 0, zigzagLen(len(body)))], body...)
		var r Record
		if _, err := ReadRecord(src, &r); err != nil {
			return
		}
		require.Equal(t, null, r.Key == nil && r.Value == nil)
		headers, err := r.AppendHeaders(nil)
		require.LessOrEqual(t, len(headers), r.HeaderCount())
		if err == nil {
			require.Len(t, headers, r.HeaderCount())
			require.LessOrEqual(t, headersSize(headers), len(part), "never longer than it was")
		}
	})
}

// fuzzCodec is the target of one codec: bounded output whatever the input, and any input
// survives compression.
func fuzzCodec(f *testing.F, codec Codec, seeds ...[]byte) {
	c := newCompressor(f, codec, DefaultLevel)
	for _, text := range [][]byte{{}, []byte("short"), bytes.Repeat([]byte("a longer text, "), 6000)} {
		packed, err := c.Compress(text)
		require.NoError(f, err)
		f.Add(bytes.Clone(packed))
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	d := new(Decompressor)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, limit := range []int{0, 100, fuzzLimit} {
			out, err := d.Decompress(nil, data, codec, limit)
			if err == nil {
				require.LessOrEqual(t, len(out), limit)
				require.LessOrEqual(t, cap(out), 2*fuzzLimit)
			}
		}
		packed, err := c.Compress(data)
		require.NoError(t, err)
		out, err := d.Decompress(nil, packed, codec, len(data))
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, out))
	})
}

func FuzzGzip(f *testing.F) { fuzzCodec(f, Gzip) }

func FuzzSnappy(f *testing.F) {
	fuzzCodec(f, Snappy, rawSnappy([]byte("raw")), []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0})
}

func FuzzLZ4(f *testing.F) {
	linked, err := os.ReadFile(filepath.Join("testdata", "lz4", "linked.lz4"))
	require.NoError(f, err)
	fuzzCodec(f, LZ4, linked, []byte("\x04\x22\x4d\x18\x7c\x70\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x73\x00\x00\x00\x00"))
}

func FuzzZSTD(f *testing.F) {
	stream, err := os.ReadFile(filepath.Join("testdata", "zstd", "stream.zst"))
	require.NoError(f, err)
	fuzzCodec(f, ZSTD, stream, []byte{0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x'})
}
