package run

import (
	"slices"

	"github.com/kbench/kbench/results"
)

// watched is what of a run tells whether a fault is over for it.
type watched struct {
	series   string
	received bool // the rate is of what was received
}

func (w watched) rate(of *results.Window) float64 {
	if of.LengthNs <= 0 {
		return 0
	}
	n := of.Acked
	if w.received {
		n = of.Received
	}
	return float64(n) / (float64(of.LengthNs) / 1e9)
}

// p99 is false when the window has no message of the series.
func (w watched) p99(of *results.Window) (int64, bool) {
	h := of.Series[w.series]
	if h == nil || h.Count() == 0 {
		return 0, false
	}
	return h.Quantile(0.99), true
}

// recoveries fills in what faults did, from the windows of the measured phase in order. It is pure.
func recoveries(faults []results.Fault, windows []results.Window, look watched) {
	order := make([]*results.Fault, 0, len(faults))
	for i := range faults {
		if faults[i].Skipped == "" {
			order = append(order, &faults[i])
		}
	}
	slices.SortStableFunc(order, func(a, b *results.Fault) int { return int(min(1, max(-1, a.AtNs-b.AtNs))) })
	touched := make([]bool, len(windows)) // by an earlier fault
	for i, f := range order {
		next := int64(1<<63 - 1)
		for _, later := range order[i+1:] {
			if later.AtNs > f.AtNs {
				next = later.AtNs
				break
			}
		}
		r := recovery{fault: f, windows: windows, look: look, next: next}
		r.work(touched)
	}
}

// recovery is the work on one fault.
type recovery struct {
	fault   *results.Fault
	windows []results.Window
	look    watched
	next    int64 // when the next fault begins
}

func (r *recovery) work(touched []bool) {
	f := r.fault
	f.Series = r.look.series
	f.Before = r.before(touched)
	first := r.first()
	last := r.recovered(first)
	for i := first; i < last; i++ {
		touched[i] = true
	}
	for i := first; i < len(r.windows) && r.windows[i].StartNs < f.AtNs+f.DurationNs; i++ {
		touched[i] = true
		last = max(last, i+1)
	}
	r.affected(first, last)
}

// first is the window in which the fault begins.
func (r *recovery) first() int {
	for i := range r.windows {
		if w := &r.windows[i]; w.StartNs+w.LengthNs > r.fault.AtNs {
			return i
		}
	}
	return len(r.windows)
}

// before is what the load was like in the windows that ended before the fault.
func (r *recovery) before(touched []bool) *results.FaultBase {
	var rates []float64
	var p99s []int64
	for i := range r.windows {
		w := &r.windows[i]
		if touched[i] || w.StartNs < 0 || w.StartNs+w.LengthNs > r.fault.AtNs {
			continue
		}
		if p99, any := r.look.p99(w); any {
			rates, p99s = append(rates, r.look.rate(w)), append(p99s, p99)
		}
	}
	if len(rates) == 0 {
		return nil
	}
	slices.Sort(rates)
	slices.Sort(p99s)
	n := len(rates)
	return &results.FaultBase{MessagesPerSecond: (rates[(n-1)/2] + rates[n/2]) / 2, P99Ns: (p99s[(n-1)/2] + p99s[n/2]) / 2, Windows: n}
}

// well says whether a window is as before the fault.
func (r *recovery) well(w *results.Window) bool {
	base := r.fault.Before
	p99, any := r.look.p99(w)
	return any && r.look.rate(w) >= results.RecoveredRateShare*base.MessagesPerSecond && p99 <= results.RecoveredP99Factor*base.P99Ns
}

// recovered looks for the first of enough windows in a row that are as before, and returns its number.
func (r *recovery) recovered(first int) int {
	f := r.fault
	if f.Before == nil {
		f.NotRecovered = "no window before it to compare with"
		return first
	}
	row := 0
	for i := first; i < len(r.windows); i++ {
		if r.windows[i].StartNs >= r.next {
			f.NotRecovered = "the next fault began before"
			return i
		}
		if !r.well(&r.windows[i]) {
			row = 0
			continue
		}
		if row++; row == results.RecoveredWindows || i == len(r.windows)-1 {
			begin := i - row + 1
			f.Recovered, f.RecoverNs = true, max(0, r.windows[begin].StartNs-f.AtNs)
			return begin
		}
	}
	f.NotRecovered = "the measured phase ended before"
	return len(r.windows)
}

// affected counts the messages of the windows from one to before another that the fault held up.
func (r *recovery) affected(first, last int) {
	f := r.fault
	for i := first; i < last; i++ {
		w := &r.windows[i]
		f.FailedMessages += w.Failed + w.Unknown
		if h := w.Series[r.look.series]; h != nil && f.Before != nil {
			f.Affected += h.CountAbove(results.RecoveredP99Factor * f.Before.P99Ns)
		}
		if p99, any := r.look.p99(w); any {
			f.WorstP99Ns = max(f.WorstP99Ns, p99)
		}
		if rate := r.look.rate(w); i == first || rate < f.LowestRate {
			f.LowestRate = rate
		}
	}
	f.Affected += f.FailedMessages
}
