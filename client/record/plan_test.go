package record

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A plan says of a batch what its builder does, after every message and of the next one.
func TestPlanIsTheSizeOfTheBatch(t *testing.T) {
	var p Plan
	var b Builder
	rapid.Check(t, func(rt *rapid.T) {
		messages := genMessages().Draw(rt, "messages")
		first := messages[0].ts
		p.Reset(first)
		b.Reset(b.Bytes(), first)
		require.Equal(rt, HeaderSize, p.Len())
		require.Equal(rt, first, p.First())
		for i, m := range messages {
			require.Equal(rt, b.SizeWith(m.ts, m.key, m.value, m.headers), p.SizeWith(m.ts, m.key, m.value, m.headers))
			p.Add(m.ts, m.key, m.value, m.headers)
			b.Append(m.ts, m.key, m.value, m.headers)
			require.Equal(rt, b.Len(), p.Len())
			require.Equal(rt, i+1, p.Count())
		}
	})
}
