package record

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A builder that plans says of a batch what one that encodes it does, after every message and of the
// next one. It has no batch to give, and none is left of the plan after Reset.
func TestAPlanIsTheSizeOfTheBatch(t *testing.T) {
	var p, b Builder
	rapid.Check(t, func(rt *rapid.T) {
		messages := genMessages().Draw(rt, "messages")
		first := messages[0].ts
		p.Reset(p.Bytes(), first)
		b.Reset(b.Bytes(), first)
		require.Equal(rt, HeaderSize, p.Len())
		for i, m := range messages {
			require.Equal(rt, b.SizeWith(m.ts, m.key, m.value, m.headers), p.SizeWith(m.ts, m.key, m.value, m.headers))
			p.Plan(m.ts, m.key, m.value, m.headers)
			b.Append(m.ts, m.key, m.value, m.headers)
			require.Equal(rt, b.Len(), p.Len())
			require.Equal(rt, i+1, p.Count())
		}
		_, err := p.Finish(nil, NoProducer)
		require.ErrorIs(rt, err, errPlanned)
	})
}
