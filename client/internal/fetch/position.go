package fetch

import "time"

// The offsets that stand for an end of the log, also the times that ListOffsets takes for them.
const (
	Last  int64 = -1
	First int64 = -2
)

// Need is what must be asked of the leader before a partition can be fetched.
type Need int8

// The needs.
const (
	Nothing    Need = iota
	FindFirst       // the offset at the start of the log
	FindLast        // the offset at the end of the log
	FindRange       // both, because the broker says that Next is out of range
	CheckEpoch      // whether the log is still the one that was read (KIP-320)
)

// Policy says where to go on when the position is not in the log.
type Policy int8

// The policies.
const (
	Refuse Policy = iota
	Earliest
	Latest
)

// Backoff bounds the wait after failures in a row: from Min, doubling, up to Max.
type Backoff struct{ Min, Max time.Duration }

// After is the wait after the given number of failures in a row.
func (b Backoff) After(failures int) time.Duration {
	d := b.Min
	for i := 1; i < failures && d < b.Max; i++ {
		d *= 2
	}
	return max(min(d, b.Max), b.Min)
}

// Position is where the fetching of one partition stands. Changes that make what was asked for
// before worthless raise Version: an answer counts only if the version it was asked with is still
// the position's.
type Position struct {
	Next     int64 // offset of the next fetch; not meaningful while there is a Need
	Version  uint32
	Need     Need
	Failures int       // in a row
	Until    time.Time // not to be tried before; zero: at once
	Widened  int       // partition bound while a large batch is being got; 0: the usual
	Missing  Missing
}

// MoveTo goes to an offset, First or Last, from wherever it was.
func (p *Position) MoveTo(offset int64) {
	version := p.Version + 1
	*p = Position{Next: offset, Version: version, Need: needOf(offset)}
}

func needOf(offset int64) Need {
	switch offset {
	case First:
		return FindFirst
	case Last:
		return FindLast
	}
	return Nothing
}

// Resolved takes in what the leader says of the log's first and last offset, as far as the need
// asked for them. What was fetched before stays good. It returns false when the position is out of range and the policy refuses to
// move; the position then stays.
func (p *Position) Resolved(first, last int64, policy Policy) bool {
	switch p.Need {
	case FindFirst:
		p.Next = first
	case FindLast:
		p.Next = last
	case FindRange:
		if p.Next < first || p.Next > last {
			if policy == Refuse {
				return false
			}
			p.Next = last
			if policy == Earliest {
				p.Next = first
			}
		}
		// Within the range after all: the broker that refused it was behind, or no leader any
		// more. The position must not move for that (it is tried again).
	}
	p.Need, p.Missing = Nothing, Missing{}
	return true
}

// Outside takes in that a broker does not have Next: the leader must say what it has.
func (p *Position) Outside() { p.Need, p.Missing = FindRange, Missing{} }

// Advance takes in records fetched from Next.
func (p *Position) Advance(e Extent) {
	p.Next, p.Failures, p.Until, p.Widened, p.Missing = e.Next, 0, time.Time{}, 0, Missing{}
}

// Failed takes in a failure, and makes the next try wait.
func (p *Position) Failed(now time.Time, b Backoff) {
	p.Failures++
	p.Until = now.Add(b.After(p.Failures))
}

// Waiting says whether the wait after a failure is not over.
func (p *Position) Waiting(now time.Time) bool { return now.Before(p.Until) }
