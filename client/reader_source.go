package client

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
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
	parts map[int32]*partition
	full  bool // it waits for room
	// changed: order must be made anew from parts.
	changed bool
	round   int64

	// The rest belongs to the source's goroutine, buf also to the connection while a request is
	// in flight.
	conn    *conn.Conn
	version int16
	hangUp  func() bool // stops the watch that closes conn at the end of life
	call    conn.Call
	req     fetch.Request
	body    []byte
	order   []*partition
	turn    int
	buf     *buffer
	answer  chan answered // one place; written by the call's Done, read by the source
	resp    fetch.Response
}

// answered is the answer to a Fetch request.
type answered struct {
	body  []byte // in source.buf
	times conn.Times
	err   error
}

func newSource(r *Reader, b *Broker) *source {
	s := &source{r: r, broker: b, wake: make(chan struct{}, 1), parts: map[int32]*partition{}, answer: make(chan answered, 1)}
	s.req = fetch.Request{
		MaxWait: r.consume.MaxWait, MinBytes: int32(r.rules.minBytes), Isolation: int8(r.consume.IsolationLevel),
		Session: fetch.NoSession, Epoch: fetch.SessionEpoch,
		Topics: []fetch.Topic{{Name: r.cfg.Topic}},
	}
	s.call = conn.Call{
		Key: fetch.Key, Timeout: r.consume.MaxWait + r.client.cfg.Net.answerTimeout(),
		Buffer: s.room, Done: s.done, Body: make(net.Buffers, 1),
	}
	return s
}

// add takes a partition; called with the reader's mu held.
func (s *source) add(p *partition) {
	s.parts[p.id] = p
	p.src = s
	s.changed = true
	signal(s.wake)
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
	defer s.disconnect(nil)
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
		if what == doResolve {
			s.resolve()
		} else {
			s.fetch()
		}
	}
}

// next decides what to do, and prepares the request when that is to fetch.
func (s *source) next() errand {
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	s.full = false
	if len(s.parts) == 0 || r.life.Err() != nil {
		delete(r.sources, s.broker)
		return doEnd
	}
	for _, p := range s.parts {
		if p.Need != fetch.Nothing {
			return doResolve
		}
	}
	if !r.hasRoomLocked() {
		s.full = true
		return doWait
	}
	s.prepareLocked()
	return doFetch
}

// prepareLocked fills in the request. Partitions take turns in being first, because the first
// ones get the bytes; one whose large batch did not fit goes before all.
func (s *source) prepareLocked() {
	if s.changed {
		s.order = slices.AppendSeq(s.order[:0], maps.Values(s.parts))
		slices.SortFunc(s.order, func(a, b *partition) int { return int(a.id) - int(b.id) })
		s.changed = false
	}
	s.turn++
	first := s.turn % len(s.order)
	rules := &s.r.rules
	s.req.MaxBytes = int32(rules.maxBytes)
	for i, p := range s.order {
		if p.Widened > 0 {
			first = i
			s.req.MaxBytes = int32(max(rules.maxBytes, p.Widened))
		}
	}
	s.round++
	s.req.Rack = s.rackLocked(time.Now())
	asked := s.req.Topics[0].Partitions[:0]
	for i := range s.order {
		p := s.order[(first+i)%len(s.order)]
		bound := max(rules.partBytes, p.Widened)
		p.asked.round, p.asked.version, p.asked.offset, p.asked.bound = s.round, p.Version, p.Next, bound
		asked = append(asked, fetch.Asked{Partition: p.id, Offset: p.Next, LeaderEpoch: p.epoch, MaxBytes: int32(bound)})
	}
	s.req.Topics[0].Partitions = asked
}

// rackLocked is the rack to name in a request. Without one the leader does not send us elsewhere,
// which is what a partition needs after its follower failed.
func (s *source) rackLocked(now time.Time) string {
	rack := s.r.consume.Rack
	if rack == "" {
		return ""
	}
	for _, p := range s.parts {
		if p.replica < 0 && now.Before(p.expires) {
			return ""
		}
	}
	return rack
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
	s.body = s.req.Append(s.body[:0], s.version)
	s.call.Version, s.call.Body[0] = s.version, s.body
	a := s.ask()
	defer func() {
		s.buf.release()
		s.buf = nil
	}()
	if a.err == nil {
		if err := s.resp.Decode(a.body, s.version); err != nil {
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
	s.takeIn(a.times.Read)
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
			r.errLog.Error("reader hook failed", "error", &PanicError{Where: "ReaderConfig.OnFetch", Value: v})
		}
	}()
	st := FetchStats{Broker: s.broker.ID(), Written: a.times.Written, Read: a.times.Read, Bytes: len(a.body), Err: a.err}
	if a.err == nil {
		st.Throttle = s.resp.Throttle
	}
	r.cfg.OnFetch(st)
}
