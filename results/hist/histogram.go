package hist

import (
	"iter"
	"math"
	"math/bits"
)

type page [pageLen]int64

// Histogram counts latencies in nanoseconds. Make one with New; the zero value is not usable.
// It has one writer and is not safe for concurrent use, reading included.
//
// Count, Sum, Min and Max are exact, also for values that the counters could not hold;
// quantiles are as exact as the layout.
type Histogram struct {
	pages    [pages]*page
	count    int64
	min, max int64 // MaxInt64 and MinInt64 while empty
	// sumHi, sumLo are the sum of all values as a 128-bit two's complement: 10^8 values of
	// 100 s do not fit in 64 bits, and a float would make a merge depend on its order.
	sumHi, sumLo      uint64
	clamped, negative int64
}

// New makes an empty histogram. It takes about 1.3 KB, and 1 KiB for each page its values touch.
func New() *Histogram {
	return &Histogram{min: math.MaxInt64, max: math.MinInt64}
}

// Record counts one value. It allocates only when the value is the first of its page.
func (h *Histogram) Record(ns int64) {
	if uint64(ns) > Highest { // a negative value too
		h.recordOutside(ns, 1)
		return
	}
	i := index(ns)
	p := h.pages[i>>pageBits]
	if p == nil {
		p = h.touch(i >> pageBits)
	}
	p[i&(pageLen-1)]++
	h.count++
	lo := h.sumLo + uint64(ns)
	h.sumLo = lo
	if lo < uint64(ns) {
		h.sumHi++ // a branch never taken costs less than a counter always written
	}
	if ns < h.min {
		h.min = ns
	}
	if ns > h.max {
		h.max = ns
	}
}

// RecordN counts a value n times. n below 1 counts nothing.
func (h *Histogram) RecordN(ns, n int64) {
	if n < 1 {
		return
	}
	if uint64(ns) > Highest {
		h.recordOutside(ns, n)
		return
	}
	h.add(index(ns), n)
	h.note(ns, n)
}

// recordOutside counts values that no counter stands for: at the end they fall off.
func (h *Histogram) recordOutside(ns, n int64) {
	if ns < 0 {
		h.negative += n
		h.add(0, n)
	} else {
		h.clamped += n
		h.add(index(Highest), n)
	}
	h.note(ns, n)
}

// add puts n in counter i.
func (h *Histogram) add(i uint, n int64) {
	p := h.pages[i>>pageBits]
	if p == nil {
		p = h.touch(i >> pageBits)
	}
	p[i&(pageLen-1)] += n
}

// note keeps what is exact.
func (h *Histogram) note(ns, n int64) {
	h.count += n
	hi, lo := bits.Mul64(uint64(ns), uint64(n))
	if ns < 0 {
		hi -= uint64(n) // the product of a two's complement read as unsigned is 2^64·n too large
	}
	h.addSum(hi, lo)
	h.min = min(h.min, ns)
	h.max = max(h.max, ns)
}

func (h *Histogram) addSum(hi, lo uint64) {
	var carry uint64
	h.sumLo, carry = bits.Add64(h.sumLo, lo, 0)
	h.sumHi, _ = bits.Add64(h.sumHi, hi, carry)
}

//go:noinline
func (h *Histogram) touch(i uint) *page {
	p := new(page)
	h.pages[i] = p
	return p
}

// Count is the number of values recorded, those clamped and negative included.
func (h *Histogram) Count() int64 { return h.count }

// Clamped is the number of values above Highest; they are counted at Highest.
func (h *Histogram) Clamped() int64 { return h.clamped }

// Negative is the number of values below zero; they are counted at 0.
func (h *Histogram) Negative() int64 { return h.negative }

// Min is the smallest value recorded, exactly, also when it is negative; 0 when empty.
func (h *Histogram) Min() int64 {
	if h.count == 0 {
		return 0
	}
	return h.min
}

// Max is the largest value recorded, exactly, also when it was clamped; 0 when empty.
func (h *Histogram) Max() int64 {
	if h.count == 0 {
		return 0
	}
	return h.max
}

// Mean is the mean of the values as recorded, not of their buckets; 0 when empty.
func (h *Histogram) Mean() float64 {
	if h.count == 0 {
		return 0
	}
	return h.sum() / float64(h.count)
}

func (h *Histogram) sum() float64 {
	hi, lo := h.sumHi, h.sumLo
	if int64(hi) >= 0 {
		return math.Ldexp(float64(hi), 64) + float64(lo)
	}
	// The magnitude first: adding a large negative half to a large positive one would lose
	// the digits that are left.
	var borrow uint64
	lo, borrow = bits.Sub64(0, lo, 0)
	hi, _ = bits.Sub64(0, hi, borrow)
	return -(math.Ldexp(float64(hi), 64) + float64(lo))
}

// Quantile is the value that a share q of all values do not exceed, by the definition of
// hdrhistogram-go's ValueAtQuantile(100·q): the highest value of the bucket that holds the
// value of rank q·Count+½ rounded down; for q ≤ 0 the lowest value of the first bucket. It can
// therefore lie above Max by the width of a bucket. (The project's Java version rounds q·Count
// up: it can name the next value in rank, which matters with few values only.) q outside 0…1 counts as the nearer end; an
// empty histogram yields 0.
func (h *Histogram) Quantile(q float64) int64 {
	if h.count == 0 {
		return 0
	}
	i := h.indexOfRank(rank(q, h.count))
	if q <= 0 {
		low, _ := bounds(i)
		return low
	}
	return highestOf(i)
}

// rank computes in percent like HdrHistogram does, so that both round alike.
func rank(q float64, count int64) int64 {
	percentile := min(q*100, 100)
	r := percentile/100*float64(count) + 0.5
	switch {
	case !(r >= 1): // also NaN
		return 1
	case r >= float64(count):
		return count
	}
	return int64(r)
}

func (h *Histogram) indexOfRank(rank int64) int {
	var seen int64
	last := 0
	for i, n := range h.counters() {
		seen += n
		last = i
		if seen >= rank {
			break
		}
	}
	return last
}

// CountAbove is the number of values above ns, to the resolution of the layout: values in the
// bucket of ns itself are not counted. Above Highest only the clamped values are known: all of
// them are counted unless Max is not above ns. Below zero all values from 0 on are counted.
func (h *Histogram) CountAbove(ns int64) int64 {
	switch {
	case h.count == 0 || ns >= h.max:
		return 0
	case ns < h.min:
		return h.count
	case ns < 0:
		return h.count - h.negative
	case ns >= Highest:
		return h.clamped
	}
	limit := int(index(ns))
	var above int64
	for i, n := range h.counters() {
		if i > limit {
			above += n
		}
	}
	return above
}

// counters yields the counters that are not 0, in rising order.
func (h *Histogram) counters() iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for pi, p := range h.pages {
			if p == nil {
				continue
			}
			for i, n := range p {
				if n != 0 && !yield(pi<<pageBits+i, n) {
					return
				}
			}
		}
	}
}

// Buckets yields the buckets that are not empty in rising order: the value in the middle of
// each, in nanoseconds, and its count.
func (h *Histogram) Buckets() iter.Seq2[int64, int64] {
	return func(yield func(int64, int64) bool) {
		for i, n := range h.counters() {
			if !yield(middleOf(i), n) {
				return
			}
		}
	}
}

// Merge adds everything recorded in from, exactly: the result is as if all values had been
// recorded in one histogram, in whatever order. from is left as it is; nil is empty.
func (h *Histogram) Merge(from *Histogram) {
	if from == nil || from.count == 0 {
		return
	}
	for pi, p := range from.pages {
		if p == nil {
			continue
		}
		mine := h.pages[pi]
		if mine == nil {
			mine = h.touch(uint(pi))
		}
		for i := range p {
			mine[i] += p[i]
		}
	}
	h.count += from.count
	h.clamped += from.clamped
	h.negative += from.negative
	h.addSum(from.sumHi, from.sumLo)
	h.min = min(h.min, from.min)
	h.max = max(h.max, from.max)
}

// Reset forgets all values and keeps the pages, so that the same kind of values can be recorded
// again without allocating.
func (h *Histogram) Reset() {
	kept := h.pages
	for _, p := range kept {
		if p != nil {
			*p = page{}
		}
	}
	*h = Histogram{pages: kept, min: math.MaxInt64, max: math.MinInt64}
}

// Clone is an independent copy.
func (h *Histogram) Clone() *Histogram {
	c := New()
	c.Merge(h)
	return c
}
