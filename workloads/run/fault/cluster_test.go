package fault

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/broker"
)

// dialled notes every address that a client connects to.
type dialled struct {
	mu    sync.Mutex
	addrs []string
}

func (d *dialled) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d.mu.Lock()
	if !slices.Contains(d.addrs, addr) {
		d.addrs = append(d.addrs, addr)
	}
	d.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func (d *dialled) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.addrs)
}

// own are the addresses that the proxy listens on.
func (p *Proxy) own() (addrs []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		addrs = append(addrs, l.addr)
	}
	return addrs
}

// A client that was given one address of a proxy sees the whole cluster through it, in every
// version of the answers that it speaks, and brokers that come and go as well.
func TestClientsStayBehindTheProxy(t *testing.T) {
	for _, release := range []string{"2.1", "2.8", "3.9", ""} {
		t.Run("as of Kafka "+release, func(t *testing.T) {
			c, err := broker.Start(broker.Options{Nodes: 3, Version: release})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			require.NoError(t, c.CreateTopic("t", 6, nil))
			p, err := New(t.Context(), c.Bootstrap()[:1], Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, p.Close()) })

			var to dialled
			cfg := client.NewConfig()
			cfg.Net.Dialer = to.dial
			prod, err := client.NewAsyncProducer(p.Addrs(), cfg)
			require.NoError(t, err)
			produceSome(t, prod, "t", 0)
			require.Equal(t, []int32{0, 1, 2}, p.Nodes())
			for i := range int32(6) { // answers name the new leader, in versions that can (KIP-951)
				require.NoError(t, c.MoveLeader("t", i, (c.Leader("t", i)+1)%3))
			}
			produceSome(t, prod, "t", 100)
			added, err := c.StartNode(-1)
			require.NoError(t, err)
			for i := range int32(6) {
				require.NoError(t, c.MoveLeader("t", i, added))
			}
			produceSome(t, prod, "t", 200)
			require.Equal(t, []int32{0, 1, 2, added}, p.Nodes())
			require.NoError(t, prod.Close(within(t)))
			require.Subset(t, p.own(), to.all(), "nobody went around the proxy")
			require.Len(t, p.own(), 4)
			require.Zero(t, p.Stats(AllNodes).Untouched)
			require.NoError(t, p.Err())
			for _, n := range []int32{0, added} {
				require.Positive(t, p.Stats(n).ToBroker)
			}
		})
	}
}

func produceSome(t *testing.T, p *client.AsyncProducer, topic string, from int) {
	var failed error
	for i := range 60 {
		require.NoError(t, p.Produce(within(t), &client.ProducerMessage{Topic: topic, Key: fmt.Append(nil, from+i)},
			func(_ *client.ProducerMessage, err error) {
				if err != nil {
					failed = err
				}
			}))
	}
	require.NoError(t, p.Flush(within(t)))
	require.NoError(t, failed)
}

// Coordinators and what DescribeCluster tells lead through the proxy too.
func TestEveryAnswerWithAddressesIsRewritten(t *testing.T) {
	c, err := broker.Start(broker.Options{Nodes: 3})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	p, err := New(t.Context(), c.Bootstrap(), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	cl, err := client.NewClient(p.Addrs(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cl.Close() })
	b := cl.Brokers()[0]

	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKeys = []string{"group"}
	resp, err := b.Request(within(t), find)
	require.NoError(t, err)
	at := resp.(*kmsg.FindCoordinatorResponse).Coordinators[0]
	require.Contains(t, p.Addrs(), fmt.Sprintf("%s:%d", at.Host, at.Port))
	require.Equal(t, c.Coordinator("group"), at.NodeID)

	resp, err = b.Request(within(t), kmsg.NewPtrDescribeClusterRequest())
	require.NoError(t, err)
	require.Len(t, resp.(*kmsg.DescribeClusterResponse).Brokers, 3)
	for _, at := range resp.(*kmsg.DescribeClusterResponse).Brokers {
		require.Contains(t, p.Addrs(), fmt.Sprintf("%s:%d", at.Host, at.Port))
	}
	require.ElementsMatch(t, p.Addrs(), p.own(), "the targets are the brokers that answers tell of")
}

// A broker's name in answers may be another than the one given.
func TestTheSameBrokerByAnotherName(t *testing.T) {
	c, err := broker.Start(broker.Options{Nodes: 2})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	var targets []string
	for _, a := range c.Bootstrap() {
		targets = append(targets, strings.Replace(a, "127.0.0.1", "localhost", 1))
	}
	p, err := New(t.Context(), targets, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	require.NoError(t, p.Set(1, Fault{Refuse: true}), "before anything is known of a node 1")
	cl, err := client.NewClient(p.Addrs()[:1], nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cl.Close() })
	require.NoError(t, cl.RefreshMetadata(within(t)))
	require.Equal(t, []int32{0, 1}, p.Nodes())
	require.ElementsMatch(t, p.Addrs(), p.own(), "no second listener")
	_, err = new(net.Dialer).DialContext(t.Context(), "tcp", p.Addrs()[1])
	require.Error(t, err, "what was set for the node holds once it is known")
	require.NoError(t, p.Set(1, Fault{}))
	require.NoError(t, cl.Brokers()[1].Open(within(t)))
}
