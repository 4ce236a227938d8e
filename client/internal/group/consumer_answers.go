package group

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// Bounds on the heartbeat interval that a coordinator asks for.
const (
	shortestBeat = 10 * time.Millisecond
	longestBeat  = time.Minute
)

// Answered takes in the outcome of a heartbeat; one that nobody waits for any more is ignored.
func (m *Consumer) Answered(now time.Time, serial int, answer kmsg.Response, err error) {
	if m.err != nil || serial == 0 || serial != m.request {
		return
	}
	m.request = 0
	if m.state == leaving {
		m.state = left
		return
	}
	resp, ok := answer.(*kmsg.ConsumerGroupHeartbeatResponse)
	var target map[[16]byte][]int32
	switch {
	case err != nil:
	case !ok:
		err = fmt.Errorf("answered ConsumerGroupHeartbeat with %T", answer)
	default:
		if err = wire.ErrorWith(resp.ErrorCode, resp.ErrorMessage); err == nil {
			target, err = assignmentIn(resp)
		}
	}
	if err != nil {
		m.failed(now, err)
		return
	}
	m.beaten(now, resp, target)
}

// beaten takes a good answer in; target is nil when it says nothing of the assignment.
func (m *Consumer) beaten(now time.Time, resp *kmsg.ConsumerGroupHeartbeatResponse, target map[[16]byte][]int32) {
	m.failures, m.nonsense, m.waitUntil = 0, 0, time.Time{}
	again := m.full && !m.sentFull // somebody wants more told than this heartbeat did
	m.full = again
	if m.saying != 0 || m.state == joining {
		m.said = m.saying
	}
	m.epoch = resp.MemberEpoch
	m.interval = min(max(time.Duration(resp.HeartbeatIntervalMillis)*time.Millisecond, shortestBeat), longestBeat)
	m.beatAt = now.Add(m.interval)
	if again {
		m.beatAt = now
	}
	if m.state == joining {
		m.state = stable
	} else {
		m.fences = 0
	}
	if target != nil {
		m.adopt(now, target)
	}
}

// assignmentIn reads an answer's assignment, nil when there is none in it.
func assignmentIn(resp *kmsg.ConsumerGroupHeartbeatResponse) (map[[16]byte][]int32, error) {
	if resp.MemberEpoch <= 0 {
		return nil, &answerError{fmt.Sprintf("the coordinator answered with member epoch %d", resp.MemberEpoch)}
	}
	if resp.Assignment == nil {
		return nil, nil
	}
	target := make(map[[16]byte][]int32, len(resp.Assignment.Topics))
	for _, t := range resp.Assignment.Topics {
		if t.TopicID == [16]byte{} {
			return nil, &answerError{"the coordinator assigned partitions of a topic without id"}
		}
		partitions := slices.Clone(target[t.TopicID])
		for _, p := range t.Partitions {
			if p < 0 {
				return nil, &answerError{fmt.Sprintf("the coordinator assigned partition %d of topic %x", p, t.TopicID)}
			}
			partitions = append(partitions, p)
		}
		if len(partitions) > 0 {
			slices.Sort(partitions)
			target[t.TopicID] = slices.Compact(partitions)
		}
	}
	return target, nil
}

// failed takes in that a heartbeat went wrong: nothing is known any more of what the coordinator
// has been told.
func (m *Consumer) failed(now time.Time, err error) {
	m.full = true
	m.failures++
	var bad *answerError
	if errors.As(err, &bad) {
		m.nonsense++
	}
	m.beatAt = now.Add(m.set.Backoff(m.failures))
	if m.state == stable {
		m.beatAt = now.Add(min(m.set.Backoff(m.failures), max(m.interval, shortestBeat)))
	}
	switch {
	case errors.Is(err, wire.ErrUnreleasedInstanceID):
		if m.waitUntil.IsZero() {
			m.waitUntil = now.Add(m.set.Patience)
		}
		if !now.Before(m.waitUntil) {
			m.fail(err)
		}
	case m.disowned(now, err), errors.As(err, &bad) && m.nonsense < answerTries:
	case !wire.Classify(err).Has(wire.Retriable):
		m.fail(err)
	}
}

// disowned takes in errors that say that the member is none any more.
func (m *Consumer) disowned(now time.Time, err error) bool {
	if !errors.Is(err, wire.ErrFencedMemberEpoch) && !errors.Is(err, wire.ErrUnknownMemberID) {
		return false
	}
	m.failures = 0
	m.lose(now)
	return true
}

// Refused takes in that a commit was refused, if it was made by who this member still is: as one
// that has a later epoch by now, which a lost answer told of, or as one that is not a member.
func (m *Consumer) Refused(now time.Time, who Identity, err error) {
	if m.err != nil || m.state != stable || who.Generation != m.epoch {
		return
	}
	switch {
	case errors.Is(err, wire.ErrStaleMemberEpoch):
		m.full, m.beatAt = true, now
	case m.disowned(now, err):
	case errors.Is(err, wire.ErrFencedInstanceID):
		m.fail(err)
	}
}

// fail ends the membership for good.
func (m *Consumer) fail(err error) {
	hint := ""
	switch {
	case errors.Is(err, wire.ErrGroupIDNotFound), errors.Is(err, wire.ErrInconsistentGroupProtocol):
		hint = "; the group's members use the classic protocol: set consumer.group.protocol=classic, or let them leave first"
	case errors.Is(err, wire.ErrGroupAuthorizationFailed):
		hint = "; READ on the group is needed"
	case errors.Is(err, wire.ErrTopicAuthorizationFailed):
		hint = "; DESCRIBE and READ on every topic subscribed to are needed"
	case errors.Is(err, wire.ErrFencedInstanceID), errors.Is(err, wire.ErrUnreleasedInstanceID):
		hint = fmt.Sprintf(" (%q); give every member one of its own", m.set.InstanceID)
	case errors.Is(err, wire.ErrUnsupportedAssignor):
		hint = fmt.Sprintf(" (%q); the broker setting group.consumer.assignors lists them", m.set.Assignor)
	case errors.Is(err, wire.ErrInvalidRegularExpression):
		hint = fmt.Sprintf(" (%q)", m.set.Pattern)
	}
	m.err = fmt.Errorf("being a member of group %q: %w%s", m.set.Group, err, hint)
}
