package client

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// singly hands n messages over one by one, from number first on, and counts their outcomes.
func singly(t testing.TB, p *AsyncProducer, first, n int, decided *atomic.Int64, failed *atomic.Pointer[error]) {
	for i := first; i < first+n; i++ {
		m := &ProducerMessage{Topic: "t", Value: fmt.Appendf(nil, "%d", i)}
		require.NoError(t, p.Produce(within(t), m, func(_ *ProducerMessage, err error) {
			if err != nil {
				failed.Store(&err)
			}
			decided.Add(1)
		}))
	}
}

func requireDecided(t testing.TB, n int, decided *atomic.Int64) {
	require.Eventually(t, func() bool { return decided.Load() == int64(n) }, patience, time.Millisecond, "every message has its outcome")
}

// gathering is a producer whose broker producer waits for wait before it sends, so that what comes
// meanwhile is gathered.
func gathering(t testing.TB, wait time.Duration, change func(*Config)) (*AsyncProducer, func()) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.Flush.Frequency = wait
	if change != nil {
		change(cfg)
	}
	p := asyncProducer(t, c, cfg)
	warm := &ProducerMessage{Topic: "t", Value: []byte("warm")} // the leader is known after it
	require.NoError(t, p.Produce(within(t), warm, nil))
	require.NoError(t, p.Flush(within(t)))
	return p, c.Close
}

// gatherTen hands ten messages over of which the first is in its batch and the others are gathered:
// when the broker producer has just come to look for more, it may send them at once instead.
func gatherTen(t testing.TB, p *AsyncProducer, decided *atomic.Int64, failed *atomic.Pointer[error]) {
	for range 100 {
		decided.Store(0)
		failed.Store(nil)
		singly(t, p, 0, 10, decided, failed)
		if gatheredNow(p) == 9 {
			return
		}
		require.NoError(t, p.Flush(within(t)))
	}
	require.Fail(t, "nothing is gathered")
}

// gatheredNow is what waits in the queue of the only partition.
func gatheredNow(p *AsyncProducer) int {
	s := &p.parts[0].stage
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

func TestGatheredMessages(t *testing.T) {
	var decided atomic.Int64
	var failed atomic.Pointer[error]
	reset := func() { decided.Store(0); failed.Store(nil) }

	t.Run("leave with the batch before them, in order", func(t *testing.T) {
		reset()
		c := cluster(t, 1, 1)
		cfg := quickConfig()
		cfg.Producer.Flush.Frequency = 20 * time.Millisecond
		p := asyncProducer(t, c, cfg)
		singly(t, p, 0, 500, &decided, &failed)
		requireDecided(t, 500, &decided)
		_, values := logOf(t, c, 0)
		for i, v := range values {
			require.Equal(t, fmt.Sprint(i), v)
		}
		require.Len(t, values, 500)
	})
	t.Run("are flushed", func(t *testing.T) {
		p, _ := gathering(t, time.Minute, nil)
		gatherTen(t, p, &decided, &failed)
		require.NoError(t, p.Flush(within(t)))
		require.EqualValues(t, 10, decided.Load())
		require.Nil(t, failed.Load())
	})
	t.Run("are not more than 64, nor than the queue holds", func(t *testing.T) {
		for size, most := range map[int]int{256: 63, 8: 7, 0: 0} {
			reset()
			p, _ := gathering(t, time.Minute, func(c *Config) { c.ChannelBufferSize = size })
			singly(t, p, 0, 100, &decided, &failed)
			require.LessOrEqual(t, gatheredNow(p), most, "channelBufferSize %d", size)
			require.NoError(t, p.Flush(within(t)))
			require.EqualValues(t, 100, decided.Load())
		}
	})
	t.Run("count at once where a trigger counts messages", func(t *testing.T) {
		reset()
		p, _ := gathering(t, time.Minute, func(c *Config) { c.Producer.Flush.Messages = 10 })
		singly(t, p, 0, 10, &decided, &failed)
		requireDecided(t, 10, &decided)
	})
	t.Run("fail with a broker that is gone and no more tries", func(t *testing.T) {
		p, gone := gathering(t, 200*time.Millisecond, func(c *Config) { c.Producer.Retry.Max = 0 })
		gatherTen(t, p, &decided, &failed)
		gone()
		requireDecided(t, 10, &decided)
		require.NotNil(t, failed.Load())
	})
	t.Run("fail when their time is over", func(t *testing.T) {
		p, _ := gathering(t, time.Minute, func(c *Config) { c.Producer.DeliveryTimeout = 100 * time.Millisecond })
		gatherTen(t, p, &decided, &failed)
		requireDecided(t, 10, &decided)
		require.ErrorIs(t, *failed.Load(), ErrDeliveryTimeout)
	})
	t.Run("fail when closing is cut short", func(t *testing.T) {
		p, _ := gathering(t, time.Minute, nil)
		gatherTen(t, p, &decided, &failed)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Close(ended) // it may have had the time to flush all the same
		require.EqualValues(t, 10, decided.Load())
	})
	t.Run("are not left to a broker producer that has ended", func(t *testing.T) {
		reset()
		p, _ := gathering(t, time.Minute, nil)
		singly(t, p, 0, 2, &decided, &failed)
		require.Equal(t, 1, gatheredNow(p))
		late := numbered(1, 1)
		require.NoError(t, p.admit(within(t), late, callback(func(_ *ProducerMessage, err error) { failed.Store(&err) }), toCallback))
		p.over.Store(true) // closing is cut short, while this one is between the topic and its partition
		require.Empty(t, p.parts[0].stage.tryPush(late))
		require.ErrorIs(t, *failed.Load(), ErrClosed, "nobody would come for it")
	})
	t.Run("are not forgotten when nothing comes after them", func(t *testing.T) {
		p, _ := gathering(t, 0, nil)
		for range 2000 {
			reset()
			singly(t, p, 0, 3, &decided, &failed)
			requireFast(t, 3, &decided)
		}
	})
}

// requireFast spins, so that thousands of rounds take no time.
func requireFast(t testing.TB, n int, decided *atomic.Int64) {
	for end := time.Now().Add(patience); decided.Load() < int64(n); {
		require.True(t, time.Now().Before(end), "every message has its outcome")
	}
}
