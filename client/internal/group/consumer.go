package group

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
)

// ConsumerSettings are those of a member in the consumer protocol.
type ConsumerSettings struct {
	Group      string
	InstanceID string // of a static member; empty: none
	Rack       string
	// MemberID is made by the client, is unique, and stays the same for the member's life.
	MemberID string
	// Assignor is the coordinator's to use; empty: the one it prefers.
	Assignor string
	// Pattern is what the coordinator matches whole topic names with (RE2); empty: only the topics
	// given to Subscribe are read.
	Pattern string
	// Rebalance is how long the coordinator waits until partitions are given up.
	Rebalance time.Duration
	// Patience is how long a static member waits for an earlier one of its instance id whose
	// session has not ended yet: a session timeout is what it takes when that one was killed.
	Patience time.Duration
	// Backoff is the wait after so many failures in a row, 1 being the first.
	Backoff func(failures int) time.Duration
}

// Consumer is a member in the consumer protocol (KIP-848): the coordinator assigns the partitions,
// and heartbeats carry everything. Each member takes its own assignment over at its own pace: it
// gives up what it has to and says so, and the coordinator hands that on. Make one with
// NewConsumer.
type Consumer struct {
	machine // its states: idle, joining, stable, revoking (everything, before joining anew), away, leaving, left
	set     ConsumerSettings

	topics []string
	epoch  int32 // of the member; 0: not one
	known  bool  // the coordinator may have it among the group's members

	target map[[16]byte][]int32     // as the coordinator said last
	names  map[[16]byte]string      // of the topics in target and before, as far as known
	hold   []assign.TopicPartitions // as ordered last
	// held is what the driver may hold: what it said last, and whatever it was ordered to hold since.
	held    []assign.TopicPartitions
	heldIDs map[string][16]byte
	holding int // serial of the Reconcile under way; 0: none

	request   int // serial of the heartbeat under way; 0: none
	beatAt    time.Time
	interval  time.Duration
	failures  int
	nonsense  int       // answers in a row that made no sense
	fences    int       // times in a row that it had to join anew
	waitUntil time.Time // for the instance id to be released; zero: not waiting

	// What the coordinator is known to have been told; full: nothing, as while joining.
	full       bool
	sentFull   bool // the heartbeat in flight told everything
	saidTopics []string
	version    int // of held
	saying     int // the version in the heartbeat under way; 0: it says nothing of it
	said       int

	describing int // serial of the Describe under way; 0: none
	describeAt time.Time
	unnamed    int // answers in a row that left a topic without a name
}

// The epochs with which a member joins and leaves.
const (
	epochJoin        int32 = 0
	epochLeave       int32 = -1
	epochLeaveStatic int32 = -2 // to come back within the session
)

// NewConsumer makes a member that does nothing until Subscribe.
func NewConsumer(set ConsumerSettings) *Consumer {
	return &Consumer{set: set, names: map[[16]byte]string{}, heldIDs: map[string][16]byte{}, full: true}
}

// Status is how things stand.
func (m *Consumer) Status() Status {
	s := Status{Identity: Identity{MemberID: m.set.MemberID, InstanceID: m.set.InstanceID, Generation: none}}
	switch m.state {
	case stable:
		s.Generation = m.epoch
		s.Commits = m.err == nil
		s.Settled = m.holding == 0 && m.said == m.version && len(m.missing()) == 0
	case away:
		s.Settled = true
	}
	return s
}

// Poll is what is to be done at now.
func (m *Consumer) Poll(now time.Time) Orders { return m.poll(now, m.advance, m.wake) }

func (m *Consumer) advance(now time.Time) {
	if m.beats() && m.request == 0 && (!m.beatAt.After(now) || m.owes()) {
		m.sendBeat()
	}
	if missing := m.missing(); m.state == stable && m.describing == 0 && len(missing) > 0 && !m.describeAt.After(now) {
		m.serial++
		m.describing = m.serial
		m.out.Describe = &Describe{Serial: m.serial, IDs: missing}
	}
}

func (m *Consumer) beats() bool { return m.state == joining || m.state == stable }

// owes says that the coordinator waits to hear what is held now, or that it was not told yet what
// is subscribed to. After a failure that waits for the backoff.
func (m *Consumer) owes() bool {
	return m.state == stable && m.failures == 0 &&
		(m.holding == 0 && m.said != m.version || !slices.Equal(m.saidTopics, m.topics))
}

func (m *Consumer) wake() (at time.Time) {
	if m.beats() && m.request == 0 {
		at = m.beatAt
	}
	if m.state == stable && m.describing == 0 && len(m.missing()) > 0 && (at.IsZero() || m.describeAt.Before(at)) {
		at = m.describeAt
	}
	return at
}

// beatTimeout is how long a heartbeat may take at least before another is tried on a new
// connection; well below any session timeout.
const beatTimeout = 10 * time.Second

// sendBeat says what the coordinator does not know, and everything where it is not sure what that is,
// as for who joins.
func (m *Consumer) sendBeat() {
	req := m.beatRequest(m.epoch)
	if m.full {
		req.RebalanceTimeoutMillis = int32(m.set.Rebalance.Milliseconds())
		req.RackID, req.ServerAssignor = optional(m.set.Rack), optional(m.set.Assignor)
		req.SubscribedTopicRegex = optional(m.set.Pattern)
	}
	if m.full || !slices.Equal(m.saidTopics, m.topics) {
		req.SubscribedTopicNames = append([]string{}, m.topics...)
		m.saidTopics = m.topics
	}
	m.saying, m.sentFull = 0, m.full
	if m.full || m.said != m.version {
		req.Topics = m.owned() // of who joins it must be there, and empty
		m.saying = m.version
	}
	m.known = true
	m.serial++
	m.request = m.serial
	m.out.Send = append(m.out.Send, Send{Serial: m.serial, Request: req, Timeout: max(m.interval, beatTimeout)})
}

func (m *Consumer) beatRequest(epoch int32) *kmsg.ConsumerGroupHeartbeatRequest {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = m.set.Group, m.set.MemberID, epoch
	req.InstanceID = optional(m.set.InstanceID)
	return req
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// owned is what may be held, or will be before anything else is heard, as the coordinator names it:
// it must not hand that on.
func (m *Consumer) owned() []kmsg.ConsumerGroupHeartbeatRequestTopic {
	out := make([]kmsg.ConsumerGroupHeartbeatRequestTopic, 0, len(m.held))
	for _, t := range m.held {
		topic := kmsg.NewConsumerGroupHeartbeatRequestTopic()
		topic.TopicID, topic.Partitions = m.heldIDs[t.Topic], t.Partitions
		out = append(out, topic)
	}
	for _, id := range m.missing() {
		topic := kmsg.NewConsumerGroupHeartbeatRequestTopic()
		topic.TopicID, topic.Partitions = id, m.target[id]
		out = append(out, topic)
	}
	return out
}

// Subscribe gives the topics to be read beside those that Pattern matches.
func (m *Consumer) Subscribe(now time.Time, topics []string) {
	m.topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	if m.state == idle {
		m.state, m.beatAt = joining, now
	}
}

// missing is the topics of the assignment whose names are not known, in order.
func (m *Consumer) missing() (ids [][16]byte) {
	for id := range m.target {
		if _, known := m.names[id]; !known {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b [16]byte) int { return strings.Compare(string(a[:]), string(b[:])) })
	return ids
}

// Described gives topics their names.
func (m *Consumer) Described(now time.Time, serial int, topics map[string]Topic, _ error) {
	if serial == 0 || serial != m.describing {
		return
	}
	m.describing = 0
	for name, t := range topics {
		if _, wanted := m.target[t.ID]; wanted {
			// A name belongs to one topic: of two, one was deleted.
			maps.DeleteFunc(m.names, func(_ [16]byte, other string) bool { return other == name })
			m.names[t.ID] = name
		}
	}
	m.unnamed++ // a topic just made is not known to every broker at once, one just deleted never again
	if len(m.missing()) == 0 {
		m.unnamed = 0
	}
	m.describeAt = now.Add(m.set.Backoff(max(m.unnamed, 1)))
	m.reconcile()
}

// adopt takes an assignment over. The coordinator waits for an answer to every new one, also where
// nothing is to be done: it may have taken back what this member had not begun with yet.
func (m *Consumer) adopt(now time.Time, target map[[16]byte][]int32) {
	isNew := !maps.EqualFunc(m.target, target, slices.Equal)
	m.target = target
	maps.DeleteFunc(m.names, func(id [16]byte, name string) bool {
		_, stays := target[id]
		return !stays
	})
	m.describeAt = now
	m.reconcile()
	if isNew && m.holding == 0 && len(m.missing()) == 0 {
		m.version++
	}
}

// reconcile orders what can be held of the assignment to be held. An order under way that is not
// what is wanted any more is replaced.
func (m *Consumer) reconcile() {
	if m.state != stable {
		return
	}
	var hold []assign.TopicPartitions
	ids := map[string][16]byte{}
	for id, partitions := range m.target {
		if name, known := m.names[id]; known {
			hold = append(hold, assign.TopicPartitions{Topic: name, Partitions: partitions})
			ids[name] = id
		}
	}
	hold = assign.Normal(hold)
	if gone, added := assign.Diff(m.hold, hold); len(gone)+len(added) == 0 {
		return
	}
	m.order(hold, ids, m.epoch, false)
}

func (m *Consumer) order(hold []assign.TopicPartitions, ids map[string][16]byte, epoch int32, lost bool) {
	m.serial++
	m.holding, m.hold = m.serial, hold
	m.held = assign.Normal(append(slices.Clone(m.held), hold...))
	maps.Copy(m.heldIDs, ids)
	m.out.Reconcile = &Reconcile{Serial: m.serial, Generation: epoch, Hold: hold, Adopt: !lost, Lost: lost}
}

// Held says what the driver holds now; the coordinator is told at once.
func (m *Consumer) Held(now time.Time, serial int, held []assign.TopicPartitions) {
	if serial != m.holding || m.state == left {
		return
	}
	m.holding = 0
	m.held = assign.Normal(held)
	maps.DeleteFunc(m.heldIDs, func(topic string, _ [16]byte) bool {
		return !slices.ContainsFunc(m.held, func(t assign.TopicPartitions) bool { return t.Topic == topic })
	})
	m.version++
	if m.state == revoking {
		m.state = joining
	}
}

// lose gives everything up, which others may have by now, and joins anew under the same id.
func (m *Consumer) lose(now time.Time) {
	m.fences++
	m.beatAt = now
	if m.fences > 1 {
		m.beatAt = now.Add(m.set.Backoff(m.fences - 1))
	}
	m.state = joining
	if m.forget() {
		m.state = revoking
	}
}

// forget is for who is no member any more: everything is to be given up. False: there is nothing.
func (m *Consumer) forget() bool {
	m.epoch, m.known, m.full, m.request = epochJoin, false, true, 0
	m.target, m.describing = nil, 0
	clear(m.names)
	if len(m.held) == 0 && m.holding == 0 {
		m.hold = nil
		return false
	}
	m.order(nil, nil, none, true)
	return true
}

// Suspend leaves the group for a while.
func (m *Consumer) Suspend(time.Time) {
	switch m.state {
	case idle, away, leaving, left:
		return
	}
	if m.err != nil {
		return
	}
	if m.known {
		m.sendLeave()
	}
	m.forget()
	m.state = away
}

// Resume joins again.
func (m *Consumer) Resume(now time.Time) {
	if m.state != away {
		return
	}
	m.failures, m.fences, m.beatAt = 0, 0, now
	m.state = joining
	if m.holding != 0 {
		m.state = revoking
	}
}

// Leave ends the membership. A static member says that it comes back, and keeps its partitions
// until its session ends.
func (m *Consumer) Leave(time.Time) {
	m.out, m.holding, m.describing, m.request, m.err = Orders{}, 0, 0, 0, nil
	if !m.known {
		m.state = left
		return
	}
	m.state = leaving
	m.request = m.sendLeave()
}

func (m *Consumer) sendLeave() int {
	epoch := epochLeave
	if m.set.InstanceID != "" {
		epoch = epochLeaveStatic
	}
	m.serial++
	m.out.Send = append(m.out.Send, Send{Serial: m.serial, Request: m.beatRequest(epoch)})
	return m.serial
}
