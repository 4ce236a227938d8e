package client

import (
	"time"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/wire"
)

// partition is one partition of a reader; everything in it is guarded by the reader's mu. It is
// in one of four places:
//
//   - with a source, which fetches it;
//   - lost: with the director, which finds its broker;
//   - ended: the last answer ends in damage, which the consumer has not come to yet;
//   - stopped: after a failure that was returned, until SetOffset.
type partition struct {
	id int32
	fetch.Position
	pos      int64 // of the next message to be delivered; negative: not resolved
	hwm      int64 // high watermark as last seen; -1: not seen
	logStart int64

	src     *source
	ended   bool
	stopped bool
	refresh bool // leaders must be asked for before it is tried again
	epoch   int32

	replica int32 // node to read from as the leader said (KIP-392); -1: the leader
	// expires is until when the replica is read from; with the leader, until when it is not asked
	// for another one.
	expires time.Time

	// asked is what the request in flight asked for; round is the source's, 0 for none.
	asked struct {
		round   int64
		version uint32
		offset  int64
		bound   int
	}
}

func (p *partition) lost() bool { return p.src == nil && !p.ended && !p.stopped }

// leave takes the partition from its source.
func (p *partition) leave() {
	if p.src != nil {
		delete(p.src.parts, p.id)
		p.src.changed = true
		signal(p.src.wake)
	}
	p.src = nil
	p.asked.round = 0
}

// backToLeader leaves a follower, if it is one that is read from, for a while.
func (p *partition) backToLeader(now time.Time) {
	if p.replica >= 0 {
		p.replica, p.expires = -1, now.Add(leaderFor)
	}
}

// looseLocked leaves the partition to the director.
func (r *Reader) looseLocked(p *partition, refresh bool) {
	p.leave()
	p.refresh = p.refresh || refresh
	signal(r.wakeDirector)
}

// failLocked takes in that a partition's request failed: it is tried again after a while,
// reported, or both.
func (r *Reader) failLocked(p *partition, err error, now time.Time) {
	r.stats.Errors++
	p.Failed(now, r.backoff)
	p.backToLeader(now) // whatever is wrong with a follower, the leader knows better (C10)
	v := r.judge(err, p.Failures)
	if v == silence {
		p.leave()
		return
	}
	r.errLog.Warn("fetching failed", "topic", r.cfg.Topic, "partition", p.id, "offset", p.Next,
		"failuresInARow", p.Failures, "error", err)
	switch failure := r.errorLocked(p, err); v {
	case giveUp:
		p.leave()
		p.ended = true
		r.queue.push(block{p: p, version: p.Version, err: failure})
		p.stopped = true
		r.moving--
		r.lastErr = failure
		signal(r.ready)
		return
	case tellOn:
		failure.Passing = true
		r.queue.push(block{p: p, version: p.Version, err: failure})
		signal(r.ready)
	}
	r.looseLocked(p, wire.Classify(err).Has(wire.RefreshMetadata))
}

func (r *Reader) errorLocked(p *partition, err error) *ReadError {
	return &ReadError{Topic: r.cfg.Topic, Partition: p.id, Offset: p.pos, Err: err}
}

// stopLocked makes a partition stand still, and drops what was fetched of it.
func (r *Reader) stopLocked(p *partition, failure *ReadError) {
	p.leave()
	p.Version++
	if !p.stopped {
		p.stopped = true
		r.moving--
	}
	r.lastErr = failure
	r.purgeLocked(p)
}

// seekLocked moves a partition, whatever state it is in.
func (r *Reader) seekLocked(p *partition, offset int64) {
	p.MoveTo(offset)
	p.pos = offset
	if p.stopped {
		r.moving++
	}
	p.stopped, p.ended = false, false
	r.purgeLocked(p)
	if p.src != nil {
		p.asked.round = 0
		signal(p.src.wake)
		return
	}
	signal(r.wakeDirector)
}

// purgeLocked drops what is queued of a partition.
func (r *Reader) purgeLocked(p *partition) {
	r.queue.purge(func(b *block) bool {
		if b.p == p {
			r.batches -= b.batches
			b.buf.release()
		}
		return b.p == p
	})
	r.roomLocked()
}

// roomLocked wakes the sources that wait for room.
func (r *Reader) roomLocked() {
	for _, s := range r.sources {
		if s.full && r.hasRoomLocked() {
			signal(s.wake)
		}
	}
}

// hasRoomLocked says whether more may be fetched. With an empty queue always: a buffer that the
// application holds must not stop the reader.
func (r *Reader) hasRoomLocked() bool {
	return r.queue.n == 0 || r.batches < r.consume.QueueCapacity && r.answers.held.Load() < int64(r.cfg.QueueBytes)
}
