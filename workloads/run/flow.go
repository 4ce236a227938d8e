package run

import (
	"math"
	"sync/atomic"

	"github.com/kbench/kbench/results"
)

// intake counts the messages that the target took from some of the producers, and adds up when.
// Load goroutines add, anybody reads.
type intake struct {
	messages atomic.Int64
	// before and after are the instants at which runs were handed over and at which the target had
	// taken them, times the messages of the run; see flowTime.
	before, after atomic.Int64
}

func (t *intake) add(n, before, after int64) {
	t.messages.Add(n)
	t.before.Add(n * flowTime(before))
	t.after.Add(n * flowTime(after))
}

// flowTime is an instant in units of 1.024 µs. Sums of it over messages wrap around, which does no
// harm: only differences of sums are used, and those fit as long as messages in flight times the
// length of a run stay below 9·10¹⁸ units, a million messages for a hundred days.
func flowTime(at int64) int64 { return at >> 10 }

// flow is what went in and came out until an instant: the messages, and their instants added up.
type flow struct {
	at, in, inBefore, inAfter, out, outAt int64
}

// flow reads what went in and came out until now.
func (e *engine) flow(now int64) flow {
	f := flow{at: flowTime(now)}
	for _, r := range e.recorders {
		r.mu.Lock()
		f.out += r.decided
		f.outAt += r.decidedAt
		r.mu.Unlock()
	}
	for i := range e.taken {
		t := &e.taken[i]
		f.in += t.messages.Load()
		f.inBefore += t.before.Load()
		f.inAfter += t.after.Load()
	}
	return f
}

// between is the mean number of messages in flight from one reading to the next: ∫N(t)dt over the
// time, by the instants of going in and coming out. What a target does while a run is handed over
// is not known, so there are two: with every message in flight from when its run had been taken,
// and from when it was handed over.
func (f flow) between(from flow) (least, most float64) {
	if f.at <= from.at {
		return 0, 0
	}
	area := func(went func(flow) int64) float64 {
		a := (f.in-f.out)*f.at - (from.in-from.out)*from.at - (went(f) - went(from)) + (f.outAt - from.outAt)
		return math.Max(0, float64(a)/float64(f.at-from.at))
	}
	return area(func(f flow) int64 { return f.inAfter }), area(func(f flow) int64 { return f.inBefore })
}

// littlesLaw holds the messages in flight, which are counted as they go in and come out, against
// rate × mean service time, which come from the windows: the two have nothing in common but the
// messages. nil when it says nothing: nothing was acked; messages failed, which were in flight and
// are in neither rate nor service; or the messages that were answered in the measured phase are not
// those that were due in it, so that the windows' service is not theirs.
func (e *engine) littlesLaw(total *cell) *results.LittlesLaw {
	from, to := e.flows[0], e.flows[1]
	service := total.series[slotService]
	if service == nil || total.acked == 0 || total.failed+total.unknown > 0 || to.at <= from.at {
		return nil
	}
	const others = 0.01
	if math.Abs(float64(total.answered-total.acked)) > others*float64(total.acked) {
		return nil
	}
	seconds := float64(to.at-from.at) * 1024 / 1e9
	mean := service.Mean() / 1e9
	l := &results.LittlesLaw{RateTimesService: float64(total.answered) / seconds * mean}
	l.InFlight, l.InFlightMost = to.between(from)
	// Messages in flight at the ends belong to the time only in part.
	ends := float64(max(0, from.in-from.out)+max(0, to.in-to.out)) * math.Min(1, mean/seconds)
	share := e.def.Validity.MaxLittleError
	slack := func(v float64) float64 { return v*share + ends + 1 }
	l.Holds = share <= 0 || l.RateTimesService >= l.InFlight-slack(l.InFlight) && l.RateTimesService <= l.InFlightMost+slack(l.InFlightMost)
	return l
}
