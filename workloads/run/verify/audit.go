package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/payload"
	"github.com/kbench/kbench/workloads/run"
)

// Audit looks at the messages of a topic for what their stamps tell: lost, duplicated, reordered,
// misplaced and corrupted ones. It needs nothing but the topic: messages are numbered without gaps by
// their producer, so that a number that is missing while a later one is there was lost, or never
// written: a message that failed leaves a gap as well. What follows the last message of a producer
// cannot be missed.
//
// It is for one goroutine. It takes less than a byte per 10 messages of producers with nothing
// missing, and two bits a message where something is missing everywhere. Numbers that lie far apart,
// which no producer of kbench's writes, take some hundred bytes each, within MaxBytes.
type Audit struct {
	// By is the partitioner that places keys; nil: placing is not looked at.
	By client.Partitioner
	// Compacted says that messages may be missing since compaction took them.
	Compacted bool
	// MaxBytes is the most that remembering which numbers are there may take; 0: DefaultMaxBytes.
	MaxBytes int64

	spans    map[int32]Span
	parts    map[int32]*results.VerifiedPartition
	senders  map[sender]*account
	examples examples
	bytes    int64 // that the senders' numbers take
	// The account of the last message, since neighbours are mostly of one producer.
	last        sender
	lastAccount *account
}

// sender is one producer of one run.
type sender struct{ tag, producer uint32 }

// account is what is known of a sender.
type account struct {
	results.Findings
	seen    bits
	highest int64
	// behind is the highest number so far by partition, plus one; 0: none.
	behind []int64
	// cut is the first number that is there behind what was removed, by partition.
	cut               map[int32]int64
	firstDue, lastDue int64
}

// NewAudit makes an Audit of a topic whose partitions are given.
func NewAudit(spans map[int32]Span) *Audit {
	a := &Audit{spans: spans, parts: map[int32]*results.VerifiedPartition{}, senders: map[sender]*account{}}
	for p, s := range spans {
		a.parts[p] = &results.VerifiedPartition{Partition: p, First: s.From, End: s.To}
	}
	return a
}

// Bounds of what a topic can make an Audit keep: a topic may hold what anybody wrote.
const (
	mostSenders = 1 << 20
	mostLanes   = 1 << 27 // a sender in a partition
	mostNumber  = 1 << 62
)

// DefaultMaxBytes is enough for 3 000 million messages with gaps everywhere, and 10 000 million
// without.
const DefaultMaxBytes = 512 << 20

// MemoryError ends an audit: what was found until this message stands, and no number can be called
// missing any more.
type MemoryError struct {
	MaxBytes  int64
	Partition int32
	Offset    int64
	Producers int
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("verify: partition %d, offset %d: the numbers of %d producers' messages lie so far apart that remembering them takes more than %d bytes",
		e.Partition, e.Offset, e.Producers, e.MaxBytes)
}

// Message takes in the next message of its partition. The error ends the audit: the topic holds more
// producers than can be told apart, or, with a *MemoryError, more numbers than may be remembered.
func (a *Audit) Message(m *client.Message) error {
	p := a.parts[m.Partition]
	if p == nil {
		return fmt.Errorf("verify: partition %d was not among those to be read", m.Partition)
	}
	p.Messages++
	stamp, found, intact := payload.Find(headerOf(m.Headers), m.Key, m.Value)
	at := results.FindingExample{Partition: m.Partition, Offset: m.Offset}
	switch {
	case !found:
		p.Unstamped++
		a.examples.add("unstamped", at, "no stamp")
		return nil
	case !intact || stamp.Number < 0 || stamp.Number >= mostNumber:
		p.Corrupted++
		a.examples.add("corrupted", at, "the checksum is not that of stamp, key and value")
		return nil
	}
	who := sender{stamp.Tag(), stamp.Producer}
	at.Run, at.Producer, at.Number = tagText(who.tag), who.producer, stamp.Number
	acc, err := a.account(who)
	if err != nil {
		return err
	}
	a.place(p, acc, m, at)
	a.order(p, acc, stamp, at)
	if most := cmp.Or(a.MaxBytes, DefaultMaxBytes); a.bytes > most {
		return &MemoryError{MaxBytes: most, Partition: m.Partition, Offset: m.Offset, Producers: len(a.senders)}
	}
	return nil
}

func headerOf(headers []client.Header) []byte {
	for i := range headers {
		if headers[i].Key == run.HeaderName {
			return headers[i].Value
		}
	}
	return nil
}

func tagText(tag uint32) string { return fmt.Sprintf("%08x", tag) }

func (a *Audit) account(who sender) (*account, error) {
	if a.lastAccount != nil && who == a.last {
		return a.lastAccount, nil
	}
	acc := a.senders[who]
	if acc == nil {
		if n := len(a.senders) + 1; n > mostSenders || n*len(a.parts) > mostLanes {
			return nil, fmt.Errorf("verify: messages of more than %d producers: too many to tell apart", n-1)
		}
		acc = &account{seen: bits{}}
		a.senders[who] = acc
	}
	a.last, a.lastAccount = who, acc
	return acc, nil
}

// place looks at where a message with a key is.
func (a *Audit) place(p *results.VerifiedPartition, acc *account, m *client.Message, at results.FindingExample) {
	if a.By == nil || m.Key == nil {
		return
	}
	msg := client.ProducerMessage{Topic: m.Topic, Key: m.Key, Value: m.Value}
	if !a.By.RequiresConsistency(&msg) {
		return
	}
	want, err := a.By.Partition(&msg, int32(len(a.spans)))
	if err != nil || want == m.Partition {
		return
	}
	p.Misplaced++
	acc.Misplaced++
	a.examples.add("misplaced", at, fmt.Sprintf("its key belongs to partition %d", want))
}

// order looks at the number of a message.
func (a *Audit) order(p *results.VerifiedPartition, acc *account, stamp payload.Stamp, at results.FindingExample) {
	acc.Messages++
	acc.due(stamp.Due)
	if acc.behind == nil {
		acc.behind = make([]int64, len(a.parts))
	}
	i := int(p.Partition)
	for i >= len(acc.behind) { // partitions are numbered from 0 without gaps; a hostile cluster's may not be
		if len(acc.behind) > mostLanes/len(a.senders) {
			return
		}
		acc.behind = append(acc.behind, 0)
	}
	if a.spans[p.Partition].Cut() {
		acc.resume(p.Partition, stamp.Number)
	}
	fresh, grown := acc.seen.put(stamp.Number)
	a.bytes += grown
	if !fresh {
		acc.Duplicated++
		p.Duplicated++
		a.examples.add("duplicated", at, "was there before")
		return
	}
	acc.Distinct++
	p.Distinct++
	acc.highest = max(acc.highest, stamp.Number)
	if acc.behind[i] > stamp.Number+1 {
		acc.Reordered++
		p.Reordered++
		a.examples.add("reordered", at, fmt.Sprintf("after number %d", acc.behind[i]-1))
		return
	}
	acc.behind[i] = stamp.Number + 1
}

// resume notes the first number in a partition behind what was removed from it.
func (acc *account) resume(partition int32, number int64) {
	if _, known := acc.cut[partition]; known {
		return
	}
	if acc.cut == nil {
		acc.cut = map[int32]int64{}
	}
	acc.cut[partition] = number
}

func (acc *account) due(at int64) {
	if acc.firstDue == 0 || at < acc.firstDue {
		acc.firstDue = at
	}
	acc.lastDue = max(acc.lastDue, at)
}

// Unreadable notes that a partition could not be read any further than offset.
func (a *Audit) Unreadable(partition int32, offset int64, err error) {
	p := a.parts[partition]
	p.Error = err.Error()
	p.Unread = max(0, p.End-max(offset, p.First))
	a.examples.add("unread", results.FindingExample{Partition: partition, Offset: offset}, p.Error)
}

// Removed notes that retention took something away before it was read.
func (a *Audit) Removed(partition int32) {
	s := a.spans[partition]
	s.cut = true
	a.spans[partition] = s
	for _, acc := range a.senders { // what is seen next is behind the gap
		delete(acc.cut, partition)
	}
}

// floor is the number from which on what is missing is lost: what is before it retention may have
// taken away, from a partition whose head is gone.
func (a *Audit) floor(acc *account) (n int64) {
	if a.Compacted {
		return acc.highest + 1
	}
	for p, s := range a.spans {
		if !s.Cut() {
			continue
		}
		first, there := acc.cut[p]
		if !there {
			return acc.highest + 1 // all that it wrote there may be gone
		}
		n = max(n, first)
	}
	return n
}

// end is the number from which on nothing is missed: that behind the highest, or what may be in the part
// of a partition that could not be read.
func (a *Audit) end(acc *account) int64 {
	n := acc.highest + 1
	for i, p := range a.parts {
		if p.Unread == 0 {
			continue
		}
		if int(i) >= len(acc.behind) {
			return 0
		}
		n = min(n, acc.behind[i])
	}
	return n
}

// missing counts the numbers of a sender that are nowhere, and lists the first of those that are lost.
func (a *Audit) missing(who sender, acc *account) {
	end := a.end(acc)
	floor := min(a.floor(acc), end)
	below := acc.seen.below(floor)
	acc.Removed = floor - below
	acc.Lost = end - floor - (acc.seen.below(end) - below)
	if acc.Lost == 0 || a.examples.full("lost") {
		return
	}
	for _, gap := range acc.seen.gaps(floor, end-1, mostExamples) {
		text := "nowhere, and number " + fmt.Sprint(gap.to+1) + " is there"
		e := results.FindingExample{Run: tagText(who.tag), Producer: who.producer, Number: gap.from, To: gap.to, Partition: -1, Offset: -1}
		if gap.to == gap.from {
			e.To = 0
		}
		a.examples.add("lost", e, text)
	}
}

// Report sums up. complete says that every partition was read to its end, which is what it takes to
// call a message lost.
func (a *Audit) Report(complete bool) *results.Verification {
	v := &results.Verification{Schema: results.VerificationSchema, Complete: complete, Notes: []string{}, Thresholds: []results.Threshold{}}
	who := slices.SortedFunc(maps.Keys(a.senders), sender.compare)
	if complete {
		for _, s := range who {
			a.missing(s, a.senders[s])
		}
	}
	v.Runs = a.runs(who)
	v.Producers = a.worst(who)
	v.Partitions = []results.VerifiedPartition{}
	for _, p := range a.parts {
		p.MisplacedUnchecked = a.By == nil
		v.Partitions = append(v.Partitions, *p)
		add(&v.Total, p.Findings)
	}
	slices.SortFunc(v.Partitions, func(a, b results.VerifiedPartition) int { return int(a.Partition) - int(b.Partition) })
	for _, r := range v.Runs {
		v.Total.Lost += r.Lost
		v.Total.Removed += r.Removed
	}
	v.Total.MisplacedUnchecked = a.By == nil
	v.Examples = a.examples.list()
	return v
}

// runs sums up by run.
func (a *Audit) runs(who []sender) []results.VerifiedRun {
	list := []results.VerifiedRun{}
	var due []int64
	for _, s := range who { // those of a run are neighbours
		acc := a.senders[s]
		tag := tagText(s.tag)
		n := len(list) - 1
		if n < 0 || list[n].Tag != tag {
			list, due = append(list, results.VerifiedRun{Tag: tag}), append(due, acc.firstDue)
			n++
		}
		r := &list[n]
		r.Producers++
		add(&r.Findings, acc.Findings)
		r.MisplacedUnchecked = a.By == nil
		due[n] = min(due[n], acc.firstDue)
		r.FirstDue = time.Unix(0, due[n]).UTC()
		if last := time.Unix(0, acc.lastDue).UTC(); last.After(r.LastDue) {
			r.LastDue = last
		}
	}
	slices.SortStableFunc(list, func(a, b results.VerifiedRun) int { return a.FirstDue.Compare(b.FirstDue) })
	return list
}
