package synthetic

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kbench/kbench/workloads/run"
)

// audience is one group of consumers: every message is delivered to one of its members, or waits
// where there are none. Guarded by the target's groupsMu.
type audience struct {
	number  int
	members []*consumer // in the order of joining
	waiting []arrival   // for somebody to read the partition
	held    *arrival    // swapped: waits for its successor
	offset  int64
}

// group is that of a number, made when it is first asked for.
func (t *Target) group(n int) *audience {
	for len(t.groups) <= n {
		t.groups = append(t.groups, &audience{number: len(t.groups)})
	}
	return t.groups[n]
}

// OpenConsumer makes a consumer; partitions are dealt out among the members of its group, anew
// whenever one comes or goes.
func (t *Target) OpenConsumer(_ context.Context, who run.Member, in run.Arrivals) (run.Consumer, error) {
	if t.script.OpenConsumerErr != nil {
		return nil, t.script.OpenConsumerErr
	}
	t.groupsMu.Lock()
	defer t.groupsMu.Unlock()
	c := &consumer{target: t, who: who, in: in, kick: make(chan struct{}, 1)}
	g := t.group(who.Group)
	g.takeBack()
	g.members = append(g.members, c)
	g.dealOut()
	return c, nil
}

// give hands an arrival to whoever reads its partition.
func (g *audience) give(a arrival) {
	if len(g.members) == 0 {
		g.waiting = append(g.waiting, a)
		return
	}
	c := g.members[int(a.Partition)%len(g.members)]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, a)
	poke(c.kick)
}

// takeBack takes from the members what they have not received.
func (g *audience) takeBack() {
	for _, c := range g.members {
		c.mu.Lock()
		g.waiting, c.queue = append(g.waiting, c.queue...), nil
		c.mu.Unlock()
	}
	slices.SortStableFunc(g.waiting, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
}

// dealOut gives what waits to the members there are now.
func (g *audience) dealOut() {
	waiting := g.waiting
	g.waiting = nil
	for _, a := range waiting {
		g.give(a)
	}
}

// leave takes a consumer out of its group; what it has not received goes to the others.
func (t *Target) leave(c *consumer) {
	t.groupsMu.Lock()
	defer t.groupsMu.Unlock()
	g := t.group(c.who.Group)
	i := slices.Index(g.members, c)
	if i < 0 {
		return
	}
	g.takeBack()
	g.members = slices.Delete(g.members, i, i+1)
	g.dealOut()
}

// Lags are the messages on their way, by group and partition.
func (t *Target) Lags(into []run.PartitionLag) []run.PartitionLag {
	t.groupsMu.Lock()
	defer t.groupsMu.Unlock()
	n := int(max(1, t.script.Partitions))
	for _, g := range t.groups {
		base := len(into)
		for p := range n {
			into = append(into, run.PartitionLag{Group: g.number, Partition: int32(p)})
		}
		count := func(list []arrival) {
			for i := range list {
				into[base+int(list[i].Partition)].Messages++
			}
		}
		count(g.waiting)
		for _, c := range g.members {
			c.mu.Lock()
			count(c.queue)
			c.mu.Unlock()
		}
	}
	return into
}

// deliver sends copies of an acked message on to each group, with what the script does to it on
// the way.
func (t *Target) deliver(m *run.Message, acked int64) {
	t.groupsMu.Lock()
	defer t.groupsMu.Unlock()
	for _, g := range t.groups {
		t.deliverTo(g, m, acked)
	}
}

func (t *Target) deliverTo(g *audience, m *run.Message, acked int64) {
	if g.number == t.script.DeafGroup-1 && every(m.Number, t.script.Deaf) || every(m.Number, t.script.Lose) {
		return
	}
	a := arrival{at: acked + int64(t.script.Delivery), Arrival: run.Arrival{
		Key: clone(m.Key), Value: clone(m.Value), Header: clone(m.Header), Partition: m.Partition, Offset: g.offset,
	}}
	g.offset++
	if every(m.Number, t.script.Strange) {
		g.give(arrival{at: a.at, Arrival: run.Arrival{Key: []byte("k"), Value: []byte("somebody else's, of their own making"), Partition: m.Partition, Offset: g.offset}})
		g.offset++
	}
	if every(m.Number, t.script.Corrupt) {
		a.Value[len(a.Value)-1] ^= 1
	}
	if every(m.Number, t.script.Swap) && g.held == nil {
		g.held = &a
		return
	}
	g.give(a)
	if g.held != nil && g.held.Partition == a.Partition {
		g.held.at = a.at
		g.give(*g.held)
		g.held = nil
	}
	if every(m.Number, t.script.Duplicate) {
		g.give(a)
	}
}

// pace is when the next message may be received, by the script's speed of a consumer.
func (c *consumer) pace(at int64) int64 {
	if c.target.script.Reading <= 0 {
		return at
	}
	return max(at, c.free)
}

// received counts messages towards the consumer's speed.
func (c *consumer) received(n int, at int64) {
	if speed := c.target.script.Reading; speed > 0 {
		c.free = max(c.free, at) + int64(float64(n)/speed*float64(time.Second))
	}
}
