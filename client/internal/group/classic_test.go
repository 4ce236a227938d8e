package group

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/wire"
)

const coop = assign.CooperativeSticky

func TestAMemberJoinsAndStays(t *testing.T) {
	s := newScene(t, settings(coop, "range"))
	_, join := s.joinSent()
	require.Equal(t, "g", join.Group)
	require.Equal(t, "consumer", join.ProtocolType)
	require.Empty(t, join.MemberID)
	require.Nil(t, join.InstanceID)
	require.EqualValues(t, 30_000, join.SessionTimeoutMillis)
	require.EqualValues(t, 60_000, join.RebalanceTimeoutMillis)
	require.Equal(t, []string{coop, "range"}, []string{join.Protocols[0].Name, join.Protocols[1].Name})

	s = newScene(t, settings("range"))
	s.stable(3, "range", of("t", 0, 1))
	require.Equal(t, Identity{MemberID: "me", Generation: 3}, s.m.Status().Identity)
	for range 3 {
		s.quiet()
		to := s.beatSent()
		s.pass(time.Second)
		s.quiet()
		s.answer(to, beat(nil), nil)
		require.Equal(t, 3*time.Second, s.todo.Wake.Sub(s.now))
	}
}

func TestAMemberIDIsAskedForFirst(t *testing.T) {
	s := newScene(t, settings("range"))
	to, _ := s.joinSent()
	s.answer(to, refusedJoin(wire.ErrMemberIDRequired, "given"), nil)
	_, join := s.joinSent() // at once
	require.Equal(t, "given", join.MemberID)
}

func TestAnEagerMemberGivesUpEverythingBeforeItJoins(t *testing.T) {
	s := newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0, 1))
	s.disown(wire.ErrRebalanceInProgress)
	give := s.reconcile()
	require.Empty(t, give.Hold)
	require.False(t, give.Lost, "its last offsets can be committed")
	require.True(t, s.m.Status().Commits)
	s.quiet()
	s.disown(wire.ErrRebalanceInProgress) // it lives while the application takes its time
	s.quiet()
	s.hold(give)
	to, join := s.joinSent()
	require.Equal(t, "me", join.MemberID)
	require.True(t, s.m.Status().Commits, "until the coordinator has them all")
	require.False(t, s.m.Status().Settled)
	s.pass(20 * time.Second)
	s.quiet() // no heartbeats: that it waits says that it lives
	s.answer(to, joined(2, "me", "leader", "range"), nil)
	require.False(t, s.m.Status().Commits)
}

func TestACooperativeMemberKeepsWhatItHasAndJoinsAgainForWhatItGaveUp(t *testing.T) {
	s := newScene(t, settings(coop))
	s.stable(1, coop, of("t", 0, 1, 2))
	s.disown(wire.ErrRebalanceInProgress)
	require.Nil(t, s.todo.Reconcile, "nothing is given up for joining")
	change := s.follow(2, coop, of("t", 0, 1))
	require.Equal(t, []assign.TopicPartitions{of("t", 0, 1)}, change.Hold)
	s.hold(change)
	require.False(t, s.m.Status().Settled)
	to, join := s.joinSent()
	mine, err := assign.DecodeMember(coop, "me", "", join.Protocols[0].Metadata)
	require.NoError(t, err)
	require.Equal(t, []assign.TopicPartitions{of("t", 0, 1)}, mine.Owned)
	require.EqualValues(t, 2, mine.Generation)
	s.answer(to, joined(3, "me", "leader", coop), nil)
	s.answer(s.sent(), synced(of("t", 0, 1)), nil)
	s.hold(s.reconcile())
	require.True(t, s.m.Status().Settled, "nothing was given up this time")
	s.quiet()
}

func TestAMemberThatOffersAnEagerAssignorIsEager(t *testing.T) {
	s := newScene(t, settings(coop, "range"))
	s.stable(1, coop, of("t", 0))
	s.disown(wire.ErrRebalanceInProgress)
	require.Empty(t, s.reconcile().Hold, "the group may choose range, which gives partitions away at once")
}

func TestStickyIsToldOfWhatWasGivenUp(t *testing.T) {
	s := newScene(t, settings("sticky"))
	s.stable(4, "sticky", of("t", 5))
	s.disown(wire.ErrRebalanceInProgress)
	s.hold(s.reconcile())
	_, join := s.joinSent()
	mine, err := assign.DecodeMember("sticky", "me", "", join.Protocols[0].Metadata)
	require.NoError(t, err)
	require.Equal(t, []assign.TopicPartitions{of("t", 5)}, mine.Owned)
	require.EqualValues(t, 4, mine.Generation)
}

// What errors of the coordinator mean, in each state in which they come.
func TestWhatErrorsMean(t *testing.T) {
	lost := io.ErrUnexpectedEOF
	type want struct {
		fatal  string // the membership ends, with these words
		lost   bool   // what is held belongs to others
		member string // that joins next
		after  time.Duration
	}
	me := want{member: "me", after: 100 * time.Millisecond}
	for _, tc := range []struct {
		name string
		in   string // join, sync, beat
		err  error
		want want
	}{
		{"the coordinator is loading", "join", wire.ErrCoordinatorLoadInProgress, me},
		{"it is another one", "join", wire.ErrNotCoordinator, me},
		{"it is gone", "join", wire.ErrCoordinatorNotAvailable, me},
		{"the connection broke", "join", lost, me},
		{"the group went on", "join", wire.ErrRebalanceInProgress, me},
		{"the session ended while joining", "join", wire.ErrUnknownMemberID, want{lost: true, member: "", after: 100 * time.Millisecond}},
		{"the group is full", "join", wire.ErrGroupMaxSizeReached, want{fatal: "group.max.size"}},
		{"nobody else uses our assignors", "join", wire.ErrInconsistentGroupProtocol, want{fatal: "cooperative-sticky); set consumer.group.balancers"}},
		{"another one has our instance id", "join", wire.ErrFencedInstanceID, want{fatal: "group.instance.id"}},
		{"no permission", "join", wire.ErrGroupAuthorizationFailed, want{fatal: "READ on the group"}},
		{"a session that is too short", "join", wire.ErrInvalidSessionTimeout, want{fatal: "group.min.session.timeout.ms"}},
		{"an error that nobody knows", "join", wire.ErrUnknownServer, want{fatal: "UNKNOWN_SERVER_ERROR"}},
		{"a member joined meanwhile", "sync", wire.ErrRebalanceInProgress, me},
		{"it is another coordinator by now", "sync", wire.ErrNotCoordinator, me},
		{"the connection broke at the sync", "sync", lost, me},
		{"the session ended while syncing", "sync", wire.ErrUnknownMemberID, want{lost: true, member: "", after: 100 * time.Millisecond}},
		{"the generation went by", "sync", wire.ErrIllegalGeneration, want{lost: true, member: "me", after: 100 * time.Millisecond}},
		{"fenced at the sync", "sync", wire.ErrFencedInstanceID, want{fatal: "group.instance.id"}},
		{"a rebalance began", "beat", wire.ErrRebalanceInProgress, want{member: "me"}},
		{"the session ended", "beat", wire.ErrUnknownMemberID, want{lost: true, member: ""}},
		{"the generation is over", "beat", wire.ErrIllegalGeneration, want{lost: true, member: "me"}},
		{"fenced", "beat", wire.ErrFencedInstanceID, want{fatal: "group.instance.id"}},
		{"permission was taken away", "beat", wire.ErrGroupAuthorizationFailed, want{fatal: "READ on the group"}},
	} {
		t.Run(tc.in+": "+tc.name, func(t *testing.T) {
			s := newScene(t, settings(coop))
			s.stable(1, coop, of("t", 0))
			if tc.in == "beat" {
				s.disown(tc.err)
			} else {
				s.disown(wire.ErrRebalanceInProgress)
				to, _ := s.joinSent()
				if tc.in == "sync" {
					s.answer(to, joined(2, "me", "leader", coop), nil)
					to = s.sent()
				}
				s.refuse(to, tc.err)
			}
			if tc.want.fatal != "" {
				require.ErrorContains(t, s.todo.Err, tc.want.fatal)
				require.ErrorIs(t, s.todo.Err, tc.err)
				return
			}
			require.NoError(t, s.todo.Err)
			if tc.want.lost {
				give := s.reconcile()
				require.True(t, give.Lost)
				require.Empty(t, give.Hold)
				require.False(t, s.m.Status().Commits)
				s.hold(give)
			} else {
				require.Nil(t, s.todo.Reconcile)
			}
			if tc.want.after > 0 {
				require.Empty(t, s.todo.Send)
				require.Equal(t, tc.want.after, s.todo.Wake.Sub(s.now))
				s.pass(tc.want.after)
			}
			_, join := s.joinSent()
			require.Equal(t, tc.want.member, join.MemberID)
		})
	}
}

// refuse answers with an error of the coordinator's, or of the connection.
func (s *scene) refuse(to Send, err error) {
	var kafka *wire.KafkaError
	switch _, join := to.Request.(*kmsg.JoinGroupRequest); {
	case !errors.As(err, &kafka):
		s.answer(to, nil, err)
	case join:
		s.answer(to, refusedJoin(err, ""), nil)
	default:
		s.answer(to, refusedSync(err), nil)
	}
}

func TestFailuresInARowWaitLongerAndLonger(t *testing.T) {
	s := newScene(t, settings("range"))
	for n := 1; n < 5; n++ {
		to, _ := s.joinSent()
		s.refuse(to, wire.ErrNotCoordinator)
		require.Equal(t, time.Duration(n)*100*time.Millisecond, s.todo.Wake.Sub(s.now))
		s.pass(time.Duration(n) * 100 * time.Millisecond)
	}
}

func TestHeartbeatsThatFailAreTriedAgainSoon(t *testing.T) {
	s := newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0))
	s.answer(s.beatSent(), nil, io.ErrUnexpectedEOF)
	require.Equal(t, 100*time.Millisecond, s.todo.Wake.Sub(s.now))
	s.pass(100 * time.Millisecond)
	s.answer(s.beatSent(), beat(wire.ErrNotCoordinator), nil)
	require.Equal(t, 200*time.Millisecond, s.todo.Wake.Sub(s.now))
	s.pass(200 * time.Millisecond)
	s.answer(s.beatSent(), beat(nil), nil)
	require.True(t, s.m.Status().Settled, "nobody else can tell the coordinator anything different")
	require.Equal(t, 3*time.Second, s.todo.Wake.Sub(s.now))
}

func TestWhatTheApplicationStillHoldsIsNotForgotten(t *testing.T) {
	for name, tc := range map[string]struct {
		balancer string
		hold     []assign.TopicPartitions
	}{
		"eager: everything is given up":         {"range", nil},
		"cooperative: what it had before stays": {coop, []assign.TopicPartitions{of("t", 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, settings(tc.balancer))
			s.stable(1, tc.balancer, of("t", 0))
			s.disown(wire.ErrRebalanceInProgress)
			if tc.balancer == "range" {
				s.hold(s.reconcile())
			}
			first := s.follow(2, tc.balancer, of("t", 0, 1))
			// The committed offset of partition 1 does not come, and the group rebalances again.
			s.disown(wire.ErrRebalanceInProgress)
			second := s.reconcile()
			require.Equal(t, tc.hold, second.Hold)
			require.False(t, second.Lost)
			s.m.Held(s.now, first.Serial, first.Hold) // too late
			s.poll()
			s.quiet()
			s.hold(second)
			_, join := s.joinSent()
			mine, err := assign.DecodeMember(tc.balancer, "me", "", join.Protocols[0].Metadata)
			require.NoError(t, err)
			require.Equal(t, tc.hold, mine.Owned)
		})
	}
}

func TestAnswersThatComeTooLateAreIgnored(t *testing.T) {
	s := newScene(t, settings(coop))
	s.stable(1, coop, of("t", 0))
	late := s.beatSent()
	s.m.Subscribe(s.now, []string{"t", "u"})
	s.poll()
	to, _ := s.joinSent()
	s.answer(late, beat(wire.ErrUnknownMemberID), nil)
	s.quiet()
	s.answer(to, joined(2, "me", "leader", coop), nil)
	s.answer(to, joined(1, "me", "leader", coop), nil)
	require.EqualValues(t, 2, s.m.generation)
}

func TestCommitsThatAreRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		err    error
		change func(*Identity)
		rejoin bool
		lost   bool
	}{
		{"the generation is over", wire.ErrIllegalGeneration, nil, true, true},
		{"the member is unknown", wire.ErrUnknownMemberID, nil, true, true},
		{"a rebalance began", wire.ErrRebalanceInProgress, nil, true, false},
		{"by who the member is no longer", wire.ErrUnknownMemberID, func(i *Identity) { i.MemberID = "other" }, false, false},
		{"in an older generation", wire.ErrIllegalGeneration, func(i *Identity) { i.Generation-- }, false, false},
		{"the coordinator moved", wire.ErrNotCoordinator, nil, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, settings(coop))
			s.stable(5, coop, of("t", 0))
			who := s.m.Status().Identity
			if tc.change != nil {
				tc.change(&who)
			}
			s.m.Refused(s.now, who, tc.err)
			s.poll()
			require.Equal(t, tc.lost, s.todo.Reconcile != nil)
			require.Equal(t, tc.rejoin, !s.m.Status().Settled)
		})
	}
	s := newScene(t, settings(coop))
	s.stable(5, coop, of("t", 0))
	s.m.Refused(s.now, s.m.Status().Identity, wire.ErrFencedInstanceID)
	s.poll()
	require.ErrorIs(t, s.todo.Err, wire.ErrFencedInstanceID)
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	unreadable := synced()
	unreadable.MemberAssignment = []byte{0, 0, 255, 255, 255, 0}
	for name, tc := range map[string]struct {
		join kmsg.Response
		sync kmsg.Response
		say  string
	}{
		"an assignor that was not offered":  {join: joined(1, "me", "you", "other\nline"), say: `"other line"`},
		"no member id":                      {join: joined(1, "", "you", "range"), say: `member ""`},
		"a generation below none":           {join: joined(-3, "me", "you", "range"), say: "generation -3"},
		"an assignment that cannot be read": {join: joined(1, "me", "you", "range"), sync: unreadable, say: "assignment"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, settings("range"))
			for n := 1; ; n++ {
				to, _ := s.joinSent()
				s.answer(to, tc.join, nil)
				if tc.sync != nil {
					s.answer(s.sent(), tc.sync, nil)
				}
				if n == 3 {
					break
				}
				require.NoError(t, s.todo.Err, "once may be the fault of a connection")
				s.pass(time.Second)
			}
			require.ErrorContains(t, s.todo.Err, tc.say)
			require.ErrorContains(t, s.todo.Err, `group "g"`)
		})
	}
}

func TestLeaving(t *testing.T) {
	s := newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0))
	s.m.Leave(s.now)
	s.poll()
	to := s.sent()
	req := to.Request.(*kmsg.LeaveGroupRequest)
	require.Equal(t, "me", req.MemberID)
	require.Equal(t, "me", req.Members[0].MemberID)
	require.False(t, s.todo.Left)
	s.answer(to, nil, io.EOF)
	require.True(t, s.todo.Left, "whatever the answer")
	s.pass(time.Hour)
	s.quiet()

	s = newScene(t, settings("range"))
	s.m.Leave(s.now) // before it has an id
	s.poll()
	require.True(t, s.todo.Left)

	static := settings("range")
	static.InstanceID = "i"
	s = newScene(t, static)
	_, join := s.joinSent()
	require.Equal(t, "i", *join.InstanceID)
	s = newScene(t, static)
	s.stable(1, "range", of("t", 0))
	require.Equal(t, "i", *s.beatSent().Request.(*kmsg.HeartbeatRequest).InstanceID)
	s.m.Leave(s.now)
	s.poll()
	s.quiet()
	require.True(t, s.todo.Left, "a static member comes back")
}
