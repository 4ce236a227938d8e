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
//
// One that was revoked is in none of them: nothing refers to it but what is dropped for its version.
type partition struct {
	topicPartition
	assignment int32 // by which the group gave it, never changed; noAssignment without a group
	fetch.Position
	pos      int64 // of the next message to be delivered; negative: not resolved
	posEpoch int32 // of the leader that wrote the message before pos; -1: unknown
	hwm      int64 // high watermark as last seen; -1: not seen
	logStart int64

	src     *source
	ended   bool
	stopped bool
	fetched *fetch.Partition // of the source's session
	refresh bool             // leaders must be asked for before it is tried again

	topicID   [16]byte // as last seen; zero: not known
	epoch     int32    // of the leader; -1: unknown
	lastEpoch int32    // of the leader that wrote the record before Next; -1: unknown
	checked   int32    // the leader epoch under which the log was found to be the one read

	replica int32 // node to read from as the leader said (KIP-392); -1: the leader
	// expires is until when the replica is read from; with the leader, until when it is not asked
	// for another one.
	expires time.Time
}

func newPartition(at assignedAt, assignment int32) *partition {
	p := &partition{
		topicPartition: at.topicPartition, assignment: assignment,
		pos: at.offset, posEpoch: at.leaderEpoch, hwm: -1, logStart: -1,
		replica: -1, epoch: -1, lastEpoch: at.leaderEpoch, checked: -1,
	}
	p.MoveTo(at.offset)
	return p
}

func (p *partition) position() positionAt { return positionAt{p.topicPartition, p.pos, p.posEpoch} }

func (p *partition) lost() bool { return p.src == nil && !p.ended && !p.stopped }

// leave takes the partition from its source.
func (p *partition) leave() {
	if p.src != nil {
		p.src.remove(p)
	}
	p.src, p.fetched = nil, nil
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
	v := r.judge(err, p.Failures, p.Missing.Heard(now, gone(err)))
	if v == silence {
		p.leave()
		return
	}
	r.errLog.Warn("fetching failed", "topic", p.topic, "partition", p.id, "offset", p.Next,
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
		if last := r.queue.lastOf(p); last != nil && last.err != nil {
			last.err = failure // nobody has read of the one before
		} else {
			r.queue.push(block{p: p, version: p.Version, err: failure})
		}
		signal(r.ready)
	}
	r.looseLocked(p, wire.Classify(err).Has(wire.RefreshMetadata))
}

// queueMoveLocked makes a partition's position jump to Next: what was fetched before is delivered
// before that.
func (r *Reader) queueMoveLocked(p *partition) {
	if last := r.queue.lastOf(p); last != nil && last.err == nil && len(last.records) == 0 {
		last.from = p.Next
	} else {
		r.queue.push(block{p: p, version: p.Version, from: p.Next})
	}
	signal(r.ready)
}

func (r *Reader) errorLocked(p *partition, err error) *ReadError {
	return &ReadError{Topic: p.topic, Partition: p.id, Offset: p.pos, Err: err}
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
	r.purgeLocked(func(q *partition) bool { return q == p })
}

// seekLocked moves a partition, whatever state it is in.
func (r *Reader) seekLocked(p *partition, offset int64) {
	p.MoveTo(offset)
	p.pos, p.posEpoch, p.lastEpoch = offset, -1, -1
	if p.stopped {
		r.moving++
	}
	p.stopped, p.ended = false, false
	r.purgeLocked(func(q *partition) bool { return q == p })
	if p.src != nil {
		p.src.changed(p)
		signal(p.src.wake)
		return
	}
	signal(r.wakeDirector)
}

// purgeLocked drops what is queued of some partitions.
func (r *Reader) purgeLocked(of func(*partition) bool) {
	r.queue.purge(func(b *block) bool {
		if !of(b.p) {
			return false
		}
		r.batches -= b.batches
		b.buf.release()
		return true
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
