package group

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/wire"
)

// Topics that change while an assignment is waited for are joined with as soon as it is there.
func TestTopicsThatChangeWhileSyncing(t *testing.T) {
	s := newScene(t, settings("range"))
	to, _ := s.joinSent()
	s.answer(to, joined(1, "me", "leader", "range"), nil)
	to = s.sent()
	s.m.Subscribe(s.now, []string{"u"})
	s.poll()
	s.quiet()
	s.answer(to, synced(of("t", 0)), nil)
	s.hold(s.reconcile())
	require.False(t, s.m.Status().Settled)
	s.hold(s.reconcile())
	_, join := s.joinSent()
	mine, err := assign.DecodeMember("range", "me", "", join.Protocols[0].Metadata)
	require.NoError(t, err)
	require.Equal(t, []string{"u"}, mine.Topics)
}

func TestAMemberThatJoinsAgainDoesNotLead(t *testing.T) {
	set := settings("range")
	s := newScene(t, set)
	d := s.lead(1, other("me", set.Balancers[0], "t"))
	s.described(d, map[string]int32{"t": 1})
	s.answer(s.sent(), synced(of("t", 0)), nil)
	s.hold(s.reconcile())
	require.True(t, s.m.Status().Leads)
	s.disown(wire.ErrRebalanceInProgress)
	require.False(t, s.m.Status().Leads, "others may lead now")
	s.hold(s.reconcile())
	s.stable(2, "range", of("t", 0))
	require.False(t, s.m.Status().Leads)
}

// What is being given up when the group rebalances again stays given up.
func TestWhatIsBeingGivenUpIsNotKept(t *testing.T) {
	s := newScene(t, settings(coop))
	s.stable(1, coop, of("t", 0, 1))
	s.disown(wire.ErrRebalanceInProgress)
	s.follow(2, coop, of("t", 0)) // under way
	s.disown(wire.ErrRebalanceInProgress)
	second := s.reconcile()
	require.Equal(t, []assign.TopicPartitions{of("t", 0)}, second.Hold)
	s.hold(second)
	s.joinSent()
}

func TestFailuresAreForgottenOnceTheMemberIsStable(t *testing.T) {
	s := newScene(t, settings(coop))
	for n := range 2 { // nonsense, too, is counted in a row
		for range 2 {
			to, _ := s.joinSent()
			s.answer(to, joined(1, "", "leader", coop), nil)
			require.NoError(t, s.todo.Err)
			s.pass(time.Second)
		}
		s.stable(int32(n)+1, coop, of("t", 0))
		s.disown(wire.ErrRebalanceInProgress)
	}
	to, _ := s.joinSent()
	s.refuse(to, wire.ErrNotCoordinator)
	require.Equal(t, 100*time.Millisecond, s.todo.Wake.Sub(s.now), "the first one in a row")

	s = newScene(t, settings(coop))
	s.stable(1, coop, of("t", 0))
	for range 3 {
		s.answer(s.beatSent(), nil, io.ErrUnexpectedEOF)
		require.Equal(t, 100*time.Millisecond, s.todo.Wake.Sub(s.now), "the first one in a row")
		s.pass(100 * time.Millisecond)
		s.answer(s.beatSent(), beat(nil), nil)
	}
}

func TestLeavingDropsWhatWasNotDoneYet(t *testing.T) {
	s := newScene(t, settings("range"))
	to, _ := s.joinSent()
	s.answer(to, joined(1, "me", "leader", "range"), nil)
	s.m.Answered(s.now, s.sent().Serial, synced(of("t", 0)), nil) // not looked at
	s.m.Leave(s.now)
	s.poll()
	require.Nil(t, s.todo.Reconcile)
	s.answer(s.leaveSent("me"), kmsg.NewPtrLeaveGroupResponse(), nil)
	require.True(t, s.todo.Left)

	s = newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0))
	s.disown(wire.ErrGroupAuthorizationFailed)
	require.Error(t, s.todo.Err)
	s.m.Leave(s.now)
	s.poll()
	require.NoError(t, s.todo.Err, "what ended it does not keep it from leaving")
	s.answer(s.leaveSent("me"), kmsg.NewPtrLeaveGroupResponse(), nil)
	require.True(t, s.todo.Left)
}

func TestAnswersToNothing(t *testing.T) {
	s := newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0))
	s.m.Answered(s.now, 0, beat(wire.ErrUnknownMemberID), nil)
	s.poll()
	s.quiet()
	require.True(t, s.m.Status().Settled)

	s = newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0))
	to := s.beatSent()
	s.m.Refused(s.now, s.m.Status().Identity, wire.ErrFencedInstanceID)
	s.answer(to, beat(wire.ErrUnknownMemberID), nil)
	require.ErrorIs(t, s.todo.Err, wire.ErrFencedInstanceID, "the first error stays")
	require.Nil(t, s.todo.Reconcile)
}

// A coordinator that asks for a member id again though it gave one is asked again in its time.
func TestAMemberIDThatIsAskedForAgain(t *testing.T) {
	s := newScene(t, settings("range"))
	for n := range 3 {
		to, join := s.joinSent()
		require.Equal(t, n > 0, join.MemberID == "given")
		s.answer(to, refusedJoin(wire.ErrMemberIDRequired, "given"), nil)
		if n == 0 {
			continue // at once
		}
		s.quiet()
		require.Equal(t, time.Duration(n)*100*time.Millisecond, s.todo.Wake.Sub(s.now))
		s.pass(time.Duration(n) * 100 * time.Millisecond)
	}
}

// A commit refused while the member joins says nothing that it does not know.
func TestCommitsThatAreRefusedWhileJoining(t *testing.T) {
	for _, err := range []error{wire.ErrRebalanceInProgress, wire.ErrUnknownMemberID} {
		s := newScene(t, settings(coop))
		s.stable(1, coop, of("t", 0))
		s.disown(wire.ErrRebalanceInProgress)
		who := s.m.Status().Identity
		to, _ := s.joinSent()
		s.m.Refused(s.now, who, err)
		s.poll()
		s.quiet()
		s.answer(to, joined(2, "me", "leader", coop), nil)
		s.answer(s.sent(), synced(of("t", 0)), nil)
		s.hold(s.reconcile())
		require.True(t, s.m.Status().Settled)
	}
}

func TestHowLongAnswersMayTake(t *testing.T) {
	set := settings("range")
	set.Session = 2 * time.Minute // longer than the rebalance timeout of a minute
	s := newScene(t, set)
	to, _ := s.joinSent()
	require.Equal(t, 2*time.Minute+answerSlack, to.Timeout, "who died is waited for until its session ends")
	s.answer(to, joined(1, "me", "leader", "range"), nil)
	to = s.sent()
	require.True(t, to.Long)
	require.Equal(t, time.Minute+answerSlack, to.Timeout)
	s.answer(to, synced(of("t", 0)), nil)
	s.hold(s.reconcile())
	to = s.beatSent()
	require.False(t, to.Long)
	require.Equal(t, 40*time.Second, to.Timeout, "a third of the session")
}

func TestAMemberThatIsNobodyDoesNotBeat(t *testing.T) {
	s := newScene(t, settings(coop))
	s.stable(1, coop, of("t", 0))
	s.disown(wire.ErrUnknownMemberID)
	give := s.reconcile()
	s.pass(time.Minute)
	s.quiet()
	s.hold(give)
	s.joinSent()
}

func TestTheLeaderLooksAgainSoonForATopicThatIsMissing(t *testing.T) {
	set := settings("range")
	set.Heartbeat, set.Session = time.Hour, 2*time.Hour
	s := newScene(t, set)
	d := s.lead(1, other("me", set.Balancers[0], "t"))
	s.described(d, map[string]int32{"t": 1})
	s.answer(s.sent(), synced(of("t", 0)), nil)
	s.hold(s.reconcile())
	for range 3 { // looks that fail say nothing
		s.pass(s.todo.Wake.Sub(s.now))
		s.m.Described(s.now, s.describe().Serial, nil, io.ErrUnexpectedEOF)
		s.poll()
		require.True(t, s.m.Status().Settled)
		require.Equal(t, set.Watch, s.todo.Wake.Sub(s.now))
	}
	s.pass(set.Watch)
	s.described(s.describe(), nil)
	require.True(t, s.m.Status().Settled)
	require.Equal(t, time.Second, s.todo.Wake.Sub(s.now))
}
