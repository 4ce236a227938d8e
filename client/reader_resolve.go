package client

import (
	"fmt"
	"time"

	"github.com/kbench/kbench/client/internal/fetch"
)

// resolving is a partition with a need, as it was when the question about it was put.
type resolving struct {
	p           *partition
	version     uint32
	first, last *OffsetAnswer
	epoch       *epochAnswer
}

// resolve asks the broker, which leads them, for what partitions need.
func (s *source) resolve() {
	r := s.r
	r.mu.Lock()
	all := s.needsLocked()
	r.mu.Unlock()
	var firsts, lasts []offsetAsk
	var epochs []*epochAnswer
	for i := range all {
		a := &all[i]
		if a.first != nil {
			firsts = append(firsts, offsetAsk{a.first, a.epoch.current})
		}
		if a.last != nil {
			lasts = append(lasts, offsetAsk{a.last, a.epoch.current})
		}
		if a.epoch.asked {
			epochs = append(epochs, a.epoch)
		}
	}
	for _, asks := range [][]offsetAsk{firsts, lasts} {
		if len(asks) > 0 {
			listOffsets(r.life, s.conn.Do, r.consume.IsolationLevel, asks)
		}
	}
	if len(epochs) > 0 {
		s.askEpochs(epochs)
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range all {
		switch {
		case a.p.src != s || a.p.Version != a.version:
		case a.epoch.asked:
			s.checkedLocked(a.p, a.epoch, now)
		default:
			s.resolvedLocked(a.p, a.first, a.last, now)
		}
	}
}

// needsLocked are the partitions with a need, and the questions to ask about them.
func (s *source) needsLocked() (all []resolving) {
	s.needs = false
	for _, p := range s.parts {
		a := resolving{p: p, version: p.Version, epoch: &epochAnswer{tp: p.topicPartition, current: p.epoch, last: p.lastEpoch}}
		ask := func(at int64) *OffsetAnswer {
			return &OffsetAnswer{OffsetQuery: OffsetQuery{p.topic, p.id, at}, Offset: -1}
		}
		switch p.Need {
		case fetch.Nothing:
			continue
		case fetch.FindFirst:
			a.first = ask(OffsetOldest)
		case fetch.FindLast:
			a.last = ask(OffsetNewest)
		case fetch.FindRange:
			a.first, a.last = ask(OffsetOldest), ask(OffsetNewest)
		case fetch.CheckEpoch:
			a.epoch.asked = true
		}
		all = append(all, a)
	}
	return all
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
		r.log.Warn("moved to an end of the log", "topic", p.topic, "partition", p.id, "from", before, "to", p.Next)
		r.stats.Resets++
		r.queueMoveLocked(p)
	default:
		p.pos = p.Next
	}
	s.changed(p)
}
