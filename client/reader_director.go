package client

import (
	"slices"
	"time"
)

// direct is the reader's director: it finds a broker for each partition that has none, and
// leaves it to the source of that broker.
func (r *Reader) direct() {
	defer r.wg.Done()
	for r.life.Err() == nil {
		due, topics, wait := r.lost(time.Now())
		if len(due) == 0 {
			r.idle(wait)
			continue
		}
		var err error
		if len(topics) > 0 {
			err = r.client.RefreshMetadata(r.life, topics...)
		}
		for _, p := range due {
			r.place(p, err)
		}
	}
}

// idle waits until somebody calls, or for d when it is more than 0.
func (r *Reader) idle(d time.Duration) {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-r.wakeDirector:
	case <-timer:
	case <-r.life.Done():
	}
}

// placing is a partition to be placed, as it was when it was picked.
type placing struct {
	p       *partition
	version uint32
	replica int32
}

// lost are the partitions to be placed now, the topics whose leaders must be asked for first, and
// how long until the next one is due; 0: none is waiting.
func (r *Reader) lost(now time.Time) (due []placing, topics []string, wait time.Duration) {
	known := r.client.meta.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.parts {
		if !p.lost() {
			continue
		}
		if p.Waiting(now) {
			if d := p.Until.Sub(now); wait == 0 || d < wait {
				wait = d
			}
			continue
		}
		due = append(due, placing{p, p.Version, p.replica})
		if p.refresh || !known.has(p.topicPartition) {
			topics = append(topics, p.topic)
		}
		p.refresh = false
	}
	slices.Sort(topics)
	return due, slices.Compact(topics), wait
}

// place finds a partition's broker. err is that of the refresh before.
func (r *Reader) place(at placing, err error) {
	var meta partitionMeta
	var topicID [16]byte
	if err == nil {
		known := r.client.meta.Load()
		if meta, err = known.look(at.p.topicPartition); err == nil {
			topicID = known.topics[at.p.topic].id
		}
	}
	var b *Broker
	if err == nil {
		if at.replica >= 0 {
			if b = r.client.node(at.replica); b == nil {
				err = errNoFollow
			}
		} else if b = r.client.node(meta.leader); b == nil {
			err = leaderless(at.p.topic, at.p.id, meta.err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := at.p
	if !p.lost() || p.Version != at.version || p.replica != at.replica {
		return // moved meanwhile: it comes again
	}
	now := time.Now()
	if err != nil {
		r.failLocked(p, err, now)
		return
	}
	if r.identifyLocked(p, topicID, meta.epoch, now) {
		r.sourceLocked(b).add(p)
	}
}

// sourceLocked is the source of a broker, started when there is none.
func (r *Reader) sourceLocked(b *Broker) *source {
	if s := r.sources[b]; s != nil {
		return s
	}
	s := newSource(r, b)
	r.sources[b] = s
	r.wg.Add(1)
	// Owned by the reader; ends by itself when it has no partitions left, and with life; Close
	// waits.
	go s.run()
	return s
}
