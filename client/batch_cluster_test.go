package client

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// From one bootstrap address every broker is found; one that is added gets traffic, and one that
// was stopped is used again once it is back, all without a restart of the producer.
func TestBatchFollowsAGrowingCluster(t *testing.T) {
	for _, tc := range []struct {
		name    string
		refresh time.Duration // −1: the answers to what is sent to the old leaders have to do
	}{{"by refreshes", 5 * time.Millisecond}, {"by failures alone", -1}} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(t, 2, 8)
			for i := range int32(8) {
				require.NoError(t, c.MoveLeader("t", i, i%2))
			}
			cfg := quickConfig()
			cfg.Producer.Partitioner, cfg.Metadata.RefreshFrequency = "manual", tc.refresh
			p := batchProducer(t, []string{c.Address(0)}, cfg)
			all := func() []*BatchMessage { return placed(80, 0, 1, 2, 3, 4, 5, 6, 7) }
			seen := watch(c)
			nodes := func() map[int32]bool {
				out := map[int32]bool{}
				for _, r := range seen() {
					out[r.node] = true
				}
				return out
			}
			require.NoError(t, p.Send(within(t), all()...))
			require.Equal(t, map[int32]bool{0: true, 1: true}, nodes(), "both are found from the address of one")

			added, err := c.StartNode(-1)
			require.NoError(t, err)
			require.NoError(t, c.MoveLeader("t", 3, added))
			require.NoError(t, p.Send(within(t), all()...))
			require.True(t, nodes()[added], "the new broker gets what it leads")

			require.NoError(t, c.StopNode(1))
			require.NoError(t, p.Send(within(t), all()...))
			require.NotContains(t, nodes(), int32(1))
			back, err := c.StartNode(1)
			require.NoError(t, err)
			require.EqualValues(t, 1, back)
			for i := range int32(8) {
				require.NoError(t, c.MoveLeader("t", i, i%2))
			}
			require.NoError(t, p.Send(within(t), all()...))
			require.True(t, nodes()[1], "the broker that is back is used again")
			total := int64(0)
			for i := range int32(8) {
				_, end, err := c.Offsets("t", i)
				require.NoError(t, err)
				total += end
			}
			require.GreaterOrEqual(t, total, int64(4*80), "a connection that broke may have duplicated")
		})
	}
}

// The interval of −1, as 0, means no refresh without a cause; a positive one refreshes while nothing
// fails. Neither opens a connection: those that are there are used, the first one too.
func TestBatchRefreshInterval(t *testing.T) {
	for _, tc := range []struct {
		name     string
		interval time.Duration
		periodic bool
	}{{"-1", -1, false}, {"0", 0, false}, {"2 ms", 2 * time.Millisecond, true}} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(t, 2, 4)
			for i := range int32(4) {
				require.NoError(t, c.MoveLeader("t", i, i%2))
			}
			cfg := quickConfig()
			cfg.Producer.Partitioner, cfg.Metadata.RefreshFrequency = "manual", tc.interval
			require.NoError(t, cfg.Validate())
			p := batchProducer(t, []string{c.Address(0)}, cfg)
			require.NoError(t, p.Send(within(t), placed(8, 0, 1, 2, 3)...))
			_, opened := c.Connections()
			require.EqualValues(t, 2, opened, "one a broker: that of the first contact is used for more")
			before := c.Requests(keyMetadata)
			if tc.periodic {
				require.NoError(t, c.AwaitRequests(within(t), keyMetadata, before+10))
			}
			for range 20 {
				require.NoError(t, p.Send(within(t), placed(8, 0, 1, 2, 3)...))
			}
			_, now := c.Connections()
			require.Equal(t, opened, now, "no refresh opens a connection or closes one")
			if !tc.periodic {
				require.Equal(t, before, c.Requests(keyMetadata), "nothing failed, so nothing was asked")
				c.FailProduce(6, 1)
				require.NoError(t, p.Send(within(t), placed(8, 0, 1, 2, 3)...))
				require.Greater(t, c.Requests(keyMetadata), before, "after a failure it is")
			}
		})
	}
}

// The classic partitioner keeps messages without a key on one partition until the next refresh.
func TestBatchClassicPartitioner(t *testing.T) {
	c := cluster(t, 1, 50)
	cfg := quickConfig()
	cfg.Producer.Partitioner, cfg.Metadata.RefreshFrequency = "classic", -1
	p := batchProducer(t, c.Bootstrap(), cfg)
	send := func() map[int32]bool {
		out := map[int32]bool{}
		for range 10 {
			msgs := []*BatchMessage{{Topic: "t", Value: make([]byte, 10_000)}, {Topic: "t", Value: make([]byte, 10_000)}}
			require.NoError(t, p.Send(within(t), msgs...))
			for _, m := range msgs {
				out[m.Partition] = true
			}
		}
		return out
	}
	seen := map[int32]bool{}
	for range 10 {
		got := send()
		require.Len(t, got, 1, "one partition until the refresh")
		for at := range got {
			seen[at] = true
		}
		require.NoError(t, p.client.RefreshMetadata(within(t), "t"))
	}
	require.Greater(t, len(seen), 1, "each refresh chooses anew")
	require.NoError(t, p.Send(within(t), &BatchMessage{Topic: "t", Key: "hejsan"}))
	at := &BatchMessage{Topic: "t", Key: "hejsan"}
	require.NoError(t, p.Send(within(t), at))
	require.Equal(t, fnvNegated([]byte("hejsan"), 50), at.Partition, "a key stays where it is")
}

// The pipeline's producers tell the classic partitioner of refreshes too.
func TestClassicPartitionerInThePipeline(t *testing.T) {
	c := cluster(t, 1, 50)
	cfg := quickConfig()
	cfg.Producer.Partitioner, cfg.Metadata.RefreshFrequency = "classic", -1
	p := asyncProducer(t, c, cfg)
	seen := map[int32]bool{}
	for range 10 {
		msgs := make([]*ProducerMessage, 20)
		for i := range msgs {
			msgs[i] = &ProducerMessage{Topic: "t", Value: make([]byte, 10_000)}
		}
		_, err := p.ProduceRun(within(t), msgs, nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(within(t)))
		for _, m := range msgs {
			require.Equal(t, msgs[0].Partition, m.Partition)
		}
		seen[msgs[0].Partition] = true
		require.NoError(t, p.client.RefreshMetadata(within(t), "t"))
	}
	require.Greater(t, len(seen), 1)
}

// A node that leaves between the look at the metadata and the request costs a try, not the message.
func TestANodeThatHasLeftIsNoReasonToGiveUp(t *testing.T) {
	c := cluster(t, 2, 2)
	for i := range int32(2) {
		require.NoError(t, c.MoveLeader("t", i, 1))
	}
	cfg := quickConfig()
	cfg.Metadata.RefreshFrequency = -1
	p := asyncProducer(t, c, cfg)
	var out tally
	_, err := p.ProduceRun(within(t), numbered(10, 3), &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	require.NoError(t, c.StopNode(1))
	// Somebody else's refresh takes the node away under partitions that still belong to it.
	require.NoError(t, c.CreateTopic("u", 1, nil))
	_, err = p.client.Partitions(within(t), "u")
	require.NoError(t, err)
	require.Nil(t, p.client.node(1))
	_, err = p.ProduceRun(within(t), numbered(10, 3), &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 20, 0)
}

// Many producers, used and closed, leave nothing behind; TestMain looks for goroutines.
func TestBatchProducersLeaveNothingBehind(t *testing.T) {
	c := cluster(t, 2, 4)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { // ends after its rounds
			for range 20 {
				cfg := quickConfig()
				cfg.Producer.Batch.Async = i%2 == 0
				p, err := NewBatchProducer(c.Bootstrap(), cfg)
				if err != nil {
					t.Error(err)
					return
				}
				if err := p.Send(within(t), numberedBatch(10, 4)...); err != nil {
					t.Error(err)
				}
				if err := p.Close(within(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { open, _ := c.Connections(); return open == 0 }, patience, time.Millisecond)
}
