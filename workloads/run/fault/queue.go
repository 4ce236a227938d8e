package fault

import "time"

// queue is what is under way in one direction of a connection: bytes, each with the time at
// which it is due at the other end, and what ends the stream. It is a plain data structure: time
// is passed in, and a lock of its user's guards it.
type queue struct {
	buf   []byte
	head  int // of buf; what is before it was taken
	marks []mark
	first int       // of marks; those before it were taken
	last  time.Time // when the last of all is due
	free  time.Time // when the path has let through what was taken
}

// mark is due time of the next n bytes; or, with n = 0, what happens to the connection then.
type mark struct {
	n    int
	at   time.Time
	then event
}

// event is what happens to a connection when all before it was forwarded.
type event int8

const (
	nothing event = iota
	halfClose
	cutReset
	cutFinish
)

func cutBy(how End) event {
	if how == Finish {
		return cutFinish
	}
	return cutReset
}

// held is how many bytes are under way.
func (q *queue) held() int { return len(q.buf) - q.head }

// add puts bytes at the end, due at at; what was added before goes first all the same.
func (q *queue) add(p []byte, at time.Time) {
	if len(p) == 0 {
		return
	}
	if q.head > 0 && q.head >= len(q.buf)/2 {
		q.buf = q.buf[:copy(q.buf, q.buf[q.head:])]
		q.head = 0
	}
	q.buf = append(q.buf, p...)
	if q.pending() > 0 && !at.After(q.last) {
		if m := &q.marks[len(q.marks)-1]; m.then == nothing {
			m.n += len(p)
			return
		}
	}
	q.mark(mark{n: len(p), at: at})
}

// end puts an event at the end.
func (q *queue) end(then event, at time.Time) { q.mark(mark{at: at, then: then}) }

func (q *queue) mark(m mark) {
	if m.at.After(q.last) {
		q.last = m.at
	}
	if q.first > 0 && q.first >= len(q.marks)/2 {
		q.marks = q.marks[:copy(q.marks, q.marks[q.first:])]
		q.first = 0
	}
	q.marks = append(q.marks, m)
}

func (q *queue) pending() int { return len(q.marks) - q.first }

// far is the time to wait for when only something else can change anything.
var far = time.Unix(1<<40, 0)

// burst is how far behind its rate a narrow path may fall and still make up for it: late
// wake-ups do not lower the rate, and a reader that stopped reading for long is not flooded.
const burst = 20 * time.Millisecond

// take moves bytes that are due into dst and returns how many, or an event that is due, or else
// when to come back. rate bounds the bytes per second; 0: no bound.
func (q *queue) take(dst []byte, rate int64, now time.Time) (n int, then event, until time.Time) {
	for n < len(dst) {
		if q.pending() == 0 {
			until = far
			break
		}
		m := &q.marks[q.first]
		if m.at.After(now) {
			until = m.at
			break
		}
		if m.then != nothing {
			if n == 0 {
				q.first++
				return 0, m.then, time.Time{}
			}
			break
		}
		size := min(m.n, len(dst)-n)
		if rate > 0 {
			size = min(size, portion(rate))
			through := q.through(m.at, size, rate, now)
			if through.After(now) {
				until = through
				break
			}
			q.free = through
		}
		copy(dst[n:], q.buf[q.head:q.head+size])
		n += size
		q.head += size
		if m.n -= size; m.n == 0 {
			q.first++
		}
	}
	if n > 0 {
		return n, nothing, time.Time{}
	}
	return 0, nothing, until
}

// portion is how much passes a narrow path at a time: about two milliseconds' worth.
func portion(rate int64) int { return int(max(min(rate/500, 64<<10), 1)) }

// through is when size bytes due at at have passed a path of this rate.
func (q *queue) through(at time.Time, size int, rate int64, now time.Time) time.Time {
	start := at
	if q.free.After(start) {
		start = q.free
	}
	if behind := now.Add(-burst); start.Before(behind) {
		start = behind
	}
	return start.Add(time.Duration(float64(size) / float64(rate) * float64(time.Second)))
}
