// Package assign distributes the partitions of a consumer group's topics over its members, as the
// member that leads a group of the classic protocol has to. It holds the assignors that Java has
// under the same names, what members tell each other through the coordinator (the consumer
// protocol's subscription and assignment), and the arithmetic of sets of partitions.
//
// All of it is pure: no clock, no network, the same answer for the same input, whatever the order
// of members. What comes from other members is bounded by its own length and never trusted: topics
// and partitions that do not exist are left out, claims that contradict each other are dropped.
package assign

import (
	"cmp"
	"slices"
	"strings"
)

// TopicPartitions is some partitions of one topic.
type TopicPartitions struct {
	Topic      string
	Partitions []int32
}

// Member is what the leader knows of a member of its group.
type Member struct {
	ID         string
	InstanceID string // of a static member (KIP-345); empty: none
	Rack       string // empty: none. No assignor here looks at it
	Topics     []string
	// Owned is what the member holds while it joins (cooperative), or held before (sticky).
	Owned []TopicPartitions
	// Generation in which Owned was assigned; -1: not known, which counts as older than any.
	Generation int32
}

// Balancer is an assignor. Its values have no state and are safe for concurrent use.
type Balancer interface {
	// Name is what members agree on: Java's name of the same assignor.
	Name() string
	// Cooperative says whether members keep their partitions while they join, and Balance hands a
	// partition on only once its owner gave it up (KIP-429).
	Cooperative() bool
	// Metadata is what m sends the group's leader beside Name: a ConsumerProtocolSubscription.
	// ID and InstanceID are not part of it.
	Metadata(m Member) []byte
	// Balance gives every partition of a topic that somebody subscribed to and that is in
	// partitions (topic → number of partitions) to one of its subscribers. Every member has an
	// entry in the answer, sorted by topic and partition, perhaps an empty one. Of members with
	// the same ID the first counts.
	Balance(members []Member, partitions map[string]int32) map[string][]TopicPartitions
}

// Names of the assignors.
const (
	Range             = "range"
	RoundRobin        = "roundrobin"
	Sticky            = "sticky"
	CooperativeSticky = "cooperative-sticky"
)

// Names lists every assignor that ByName knows.
func Names() []string { return []string{Range, RoundRobin, Sticky, CooperativeSticky} }

// ByName is the assignor of a name; ok is false when there is none.
func ByName(name string) (b Balancer, ok bool) {
	switch name {
	case Range:
		return rangeBalancer{}, true
	case RoundRobin:
		return roundRobinBalancer{}, true
	case Sticky:
		return stickyBalancer{}, true
	case CooperativeSticky:
		return stickyBalancer{cooperative: true}, true
	}
	return nil, false
}

// AllCooperative says whether a member that offers these assignors may keep its partitions while
// it joins: only when each of them is cooperative, since any may be chosen (KIP-429). False of none.
func AllCooperative(balancers []Balancer) bool {
	return len(balancers) > 0 && !slices.ContainsFunc(balancers, func(b Balancer) bool { return !b.Cooperative() })
}

// group is the input of an assignor, put in order: members as Java sorts them, each with its
// topics sorted, once, and only those that have partitions.
type group struct {
	members    []Member
	partitions map[string]int32
	topics     []string // somebody's, sorted
}

func newGroup(members []Member, partitions map[string]int32) *group {
	g := &group{partitions: partitions}
	ids, topics := make(map[string]bool, len(members)), map[string]bool{}
	for _, m := range members {
		if ids[m.ID] {
			continue
		}
		ids[m.ID] = true
		m.Topics = g.existing(m.Topics)
		for _, t := range m.Topics {
			if !topics[t] {
				topics[t] = true
				g.topics = append(g.topics, t)
			}
		}
		g.members = append(g.members, m)
	}
	slices.Sort(g.topics)
	slices.SortFunc(g.members, compareMembers)
	return g
}

// existing is the topics that have partitions, sorted, each once.
func (g *group) existing(topics []string) []string {
	out := make([]string, 0, len(topics))
	for _, t := range topics {
		if g.partitions[t] > 0 {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// compareMembers puts static members first, by instance id, so that they keep their place when
// they come back under another member id.
func compareMembers(a, b Member) int {
	switch {
	case a.InstanceID != "" && b.InstanceID != "":
		return cmp.Or(strings.Compare(a.InstanceID, b.InstanceID), strings.Compare(a.ID, b.ID))
	case a.InstanceID != "":
		return -1
	case b.InstanceID != "":
		return 1
	}
	return strings.Compare(a.ID, b.ID)
}

// shares is an assignment being made: by member (its index), in the order in which partitions are
// given.
type shares [][]TopicPartitions

// give appends partitions [from, to) of a topic to a member's.
func (s shares) give(member int, topic string, from, to int32) {
	if from >= to {
		return
	}
	list := s[member]
	if n := len(list); n == 0 || list[n-1].Topic != topic {
		list = append(list, TopicPartitions{Topic: topic})
	}
	last := &list[len(list)-1]
	for p := from; p < to; p++ {
		last.Partitions = append(last.Partitions, p)
	}
	s[member] = list
}

// byID is the answer of Balance.
func (s shares) byID(g *group) map[string][]TopicPartitions {
	out := make(map[string][]TopicPartitions, len(g.members))
	for i := range g.members {
		out[g.members[i].ID] = s[i]
	}
	return out
}
