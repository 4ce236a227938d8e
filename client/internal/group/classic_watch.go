package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/wire"
)

// watch is what the leader keeps: the members it assigns to, and how many partitions their topics
// had when it did: nobody but the leader notices when they have more.
type watch struct {
	leads   bool
	skip    bool // the coordinator has the assignment (KIP-814): only watch
	members []assign.Member
	topics  []string // of all members
	sizes   map[string]int32
	missing map[string]int // how many times in a row a topic was not there

	asking int       // serial of the Describe under way; 0: none
	at     time.Time // of the next one, while nothing else happens
}

func (w *watch) forget() { *w = watch{} }

// lead takes over the members of the group. What one of them says of itself and cannot be read
// leaves that one without partitions, and the others with theirs.
func (w *watch) lead(assignor string, members []kmsg.JoinGroupResponseMember, skip bool) {
	w.leads, w.skip = true, skip
	for i := range members {
		instance := ""
		if members[i].InstanceID != nil {
			instance = *members[i].InstanceID
		}
		m, err := assign.DecodeMember(assignor, members[i].MemberID, instance, members[i].ProtocolMetadata)
		if err != nil {
			m = assign.Member{ID: members[i].MemberID, InstanceID: instance, Generation: none}
		}
		w.members = append(w.members, m)
		w.topics = append(w.topics, m.Topics...)
	}
	slices.Sort(w.topics)
	w.topics = slices.Compact(w.topics)
	if w.topics == nil {
		w.topics = []string{}
	}
}

func (m *Classic) wantsDescription(now time.Time) bool {
	if m.watch.asking != 0 {
		return false
	}
	switch m.state {
	case describing:
		return !m.retryAt.After(now)
	case stable:
		return m.watch.leads && !m.watch.at.After(now)
	}
	return false
}

// Described takes in what the cluster says of the topics.
func (m *Classic) Described(now time.Time, serial int, topics map[string]Topic, err error) {
	if m.err != nil || serial == 0 || serial != m.watch.asking {
		return
	}
	m.watch.asking = 0
	switch m.state {
	case describing:
		m.plan(now, topics, err)
	case stable:
		m.watch.at = now.Add(m.set.Watch)
		if err == nil && m.watch.changed(topics) {
			m.rejoin(now, false)
		}
		if len(m.watch.missing) > 0 {
			m.watch.at = now.Add(min(m.set.Watch, time.Second)) // to be sure soon
		}
	}
}

// plan makes the assignment, and sends it.
func (m *Classic) plan(now time.Time, topics map[string]Topic, err error) {
	if err != nil {
		m.failures++
		m.retryAt = now.Add(m.set.Backoff(m.failures))
		if !wire.Classify(err).Has(wire.Retriable) {
			m.fail("leading", err)
		}
		return
	}
	m.watch.sizes = make(map[string]int32, len(topics))
	for name, t := range topics {
		m.watch.sizes[name] = t.Partitions
	}
	if m.watch.skip {
		m.sendSync(nil)
		return
	}
	m.sendSync(m.balancer.Balance(m.watch.members, m.watch.sizes))
}

// goneTries is how many times in a row a topic must be missing to count as deleted: a broker that
// lags behind may not know one.
const goneTries = 2

// changed says whether the assignment has to be made anew.
func (w *watch) changed(topics map[string]Topic) bool {
	missing := map[string]int{}
	for _, name := range w.topics {
		was, is := w.sizes[name], topics[name].Partitions
		switch {
		case is == was:
		case is > 0:
			return true
		default:
			missing[name] = w.missing[name] + 1
			if missing[name] >= goneTries {
				return true
			}
		}
	}
	w.missing = missing
	return false
}
