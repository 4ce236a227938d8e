package pace

import (
	"math"
	"sort"
)

// replay is a list of due times.
type replay struct{ times []int64 }

// Replay has a message due at each of the times, which must not fall and not be negative; what
// comes later than the last of them never comes. The list is kept: it must not be changed.
func Replay(times []int64) Schedule {
	if len(times) == 0 {
		return nothing{}
	}
	return replay{times}
}

func (r replay) Due(i int64) int64 {
	if i >= int64(len(r.times)) {
		return Never
	}
	return r.times[max(i, 0)]
}

func (r replay) Count(d int64) int64 {
	return int64(sort.Search(len(r.times), func(i int) bool { return r.times[i] >= d }))
}

// Rate is the mean until the last message, and 0 after it.
func (r replay) Rate(at int64) float64 {
	last := r.times[len(r.times)-1]
	if at > last {
		return 0
	}
	return float64(len(r.times)) / (float64(max(last, 1)) / 1e9)
}

// each is a schedule that several follow at the same time.
type each struct {
	one Schedule
	n   int64
}

// Each is the schedule of n producers that all follow the one given, each by itself: its message
// i is number i/n of producer i%n. A schedule for fewer than two is the one given.
func Each(one Schedule, n int) Schedule {
	if n < 2 {
		return one
	}
	return each{one, int64(n)}
}

func (e each) Due(i int64) int64 { return e.one.Due(max(i, 0) / e.n) }

func (e each) Count(d int64) int64 {
	n := e.one.Count(d)
	if n > math.MaxInt64/e.n {
		return math.MaxInt64
	}
	return n * e.n
}

func (e each) Rate(at int64) float64 { return e.one.Rate(at) * float64(e.n) }
