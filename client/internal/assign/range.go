package assign

// rangeBalancer gives each subscriber of a topic a contiguous range of its partitions, the first
// ones one more where they do not divide evenly. Partitions of the same number in topics of the
// same size and with the same subscribers meet at one member.
type rangeBalancer struct{}

func (rangeBalancer) Name() string             { return Range }
func (rangeBalancer) Cooperative() bool        { return false }
func (rangeBalancer) Metadata(m Member) []byte { return encodeSubscription(m, false, nil) }

func (rangeBalancer) Balance(members []Member, partitions map[string]int32) map[string][]TopicPartitions {
	g := newGroup(members, partitions)
	subscribers := make(map[string][]int, len(g.topics))
	for i := range g.members {
		for _, t := range g.members[i].Topics {
			subscribers[t] = append(subscribers[t], i)
		}
	}
	out := make(shares, len(g.members))
	for _, t := range g.topics {
		some := subscribers[t]
		each, more := partitions[t]/int32(len(some)), partitions[t]%int32(len(some))
		from := int32(0)
		for n, member := range some {
			to := from + each
			if int32(n) < more {
				to++
			}
			out.give(member, t, from, to)
			from = to
		}
	}
	return out.byID(g)
}
