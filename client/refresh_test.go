package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

func TestConcurrentRefreshesShareRequests(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = led(1, 0, 1)
	var hold chan struct{}
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		reply := w.ordinary(addr, raw)
		reply.Wait = hold
		return reply
	}
	inBubble(t, handle, func(t *testing.T, n *scripted) {
		c := n.mustClient(nil, "a:1")
		defer c.Close()
		before := len(n.requests(kmsg.Metadata))
		hold = make(chan struct{})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { assert.NoError(t, c.RefreshMetadata(t.Context(), "t")) })
		}
		synctest.Wait()
		for range 100 { // these come while a request is under way, whose answer may be too old for them
			all.Go(func() { assert.NoError(t, c.RefreshMetadata(t.Context(), "t")) })
		}
		synctest.Wait()
		require.Equal(t, 1, len(n.requests(kmsg.Metadata))-before)
		close(hold)
		all.Wait()
		require.LessOrEqual(t, len(n.requests(kmsg.Metadata))-before, 2)
	})
}

// M1: a broker that leads a thousand partitions dies, and the others do not notice for a while.
func TestM1AThousandLostLeadersCostARequestOrTwoABackoff(t *testing.T) {
	const partitions, silence = 1000, 5 * time.Second
	w := newWorld(map[int32]string{0: "a:1", 1: "b:1"})
	parts := led(partitions, 0, 1)
	w.topics["t"] = parts
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) { c.Producer.Partitioner = "manual" }, "a:1,b:1")
		defer c.Close()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		var out tally
		send := func() {
			run := make([]*ProducerMessage, partitions)
			for i := range run {
				run[i] = &ProducerMessage{Topic: "t", Partition: int32(i)}
			}
			_, err := p.ProduceRun(t.Context(), run, &out)
			require.NoError(t, err)
		}
		send()
		require.NoError(t, p.Flush(t.Context()))

		n.stop("a:1")
		before := len(n.requests(kmsg.Metadata))
		for i := range int32(partitions) { // each notices at a time of its own
			_, err := p.ProduceRun(t.Context(), []*ProducerMessage{{Topic: "t", Partition: i}}, &out)
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(silence - partitions*time.Millisecond)
		asked := len(n.requests(kmsg.Metadata)) - before
		backoffs := int(silence / c.cfg.Metadata.Retry.Backoff)
		require.Positive(t, asked)
		require.LessOrEqual(t, asked, 2*backoffs+2, "metadata requests in %d backoffs for %d partitions", backoffs, partitions)

		w.set(func() { w.topics["t"] = led(partitions, 1, 2) })
		require.NoError(t, p.Flush(t.Context()))
		out.require(t, 2*partitions, 0)
	})
}

// M1: a thousand wishes, each at a time of its own, are answered by a request or two a backoff too.
func TestM1WishesThatComeOneByOneShareRequests(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = led(1, 0, 1)
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(nil, "a:1")
		defer c.Close()
		_, err := c.Partitions(t.Context(), "t")
		require.NoError(t, err)
		before, began := len(n.requests(kmsg.Metadata)), time.Now()
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { assert.NoError(t, c.RefreshMetadata(t.Context(), "t")) })
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		backoffs := int(time.Since(began) / c.cfg.Metadata.Retry.Backoff)
		require.LessOrEqual(t, len(n.requests(kmsg.Metadata))-before, 2*backoffs)
	})
}

// M2: all partitions are without a leader: backoff and retry, and the error is kept.
func TestM2LeaderlessPartitionsAreRetriedWithBackoff(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = led(3, -1, 1)
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) {
			c.Metadata.Retry = RetryConfig{Max: 4, Backoff: 100 * time.Millisecond, MaxBackoff: 300 * time.Millisecond}
		}, "a:1")
		defer c.Close()
		before, began := len(n.requests(kmsg.Metadata)), time.Now()
		_, err := c.Leader(t.Context(), "t", 2)
		require.ErrorIs(t, err, wire.ErrLeaderNotAvailable)
		require.ErrorContains(t, err, `topic "t" partition 2 has no leader`)
		took := time.Since(began)
		require.GreaterOrEqual(t, took, (100+200+300+300)*time.Millisecond, "the backoff doubles up to its bound")
		require.LessOrEqual(t, took, 2*time.Second)
		require.LessOrEqual(t, len(n.requests(kmsg.Metadata))-before, 6)

		writable, err := c.WritablePartitions(t.Context(), "t")
		require.NoError(t, err)
		require.Empty(t, writable)

		later := time.AfterFunc(350*time.Millisecond, func() { w.set(func() { w.topics["t"] = led(3, 0, 2) }) })
		defer later.Stop()
		b, err := c.Leader(t.Context(), "t", 2)
		require.NoError(t, err, "a leader that comes in time is found")
		require.EqualValues(t, 0, b.ID())
	})
}

func TestM2MessagesWaitForALeaderAndKeepItsError(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = led(3, -1, 1)
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) { c.Producer.DeliveryTimeout = 10 * time.Second }, "a:1")
		defer c.Close()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		var late, in tally
		began := time.Now()
		_, err = p.ProduceRun(t.Context(), numbered(9, 9), &late)
		require.NoError(t, err)
		require.NoError(t, p.Flush(t.Context()))
		late.require(t, 0, 9)
		require.ErrorIs(t, late.errs[0], ErrDeliveryTimeout)
		require.ErrorIs(t, late.errs[0], wire.ErrLeaderNotAvailable, "what the cluster said is kept")
		require.InDelta(t, 10, time.Since(began).Seconds(), 1.5)
		require.Less(t, len(n.requests(kmsg.Metadata)), 2*100)

		_, err = p.ProduceRun(t.Context(), numbered(9, 9), &in)
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		w.set(func() { w.topics["t"] = led(3, 0, 2) })
		require.NoError(t, p.Flush(t.Context()))
		in.require(t, 9, 0)
	})
}

// M3: not leader: the hint in the answer is enough, even while metadata are behind.
func TestM3TheHintInTheAnswerIsFollowed(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1", 1: "b:1"})
	w.topics["t"] = led(1, 0, 4) // all the time
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if addr == "a:1" && kmsg.Key(raw.Key) == kmsg.Produce {
			return produced(raw, func(_ string, p *kmsg.ProduceResponseTopicPartition) {
				p.ErrorCode, p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = wire.ErrNotLeaderOrFollower.Code, 1, 5
			})
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
		sent := n.requests(kmsg.Produce)
		require.Len(t, sent, 2)
		require.Equal(t, "b:1", sent[1].addr, "the second try went to the node that the first had named")
	})
}

// M3: not leader without a hint: metadata are asked before the next try.
func TestM3ARefreshComesBeforeTheRetry(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1", 1: "b:1"})
	w.topics["t"] = led(1, 0, 4)
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if addr == "a:1" && kmsg.Key(raw.Key) == kmsg.Produce {
			w.set(func() { w.topics["t"] = led(1, 1, 5) })
			return produced(raw, func(_ string, p *kmsg.ProduceResponseTopicPartition) {
				p.ErrorCode = wire.ErrNotLeaderOrFollower.Code
			})
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
		sent := n.requests(kmsg.Produce)
		require.Len(t, sent, 2, "no try was wasted on the old leader")
		require.Equal(t, "b:1", sent[1].addr)
	})
}

// M6: a topic is deleted and made again while a producer uses it.
func TestM6TopicDeletedAndMadeAgain(t *testing.T) {
	k := cluster(t, 2, 2)
	cfg := quickConfig()
	cfg.Producer.DeliveryTimeout = 3 * time.Second
	p := asyncProducer(t, k, cfg)
	send := func() *tally {
		var out tally
		_, err := p.ProduceRun(within(t), numbered(20, 20), &out)
		require.NoError(t, err)
		require.NoError(t, p.Flush(within(t)))
		return &out
	}
	send().require(t, 20, 0)
	require.NoError(t, k.DeleteTopic("t"))
	gone := send()
	gone.require(t, 0, 20)
	require.ErrorIs(t, gone.errs[0], wire.ErrUnknownTopicOrPartition, "bounded, and it says why")
	require.NoError(t, k.CreateTopic("t", 2, nil))
	send().require(t, 20, 0)
	total := 0
	for i := range int32(2) {
		_, vs := logOf(t, k, i)
		total += len(vs)
	}
	require.GreaterOrEqual(t, total, 20)
	require.LessOrEqual(t, total, 20+gone.unknown, "what was said not to be there is not")
}

func TestMetadataAreRefreshedInTheBackground(t *testing.T) {
	for _, tc := range []struct {
		name  string
		every time.Duration
		full  bool
		want  int
	}{
		{"every ten minutes by default, the topics in use", 10 * time.Minute, false, 3},
		{"every topic of the cluster", 10 * time.Minute, true, 3},
		{"more often", time.Minute, false, 35},
		{"never", 0, false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(map[int32]string{0: "a:1"})
			w.topics["used"], w.topics["other"] = led(1, 0, 1), led(1, 0, 1)
			inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
				c := n.mustClient(func(c *Config) { c.Metadata.RefreshFrequency, c.Metadata.Full = tc.every, tc.full }, "a:1")
				defer c.Close()
				_, err := c.Partitions(t.Context(), "used")
				require.NoError(t, err)
				before := n.requests(kmsg.Metadata)
				time.Sleep(35*time.Minute + time.Second)
				after := n.requests(kmsg.Metadata)[len(before):]
				require.Len(t, after, tc.want)
				for _, a := range after {
					topics := a.Decode().(*kmsg.MetadataRequest).Topics
					if tc.full {
						require.Nil(t, topics, "all")
					} else {
						require.Len(t, topics, 1, "M10: only what is in use is asked for")
						require.Equal(t, "used", *topics[0].Topic)
					}
				}
			})
		})
	}
	require.Equal(t, 10*time.Minute, NewConfig().Metadata.RefreshFrequency)
}

func TestARefreshTriesUntilItsDeadline(t *testing.T) {
	for _, tc := range []struct {
		name   string
		retry  RetryConfig
		took   time.Duration // until the call returns
		dialed int
	}{
		{"a few tries with a growing backoff", RetryConfig{Max: 3, Backoff: time.Second, MaxBackoff: 3 * time.Second}, 6 * time.Second, 4},
		{"none", RetryConfig{}, 0, 1},
		{"a backoff of the user's own", RetryConfig{Max: 2, BackoffFunc: func(attempt int) time.Duration { return time.Duration(attempt) * 4 * time.Second }}, 12 * time.Second, 3},
		{"metadata.timeout ends them all", RetryConfig{Max: 100, Backoff: 8 * time.Second, MaxBackoff: 8 * time.Second}, 20 * time.Second, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(map[int32]string{0: "a:1"})
			inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
				n.down["a:1"] = true
				began := time.Now()
				_, err := n.client(func(c *Config) { c.Metadata.Retry, c.Metadata.Timeout = tc.retry, 20*time.Second }, "a:1")
				require.ErrorIs(t, err, ErrNoBrokers)
				require.ErrorContains(t, err, "a:1")
				require.Equal(t, tc.took, time.Since(began))
				require.Equal(t, tc.dialed, n.dialled("a:1"))
			})
		})
	}
}

// A broker that takes connections and says nothing, as one that is cut off, costs a third of the
// time and no more.
func TestARefreshDoesNotWaitForASilentBroker(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1", 1: "b:1"})
	silent := false
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if silent && addr == "b:1" {
			return rawserver.Reply{}
		}
		return w.ordinary(addr, raw)
	}
	inBubble(t, handle, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) { c.Metadata.Timeout = 30 * time.Second }, "a:1")
		defer c.Close()
		for _, b := range c.Brokers() {
			require.NoError(t, b.Open(t.Context()))
		}
		silent = true
		waited := 0
		for range 40 {
			began := time.Now()
			require.NoError(t, c.RefreshMetadata(t.Context()))
			if took := time.Since(began); took > 0 {
				require.LessOrEqual(t, took, 10*time.Second)
				waited++
			}
		}
		require.Positive(t, waited, "it was asked first now and then")
		require.Less(t, waited, 10, "but not while it owes an answer")
	})
}

func TestARefreshAsksASilentBrokerAgain(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	silent := true
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if silent {
			silent = false
			return rawserver.Reply{}
		}
		return w.ordinary(addr, raw)
	}
	inBubble(t, handle, func(t *testing.T, n *scripted) {
		began := time.Now()
		c := n.mustClient(func(c *Config) {
			c.Metadata.Timeout, c.Metadata.Retry = 30*time.Second, RetryConfig{Max: 5, Backoff: time.Second, MaxBackoff: time.Second}
		}, "a:1")
		defer c.Close()
		require.Greater(t, time.Since(began), 10*time.Second)
		require.Less(t, time.Since(began), 15*time.Second, "a third of the time, and some backoff")
	})
}

func TestARefreshEndsWithItsCaller(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(nil, "a:1")
		defer c.Close()
		n.stop("a:1")
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := c.RefreshMetadata(ctx, "t")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 150*time.Millisecond, time.Since(began))
		n.start("a:1")
		require.NoError(t, c.RefreshMetadata(t.Context(), "t"), "the client goes on")
	})
}

func TestTopicsAreMadeOnlyWhereThatIsAskedFor(t *testing.T) {
	k, err := broker.Start(broker.Options{AutoCreate: true})
	require.NoError(t, err)
	t.Cleanup(k.Close)
	for _, allowed := range []bool{false, true} {
		cfg := quickConfig()
		cfg.Metadata.AllowAutoTopicCreation = allowed
		c, err := NewClient(k.Bootstrap(), cfg)
		require.NoError(t, err)
		_, err = c.Partitions(within(t), "wished-for")
		require.Equal(t, !allowed, errors.Is(err, ErrTopicUnknown), "allowed: %v, error: %v", allowed, err)
		require.NoError(t, c.Close())
	}
}
