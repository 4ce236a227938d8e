package group

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/wire"
)

// assigner is a model of the server's side of KIP-848 for one topic, "t": target assignments by
// an assignor, and each member's way to its own, by the KIP's rules.
type assigner struct {
	epoch   int32
	count   int32
	members map[string]*seat
	user    map[int32]string // who may use a partition, or has still to give it up
}

type seat struct {
	epoch, before     int32
	assigned, pending map[int32]bool
	target            map[int32]bool
}

func (c *assigner) aim() {
	c.epoch++
	var members []assign.Member
	for id, s := range c.members {
		members = append(members, assign.Member{ID: id, Topics: []string{"t"},
			Owned: []assign.TopicPartitions{{Topic: "t", Partitions: slices.Sorted(maps.Keys(s.target))}}})
	}
	b, _ := assign.ByName(assign.Sticky)
	for id, list := range b.Balance(members, map[string]int32{"t": c.count}) {
		c.members[id].target = map[int32]bool{}
		for _, t := range list {
			for _, p := range t.Partitions {
				c.members[id].target[p] = true
			}
		}
	}
}

// remove forgets a member, which has left or whose session ended.
func (c *assigner) remove(id string) {
	if c.members[id] == nil {
		return
	}
	delete(c.members, id)
	maps.DeleteFunc(c.user, func(_ int32, user string) bool { return user == id })
	c.aim()
}

func (c *assigner) beat(r *kmsg.ConsumerGroupHeartbeatRequest) *kmsg.ConsumerGroupHeartbeatResponse {
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.HeartbeatIntervalMillis = 5000
	s := c.members[r.MemberID]
	var owned map[int32]bool
	if r.Topics != nil {
		owned = map[int32]bool{}
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				owned[p] = true
			}
		}
	}
	joins := r.MemberEpoch == epochJoin
	switch {
	case r.MemberEpoch < 0:
		c.remove(r.MemberID)
		resp.MemberEpoch = r.MemberEpoch
		return resp
	case joins && (owned == nil || len(owned) > 0 || r.SubscribedTopicNames == nil || r.RebalanceTimeoutMillis < 0):
		resp.ErrorCode = wire.ErrInvalidRequest.Code
		return resp
	case joins && s == nil:
		s = &seat{assigned: map[int32]bool{}, pending: map[int32]bool{}}
		c.members[r.MemberID] = s
		c.aim()
	case s == nil:
		resp.ErrorCode = wire.ErrUnknownMemberID.Code
		return resp
	case !joins && r.MemberEpoch != s.epoch && (r.MemberEpoch != s.before || owned == nil || !within(owned, s.assigned)):
		resp.ErrorCode = wire.ErrFencedMemberEpoch.Code
		return resp
	}
	changed := c.advance(r.MemberID, s, owned)
	resp.MemberEpoch = s.epoch
	if changed || joins || r.RebalanceTimeoutMillis >= 0 {
		a := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
		topic := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
		topic.TopicID, topic.Partitions = topicID("t"), slices.Sorted(maps.Keys(s.assigned))
		a.Topics = append(a.Topics, topic)
		resp.Assignment = &a
	}
	return resp
}

func within(a, b map[int32]bool) bool {
	for p := range a {
		if !b[p] {
			return false
		}
	}
	return true
}

// advance brings a member closer to its target; owned is what it says it holds, nil when it says
// nothing.
func (c *assigner) advance(id string, s *seat, owned map[int32]bool) (changed bool) {
	for p := range s.pending {
		if owned != nil && !owned[p] {
			delete(s.pending, p)
			delete(c.user, p)
		}
	}
	if len(s.pending) > 0 {
		return false
	}
	for p := range s.assigned {
		if s.target[p] {
			continue
		}
		delete(s.assigned, p)
		changed = true
		if owned != nil && !owned[p] {
			delete(c.user, p)
		} else {
			s.pending[p] = true
		}
	}
	if len(s.pending) > 0 {
		return changed
	}
	for p := range s.target {
		if _, used := c.user[p]; !used {
			c.user[p] = id
			s.assigned[p] = true
			changed = true
		}
	}
	if s.epoch != c.epoch {
		s.before, s.epoch = s.epoch, c.epoch
	}
	return changed
}

// modelMember is a Consumer with a driver that takes its time.
type modelMember struct {
	*Consumer
	beat     *Send
	describe *Describe
	todo     *Reconcile
	held     map[int32]bool
	left     bool
}

func (m *modelMember) poll(t require.TestingT, now time.Time) Orders {
	o := m.Poll(now)
	require.NoError(t, o.Err)
	require.LessOrEqual(t, len(o.Send), 1)
	if len(o.Send) > 0 {
		m.beat = &o.Send[0]
	}
	if o.Describe != nil {
		m.describe = o.Describe
	}
	if o.Reconcile != nil {
		m.todo = o.Reconcile
	}
	m.left = m.left || o.Left
	return o
}

// carryOut does a part of what is to be done: gives up first, and begins last.
func (m *modelMember) carryOut(now time.Time, all bool) {
	if m.todo == nil {
		return
	}
	hold := map[int32]bool{}
	for _, t := range m.todo.Hold {
		for _, p := range t.Partitions {
			hold[p] = true
		}
	}
	for p := range m.held {
		if !hold[p] {
			delete(m.held, p)
			if !all {
				return
			}
		}
	}
	for p := range hold {
		if !m.held[p] {
			m.held[p] = true
			if !all {
				return
			}
		}
	}
	serial := m.todo.Serial
	m.todo = nil
	m.Held(now, serial, []assign.TopicPartitions{{Topic: "t", Partitions: slices.Sorted(maps.Keys(m.held))}})
}

// Members join, leave, are forgotten and answer late, and requests and answers get lost: never do
// two members that the coordinator knows hold the same partition, and when things have calmed down
// every partition is with somebody, and everybody has said so.
func TestConsumersShareATopic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &assigner{count: rapid.Int32Range(1, 7).Draw(t, "partitions"), members: map[string]*seat{}, user: map[int32]string{}}
		now := time.Unix(1000, 0)
		var members []*modelMember
		add := func() {
			m := &modelMember{held: map[int32]bool{}, Consumer: NewConsumer(ConsumerSettings{Group: "g",
				MemberID: fmt.Sprintf("m%d", len(members)), Rebalance: time.Minute, Patience: time.Minute,
				Backoff: func(n int) time.Duration { return time.Duration(min(n, 10)) * 100 * time.Millisecond }})}
			m.Subscribe(now, []string{"t"})
			members = append(members, m)
		}
		exchange := func(m *modelMember, lost string) {
			if m.beat == nil {
				return
			}
			serial, req := m.beat.Serial, m.beat.Request.(*kmsg.ConsumerGroupHeartbeatRequest)
			m.beat = nil
			var resp kmsg.Response
			if lost != "request" {
				resp = c.beat(req)
			}
			if lost != "" {
				m.Answered(now, serial, nil, errLost)
				return
			}
			m.Answered(now, serial, resp, nil)
		}
		describe := func(m *modelMember, found bool) {
			if m.describe == nil {
				return
			}
			topics := map[string]Topic{}
			if found {
				topics["t"] = Topic{ID: topicID("t"), Partitions: c.count}
			}
			serial := m.describe.Serial
			m.describe = nil
			m.Described(now, serial, topics, nil)
		}
		check := func() {
			holder := map[int32]string{}
			for _, m := range members {
				if id := m.set.MemberID; c.members[id] != nil {
					for p := range m.held {
						require.Empty(t, holder[p], "partition %d is held by %s as well", p, id)
						holder[p] = id
					}
				}
			}
		}
		add()
		for range rapid.IntRange(0, 150).Draw(t, "steps") {
			m := members[rapid.IntRange(0, len(members)-1).Draw(t, "member")]
			switch rapid.IntRange(0, 11).Draw(t, "step") {
			case 0, 1, 2:
				exchange(m, rapid.SampledFrom([]string{"", "", "", "request", "answer"}).Draw(t, "lost"))
			case 3, 4, 5:
				m.carryOut(now, rapid.Bool().Draw(t, "all"))
			case 6:
				describe(m, rapid.Bool().Draw(t, "found"))
			case 7:
				now = now.Add(time.Duration(rapid.IntRange(1, 6000).Draw(t, "ms")) * time.Millisecond)
			case 8:
				if len(members) < 5 {
					add()
				}
			case 9: // its session ends
				if rapid.Bool().Draw(t, "really") {
					c.remove(m.set.MemberID)
				}
			case 10: // the application closes it
				if rapid.Bool().Draw(t, "really") && len(m.held) == 0 {
					m.todo, m.describe, m.beat = nil, nil, nil
					m.Leave(now)
				}
			case 11:
				c.count += rapid.Int32Range(0, 1).Draw(t, "more")
				c.aim()
			}
			for _, m := range members {
				m.poll(t, now)
			}
			check()
		}
		for range 60 {
			for _, m := range members {
				m.poll(t, now)
				if m.left { // when its word of that was lost, its session ends
					c.remove(m.set.MemberID)
					continue
				}
				exchange(m, "")
				describe(m, true)
				m.carryOut(now, true)
				check()
			}
			now = now.Add(time.Second)
		}
		held := map[int32]bool{}
		alive := false
		for _, m := range members {
			if m.left {
				require.Empty(t, m.held)
				continue
			}
			alive = true
			require.True(t, m.Status().Settled, "%s has not settled", m.set.MemberID)
			maps.Copy(held, m.held)
		}
		if alive {
			require.Len(t, held, int(c.count), "partitions that nobody reads")
		}
	})
}
