// Package verify reads a topic back and finds what should not be: messages lost, duplicated,
// reordered, misplaced or altered.
//
// A Checker is the arithmetic, fed with messages in the order of each partition's log, from
// whichever client read it. Read gets them with kbench's own reader.
package verify

// Record is a message found in a log, by the numbers that its sender gave it.
type Record struct {
	Producer  uint32
	Number    int64 // the producer's own count; rises by 1 with each of its messages
	Partition int32
	Offset    int64
}

// Findings are counts of messages over all producers and partitions.
type Findings struct {
	Read       int64 // in the log, duplicates included
	Distinct   int64 // without them
	Duplicated int64 // beyond the first of their number
	// Reordered came, as the first of their number, after a later message of their producer in
	// their partition. A message that is only there again is no reordering.
	Reordered int64
	Acked     int64 // told to Acked
	Lost      int64 // acked and not in the log
	// Misplaced are acked with an offset at which the log holds something else.
	Misplaced int64
	Unacked   int64 // in the log, once or more, and not acked: failed, or of unknown outcome
	Altered   int64 // told to Altered
}

// Clean says that there is nothing wrong: not lost, duplicated, reordered, misplaced or altered.
func (f Findings) Clean() bool {
	return f.Lost == 0 && f.Duplicated == 0 && f.Reordered == 0 && f.Misplaced == 0 && f.Altered == 0
}

// Checker compares a log with what was sent. Acked and Log may come in any order, but Log in
// the order of each partition's log, and an Acked with an offset before the Log that it is held against. It is for one goroutine at a time.
//
// Its memory is about 3 bytes per 8 messages of producers that number without large gaps, and
// never more than in proportion to the calls; each acknowledged place takes 24 bytes more.
type Checker struct {
	read, acked map[uint32]bits
	last        map[lane]int64    // highest number so far
	places      map[place]message // acknowledged with an offset
	found       Findings
}

// lane is the messages of one producer in one partition.
type lane struct {
	producer  uint32
	partition int32
}

type place struct {
	partition int32
	offset    int64
}

type message struct {
	producer uint32
	number   int64
}

// New makes a Checker.
func New() *Checker {
	return &Checker{read: map[uint32]bits{}, acked: map[uint32]bits{}, last: map[lane]int64{}, places: map[place]message{}}
}

// Acked says that a message was acknowledged. offset is −1 where it is not known.
func (c *Checker) Acked(producer uint32, number int64, partition int32, offset int64) {
	if !of(c.acked, producer).set(number) {
		return
	}
	c.found.Acked++
	if offset >= 0 {
		c.places[place{partition, offset}] = message{producer, number}
	}
}

// Altered counts a message in the log that is not what was sent.
func (c *Checker) Altered() { c.found.Altered++ }

// Log takes in the next message of its partition's log.
func (c *Checker) Log(r Record) {
	c.found.Read++
	at := place{r.Partition, r.Offset}
	if want, ok := c.places[at]; ok && want == (message{r.Producer, r.Number}) {
		delete(c.places, at) // what is left in the end is not where it was said to be
	}
	first := of(c.read, r.Producer).set(r.Number)
	if !first {
		c.found.Duplicated++
		return
	}
	c.found.Distinct++
	l := lane{r.Producer, r.Partition}
	if last, any := c.last[l]; any && r.Number < last {
		c.found.Reordered++
		return
	}
	c.last[l] = r.Number
}

// Findings is what has come out so far. Call it when everything acknowledged was told and the
// logs were read to their ends.
func (c *Checker) Findings() Findings {
	f := c.found
	for producer, acked := range c.acked {
		f.Lost += acked.without(c.read[producer])
	}
	for producer, read := range c.read {
		f.Unacked += read.without(c.acked[producer])
	}
	for _, m := range c.places {
		if c.read[m.producer].has(m.number) { // one that is lost is counted as that
			f.Misplaced++
		}
	}
	return f
}

// of is the bits of a producer, made when first asked for.
func of(all map[uint32]bits, producer uint32) bits {
	b := all[producer]
	if b == nil {
		b = bits{}
		all[producer] = b
	}
	return b
}
