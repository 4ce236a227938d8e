package assign

// roundRobinBalancer deals all partitions, by topic and number, to the members in turn; who did
// not subscribe to a topic is passed over, and is next in turn no earlier for it.
type roundRobinBalancer struct{}

func (roundRobinBalancer) Name() string             { return RoundRobin }
func (roundRobinBalancer) Cooperative() bool        { return false }
func (roundRobinBalancer) Metadata(m Member) []byte { return encodeSubscription(m, false, nil) }

func (roundRobinBalancer) Balance(members []Member, partitions map[string]int32) map[string][]TopicPartitions {
	g := newGroup(members, partitions)
	subscribed := make([]map[string]bool, len(g.members))
	for i := range g.members {
		subscribed[i] = make(map[string]bool, len(g.members[i].Topics))
		for _, t := range g.members[i].Topics {
			subscribed[i][t] = true
		}
	}
	out := make(shares, len(g.members))
	turn := 0
	for _, t := range g.topics {
		for p := range partitions[t] {
			for !subscribed[turn][t] { // ends: g.topics has only what somebody subscribed to
				turn = (turn + 1) % len(g.members)
			}
			out.give(turn, t, p, p+1)
			turn = (turn + 1) % len(g.members)
		}
	}
	return out.byID(g)
}
