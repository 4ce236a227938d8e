package assign

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// class is the topics that have the same subscribers: for balance and stickiness alike only the
// number of a class's partitions at each member counts, not which.
type class struct {
	members    []int32 // its subscribers
	own        []int32 // by position in members: how many of its partitions the member owned before
	has        []int32 // by position in members: how many it gets
	partitions []int32 // in order
	free       []int32 // those that nobody owns
}

// classes is a sticky assignment being made.
type classes struct {
	of     []class // those with the fewest subscribers first
	load   []int64 // by member: the number of partitions it gets
	owner  []int32 // by partition, see holdings
	holder []int32 // by partition: who gets it
}

func newClasses(g *group, before *holdings) *classes {
	a := &classes{load: make([]int64, len(g.members)), owner: before.owner, holder: slices.Clone(before.owner)}
	subscribers := make(map[string][]int32, len(g.topics))
	for i := range g.members {
		for _, t := range g.members[i].Topics {
			subscribers[t] = append(subscribers[t], int32(i))
		}
	}
	known := map[string]int{}
	for t, topic := range g.topics {
		key := keyOf(subscribers[topic])
		n, there := known[key]
		if !there {
			n = len(a.of)
			known[key] = n
			members := subscribers[topic]
			a.of = append(a.of, class{members: members, own: make([]int32, len(members)), has: make([]int32, len(members))})
		}
		a.of[n].add(before, before.first[t], g.partitions[topic])
	}
	for c := range a.of {
		k := &a.of[c]
		copy(k.has, k.own)
		for pos, m := range k.members {
			a.load[m] += int64(k.has[pos])
		}
	}
	slices.SortStableFunc(a.of, func(x, y class) int { return cmp.Compare(len(x.members), len(y.members)) })
	return a
}

// keyOf makes a map's key of a list of members.
func keyOf(members []int32) string {
	b := make([]byte, 0, 4*len(members))
	for _, m := range members {
		b = binary.BigEndian.AppendUint32(b, uint32(m))
	}
	return string(b)
}

// add takes a topic's partitions, n from first on, into the class.
func (k *class) add(before *holdings, first, n int32) {
	for p := first; p < first+n; p++ {
		k.partitions = append(k.partitions, p)
		if owner := before.owner[p]; owner == nobody {
			k.free = append(k.free, p)
		} else {
			k.own[k.position(owner)]++
		}
	}
}

// position is where a subscriber stands in members.
func (k *class) position(member int32) int {
	pos, _ := slices.BinarySearch(k.members, member)
	return pos
}

// spread gives each free partition to the subscriber with the smallest load, the first of them
// where several have it. Classes that few may have come first, while there is a choice for the rest.
func (a *classes) spread() {
	for c := range a.of {
		k := &a.of[c]
		for _, p := range k.free {
			least := 0
			for pos, m := range k.members {
				if a.load[m] < a.load[k.members[least]] {
					least = pos
				}
			}
			m := k.members[least]
			k.has[least]++
			a.load[m]++
			a.holder[p] = m
		}
	}
}

// place says which partitions make up the numbers in has: each member keeps what it owned, then
// what spread gave it, and what is left goes in turn to those that lack something.
func (a *classes) place() {
	for c := range a.of {
		k := &a.of[c]
		left := slices.Clone(k.has)
		var pool []int32
		keep := func(p int32) {
			if pos := k.position(a.holder[p]); left[pos] > 0 {
				left[pos]--
			} else {
				pool = append(pool, p)
			}
		}
		for _, p := range k.partitions {
			if a.owner[p] != nobody {
				keep(p)
			}
		}
		for _, p := range k.free {
			keep(p)
		}
		slices.Sort(pool)
		pos := 0
		for _, p := range pool {
			for left[pos] == 0 { // ends: has adds up to all partitions
				pos = (pos + 1) % len(left)
			}
			left[pos]--
			a.holder[p] = k.members[pos]
			pos = (pos + 1) % len(left)
		}
	}
}

// contains is slices.Contains for a sorted list.
func contains(sorted []string, s string) bool {
	_, there := slices.BinarySearch(sorted, s)
	return there
}
