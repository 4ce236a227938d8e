package client

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

// sent is one batch as a broker saw it arrive.
type sent struct {
	epoch int16
	base  int32
	count int32
}

// watchProduce notes every batch that arrives at the brokers.
func watchProduce(c *broker.Cluster) func() []sent {
	var mu sync.Mutex
	var all []sent
	c.Observe(0, func(_ int32, r kmsg.Request) {
		for _, t := range r.(*kmsg.ProduceRequest).Topics {
			for _, p := range t.Partitions {
				b, _, err := record.Next(p.Records)
				if err != nil {
					continue
				}
				mu.Lock()
				all = append(all, sent{b.ProducerEpoch, b.BaseSequence, b.Count})
				mu.Unlock()
			}
		}
	})
	return func() []sent {
		mu.Lock()
		defer mu.Unlock()
		return append([]sent(nil), all...)
	}
}

func idempotentConfig(inFlight int) *Config {
	cfg := quickConfig()
	cfg.Producer.Idempotent = true
	cfg.Net.MaxOpenRequests = inFlight
	cfg.Producer.Flush.MaxMessages = 20
	return cfg
}

func TestIdempotentProducerIsExactlyOnceInOrder(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault func(t *testing.T, c *broker.Cluster)
	}{
		{"without a fault", func(*testing.T, *broker.Cluster) {}},
		{"P1: the first batch fails retriably, others in flight", func(_ *testing.T, c *broker.Cluster) { c.FailProduce(19, 1) }},
		{"P3: several batches fail", func(_ *testing.T, c *broker.Cluster) { c.FailProduce(19, 7) }},
		{"M3: the leader says it is none", func(_ *testing.T, c *broker.Cluster) { c.FailProduce(6, 3) }},
		{"P7: written, but not by enough replicas", func(_ *testing.T, c *broker.Cluster) { c.FailProduce(20, 2) }},
		{"P4: answers are lost and the batches resent", func(_ *testing.T, c *broker.Cluster) { c.LoseAnswers(0, 3) }},
		{"P2: connections are cut", func(_ *testing.T, c *broker.Cluster) { c.CloseConnections() }},
	} {
		for _, inFlight := range []int{1, 5} {
			t.Run(tc.name, func(t *testing.T) {
				c := cluster(t, 3, 3)
				p := asyncProducer(t, c, idempotentConfig(inFlight))
				var out tally
				for i := range 5 {
					msgs := numbered(1000, 10)[i*200 : (i+1)*200]
					_, err := p.ProduceRun(within(t), msgs, &out)
					require.NoError(t, err)
					if i == 1 {
						tc.fault(t, c)
					}
				}
				require.NoError(t, p.Flush(within(t)))
				out.require(t, 1000, 0)
				requireWhole(t, c, 3, 1000, 10)
			})
		}
	}
}

func TestIdempotentThroughLeaderMoves(t *testing.T) {
	c := cluster(t, 3, 3)
	p := asyncProducer(t, c, idempotentConfig(5))
	var out tally
	all := numbered(4000, 10)
	for i := range 20 {
		_, err := p.ProduceRun(within(t), all[i*200:(i+1)*200], &out)
		require.NoError(t, err)
		require.NoError(t, c.MoveLeader("t", int32(i%3), int32((i+1)%3)))
		switch i % 5 {
		case 2:
			c.CloseConnections()
		case 4:
			c.LoseAnswers(0, 1)
		}
	}
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 4000, 0)
	requireWhole(t, c, 3, 4000, 10)
}

func TestP6OneInFlightUntilTheFirstSuccess(t *testing.T) {
	c := cluster(t, 1, 1)
	seen := watchProduce(c)
	p := asyncProducer(t, c, idempotentConfig(5))
	c.Stall(0)
	var out tally
	_, err := p.ProduceRun(within(t), numbered(40, 1), &out)
	require.NoError(t, err)
	require.NoError(t, c.AwaitRequests(within(t), 0, 1))
	p.mu.Lock()
	part := p.parts[0]
	p.mu.Unlock()
	require.Eventually(t, func() bool {
		part.mu.Lock()
		defer part.mu.Unlock()
		return part.held && len(seen()) > 0
	}, patience, time.Millisecond, "the broker producer has looked, and let the second batch be")
	require.Len(t, seen(), 1, "the second batch waits for the first answer")
	c.Resume()
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 40, 0)
}

func TestP5P11TheNumberingStartsAnewUnderARaisedEpoch(t *testing.T) {
	for _, tc := range []struct {
		name string
		code int16
	}{
		{"P11: the broker forgot the producer", 59},
		{"the broker misses a batch", 45},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(t, 1, 1)
			seen := watchProduce(c)
			p := asyncProducer(t, c, idempotentConfig(1))
			var out tally
			all := numbered(400, 1)
			_, err := p.ProduceRun(within(t), all[:200], &out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(within(t)))
			before := seen()
			c.FailProduce(tc.code, 1)
			_, err = p.ProduceRun(within(t), all[200:], &out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(within(t)))
			out.require(t, 400, 0)
			requireWhole(t, c, 1, 400, 1)
			last := seen()
			refused, next := last[len(before)], last[len(before)+1]
			require.Equal(t, before[0].epoch, refused.epoch)
			require.Equal(t, sent{before[0].epoch + 1, 0, refused.count}, next, "the refused batch comes again as the first of the next epoch")
		})
	}
}

func TestAFailedBatchLeavesNoGap(t *testing.T) {
	c := cluster(t, 1, 1)
	p := asyncProducer(t, c, idempotentConfig(5))
	c.FailProduce(87, 1) // INVALID_RECORD: not to be tried again
	var out tally
	_, err := p.ProduceRun(within(t), numbered(400, 1), &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	require.Equal(t, 400, out.ok+out.bad)
	require.Positive(t, out.bad)
	require.LessOrEqual(t, out.bad, 20, "the messages of one batch")
	_, vs := logOf(t, c, 0)
	require.Len(t, vs, out.ok)
}

func TestP10SequencesWrap(t *testing.T) {
	require.Equal(t, int32(0), sequenceAfter(math.MaxInt32, 1))
	require.Equal(t, int32(4), sequenceAfter(math.MaxInt32-5, 10))
	require.Equal(t, int32(10), sequenceAfter(0, 10))
}

func TestIdempotenceIsRefusedWhereItCannotHold(t *testing.T) {
	cfg := NewConfig()
	cfg.Producer.Idempotent = true
	cfg.Producer.RequiredAcks = AcksLeader
	cfg.Producer.Retry.Max = 0
	cfg.Net.MaxOpenRequests = 6
	err := cfg.Validate()
	var bad *ConfigError
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Problems, 3, "every reason at once")
}

func TestP10TheProducerGoesOnBeyondTheLastSequence(t *testing.T) {
	c := cluster(t, 1, 1)
	seen := watchProduce(c)
	p := asyncProducer(t, c, idempotentConfig(5))
	var out tally
	all := numbered(100, 1)
	_, err := p.ProduceRun(within(t), all[:20], &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	p.mu.Lock()
	part := p.parts[0]
	p.mu.Unlock()
	part.mu.Lock()
	part.numbers.next = math.MaxInt32 - 9 // as if so many had been sent; the broker will see a gap
	part.mu.Unlock()
	_, err = p.ProduceRun(within(t), all[20:], &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 100, 0)
	requireWhole(t, c, 1, 100, 1)
	require.Contains(t, seen(), sent{seen()[0].epoch, math.MaxInt32 - 9, 20})
}

// What has run out of time between two tries leaves the partition as it would be without it.
func TestAPartitionGoesOnAfterABatchRanOutOfTime(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.DeliveryTimeout = 400 * time.Millisecond
	cfg.Producer.Retry = RetryConfig{Max: 1 << 20, Backoff: 600 * time.Millisecond, MaxBackoff: 600 * time.Millisecond}
	p := asyncProducer(t, c, cfg)
	fault := c.FailProduce(19, -1)
	var out tally
	_, err := p.ProduceRun(within(t), numbered(1, 1), &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 0, 1)
	fault.Remove()
	_, err = p.ProduceRun(within(t), numbered(1, 1), &out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	out.require(t, 1, 1)
}
