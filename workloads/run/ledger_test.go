package run

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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

// What was aborted is not missed when it stays away and is noticed when it does not, exactly, also in chunks
// that arrived whole and across their borders.
func TestLedgerLeavesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFrame(1, true)
		f.start.Store(0)
		l := newLedger(f)
		const all = 3 * chunkLen
		l.reach(all - 1)
		arrives := rapid.SampledFrom([]int64{1, 2, 3, 64, 100}).Draw(t, "arrives") // every so many stays away; 1: none
		for seq := range int64(all) {
			l.ack([]*Message{message(seq, 0, nil)})
			if arrives == 1 || seq%arrives != 0 {
				l.receive(seq)
			}
		}
		l.retire()
		var lost, absent, shown int64
		for from := int64(0); from < all; {
			to := min(from+rapid.Int64Range(1, 1500).Draw(t, "messages"), all)
			fate := rapid.SampledFrom([]string{"committed", "aborted", "unknown"}).Draw(t, "fate")
			if fate != "committed" {
				l.leaveOut(from, to, fate == "aborted")
			}
			for seq := from; seq < to; seq++ {
				switch away := arrives > 1 && seq%arrives == 0; {
				case away && fate == "committed":
					lost++
				case away:
					absent++
				case fate == "aborted":
					shown++
				}
			}
			from = to
		}
		gotAbsent, gotShown := l.absent()
		require.Equal(t, []int64{lost, absent, shown}, []int64{l.lost(), gotAbsent, gotShown})
	})
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

// heap is what is in use, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// 100 million messages (2 million by default), some of which are lost and some of which arrive twice:
// every one is found, and the memory follows what is missing, not the length of the run.
func TestLedgerIsBounded(t *testing.T) {
	n := int64(2_000_000)
	if os.Getenv("KBENCH_SOAK") == "1" {
		n = 100_000_000
	}
	const step, lostEvery, againEvery = 1000, 9973, 7919
	f := newFrame(1, true)
	f.start.Store(0)
	before := heap()
	l := newLedger(f)
	batch := make([]*Message, step)
	for i := range batch {
		batch[i] = &Message{}
	}
	var again, most int64
	for seq := int64(0); seq < n; seq += step {
		l.reach(seq + step - 1)
		for i, m := range batch {
			m.seq = seq + int64(i)
			if m.seq%lostEvery == 5 {
				continue
			}
			if twice, known := l.receive(m.seq); twice || !known {
				t.Fatalf("number %d: again %v, known %v", m.seq, twice, known)
			}
			if back := m.seq - 3*chunkLen; m.seq%againEvery == 0 && back >= 0 && back%lostEvery != 5 {
				twice, _ := l.receive(back)
				require.True(t, twice, "number %d", back)
				again++
			}
		}
		l.ack(batch)
		if seq%(256*step) == 0 { // four times a second, of a million
			l.retire()
		}
		if seq%(n/4) == 0 {
			most = max(most, heap()-before)
		}
	}
	l.retire()
	most = max(most, heap()-before)
	lost := (n - 5 + lostEvery - 1) / lostEvery
	require.Equal(t, lost, l.lost())
	require.InDelta(t, n/againEvery, again, 10)
	bound := lost*int64(chunkLen/4+64) + 3*8*n/chunkLen + 256*step/2 + 1<<20
	require.Less(t, most, bound, "bytes for %d messages, %d of them missing", n, lost)
	runtime.KeepAlive(l)
	t.Logf("%d messages, %d lost: %d KiB at most, bound %d KiB", n, lost, most>>10, bound>>10)
}
