package verify

// Deliveries compares what the members of a consumer group were given with what was produced to one
// topic: at least once each, and in order for as long as a member holds a partition in one
// generation of the group. It is for one goroutine at a time.
//
// Its memory grows with the messages of one producer as a Checker's does, and with members and
// generations.
type Deliveries struct {
	given    map[uint32]bits
	expected map[uint32]bits
	last     map[holding]int64 // the highest offset so far
	found    GroupFindings
}

// Delivered is a message that a member was given.
type Delivered struct {
	// Member and Generation say who got it, and in which generation of the group; a member that is
	// started again is another one.
	Member, Generation int
	Record
}

// GroupFindings are counts of messages over all members.
type GroupFindings struct {
	Given    int64 // to members, repetitions included
	Distinct int64 // without them
	Repeated int64 // beyond the first of their number: at least once is not exactly once
	// Reordered were given to a member after one with the same or a later offset, of the same
	// partition in the same generation.
	Reordered  int64
	Expected   int64
	Missing    int64 // expected and given to nobody
	Unexpected int64 // given, once or more, and not expected
}

// holding is a partition in the hands of a member, in one generation.
type holding struct {
	member, generation int
	partition          int32
}

// NewDeliveries makes a Deliveries.
func NewDeliveries() *Deliveries {
	return &Deliveries{given: map[uint32]bits{}, expected: map[uint32]bits{}, last: map[holding]int64{}}
}

// Expect says that a message is to be given to some member.
func (d *Deliveries) Expect(producer uint32, number int64) {
	if of(d.expected, producer).set(number) {
		d.found.Expected++
	}
}

// Give takes in a message, in the order in which its member got it. Members may be mixed.
func (d *Deliveries) Give(m Delivered) {
	d.found.Given++
	h := holding{m.Member, m.Generation, m.Partition}
	if last, any := d.last[h]; any && m.Offset <= last {
		d.found.Reordered++
	} else {
		d.last[h] = m.Offset
	}
	if of(d.given, m.Producer).set(m.Number) {
		d.found.Distinct++
	} else {
		d.found.Repeated++
	}
}

// Findings is what has come out so far. It looks at everything that was expected: ask once in a
// while.
func (d *Deliveries) Findings() GroupFindings {
	f := d.found
	for producer, expected := range d.expected {
		f.Missing += expected.without(d.given[producer])
	}
	for producer, given := range d.given {
		f.Unexpected += given.without(d.expected[producer])
	}
	return f
}

// Given says whether some member was given a message.
func (d *Deliveries) Given(producer uint32, number int64) bool { return d.given[producer].has(number) }
