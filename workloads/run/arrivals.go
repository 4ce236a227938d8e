package run

import (
	"github.com/kbench/kbench/workloads/payload"
)

// integrity is what is known about the arrivals of one consumer.
type integrity struct {
	received   int64 // of the measured phase, duplicates included
	distinct   int64 // of the measured phase, without them
	duplicated int64
	reordered  int64
	corrupted  int64
	foreign    int64 // from another run
	unstamped  int64 // in topics that others may write to
}

func (i *integrity) add(o integrity) {
	i.received += o.received
	i.distinct += o.distinct
	i.duplicated += o.duplicated
	i.reordered += o.reordered
	i.corrupted += o.corrupted
	i.foreign += o.foreign
	i.unstamped += o.unstamped
}

// place is a partition among the run's topics.
type place struct{ topic, partition int32 }

// receiver is the Arrivals of one consumer. Received is called from the consumer's goroutine;
// the lock of its recorder, taken once a run of arrivals, guards found as well.
type receiver struct {
	rec      *recorder
	stamping stamping
	wall     int64 // unix ns at the clock's origin
	own      bool  // this run has producers, so only their messages count
	shared   bool  // the topics were there before, so others may write to them
	ledgers  []*ledger

	found   integrity
	arrived int64             // all that count, of the warm-up too
	last    map[place][]int64 // by producer: highest sequence number seen, plus one
	// The partition of the last arrival, since runs of arrivals are of one.
	lastPlace place
	lastSeen  []int64
}

func newReceiver(rec *recorder, s stamping, wall int64, ledgers []*ledger) *receiver {
	return &receiver{rec: rec, stamping: s, wall: wall, own: len(ledgers) > 0, ledgers: ledgers,
		last: map[place][]int64{}}
}

// Received takes down a run of arrivals. e2e is received − due, whatever its sign: where clocks
// disagree, messages of the measured phase may seem to arrive before it began.
func (r *receiver) Received(batch []Arrival, received int64) {
	rec := r.rec
	rec.mu.Lock()
	defer rec.mu.Unlock()
	start := rec.frame.start.Load()
	if start == notYet {
		return // what stood in the topics before the run
	}
	c := rec.cell(rec.frame.index(max(received, start)))
	before, arrived := r.found.received, r.arrived
	for i := range batch {
		r.one(c, &batch[i], received, start)
	}
	c.received += r.found.received - before
	rec.tallyArrived(r.arrived-arrived, received)
}

// one takes down one arrival.
func (r *receiver) one(c *cell, a *Arrival, received, start int64) {
	if r.stamping.where == stampNowhere {
		r.arrived++
		if received >= start && (r.own || r.rec.frame.measured(received)) {
			r.found.received++
		}
		return
	}
	stamp, found, ok := r.stamping.read(a)
	switch {
	case !found && r.own && r.shared:
		r.found.unstamped++ // not ours; one of ours whose stamp was destroyed is missed, and counted as lost
	case !ok && r.own:
		r.found.corrupted++
	case !r.own:
		r.stranger(c, stamp, ok, received, start)
	case !r.stamping.mine(stamp) || int64(stamp.Producer) >= int64(len(r.ledgers)):
		r.found.foreign++
	default:
		r.ours(c, a, stamp, received)
	}
}

// stranger takes down an arrival in a run without producers: whoever sent it, it counts, and
// its latency does if it was due since the run began.
func (r *receiver) stranger(c *cell, stamp payload.Stamp, stamped bool, received, start int64) {
	r.arrived++
	if !r.rec.frame.measured(received) {
		return
	}
	r.found.received++
	if due := stamp.Due - r.wall; stamped && due >= start {
		c.at(slotE2E).Record(received - due)
	}
}

// ours takes down an arrival of this run's own message.
func (r *receiver) ours(c *cell, a *Arrival, stamp payload.Stamp, received int64) {
	r.arrived++
	again, late := r.sequence(a, stamp)
	due := stamp.Due - r.wall
	if r.rec.frame.side(due) != within {
		return
	}
	r.found.received++
	c.at(slotE2E).Record(received - due)
	switch {
	case again:
		r.found.duplicated++
	case late:
		r.found.reordered++
		r.found.distinct++
	default:
		r.found.distinct++
	}
}

// sequence follows the order of one producer's messages in one partition. again: it arrived
// before; late: a later one arrived before it.
func (r *receiver) sequence(a *Arrival, s payload.Stamp) (again, late bool) {
	seq := s.Number
	again, _ = r.ledgers[s.Producer].receive(seq)
	if at := (place{a.Topic, a.Partition}); r.lastSeen == nil || at != r.lastPlace {
		seen, ok := r.last[at]
		if !ok {
			seen = make([]int64, len(r.ledgers))
			r.last[at] = seen
		}
		r.lastPlace, r.lastSeen = at, seen
	}
	if seq+1 < r.lastSeen[s.Producer] {
		return again, true
	}
	r.lastSeen[s.Producer] = seq + 1
	return again, false
}

// Request takes down one fetch.
func (r *receiver) Request(kind string, written, read int64) { r.rec.request(kind, written, read) }
