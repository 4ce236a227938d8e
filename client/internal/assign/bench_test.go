package assign

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bigGroup is 100 members on 100 topics of 100 partitions; each member subscribes to all, or to
// each with probability one half.
func bigGroup(equal bool) ([]Member, partitionCount) {
	rng := rand.New(rand.NewPCG(1, 2))
	counts := partitionCount{}
	members := make([]Member, 100)
	for i := range members {
		members[i] = Member{ID: fmt.Sprintf("member-%03d", i), Generation: 1}
	}
	for n := range 100 {
		topic := fmt.Sprintf("topic-%03d", n)
		counts[topic] = 100
		for i := range members {
			if equal || rng.IntN(2) == 0 {
				members[i].Topics = append(members[i].Topics, topic)
			}
		}
	}
	return members, counts
}

// settled is the group after a first rebalance.
func settled(b Balancer, members []Member, counts partitionCount) []Member {
	return joinAll(members, b.Balance(members, counts), 1)
}

// A leader that takes long over this misses its own heartbeats.
func TestABigGroupIsBalancedInTime(t *testing.T) {
	for _, equal := range []bool{true, false} {
		members, counts := bigGroup(equal)
		b, _ := ByName(Sticky)
		members = settled(b, members, counts)
		start := time.Now()
		got := b.Balance(members[1:], counts)
		require.Less(t, time.Since(start), 5*time.Second, "a second is the goal on a machine with nothing else to do")
		complete(t, members[1:], counts, got)
	}
}

func BenchmarkBalance(b *testing.B) {
	for _, name := range Names() {
		balancer, _ := ByName(name)
		for _, equal := range []bool{true, false} {
			members, counts := bigGroup(equal)
			kind := map[bool]string{true: "equal", false: "differing"}[equal]
			run := func(what string, members []Member) {
				b.Run(name+"/"+kind+"/"+what, func(b *testing.B) {
					for b.Loop() {
						balancer.Balance(members, counts)
					}
				})
			}
			run("fresh", members)
			there := settled(balancer, members, counts)
			run("one leaves", there[1:])
			run("one joins", append(settled(balancer, members[1:], counts), members[0]))
		}
	}
}
