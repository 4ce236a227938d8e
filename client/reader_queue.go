package client

import "github.com/kbench/kbench/client/internal/fetch"

// block is what one answer holds of one partition, or an error in its place. It is read in the
// order in which blocks came.
type block struct {
	p       *partition
	version uint32  // of the position it was fetched for; data of another one are not delivered
	buf     *buffer // one reference of the block's own; nil for an error
	from    int64   // the offset that was fetched; the consumer's position moves there
	records []byte  // batches, in buf; none: only the position moves
	batches int     // whole ones in records
	aborted []fetch.Aborted
	hwm     int64
	err     error
}

// blocks is a ring that grows: its bound is the reader's, which stops fetching.
type blocks struct {
	ring  []block
	first int
	n     int
}

func (q *blocks) push(b block) {
	if q.n == len(q.ring) {
		grown := make([]block, max(8, 2*q.n))
		for i := range q.n {
			grown[i] = *q.at(i)
		}
		q.ring, q.first = grown, 0
	}
	*q.at(q.n) = b
	q.n++
}

func (q *blocks) at(i int) *block { return &q.ring[(q.first+i)%len(q.ring)] }

// lastOf is the last block of a partition; nil: there is none.
func (q *blocks) lastOf(p *partition) *block {
	for i := q.n - 1; i >= 0; i-- {
		if b := q.at(i); b.p == p {
			return b
		}
	}
	return nil
}

func (q *blocks) pop() block {
	b := *q.at(0)
	*q.at(0) = block{}
	q.first = (q.first + 1) % len(q.ring)
	q.n--
	return b
}

// purge takes out what drop says, in order.
func (q *blocks) purge(drop func(*block) bool) {
	kept := 0
	for i := range q.n {
		b := *q.at(i)
		if drop(&b) {
			continue
		}
		*q.at(kept) = b
		kept++
	}
	for i := kept; i < q.n; i++ {
		*q.at(i) = block{}
	}
	q.n = kept
}
