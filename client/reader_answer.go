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

// takeIn takes in a decoded answer, partition by partition.
func (s *source) takeIn(now time.Time) {
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := wire.ErrorFor(s.resp.Code); err != nil {
		for _, p := range s.parts {
			r.failLocked(p, &addressError{s.broker.addr, err}, now)
		}
		return
	}
	some := false
	for i := range s.resp.Partitions {
		a := &s.resp.Partitions[i]
		p := s.parts[a.Partition]
		if p == nil || p.asked.round != s.round || string(a.Topic) != r.cfg.Topic {
			continue // not asked for, or not wanted any more
		}
		p.asked.round, some = 0, true
		if p.asked.version == p.Version {
			s.takeLocked(p, a, now)
		}
	}
	if some {
		return // brokers may leave out what they had no room for
	}
	for _, p := range s.parts {
		if p.asked.round == s.round {
			r.failLocked(p, &addressError{s.broker.addr, errLeftOut}, now)
		}
	}
}

// takeLocked takes in the answer about one partition.
func (s *source) takeLocked(p *partition, a *fetch.Answered, now time.Time) {
	r := s.r
	err := wire.ErrorFor(a.Code)
	switch {
	case errors.Is(err, wire.ErrOffsetOutOfRange):
		s.outsideLocked(p, now)
		return
	case err != nil:
		r.failLocked(p, &addressError{s.broker.addr, err}, now)
		s.hintLocked(p, a)
		return
	}
	p.hwm, p.logStart = a.HighWatermark, a.LogStart
	if r.consume.IsolationLevel == ReadCommitted && a.LastStableOffset >= 0 {
		p.hwm = min(p.hwm, a.LastStableOffset)
	}
	if a.PreferredReplica >= 0 && a.PreferredReplica != s.broker.ID() && r.consume.Rack != "" {
		p.replica, p.expires = a.PreferredReplica, now.Add(replicaFor)
		r.looseLocked(p, false)
		return
	}
	s.recordsLocked(p, a, now)
	if p.src == s && p.replica >= 0 && now.After(p.expires) {
		p.replica = -1
		r.looseLocked(p, false)
	}
}

// hintLocked takes in that a broker which does not lead a partition knows who does (KIP-951): the
// first time, that one is asked at once, and the cluster is not.
func (s *source) hintLocked(p *partition, a *fetch.Answered) {
	if a.Leader < 0 || a.Leader == s.broker.ID() || p.Failures > 1 || !p.lost() || s.r.client.node(a.Leader) == nil {
		return
	}
	s.r.client.moved(s.r.cfg.Topic, p.id, a.Leader, a.LeaderEpoch)
	p.refresh, p.Until = false, time.Time{}
}

// outsideLocked takes in that the broker does not have the position. What is in the log is for
// the leader to say: a follower may only be behind.
func (s *source) outsideLocked(p *partition, now time.Time) {
	p.Outside()
	s.r.stats.Errors++
	s.r.log.Info("offset out of range", "topic", s.r.cfg.Topic, "partition", p.id, "offset", p.Next)
	if p.replica >= 0 {
		p.backToLeader(now)
		s.r.looseLocked(p, false)
	}
}

// recordsLocked queues the records of one partition and moves its position behind them.
func (s *source) recordsLocked(p *partition, a *fetch.Answered, now time.Time) {
	r := s.r
	from := p.asked.offset
	e := fetch.Measure(a.Records, from)
	switch {
	case e.Stuck(from) && e.Cut && e.Batches == 0:
		if wider := e.Wider(p.asked.bound, r.rules.limit); wider > p.asked.bound {
			p.Widened = wider
			return
		}
		r.failLocked(p, fmt.Errorf("%w (the batch has %d bytes)", errCut, e.Need), now)
		return
	case e.Stuck(from):
		r.failLocked(p, &addressError{s.broker.addr, errStuck}, now)
		return
	}
	p.Advance(e)
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

// resolve asks the broker, which leads them, for the offsets that partitions need.
func (s *source) resolve() {
	type asked struct {
		p           *partition
		version     uint32
		first, last *OffsetAnswer
	}
	r := s.r
	var all []asked
	var firsts, lasts []offsetAsk
	r.mu.Lock()
	for _, p := range s.parts {
		a := asked{p: p, version: p.Version}
		ask := func(at int64) *OffsetAnswer {
			return &OffsetAnswer{OffsetQuery: OffsetQuery{r.cfg.Topic, p.id, at}, Offset: -1}
		}
		if p.Need == fetch.FindFirst || p.Need == fetch.FindRange {
			a.first = ask(OffsetOldest)
			firsts = append(firsts, offsetAsk{a.first, p.epoch})
		}
		if p.Need == fetch.FindLast || p.Need == fetch.FindRange {
			a.last = ask(OffsetNewest)
			lasts = append(lasts, offsetAsk{a.last, p.epoch})
		}
		if p.Need != fetch.Nothing {
			all = append(all, a)
		}
	}
	r.mu.Unlock()
	for _, asks := range [][]offsetAsk{firsts, lasts} {
		if len(asks) > 0 {
			listOffsets(r.life, s.conn.Do, r.consume.IsolationLevel, asks)
		}
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range all {
		if a.p.src == s && a.p.Version == a.version {
			s.resolvedLocked(a.p, a.first, a.last, now)
		}
	}
}

// resolvedLocked takes in what the leader says about the ends of one partition's log; what was
// not asked for is nil.
func (s *source) resolvedLocked(p *partition, first, last *OffsetAnswer, now time.Time) {
	r := s.r
	ends := [2]int64{-1, -1}
	for i, a := range []*OffsetAnswer{first, last} {
		if a == nil {
			continue
		}
		err := a.Err
		if err == nil && a.Offset < 0 {
			err = &answerError{fmt.Sprintf("the leader says that the log ends at %d", a.Offset)}
		}
		if err != nil {
			r.failLocked(p, &addressError{s.broker.addr, err}, now)
			return
		}
		ends[i] = a.Offset
	}
	before, need := p.Next, p.Need
	if !p.Resolved(ends[0], ends[1], r.policy) {
		r.failLocked(p, &OffsetOutOfRangeError{Offset: before, First: ends[0], Last: ends[1]}, now)
		return
	}
	switch {
	case need == fetch.FindRange && p.Next == before:
		// In the log after all: the broker was behind, or is not the leader any more.
		p.Failed(now, r.backoff)
		r.looseLocked(p, true)
		return
	case need == fetch.FindRange:
		r.log.Warn("moved to an end of the log", "topic", r.cfg.Topic, "partition", p.id, "from", before, "to", p.Next)
		r.stats.Resets++
		// What was fetched before is delivered before the position moves.
		r.queue.push(block{p: p, version: p.Version, from: p.Next})
		signal(r.ready)
	default:
		p.pos = p.Next
	}
}
