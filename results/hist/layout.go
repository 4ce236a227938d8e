package hist

import "math/bits"

// Range and precision of every histogram, in the terms of hdrhistogram.New.
const (
	// Lowest is the lowest value told apart from 0, in nanoseconds.
	Lowest = 1_000
	// Highest is the highest value recorded as it is, in nanoseconds; see Histogram.Clamped.
	Highest = 120_000_000_000
	// Digits is the number of significant decimal digits.
	Digits = 3
)

// HdrHistogram's layout for these three figures. A value is shifted right until 11 bits are
// left (sub-buckets); the number of shifts is the bucket. All buckets but the first use only
// the upper half of their sub-buckets, which is what makes index a single addition.
const (
	unitBits  = 9  // ⌊log2 Lowest⌋: values are told apart in units of 512 ns at the bottom
	subBits   = 11 // ⌈log2 (2·10^Digits)⌉
	halfBits  = subBits - 1
	half      = 1 << halfBits
	unitMask  = (1<<subBits - 1) << unitBits
	buckets   = 18 // until 2^(unitBits+subBits+buckets-1) exceeds Highest
	countsLen = (buckets + 1) * half
)

// Counters stand in pages of 1 KiB: small enough that a lone outlier costs little, large
// enough that the table of pages does too.
const (
	pageBits = 7
	pageLen  = 1 << pageBits
	pages    = countsLen / pageLen
)

// index is the counter of a value from 0 to Highest.
func index(v int64) uint {
	bucket := uint(bits.Len64(uint64(v)|unitMask)) - (unitBits + subBits)
	return bucket<<halfBits + uint(uint64(v)>>((bucket+unitBits)&63))
}

// lowest is the smallest value that counter i stands for and width the number of values.
func bounds(i int) (lowest, width int64) {
	bucket := max(i>>halfBits-1, 0)
	sub := i - bucket<<halfBits
	shift := uint(bucket + unitBits)
	return int64(sub) << shift, 1 << shift
}

func highestOf(i int) int64 {
	low, width := bounds(i)
	return low + width - 1
}

func middleOf(i int) int64 {
	low, width := bounds(i)
	return low + width/2
}
