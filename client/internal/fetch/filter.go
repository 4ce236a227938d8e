package fetch

import "github.com/kbench/kbench/client/record"

// Filter says which batches of one partition's records an application must not see: control
// batches always, those of aborted transactions when there is a list of them (read_committed).
// It goes through the batches in order. The zero value hides control batches only.
type Filter struct {
	waiting []Aborted // not reached yet, in rising order of FirstOffset
	open    []int64   // producers whose transaction is being skipped
}

// Reset starts on other records, with the aborted transactions that the answer lists for them in
// rising order, which are copied.
func (f *Filter) Reset(aborted []Aborted) {
	f.waiting = append(f.waiting[:0], aborted...)
	f.open = f.open[:0]
}

// Hides looks at the next batch. A control batch must be given to Marker as well when Watching.
func (f *Filter) Hides(b *record.Batch) bool {
	last := b.LastOffset()
	n := 0
	for n < len(f.waiting) && f.waiting[n].FirstOffset <= last {
		f.start(f.waiting[n].ProducerID)
		n++
	}
	if n > 0 {
		f.waiting = f.waiting[:copy(f.waiting, f.waiting[n:])]
	}
	return b.Control() || b.Transactional() && f.skipped(b.ProducerID) >= 0
}

// Watching says whether markers matter: some transaction is being skipped.
func (f *Filter) Watching() bool { return len(f.open) > 0 }

// Marker takes in a marker of a control batch: an abort ends what is skipped of its producer.
func (f *Filter) Marker(b *record.Batch, c record.Control) {
	if i := f.skipped(b.ProducerID); c == record.Abort && i >= 0 {
		f.open[i] = f.open[len(f.open)-1]
		f.open = f.open[:len(f.open)-1]
	}
}

func (f *Filter) start(producer int64) {
	if f.skipped(producer) < 0 {
		f.open = append(f.open, producer)
	}
}

func (f *Filter) skipped(producer int64) int {
	for i, p := range f.open {
		if p == producer {
			return i
		}
	}
	return -1
}
