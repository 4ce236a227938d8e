package group

import "cmp"

// Partition is one partition of a topic.
type Partition struct {
	Topic string
	ID    int32
}

// Offset is how far a partition has been dealt with.
type Offset struct {
	Partition
	Tag    int32 // of the assignment under which it was held
	Offset int64 // of the next message to be dealt with
	Epoch  int32 // leader epoch of the last one that was; -1: not known
}

// Book keeps, of the partitions that a member holds, how far the application says it has come, and
// what of that the coordinator has been told. Only what was marked is ever told. The zero value
// is not ready: use NewBook. It is not safe for concurrent use.
//
// A partition is held under a tag, another one each time, so that what is marked under an earlier
// one is recognised: somebody else may have dealt with the partition in between.
type Book struct {
	open  map[Partition]*entry
	ended map[Partition]ended // the last assignment of a partition that is not held any more
}

type entry struct {
	Offset       // marked; Offset.Offset is unmarked until something is
	told   int64 // what the coordinator has; unmarked: not known
}

// unmarked is below every offset.
const unmarked int64 = -1

type ended struct {
	tag  int32
	told int64
}

// NewBook returns a book without partitions.
func NewBook() *Book {
	return &Book{open: map[Partition]*entry{}, ended: map[Partition]ended{}}
}

// Open begins with a partition held under tag, of which the coordinator has the offset told, or
// none (-1). Marks may lie below told: then the log has been cut, and reading began anew.
func (b *Book) Open(p Partition, tag int32, told int64) {
	delete(b.ended, p)
	b.open[p] = &entry{Offset: Offset{p, tag, unmarked, -1}, told: told}
}

// Close ends a partition's assignment. What it was marked with and the coordinator was not told is
// forgotten.
func (b *Book) Close(p Partition) {
	e := b.open[p]
	if e == nil {
		return
	}
	delete(b.open, p)
	b.ended[p] = ended{e.Tag, e.told}
}

// Mark says that everything before o.Offset has been dealt with. An offset below an earlier mark
// changes nothing. False: the partition is not held under o.Tag.
func (b *Book) Mark(o Offset) bool {
	e := b.open[o.Partition]
	if e == nil || e.Tag != o.Tag {
		return false
	}
	if o.Offset > e.Offset.Offset {
		e.Offset = o
	}
	return true
}

// Rewind lets marks of a partition be lower than before, because its log was cut while it was held
// under tag.
func (b *Book) Rewind(p Partition, tag int32) {
	if e := b.open[p]; e != nil && e.Tag == tag {
		e.Offset.Offset, e.Epoch = unmarked, -1
	}
}

func (e *entry) due() bool { return e.Offset.Offset != unmarked && e.Offset.Offset != e.told }

// Due appends what the coordinator has to be told: of the partitions for which want holds, or of
// all when it is nil.
func (b *Book) Due(to []Offset, want func(Partition) bool) []Offset {
	for p, e := range b.open {
		if e.due() && (want == nil || want(p)) {
			to = append(to, e.Offset)
		}
	}
	return to
}

// Told says that the coordinator has taken an offset that Due gave, in whatever state the partition
// is by now.
func (b *Book) Told(o Offset) {
	if e := b.open[o.Partition]; e != nil && e.Tag == o.Tag {
		e.told = o.Offset
		return
	}
	if e, known := b.ended[o.Partition]; known && e.tag == o.Tag {
		e.told = max(e.told, o.Offset)
		b.ended[o.Partition] = e
	}
}

// Fate is what has become of a mark.
type Fate int8

// The fates.
const (
	Waiting Fate = iota // the coordinator has not been told
	Taken               // it has been told, of this offset or a later one
	Stale               // the assignment ended before it was told: who holds the partition next gets the messages again
)

// Fate is that of the mark o.
func (b *Book) Fate(o Offset) Fate {
	if e := b.open[o.Partition]; e != nil && e.Tag == o.Tag {
		if cut := e.due() && e.told > e.Offset.Offset; cut || e.told < o.Offset {
			return Waiting
		}
		return Taken
	}
	if past, known := b.ended[o.Partition]; known && past.tag == o.Tag && past.told >= o.Offset {
		return Taken
	}
	return Stale
}

// Held lists the partitions held, in no order.
func (b *Book) Held() (out []Partition) {
	for p := range b.open {
		out = append(out, p)
	}
	return out
}

// Compare orders partitions by topic and number.
func (p Partition) Compare(q Partition) int {
	return cmp.Or(cmp.Compare(p.Topic, q.Topic), cmp.Compare(p.ID, q.ID))
}
