package assign

// flow finds the best numbers for a sticky assignment: a minimum-cost flow by cancelling negative
// cycles (M. Klein, "A primal method for minimal cost flows", 1967), so what it ends with is the
// best there is, whatever it began with.
//
// A unit of flow is a partition. Nodes are the members, the classes, and a hub, which stands for a
// member's load growing or shrinking. An edge is a partition more or less somewhere:
//
//	hub → member    the member's load shrinks by one     −weight · (2·load − 1)
//	member → class  the member gives one of the class up  −1 where it has more than it owned
//	class → member  the member gets one of the class     +1 where it has as many as it owned
//	member → hub    the member's load grows by one       +weight · (2·load + 1)
//
// The costs of the load are the steps of its square: the sum of squares is least where loads are as
// equal as they can be. The others count partitions that members get anew. weight is more than any
// cycle can save of those, so that balance goes first.
type flow struct {
	*classes
	weight int64
	hub    int32
	dist   []int64
	from   []int32 // the node before on the shortest way found, nobody at its start
	seen   []int32 // by node: the walk that saw it last
}

// mostWork bounds the edges looked at in one rebalance, to well below a second: where subscriptions
// differ in thousands of ways the answer may then be a little worse than the best.
const mostWork = 1 << 27

// improve changes has and load until they are the best.
func (a *classes) improve() {
	f := newFlow(a)
	for work := 0; work < mostWork; {
		cycle, looked := f.find(mostWork - work)
		if cycle == nil {
			return
		}
		f.cancel(cycle)
		work += looked
	}
}

func newFlow(a *classes) *flow {
	f := &flow{classes: a, weight: int64(len(a.of)) + 1, hub: int32(len(a.load) + len(a.of))}
	nodes := f.hub + 1
	f.dist, f.from, f.seen = make([]int64, nodes), make([]int32, nodes), make([]int32, nodes)
	return f
}

// find looks for a negative cycle (Bellman, Ford), nil when there is none or most is spent; looked
// is the number of edges it looked at.
func (f *flow) find(most int) (found []int32, looked int) {
	for i := range f.from {
		f.dist[i], f.from[i] = 0, nobody
	}
	for {
		changed, edges := f.relax()
		looked += edges
		if !changed || looked > most {
			return nil, looked
		}
		if cycle := f.cycle(); cycle != nil {
			return cycle, looked
		}
	}
}

// relax shortens, once over all edges, the ways to their ends.
func (f *flow) relax() (changed bool, edges int) {
	shorten := func(from, to int32, cost int64) {
		edges++
		if d := f.dist[from] + cost; d < f.dist[to] {
			f.dist[to], f.from[to] = d, from
			changed = true
		}
	}
	for m, load := range f.load {
		if load > 0 {
			shorten(f.hub, int32(m), -f.weight*(2*load-1))
		}
	}
	for c := range f.of {
		k, node := &f.of[c], f.node(c)
		for pos, m := range k.members {
			switch {
			case k.has[pos] > k.own[pos]:
				shorten(m, node, -1)
			case k.has[pos] > 0:
				shorten(m, node, 0)
			}
		}
		for pos, m := range k.members {
			if k.has[pos] < k.own[pos] {
				shorten(node, m, 0)
			} else {
				shorten(node, m, 1)
			}
		}
	}
	for m, load := range f.load {
		shorten(int32(m), f.hub, f.weight*(2*load+1))
	}
	return changed, edges
}

func (f *flow) node(class int) int32 { return int32(len(f.load) + class) }

// cycle is one among the ways found, in the direction of its edges; such a one is negative.
func (f *flow) cycle() []int32 {
	clear(f.seen)
	for start := range f.from {
		walk := int32(start) + 1
		at := int32(start)
		for at != nobody && f.seen[at] == 0 {
			f.seen[at] = walk
			at = f.from[at]
		}
		if at == nobody || f.seen[at] != walk {
			continue
		}
		cycle := []int32{at}
		for back := f.from[at]; back != at; back = f.from[back] {
			cycle = append(cycle, back)
		}
		for i, j := 0, len(cycle)-1; i < j; i, j = i+1, j-1 {
			cycle[i], cycle[j] = cycle[j], cycle[i]
		}
		return cycle
	}
	return nil
}

// cancel moves one partition along the cycle.
func (f *flow) cancel(cycle []int32) {
	members := int32(len(f.load))
	for i, from := range cycle {
		to := cycle[(i+1)%len(cycle)]
		switch {
		case from == f.hub:
			f.load[to]--
		case to == f.hub:
			f.load[from]++
		case from < members:
			k := &f.of[to-members]
			k.has[k.position(from)]--
		default:
			k := &f.of[from-members]
			k.has[k.position(to)]++
		}
	}
}
