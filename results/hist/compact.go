package hist

import (
	"iter"
	"math"
	"math/bits"
)

// Layout of Compact: values in units of 1.024 µs, 64 of them one by one, then 32 steps an octave.
const (
	compactUnit = 10
	compactSub  = 6
	compactHalf = 1 << (compactSub - 1)
	compactLen  = 22*compactHalf + 2*compactHalf // up to 2^38 ns, above Highest
)

// Compact is a histogram of 3 KB, for thousands of them side by side: quantiles are known to 1.6 %
// (or 0.5 µs, whichever is more), count, minimum, maximum and mean exactly. The zero value is empty.
// It has one writer, and no reader meanwhile.
type Compact struct {
	count, sum, min, max int64
	counts               [compactLen]uint32
}

// Record adds a value in nanoseconds. Values below 0 are counted at 0, those above Highest at the
// end; both are in minimum, maximum and mean as they are.
func (c *Compact) Record(v int64) {
	if c.count == 0 {
		c.min, c.max = v, v
	}
	c.count++
	c.sum += v
	c.min, c.max = min(c.min, v), max(c.max, v)
	c.counts[compactIndex(min(max(v, 0), Highest))]++
}

func compactIndex(v int64) int {
	u := uint64(v) >> compactUnit
	shift := max(bits.Len64(u)-compactSub, 0)
	return shift*compactHalf + int(u>>shift)
}

// compactMiddle is the middle of the values that counter i stands for.
func compactMiddle(i int) int64 {
	shift := max(i/compactHalf-1, 0)
	low := int64(i-shift*compactHalf) << shift
	return low<<compactUnit + int64(1)<<(shift+compactUnit)/2
}

// Merge adds what another has recorded.
func (c *Compact) Merge(from *Compact) {
	if from.count == 0 {
		return
	}
	if c.count == 0 {
		c.min, c.max = from.min, from.max
	}
	c.count += from.count
	c.sum += from.sum
	c.min, c.max = min(c.min, from.min), max(c.max, from.max)
	for i, n := range from.counts {
		c.counts[i] += n
	}
}

// Count is the number of values.
func (c *Compact) Count() int64 { return c.count }

// Min and Max are exact, and 0 when empty.
func (c *Compact) Min() int64 { return c.min }

// Max is the largest value; see Min.
func (c *Compact) Max() int64 { return c.max }

// Mean is exact, and 0 when empty.
func (c *Compact) Mean() float64 {
	if c.count == 0 {
		return 0
	}
	return float64(c.sum) / float64(c.count)
}

// Quantile is the value of rank q·Count, rounded up, to the resolution of the histogram, and never
// outside of minimum and maximum; 0 when empty.
func (c *Compact) Quantile(q float64) int64 {
	rank := min(max(int64(math.Ceil(q*float64(c.count))), 1), c.count)
	var seen int64
	for i, n := range c.used() {
		if seen += n; seen >= rank {
			return min(max(compactMiddle(i), c.min), c.max)
		}
	}
	return 0
}

func (c *Compact) used() iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for i, n := range c.counts {
			if n != 0 && !yield(i, int64(n)) {
				return
			}
		}
	}
}
