package fetch_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/wire"
)

// named is a partition as a broker knows it.
type named struct {
	topic     string
	id        [16]byte
	partition int32
}

// modelBroker is a broker's side of KIP-227, as Kafka's FetchManager has it.
type modelBroker struct {
	none   bool // it has no session to give
	nextID int32
	id     int32 // of the one session; 0: none
	epoch  int32
	held   map[named]fetch.Asked
}

// take applies a request, and returns what the request fetches, with the answer's error and session.
func (b *modelBroker) take(req *fetch.Request, version int16) (fetches map[named]fetch.Asked, code int16, id int32) {
	asked := map[named]fetch.Asked{}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			asked[nameOf(t, p, version)] = p
		}
	}
	if req.Epoch <= 0 {
		if req.Session != 0 && req.Session == b.id {
			b.id, b.held = 0, nil
		}
		if req.Epoch < 0 || b.none {
			return asked, 0, 0
		}
		b.nextID++
		b.id, b.epoch, b.held = b.nextID, 1, asked
		return asked, 0, b.id
	}
	switch {
	case req.Session != b.id:
		return nil, wire.ErrFetchSessionIDNotFound.Code, 0
	case req.Epoch != b.epoch:
		return nil, wire.ErrInvalidFetchSessionEpoch.Code, 0
	}
	for at, p := range asked {
		b.held[at] = p
	}
	for _, t := range req.Forgotten {
		for _, p := range t.Partitions {
			delete(b.held, nameOf(t, p, version))
		}
	}
	b.epoch++
	return b.held, 0, b.id
}

func nameOf(t fetch.Topic, p fetch.Asked, version int16) named {
	if version < fetch.FirstByID {
		return named{topic: t.Name, partition: p.Partition}
	}
	return named{id: t.ID, partition: p.Partition}
}

// sides are a session and the broker that it is with.
type sides struct {
	session fetch.Session
	broker  modelBroker
	parts   []*fetch.Partition
	request fetch.Request
	version int16
	newest  int16
}

func newPartition(topic, partition int, identified bool) *fetch.Partition {
	m := &fetch.Partition{Topic: fmt.Sprintf("t%d", topic), Asked: fetch.Asked{Partition: int32(partition)}}
	if identified {
		m.TopicID[0] = byte(topic + 1)
	}
	return m
}

// want is what the broker should have.
func (s *sides) want() map[named]fetch.Asked {
	all := map[named]fetch.Asked{}
	for _, m := range s.parts {
		n := named{topic: m.Topic, partition: m.Asked.Partition}
		if s.version >= fetch.FirstByID {
			n.topic, n.id = "", m.TopicID
		}
		all[n] = m.Asked
	}
	return all
}

func (s *sides) next() { s.version = s.session.Next(&s.request, s.newest) }

// Whatever joins, changes, leaves, is lost, ended or refused: each request makes the broker fetch
// exactly what is wanted, or the broker refuses it and the next one does.
func TestSessionAgreesWithBroker(t *testing.T) { rapid.Check(t, sessionAgrees) }

func FuzzSession(f *testing.F) {
	f.Add([]byte("fetch, join, leave, lost: whatever these bytes come to"))
	f.Fuzz(rapid.MakeFuzz(sessionAgrees))
}

func sessionAgrees(t *rapid.T) {
	s := &sides{newest: rapid.SampledFrom([]int16{4, 7, 12, 13, 18}).Draw(t, "version")}
	s.broker.none = rapid.Bool().Draw(t, "none")
	refused := 0
	t.Repeat(map[string]func(*rapid.T){
		"join":   func(t *rapid.T) { s.join(t) },
		"leave":  func(t *rapid.T) { s.leave(t) },
		"change": func(t *rapid.T) { s.change(t) },
		"first": func(t *rapid.T) {
			if len(s.parts) > 0 {
				s.session.First(rapid.SampledFrom(s.parts).Draw(t, "first"))
			}
		},
		"rack":     func(t *rapid.T) { s.request.Rack = rapid.SampledFrom([]string{"", "r"}).Draw(t, "rack") },
		"evicted":  func(*rapid.T) { s.broker.id, s.broker.held = 0, nil },
		"sessions": func(t *rapid.T) { s.broker.none = rapid.Bool().Draw(t, "none") },
		"lost before the broker got it": func(*rapid.T) {
			s.next()
			s.session.Lost()
		},
		"answer lost": func(*rapid.T) {
			s.next()
			s.broker.take(&s.request, s.version)
			s.session.Lost()
		},
		"fetch": func(t *rapid.T) {
			s.next()
			got, code, id := s.broker.take(&s.request, s.version)
			want := s.want()
			if rapid.Bool().Draw(t, "meanwhile") {
				s.change(t)
				s.leave(t)
				s.join(t)
			}
			verdict := s.session.Answered(code, id)
			if code != 0 {
				require.Equal(t, fetch.Again, verdict)
				refused++
				require.LessOrEqual(t, refused, 1, "not twice in a row")
				return
			}
			refused = 0
			require.Equal(t, fetch.Good, verdict)
			require.Equal(t, want, got)
		},
	})
}

func (s *sides) join(t *rapid.T) {
	identified := rapid.IntRange(0, 9).Draw(t, "identified") > 0
	m := newPartition(rapid.IntRange(0, 2).Draw(t, "topic"), rapid.IntRange(0, 3).Draw(t, "partition"), identified)
	for _, other := range s.parts {
		if other.Topic == m.Topic && other.Asked.Partition == m.Asked.Partition {
			return
		}
	}
	s.parts = append(s.parts, m)
	s.session.Join(m)
}

func (s *sides) leave(t *rapid.T) {
	if len(s.parts) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.parts)-1).Draw(t, "leaves")
	s.session.Leave(s.parts[i])
	s.parts = append(s.parts[:i:i], s.parts[i+1:]...)
}

func (s *sides) change(t *rapid.T) {
	if len(s.parts) == 0 {
		return
	}
	m := rapid.SampledFrom(s.parts).Draw(t, "changes")
	m.Asked.Offset = rapid.Int64Range(0, 5).Draw(t, "offset")
	m.Tag++
	s.session.Changed(m)
}

func (s *sides) fetch(t *testing.T) {
	s.next()
	_, code, id := s.broker.take(&s.request, s.version)
	require.Equal(t, fetch.Good, s.session.Answered(code, id))
}

// 1 000 partitions that stand still are named once, and then no more.
func TestSessionNamesOnlyWhatChanged(t *testing.T) {
	s := &sides{newest: 18}
	for p := range 1000 {
		m := newPartition(p%3, p, true)
		s.parts = append(s.parts, m)
		s.session.Join(m)
	}
	s.fetch(t)
	require.Greater(t, len(s.request.Append(nil, s.version)), 30_000)
	s.fetch(t)
	require.Less(t, len(s.request.Append(nil, s.version)), 40, "nothing changed")
	require.True(t, s.session.Incremental())
	m := s.parts[17]
	m.Asked.Offset = 5
	s.session.Changed(m)
	s.session.Changed(m)
	s.session.Leave(s.parts[18])
	s.fetch(t)
	require.Equal(t, []fetch.Topic{{Name: m.Topic, ID: m.TopicID, Partitions: []fetch.Asked{m.Asked}}}, s.request.Topics)
	require.Len(t, s.request.Forgotten, 1)
	require.Less(t, len(s.request.Append(nil, s.version)), 120)
	buf := s.request.Append(nil, s.version)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.session.Changed(m)
		s.version = s.session.Next(&s.request, 18)
		buf = s.request.Append(buf[:0], s.version)
		s.session.Answered(0, 1)
	}))
}

// Whoever left and came back before the broker was told joins by a new session: the broker would
// not say again what it has said of the one that left.
func TestSessionOfWhoComesBackAtOnce(t *testing.T) {
	s := &sides{newest: 12}
	m := newPartition(0, 0, false)
	s.session.Join(m)
	s.fetch(t)
	s.session.Leave(m)
	require.False(t, s.session.Takes(m), "no answer about it counts")
	again := newPartition(0, 0, false)
	s.session.Join(again)
	s.parts = []*fetch.Partition{again}
	s.fetch(t)
	require.Zero(t, s.request.Epoch)
	require.NotZero(t, s.request.Session, "the session before is ended")
	require.Equal(t, s.want(), s.broker.held)
}

// The rack is part of what a session is about: who names another one starts another session.
func TestSessionOfAnotherRack(t *testing.T) {
	s := &sides{newest: 18}
	s.session.Join(newPartition(0, 0, true))
	s.fetch(t)
	s.fetch(t)
	require.True(t, s.session.Incremental())
	s.request.Rack = "there"
	s.fetch(t)
	require.False(t, s.session.Incremental())
	require.Len(t, s.request.Topics, 1)
	s.fetch(t)
	require.True(t, s.session.Incremental())
}

func TestSessionTakes(t *testing.T) {
	s := &sides{newest: 12}
	old, late := newPartition(0, 0, false), newPartition(0, 1, false)
	s.session.Join(old)
	s.next()
	s.session.Join(late)
	require.True(t, s.session.Takes(old))
	require.False(t, s.session.Takes(old), "an answer speaks of it once")
	require.False(t, s.session.Takes(late), "it was not asked for")
	old.Asked.Offset, old.Tag = 9, 9
	s.session.Changed(old)
	sent, tag := old.Sent()
	require.Zero(t, sent.Offset, "the answer under way is about what was asked before")
	require.Zero(t, tag)
	s.session.Answered(0, 5)
	s.next()
	require.True(t, s.session.Takes(old))
	require.True(t, s.session.Takes(late))
	sent, tag = old.Sent()
	require.EqualValues(t, 9, sent.Offset)
	require.EqualValues(t, 9, tag)
}

func TestSessionVerdicts(t *testing.T) {
	rows := []struct {
		what    string
		code    int16
		id      int32
		verdict fetch.Verdict
		session int32 // that the next request names
		epoch   int32
	}{
		{"the session goes on", 0, 7, fetch.Good, 7, 2},
		{"the broker ended it", 0, 0, fetch.Good, 0, 0},
		{"the broker speaks of another one", 0, 8, fetch.Good, 0, 0},
		{"the broker has it no more", wire.ErrFetchSessionIDNotFound.Code, 0, fetch.Again, 0, 0},
		{"out of step: ended, and another one", wire.ErrInvalidFetchSessionEpoch.Code, 0, fetch.Again, 7, 0},
		{"names and ids mixed: ended, and another one", wire.ErrFetchSessionTopicID.Code, 0, fetch.Again, 7, 0},
		{"something else is wrong", wire.ErrUnknownServer.Code, 0, fetch.Bad, 7, 0},
	}
	for _, row := range rows {
		s := &sides{newest: 12}
		s.session.Join(newPartition(0, 0, false))
		s.next()
		require.Equal(t, fetch.Good, s.session.Answered(0, 7))
		s.next()
		require.EqualValues(t, 1, s.request.Epoch)
		require.Equal(t, row.verdict, s.session.Answered(row.code, row.id), row.what)
		s.next()
		require.Equal(t, [2]int32{row.session, row.epoch}, [2]int32{s.request.Session, s.request.Epoch}, row.what)
		if row.epoch == 0 {
			require.Len(t, s.request.Topics, 1, "all partitions are named again")
		}
	}
	var s sides
	s.newest = 12
	s.session.Join(newPartition(0, 0, false))
	s.next()
	require.Equal(t, fetch.Bad, s.session.Answered(wire.ErrFetchSessionIDNotFound.Code, 0), "of a request that named no session")
}

func TestSessionEpochWraps(t *testing.T) {
	var s fetch.Session
	var req fetch.Request
	s.Join(newPartition(0, 0, false))
	s.Next(&req, 12)
	s.Answered(0, 7)
	s.SetEpoch(math.MaxInt32)
	s.Next(&req, 12)
	require.EqualValues(t, math.MaxInt32, req.Epoch)
	s.Answered(0, 7)
	s.Next(&req, 12)
	require.EqualValues(t, 1, req.Epoch)
}

// Without sessions partitions take turns in being first, unless one must be.
func TestSessionTurns(t *testing.T) {
	s := &sides{newest: 6}
	for p := range 3 {
		m := newPartition(0, p, false)
		s.parts = append(s.parts, m)
		s.session.Join(m)
	}
	first := func() int32 {
		s.fetch(t)
		require.Equal(t, [2]int32{fetch.NoSession, fetch.SessionEpoch}, [2]int32{s.request.Session, s.request.Epoch})
		return s.request.Topics[0].Partitions[0].Partition
	}
	require.Equal(t, []int32{1, 2, 0, 1}, []int32{first(), first(), first(), first()})
	s.session.First(s.parts[0])
	require.Zero(t, first())
	require.Equal(t, []int32{0, 1}, []int32{first(), first()}, "and on it goes")
}

// Topics are named once each, whoever came and went in between.
func TestSessionNamesATopicOnce(t *testing.T) {
	s := &sides{newest: 12}
	var parts []*fetch.Partition
	for p := range 2 {
		for topic := range 3 {
			m := newPartition(topic, p, false)
			parts = append(parts, m)
			s.session.Join(m)
		}
	}
	topics := func(first *fetch.Partition) (names []string) {
		s.session.First(first)
		s.fetch(t)
		for _, topic := range s.request.Topics {
			names = append(names, topic.Name)
		}
		return names
	}
	require.Equal(t, []string{"t0", "t1", "t2"}, topics(parts[0]))
	late := newPartition(0, 2, false)
	s.session.Join(late)
	require.Equal(t, []string{"t0", "t1", "t2"}, topics(parts[0]))
	s.session.Leave(parts[0])
	s.session.Leave(parts[1])
	require.Equal(t, []string{"t0", "t1", "t2"}, topics(parts[3]))
}

// Until every topic's id is known, topics are named by name; then by id, in another session.
func TestSessionWithoutIDs(t *testing.T) {
	s := &sides{newest: 18}
	known, unknown := newPartition(0, 0, true), newPartition(1, 0, false)
	s.session.Join(known)
	s.session.Join(unknown)
	s.fetch(t)
	require.EqualValues(t, 12, s.version)
	s.fetch(t)
	require.True(t, s.session.Incremental())
	s.session.Leave(unknown)
	s.fetch(t)
	require.EqualValues(t, 18, s.version)
	require.False(t, s.session.Incremental())
	require.Len(t, s.request.Topics, 1)
	s.session.Join(newPartition(1, 0, false))
	s.fetch(t)
	require.EqualValues(t, 12, s.version)
	require.False(t, s.session.Incremental())
}

// Who leaves before it was asked for is neither asked for nor forgotten, and what is forgotten is
// forgotten once.
func TestSessionOfWhoLeaves(t *testing.T) {
	s := &sides{newest: 12}
	stays, goes := newPartition(0, 0, false), newPartition(0, 1, false)
	s.session.Join(stays)
	s.session.Join(goes)
	s.fetch(t)
	short := newPartition(0, 2, false)
	s.session.Join(short)
	s.session.Leave(short)
	s.fetch(t)
	require.True(t, s.session.Incremental())
	require.Empty(t, s.request.Topics)
	require.Empty(t, s.request.Forgotten)
	s.session.Leave(goes)
	s.session.First(stays)
	s.fetch(t)
	require.False(t, s.session.Incremental(), "to be first, all are named")
	require.Empty(t, s.request.Forgotten)
	s.fetch(t)
	require.True(t, s.session.Incremental())
	require.Empty(t, s.request.Forgotten)

	first := newPartition(0, 3, false)
	s.session.Join(first)
	s.session.First(first)
	s.session.Leave(first)
	s.fetch(t)
	require.Equal(t, int32(0), s.request.Topics[0].Partitions[0].Partition)
}

// What a request said that was lost is said again, whether the broker got it or not.
func TestSessionSaysAgainWhatWasLost(t *testing.T) {
	s := &sides{newest: 12}
	m := newPartition(0, 0, false)
	s.parts = append(s.parts, m)
	s.session.Join(m)
	s.fetch(t)
	m.Asked.Offset = 7
	s.session.Changed(m)
	s.next()
	s.session.Lost()
	s.fetch(t)
	require.Equal(t, s.want(), s.broker.held)
}

func TestSessionEnds(t *testing.T) {
	s := &sides{newest: 12}
	require.Zero(t, s.session.End())
	s.session.Join(newPartition(0, 0, false))
	s.fetch(t)
	s.session.Lost()
	require.Equal(t, s.broker.id, s.session.End(), "though it is out of step")
	require.Zero(t, s.session.End())
}
