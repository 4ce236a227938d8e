package assign

import (
	"math"

	"github.com/kbench/kbench/client/internal/wire"
)

// stickyBalancer gives partitions so that members' loads are as equal as their subscriptions let
// them be, and, among all the ways to do that, so that as many partitions as possible stay with
// their members. Both are exact (see flow), which Java's assignors of the same names are where all
// members have the same subscription; the format of what members say is theirs.
//
// Eager, everybody gives everything up before joining and gets most of it back. Cooperative, a
// partition that changes hands is left out until a rebalance in which nobody claims it any more.
type stickyBalancer struct{ cooperative bool }

func (b stickyBalancer) Name() string {
	if b.cooperative {
		return CooperativeSticky
	}
	return Sticky
}

func (b stickyBalancer) Cooperative() bool { return b.cooperative }

func (b stickyBalancer) Metadata(m Member) []byte {
	if b.cooperative {
		return encodeSubscription(m, true, wire.AppendInt32(nil, m.Generation))
	}
	if len(m.Owned) == 0 {
		return encodeSubscription(m, false, nil)
	}
	return encodeSubscription(m, false, appendSticky(m))
}

func (b stickyBalancer) Balance(members []Member, partitions map[string]int32) map[string][]TopicPartitions {
	g := newGroup(members, partitions)
	before := newHoldings(g)
	after := newClasses(g, before)
	after.spread()
	after.improve()
	after.place()
	out := make(shares, len(g.members))
	for t, topic := range g.topics {
		for p := range partitions[topic] {
			i := before.first[t] + p
			to := after.holder[i]
			if b.cooperative && before.heldBack(i, to) {
				continue
			}
			out.give(int(to), topic, p, p+1)
		}
	}
	return out.byID(g)
}

// nobody is the owner of a partition that has none.
const nobody = -1

// holdings is who holds what before the rebalance. Partitions are numbered through all topics, in
// their order.
type holdings struct {
	first   []int32 // by topic: its first partition's number
	owner   []int32 // by partition: the member whose claim counts and that may keep it, or nobody
	claimed []bool  // by partition: somebody holds it, or says so
}

// newHoldings believes, of the claims on a partition, that of the latest generation: older ones are
// of members that missed a rebalance (KIP-341, KIP-792). Two claims of one generation contradict
// each other, and neither counts.
func newHoldings(g *group) *holdings {
	h := &holdings{first: make([]int32, len(g.topics))}
	number := make(map[string]int, len(g.topics))
	total := int32(0)
	for t, topic := range g.topics {
		number[topic], h.first[t] = t, total
		total += g.partitions[topic]
	}
	h.owner, h.claimed = filled(total, nobody), make([]bool, total)
	latest := filled(total, math.MinInt32)
	for i := range g.members {
		m := &g.members[i]
		for _, owned := range Normal(m.Owned) {
			t, exists := number[owned.Topic]
			if !exists {
				continue
			}
			keeps := contains(m.Topics, owned.Topic)
			for _, p := range owned.Partitions {
				if p >= 0 && p < g.partitions[owned.Topic] {
					h.note(h.first[t]+p, int32(i), m.Generation, keeps, latest)
				}
			}
		}
	}
	return h
}

// note enters one claim; keeps says whether the member still wants the topic.
func (h *holdings) note(partition, member, generation int32, keeps bool, latest []int32) {
	h.claimed[partition] = true
	switch {
	case generation < latest[partition]:
	case generation == latest[partition]:
		h.owner[partition] = nobody
	default:
		latest[partition], h.owner[partition] = generation, nobody
		if keeps {
			h.owner[partition] = member
		}
	}
}

// heldBack says whether a partition that is going to a member has to be given up first by somebody.
func (h *holdings) heldBack(partition, to int32) bool {
	return h.claimed[partition] && h.owner[partition] != to
}

func filled(n, v int32) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = v
	}
	return s
}
