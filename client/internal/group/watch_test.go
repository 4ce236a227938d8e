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

func other(id string, b assign.Balancer, topics ...string) kmsg.JoinGroupResponseMember {
	m := kmsg.NewJoinGroupResponseMember()
	m.MemberID, m.ProtocolMetadata = id, b.Metadata(assign.Member{Topics: topics, Generation: none})
	return m
}

// lead brings the member into a generation as its leader, up to the question about topics.
func (s *scene) lead(generation int32, others ...kmsg.JoinGroupResponseMember) *Describe {
	s.t.Helper()
	to, _ := s.joinSent()
	s.answer(to, joined(generation, "me", "me", "range", others...), nil)
	require.NotNil(s.t, s.todo.Describe)
	return s.describe()
}

func (s *scene) describe() *Describe {
	s.t.Helper()
	d := s.todo.Describe
	require.NotNil(s.t, d, "no topics are asked for (state %d)", s.m.state)
	s.todo.Describe = nil
	return d
}

func (s *scene) described(d *Describe, sizes map[string]int32) {
	topics := map[string]Topic{}
	for name, n := range sizes {
		topics[name] = Topic{Partitions: n}
	}
	s.m.Described(s.now, d.Serial, topics, nil)
	s.poll()
}

// plan is what the leader sent for each member.
func (s *scene) plan() (Send, map[string][]assign.TopicPartitions) {
	s.t.Helper()
	to := s.sent()
	sync, ok := to.Request.(*kmsg.SyncGroupRequest)
	require.True(s.t, ok, "%T was sent", to.Request)
	plan := map[string][]assign.TopicPartitions{}
	for _, a := range sync.GroupAssignment {
		parts, err := assign.DecodeAssignment(a.MemberAssignment)
		require.NoError(s.t, err)
		plan[a.MemberID] = parts
	}
	return to, plan
}

func TestTheLeaderAssigns(t *testing.T) {
	set := settings("range")
	b := set.Balancers[0]
	s := newScene(t, set)
	d := s.lead(1, other("me", b, "t"), other("you", b, "u", "t"))
	require.Equal(t, []string{"t", "u"}, d.Topics, "also what it does not read itself")
	s.described(d, map[string]int32{"t": 4, "u": 1})
	_, plan := s.plan()
	require.Equal(t, map[string][]assign.TopicPartitions{
		"me": {of("t", 0, 1)}, "you": {of("t", 2, 3), of("u", 0)},
	}, plan)
	require.True(t, s.m.Status().Leads)
}

func TestAMemberThatMakesNoSenseGetsNothing(t *testing.T) {
	set := settings("range")
	s := newScene(t, set)
	bad := other("bad", set.Balancers[0], "t")
	bad.ProtocolMetadata = []byte{0, 1, 127, 255, 255, 255}
	d := s.lead(1, bad, other("me", set.Balancers[0], "t"))
	s.described(d, map[string]int32{"t": 2})
	_, plan := s.plan()
	require.Equal(t, map[string][]assign.TopicPartitions{"bad": nil, "me": {of("t", 0, 1)}}, plan)
}

func TestTopicsThatCannotBeDescribedAreAskedForAgain(t *testing.T) {
	set := settings("range")
	s := newScene(t, set)
	d := s.lead(1, other("me", set.Balancers[0], "t"))
	s.m.Described(s.now, d.Serial, nil, io.ErrUnexpectedEOF)
	s.poll()
	require.Nil(t, s.todo.Describe)
	s.pass(100 * time.Millisecond)
	again := s.describe()
	s.m.Described(s.now, d.Serial, nil, nil) // the first once more: of no interest
	s.poll()
	require.Empty(t, s.todo.Send)
	s.described(again, map[string]int32{"t": 1})
	_, plan := s.plan()
	require.Len(t, plan["me"], 1)

	s = newScene(t, set)
	d = s.lead(1, other("me", set.Balancers[0], "t"))
	s.m.Described(s.now, d.Serial, nil, wire.ErrClusterAuthorizationFailed)
	s.poll()
	require.ErrorIs(t, s.todo.Err, wire.ErrClusterAuthorizationFailed)
}

func TestALeaderWhoseAssignmentIsKeptOnlyWatches(t *testing.T) {
	set := settings("range")
	set.InstanceID = "i"
	s := newScene(t, set)
	to, _ := s.joinSent()
	resp := joined(1, "me", "me", "range", other("me", set.Balancers[0], "t"))
	resp.SkipAssignment = true
	s.answer(to, resp, nil)
	s.described(s.describe(), map[string]int32{"t": 1})
	_, plan := s.plan()
	require.Empty(t, plan, "KIP-814: the coordinator has it")
	require.True(t, s.m.Status().Leads)
}

func TestTheLeaderWatchesPartitions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		seen   []map[string]int32 // at each look
		rejoin int                // after so many looks; 0: not
	}{
		{"nothing happens", []map[string]int32{{"t": 2, "u": 1}, {"t": 2, "u": 1}}, 0},
		{"partitions are added", []map[string]int32{{"t": 2, "u": 1}, {"t": 3, "u": 1}}, 2},
		{"a topic is made anew, smaller", []map[string]int32{{"t": 1, "u": 1}}, 1},
		{"a broker that lags behind does not know a topic", []map[string]int32{{"t": 2}, {"t": 2, "u": 1}, {"t": 2}, {"t": 2, "u": 1}}, 0},
		{"a topic is deleted", []map[string]int32{{"t": 2}, {"t": 2}}, 2},
		{"a topic that was not there appears", []map[string]int32{{"t": 2, "u": 1, "v": 1}}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := settings("range")
			set.Heartbeat = time.Hour
			s := newScene(t, set)
			d := s.lead(1, other("me", set.Balancers[0], "t", "u", "v"))
			s.described(d, map[string]int32{"t": 2, "u": 1})
			to, _ := s.plan()
			s.answer(to, synced(of("t", 0, 1), of("u", 0)), nil)
			s.hold(s.reconcile())
			for i, sizes := range tc.seen {
				require.True(t, s.m.Status().Settled)
				require.LessOrEqual(t, s.todo.Wake.Sub(s.now), set.Watch)
				s.pass(s.todo.Wake.Sub(s.now))
				s.described(s.describe(), sizes)
				require.Equal(t, i+1 != tc.rejoin, s.m.Status().Settled, "look %d", i+1)
			}
		})
	}
}

func TestAFollowerDoesNotWatch(t *testing.T) {
	s := newScene(t, settings("range"))
	s.stable(1, "range", of("t", 0))
	for range 10 {
		s.answer(s.beatSent(), beat(nil), nil)
		require.Nil(t, s.todo.Describe)
	}
}

func TestTopicsThatChangeWhileTheGroupRebalances(t *testing.T) {
	s := newScene(t, settings(coop))
	to, _ := s.joinSent()
	s.m.Subscribe(s.now, []string{"t", "u"})
	s.poll()
	require.Empty(t, s.todo.Send, "one JoinGroup at a time")
	s.answer(to, joined(1, "me", "leader", coop), nil)
	s.answer(s.sent(), synced(of("t", 0)), nil)
	s.hold(s.reconcile())
	to, join := s.joinSent()
	mine, err := assign.DecodeMember(coop, "me", "", join.Protocols[0].Metadata)
	require.NoError(t, err)
	require.Equal(t, []string{"t", "u"}, mine.Topics)
	s.answer(to, joined(2, "me", "leader", coop), nil)
	s.answer(s.sent(), synced(of("t", 0), of("u", 0)), nil)
	s.hold(s.reconcile())
	require.True(t, s.m.Status().Settled)
	s.m.Subscribe(s.now, []string{"u", "t"}) // the same
	s.poll()
	s.quiet()
}
