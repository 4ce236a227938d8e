package pace

import (
	"math"
	"time"
)

// ramp is a rate that changes linearly, then stays.
type ramp struct {
	from, to float64 // messages/s
	over     float64 // seconds
	// total is the number of messages, with its fraction, due by the end of the ramp.
	total float64
}

// Ramp goes linearly from one rate to the other over the time given and stays at the last. The
// due time of message i solves from·t + (to−from)·t²/(2·over) = i, to within a nanosecond for
// up to 10⁹ messages/s and a day. Rates below 0, NaN and infinity count as 0.
func Ramp(from, to float64, over time.Duration) Schedule {
	from, to = clean(from), clean(to)
	if over <= 0 || from == to {
		return Constant(to)
	}
	s := over.Seconds()
	return ramp{from: from, to: to, over: s, total: (from + to) / 2 * s}
}

func clean(rate float64) float64 {
	if !usable(rate) {
		return 0
	}
	return rate
}

func (r ramp) Due(i int64) int64 {
	if i <= 0 {
		return 0
	}
	n := float64(i)
	var seconds float64
	switch {
	case n < r.total:
		// The form of the quadratic's root that does not cancel when the slope is small.
		root := math.Sqrt(max(0, r.from*r.from+2*(r.to-r.from)*n/r.over))
		seconds = min(2*n/(r.from+root), r.over)
	case r.to == 0:
		return Never
	default:
		seconds = r.over + (n-r.total)/r.to
	}
	if ns := seconds * 1e9; ns < Never {
		return int64(ns)
	}
	return Never
}

// Count starts from the integral of the rate and corrects it by Due, so that both always agree.
func (r ramp) Count(d int64) int64 {
	if d <= 0 {
		return 0
	}
	n := int64(min(r.integral(float64(d)/1e9), math.MaxInt64/2))
	for n > 0 && r.Due(n-1) >= d {
		n--
	}
	for r.Due(n) < d {
		n++
	}
	return n
}

func (r ramp) integral(t float64) float64 {
	if t >= r.over {
		return r.total + (t-r.over)*r.to
	}
	return r.from*t + (r.to-r.from)*t*t/(2*r.over)
}

func (r ramp) Rate(at int64) float64 {
	t := min(max(float64(at)/1e9, 0), r.over)
	return r.from + (r.to-r.from)*t/r.over
}
