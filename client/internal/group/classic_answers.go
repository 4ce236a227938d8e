package group

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/wire"
)

// Answered takes in the outcome of a request; one that nobody waits for any more is ignored.
func (m *Classic) Answered(now time.Time, serial int, resp kmsg.Response, err error) {
	switch {
	case m.err != nil || m.state == left || serial == 0:
	case serial == m.beat:
		m.beat = 0
		m.beaten(now, resp, err)
	case serial == m.request:
		m.request = 0
		switch m.state {
		case joining:
			m.joined(now, resp, err)
		case syncing:
			m.synced(now, resp, err)
		case leaving:
			m.state = left
		}
	}
}

func (m *Classic) joined(now time.Time, answer kmsg.Response, err error) {
	resp, ok := answer.(*kmsg.JoinGroupResponse)
	switch {
	case err != nil:
	case !ok:
		err = fmt.Errorf("answered JoinGroup with %T", answer)
	default:
		err = wire.ErrorFor(resp.ErrorCode)
	}
	if errors.Is(err, wire.ErrMemberIDRequired) && resp.MemberID != "" && resp.MemberID != m.id {
		m.id = resp.MemberID // KIP-394: this was only to get one
		return
	}
	if err == nil {
		err = m.enter(resp)
	}
	if err != nil {
		m.failed(now, "joining", err)
		return
	}
	if m.watch.leads {
		m.state = describing
		return
	}
	m.sendSync(nil)
}

// enter takes over the generation that a JoinGroup has led to.
func (m *Classic) enter(resp *kmsg.JoinGroupResponse) error {
	name := ""
	if resp.Protocol != nil {
		name = *resp.Protocol
	}
	var chosen assign.Balancer
	for _, b := range m.set.Balancers {
		if b.Name() == name {
			chosen = b
		}
	}
	if chosen == nil || resp.MemberID == "" || resp.Generation < 0 {
		return &answerError{fmt.Sprintf("the coordinator chose assignor %q in generation %d for member %q: it was not offered, or that is no generation",
			wire.OneLine(name), resp.Generation, wire.OneLine(resp.MemberID))}
	}
	m.id, m.generation, m.balancer = resp.MemberID, resp.Generation, chosen
	if resp.LeaderID == resp.MemberID {
		m.watch.lead(chosen.Name(), resp.Members, resp.SkipAssignment)
	}
	return nil
}

func (m *Classic) synced(now time.Time, answer kmsg.Response, err error) {
	resp, ok := answer.(*kmsg.SyncGroupResponse)
	switch {
	case err != nil:
	case !ok:
		err = fmt.Errorf("answered SyncGroup with %T", answer)
	default:
		err = wire.ErrorFor(resp.ErrorCode)
	}
	var mine []assign.TopicPartitions
	if err == nil {
		if mine, err = assign.DecodeAssignment(resp.MemberAssignment); err != nil {
			err = &answerError{err.Error()}
		}
	}
	if err != nil {
		m.failed(now, "getting an assignment in", err)
		return
	}
	m.before, m.beforeIn = mine, m.generation
	m.state = adopting
	m.beatAt = now.Add(m.set.Heartbeat)
	m.reconcile(Reconcile{Hold: mine, Adopt: true})
}

// failed takes in that joining or getting an assignment went wrong. what is for the error.
func (m *Classic) failed(now time.Time, what string, err error) {
	var bad *answerError
	class := wire.Classify(err)
	m.failures++
	if errors.As(err, &bad) {
		m.nonsense++
	}
	m.retryAt = now.Add(m.set.Backoff(m.failures))
	switch {
	case errors.Is(err, wire.ErrUnknownMemberID):
		m.lose(now, true)
	case errors.Is(err, wire.ErrIllegalGeneration):
		m.lose(now, false)
	case errors.Is(err, wire.ErrRebalanceInProgress), errors.Is(err, wire.ErrMemberIDRequired):
		m.rejoin(now, false)
	case errors.As(err, &bad) && m.nonsense < answerTries, class.Has(wire.Retriable):
		m.rejoin(now, false)
	default:
		m.fail(what, err)
	}
}

// answerTries is how many answers in a row may make no sense before that ends the membership.
const answerTries = 3

// answerError is an answer that can be read and makes no sense.
type answerError struct{ text string }

func (e *answerError) Error() string { return e.text }

func (m *Classic) beaten(now time.Time, answer kmsg.Response, err error) {
	resp, ok := answer.(*kmsg.HeartbeatResponse)
	switch {
	case err != nil:
	case !ok:
		err = fmt.Errorf("answered Heartbeat with %T", answer)
	default:
		err = wire.ErrorFor(resp.ErrorCode)
	}
	m.beatAt = now.Add(m.set.Heartbeat)
	if err == nil {
		m.beatFailures = 0
		return
	}
	if m.disowned(now, err) {
		return
	}
	m.beatFailures++
	if !wire.Classify(err).Has(wire.Retriable) {
		m.fail("being a member of", err)
		return
	}
	m.beatAt = now.Add(min(m.set.Backoff(m.beatFailures), m.set.Heartbeat))
}

// disowned takes in errors that say that the member must join again.
func (m *Classic) disowned(now time.Time, err error) bool {
	switch {
	case errors.Is(err, wire.ErrRebalanceInProgress):
		m.wantRejoin(now)
	case errors.Is(err, wire.ErrUnknownMemberID):
		m.lose(now, true)
	case errors.Is(err, wire.ErrIllegalGeneration):
		m.lose(now, false)
	default:
		return false
	}
	return true
}

// Refused takes in that a commit was refused, if it was made by who this member still is.
func (m *Classic) Refused(now time.Time, who Identity, err error) {
	if m.err != nil || !m.beats() || who.Generation != m.generation || who.MemberID != m.id {
		return
	}
	if !m.disowned(now, err) && errors.Is(err, wire.ErrFencedInstanceID) {
		m.fail("being a member of", err)
	}
}

// fail ends the membership for good.
func (m *Classic) fail(what string, err error) {
	hint := ""
	switch {
	case errors.Is(err, wire.ErrInconsistentGroupProtocol):
		var names []string
		for _, b := range m.set.Balancers {
			names = append(names, b.Name())
		}
		hint = fmt.Sprintf(" (offered: %s); set consumer.group.balancers to one that the others use", strings.Join(names, ", "))
	case errors.Is(err, wire.ErrGroupAuthorizationFailed):
		hint = "; READ on the group is needed"
	case errors.Is(err, wire.ErrFencedInstanceID):
		hint = fmt.Sprintf(" (%q); give every member one of its own", m.set.InstanceID)
	}
	m.err = fmt.Errorf("%s group %q: %w%s", what, m.set.Group, err, hint)
}
