package hist

import "github.com/HdrHistogram/hdrhistogram-go"

// Export is a copy in the form of hdrhistogram-go, with the same counts in the same buckets.
// Values that were clamped or negative are in its end buckets; that they were, and the exact
// sum, minimum and maximum, do not come along.
func (h *Histogram) Export() *hdrhistogram.Histogram {
	counts := make([]int64, countsLen)
	for pi, p := range h.pages {
		if p != nil {
			copy(counts[pi<<pageBits:], p[:])
		}
	}
	return hdrhistogram.Import(&hdrhistogram.Snapshot{
		LowestTrackableValue:  Lowest,
		HighestTrackableValue: Highest,
		SignificantFigures:    Digits,
		Counts:                counts,
	})
}

// Import takes over the counts of a histogram of hdrhistogram-go; nil is empty. Counts of
// the same layout stay in their buckets; those of another layout go to the bucket of the middle
// of theirs, and above Highest are clamped. Sum, minimum and maximum are those of the buckets:
// HdrHistogram keeps no better ones.
func Import(from *hdrhistogram.Histogram) *Histogram {
	h := New()
	if from == nil || from.TotalCount() == 0 {
		return h
	}
	if from.LowestTrackableValue() == Lowest && from.HighestTrackableValue() == Highest && from.SignificantFigures() == Digits {
		for i, n := range from.Export().Counts {
			h.addBucket(i, n)
		}
		return h
	}
	for _, bar := range from.Distribution() {
		h.RecordN(bar.From+(bar.To-bar.From)/2, bar.Count)
	}
	if h.count > 0 {
		h.min, h.max = from.Min(), from.Max()
	}
	return h
}

// addBucket counts n values of which only the bucket is known.
func (h *Histogram) addBucket(i int, n int64) {
	if n < 1 {
		return
	}
	h.add(uint(i), n)
	h.note(middleOf(i), n)
	low, width := bounds(i)
	h.min = min(h.min, low)
	h.max = max(h.max, low+width-1)
}
