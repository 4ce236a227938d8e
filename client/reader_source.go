package client

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/fetch"
)

// source fetches the partitions that one broker serves, over a connection of its own, one
// request after the other: the next one leaves as soon as an answer has been queued, before the
// application has read it.
type source struct {
	r      *Reader
	broker *Broker
	wake   chan struct{} // one token: partitions or room changed; the source reads

	// Guarded by the reader's mu.
	parts   map[topicPartition]*partition
	topics  map[[16]byte]string // names of topics by id
	session fetch.Session
	full    bool // it waits for room
	needs   bool // some partition has a need
	widest  int  // bound of a request that is to bring a large batch; 0: the usual
	// noRack is until when no rack is named: without one the leader does not send us elsewhere,
	// which is what a partition needs after its follower failed.
	noRack time.Time
	// moveOn is when some partition has been read from a follower for long enough.
	moveOn time.Time

	// The rest belongs to the source's goroutine, buf also to the connection while a request is
	// in flight.
	conn    *conn.Conn
	version int16       // newest of Fetch
	hangUp  func() bool // stops the watch that closes conn at the end of life
	call    conn.Call
	req     fetch.Request
	body    []byte
	buf     *buffer
	answer  chan answered // one place; written by the call's Done, read by the source
	resp    fetch.Response
	hasty   int // answers in a row that came early and brought nothing
}

// answered is the answer to a Fetch request.
type answered struct {
	body  []byte // in source.buf
	times conn.Times
	err   error
}

func newSource(r *Reader, b *Broker) *source {
	s := &source{
		r: r, broker: b, wake: make(chan struct{}, 1), answer: make(chan answered, 1),
		parts: map[topicPartition]*partition{}, topics: map[[16]byte]string{},
	}
	s.req = fetch.Request{
		MaxWait: r.consume.MaxWait, MinBytes: int32(r.rules.minBytes), Isolation: int8(r.consume.IsolationLevel),
	}
	s.call = conn.Call{
		Key: fetch.Key, Timeout: r.consume.MaxWait + r.client.cfg.Net.answerTimeout(),
		Buffer: s.room, Done: s.done, Body: make(net.Buffers, 1),
	}
	return s
}

// add takes a partition; called with the reader's mu held, as the next two are.
func (s *source) add(p *partition) {
	s.parts[p.topicPartition] = p
	s.topics[p.topicID] = p.topic
	p.src = s
	p.fetched = &fetch.Partition{Topic: p.topic, TopicID: p.topicID, Asked: fetch.Asked{Partition: p.id}}
	s.session.Join(p.fetched)
	s.changed(p)
	if p.replica >= 0 {
		if s.moveOn.IsZero() || p.expires.Before(s.moveOn) {
			s.moveOn = p.expires
		}
	} else if p.expires.After(s.noRack) {
		s.noRack = p.expires
	}
	signal(s.wake)
}

// remove gives a partition up.
func (s *source) remove(p *partition) {
	delete(s.parts, p.topicPartition)
	s.session.Leave(p.fetched)
	if p.Widened > 0 {
		s.widest = 0
	}
	signal(s.wake)
}

// changed takes in that a partition is to be fetched in another way from now on.
func (s *source) changed(p *partition) {
	m := p.fetched
	m.Asked = fetch.Asked{
		Partition: p.id, Offset: p.Next, LeaderEpoch: p.epoch, LastEpoch: p.lastEpoch,
		MaxBytes: int32(max(s.r.rules.partBytes, p.Widened)),
	}
	m.Tag = p.Version
	s.needs = s.needs || p.Need != fetch.Nothing
	s.session.Changed(m)
	if p.Widened > s.widest {
		s.widest = p.Widened
		s.session.First(m)
	}
}

// errand is what a source has to do next.
type errand int8

const (
	doEnd errand = iota
	doWait
	doResolve
	doFetch
)

func (s *source) run() {
	defer s.r.wg.Done()
	defer s.finish()
	for {
		what := s.next()
		switch what {
		case doEnd:
			return
		case doWait:
			select {
			case <-s.wake:
			case <-s.r.life.Done():
			}
			continue
		}
		if err := s.connect(); err != nil {
			s.failAll(err)
			continue
		}
		switch {
		case what == doResolve:
			s.resolve()
		case s.prepare():
			s.fetch()
		}
	}
}

// next decides what to do.
func (s *source) next() errand {
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	s.full = false
	switch {
	case len(s.parts) == 0 || r.life.Err() != nil:
		delete(r.sources, s.broker)
		return doEnd
	case s.needs:
		return doResolve
	case !r.hasRoomLocked():
		s.full = true
		return doWait
	}
	return doFetch
}

// prepare fills in the request. False: something else has to be done first by now.
func (s *source) prepare() bool {
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(s.parts) == 0 || s.needs {
		return false
	}
	s.req.MaxBytes = int32(max(r.rules.maxBytes, s.widest))
	s.req.Rack = ""
	if !time.Now().Before(s.noRack) {
		s.req.Rack = r.consume.Rack
	}
	s.call.Version = s.session.Next(&s.req, s.version)
	return true
}

// connect makes sure that there is a connection. One that the broker closed while nothing was in
// flight is opened again without more ado.
func (s *source) connect() error {
	if s.conn != nil && s.conn.Err() == nil {
		return nil
	}
	s.disconnect(nil)
	c, err := s.broker.openPrivate(s.r.life)
	if err != nil {
		return err
	}
	s.r.count(func(st *ReaderStats) { st.Dials++ })
	if s.version, err = c.Version(fetch.Key); err != nil {
		c.Close(nil)
		return err
	}
	s.conn = c
	s.hangUp = context.AfterFunc(s.r.life, func() { c.Close(nil) })
	return nil
}

func (s *source) disconnect(cause error) {
	if s.conn == nil {
		return
	}
	s.hangUp()
	s.conn.Close(cause)
	s.conn = nil
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.session.Lost()
}

// failAll gives every partition back: the broker cannot be reached, or makes no sense.
func (s *source) failAll(err error) {
	now := time.Now()
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for _, p := range s.parts {
		s.r.failLocked(p, err, now)
	}
}

// fetch sends the prepared request and takes in its answer.
func (s *source) fetch() {
	s.body = s.req.Append(s.body[:0], s.call.Version)
	s.call.Body[0] = s.body
	a := s.ask()
	defer func() {
		s.buf.release()
		s.buf = nil
	}()
	if a.err == nil {
		if err := s.resp.Decode(a.body, s.call.Version); err != nil {
			a.err = &addressError{s.broker.addr, err}
		}
	}
	s.report(a)
	if a.err != nil {
		s.disconnect(a.err)
		s.failAll(a.err)
		return
	}
	s.conn.Throttle(s.resp.Throttle)
	if s.takeIn(a.times.Read) || s.resp.Throttle > 0 || a.times.Read.Sub(a.times.Written) >= s.r.consume.MaxWait/2 {
		s.hasty = 0
		return
	}
	s.rest()
}

// hastyAnswers is how many answers may come early and bring nothing before that slows us down: such
// a broker does not wait as it was asked to.
const hastyAnswers = 3

func (s *source) rest() {
	if s.hasty++; s.hasty <= hastyAnswers {
		return
	}
	t := time.NewTimer(s.r.backoff.After(s.hasty - hastyAnswers))
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.r.life.Done():
	}
}

func (s *source) ask() answered {
	if err := s.conn.Acquire(s.r.life); err != nil {
		return answered{err: err}
	}
	if err := s.conn.Submit(&s.call); err != nil {
		return answered{err: err}
	}
	return <-s.answer // bounded: by the call's timeout, and the connection closes with life
}

// room gives the connection memory for an answer of n bytes, unless it is larger than what was
// asked for can explain: then it is only taken as the bytes come.
func (s *source) room(n int) []byte {
	if n > 2*int(s.req.MaxBytes)+answerOverhead {
		return nil
	}
	s.buf = s.r.answers.get(n)
	return s.buf.b
}

// done is the call's Done.
func (s *source) done(body []byte, t conn.Times, err error) {
	if err == nil && s.buf == nil { // in memory of the connection's own
		s.buf = s.r.answers.get(len(body))
		body = s.buf.b[:copy(s.buf.b, body)]
	}
	s.answer <- answered{body, t, err}
}

// report tells the user's hook, and counts.
func (s *source) report(a answered) {
	r := s.r
	r.count(func(st *ReaderStats) {
		st.Fetches++
		st.FetchedBytes += int64(len(a.body))
		if a.err == nil {
			r.latency.Record(int64(a.times.Read.Sub(a.times.Written)))
		}
		if errors.Is(a.err, conn.ErrTimeout) {
			st.Timeouts++
		}
	})
	if r.cfg.OnFetch == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			r.count(func(st *ReaderStats) { st.Panics++ })
			r.errLog.Error("reader hook failed", "error", &PanicError{Where: "ReaderConfig.OnFetch", Value: v})
		}
	}()
	st := FetchStats{Broker: s.broker.ID(), Written: a.times.Written, Read: a.times.Read, Bytes: len(a.body), Err: a.err}
	if a.err == nil {
		st.Throttle = s.resp.Throttle
	}
	r.cfg.OnFetch(st)
}
