package fetch

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kbench/kbench/client/internal/wire"
)

// Partition is one partition of a Session, which it joins once and may leave once. Its owner fills in
// Topic, TopicID and Asked.Partition before Join and leaves them alone then; the rest of Asked and
// Tag may change at any time, and are told by Changed.
type Partition struct {
	Topic   string
	TopicID [16]byte // zero: unknown
	// Asked is what is wanted, Tag the owner's mark of it.
	Asked Asked
	Tag   uint32

	sent    Asked // what the broker was asked for last
	sentTag uint32
	round   int64 // the request of which the answer was taken last
	known   bool  // the broker was asked for it
	changed bool  // it is in Session.changed: to be asked for as it is now
	at      int   // its place in Session.parts
}

// Sent is what the broker was asked for, which its answers are about, with its tag.
func (p *Partition) Sent() (Asked, uint32) { return p.sent, p.sentTag }

// Session is the client's side of a fetch session with one broker (KIP-227): the broker keeps the
// partitions that are fetched, requests name only those that changed, and answers only those with
// news. Where a broker has no session to give, every request names all of them.
//
// One request is under way at a time: Next, then Answered or Lost. Partitions may join, change and
// leave meanwhile; that goes into the next request. The zero value is ready. Not safe for
// concurrent use.
type Session struct {
	id      int32 // as the broker gave it; 0: none
	epoch   int32 // of the next request in the session
	restart bool  // the next request starts a session, and ends the one there is
	full    bool  // the request under way names all
	round   int64 // the request under way
	byID    bool  // requests name topics by id
	rack    string

	parts    []*Partition
	sorted   bool
	nameOnly int // parts whose topic id is not known
	changed  []*Partition
	gone     map[place]struct{} // asked for and left: to be forgotten
	turn     int
	first    *Partition // goes before all in the next request
}

// place names a partition for the broker.
type place struct {
	topic     string
	id        [16]byte
	partition int32
}

func (p *Partition) place() place { return place{p.Topic, p.TopicID, p.Asked.Partition} }

// Join adds a partition.
func (s *Session) Join(p *Partition) {
	p.at = len(s.parts)
	s.parts = append(s.parts, p)
	s.sorted = false
	if p.TopicID == [16]byte{} {
		s.nameOnly++
	}
	if _, pending := s.gone[p.place()]; pending {
		// In one request it cannot be forgotten and asked for, and the broker would not say again
		// what it has said of the one that left.
		s.restart = true
	}
	s.Changed(p)
}

// Leave takes a partition out: the broker forgets it with the next request, and no answer about it
// is taken any more.
func (s *Session) Leave(p *Partition) {
	last := s.parts[len(s.parts)-1]
	s.parts[p.at], last.at = last, p.at
	s.parts = s.parts[:len(s.parts)-1]
	s.sorted = false
	if p.TopicID == [16]byte{} {
		s.nameOnly--
	}
	if p.known {
		if s.gone == nil {
			s.gone = map[place]struct{}{}
		}
		s.gone[p.place()] = struct{}{}
	}
	if s.first == p {
		s.first = nil
	}
	p.known, p.changed = false, false
}

// Changed says that Asked is not what it was.
func (s *Session) Changed(p *Partition) {
	if !p.changed {
		p.changed = true
		s.changed = append(s.changed, p)
	}
}

// First makes the next request name all partitions, and this one before the others: brokers give
// the first ones what there is room for.
func (s *Session) First(p *Partition) { s.first, s.restart = p, true }

// The versions of Fetch where something changes for sessions.
const (
	firstWithSessions = 7
	lastWithNames     = FirstByID - 1
)

// FirstByID is the first version of Fetch that names topics by id.
const FirstByID = 13

// Next fills in the session's part of the next request (not Rack, which it looks at), given the
// newest version that may be used, and returns the version to be used: one that names topics by
// name while not all ids are known.
func (s *Session) Next(req *Request, newest int16) int16 {
	if s.nameOnly > 0 {
		newest = min(newest, lastWithNames)
	}
	if byID := newest > lastWithNames; byID != s.byID || req.Rack != s.rack {
		s.byID, s.rack, s.restart = byID, req.Rack, true
	}
	s.round++
	req.Topics, req.Forgotten = req.Topics[:0], req.Forgotten[:0]
	s.full = true
	switch {
	case newest < firstWithSessions:
		s.id = 0
		req.Session, req.Epoch = NoSession, SessionEpoch
		s.askAll(req)
	case s.id == 0 || s.restart:
		req.Session, req.Epoch = s.id, 0
		s.askAll(req)
	default:
		s.full = false
		req.Session, req.Epoch = s.id, s.epoch
		s.askChanged(req)
	}
	return newest
}

// askAll names every partition. They take turns in being first.
func (s *Session) askAll(req *Request) {
	s.sort()
	s.turn++
	from := 0
	if s.first != nil {
		from = s.first.at
	} else if len(s.parts) > 0 {
		from = s.turn % len(s.parts)
	}
	for i := range s.parts {
		s.ask(req, s.parts[(from+i)%len(s.parts)])
	}
	s.restart, s.first = false, nil
	s.changed = s.changed[:0]
	clear(s.gone)
}

// askChanged names what has changed, and what is to be forgotten.
func (s *Session) askChanged(req *Request) {
	for i, p := range s.changed {
		if p.changed { // else it has left
			s.ask(req, p)
		}
		s.changed[i] = nil
	}
	s.changed = s.changed[:0]
	if len(s.gone) == 0 {
		return
	}
	for _, p := range slices.SortedFunc(maps.Keys(s.gone), func(a, b place) int {
		return cmp.Or(strings.Compare(a.topic, b.topic), bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.partition, b.partition))
	}) {
		req.Forgotten = addTo(req.Forgotten, p.topic, p.id, Asked{Partition: p.partition})
	}
	clear(s.gone)
}

func (s *Session) ask(req *Request, p *Partition) {
	p.sent, p.sentTag = p.Asked, p.Tag
	p.known, p.changed = true, false
	req.Topics = addTo(req.Topics, p.Topic, p.TopicID, p.Asked)
}

func (s *Session) sort() {
	if s.sorted {
		return
	}
	slices.SortFunc(s.parts, func(a, b *Partition) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Asked.Partition, b.Asked.Partition))
	})
	for i, p := range s.parts {
		p.at = i
	}
	s.sorted = true
}

// Verdict is what an answer as a whole means.
type Verdict int8

// The verdicts.
const (
	// Good: what it says of partitions counts.
	Good Verdict = iota
	// Again: the broker does not have the session any more. Nothing is wrong; the next request
	// starts another one.
	Again
	// Bad: the request failed.
	Bad
)

// Answered takes in the error code of an answer, and the session that it names.
func (s *Session) Answered(code int16, id int32) Verdict {
	switch code {
	case 0:
		s.advance(id)
		return Good
	case wire.ErrFetchSessionIDNotFound.Code:
		s.id = 0
	case wire.ErrInvalidFetchSessionEpoch.Code, wire.ErrFetchSessionTopicID.Code:
	default:
		s.restart = true
		return Bad
	}
	s.restart = true
	if s.full {
		s.id = 0 // a broker that refuses a session which it was not asked for
		return Bad
	}
	return Again
}

func (s *Session) advance(id int32) {
	switch {
	case s.full:
		s.id, s.epoch = id, 1
	case id != s.id: // 0, as a rule: the broker has ended the session
		s.id = 0
	case s.epoch == math.MaxInt32:
		s.epoch = 1
	default:
		s.epoch++
	}
}

// Lost says that the answer did not come, or made no sense: what the broker has is not known.
func (s *Session) Lost() { s.restart = true }

// End says that nothing is fetched any more. It returns the session that the broker may be told
// of, by FinalEpoch; 0: there is none.
func (s *Session) End() (id int32) {
	id, s.id = s.id, 0
	return id
}

// Incremental says that the request under way names only what changed: partitions that its answer
// leaves out have no news.
func (s *Session) Incremental() bool { return !s.full }

// Takes says whether an answer about a partition counts: it was asked for, and the answer has
// not spoken of it before.
func (s *Session) Takes(p *Partition) bool {
	if !p.known || p.round == s.round {
		return false
	}
	p.round = s.round
	return true
}
