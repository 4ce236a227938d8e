package assign

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// place is one partition.
type place struct {
	topic string
	id    int32
}

// holders says which members hold each partition.
func holders(assigned map[string][]TopicPartitions) map[place][]string {
	out := map[place][]string{}
	for _, id := range slices.Sorted(maps.Keys(assigned)) {
		for _, t := range assigned[id] {
			for _, p := range t.Partitions {
				out[place{t.Topic, p}] = append(out[place{t.Topic, p}], id)
			}
		}
	}
	return out
}

func loads(assigned map[string][]TopicPartitions) map[string]int {
	out := map[string]int{}
	for id, list := range assigned {
		out[id] = 0
		for _, t := range list {
			out[id] += len(t.Partitions)
		}
	}
	return out
}

// drawGroup makes members that subscribe to some of the topics, all to the same ones where equal,
// and claims for which nothing holds that a sane group would keep to.
func drawGroup(t *rapid.T, topics, most, size int, equal bool) ([]Member, partitionCount) {
	counts := partitionCount{}
	var names []string
	for i := range rapid.IntRange(1, topics).Draw(t, "topics") {
		name := fmt.Sprintf("t%d", i)
		names = append(names, name)
		counts[name] = rapid.Int32Range(0, int32(size)).Draw(t, "partitions")
	}
	common := rapid.SliceOfN(rapid.SampledFrom(names), 1, topics).Draw(t, "common")
	members := make([]Member, rapid.IntRange(1, most).Draw(t, "members"))
	for i := range members {
		m := Member{ID: fmt.Sprintf("m%d", i), Topics: common, Generation: rapid.Int32Range(-1, 3).Draw(t, "generation")}
		if !equal {
			m.Topics = rapid.SliceOfN(rapid.SampledFrom(names), 0, topics).Draw(t, "subscription")
		}
		for _, name := range names {
			owned := rapid.SliceOfNDistinct(rapid.Int32Range(-1, int32(size)), 0, size, rapid.ID).Draw(t, "owned")
			m.Owned = append(m.Owned, TopicPartitions{name, owned})
		}
		members[i] = m
	}
	return members, counts
}

// complete fails unless every partition of a topic that somebody subscribed to is with exactly one
// of its subscribers, and every member has an entry.
func complete(t require.TestingT, members []Member, counts partitionCount, got map[string][]TopicPartitions) {
	held := holders(got)
	subscribed := map[string][]string{}
	for _, m := range members {
		require.Contains(t, got, m.ID)
		require.Equal(t, Normal(got[m.ID]), got[m.ID], "sorted, each partition once")
		for _, topic := range m.Topics {
			subscribed[topic] = append(subscribed[topic], m.ID)
		}
	}
	total := 0
	for topic, ids := range subscribed {
		total += int(counts[topic])
		for p := range counts[topic] {
			require.Len(t, held[place{topic, p}], 1, "%s partition %d", topic, p)
			require.Contains(t, ids, held[place{topic, p}][0])
		}
	}
	require.Len(t, held, total)
	require.Len(t, got, len(members))
}

func TestEveryPartitionOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{Range, RoundRobin, Sticky}).Draw(t, "assignor")
		members, counts := drawGroup(t, 4, 6, 9, rapid.Bool().Draw(t, "equal"))
		b, _ := ByName(name)
		got := b.Balance(members, counts)
		complete(t, members, counts, got)
		shuffled := rapid.Permutation(members).Draw(t, "order")
		require.Equal(t, got, b.Balance(shuffled, counts), "the order of members says nothing")
	})
}

func TestBalancedWhereSubscriptionsAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{RoundRobin, Sticky}).Draw(t, "assignor")
		members, counts := drawGroup(t, 5, 9, 20, true)
		b, _ := ByName(name)
		got := slices.Collect(maps.Values(loads(b.Balance(members, counts))))
		require.LessOrEqual(t, slices.Max(got)-slices.Min(got), 1)
	})
}

// best tries all assignments: the least sum of squared loads, and with that the least number of
// partitions that leave their owners.
func best(members []Member, counts partitionCount, owner map[place]string) (squares, moved int) {
	subscribers := map[string][]int{}
	var all []place
	for i, m := range members {
		for _, topic := range slices.Compact(slices.Sorted(slices.Values(m.Topics))) {
			if len(subscribers[topic]) == 0 {
				for p := range counts[topic] {
					all = append(all, place{topic, p})
				}
			}
			subscribers[topic] = append(subscribers[topic], i)
		}
	}
	squares, moved = 1<<30, 1<<30
	load := make([]int, len(members))
	var try func(i, leaving int)
	try = func(i, leaving int) {
		if i == len(all) {
			sum := 0
			for _, n := range load {
				sum += n * n
			}
			if sum < squares || (sum == squares && leaving < moved) {
				squares, moved = sum, leaving
			}
			return
		}
		for _, m := range subscribers[all[i].topic] {
			load[m]++
			away := 0
			if was, owned := owner[all[i]]; owned && was != members[m].ID {
				away = 1
			}
			try(i+1, leaving+away)
			load[m]--
		}
	}
	try(0, 0)
	return squares, moved
}

// Of all assignments there are, the sticky one is among the most balanced, and among those moves
// the least; whatever members claim.
func TestStickyIsTheBestThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, counts := drawGroup(t, 3, 4, 3, rapid.Bool().Draw(t, "equal"))
		total := int32(0)
		for _, n := range counts {
			total += n
		}
		if total > 7 {
			t.Skip("too many to try them all")
		}
		// The model of whose claims count: the latest generation's, unless two say the same.
		owner, latest := map[place]string{}, map[place]int32{}
		for _, m := range members {
			for _, owned := range m.Owned {
				for _, p := range owned.Partitions {
					at := place{owned.Topic, p}
					last, claimed := latest[at]
					switch {
					case p < 0 || p >= counts[owned.Topic] || (claimed && m.Generation < last):
						continue
					case claimed && m.Generation == last:
						delete(owner, at)
						continue
					}
					latest[at] = m.Generation
					delete(owner, at)
					if slices.Contains(m.Topics, owned.Topic) {
						owner[at] = m.ID
					}
				}
			}
		}
		b, _ := ByName(Sticky)
		got := b.Balance(members, counts)
		squares, moved := 0, 0
		for _, n := range loads(got) {
			squares += n * n
		}
		for at, ids := range holders(got) {
			if was, owned := owner[at]; owned && was != ids[0] {
				moved++
			}
		}
		bestSquares, bestMoved := best(members, counts, owner)
		require.Equal(t, bestSquares, squares, "balance")
		require.Equal(t, bestMoved, moved, "partitions that left their owners")
	})
}

// joinAll makes members of what they hold, as they join generation after the last.
func joinAll(members []Member, held map[string][]TopicPartitions, generation int32) []Member {
	out := slices.Clone(members)
	for i := range out {
		out[i].Owned, out[i].Generation = held[out[i].ID], generation
	}
	return out
}

// A group of cooperative members that come, go and change their minds: never do two hold the same
// partition, and two rebalances after the last change everything is with somebody and stays there.
func TestCooperativeConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, _ := ByName(CooperativeSticky)
		held := map[string][]TopicPartitions{}
		generation := int32(0)
		equal := rapid.Bool().Draw(t, "equal")
		round := func(members []Member, counts partitionCount) map[string][]TopicPartitions {
			// Members that are gone hold nothing any more; the others hold on to theirs.
			got := b.Balance(joinAll(members, held, generation), counts)
			generation++
			for at, ids := range holders(got) {
				require.Len(t, ids, 1, "%v", at)
				for _, m := range members {
					if m.ID != ids[0] && slices.Contains(of(Normal(held[m.ID]), at.topic), at.id) {
						t.Fatalf("%v was given to %s while %s holds it", at, ids[0], m.ID)
					}
				}
			}
			held = map[string][]TopicPartitions{}
			maps.Copy(held, got)
			return got
		}
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			members, counts := drawGroup(t, 3, 6, 8, equal)
			first := round(members, counts)
			second := round(members, counts)
			complete(t, members, counts, second)
			for _, m := range members {
				revoked, _ := Diff(first[m.ID], second[m.ID])
				require.Empty(t, revoked, "the second rebalance takes nothing from anybody")
			}
			require.Equal(t, second, round(members, counts), "the third changes nothing")
		}
	})
}

// A member joins or leaves a balanced group of equal members: what moves is what has to.
func TestNoMoreMovesThanNecessary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, counts := drawGroup(t, 4, 9, 12, true)
		for i := range members {
			members[i].Owned = nil
		}
		b, _ := ByName(Sticky)
		before := b.Balance(members, counts)
		joined := append(joinAll(members, before, 1), Member{ID: "new", Topics: members[0].Topics, Generation: -1})
		after := b.Balance(joined, counts)
		moved := 0
		for at, ids := range holders(before) {
			if now := holders(after)[at]; now[0] != ids[0] {
				require.Equal(t, "new", now[0], "nothing moves between those that were there")
				moved++
			}
		}
		require.Equal(t, loads(after)["new"], moved)

		without := joinAll(members, before, 1)[1:]
		if len(without) == 0 {
			return
		}
		for at, ids := range holders(b.Balance(without, counts)) {
			if was := holders(before)[at][0]; was != members[0].ID {
				require.Equal(t, was, ids[0], "only what the one that left had moves")
			}
		}
	})
}
