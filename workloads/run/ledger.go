package run

import (
	"math/bits"
	"sync/atomic"
)

const (
	chunkBits = 10
	chunkLen  = 1 << chunkBits
)

// chunk is a window of one producer's sequence: one bit a message acked and one received.
type chunk struct {
	acked    [chunkLen / 64]uint64 // under the pool's lock
	received [chunkLen / 64]atomic.Uint64
}

// whole stands for every chunk all of whose messages were received, so that a run's memory does
// not grow with its length: only chunks with something missing are kept.
var whole = new(chunk)

// ledger knows, for one producer, which messages were acked and which arrived, exactly. It takes two
// bits a message of chunks with something missing, and 8 bytes a chunk of 1024: at 100 million
// messages less than 1 MiB when everything arrives, 26 MiB when something is missing everywhere. The
// load goroutine makes chunks ahead of sending, outcomes mark acked under the pool's lock,
// consumers mark received without any lock, one goroutine retires.
type ledger struct {
	table   atomic.Pointer[[]atomic.Pointer[chunk]]
	frame   *frame
	made    int // chunks made; of the load goroutine
	retired int // chunks before this one are whole; of the retiring goroutine
	// arrived holds a token once something was received; nil unless the producer waits for arrivals.
	// receive writes it, the load goroutine reads it, it is never closed.
	arrived chan struct{}
	// left are messages that are not missed if they do not arrive, in order; under the pool's lock.
	left []leftOut
}

// leftOut are messages from one sequence number on, up to before another, of a transaction that was
// aborted, or of which that is not known.
type leftOut struct {
	from, to int64
	aborted  bool
}

func newLedger(f *frame) *ledger {
	l := &ledger{frame: f}
	l.table.Store(new([]atomic.Pointer[chunk]))
	return l
}

// reach makes room for sequence number seq. Of the load goroutine, before seq is sent.
func (l *ledger) reach(seq int64) {
	need := int(seq>>chunkBits) + 1
	if need <= l.made {
		return
	}
	table := *l.table.Load()
	if need > len(table) {
		grown := make([]atomic.Pointer[chunk], max(need, 2*len(table)))
		for i := range table {
			grown[i].Store(table[i].Load())
		}
		l.table.Store(&grown)
		table = grown
	}
	for ; l.made < need; l.made++ {
		table[l.made].Store(new(chunk))
	}
}

// ack marks the acked messages of the measured phase. Called under the pool's lock.
func (l *ledger) ack(batch []*Message) {
	table := *l.table.Load()
	from, to := l.frame.measuredDue()
	for _, m := range batch {
		if m.Err == nil && m.Due >= from && m.Due < to {
			c := table[m.seq>>chunkBits].Load()
			if c != whole {
				c.acked[m.seq%chunkLen/64] |= 1 << (m.seq % 64)
			}
		}
	}
}

// receive marks one message as received. again is true when it was before; known is false when
// no such message was sent.
func (l *ledger) receive(seq int64) (again, known bool) {
	table := *l.table.Load()
	if seq < 0 || seq>>chunkBits >= int64(len(table)) {
		return false, false
	}
	c := table[seq>>chunkBits].Load()
	switch c {
	case nil:
		return false, false
	case whole:
		return true, true
	}
	bit := uint64(1) << (seq % 64)
	again = c.received[seq%chunkLen/64].Or(bit)&bit != 0
	if l.arrived != nil {
		select {
		case l.arrived <- struct{}{}:
		default: // one is enough
		}
	}
	return again, true
}

// has says whether a message that was sent has been received. Of the load goroutine.
func (l *ledger) has(seq int64) bool {
	c := (*l.table.Load())[seq>>chunkBits].Load()
	return c == whole || c.received[seq%chunkLen/64].Load()&(1<<(seq%64)) != 0
}

// retire lets go of the chunks of which everything arrived, also behind one with something missing.
func (l *ledger) retire() {
	table := *l.table.Load()
	front := true
	for i := l.retired; i < len(table); i++ {
		c := table[i].Load()
		if c == nil {
			return // not sent yet
		}
		if c != whole && c.full() {
			table[i].Store(whole)
			c = whole
		}
		if front = front && c == whole; front {
			l.retired = i + 1
		}
	}
}

func (c *chunk) full() bool {
	if c == nil || c == whole {
		return c == whole
	}
	for i := range c.received {
		if c.received[i].Load() != ^uint64(0) {
			return false
		}
	}
	return true
}

// lost counts the messages that were acked and did not arrive, without those left out. Called under the
// pool's lock.
func (l *ledger) lost() (n int64) {
	table := *l.table.Load()
	for i := range table {
		c := table[i].Load()
		if c == nil || c == whole {
			continue
		}
		for w, acked := range c.acked {
			n += int64(bits.OnesCount64(acked &^ c.received[w].Load()))
		}
	}
	for _, r := range l.left {
		n -= l.count(r, func(acked, received uint64) uint64 { return acked &^ received })
	}
	return n
}

// leaveOut has messages not be missed. Ranges come in order and do not overlap. Called under the pool's
// lock.
func (l *ledger) leaveOut(from, to int64, aborted bool) {
	if n := len(l.left) - 1; n >= 0 && l.left[n].to == from && l.left[n].aborted == aborted {
		l.left[n].to = to // of transactions that follow each other one range is enough
		return
	}
	l.left = append(l.left, leftOut{from, to, aborted})
}

// absent counts the acked messages that were left out and did not arrive, and shown the aborted ones
// that did, of the measured phase. Called under the pool's lock.
func (l *ledger) absent() (absent, shown int64) {
	for _, r := range l.left {
		absent += l.count(r, func(acked, received uint64) uint64 { return acked &^ received })
		if r.aborted {
			shown += l.count(r, func(_, received uint64) uint64 { return received })
		}
	}
	return absent, shown
}

// count adds up the bits of a range that pick picks, of which those of whole chunks are all set but acked
// ones.
func (l *ledger) count(r leftOut, pick func(acked, received uint64) uint64) (n int64) {
	table := *l.table.Load()
	for at := r.from; at < r.to; {
		next := min(r.to, (at/64+1)*64)
		mask := (^uint64(0) << (at % 64))
		if next%64 != 0 {
			mask &= 1<<(next%64) - 1
		}
		acked, received := uint64(0), ^uint64(0)
		if c := table[at>>chunkBits].Load(); c != whole {
			w := at % chunkLen / 64
			acked, received = c.acked[w], c.received[w].Load()
		}
		n += int64(bits.OnesCount64(pick(acked, received) & mask))
		at = next
	}
	return n
}
