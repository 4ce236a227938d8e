package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A message has its outcome within Producer.DeliveryTimeout of its acceptance, to the millisecond,
// wherever it is when its time is over.
func TestDeliveryTimeoutHoldsInEveryState(t *testing.T) {
	const timeout = 5 * time.Second
	never := func(int, *kmsg.ProduceRequest) ruling { return ruling{wait: make(chan struct{})} }
	for _, tc := range []struct {
		name    string
		broker  func(*fakeBroker)
		config  func(*Config)
		first   []string // sent before it, one every 700 ms
		unknown bool     // it may be in the log
	}{
		{name: "its leader is unknown", broker: func(b *fakeBroker) { b.leaderless = map[int32]bool{0: true} }},
		{name: "the answer does not come", broker: func(b *fakeBroker) { b.answer = never }, unknown: true},
		{name: "it waits for a free slot of the connection", broker: func(b *fakeBroker) { b.answer = never },
			config: func(c *Config) { c.Net.MaxOpenRequests, c.Producer.Flush.MaxMessages = 1, 1 }, first: []string{"a", "b"}},
		{name: "it waits for its batch's turn in the queues", broker: func(b *fakeBroker) { b.answer = never },
			config: func(c *Config) {
				c.Net.MaxOpenRequests, c.ChannelBufferSize, c.Producer.Flush.MaxMessages = 1, 2, 1
			}, first: []string{"a", "b", "c", "d", "e"}},
		{name: "the broker refuses it for now, again and again", broker: func(b *fakeBroker) {
			b.answer = func(int, *kmsg.ProduceRequest) ruling { return ruling{code: 19} }
		}},
		{name: "it is in a long backoff", broker: func(b *fakeBroker) {
			b.answer = func(int, *kmsg.ProduceRequest) ruling { return ruling{code: 19} }
		}, config: func(c *Config) {
			c.Producer.Retry.Backoff, c.Producer.Retry.MaxBackoff = time.Hour, time.Hour
		}},
		{name: "the broker throttles", broker: func(b *fakeBroker) {
			b.answer = func(int, *kmsg.ProduceRequest) ruling { return ruling{throttle: time.Minute} }
		}, first: []string{"ok"}, unknown: true}, // handed to the connection, which writes it after the minute
		{name: "the topic cannot be looked up", broker: func(b *fakeBroker) { b.noTopic = true },
			config: func(c *Config) { c.Metadata.Retry.Backoff, c.Metadata.Retry.MaxBackoff = time.Hour, time.Hour }},
		{name: "no trigger fires", config: func(c *Config) { c.Producer.Flush.Messages, c.Producer.Flush.Frequency = 100, time.Hour }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBroker{partitions: 1}
			if tc.broker != nil {
				tc.broker(b)
			}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				cfg := b.config()
				cfg.Producer.DeliveryTimeout = timeout
				if tc.config != nil {
					tc.config(cfg)
				}
				p := b.producer(t, cfg)
				out := newHeard(start)
				sent := map[string]time.Duration{}
				for _, v := range append(tc.first, "it") {
					_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(0, v)}, out)
					require.NoError(t, err)
					sent[v] = time.Since(start)
					synctest.Wait()
					time.Sleep(700 * time.Millisecond)
				}
				time.Sleep(timeout)
				for v, at := range sent {
					got, err := out.of(v)
					if v == "ok" {
						require.NoError(t, err)
						continue
					}
					require.ErrorIs(t, err, ErrDeliveryTimeout, v)
					require.WithinDuration(t, start.Add(at+timeout), start.Add(got), 2*time.Millisecond, "message %q, sent at %v", v, at)
				}
				_, err := out.of("it")
				require.Equal(t, tc.unknown, errors.Is(err, ErrOutcomeUnknown), "%v", err)
				require.Empty(t, out.twice)
				require.Zero(t, p.accounts.total())
				_ = closeWithin(t, p, time.Second)
				ok, bad := out.count()
				require.Equal(t, len(sent), ok+bad)
			})
		})
	}
}

// What was given up in flight may be acknowledged later: nobody hears of it twice, order is kept
// for what comes after it, and the producer goes on.
func TestABatchThatExpiredInFlight(t *testing.T) {
	for _, tc := range []struct {
		name       string
		idempotent bool
		late       ruling
	}{
		{"is acknowledged late", false, ruling{}},
		{"is refused late", false, ruling{code: 19}},
		{"is too large, late", false, ruling{code: 10}},
		{"of an idempotent producer is acknowledged late", true, ruling{}},
		{"of an idempotent producer loses its connection", true, ruling{hangUp: true, applied: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			release := make(chan struct{})
			b := &fakeBroker{partitions: 1}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				release = make(chan struct{})
				b.answer = func(n int, _ *kmsg.ProduceRequest) ruling {
					if n == 0 {
						r := tc.late
						r.wait = release
						return r
					}
					return ruling{}
				}
				cfg := b.config()
				cfg.Producer.DeliveryTimeout = time.Second
				cfg.Producer.Idempotent = tc.idempotent
				p := b.producer(t, cfg)
				out := newHeard(start)
				_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "late1"), to(0, "late2")}, out)
				require.NoError(t, err)
				require.NoError(t, p.Flush(context.Background()))
				at, err := out.of("late1")
				require.ErrorIs(t, err, ErrOutcomeUnknown)
				require.ErrorIs(t, err, ErrDeliveryTimeout)
				require.Equal(t, time.Second, at)
				close(release)
				synctest.Wait()
				_, err = p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "next")}, out)
				require.NoError(t, err)
				require.NoError(t, p.Flush(context.Background()))
				_, err = out.of("next")
				require.NoError(t, err)
				require.Empty(t, out.twice)
				require.Equal(t, "next", b.log[0][len(b.log[0])-1])
				require.LessOrEqual(t, len(b.log[0]), 3, "nobody sends again what has its outcome")
				require.NoError(t, closeWithin(t, p, time.Minute))
			})
		})
	}
}

// TestTheExpiryTimerIsSetForTheOldest has the timer fire for the earliest deadline, whichever
// partition comes first, and not for each message.
func TestTheExpiryTimerIsSetForTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fired atomic.Int32
		var e expiry
		e.fire = func() { e.fired(); fired.Add(1) }
		now := time.Now()
		e.by(now.Add(3 * time.Second))
		e.by(now.Add(2 * time.Second))
		for i := range 1000 {
			e.by(now.Add(4*time.Second + time.Duration(i)))
		}
		time.Sleep(2*time.Second - time.Nanosecond)
		require.Zero(t, fired.Load())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.EqualValues(t, 1, fired.Load())
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, fired.Load(), "not set again by itself")
		e.by(time.Now().Add(time.Second))
		e.stop()
		e.by(time.Now().Add(time.Second))
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, fired.Load(), "stopped for good")
	})
}

func TestMoments(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, time.Hour, 48 * 24 * time.Hour, 50 * 24 * time.Hour, 400 * 24 * time.Hour} {
		for _, age := range []time.Duration{0, time.Second, time.Hour, 20 * 24 * time.Hour} {
			now := origin.Add(after)
			m := momentOf(now.Add(-age))
			require.NotZero(t, m)
			require.WithinDuration(t, now.Add(-age), m.time(now), 2*time.Millisecond, fmt.Sprintf("%v old at %v", age, after))
		}
	}
}
