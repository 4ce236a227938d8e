package fault

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// However a stream arrives in pieces, its frames come out the same.
func TestSplitterFindsFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		var want [][]byte
		for range rapid.IntRange(1, 10).Draw(t, "frames") {
			body := rapid.SliceOfN(rapid.Byte(), 4, 40).Draw(t, "body")
			frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
			want = append(want, frame)
			stream = append(stream, frame...)
		}
		head := rapid.IntRange(4, 16).Draw(t, "head")
		s := splitter{head: head}
		var got [][]byte
		for len(stream) > 0 {
			n := rapid.IntRange(1, len(stream)).Draw(t, "piece")
			s.feed(stream[:n], func(p []byte, size int64) {
				require.Len(t, p, min(head, int(size)), "the head comes together")
				require.EqualValues(t, len(want[len(got)]), size)
				got = append(got, append([]byte(nil), p...))
			}, func(p []byte, last bool) {
				at := len(got) - 1
				got[at] = append(got[at], p...)
				require.Equal(t, len(got[at]) == len(want[at]), last)
			})
			stream = stream[n:]
		}
		require.Equal(t, want, got)
	})
}

func TestSplitterPassesWhatIsNoFrames(t *testing.T) {
	for name, stream := range map[string]string{
		"a length below a header's": "\x00\x00\x00\x02abcdefgh",
		"a negative length":         "\xff\xff\xff\xf0abcdefgh",
	} {
		t.Run(name, func(t *testing.T) {
			s := splitter{head: 8}
			got := ""
			for i := range stream {
				s.feed([]byte{stream[i]}, func(p []byte, size int64) {
					require.Greater(t, size, int64(1)<<40, "without an end")
					got += string(p)
				}, func(p []byte, last bool) {
					require.False(t, last)
					got += string(p)
				})
			}
			require.Equal(t, stream, got, "byte for byte")
		})
	}
}

func TestPendingFindsTheRequestOfAnAnswer(t *testing.T) {
	var p pending
	p.add(exchange{key: 0, corr: 1}) // without acks: never answered
	p.add(exchange{key: 3, corr: 2})
	p.add(exchange{key: 1, corr: 3})
	x, ok := p.match(2)
	require.True(t, ok)
	require.EqualValues(t, 3, x.key)
	_, ok = p.match(1)
	require.False(t, ok, "answers come in order: what was before is forgotten")
	_, ok = p.match(3)
	require.True(t, ok)
	_, ok = p.match(4)
	require.False(t, ok)

	p.add(exchange{key: 3, corr: 5})
	for i := range int32(3 * mostPending) {
		p.add(exchange{key: 0, corr: 10 + i})
	}
	require.Len(t, p.list, mostPending, "bounded")
	x, ok = p.match(5)
	require.True(t, ok, "Produce requests without acks make room, not the one that has to be rewritten")
	require.EqualValues(t, 3, x.key)
}
