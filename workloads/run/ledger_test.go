package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func message(seq, due int64, err error) *Message { return &Message{seq: seq, Due: due, Err: err} }

func TestLedgerIsExact(t *testing.T) {
	f := newFrame(1, true)
	f.start.Store(100)
	l := newLedger(f)
	l.reach(5000)
	for seq := range int64(5001) {
		l.ack([]*Message{message(seq, 100+seq-10, nil)}) // the first ten are warm-up
	}
	require.EqualValues(t, 4991, l.lost(), "acked in the measured phase, none arrived")
	for seq := range int64(5001) {
		if seq == 4 || seq == 4000 {
			continue // one of the warm-up and one measured stay away
		}
		again, known := l.receive(seq)
		require.True(t, known)
		require.False(t, again)
	}
	require.EqualValues(t, 1, l.lost(), "the one of the warm-up does not count")
	again, known := l.receive(77)
	require.True(t, again && known, "a second arrival is seen as one")
}

func TestLedgerRetiresWhatArrivedWhole(t *testing.T) {
	f := newFrame(1, true)
	f.start.Store(0)
	l := newLedger(f)
	for seq := range int64(100 * chunkLen) {
		l.reach(seq)
		l.ack([]*Message{message(seq, 0, nil)})
		_, known := l.receive(seq)
		require.True(t, known)
		if seq%chunkLen == 0 {
			l.retire()
		}
	}
	kept := 0
	for i := range *l.table.Load() {
		if c := (*l.table.Load())[i].Load(); c != nil && c != whole {
			kept++
		}
	}
	require.LessOrEqual(t, kept, 2, "chunks kept")
	require.Zero(t, l.lost())
	again, known := l.receive(3)
	require.True(t, again && known, "a retired message that arrives again is a duplicate")
	_, known = l.receive(1 << 40)
	require.False(t, known, "a number that was never sent")
	_, known = l.receive(-1)
	require.False(t, known)
}
