package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

func TestClientKnowsTheCluster(t *testing.T) {
	k := cluster(t, 3, 6)
	c, err := NewClient(k.Bootstrap(), nil)
	require.NoError(t, err)
	defer c.Close()
	ctx := within(t)

	require.Len(t, c.Brokers(), 3)
	for i, b := range c.Brokers() {
		require.EqualValues(t, i, b.ID())
		require.Equal(t, k.Address(b.ID()), b.Addr())
		require.NoError(t, b.Open(ctx))
		require.True(t, b.Connected())
	}
	require.Equal(t, broker.ClusterID, c.ClusterID())
	require.NoError(t, k.CreateTopic("u", 1, nil))
	topics, err := c.Topics(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"t", "u"}, topics)
	for _, list := range []func(context.Context, string) ([]int32, error){c.Partitions, c.WritablePartitions} {
		parts, err := list(ctx, "t")
		require.NoError(t, err)
		require.Equal(t, []int32{0, 1, 2, 3, 4, 5}, parts)
	}
	for p := range int32(6) {
		b, err := c.Leader(ctx, "t", p)
		require.NoError(t, err)
		require.Equal(t, k.Leader("t", p), b.ID())
		replicas, err := c.Replicas(ctx, "t", p)
		require.NoError(t, err)
		require.Contains(t, replicas, b.ID())
		isr, err := c.InSyncReplicas(ctx, "t", p)
		require.NoError(t, err)
		require.Contains(t, isr, b.ID())
		offline, err := c.OfflineReplicas(ctx, "t", p)
		require.NoError(t, err)
		require.Empty(t, offline)
	}
	b, err := c.Controller(ctx)
	require.NoError(t, err)
	require.Contains(t, c.Brokers(), b)
	at, err := c.GetOffset(ctx, "t", 0, OffsetNewest)
	require.NoError(t, err)
	require.Zero(t, at)

	_, err = c.Leader(ctx, "t", 6)
	require.ErrorIs(t, err, ErrPartitionInvalid)
	require.ErrorContains(t, err, `topic "t" has partitions 0 to 5, not 6`)
	_, err = c.Partitions(ctx, "missing")
	require.ErrorIs(t, err, ErrTopicUnknown)
	require.ErrorContains(t, err, `"missing"`)
}

func TestWhatMetadataSayOfReplicasIsTold(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1", 1: "b:1"})
	parts := led(3, 0, 1)
	parts[1].ISR, parts[1].OfflineReplicas = []int32{0}, []int32{1}
	parts[2].Leader, parts[2].ErrorCode = -1, 5
	w.topics["t"] = parts
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(nil, "a:1")
		defer c.Close()
		writable, err := c.WritablePartitions(t.Context(), "t")
		require.NoError(t, err)
		require.Equal(t, []int32{0, 1}, writable, "the third has no leader")
		all, err := c.Partitions(t.Context(), "t")
		require.NoError(t, err)
		require.Equal(t, []int32{0, 1, 2}, all)
		isr, err := c.InSyncReplicas(t.Context(), "t", 1)
		require.NoError(t, err)
		require.Equal(t, []int32{0}, isr)
		offline, err := c.OfflineReplicas(t.Context(), "t", 1)
		require.NoError(t, err)
		require.Equal(t, []int32{1}, offline)
	})
}

func TestCoordinatorIsRememberedAndFollowed(t *testing.T) {
	k := cluster(t, 3, 1)
	c, err := NewClient(k.Bootstrap(), quickConfig())
	require.NoError(t, err)
	defer c.Close()
	ctx := within(t)
	const find, offsetFetch = int16(kmsg.FindCoordinator), int16(kmsg.OffsetFetch)
	for range 3 {
		b, err := c.Coordinator(ctx, "g")
		require.NoError(t, err)
		require.Equal(t, k.Coordinator("g"), b.ID())
	}
	require.EqualValues(t, 1, k.Requests(find), "looked up once")

	k.Fail(broker.Failure{Key: offsetFetch, Code: wire.ErrNotCoordinator.Code, Group: "g"})
	got, err := c.CommittedOffsets(ctx, "g", "t", 0)
	require.NoError(t, err)
	require.Equal(t, []int64{-1}, got)
	require.EqualValues(t, 2, k.Requests(find), "looked up again after NOT_COORDINATOR")
	require.EqualValues(t, 2, k.Requests(offsetFetch))

	b, err := c.Coordinator(ctx, "g")
	require.NoError(t, err)
	if len(k.Bootstrap()) > 1 && b.ID() != 0 {
		require.NoError(t, k.StopNode(b.ID()))
	}
	_, err = c.CommittedOffsets(ctx, "g", "t", 0)
	require.NoError(t, err, "the coordinator has moved")
	require.NoError(t, c.RefreshCoordinator(ctx, "g"))
	b, err = c.Coordinator(ctx, "g")
	require.NoError(t, err)
	require.Equal(t, k.Coordinator("g"), b.ID())
}

// M7: one bootstrap broker is down: the others are used; seeds are shuffled, and kept for later.
func TestM7BootstrapBrokersThatAreDown(t *testing.T) {
	w := newWorld(map[int32]string{0: "live:1"})
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		n.down["dead:1"], n.down["gone:1"] = true, true
		first := map[string]int{}
		for range 60 {
			n.dials = nil
			c := n.mustClient(nil, "dead:1", "live:1,gone:1")
			first[n.dials[0]]++
			require.NoError(t, c.Close())
		}
		require.Len(t, first, 3, "seeds are tried in a random order: %v", first)
	})
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		n.down["dead:1"], n.down["gone:1"] = true, true
		_, err := n.client(func(c *Config) { c.Metadata.Retry.Max = 1 }, "dead:1", "gone:1")
		require.ErrorIs(t, err, ErrNoBrokers)
		require.ErrorContains(t, err, "dead:1", "every address is named")
		require.ErrorContains(t, err, "gone:1")
		require.NotContains(t, err.Error(), "\n")
	})
}

func TestM7SeedsAreKeptForLater(t *testing.T) {
	w := newWorld(map[int32]string{0: "old:1"})
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(nil, "boot:1")
		defer c.Close()
		require.Equal(t, []string{"0@old:1"}, addresses(c))
		require.NoError(t, c.Brokers()[0].Open(t.Context()))
		n.stop("old:1")
		w.set(func() { w.nodes = map[int32]string{7: "new:1"} })
		require.NoError(t, c.RefreshMetadata(t.Context()))
		require.Equal(t, []string{"7@new:1"}, addresses(c), "the cluster was found again by the address given at first")
	})
}

func TestBrokersAreFollowed(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1", 1: "b:1"})
	w.topics["t"] = led(1, 1, 1)
	var hold chan struct{}
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if addr == "b:1" && kmsg.Key(raw.Key) == kmsg.Produce {
			reply := produced(raw, nil)
			reply.Wait = hold
			return reply
		}
		return w.ordinary(addr, raw)
	}
	inBubble(t, handle, func(t *testing.T, n *scripted) {
		hold = make(chan struct{})
		c := n.mustClient(nil, "a:1")
		defer c.Close()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		var out tally
		_, err = p.ProduceRun(t.Context(), numbered(1, 1), &out)
		require.NoError(t, err)
		synctest.Wait() // the request is at b, which holds the answer
		require.Len(t, n.requests(kmsg.Produce), 1)
		a, b := c.Brokers()[0], c.Brokers()[1]

		w.set(func() { w.nodes = map[int32]string{0: "a:1", 1: "c:1", 2: "d:1"} })
		require.NoError(t, c.RefreshMetadata(t.Context(), "t"))
		require.Equal(t, []string{"0@a:1", "1@c:1", "2@d:1"}, addresses(c), "one has moved, one is new")
		require.Same(t, a, c.Brokers()[0])
		require.True(t, b.Connected(), "what is in flight is awaited")
		close(hold)
		require.NoError(t, p.Flush(t.Context()))
		out.require(t, 1, 0)
		require.Len(t, n.requests(kmsg.Produce), 1, "and not sent again")
		synctest.Wait()
		require.False(t, b.Connected(), "then the old connection ends")
		_, err = b.Request(t.Context(), kmsg.NewPtrMetadataRequest())
		require.ErrorContains(t, err, "broker 1 at b:1 has left the cluster or moved")

		_, err = p.ProduceRun(t.Context(), numbered(1, 1), &out)
		require.NoError(t, err)
		require.NoError(t, p.Flush(t.Context()))
		out.require(t, 2, 0)
		require.Equal(t, 1, n.dialled("c:1"), "the node's new address is used")

		w.set(func() { w.nodes = map[int32]string{0: "a:1", 2: "d:1"} })
		require.NoError(t, c.RefreshMetadata(t.Context()))
		require.Equal(t, []string{"0@a:1", "2@d:1"}, addresses(c), "one is gone")
		require.Equal(t, 1, n.dialled("a:1"), "nothing of this touched the first one's connection")
	})
}

// A node that leaves the cluster costs no message: what waited for it goes where the leaders are.
func TestANodeThatLeavesCostsNoMessage(t *testing.T) {
	k := cluster(t, 3, 6)
	p := asyncProducer(t, k, quickConfig())
	var out tally
	const rounds, each = 8, 100
	for i := range rounds {
		_, err := p.ProduceRun(within(t), numbered(each, 10), &out)
		require.NoError(t, err)
		switch i {
		case 2:
			require.NoError(t, k.StopNode(1))
		case 4:
			require.NoError(t, k.StopNode(2))
		case 6:
			_, err = k.StartNode(1)
			require.NoError(t, err)
		}
	}
	require.NoError(t, p.Flush(within(t)))
	out.require(t, rounds*each, 0)
}

func TestARefreshClosesNoHealthyConnection(t *testing.T) {
	k := cluster(t, 3, 6)
	cfg := NewConfig()
	cfg.Metadata.Retry.Backoff = 0
	c, err := NewClient(k.Bootstrap(), cfg)
	require.NoError(t, err)
	defer c.Close()
	for _, b := range c.Brokers() {
		require.NoError(t, b.Open(within(t)))
	}
	open, accepted := k.Connections()
	require.Equal(t, 3, open)
	before := c.Brokers()
	for range 50 {
		require.NoError(t, c.RefreshMetadata(within(t), "t"))
		require.NoError(t, c.RefreshMetadata(within(t)))
	}
	require.Equal(t, before, c.Brokers())
	stillOpen, stillAccepted := k.Connections()
	require.Equal(t, open, stillOpen)
	require.Equal(t, accepted, stillAccepted, "no socket was opened either")
}

// M8: a broker closes an idle connection, and the request that crosses the closing is sent again.
func TestM8RequestsThatCrossTheClosingAreSentAgain(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = led(1, 0, 1)
	closing := map[kmsg.Key]int{} // the next so many requests meet a closed connection
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if key := kmsg.Key(raw.Key); closing[key] > 0 {
			closing[key]--
			return rawserver.Reply{Close: true}
		}
		return w.ordinary(addr, raw)
	}
	inBubble(t, handle, func(t *testing.T, n *scripted) {
		c := n.mustClient(nil, "a:1")
		defer c.Close()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		require.NoError(t, sendOne(t, p, &ProducerMessage{Topic: "t"}))

		closing[kmsg.Metadata] = 1
		began := time.Now()
		resp, err := c.Brokers()[0].Request(t.Context(), kmsg.NewPtrMetadataRequest())
		require.NoError(t, err)
		require.Len(t, resp.(*kmsg.MetadataResponse).Brokers, 1)
		require.Zero(t, time.Since(began), "at once: the broker is not to blame")

		closing[kmsg.Produce] = 1
		require.NoError(t, sendOne(t, p, &ProducerMessage{Topic: "t"}))
		require.Len(t, n.requests(kmsg.Produce), 3, "the second message was sent twice")

		closing[kmsg.Metadata] = 2
		_, err = c.Brokers()[0].Request(t.Context(), kmsg.NewPtrMetadataRequest())
		require.Error(t, err, "a connection that is new has not been idle")
		require.ErrorContains(t, err, "a:1")
	})
}

func TestAClosedClientSaysSo(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = led(1, 0, 1)
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(nil, "a:1")
		b := c.Brokers()[0]
		require.NoError(t, c.Close())
		require.ErrorIs(t, c.Close(), ErrClosed)
		require.True(t, c.Closed())
		require.ErrorIs(t, c.RefreshMetadata(t.Context()), ErrClosed)
		_, err := c.Coordinator(t.Context(), "g")
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, b.Open(t.Context()), ErrClosed)
		_, err = NewAsyncProducerFromClient(c)
		require.ErrorIs(t, err, ErrClosed)
	})
}
