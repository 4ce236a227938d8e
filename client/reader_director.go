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
		r.place(due, err)
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

// placing is a partition to be placed, as it was when it was picked, and what is found for it.
type placing struct {
	p       *partition
	version uint32
	replica int32

	broker  *Broker
	epoch   int32
	topicID [16]byte
	err     error
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
		due = append(due, placing{p: p, version: p.Version, replica: p.replica})
		if p.refresh || !known.has(p.topicPartition) {
			topics = append(topics, p.topic)
		}
		p.refresh = false
	}
	slices.Sort(topics)
	return due, slices.Compact(topics), wait
}

// place gives partitions to their brokers, all at once, so that a source does not wait for records
// of the first one before it asks for the others. err is that of the refresh before.
func (r *Reader) place(due []placing, err error) {
	known := r.client.meta.Load()
	for i := range due {
		if due[i].err = err; err == nil {
			r.find(&due[i], known)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for i := range due {
		at := &due[i]
		p := at.p
		switch {
		case !p.lost() || p.Version != at.version || p.replica != at.replica:
			// Moved meanwhile: it comes again.
		case at.err != nil:
			r.failLocked(p, at.err, now)
		case r.identifyLocked(p, at.topicID, at.epoch, now):
			r.sourceLocked(at.broker).add(p)
		}
	}
}

// find looks up where a partition is to be read.
func (r *Reader) find(at *placing, known *metadata) {
	meta, err := known.look(at.p.topicPartition)
	if err != nil {
		at.err = err
		return
	}
	at.epoch, at.topicID = meta.epoch, known.topics[at.p.topic].id
	if at.replica >= 0 {
		if at.broker = r.client.node(at.replica); at.broker == nil {
			at.err = errNoFollow
		}
		return
	}
	if at.broker = r.client.node(meta.leader); at.broker == nil {
		at.err = leaderless(at.p.topic, at.p.id, meta.err)
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
