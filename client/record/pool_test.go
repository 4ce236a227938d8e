package record

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// C11: however many are handed back, only so many stay.
func TestC11PoolIsBounded(t *testing.T) {
	p, err := NewCompressorPool(ZSTD, DefaultLevel, 3)
	require.NoError(t, err)
	var out []*Compressor
	for range 10 {
		out = append(out, p.Get())
	}
	require.Zero(t, p.Idle())
	for _, c := range out {
		p.Put(c)
	}
	require.Equal(t, 3, p.Idle())
	require.Same(t, out[2], p.Get(), "the last kept is the first used")

	none := NewDecompressorPool(-1)
	none.Put(none.Get())
	require.Zero(t, none.Idle())
}

func TestPoolForgetsHugeBuffers(t *testing.T) {
	p, err := NewCompressorPool(Snappy, DefaultLevel, 1)
	require.NoError(t, err)
	c := p.Get()
	_, err = c.Compress([]byte(strings.Repeat("small", 10)))
	require.NoError(t, err)
	p.Put(c)
	require.NotNil(t, p.Get().out)
	c.SetBuffer(make([]byte, 0, retained+1))
	p.Put(c)
	require.Nil(t, p.Get().out)
}

func TestPoolsAreSafeForConcurrentUse(t *testing.T) {
	text := []byte(strings.Repeat("shared ", 5000))
	for _, codec := range Codecs() {
		cs, err := NewCompressorPool(codec, DefaultLevel, 2)
		require.NoError(t, err)
		ds := NewDecompressorPool(2)
		var wg sync.WaitGroup
		for range 6 {
			// Owned by the test, ends by itself, waited for by wg.
			wg.Go(func() {
				for range 20 {
					c, d := cs.Get(), ds.Get()
					packed, err := c.Compress(text)
					if err == nil {
						packed, err = d.Decompress(nil, packed, codec, len(text))
					}
					if err != nil || string(packed) != string(text) {
						t.Errorf("%s: %v", codec, err)
					}
					cs.Put(c)
					ds.Put(d)
				}
			})
		}
		wg.Wait()
	}
}
