package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFlushTriggers has a message of ten bytes come every 100 ms, to two partitions of one broker in
// turn, and looks when what leaves: as soon as any trigger that is set fires.
func TestFlushTriggers(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name  string
		flush FlushConfig
		// The first requests: when each arrives, with how many messages in all.
		at     []time.Duration
		counts []int
	}{
		{"none: as soon as the connection is free", FlushConfig{}, []time.Duration{0, 100 * ms, 200 * ms}, []int{1, 1, 1}},
		{"by messages, over both partitions", FlushConfig{Messages: 4}, []time.Duration{300 * ms, 700 * ms}, []int{4, 4}},
		{"by bytes", FlushConfig{Bytes: 40}, []time.Duration{200 * ms, 500 * ms}, []int{3, 3}},
		{"by time", FlushConfig{Frequency: 250 * ms}, []time.Duration{250 * ms, 550 * ms}, []int{3, 3}},
		{"by messages or time: messages come first", FlushConfig{Messages: 2, Frequency: 250 * ms}, []time.Duration{100 * ms, 300 * ms}, []int{2, 2}},
		{"by messages or time: time comes first", FlushConfig{Messages: 9, Frequency: 250 * ms}, []time.Duration{250 * ms}, []int{3}},
		{"by messages or bytes: bytes come first", FlushConfig{Messages: 9, Bytes: 40}, []time.Duration{200 * ms}, []int{3}},
		{"all three", FlushConfig{Messages: 3, Bytes: 1000, Frequency: 10 * time.Second}, []time.Duration{200 * ms, 500 * ms}, []int{3, 3}},
		{"a full batch does not wait for its trigger", FlushConfig{Frequency: 10 * time.Second, MaxMessages: 2}, []time.Duration{200 * ms}, []int{3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBroker{partitions: 2}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				cfg := b.config()
				cfg.Producer.Flush, cfg.Producer.Partitioner = tc.flush, "manual"
				p := b.producer(t, cfg)
				for i := range 8 {
					_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(int32(i%2), "0123456789")}, nil)
					require.NoError(t, err)
					synctest.Wait()
					time.Sleep(100 * ms)
				}
				var at []time.Duration
				var counts []int
				for _, a := range b.batches() {
					if n := len(at); n > 0 && at[n-1] == a.at {
						counts[n-1] += len(a.values)
						continue
					}
					at, counts = append(at, a.at), append(counts, len(a.values))
				}
				require.GreaterOrEqual(t, len(at), len(tc.at), "%v", at)
				require.Equal(t, tc.at, at[:len(tc.at)])
				require.Equal(t, tc.counts, counts[:len(tc.counts)])
				require.NoError(t, p.Flush(context.Background()))
				require.Len(t, append(b.log[0], b.log[1]...), 8, "Flush sends the rest")
			})
		})
	}
}

// While the connection is not free, what comes is collected, and leaves together when it is.
func TestWithoutTriggersAFreeConnectionIsTheTrigger(t *testing.T) {
	b := &fakeBroker{partitions: 1, answer: func(int, *kmsg.ProduceRequest) ruling { return ruling{delay: time.Second} }}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Net.MaxOpenRequests = 1
		p := b.producer(t, cfg)
		for range 10 {
			require.NoError(t, p.Produce(context.Background(), to(0, "x"), nil))
			synctest.Wait()
			time.Sleep(10 * time.Millisecond)
		}
		require.NoError(t, p.Flush(context.Background()))
		got := b.batches()
		require.Len(t, got, 2)
		require.Equal(t, []time.Duration{0, time.Second}, []time.Duration{got[0].at, got[1].at})
		require.Len(t, got[1].values, 9)
	})
}

// Flush waits for what was accepted before it, whatever happens to it, and for nothing that comes
// later.
func TestFlushWaitsForWhatCameBefore(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer func(n int, _ *kmsg.ProduceRequest) ruling
		took   time.Duration
		fails  bool
	}{
		{"at once", nil, 0, false},
		{"an answer takes a second", func(int, *kmsg.ProduceRequest) ruling { return ruling{delay: time.Second} }, time.Second, false},
		{"refused twice, retried", func(n int, _ *kmsg.ProduceRequest) ruling {
			if n < 2 {
				return ruling{code: 19}
			}
			return ruling{}
		}, 2 * time.Second, false},
		{"failed for good", func(int, *kmsg.ProduceRequest) ruling { return ruling{code: 87} }, 0, true},
		{"a connection lost", func(n int, _ *kmsg.ProduceRequest) ruling { return ruling{hangUp: n == 0} }, time.Second, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBroker{partitions: 1, answer: tc.answer}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				cfg := b.config()
				cfg.Producer.Flush = FlushConfig{Messages: 1000, Frequency: time.Hour}
				cfg.Producer.Retry.Backoff, cfg.Producer.Retry.MaxBackoff = time.Second, time.Second
				cfg.Metadata.Retry.Backoff, cfg.Metadata.Retry.MaxBackoff = 1, 1
				p := b.producer(t, cfg)
				out := newHeard(start)
				_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "a"), to(0, "b")}, out)
				require.NoError(t, err)
				time.Sleep(time.Minute)
				require.Empty(t, b.batches(), "no trigger has fired")
				before := time.Now()
				require.NoError(t, p.Flush(context.Background()))
				require.WithinDuration(t, before.Add(tc.took), time.Now(), 10*time.Millisecond)
				ok, bad := out.count()
				require.Equal(t, 2, ok+bad)
				require.Equal(t, tc.fails, bad == 2)
			})
		})
	}
	never := make(chan struct{})
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		never = make(chan struct{})
		b.answer = func(n int, _ *kmsg.ProduceRequest) ruling { return ruling{wait: never} }
		p := b.producer(t, b.config())
		require.NoError(t, p.Produce(context.Background(), to(0, "a"), nil))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := p.Flush(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "1 messages not decided yet")
		require.Equal(t, time.Second, time.Since(start))
		close(never)
		require.NoError(t, p.Flush(context.Background()))
	})
}
