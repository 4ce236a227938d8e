package group

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
)

// protocolType is what consumers call their kind of group.
const protocolType = "consumer"

// answerSlack is what a coordinator may take beyond a time that it was given.
const answerSlack = 5 * time.Second

func (m *Classic) instance() *string {
	if m.set.InstanceID == "" {
		return nil
	}
	return &m.set.InstanceID
}

func (m *Classic) sendJoin() {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = m.set.Group, m.id, m.instance(), protocolType
	req.SessionTimeoutMillis = int32(m.set.Session.Milliseconds())
	req.RebalanceTimeoutMillis = int32(m.set.Rebalance.Milliseconds())
	for _, b := range m.set.Balancers {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = b.Name(), b.Metadata(m.self(b))
		req.Protocols = append(req.Protocols, p)
	}
	m.request = m.send(req, true, max(m.set.Rebalance, m.set.Session)+answerSlack)
}

// self is what this member tells the leader of itself.
func (m *Classic) self(b assign.Balancer) assign.Member {
	owned, in := m.held, m.heldIn
	if !b.Cooperative() {
		owned, in = m.before, m.beforeIn
	}
	return assign.Member{Rack: m.set.Rack, Topics: m.topics, Owned: owned, Generation: in}
}

func (m *Classic) sendSync(plan map[string][]assign.TopicPartitions) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.set.Group, m.id, m.instance(), m.generation
	kind, name := protocolType, m.balancer.Name()
	req.ProtocolType, req.Protocol = &kind, &name
	for _, id := range slices.Sorted(maps.Keys(plan)) {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = id, assign.EncodeAssignment(plan[id])
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	m.state = syncing
	m.request = m.send(req, true, m.set.Rebalance+answerSlack)
}

// beats says whether heartbeats are due in this state.
func (m *Classic) beats() bool {
	switch m.state {
	case revoking, adopting, stable:
		return m.generation != none
	}
	return false
}

func (m *Classic) sendBeat() {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.set.Group, m.id, m.instance(), m.generation
	m.beat = m.send(req, false, max(m.set.Heartbeat, m.set.Session/3))
}

func (m *Classic) leaveRequest() kmsg.Request {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.set.Group, m.id // before version 3
	one := kmsg.NewLeaveGroupRequestMember()
	one.MemberID = m.id
	req.Members = append(req.Members, one)
	return req
}
