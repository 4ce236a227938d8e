package main

import "time"

// remaining says how long a plan still takes: at first by what was expected of it, then by what its
// finished runs took. Times are given, so that it can be tested.
type remaining struct {
	runs            int           // unknownRuns: nothing is said
	expected        time.Duration // of the whole plan; 0 when it is not known
	done            int
	began, finished time.Time // of the first run; of the last one that ended
}

func (r *remaining) begin(now time.Time) {
	if r.began.IsZero() {
		r.began = now
	}
}

func (r *remaining) finish(now time.Time) {
	r.done++
	r.finished = now
}

// at is how long it takes from now on; false while nobody can tell, or when it takes longer than it
// should.
func (r *remaining) at(now time.Time) (time.Duration, bool) {
	whole := r.expected
	if r.done > 0 {
		whole = r.finished.Sub(r.began) / time.Duration(r.done) * time.Duration(r.runs)
	}
	left := whole - now.Sub(r.began)
	return left, r.runs != unknownRuns && !r.began.IsZero() && left > 0
}

// text is what goes after the standing of a run: ", 1m20s left".
func (r *remaining) text(now time.Time) string {
	left, known := r.at(now)
	if !known {
		return ""
	}
	return ", " + max(left.Round(time.Second), time.Second).String() + " left"
}
