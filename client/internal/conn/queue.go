package conn

import "time"

// entry is a request whose answer is awaited.
type entry struct {
	call    *Call
	written time.Time     // when its write began
	by      time.Duration // when its answer must be there, since the connection's base
	corr    int32
	slot    bool // it holds a slot
}

// queue is a ring of entries in the order of their writing. It grows to the most that were ever
// in flight at once, and allocates nothing after that.
type queue struct {
	ring  []entry // length 0 or a power of two
	first int
	n     int
}

func (q *queue) len() int { return q.n }

// at is entry i, counted from the oldest.
func (q *queue) at(i int) *entry { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

func (q *queue) push(e entry) {
	if q.n == len(q.ring) {
		grown := make([]entry, max(8, 2*len(q.ring)))
		for i := range q.n {
			grown[i] = *q.at(i)
		}
		q.ring, q.first = grown, 0
	}
	q.n++
	*q.at(q.n - 1) = e
}

// pop takes the oldest.
func (q *queue) pop() entry {
	e := *q.at(0)
	*q.at(0) = entry{}
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	return e
}

// popLast takes the youngest.
func (q *queue) popLast() entry {
	e := *q.at(q.n - 1)
	*q.at(q.n - 1) = entry{}
	q.n--
	return e
}
