package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
)

// Settings are those of a member.
type Settings struct {
	Group      string
	InstanceID string // of a static member (KIP-345); empty: none
	Rack       string
	// Session is how long the coordinator waits for a heartbeat, Rebalance how long for members to
	// join again, Heartbeat how often one is sent, Watch how often the leader looks whether topics
	// have got partitions.
	Session, Rebalance, Heartbeat, Watch time.Duration
	// Balancers are the assignors offered, the preferred one first; at least one.
	Balancers []assign.Balancer
	// Backoff is the wait after so many failures in a row, 1 being the first.
	Backoff func(failures int) time.Duration
}

// none is the generation of who is not in any.
const none int32 = -1

// Classic is a member in the classic protocol, eager or (where all assignors offered are)
// cooperative. Make one with NewClassic.
type Classic struct {
	machine
	set  Settings
	coop bool

	topics     []string
	id         string // given by the coordinator; empty: none
	generation int32
	balancer   assign.Balancer // chosen for the generation

	held   []assign.TopicPartitions // as the driver said last
	heldIn int32                    // the generation in which held was assigned
	target []assign.TopicPartitions
	// before is the last assignment, which sticky assignors are told of though it was given up.
	before   []assign.TopicPartitions
	beforeIn int32
	holding  int  // serial of the Reconcile under way; 0: none
	revokes  bool // it gives something up
	again    bool // join again as soon as the rebalance under way is through

	request  int // serial of the request under way that the state waits for; 0: none
	retryAt  time.Time
	failures int
	nonsense int // answers in a row that made no sense

	beat         int // serial of the heartbeat under way; 0: none
	beatAt       time.Time
	beatFailures int

	watch watch
}

// NewClassic makes a member that does nothing until Subscribe.
func NewClassic(set Settings) *Classic {
	return &Classic{set: set, coop: assign.AllCooperative(set.Balancers), generation: none, heldIn: none, beforeIn: none}
}

// Status is how things stand. A commit is taken until JoinGroup has been answered: the coordinator
// keeps the old generation while it waits for members.
func (m *Classic) Status() Status {
	s := Status{
		Identity: Identity{MemberID: m.id, InstanceID: m.set.InstanceID, Generation: m.generation},
		Settled:  m.state == stable || m.state == away,
		Leads:    m.watch.leads,
	}
	switch m.state {
	case revoking, joining, adopting, stable:
		s.Commits = m.generation != none && m.err == nil
	}
	return s
}

// Poll is what is to be done at now.
func (m *Classic) Poll(now time.Time) Orders { return m.poll(now, m.advance, m.wake) }

func (m *Classic) advance(now time.Time) {
	if m.state == joining && m.request == 0 && !m.retryAt.After(now) {
		m.sendJoin()
	}
	if m.wantsDescription(now) {
		m.serial++
		m.watch.asking = m.serial
		m.out.Describe = &Describe{Serial: m.serial, Topics: m.watch.topics}
	}
	if m.beats() && m.beat == 0 && !m.beatAt.After(now) {
		m.sendBeat()
	}
}

// wake is when time alone makes something due.
func (m *Classic) wake() (at time.Time) {
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	switch {
	case m.state == joining && m.request == 0, m.state == describing && m.watch.asking == 0:
		earlier(m.retryAt)
	case m.state == stable && m.watch.leads && m.watch.asking == 0:
		earlier(m.watch.at)
	}
	if m.beats() && m.beat == 0 {
		earlier(m.beatAt)
	}
	return at
}

func (m *Classic) send(req kmsg.Request, long bool, timeout time.Duration) int {
	m.serial++
	m.out.Send = append(m.out.Send, Send{Serial: m.serial, Request: req, Long: long, Timeout: timeout})
	return m.serial
}

// Subscribe gives the topics to be read.
func (m *Classic) Subscribe(now time.Time, topics []string) {
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	if m.state != idle && slices.Equal(topics, m.topics) {
		return
	}
	m.topics = topics
	if m.state == idle {
		m.state = joining
		return
	}
	m.wantRejoin(now)
}

// wantRejoin joins again, at once or as soon as that is possible.
func (m *Classic) wantRejoin(now time.Time) {
	switch m.state {
	case stable, adopting:
		m.rejoin(now, false)
	case describing, syncing:
		m.again = true
	case joining:
		m.again = m.request != 0
	}
}

// rejoin begins a rebalance: what must be given up for it is given up, then the member joins.
func (m *Classic) rejoin(now time.Time, lost bool) {
	m.again = false
	m.watch.forget()
	keep := m.held
	if lost || !m.coop {
		keep = nil
	}
	if lost {
		m.generation, m.beat = none, 0
	}
	if m.holding == 0 && count(keep) == count(m.held) {
		m.join()
		return
	}
	// A Reconcile under way is broken off: it may be waiting for what only the rebalance brings.
	if m.holding != 0 && keep != nil {
		keep, _ = split(m.held, m.target)
	}
	m.state = revoking
	m.reconcile(Reconcile{Hold: keep, Lost: lost})
}

// join makes the member join when its backoff has passed. Heartbeats end: that it waits in a
// JoinGroup tells the coordinator that it lives.
func (m *Classic) join() {
	m.state, m.beat = joining, 0
}

// lose gives everything up that others may have by now, and joins as somebody new, or, where only
// the generation is gone, as the same.
func (m *Classic) lose(now time.Time, forget bool) {
	if forget {
		m.id = ""
	}
	m.rejoin(now, true)
}

func (m *Classic) reconcile(r Reconcile) {
	gone, _ := assign.Diff(m.held, r.Hold)
	m.serial++
	m.holding, m.revokes, m.target = m.serial, len(gone) > 0, r.Hold
	r.Serial, r.Generation = m.serial, m.generation
	m.out.Reconcile = &r
}

// Held says what the driver holds now.
func (m *Classic) Held(now time.Time, serial int, held []assign.TopicPartitions) {
	if serial != m.holding || m.state == left {
		return
	}
	m.holding, m.held, m.heldIn = 0, assign.Normal(held), m.generation
	switch m.state {
	case revoking:
		m.join()
	case adopting:
		m.failures, m.nonsense = 0, 0
		m.state = stable
		m.watch.at = now.Add(m.set.Watch)
		// What this member gave up, its next owner gets in the generation that follows (KIP-429).
		if m.again || m.revokes {
			m.rejoin(now, false)
		}
	}
}

// Leave ends the membership. A static member stays one until its session ends, so that it can come
// back within it without a rebalance.
func (m *Classic) Leave(time.Time) {
	m.beat, m.holding, m.err = 0, 0, nil
	m.out = Orders{}
	if m.id == "" || m.set.InstanceID != "" {
		m.state = left
		return
	}
	m.state = leaving
	m.request = m.send(m.leaveRequest(), false, 0)
}

// Suspend leaves the group for a while. A static member says nothing, as in Leave.
func (m *Classic) Suspend(time.Time) {
	switch m.state {
	case idle, away, leaving, left:
		return
	}
	if m.err != nil {
		return
	}
	if m.id != "" && m.set.InstanceID == "" {
		m.send(m.leaveRequest(), false, 0)
	}
	m.id, m.generation, m.request, m.beat, m.again = "", none, 0, 0, false
	m.watch.forget()
	m.state = away
	if m.holding != 0 || len(m.held) > 0 {
		m.reconcile(Reconcile{Lost: true})
	}
}

// Resume joins again, as somebody new.
func (m *Classic) Resume(now time.Time) {
	if m.state != away {
		return
	}
	m.failures, m.retryAt = 0, now
	if m.holding != 0 {
		m.state = revoking
		return
	}
	m.join()
}

func count(parts []assign.TopicPartitions) (n int) {
	for _, t := range parts {
		n += len(t.Partitions)
	}
	return n
}

// split is what of a is also in b, and what is not.
func split(a, b []assign.TopicPartitions) (both, only []assign.TopicPartitions) {
	only, _ = assign.Diff(a, b)
	both, _ = assign.Diff(a, only)
	return both, only
}
