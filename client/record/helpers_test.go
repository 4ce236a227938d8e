package record

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// build makes a batch of the messages.
func build(t testing.TB, b *Builder, c *Compressor, a Attributes, messages []message) []byte {
	t.Helper()
	b.Reset(nil, messages[0].ts)
	for _, m := range messages {
		want := b.SizeWith(m.ts, m.key, m.value, m.headers)
		b.Append(m.ts, m.key, m.value, m.headers)
		require.Equal(t, want, b.Len(), "SizeWith is exact")
		require.LessOrEqual(t, HeaderSize+recordSize(b, m), SizeUpperBound(m.key, m.value, m.headers))
	}
	require.Equal(t, len(messages), b.Count())
	batch, err := b.Finish(c, a)
	require.NoError(t, err)
	return batch
}

// recordSize is the encoded size of m as the first record of a batch.
func recordSize(b *Builder, m message) int {
	var alone Builder
	alone.Reset(nil, b.first)
	return alone.SizeWith(m.ts, m.key, m.value, m.headers) - HeaderSize
}

// requireMessages reads the section and compares it with the messages, null and empty apart.
func requireMessages(t require.TestingT, b *Batch, section []byte, messages []message) {
	require.Equal(t, len(messages), int(b.Count))
	var r Record
	var err error
	for n, m := range messages {
		section, err = ReadRecord(section, &r)
		require.NoError(t, err)
		require.Equal(t, b.BaseOffset+int64(n), b.Offset(&r))
		require.Equal(t, m.ts, b.Timestamp(&r))
		require.Equal(t, m.key, r.Key)
		require.Equal(t, m.value, r.Value)
		require.Equal(t, len(m.headers), r.HeaderCount())
		headers, err := r.AppendHeaders(nil)
		require.NoError(t, err)
		require.Equal(t, m.headers, headers)
	}
	require.Empty(t, section)
}

func newCompressor(t testing.TB, codec Codec, level int) *Compressor {
	t.Helper()
	c, err := NewCompressor(codec, level)
	require.NoError(t, err)
	return c
}
