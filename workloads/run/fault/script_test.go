package fault

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/broker"
)

// scripted is a cluster with a topic, and faults in front of it.
func scripted(t *testing.T, nodes int, fail func(Answer) (func() error, error), faults ...workloads.Fault) (*broker.Cluster, *Script) {
	c, err := broker.Start(broker.Options{Nodes: nodes})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.CreateTopic("t", 3, nil))
	for i := range faults {
		require.NoError(t, faults[i].UnmarshalText([]byte(faults[i].String())))
	}
	s, err := NewScript(t.Context(), faults, Means{Bootstrap: c.Bootstrap(), Config: client.NewConfig(), Topics: func() []string { return []string{"t"} }, Fail: fail})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return c, s
}

func parse(t *testing.T, text string) (f workloads.Fault) {
	require.NoError(t, f.UnmarshalText([]byte(text)))
	return f
}

// now is the fault in force on a node's connections.
func (s *Script) now(node int32) Fault {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	for _, l := range s.proxy.of(node) {
		return l.now.Load().Fault
	}
	return Fault{}
}

// behind is a client that has met every node through the proxy.
func behind(t *testing.T, s *Script) *client.Client {
	c, err := client.NewClient(s.Bootstrap(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = c.DescribeTopic(within(t), "t")
	require.NoError(t, err)
	return c
}

// The first broker is the one with the lowest id, and the others are left alone.
func TestFaultOfTheFirstBroker(t *testing.T) {
	_, s := scripted(t, 3, nil, parse(t, "at=1s kind=cut for=1s broker=first"), parse(t, "at=1s kind=stall for=1s broker=2"))
	behind(t, s)
	_, err := s.Begin(within(t), 1)
	require.NoError(t, err)
	text, err := s.Begin(within(t), 0)
	require.NoError(t, err)
	require.Contains(t, text, "of broker 0 cut, new ones refused for 1s")
	require.Equal(t, []bool{true, false, false}, []bool{s.now(0).Refuse, s.now(1).Refuse, s.now(2).Refuse})
	require.Equal(t, Stalled(), s.now(2))
	require.NoError(t, s.End(0))
	require.False(t, s.now(0).Refuse)
}

// Faults of all and of one broker come together, and each goes by itself.
func TestFaultsComeTogether(t *testing.T) {
	_, s := scripted(t, 2, nil, parse(t, "at=1s kind=delay for=1s delay=10ms jitter=4ms"), parse(t, "at=1s kind=stall for=1s broker=1"),
		parse(t, "at=1s kind=bandwidth for=1s bytesPerSecond=8192"), parse(t, "at=1s kind=bandwidth for=1s bytesPerSecond=4096 broker=1"), parse(t, "at=1s kind=cut for=1s broker=0"))
	require.True(t, s.Proxied())
	behind(t, s)
	begin := func(i int, want string) {
		text, err := s.Begin(within(t), i)
		require.NoError(t, err)
		require.Contains(t, text, want)
	}
	slow := Fault{ToBroker: Path{Delay: 5 * time.Millisecond, Jitter: 2 * time.Millisecond}, ToClient: Path{Delay: 5 * time.Millisecond, Jitter: 2 * time.Millisecond}}
	begin(0, "all connections delayed by 10ms and up to 4ms more")
	require.Equal(t, slow, s.now(0))
	begin(1, "the connections of broker 1 stalled")
	require.Equal(t, slow, s.now(0))
	require.Equal(t, together(slow, Stalled()), s.now(1))
	begin(2, "limited to 8192 bytes/s each way")
	begin(3, "of broker 1 limited to 4096")
	require.EqualValues(t, 8192, s.now(0).ToBroker.BytesPerSecond)
	require.EqualValues(t, 4096, s.now(1).ToBroker.BytesPerSecond)
	require.NoError(t, s.End(0))
	require.Zero(t, s.now(1).ToBroker.Delay)
	require.True(t, s.now(1).ToBroker.Stall)
	require.NoError(t, s.End(1))
	begin(4, "connections of broker 0 cut, new ones refused for 1s")
	require.True(t, s.now(0).Refuse)
	require.False(t, s.now(1).Refuse)
	for _, i := range []int{2, 3, 4} {
		require.NoError(t, s.End(i))
	}
	require.Zero(t, s.now(0))
	require.Zero(t, s.now(1))
}

// A client comes through each fault that is done to connections.
func TestProducingThroughScriptedFaults(t *testing.T) {
	_, s := scripted(t, 2, nil, parse(t, "at=1s kind=stall for=1s"), parse(t, "at=1s kind=cut for=1s"), parse(t, "at=1s kind=cut"), parse(t, "at=1s kind=delay for=1s delay=5ms"))
	p, err := client.NewAsyncProducer(s.Bootstrap(), nil)
	require.NoError(t, err)
	produceSome(t, p, "t", 0)
	for i, f := range s.faults {
		_, err := s.Begin(within(t), i)
		require.NoError(t, err)
		if f.Kind == workloads.FaultStall {
			done := make(chan struct{})
			go func() { produceSome(t, p, "t", 100); close(done) }() // ends once the stall does
			select {
			case <-done:
				t.Fatal("nothing was to arrive")
			case <-time.After(100 * time.Millisecond):
			}
			require.NoError(t, s.End(i))
			<-done
			continue
		}
		if f.Kind == workloads.FaultCut && f.For > 0 { // refused until then
			require.NoError(t, s.End(i))
		}
		produceSome(t, p, "t", 100*(i+2))
	}
	require.NoError(t, p.Close(within(t)))
}

func TestScriptSaysWhatCannotBe(t *testing.T) {
	_, s := scripted(t, 2, nil, parse(t, "at=1s kind=stall for=1s broker=7"), parse(t, "at=1s kind=leader partition=9"), parse(t, "at=1s kind=leader partition=0 to=9"))
	behind(t, s)
	_, err := s.Begin(within(t), 0)
	require.ErrorContains(t, err, "there is no broker 7; the cluster has [0 1]")
	_, err = s.Begin(within(t), 1)
	require.ErrorContains(t, err, `topic "t" partition 9`)
	_, err = s.Begin(within(t), 2)
	require.ErrorContains(t, err, "node 9 is none of its replicas")

	_, err = NewScript(t.Context(), []workloads.Fault{parse(t, "at=1s kind=error for=1s request=Produce code=NOT_ENOUGH_REPLICAS")}, Means{Bootstrap: []string{"127.0.0.1:1"}})
	require.ErrorContains(t, err, "need the embedded broker")
}

// Leaders move without a proxy, by the admin API.
func TestLeadersMove(t *testing.T) {
	c, s := scripted(t, 2, nil, parse(t, "at=1s kind=leader"), parse(t, "at=1s kind=leader partition=1"))
	require.False(t, s.Proxied())
	require.Equal(t, c.Bootstrap(), s.Bootstrap())
	before := []int32{c.Leader("t", 0), c.Leader("t", 1), c.Leader("t", 2)}
	text, err := s.Begin(within(t), 0)
	require.NoError(t, err)
	require.Contains(t, text, "leaders of 3 partitions moved (0: ")
	for p, old := range before {
		require.NotEqual(t, old, c.Leader("t", int32(p)))
	}
	require.NoError(t, s.End(0))
	_, err = s.Begin(within(t), 1)
	require.NoError(t, err)
	require.Equal(t, before[1], c.Leader("t", 1), "and back")
	require.NotEqual(t, before[0], c.Leader("t", 0))
}

// Errors are asked for by number, for the run's topics, and are taken back at the end or by Close.
func TestErrorsAreAskedFor(t *testing.T) {
	var mu sync.Mutex
	var asked []Answer
	undone := 0
	fail := func(a Answer) (func() error, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, a)
		if a.Key == 3 {
			return nil, errors.New("it is gone")
		}
		return func() error { undone++; return nil }, nil
	}
	_, s := scripted(t, 1, fail, parse(t, "at=1s kind=error for=1s request=Produce code=NOT_ENOUGH_REPLICAS partition=1"),
		parse(t, "at=1s kind=error for=1s request=FindCoordinator code=COORDINATOR_NOT_AVAILABLE broker=0"), parse(t, "at=1s kind=error for=1s request=Metadata code=LEADER_NOT_AVAILABLE"))
	text, err := s.Begin(context.Background(), 0)
	require.NoError(t, err)
	require.Equal(t, "Produce answered with NOT_ENOUGH_REPLICAS for partition 1", text)
	text, err = s.Begin(context.Background(), 1)
	require.NoError(t, err)
	require.Equal(t, "FindCoordinator answered with COORDINATOR_NOT_AVAILABLE by broker 0", text)
	_, err = s.Begin(context.Background(), 2)
	require.ErrorContains(t, err, "it is gone")
	require.Equal(t, []Answer{{Key: 0, Code: 19, Broker: workloads.All, Topic: "t", Partition: 1}, {Key: 10, Code: 15, Partition: workloads.All},
		{Key: 3, Code: 5, Broker: workloads.All, Partition: workloads.All}}, asked)
	require.NoError(t, s.End(0))
	require.Equal(t, 1, undone)
	require.NoError(t, s.Close())
	require.Equal(t, 2, undone)
	require.True(t, slices.Contains(workloads.FaultRequests(), "Produce"))
}
