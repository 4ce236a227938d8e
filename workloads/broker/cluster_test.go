package broker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	produceKey  = int16(kmsg.Produce)
	metadataKey = int16(kmsg.Metadata)

	notEnoughReplicas = 19 // NOT_ENOUGH_REPLICAS
	notLeader         = 6  // NOT_LEADER_OR_FOLLOWER
)

// bounded is a context that ends long after any test has.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, o Options) *Cluster {
	t.Helper()
	c, err := Start(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func oneTopic(partitions int) []Topic { return []Topic{{Name: "t", Partitions: partitions}} }

func TestClusterStoresWhatIsProduced(t *testing.T) {
	c := start(t, Options{Topics: oneTopic(1)})
	r := dial(t, c.Bootstrap()[0])
	for range 3 {
		code, err := r.produce("t", 0, 10)
		require.NoError(t, err)
		require.Zero(t, code)
	}
	begin, end, err := c.Offsets("t", 0)
	require.NoError(t, err)
	require.Equal(t, [2]int64{0, 3}, [2]int64{begin, end})
	require.EqualValues(t, 3, c.Requests(produceKey))
}

func TestTopicsAreNotCreatedByAskingUnlessAllowed(t *testing.T) {
	for name, auto := range map[string]bool{"off by default": false, "on when asked for": true} {
		t.Run(name, func(t *testing.T) {
			c := start(t, Options{AutoCreate: auto})
			code := dial(t, c.Bootstrap()[0]).metadata("misspelt").Topics[0].ErrorCode
			require.Equal(t, auto, code == 0, "error code %d", code)
		})
	}
}

func TestStallHoldsAnswersOfProduceOnly(t *testing.T) {
	c := start(t, Options{Topics: oneTopic(1)})
	c.Stall(0)
	held := dial(t, c.Bootstrap()[0])
	held.send(produceRequest("t", 0, 10))
	require.NoError(t, c.AwaitHeld(bounded(t), produceKey, 1))

	dial(t, c.Bootstrap()[0]).metadata("t") // others are served meanwhile
	require.NoError(t, held.conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := held.conn.Read(make([]byte, 1))
	require.Error(t, err, "the answer must not come while stalled")

	require.NoError(t, held.conn.SetReadDeadline(time.Now().Add(60*time.Second)))
	c.Resume()
	response, err := held.receive(produceRequest("t", 0, 10), 0)
	require.NoError(t, err)
	require.Zero(t, produceCode(response))
	_, end, err := c.Offsets("t", 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, end)
}

func TestStallEndsByItself(t *testing.T) {
	c := start(t, Options{Topics: oneTopic(1)})
	began := time.Now()
	c.Stall(60 * time.Millisecond)
	code, err := dial(t, c.Bootstrap()[0]).produce("t", 0, 10)
	require.NoError(t, err)
	require.Zero(t, code)
	require.GreaterOrEqual(t, time.Since(began), 60*time.Millisecond)
}

func TestCloseEndsAStall(t *testing.T) {
	c := start(t, Options{Topics: oneTopic(1)})
	c.Stall(time.Hour)
	r := dial(t, c.Bootstrap()[0])
	r.send(produceRequest("t", 0, 10))
	require.NoError(t, c.AwaitRequests(bounded(t), produceKey, 1))
	c.Close() // returns, or the test's own bound strikes
	open, _ := c.Connections()
	require.Zero(t, open)
}

func TestDelayMakesAnswersLater(t *testing.T) {
	c := start(t, Options{})
	c.Delay(metadataKey, 50*time.Millisecond)
	r := dial(t, c.Bootstrap()[0])
	began := time.Now()
	r.metadata()
	require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
}

func TestFailProduceFailsSoManyRequests(t *testing.T) {
	c := start(t, Options{Topics: oneTopic(1)})
	fault := c.FailProduce(notEnoughReplicas, 2)
	r := dial(t, c.Bootstrap()[0])
	var codes []int16
	for range 3 {
		code, err := r.produce("t", 0, 10)
		require.NoError(t, err)
		codes = append(codes, code)
	}
	require.Equal(t, []int16{notEnoughReplicas, notEnoughReplicas, 0}, codes)
	require.NoError(t, fault.Wait(bounded(t), 2))
	require.Equal(t, 2, fault.Hits())
	_, end, err := c.Offsets("t", 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, end, "failed requests append nothing")
}

func TestLostAnswerIsAppliedAllTheSame(t *testing.T) {
	c := start(t, Options{Topics: oneTopic(1)})
	c.LoseAnswers(produceKey, 1)
	_, err := dial(t, c.Bootstrap()[0]).produce("t", 0, 10)
	require.Error(t, err, "the connection is reset in place of the answer")
	_, end, err := c.Offsets("t", 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, end)

	code, err := dial(t, c.Bootstrap()[0]).produce("t", 0, 10)
	require.NoError(t, err, "only one answer is lost")
	require.Zero(t, code)
}

func TestCloseConnectionsResetsThemAndAcceptsNewOnes(t *testing.T) {
	c := start(t, Options{})
	r := dial(t, c.Bootstrap()[0])
	r.metadata()
	require.Equal(t, 1, c.CloseConnections())
	_, err := r.conn.Read(make([]byte, 1))
	require.Error(t, err)
	dial(t, c.Bootstrap()[0]).metadata()
	open, accepted := c.Connections()
	require.Equal(t, 1, open)
	require.EqualValues(t, 2, accepted)
}

func TestMovedLeaderIsFollowed(t *testing.T) {
	c := start(t, Options{Nodes: 2, Topics: oneTopic(1)})
	require.NoError(t, c.MoveLeader("t", 0, 0))
	old := dial(t, c.Address(0))
	code, err := old.produce("t", 0, 10)
	require.NoError(t, err)
	require.Zero(t, code)

	require.NoError(t, c.MoveLeader("t", 0, 1))
	require.EqualValues(t, 1, c.Leader("t", 0))
	code, err = old.produce("t", 0, 10)
	require.NoError(t, err)
	require.EqualValues(t, notLeader, code)
	code, err = dial(t, c.Address(1)).produce("t", 0, 10)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Error(t, c.MoveLeader("t", 0, 9))
}

func TestStoppedNodeLeavesAndComesBack(t *testing.T) {
	c := start(t, Options{Nodes: 3, Topics: oneTopic(6)})
	r := dial(t, c.Address(2))
	r.metadata()
	address := c.Address(2)
	require.NoError(t, c.StopNode(2))
	_, err := r.conn.Read(make([]byte, 1))
	require.Error(t, err, "its connections are reset")
	require.Len(t, dial(t, c.Address(0)).metadata().Brokers, 2)
	for p := range int32(6) {
		require.NotEqualValues(t, 2, c.Leader("t", p))
	}

	node, err := c.StartNode(2)
	require.NoError(t, err)
	require.EqualValues(t, 2, node)
	require.Equal(t, address, c.Address(2))
	require.Len(t, dial(t, address).metadata().Brokers, 3)

	added, err := c.StartNode(-1)
	require.NoError(t, err)
	require.EqualValues(t, 3, added)
	require.Len(t, c.Bootstrap(), 4)
}

func TestUnreachableNodeStaysInTheMetadata(t *testing.T) {
	c := start(t, Options{Nodes: 2})
	c.Unreachable(1)
	r := dial(t, c.Address(1)) // the kernel accepts, the node closes
	_, err := r.conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.Len(t, dial(t, c.Address(0)).metadata().Brokers, 2)
	c.Reachable()
	require.Len(t, dial(t, c.Address(1)).metadata().Brokers, 2)
}

func TestAnswerAndObserve(t *testing.T) {
	c := start(t, Options{})
	seen := make(chan int32, 4)
	c.Observe(metadataKey, func(node int32, _ kmsg.Request) { seen <- node })
	c.Answer(metadataKey, func(_ int32, request kmsg.Request) (kmsg.Response, error) {
		response := request.ResponseKind().(*kmsg.MetadataResponse)
		response.ClusterID = kmsg.StringPtr("scripted")
		return response, nil
	})
	r := dial(t, c.Bootstrap()[0])
	require.Equal(t, "scripted", *r.metadata().ClusterID)
	require.Equal(t, "kbench-embedded", *r.metadata().ClusterID, "one answer is scripted, the next is the broker's")
	require.Len(t, seen, 2)
}

func TestVersionsAreCapped(t *testing.T) {
	tests := []struct {
		name    string
		options Options
		produce int16 // highest version offered, -1: none
	}{
		{"the newest without a cap", Options{}, 13},
		{"those of an old release", Options{Version: "2.1"}, 7},
		{"one request capped by itself", Options{VersionCaps: map[int16]int16{produceKey: 9}}, 9},
		{"one request removed", Options{VersionCaps: map[int16]int16{produceKey: -1}}, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, tt.options)
			request := kmsg.NewPtrApiVersionsRequest()
			response, err := dial(t, c.Bootstrap()[0]).ask(request)
			require.NoError(t, err)
			highest := int16(-1)
			for _, k := range response.(*kmsg.ApiVersionsResponse).ApiKeys {
				if k.ApiKey == produceKey {
					highest = k.MaxVersion
				}
			}
			require.Equal(t, tt.produce, highest)
		})
	}
}

func TestClosedClusterAnswersWithAnError(t *testing.T) {
	c := start(t, Options{Topics: oneTopic(1)})
	c.Close()
	c.Close()
	require.ErrorIs(t, c.CreateTopic("x", 1, nil), ErrClosed)
	require.ErrorIs(t, c.MoveLeader("t", 0, 0), ErrClosed)
	_, err := c.StartNode(-1)
	require.ErrorIs(t, err, ErrClosed)
	require.Nil(t, c.Bootstrap())
	require.EqualValues(t, -1, c.Leader("t", 0))
	c.Stall(time.Hour) // must not start what nobody ends
}

func TestAwaitRequestsSaysHowManyCame(t *testing.T) {
	c := start(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.AwaitRequests(ctx, produceKey, 2)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "0 of 2 Produce requests")
}

func TestAwaitHeldSaysHowManyAre(t *testing.T) {
	c := start(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.AwaitHeld(ctx, produceKey, 1)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "0 of 1 answers to Produce are held")
}
