package run

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads"
)

// flowing is an engine through which n messages went, one every step, each in flight for service.
// handing is how long each took to be handed over.
func flowing(n int64, step, service, handing time.Duration, base int64) *engine {
	f := newFrame(int64(time.Second), true)
	f.start.Store(base)
	f.end.Store(base + n*int64(step))
	e := &engine{frame: f, recorders: []*recorder{newRecorder(f)}, taken: make([]intake, 1), timeline: &timeline{frame: f},
		def: &workloads.Definition{Validity: workloads.Default().Validity}}
	e.flows[0] = e.flow(base)
	for i := range n {
		at := base + i*int64(step)
		e.taken[0].add(1, at-int64(handing), at)
		if done := at + int64(service); done < f.end.Load() {
			e.recorders[0].record([]*Message{{Due: at, Accepted: at}}, done)
		}
	}
	e.flows[1] = e.flow(f.end.Load())
	for i := range n {
		at := base + i*int64(step)
		if done := at + int64(service); done >= f.end.Load() {
			e.recorders[0].record([]*Message{{Due: at, Accepted: at}}, done)
		}
	}
	e.timeline.collectAll(e.recorders[0])
	return e
}

func TestLittlesLaw(t *testing.T) {
	for says, base := range map[string]int64{"at the clock's beginning": int64(time.Millisecond), "after a hundred days": int64(100 * 24 * time.Hour)} {
		e := flowing(100_000, 100*time.Microsecond, 5*time.Millisecond, time.Millisecond, base)
		l := e.littlesLaw(e.timeline.total())
		require.InEpsilon(t, 50, l.InFlight, 0.01, says)
		require.InEpsilon(t, 60, l.InFlightMost, 0.01, "ten more are being handed over")
		require.InEpsilon(t, 50, l.RateTimesService, 0.01, says)
		require.True(t, l.Holds)
	}

	e := flowing(100_000, 100*time.Microsecond, 5*time.Millisecond, 0, 1)
	total := e.timeline.total()
	total.series[slotService].RecordN(int64(10*time.Millisecond), 100_000) // as if latencies were recorded that nobody had
	require.False(t, e.littlesLaw(total).Holds, "figures that contradict each other are noticed")
	l := e.littlesLaw(total) // 2.5 ms on average more than the 5 that messages were in flight
	for share, holds := range map[float64]bool{l.RateTimesService/l.InFlightMost - 1 - 0.05: false, l.RateTimesService/l.InFlightMost - 1 + 0.05: true, 0: true} {
		e.def.Validity.MaxLittleError = share
		require.Equal(t, holds, e.littlesLaw(total).Holds, "with validity.maxLittleError %v", share)
	}

	total.answered -= total.acked / 50
	require.Nil(t, e.littlesLaw(total), "answers to other messages are no contradiction")

	e.recorders[0].record([]*Message{{Due: 5, Err: errors.New("no")}}, 100)
	e.timeline.collectAll(e.recorders[0])
	require.Nil(t, e.littlesLaw(e.timeline.total()), "failed messages are in flight and in no rate")
	require.Nil(t, (&engine{frame: e.frame}).littlesLaw(&cell{}), "nor is anything said of nothing")
}

func TestFlowSumsMayWrap(t *testing.T) {
	from := flow{at: 1000, in: 5, inBefore: math.MaxInt64 - 10, inAfter: math.MaxInt64 - 5, out: 0, outAt: math.MaxInt64 - 3}
	to := from
	to.at, to.in, to.out = 2000, 6, 6
	to.inBefore, to.inAfter = from.inBefore+1000, from.inAfter+1000 // one at 1000
	to.outAt = from.outAt + 6*1500                                  // six out at 1500
	least, most := to.between(from)
	require.InDelta(t, 6*0.5, least, 1e-9)
	require.InDelta(t, 6*0.5, most, 1e-9)
	least, most = from.between(to)
	require.Zero(t, least+most, "time does not run backwards")
}

// What is due before, in and after the measured phase is told apart to the nanosecond.
func TestSides(t *testing.T) {
	f := newFrame(10, true)
	require.Equal(t, beforeIt, f.side(5), "nothing is measured yet")
	f.start.Store(100)
	require.Equal(t, within, f.side(math.MaxInt64-1), "without a cool-down nothing is after it")
	require.Equal(t, beforeIt, f.side(99))
	f.end.Store(200)
	require.True(t, f.over(200))
	f.cool.Store(200)
	f.last.Store(300)
	require.Equal(t, within, f.side(199))
	require.Equal(t, afterIt, f.side(200))
	require.False(t, f.over(299), "a closed loop goes on in the cool-down")
	require.True(t, f.over(300))

	r := newRecorder(f)
	bad := at(60, 60)
	bad.Err = errors.New("no")
	r.record([]*Message{at(50, 50), bad, at(199, 199), at(200, 200), at(250, 250)}, 260)
	r.unknown(70, 1)
	r.unknown(201, 1)
	r.late(50, 90)
	r.late(205, 290)
	require.Zero(t, r.lateness.Count(), "lateness is of the measured phase")
	require.Empty(t, r.errors, "and so are errors")
	tl := collected(r)
	tl.collectAll(r)
	require.EqualValues(t, 1, tl.total().acked)
	require.Equal(t, counts{acked: 1, failed: 1, unknown: 1}, tl.outside[beforeIt].counts)
	require.Equal(t, counts{acked: 2, unknown: 1}, tl.outside[afterIt].counts)
	require.EqualValues(t, 210, tl.outside[beforeIt].at(slotResponse).Max())
}
