package fetch

import (
	"errors"
	"math"

	"github.com/kbench/kbench/client/record"
)

// Extent is what the records field of one partition amounts to, told from the batches' headers.
type Extent struct {
	// Batches is the number of whole batches, Bytes their size.
	Batches, Bytes int
	// Next is where to fetch on: after the last whole batch, whether or not it has records left
	// (compaction) or shows any (control batches, aborted transactions). It never goes back.
	Next int64
	// Epoch is that of the leader which wrote the last whole batch; -1: unknown.
	Epoch int32
	// Cut says that a batch without its end follows, Need how large that is; 0: not even that
	// much of it is there.
	Cut  bool
	Need int
	// Err is a *record.FormatError or *record.CorruptError of what follows the whole batches:
	// nothing after it can be read.
	Err error
}

// Measure walks the batches of records fetched from an offset on, without looking into them.
func Measure(records []byte, from int64) Extent {
	e := Extent{Next: from, Epoch: -1}
	for rest := records; len(rest) > 0; {
		b, after, err := record.Next(rest)
		if errors.Is(err, record.ErrPartial) {
			e.Cut, e.Need = true, b.Size()
			return e
		}
		if err != nil {
			e.Err = err
			return e
		}
		e.Batches++
		e.Bytes += b.Size()
		e.Next, e.Epoch = max(e.Next, b.NextOffset()), b.PartitionLeaderEpoch
		rest = after
	}
	return e
}

// Stuck says that records came which do not lead on from an offset: fetching again from there
// with the same bounds would give the same.
func (e Extent) Stuck(from int64) bool {
	return e.Next <= from && (e.Batches > 0 || e.Cut)
}

// Wider is the partition bound with which a batch that was cut should come whole, given the bound
// it was cut with; at most limit.
func (e Extent) Wider(bound, limit int) int {
	if e.Need > 0 {
		return min(max(e.Need, bound), limit)
	}
	if bound > math.MaxInt32/2 {
		return limit
	}
	return min(2*bound, limit)
}
