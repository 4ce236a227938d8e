package assign

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parts reads "t0:0,1 t1:2".
func parts(s string) (out []TopicPartitions) {
	for _, word := range strings.Fields(s) {
		topic, numbers, _ := strings.Cut(word, ":")
		t := TopicPartitions{Topic: topic}
		for _, n := range strings.Split(numbers, ",") {
			var p int32
			if _, err := fmt.Sscan(n, &p); err != nil {
				panic(err)
			}
			t.Partitions = append(t.Partitions, p)
		}
		out = append(out, t)
	}
	return out
}

// member reads its topics and what it owns in generation 1: "t0 t1", "t0:0 t1:2".
func member(id, topics, owned string) Member {
	return Member{ID: id, Topics: strings.Fields(topics), Owned: parts(owned), Generation: 1}
}

func static(id, instance, topics string) Member {
	return Member{ID: id, InstanceID: instance, Topics: strings.Fields(topics), Generation: -1}
}

func generation(n int32, m Member) Member {
	m.Generation = n
	return m
}

type partitionCount = map[string]int32

type row struct {
	what       string
	members    []Member
	partitions partitionCount
	want       map[string]string
}

func (r row) check(t *testing.T, name string) {
	t.Helper()
	b, ok := ByName(name)
	require.True(t, ok)
	want := map[string][]TopicPartitions{}
	for id, s := range r.want {
		want[id] = parts(s)
	}
	require.Equal(t, want, b.Balance(r.members, r.partitions), r.what)
	slices.Reverse(r.members)
	require.Equal(t, want, b.Balance(r.members, r.partitions), "%s: the order of members says nothing", r.what)
}

func TestRange(t *testing.T) {
	for _, r := range []row{
		{"javadoc of RangeAssignor: two consumers, two topics of three partitions",
			[]Member{member("C0", "t0 t1", ""), member("C1", "t0 t1", "")}, partitionCount{"t0": 3, "t1": 3},
			map[string]string{"C0": "t0:0,1 t1:0,1", "C1": "t0:2 t1:2"}},
		{"only subscribers of a topic share it",
			[]Member{member("a", "t0", ""), member("b", "t0 t1", ""), member("c", "t1", "")}, partitionCount{"t0": 4, "t1": 3},
			map[string]string{"a": "t0:0,1", "b": "t0:2,3 t1:0,1", "c": "t1:2"}},
		{"more members than partitions: the last ones get nothing, and an entry that says so",
			[]Member{member("a", "t", ""), member("b", "t", ""), member("c", "t", "")}, partitionCount{"t": 2},
			map[string]string{"a": "t:0", "b": "t:1", "c": ""}},
		{"KIP-345: static members keep their places under new member ids, before all others",
			[]Member{static("z", "i1", "t"), static("y", "i2", "t"), static("a", "", "t")}, partitionCount{"t": 3},
			map[string]string{"z": "t:0", "y": "t:1", "a": "t:2"}},
		{"topics that do not exist, none, and the same topic twice",
			[]Member{member("a", "t t gone", ""), member("b", "", ""), member("c", "empty", "")}, partitionCount{"t": 2, "empty": 0},
			map[string]string{"a": "t:0,1", "b": "", "c": ""}},
		{"a topic that nobody wants", []Member{member("a", "t", "")}, partitionCount{"t": 1, "other": 9},
			map[string]string{"a": "t:0"}},
		{"the same member twice counts once", []Member{member("a", "t", ""), member("a", "t", "")}, partitionCount{"t": 2},
			map[string]string{"a": "t:0,1"}},
		{"no members", nil, partitionCount{"t": 2}, map[string]string{}},
	} {
		r.check(t, Range)
	}
}

func TestRoundRobin(t *testing.T) {
	for _, r := range []row{
		{"javadoc of RoundRobinAssignor: equal subscriptions",
			[]Member{member("C0", "t0 t1", ""), member("C1", "t0 t1", "")}, partitionCount{"t0": 3, "t1": 3},
			map[string]string{"C0": "t0:0,2 t1:1", "C1": "t0:1 t1:0,2"}},
		{"javadoc of RoundRobinAssignor: who did not subscribe is passed over",
			[]Member{member("C0", "t0", ""), member("C1", "t0 t1", ""), member("C2", "t0 t1 t2", "")}, partitionCount{"t0": 1, "t1": 2, "t2": 3},
			map[string]string{"C0": "t0:0", "C1": "t1:0", "C2": "t1:1 t2:0,1,2"}},
		{"javadoc of StickyAssignor, example 1: three consumers, four topics of two",
			[]Member{member("C0", "t0 t1 t2 t3", ""), member("C1", "t0 t1 t2 t3", ""), member("C2", "t0 t1 t2 t3", "")},
			partitionCount{"t0": 2, "t1": 2, "t2": 2, "t3": 2},
			map[string]string{"C0": "t0:0 t1:1 t3:0", "C1": "t0:1 t2:0 t3:1", "C2": "t1:0 t2:1"}},
		{"javadoc of StickyAssignor, example 1: C1 is gone",
			[]Member{member("C0", "t0 t1 t2 t3", ""), member("C2", "t0 t1 t2 t3", "")}, partitionCount{"t0": 2, "t1": 2, "t2": 2, "t3": 2},
			map[string]string{"C0": "t0:0 t1:0 t2:0 t3:0", "C2": "t0:1 t1:1 t2:1 t3:1"}},
		{"static members first", []Member{static("z", "i1", "t"), static("a", "", "t")}, partitionCount{"t": 3},
			map[string]string{"z": "t:0,2", "a": "t:1"}},
		{"topics that do not exist, and members that want none",
			[]Member{member("a", "gone", ""), member("b", "t", ""), member("c", "", "")}, partitionCount{"t": 2},
			map[string]string{"a": "", "b": "t:0,1", "c": ""}},
		{"no members", nil, partitionCount{"t": 2}, map[string]string{}},
	} {
		r.check(t, RoundRobin)
	}
}

func TestSticky(t *testing.T) {
	all := "t0 t1 t2 t3"
	four := partitionCount{"t0": 2, "t1": 2, "t2": 2, "t3": 2}
	for _, r := range []row{
		{"javadoc, example 1: three consumers, four topics of two",
			[]Member{member("C0", all, ""), member("C1", all, ""), member("C2", all, "")}, four,
			map[string]string{"C0": "t0:0 t1:1 t3:0", "C1": "t0:1 t2:0 t3:1", "C2": "t1:0 t2:1"}},
		{"javadoc, example 1: C1 is gone, and nothing else moves",
			[]Member{member("C0", all, "t0:0 t1:1 t3:0"), member("C2", all, "t1:0 t2:1")}, four,
			map[string]string{"C0": "t0:0 t1:1 t2:0 t3:0", "C2": "t0:1 t1:0 t2:1 t3:1"}},
		{"javadoc, example 2: subscriptions differ",
			[]Member{member("C0", "t0", ""), member("C1", "t0 t1", ""), member("C2", "t0 t1 t2", "")}, partitionCount{"t0": 1, "t1": 2, "t2": 3},
			map[string]string{"C0": "t0:0", "C1": "t1:0,1", "C2": "t2:0,1,2"}},
		{"javadoc, example 2: C0 is gone, five partitions stay",
			[]Member{member("C1", "t0 t1", "t1:0,1"), member("C2", "t0 t1 t2", "t2:0,1,2")}, partitionCount{"t0": 1, "t1": 2, "t2": 3},
			map[string]string{"C1": "t0:0 t1:0,1", "C2": "t2:0,1,2"}},
		{"a third member joins two with three each: each gives one up",
			[]Member{member("a", "t", "t:0,2,4"), member("b", "t", "t:1,3,5"), member("c", "t", "")}, partitionCount{"t": 6},
			map[string]string{"a": "t:0,2", "b": "t:1,3", "c": "t:4,5"}},
		{"two members join: what is given up is dealt to them in turn, so that neither gets all of one topic",
			[]Member{member("a", "t u", "t:0,1,2,3"), member("b", "t u", "u:0,1,2,3"), member("c", "t u", ""), member("d", "t u", "")}, partitionCount{"t": 4, "u": 4},
			map[string]string{"a": "t:0,1", "b": "u:0,1", "c": "t:2 u:2", "d": "t:3 u:3"}},
		{"a partition is added: it goes where there is least",
			[]Member{member("a", "t", "t:0,1"), member("b", "t", "t:2")}, partitionCount{"t": 4},
			map[string]string{"a": "t:0,1", "b": "t:2,3"}},
		{"balance needs a chain: a can only take from b, which can take from c",
			[]Member{member("a", "x", ""), member("b", "x y", "x:0,1"), member("c", "y", "y:0,1,2,3")}, partitionCount{"x": 2, "y": 4},
			map[string]string{"a": "x:0,1", "b": "y:2,3", "c": "y:0,1"}},
		{"KIP-341: a member that missed a rebalance claims what is another's since",
			[]Member{generation(4, member("a", "t", "t:0,1")), generation(5, member("b", "t", "t:1,2,3"))}, partitionCount{"t": 4},
			map[string]string{"a": "t:0,3", "b": "t:1,2"}},
		{"a late claim that nobody contests is as good as any",
			[]Member{generation(4, member("a", "t", "t:0,3")), generation(5, member("b", "t", "t:1,2"))}, partitionCount{"t": 4},
			map[string]string{"a": "t:0,3", "b": "t:1,2"}},
		{"two claims of one generation contradict each other: neither counts",
			[]Member{member("a", "t", "t:1,3"), member("b", "t", "t:1,2")}, partitionCount{"t": 4},
			map[string]string{"a": "t:0,3", "b": "t:1,2"}},
		{"a claim without generation is older than any other",
			[]Member{generation(-1, member("a", "t", "t:1")), generation(0, member("b", "t", "t:1"))}, partitionCount{"t": 2},
			map[string]string{"a": "t:0", "b": "t:1"}},
		{"claims on what does not exist, or is not wanted any more, count for nothing",
			[]Member{member("a", "t", "t:0,7,-1 gone:0 u:0"), member("b", "t u", "")}, partitionCount{"t": 2, "u": 1},
			map[string]string{"a": "t:0,1", "b": "u:0"}},
		{"no topics", []Member{member("a", "t", "t:0")}, partitionCount{}, map[string]string{"a": ""}},
		{"a topic of which there are fewer than none", []Member{member("a", "s t", "t:0")}, partitionCount{"s": -1, "t": 1}, map[string]string{"a": "t:0"}},
		{"no members", nil, partitionCount{"t": 2}, map[string]string{}},
	} {
		r.check(t, Sticky)
	}
}

func TestCooperativeSticky(t *testing.T) {
	for _, r := range []row{
		{"first members: nothing is anybody's, everything is given",
			[]Member{member("a", "t", ""), member("b", "t", "")}, partitionCount{"t": 3}, map[string]string{"a": "t:0,2", "b": "t:1"}},
		{"KIP-429, first rebalance: c joins, a and b are to give one up each, c has to wait",
			[]Member{member("a", "t", "t:0,2,4"), member("b", "t", "t:1,3,5"), member("c", "t", "")}, partitionCount{"t": 6},
			map[string]string{"a": "t:0,2", "b": "t:1,3", "c": ""}},
		{"KIP-429, second rebalance: what was given up is c's",
			[]Member{member("a", "t", "t:0,2"), member("b", "t", "t:1,3"), member("c", "t", "")}, partitionCount{"t": 6},
			map[string]string{"a": "t:0,2", "b": "t:1,3", "c": "t:4,5"}},
		{"a member is gone: what was its is nobody's, and given at once",
			[]Member{member("a", "t", "t:0,2"), member("b", "t", "t:1,3")}, partitionCount{"t": 6},
			map[string]string{"a": "t:0,2,4", "b": "t:1,3,5"}},
		{"a topic that its owner does not want any more has to be given up first",
			[]Member{member("a", "t", "t:0 u:0"), member("b", "t u", "t:1")}, partitionCount{"t": 2, "u": 1},
			map[string]string{"a": "t:0", "b": "t:1"}},
		{"KIP-792: the later claim keeps its partition, the earlier has to give it up and can get others",
			[]Member{generation(4, member("a", "t", "t:0,1")), generation(5, member("b", "t", "t:1,2,3"))}, partitionCount{"t": 5},
			map[string]string{"a": "t:0,4", "b": "t:1,2,3"}},
		{"a late claim on what somebody else holds is not honoured though balance would give it the partition",
			[]Member{generation(4, member("a", "t", "t:3")), generation(5, member("b", "t", "t:0,1,2,3"))}, partitionCount{"t": 4},
			map[string]string{"a": "", "b": "t:0,1"}},
		{"two that claim the same in one generation both have to give it up",
			[]Member{member("a", "t", "t:0,1"), member("b", "t", "t:1,2")}, partitionCount{"t": 3},
			map[string]string{"a": "t:0", "b": "t:2"}},
	} {
		r.check(t, CooperativeSticky)
	}
}

func TestNames(t *testing.T) {
	require.Equal(t, []string{"range", "roundrobin", "sticky", "cooperative-sticky"}, Names())
	for _, name := range Names() {
		b, ok := ByName(name)
		require.True(t, ok)
		require.Equal(t, name, b.Name())
		require.Equal(t, name == "cooperative-sticky", b.Cooperative())
	}
	_, ok := ByName("uniform")
	require.False(t, ok, "an assignor of the server side")
	var mixed, cooperative []Balancer
	for _, name := range []string{CooperativeSticky, Range} {
		b, _ := ByName(name)
		mixed = append(mixed, b)
	}
	cooperative = mixed[:1]
	require.True(t, AllCooperative(cooperative))
	require.False(t, AllCooperative(mixed), "KIP-429: one eager assignor and members have to give everything up")
	require.False(t, AllCooperative(nil))
}

func TestDiff(t *testing.T) {
	for _, r := range []struct{ what, owned, assigned, revoked, added string }{
		{"nothing changes", "t:0,1", "t:1,0", "", ""},
		{"the first assignment", "", "u:1 t:2,0", "", "t:0,2 u:1"},
		{"everything goes", "t:0 u:1", "", "t:0 u:1", ""},
		{"some of both", "t:0,1,2 u:0", "t:1,3 v:5", "t:0,2 u:0", "t:3 v:5"},
		{"a topic in two pieces", "t:0 u:1 t:2", "t:2,0", "u:1", ""},
	} {
		revoked, added := Diff(parts(r.owned), parts(r.assigned))
		require.Equal(t, parts(r.revoked), revoked, r.what)
		require.Equal(t, parts(r.added), added, r.what)
	}
}
