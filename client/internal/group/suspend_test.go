package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/wire"
)

func (s *scene) suspend() {
	s.m.Suspend(s.now)
	s.poll()
}

func (s *scene) resume() {
	s.m.Resume(s.now)
	s.poll()
}

func (s *scene) leaveSent(id string) Send {
	s.t.Helper()
	to := s.sent()
	req, ok := to.Request.(*kmsg.LeaveGroupRequest)
	require.True(s.t, ok, "%T was sent", to.Request)
	require.Equal(s.t, id, req.MemberID)
	return to
}

func TestAMemberThatIsSuspendedLeavesAndComesBackAsSomebodyNew(t *testing.T) {
	s := newScene(t, settings(coop))
	s.stable(1, coop, of("t", 0, 1))
	s.suspend()
	to := s.leaveSent("me")
	give := s.reconcile()
	require.Empty(t, give.Hold)
	require.True(t, give.Lost, "others have it as soon as the coordinator hears")
	require.EqualValues(t, -1, give.Generation)
	require.False(t, s.m.Status().Commits)
	require.True(t, s.m.Status().Settled, "it waits for no rebalance")
	s.suspend()
	s.answer(to, kmsg.NewPtrLeaveGroupResponse(), nil)
	s.pass(time.Hour)
	s.quiet()
	s.m.Subscribe(s.now, []string{"t", "u"})
	s.hold(give)
	s.pass(time.Hour)
	s.quiet()
	require.Zero(t, s.todo.Wake)
	s.resume()
	require.False(t, s.m.Status().Settled)
	_, join := s.joinSent() // at once
	require.Empty(t, join.MemberID)
	mine, err := assign.DecodeMember(coop, "", "", join.Protocols[0].Metadata)
	require.NoError(t, err)
	require.Empty(t, mine.Owned)
	require.Equal(t, []string{"t", "u"}, mine.Topics)
	s.resume()
	s.quiet()
}

func TestAMemberThatComesBackJoinsWhenItHasGivenUp(t *testing.T) {
	s := newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0))
	s.suspend()
	s.leaveSent("me")
	give := s.reconcile()
	s.resume()
	s.pass(time.Minute)
	s.quiet() // neither a join nor a heartbeat: it is nobody
	s.hold(give)
	s.joinSent()
}

func TestAMemberIsSuspendedWhereverItStands(t *testing.T) {
	s := newScene(t, settings("range"))
	join, _ := s.joinSent()
	s.suspend()
	s.quiet() // no id: nobody to leave
	s.answer(join, joined(1, "me", "leader", "range"), nil)
	s.pass(time.Minute)
	s.quiet()
	s.resume()
	s.stable(2, "range", of("t", 0))

	s = newScene(t, settings("range"))
	s.follow(1, "range", of("t", 0)) // being taken over
	s.suspend()
	s.leaveSent("me")
	require.True(t, s.reconcile().Lost, "what may have been begun with")

	s = newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0))
	s.disown(wire.ErrRebalanceInProgress)
	s.reconcile()
	s.suspend()
	s.leaveSent("me")
	require.True(t, s.reconcile().Lost, "what is being given up others have now")

	s = newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0))
	s.disown(wire.ErrGroupAuthorizationFailed)
	require.Error(t, s.todo.Err)
	s.suspend()
	require.Empty(t, s.todo.Send, "it has ended")

	static := settings("range")
	static.InstanceID = "i"
	s = newScene(t, static)
	s.stable(1, "range", of("t", 0))
	s.suspend()
	require.Empty(t, s.todo.Send, "its place is kept until its session ends")
	s.hold(s.reconcile())
	s.pass(time.Minute)
	s.quiet()

	m := NewClassic(settings("range"))
	m.Suspend(s.now)
	m.Resume(s.now)
	require.Empty(t, m.Poll(s.now).Send, "before it has topics")

	s = newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0))
	s.suspend()
	s.leaveSent("me")
	s.reconcile()
	s.m.Leave(s.now)
	s.poll()
	require.Empty(t, s.todo.Send, "once is enough")
	require.True(t, s.todo.Left)
	s.resume()
	s.suspend()
	require.Empty(t, s.todo.Send, "nor does it come back")
}

func TestConsumerIsSuspended(t *testing.T) {
	s := member(t, nil)
	s.m.Suspend(s.now)
	s.want("beat me@-1 | lost hold[]@-1")
	require.True(t, s.m.Status().Settled)
	require.False(t, s.m.Status().Commits)
	s.m.Answered(s.now, s.sent, kmsg.NewPtrConsumerGroupHeartbeatResponse(), nil)
	s.m.Suspend(s.now)
	s.wait(time.Hour)
	s.want("")
	s.held("")
	s.want("")
	require.Zero(t, s.last.Wake)
	s.m.Resume(s.now)
	s.want("beat me@0 timeout=30000 topics=t1 owns[]")
	s.answer(7, "t1:0")
	require.Equal(t, "describe 1", s.poll())
	s.m.Resume(s.now)
	s.want("")
}

func TestConsumerIsSuspendedWhereverItStands(t *testing.T) {
	s := member(t, nil)
	s.m.Suspend(s.now)
	s.poll()
	s.m.Resume(s.now)
	s.wait(time.Minute)
	s.want("") // what it held is not given up yet
	s.held("")
	s.want("beat me@0 timeout=30000 topics=t1 owns[]")

	s = newBeats(t, nil)
	s.m.Subscribe(s.now, nil)
	s.poll()
	join := s.sent
	s.m.Suspend(s.now)
	s.want("beat me@-1") // the join under way may make it a member
	s.m.Answered(s.now, join, kmsg.NewPtrConsumerGroupHeartbeatResponse(), nil)
	s.want("")

	s = newBeats(t, nil)
	s.m.Suspend(s.now)
	s.m.Resume(s.now)
	s.want("")

	s = member(t, func(set *ConsumerSettings) { set.InstanceID = "i1" })
	s.m.Suspend(s.now)
	s.want("beat me@-2 instance=i1 | lost hold[]@-1")
	s.m.Leave(s.now)
	s.want("left")
	s.m.Suspend(s.now)
	s.m.Resume(s.now)
	s.want("left")

	s = member(t, nil)
	s.wait(5 * time.Second)
	s.poll()
	s.refuse(wire.ErrInvalidRequest)
	s.m.Suspend(s.now)
	require.NotContains(t, s.poll(), "beat") // it has ended
}
