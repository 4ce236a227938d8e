package client

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/wire"
)

// replicaFor is how long a follower is read from before the leader is asked again (KIP-392), and
// leaderFor how long the leader is read from after a follower failed.
const (
	replicaFor = 5 * time.Minute
	leaderFor  = 30 * time.Second
)

// takeIn takes in a decoded answer, partition by partition, and says whether there was anything
// in it.
func (s *source) takeIn(now time.Time) (news bool) {
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	switch s.session.Answered(s.resp.Code, s.resp.Session) {
	case fetch.Again:
		return false
	case fetch.Bad:
		for _, p := range s.parts {
			r.failLocked(p, &addressError{s.broker.addr, wire.ErrorFor(s.resp.Code)}, now)
		}
		return true
	}
	some := false
	for i := range s.resp.Partitions {
		a := &s.resp.Partitions[i]
		p := s.answered(a)
		if p == nil || !s.session.Takes(p.fetched) {
			continue // not asked for, or not wanted any more
		}
		some = true
		if s.takeLocked(p, a, now) {
			news = true
		}
	}
	if !some && !s.session.Incremental() { // brokers may leave out what they had no room for
		for _, p := range s.parts {
			if s.session.Takes(p.fetched) {
				r.failLocked(p, &addressError{s.broker.addr, errLeftOut}, now)
			}
		}
	}
	s.leaveFollowers(now)
	return news
}

// answered is the partition that a part of an answer is about, nil when there is none here.
func (s *source) answered(a *fetch.Answered) *partition {
	if s.call.Version < fetch.FirstByID {
		return s.parts[topicPartition{string(a.Topic), a.Partition}]
	}
	p := s.parts[topicPartition{s.topics[a.TopicID], a.Partition}]
	if p == nil || p.topicID != a.TopicID {
		return nil
	}
	return p
}

// leaveFollowers gives back partitions that have been read from a follower for long enough: the
// leader says anew where they are to be read.
func (s *source) leaveFollowers(now time.Time) {
	if s.moveOn.IsZero() || now.Before(s.moveOn) {
		return
	}
	s.moveOn = time.Time{}
	for _, p := range s.parts {
		switch {
		case p.replica < 0:
		case now.Before(p.expires):
			if s.moveOn.IsZero() || p.expires.Before(s.moveOn) {
				s.moveOn = p.expires
			}
		default:
			p.replica = -1
			s.r.looseLocked(p, false)
		}
	}
}

// takeLocked takes in the answer about one partition, and says whether it changes anything.
func (s *source) takeLocked(p *partition, a *fetch.Answered, now time.Time) bool {
	r := s.r
	err := wire.ErrorFor(a.Code)
	if err == nil && !a.Diverging { // true whatever it was asked for
		p.hwm, p.logStart = a.HighWatermark, a.LogStart
		if r.consume.IsolationLevel == ReadCommitted && a.LastStableOffset >= 0 {
			p.hwm = min(p.hwm, a.LastStableOffset)
		}
	}
	sent, version := p.fetched.Sent()
	switch {
	case version != p.Version:
		return true
	case errors.Is(err, wire.ErrOffsetOutOfRange):
		s.outsideLocked(p, now)
	case err != nil:
		r.failLocked(p, &addressError{s.broker.addr, err}, now)
		s.hintLocked(p, a)
	case a.Diverging && (sent.LastEpoch < 0 || a.DivergingEpoch < 0 || a.DivergingEnd < 0):
		r.failLocked(p, &addressError{s.broker.addr, errDiverging}, now)
	case a.Diverging:
		s.truncatedLocked(p, a.DivergingEpoch, a.DivergingEnd, now)
	case a.PreferredReplica >= 0 && a.PreferredReplica != s.broker.ID() && r.consume.Rack != "":
		p.replica, p.expires = a.PreferredReplica, now.Add(replicaFor)
		r.looseLocked(p, false)
	default:
		return s.recordsLocked(p, a, sent, now)
	}
	return true
}

// hintLocked takes in that a broker which does not lead a partition knows who does (KIP-951): the
// first time, that one is asked at once, and the cluster is not.
func (s *source) hintLocked(p *partition, a *fetch.Answered) {
	if a.Leader < 0 || a.Leader == s.broker.ID() || p.Failures > 1 || !p.lost() || s.r.client.node(a.Leader) == nil {
		return
	}
	s.r.client.moved(p.topic, p.id, a.Leader, a.LeaderEpoch)
	p.refresh, p.Until = false, time.Time{}
}

// outsideLocked takes in that the broker does not have the position. What is in the log is for
// the leader to say: a follower may only be behind.
func (s *source) outsideLocked(p *partition, now time.Time) {
	p.Outside()
	p.lastEpoch = -1 // a broker that does not know the epoch says the same
	s.needs = true
	s.r.stats.Errors++
	s.r.log.Info("offset out of range", "topic", p.topic, "partition", p.id, "offset", p.Next)
	if p.replica >= 0 {
		p.backToLeader(now)
		s.r.looseLocked(p, false)
	}
}

// recordsLocked queues the records of one partition and moves its position behind them. It returns
// false when there is nothing in it.
func (s *source) recordsLocked(p *partition, a *fetch.Answered, sent fetch.Asked, now time.Time) bool {
	r := s.r
	from := sent.Offset
	e := fetch.Measure(a.Records, from)
	switch {
	case e.Stuck(from) && e.Cut && e.Batches == 0:
		if wider := e.Wider(int(sent.MaxBytes), r.rules.limit); wider > int(sent.MaxBytes) {
			p.Widened = wider
			s.changed(p)
			return true
		}
		r.failLocked(p, fmt.Errorf("%w (the batch has %d bytes)", errCut, e.Need), now)
		return true
	case e.Stuck(from):
		r.failLocked(p, &addressError{s.broker.addr, errStuck}, now)
		return true
	}
	if p.Widened > 0 {
		s.widest = 0
	}
	p.Advance(e)
	if e.Epoch >= 0 {
		p.lastEpoch = e.Epoch
	}
	if e.Next != from || int(sent.MaxBytes) != r.rules.partBytes {
		s.changed(p)
	}
	s.queueLocked(p, a, e, from)
	return e.Next != from || e.Err != nil
}

// queueLocked leaves to the consumer what e measures.
func (s *source) queueLocked(p *partition, a *fetch.Answered, e fetch.Extent, from int64) {
	r := s.r
	records := a.Records[:e.Bytes:e.Bytes]
	if e.Err != nil {
		// The consumer comes to the damage in its turn, after what stands before it.
		records = a.Records
		p.leave()
		p.ended = true
	}
	if len(records) == 0 {
		return
	}
	s.buf.retain()
	r.queue.push(block{
		p: p, version: p.Version, buf: s.buf, from: from, records: records, batches: e.Batches, hwm: p.hwm,
		aborted: slices.Clone(s.resp.Aborted(a)),
	})
	r.batches += e.Batches
	signal(r.ready)
}
