package run

import (
	"time"

	"github.com/kbench/kbench/results/hist"
)

// Phase is where in its course a run is.
type Phase string

// The phases of a run, in order.
const (
	PhasePrepare  Phase = "prepare"
	PhaseWarmUp   Phase = "warm-up"
	PhaseMeasure  Phase = "measure"
	PhaseCoolDown Phase = "cool-down"
	PhaseDrain    Phase = "drain"
	PhaseClose    Phase = "close"
)

// Progress is how a run stands, for people watching; results never come from it.
type Progress struct {
	Phase Phase
	// Elapsed and Total are of the phase; Total is 0 when it is not known.
	Elapsed, Total time.Duration
	// Rate is messages acked (received, when nothing is produced) a second of late.
	Rate float64
	// TargetRate is the rate asked for; 0 in a closed loop.
	TargetRate float64
	// P50 and P99 are of response (service in a closed loop), over about the last second, of
	// the messages decided in it; 0 when there were none.
	P50, P99 time.Duration
	// Acked, Failed, Unknown and Received count since the run began, warm-up included.
	Acked, Failed, Unknown, Received int64
	InFlight                         int64
	Lag                              int64 // −1 when unknown or there are no consumers
}

// recent keeps what the recorders saw in about the last second.
type recent struct {
	parts []*hist.Histogram // a ring, one a tick
	acked []int64
	next  int
	all   *hist.Histogram
}

func newRecent(ticks int) *recent {
	r := &recent{acked: make([]int64, ticks), all: hist.New()}
	for range ticks {
		r.parts = append(r.parts, hist.New())
	}
	return r
}

// part gives the oldest part, emptied, to be filled with what happened since the last tick.
func (r *recent) part() (*hist.Histogram, *int64) {
	h, n := r.parts[r.next], &r.acked[r.next]
	r.next = (r.next + 1) % len(r.parts)
	h.Reset()
	*n = 0
	return h, n
}

// sum merges the parts.
func (r *recent) sum() (h *hist.Histogram, acked int64) {
	r.all.Reset()
	for i, p := range r.parts {
		r.all.Merge(p)
		acked += r.acked[i]
	}
	return r.all, acked
}
