package client

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// movingBed is a producer in a bubble, on two nodes that know who leads what of topic t.
type movingBed struct {
	t *testing.T
	w *world
	n *scripted
	p *AsyncProducer
}

// onMovingLeaders runs a test with four partitions, two led by each node.
func onMovingLeaders(t *testing.T, test func(b *movingBed)) {
	w := newWorld(map[int32]string{0: "a:1", 1: "b:1"})
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if kmsg.Key(raw.Key) != kmsg.Produce {
			return w.ordinary(addr, raw)
		}
		return produced(raw, func(topic string, p *kmsg.ProduceResponseTopicPartition) {
			w.set(func() {
				if w.nodes[w.topics[topic][p.Partition].Leader] != addr {
					p.ErrorCode = wire.ErrNotLeaderOrFollower.Code
				}
			})
		})
	}
	inBubble(t, handle, func(t *testing.T, n *scripted) {
		b := &movingBed{t: t, w: w, n: n}
		b.lead(0, 0, 1, 1)
		c := n.mustClient(func(c *Config) {
			c.Metadata.RefreshFrequency, c.Producer.Partitioner = -1, "manual"
			c.Metadata.Retry, c.Producer.Retry = RetryConfig{Max: 5}, RetryConfig{Max: 1000}
		}, "a:1,b:1")
		defer c.Close()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		b.p = p
		test(b)
		require.NoError(t, p.Close(t.Context()))
		require.Zero(t, b.running())
	})
}

// lead has nodes lead the partitions, one each.
func (b *movingBed) lead(leaders ...int32) {
	b.w.set(func() {
		b.w.topics["t"] = nil
		for i, l := range leaders {
			part := led(1, l, 1)[0]
			part.Partition = int32(i)
			b.w.topics["t"] = append(b.w.topics["t"], part)
		}
	})
}

// send sends a message to each of the partitions, which arrive.
func (b *movingBed) send(partitions ...int32) {
	b.t.Helper()
	var out tally
	for _, n := range partitions {
		_, err := b.p.ProduceRun(b.t.Context(), []*ProducerMessage{to(n, "v")}, &out)
		require.NoError(b.t, err)
	}
	require.NoError(b.t, b.p.Flush(b.t.Context()))
	out.require(b.t, len(partitions), 0)
	synctest.Wait()
}

// pass lets time pass: on the bubble's virtual clock, so that nothing waits for real.
func (b *movingBed) pass(d time.Duration) { time.Sleep(d) }

// nodes are those with a broker producer.
func (b *movingBed) nodes() []int32 {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	return slices.Sorted(maps.Keys(b.p.brokers))
}

// running is how many broker producers' goroutines there are.
func (b *movingBed) running() int {
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "client.(*brokerProducer).run(")
}

func (b *movingBed) require(nodes ...int32) {
	b.t.Helper()
	require.Equal(b.t, nodes, b.nodes())
	require.Equal(b.t, len(nodes), b.running())
}

// A node that leads nothing any more costs nothing after a while, and is used again when it does.
func TestABrokerProducerThatNobodyUsesEnds(t *testing.T) {
	for _, tc := range []struct {
		name  string
		sends []int32 // the partitions that are sent to after the leaders have moved
		after time.Duration
		gone  bool // the node is not in the cluster any more
	}{
		{"every partition notices that its leader has moved", []int32{2, 3}, unusedFor, false},
		{"one notices, and the idle ones are taken along", []int32{2}, 2 * unusedFor, false},
		{"the node has left the cluster", []int32{2, 3}, unusedFor, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onMovingLeaders(t, func(b *movingBed) {
				b.send(0, 1, 2, 3)
				b.require(0, 1)
				b.lead(0, 0, 0, 0)
				if tc.gone {
					b.w.set(func() { delete(b.w.nodes, 1) })
					b.n.stop("b:1")
				}
				b.send(tc.sends...)
				b.pass(tc.after - time.Millisecond)
				b.require(0, 1)
				b.pass(2 * time.Millisecond)
				b.require(0)
				b.send(0, 1, 2, 3)
				b.require(0)

				b.w.set(func() { b.w.nodes = map[int32]string{0: "a:1", 1: "b:1"} })
				b.n.start("b:1")
				b.lead(0, 0, 1, 1)
				b.send(0, 1, 2, 3)
				b.require(0, 1)
				b.pass(10 * unusedFor)
				b.require(0, 1)
				b.send(0, 1, 2, 3)
			})
		})
	}
}

// Leaders that come and go meet the broker producer that they left.
func TestABrokerProducerOutlivesLeadersThatFlap(t *testing.T) {
	onMovingLeaders(t, func(b *movingBed) {
		b.send(0, 1, 2, 3)
		was := b.p.brokers[1]
		for range 10 {
			b.lead(0, 0, 0, 0)
			b.send(2, 3)
			b.pass(unusedFor / 2)
			b.lead(0, 0, 1, 1)
			b.send(2, 3)
			b.pass(unusedFor / 2)
		}
		require.Same(t, was, b.p.brokers[1])
		b.require(0, 1)
	})
}

// Who looks for a leader uses its broker producer from then on: it does not end in between.
func TestABrokerProducerIsKeptForWhoIsAboutToJoin(t *testing.T) {
	onMovingLeaders(t, func(b *movingBed) {
		b.send(0, 1, 2, 3)
		b.lead(0, 0, 0, 0)
		joining := b.p.brokerFor(1)
		b.send(2, 3)
		b.pass(10 * unusedFor)
		b.require(0, 1)
		b.p.leave(joining)
		b.pass(unusedFor - time.Millisecond)
		b.require(0, 1)
		b.pass(2 * time.Millisecond)
		b.require(0)
	})
}

// A request that is still under way keeps it too: closing in time has to find the connection.
func TestABrokerProducerIsKeptForItsRequests(t *testing.T) {
	onMovingLeaders(t, func(b *movingBed) {
		b.send(0, 1, 2, 3)
		busy := b.p.brokers[1]
		busy.outstanding.Add(1)
		b.lead(0, 0, 0, 0)
		b.send(2, 3)
		b.pass(10*unusedFor + time.Millisecond)
		b.require(0, 1)
		busy.outstanding.Add(-1)
		b.pass(unusedFor)
		b.require(0)
	})
}

// Partitions that come back at the very moment at which their old broker producer ends lose nothing,
// whichever is first.
func TestABrokerProducerEndsWhilePartitionsJoin(t *testing.T) {
	ended := 0
	onMovingLeaders(t, func(b *movingBed) {
		b.send(0, 1, 2, 3)
		for range 200 {
			was := b.p.brokers[1]
			b.lead(0, 0, 0, 0)
			b.send(2, 3)
			left := time.Now()
			b.lead(0, 0, 1, 1)
			b.pass(unusedFor - time.Since(left))
			b.send(2, 3)
			b.require(0, 1)
			if b.p.brokers[1] != was {
				ended++
			}
		}
	})
	t.Logf("%d of 200 had ended before", ended)
}
