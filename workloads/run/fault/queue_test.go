package fault

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var epoch = time.Unix(1000, 0)

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func TestQueueGivesWhatIsDue(t *testing.T) {
	var q queue
	dst := make([]byte, 10)
	n, then, until := q.take(dst, 0, epoch)
	require.Zero(t, n)
	require.Equal(t, nothing, then)
	require.Equal(t, far, until, "nothing is under way")

	q.add([]byte("abc"), epoch.Add(ms(5)))
	q.add([]byte("def"), epoch.Add(ms(3))) // frames keep their order
	q.end(halfClose, epoch.Add(ms(4)))
	n, _, until = q.take(dst, 0, epoch.Add(ms(4.9)))
	require.Zero(t, n, "not before its time")
	require.Equal(t, epoch.Add(ms(5)), until)
	n, then, _ = q.take(dst, 0, epoch.Add(ms(5)))
	require.Equal(t, "abcdef", string(dst[:n]), "what is due goes together")
	require.Equal(t, nothing, then, "the end comes by itself")
	n, then, _ = q.take(dst, 0, epoch.Add(ms(5)))
	require.Zero(t, n)
	require.Equal(t, halfClose, then)
	require.Zero(t, q.held())
}

func TestQueueOfANarrowPath(t *testing.T) {
	const rate = 100_000 // 200 bytes at a time
	var q queue
	q.add(make([]byte, 1000), epoch)
	dst := make([]byte, 4096)
	now, got := epoch, 0
	for got < 1000 {
		n, _, until := q.take(dst, rate, now)
		if n == 0 {
			require.True(t, until.After(now))
			now = until
		}
		got += n
	}
	require.Equal(t, epoch.Add(ms(10)), now, "1000 bytes take 10 ms")

	q.add(make([]byte, 100_000), epoch.Add(time.Second))
	now = epoch.Add(10 * time.Second) // nobody took it for long
	got = 0
	for {
		n, _, _ := q.take(dst, rate, now)
		if n == 0 {
			break
		}
		got += n
	}
	require.LessOrEqual(t, got, int(rate*burst/time.Second), "what was not sent for long does not come as a flood")
}

// Whatever is added and however it is taken: every byte arrives, in order, none before its time,
// and a path lets no more through than its rate.
func TestQueueProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var in, out []byte
		due := map[int]time.Time{} // of the byte at an index of in
		now := epoch
		rate := rapid.SampledFrom([]int64{0, 1000, 1_000_000}).Draw(t, "rate")
		dst := make([]byte, rapid.IntRange(1, 64).Draw(t, "room"))
		for len(in) < 400 {
			p := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")
			at := now.Add(time.Duration(rapid.IntRange(0, 5_000_000).Draw(t, "late")))
			for i := range p {
				due[len(in)+i] = at
			}
			in = append(in, p...)
			q.add(p, at)
			if rapid.Bool().Draw(t, "wait") {
				now = now.Add(time.Duration(rapid.IntRange(0, 3_000_000).Draw(t, "wait for")))
			}
			out = takeAll(t, &q, out, dst, rate, now, due)
		}
		began, before := now, len(out)
		for len(out) < len(in) {
			_, _, until := q.take(nil, rate, now)
			require.Equal(t, time.Time{}, until, "no room, no wait")
			n, _, until := q.take(dst, rate, now)
			if n == 0 {
				require.True(t, until.After(now), "never idle while something is due")
				now = until
			}
			out = append(out, dst[:n]...)
		}
		require.True(t, bytes.Equal(in, out))
		if rate > 0 {
			least := time.Duration(float64(len(out)-before)/float64(rate)*float64(time.Second)) - burst
			require.GreaterOrEqual(t, now.Sub(began), least-time.Microsecond)
		}
	})
}

func takeAll(t *rapid.T, q *queue, out, dst []byte, rate int64, now time.Time, due map[int]time.Time) []byte {
	for {
		n, _, _ := q.take(dst, rate, now)
		if n == 0 {
			return out
		}
		for i := range n {
			require.False(t, due[len(out)+i].After(now), "before its time")
		}
		out = append(out, dst[:n]...)
	}
}
