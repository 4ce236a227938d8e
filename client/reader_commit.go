package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/wire"
)

// StaleCommitError says that offsets were not committed, because the assignment under which the
// messages were read has ended: whoever holds the partitions now gets them again, from the last
// commit on.
type StaleCommitError struct {
	Partitions []TopicPartition // whose offsets were not committed
}

func (e *StaleCommitError) Error() string {
	p := e.Partitions[0]
	s := fmt.Sprintf("not committed: topic %q partition %d", p.Topic, p.Partition)
	if n := len(e.Partitions) - 1; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s + ": the group has assigned it anew since the messages were read, and they will be read again by who holds it now"
}

// CommitMessages says that everything up to the messages given has been dealt with, in each of
// their partitions: after a restart or a rebalance the group goes on behind them. Only what is
// given here (or read by ReadMessage) is ever committed, and never an offset before an earlier one,
// unless the log was cut back to before it.
//
// With a CommitInterval of 0 it returns when the coordinator has the offsets, after retries where
// they help; concurrent calls share requests. Otherwise it returns at once, the offsets are
// committed on the interval, and at the latest when the partition is given up or the reader closes.
//
// Messages whose partition was assigned anew since they were read are not committed: a
// *StaleCommitError, or, with an interval, ReaderStats.StaleCommits counts them. Other errors:
// io.ErrClosedPipe after Close, ctx's, ErrNeedsGroup without a group, what ended the membership, or
// the coordinator's last answer.
func (r *Reader) CommitMessages(ctx context.Context, msgs ...Message) error {
	if r.group == nil {
		return ErrNeedsGroup
	}
	return r.group.commit(ctx, msgs)
}

// ReadMessage is FetchMessage which, in a group, also commits the message, as CommitMessages does.
// A message whose partition is assigned anew before it is committed is not returned: it belongs to
// who holds the partition then. When a commit fails, the message comes with the error.
func (r *Reader) ReadMessage(ctx context.Context) (Message, error) {
	for {
		m, err := r.FetchMessage(ctx)
		if err != nil || r.group == nil {
			return m, err
		}
		one := [1]Message{m}
		marks, stale, err := r.group.mark(one[:])
		switch {
		case err != nil:
			return m, err
		case len(stale) > 0:
			continue
		case r.group.set.CommitInterval > 0:
			return m, nil
		}
		err = r.group.settle(ctx, marks, nil)
		var late *StaleCommitError
		if errors.As(err, &late) {
			continue
		}
		return m, err
	}
}

func (m *membership) commit(ctx context.Context, msgs []Message) error {
	marks, stale, err := m.mark(msgs)
	if err != nil {
		return err
	}
	if m.set.CommitInterval > 0 {
		return ctx.Err()
	}
	return m.settle(ctx, marks, stale)
}

// mark notes what has been dealt with. It returns the marks of this call, and the partitions of
// those that are stale.
func (m *membership) mark(msgs []Message) (marks []group.Offset, stale []TopicPartition, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, nil, m.whyLocked()
	}
	late := int64(0)
	for i := range msgs {
		msg := &msgs[i]
		if i+1 < len(msgs) && follows(msg, &msgs[i+1]) {
			continue
		}
		o := group.Offset{
			Partition: group.Partition{Topic: msg.Topic, ID: msg.Partition},
			Tag:       msg.assignment, Offset: msg.Offset + 1, Epoch: msg.LeaderEpoch,
		}
		if m.book.Mark(o) {
			marks = append(marks, o)
			continue
		}
		late++
		if at := (TopicPartition{msg.Topic, msg.Partition}); !slices.Contains(stale, at) {
			stale = append(stale, at)
		}
	}
	if late > 0 {
		m.r.count(func(st *ReaderStats) { st.StaleCommits += late })
	}
	return marks, stale, nil
}

// follows says that a mark of next covers one of msg.
func follows(msg, next *Message) bool {
	return msg.Partition == next.Partition && msg.assignment == next.assignment && msg.Offset <= next.Offset && msg.Topic == next.Topic
}

// settle waits until the coordinator has been told of marks. stale are partitions that the caller
// has to be told of beside those that turn out to be.
func (m *membership) settle(ctx context.Context, marks []group.Offset, stale []TopicPartition) error {
	var err error
	if len(marks) > 0 {
		want := map[group.Partition]bool{}
		for _, o := range marks {
			want[o.Partition] = true
		}
		ctx, cancel := context.WithTimeout(ctx, m.patience())
		defer cancel()
		err = m.flush(ctx, func(p group.Partition) bool { return want[p] }, true)
		if err != nil && !errors.Is(err, errNoGeneration) {
			return err
		}
	}
	late := m.late(marks)
	if len(late) > 0 {
		m.r.count(func(st *ReaderStats) { st.StaleCommits += int64(len(late)) })
		if why := m.why(); why != nil { // the partitions were given up for it
			return why
		}
	}
	if stale = append(stale, late...); len(stale) > 0 {
		return &StaleCommitError{Partitions: stale}
	}
	return err
}

// late are the partitions of marks whose assignment has ended, or is about to, without a commit.
func (m *membership) late(marks []group.Offset) (late []TopicPartition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range marks {
		fate := m.book.Fate(o)
		if fate == group.Stale || fate == group.Waiting && m.ending[o.Partition] {
			late = append(late, TopicPartition{o.Topic, o.ID})
		}
	}
	return late
}

// patience bounds a commit: a rebalance may come in between, and retries.
func (m *membership) patience() time.Duration {
	return m.set.RebalanceTimeout + m.r.client.cfg.Admin.Timeout
}

// why is why nothing can be committed any more; nil: there may still be something.
func (m *membership) why() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.whyLocked()
}

// whyLocked is why, with mu held. Once the reader is closed it does not matter what had ended the
// membership before; until it has left, OnRevoked may still commit.
func (m *membership) whyLocked() error {
	if m.err == nil {
		return nil
	}
	select {
	case <-m.closing:
		return io.ErrClosedPipe
	default:
	}
	if errors.Is(m.err, errLeft) { // with the client
		return io.ErrClosedPipe
	}
	return m.err
}

// over is why nothing can be committed any more once life has ended.
func (m *membership) over() error {
	if m.r.client.Closed() {
		return ErrClosed
	}
	return io.ErrClosedPipe
}

// flush tells the coordinator of everything that is due, and says how that went for the partitions
// that want names (nil: for all). Patient, it waits for the member to be in a generation again
// where the one it committed in has ended, and retries what may pass.
func (m *membership) flush(ctx context.Context, want func(group.Partition) bool, patient bool) error {
	var refused *group.Identity
	var missing fetch.Missing
	for failures := 1; ; failures++ {
		who, err := m.identity(ctx, want, refused, patient)
		if err != nil || who == nil {
			return err
		}
		err = m.commitDue(ctx, *who, want)
		class := wire.Classify(err)
		switch {
		case err == nil:
			return nil
		case m.life.Err() != nil:
			return m.over()
		case errors.Is(err, wire.ErrStaleMemberEpoch):
			// The member is about to learn its epoch, with which it may still commit the same.
			m.refused(ctx, *who, err)
		case class.Has(wire.Rejoin):
			m.refused(ctx, *who, err)
			if !patient {
				return err
			}
			refused = who
			continue
		case !class.Has(wire.Retriable), errors.Is(err, errLeftOut) && failures >= suspectTries,
			missing.Heard(time.Now(), errors.Is(err, wire.ErrUnknownTopicOrPartition)) >= m.r.client.cfg.Metadata.Timeout:
			return err
		}
		if over := m.r.client.sleep(ctx, m.r.client.adminWait(failures)); over != nil {
			return fmt.Errorf("%w (%w)", err, over)
		}
	}
}

// identity waits until something can be committed, by another identity than refused, and returns
// whom as; nil when nothing is due.
func (m *membership) identity(ctx context.Context, want func(group.Partition) bool, refused *group.Identity, patient bool) (*group.Identity, error) {
	for {
		m.mu.Lock()
		s, changed, due := m.status, m.changed, m.book.Due(nil, want)
		ends := slices.ContainsFunc(due, func(o group.Offset) bool { return m.ending[o.Partition] })
		var err error
		if m.err != nil {
			err = m.whyLocked()
		}
		m.mu.Unlock()
		switch {
		case len(due) == 0:
			return nil, nil
		case err != nil:
			return nil, err
		case s.Commits && (refused == nil || *refused != s.Identity):
			return &s.Identity, nil
		case !patient || ends:
			return nil, errNoGeneration
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("committing offsets of group %q, which is rebalancing: %w", m.r.cfg.GroupID, ctx.Err())
		case <-m.life.Done():
			return nil, m.over()
		}
	}
}

// errNoGeneration is why a commit cannot be made and will not be: the partition is being given up,
// and the generation that could commit it has ended.
var errNoGeneration = errors.New("the member is in no generation of its group now")

// refused tells the member that a commit was refused, unless it is leaving anyway.
func (m *membership) refused(ctx context.Context, who group.Identity, err error) {
	select {
	case m.events <- func(now time.Time) { m.member.Refused(now, who, err) }:
	case <-m.life.Done():
	case <-ctx.Done():
	}
}

// commitPeriodically commits on the interval.
func (m *membership) commitPeriodically() {
	t := time.NewTicker(m.set.CommitInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-m.life.Done():
			return
		}
		ctx, cancel := context.WithTimeout(m.life, m.patience())
		if err := m.flush(ctx, nil, true); err != nil && m.life.Err() == nil {
			m.commitFailed(err) // it stays due
		}
		cancel()
	}
}

// drain tells the coordinator of what is due of partitions that are about to be given up.
func (m *membership) drain(ctx context.Context, parts []group.Partition, patient bool) {
	ctx, cancel := context.WithTimeout(ctx, m.lastWait())
	defer cancel()
	err := m.flush(ctx, func(p group.Partition) bool { return slices.Contains(parts, p) }, patient)
	if err != nil && m.life.Err() == nil {
		m.commitFailed(err)
	}
}

// commitStarts commits where partitions start of which the group had committed nothing, so that it
// goes on there when nothing else is committed before the next rebalance. Reading does not wait for
// it for long: what fails stays due.
func (m *membership) commitStarts(ctx context.Context, starts []startAt) {
	if !slices.ContainsFunc(starts, func(s startAt) bool { return s.committed < 0 && s.offset >= 0 }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	if err := m.flush(ctx, nil, false); err != nil && ctx.Err() == nil {
		m.commitFailed(err)
	}
}

func (m *membership) commitFailed(err error) {
	m.r.count(func(st *ReaderStats) { st.CommitErrors++ })
	m.r.errLog.Warn("commit failed", "group", m.r.cfg.GroupID, "error", err)
}

// cutLocked notes that a partition's log was cut back to before what has been delivered of it, so that
// messages with lower offsets come next, which a group has to commit: elsewhere offsets never go
// backwards.
func (r *Reader) cutLocked(p *partition) {
	if r.group != nil {
		r.cut = append(r.cut, p)
		r.anyCut.Store(true)
	}
}

// rewindMarks lets the marks of what cutLocked noted be lower than before. The consumer calls it before
// it delivers anything of the cut log, with take and no other lock held.
func (r *Reader) rewindMarks() {
	if !r.anyCut.Load() {
		return
	}
	r.mu.Lock()
	cut := r.cut
	r.cut = nil
	r.anyCut.Store(false)
	r.mu.Unlock()
	r.group.mu.Lock()
	defer r.group.mu.Unlock()
	for _, p := range cut {
		r.group.book.Rewind(group.Partition{Topic: p.topic, ID: p.id}, p.assignment)
	}
}
