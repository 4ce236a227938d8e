package run

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// record builds a recorder with windows of 10 ns from 1000 on.
func newTestRecorder(open bool) *recorder {
	f := newFrame(10, open)
	f.start.Store(1000)
	f.end.Store(1100)
	return newRecorder(f)
}

func collected(r *recorder) *timeline {
	t := &timeline{frame: r.frame}
	t.collect(r, notYet)
	return t
}

func at(due, accepted int64) *Message { return &Message{Due: due, Accepted: accepted} }

func TestRecorderSortsARunIntoWindows(t *testing.T) {
	r := newTestRecorder(true)
	r.record([]*Message{at(990, 990), at(999, 1001), at(1000, 1001), at(1009, 1011), at(1010, 1011), at(1035, 1035)}, 5000)
	list := collected(r).windows(40)
	require.Len(t, list, 4)
	acked := []int64{}
	for _, w := range list {
		acked = append(acked, w.Acked)
	}
	require.Equal(t, []int64{2, 1, 0, 1}, acked, "by due time; the warm-up's two in none")
	require.EqualValues(t, 4000, list[0].Series[results.SeriesResponse].Max())
	require.EqualValues(t, 2, list[0].Series[results.SeriesDelay].Max())
	require.EqualValues(t, 3989, list[1].Series[results.SeriesService].Max())
	require.EqualValues(t, 6, r.ackedEver)
	require.EqualValues(t, 4, r.measuredAcked)
	require.Zero(t, r.ackedInPhase, "all were acked after the phase")
}

func TestRecorderClosedLoopHasServiceOnly(t *testing.T) {
	r := newTestRecorder(false)
	r.record([]*Message{at(1000, 1001)}, 1050)
	series := collected(r).total().named()
	require.Len(t, series, 1)
	require.EqualValues(t, 49, series[results.SeriesService].Max())
	require.EqualValues(t, 1, r.ackedInPhase)
}

func TestRecorderKeepsFailuresApart(t *testing.T) {
	r := newTestRecorder(true)
	bad := at(1000, 1000)
	bad.Err = errors.New("no")
	r.record([]*Message{bad, at(1001, 1001), bad}, 1500)
	total := collected(r).total()
	require.EqualValues(t, 1, total.acked)
	require.EqualValues(t, 2, total.failed)
	require.EqualValues(t, 1, total.named()[results.SeriesResponse].Count())
	require.EqualValues(t, 2, total.named()[results.SeriesFailed].Count())
	require.Equal(t, map[string]int64{"no": 2}, r.errors)
	open := at(1002, 1002)
	open.Err, open.Unknown = errors.New("perhaps"), true
	r.record([]*Message{open, at(990, 990), at(991, 991)}, 1500)
	r.unknown(1003, 5)
	require.Equal(t, []int64{3, 2, 2}, []int64{r.ackedEver, r.failedEver, r.unknownEver}, "what is told while it runs, warm-up included")
	for i := range 10 * maxErrorKinds {
		bad.Err = fmt.Errorf("connection %d", i)
		r.record([]*Message{bad}, 1500)
	}
	require.LessOrEqual(t, len(r.errors), maxErrorKinds+1, "texts with numbers in them do not fill memory")
}

func TestRecorderRequests(t *testing.T) {
	r := newTestRecorder(true)
	r.request(results.SeriesProduce, 990, 999)   // of the warm-up
	r.request(results.SeriesProduce, 990, 1001)  // answered in the phase
	r.request(results.SeriesProduce, 1099, 1200) // written in it
	r.request(results.SeriesProduce, 1100, 1200) // of the drain
	series := collected(r).total().named()
	require.EqualValues(t, 2, series[results.SeriesProduce].Count())
}

// A message decided after its window was merged goes to the same window all the same.
func TestLateOutcomesJoinTheirWindow(t *testing.T) {
	r := newTestRecorder(true)
	tl := &timeline{frame: r.frame}
	r.record([]*Message{at(1000, 1000), at(1020, 1020)}, 1030)
	tl.collect(r, 2)
	require.Equal(t, []int{3, 2}, r.touched, "the window of the answer and that of a message due later")
	r.record([]*Message{at(1001, 1001)}, 2000)
	tl.collect(r, notYet)
	list := tl.windows(30)
	require.EqualValues(t, 2, list[0].Acked)
	require.EqualValues(t, 2, list[0].Series[results.SeriesResponse].Count())
	require.EqualValues(t, 1, list[2].Acked)
}

// Check 20: 10⁸ messages recorded use no more memory than 10⁶ (over the same number of windows); by
// default 10⁶ no more than 2·10⁵.
func TestCheck20MemoryIsFlat(t *testing.T) {
	base, more := 200_000, 5
	if soak() {
		base, more = 1_000_000, 100
	}
	heap := func(messages int) uint64 {
		f := newFrame(int64(time.Second), true)
		f.start.Store(0)
		r, tl := newRecorder(f), &timeline{frame: f}
		pool := newPool(100, 100, plain)
		out := &outcomes{pool: pool, rec: r}
		step := int64(100*time.Second) / int64(messages)
		batch := make([]*Message, 100)
		for n := int64(0); n < int64(messages); n += 100 {
			for i := range batch {
				batch[i] = pool.take()
				batch[i].Due, batch[i].Accepted = (n+int64(i))*step, (n+100)*step
			}
			out.Decided(batch, 0, (n+100)*step+n*7919%int64(20*time.Millisecond))
			if n%int64(base/10) == 0 {
				tl.collect(r, f.index(n*step)-2)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(tl)
		runtime.KeepAlive(r)
		return m.HeapAlloc
	}
	few, many := heap(base), heap(more*base)
	t.Logf("heap after %d messages %d bytes, after %d times as many %d: expected no more", base, few, more, many)
	require.LessOrEqual(t, many, few+few/2+1<<20)
}
