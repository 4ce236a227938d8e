package group

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a member, a clock, and the orders that were not looked at yet.
type scene struct {
	t    *testing.T
	m    *Classic
	now  time.Time
	todo Orders
}

func settings(balancers ...string) Settings {
	s := Settings{
		Group: "g", Session: 30 * time.Second, Rebalance: time.Minute, Heartbeat: 3 * time.Second, Watch: 10 * time.Second,
		Backoff: func(n int) time.Duration { return time.Duration(n) * 100 * time.Millisecond },
	}
	for _, name := range balancers {
		b, ok := assign.ByName(name)
		if !ok {
			panic(name)
		}
		s.Balancers = append(s.Balancers, b)
	}
	return s
}

func newScene(t *testing.T, s Settings) *scene {
	sc := &scene{t: t, m: NewClassic(s), now: time.Unix(1000, 0)}
	sc.m.Subscribe(sc.now, []string{"t"})
	sc.poll()
	return sc
}

// poll collects orders.
func (s *scene) poll() {
	o := s.m.Poll(s.now)
	s.todo.Send = append(s.todo.Send, o.Send...)
	if o.Describe != nil {
		s.todo.Describe = o.Describe
	}
	if o.Reconcile != nil {
		s.todo.Reconcile = o.Reconcile
	}
	s.todo.Wake, s.todo.Err, s.todo.Left = o.Wake, o.Err, o.Left
}

func (s *scene) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.poll()
}

// sent takes the oldest request that was sent.
func (s *scene) sent() Send {
	s.t.Helper()
	require.NotEmpty(s.t, s.todo.Send, "nothing was sent (state %d, error %v)", s.m.state, s.todo.Err)
	first := s.todo.Send[0]
	s.todo.Send = s.todo.Send[1:]
	return first
}

func (s *scene) quiet() {
	s.t.Helper()
	for _, r := range s.todo.Send {
		s.t.Errorf("sent %T, though nothing should be", r.Request)
	}
	require.Nil(s.t, s.todo.Reconcile)
	require.NoError(s.t, s.todo.Err)
}

func (s *scene) answer(to Send, resp kmsg.Response, err error) {
	s.m.Answered(s.now, to.Serial, resp, err)
	s.poll()
}

// joinSent is the JoinGroup that was sent.
func (s *scene) joinSent() (Send, *kmsg.JoinGroupRequest) {
	s.t.Helper()
	to := s.sent()
	req, ok := to.Request.(*kmsg.JoinGroupRequest)
	require.True(s.t, ok, "%T was sent", to.Request)
	require.True(s.t, to.Long, "its answer may take as long as a rebalance")
	return to, req
}

func joined(generation int32, member, leader, protocol string, others ...kmsg.JoinGroupResponseMember) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	r.Generation, r.MemberID, r.LeaderID, r.Protocol = generation, member, leader, &protocol
	r.Members = others
	return r
}

func codeOf(err error) int16 {
	var kafka *wire.KafkaError
	if !errors.As(err, &kafka) {
		panic(err)
	}
	return kafka.Code
}

func refusedJoin(err error, member string) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	r.ErrorCode, r.MemberID = codeOf(err), member
	return r
}

func synced(parts ...assign.TopicPartitions) *kmsg.SyncGroupResponse {
	r := kmsg.NewPtrSyncGroupResponse()
	r.MemberAssignment = assign.EncodeAssignment(parts)
	return r
}

func refusedSync(err error) *kmsg.SyncGroupResponse {
	r := kmsg.NewPtrSyncGroupResponse()
	r.ErrorCode = codeOf(err)
	return r
}

func beat(err error) *kmsg.HeartbeatResponse {
	r := kmsg.NewPtrHeartbeatResponse()
	if err != nil {
		r.ErrorCode = codeOf(err)
	}
	return r
}

func of(topic string, partitions ...int32) assign.TopicPartitions {
	return assign.TopicPartitions{Topic: topic, Partitions: partitions}
}

// follow brings the member into a generation as a follower, until it is to hold parts.
func (s *scene) follow(generation int32, protocol string, parts ...assign.TopicPartitions) *Reconcile {
	s.t.Helper()
	to, _ := s.joinSent()
	s.answer(to, joined(generation, "me", "leader", protocol), nil)
	to = s.sent()
	sync, ok := to.Request.(*kmsg.SyncGroupRequest)
	require.True(s.t, ok, "%T was sent", to.Request)
	require.Equal(s.t, generation, sync.Generation)
	require.Empty(s.t, sync.GroupAssignment, "only the leader assigns")
	require.False(s.t, s.m.Status().Commits, "the coordinator refuses commits while it waits for the leader")
	s.answer(to, synced(parts...), nil)
	require.False(s.t, s.m.Status().Settled, "nothing is held of it yet")
	return s.reconcile()
}

func (s *scene) reconcile() *Reconcile {
	s.t.Helper()
	r := s.todo.Reconcile
	require.NotNil(s.t, r, "no Reconcile was ordered (state %d, error %v)", s.m.state, s.todo.Err)
	s.todo.Reconcile = nil
	return r
}

func (s *scene) hold(r *Reconcile) {
	s.m.Held(s.now, r.Serial, r.Hold)
	s.poll()
}

// stable brings the member into a generation, and settles it there.
func (s *scene) stable(generation int32, protocol string, parts ...assign.TopicPartitions) {
	s.t.Helper()
	s.hold(s.follow(generation, protocol, parts...))
	require.True(s.t, s.m.Status().Settled)
	require.True(s.t, s.m.Status().Commits)
}

// beatSent waits for the next heartbeat.
func (s *scene) beatSent() Send {
	s.t.Helper()
	if len(s.todo.Send) == 0 {
		s.pass(s.m.set.Heartbeat)
	}
	to := s.sent()
	require.IsType(s.t, &kmsg.HeartbeatRequest{}, to.Request)
	require.False(s.t, to.Long)
	return to
}

func (s *scene) disown(err error) { s.answer(s.beatSent(), beat(err), nil) }

func (s *scene) String() string {
	return fmt.Sprintf("state %d, generation %d", s.m.state, s.m.generation)
}
