package client

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
)

// batch makes a BatchProducer that is closed in the bubble.
func (b *fakeBroker) batch(t *testing.T, cfg *Config) *BatchProducer {
	p, err := NewBatchProducer([]string{"pipe:1"}, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	return p
}

// sizedBatch is messages of about a hundred bytes, the eleventh of about 600.
func sizedBatch() []*BatchMessage {
	out := make([]*BatchMessage, 20)
	for i := range out {
		n := 100
		if i == 10 {
			n = 600
		}
		out[i] = &BatchMessage{Topic: "t", Value: string(rune('a'+i)) + string(noise(i, n))}
	}
	return out
}

// P25: the error of a message that is too large for the topic names its limit, as that of the
// pipeline does; from then on nothing is sent that would be refused, for as long as the limit is
// believed.
func TestBatchLearnsTheTopicsLimit(t *testing.T) {
	for _, tc := range []struct {
		name  string
		codec record.Codec
		async bool
		tells bool
	}{
		{"the broker tells its limit", record.None, false, true},
		{"queued", record.None, true, true},
		{"compressed", record.Gzip, false, true},
		{"the broker does not tell", record.None, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBroker{partitions: 1, limit: 400, silent: !tc.tells}
			onPipes(t, b, func(t *testing.T, _ time.Time) {
				cfg := b.config()
				cfg.Producer.Compression, cfg.Producer.Batch.Async = tc.codec, tc.async
				p := b.batch(t, cfg)
				var want []string
				send := func() *MessageTooLargeError {
					msgs := sizedBatch()
					_ = p.Send(context.Background(), msgs...) // each message says what became of it
					require.NoError(t, p.Flush(context.Background()))
					for i, m := range msgs {
						if i != 10 {
							require.NoError(t, m.Err)
							want = append(want, m.Value.(string))
						}
					}
					require.Equal(t, want, b.log[0], "only the one that is too large failed; order is kept")
					require.ErrorIs(t, msgs[10].Err, wire.ErrMessageTooLarge)
					var large *MessageTooLargeError
					require.ErrorAs(t, msgs[10].Err, &large)
					require.Greater(t, large.Size, 600)
					return large
				}
				large := send()
				require.Positive(t, p.Stats().Splits)
				require.Equal(t, 1, b.came(32), "DescribeConfigs, once")
				if !tc.tells {
					require.Zero(t, large.Limit)
					return
				}
				require.Equal(t, 400, large.Limit)
				require.Equal(t, topicLimit, large.Whose)
				before := len(b.batches())
				require.Equal(t, 400, send().Limit)
				for _, a := range b.batches()[before:] {
					require.LessOrEqual(t, a.bytes, 400, "nothing is sent that would be refused")
				}
				time.Sleep(limitAge + time.Second)
				b.set(func() { b.limit = 100_000 })
				raised := sizedBatch()[10]
				require.NoError(t, p.Send(context.Background(), raised))
				require.NoError(t, p.Flush(context.Background()))
				require.NoError(t, raised.Err, "a limit that was raised is noticed after a minute")
			})
		})
	}
}

// A batch that was refused teaches the limit, though none of its messages is too large: the next ones
// are not refused. After a small batch they grow again.
func TestBatchSplitsOnceAndLearns(t *testing.T) {
	for _, tells := range []bool{true, false} {
		b := &fakeBroker{partitions: 1, limit: 400, silent: !tells}
		onPipes(t, b, func(t *testing.T, _ time.Time) {
			p := b.batch(t, b.config())
			msgs := make([]*BatchMessage, 200)
			for i := range msgs {
				msgs[i] = &BatchMessage{Topic: "t", Value: "0123456789"}
			}
			require.NoError(t, p.Send(context.Background(), msgs[:20]...))
			synctest.Wait()
			before, splits := len(b.batches()), p.Stats().Splits
			if !tells {
				msgs[0].Value = string(noise(1, 300)) // alone, or refused
			}
			require.Positive(t, splits)
			require.NoError(t, p.Send(context.Background(), msgs...))
			if tells {
				require.Equal(t, splits, p.Stats().Splits)
				require.Equal(t, 11, len(b.batches()[before:]), "each as full as it may be")
			} else {
				require.Less(t, len(b.batches()[before:]), 60, "not one message each")
			}
		})
	}
}

// While the limit is asked for, which may take long, Send still ends with its context and Close with
// its own.
func TestBatchDoesNotWaitForTheLimitBeyondItsContext(t *testing.T) {
	b := &fakeBroker{partitions: 1, limit: 400}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		b.set(func() { b.asking = make(chan struct{}) }) // in the bubble
		cfg := b.config()
		cfg.Producer.Flush.MaxMessages = 1
		p := b.batch(t, cfg)
		msgs := sizedBatch()[9:12]
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := p.Send(ctx, msgs...)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, msgs[0].Err)
		require.ErrorIs(t, msgs[1].Err, wire.ErrMessageTooLarge, "with what is known")
		require.NotErrorIs(t, msgs[1].Err, ErrOutcomeUnknown)
		require.Error(t, msgs[2].Err, "it had to wait behind")
		close(b.asking)
		synctest.Wait()
		require.ErrorIs(t, msgs[1].Err, context.DeadlineExceeded, "an outcome is not changed any more")
		require.NoError(t, p.Send(context.Background(), sizedBatch()[3]), "the producer goes on")
		require.EqualValues(t, 2, p.Stats().Failures)
	})
}

// A topic that cannot be looked up three times in a row fails its messages at once for ten seconds;
// others go on. One look-up then decides.
func TestBatchTheTopicsCircuit(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		cfg := b.config()
		cfg.Metadata.Retry = RetryConfig{Max: 1, Backoff: time.Second, MaxBackoff: time.Second}
		p := b.batch(t, cfg)
		send := func(ctx context.Context) (took time.Duration, err error) {
			before := time.Now()
			known, missing := &BatchMessage{Topic: "t"}, &BatchMessage{Topic: "missing"}
			_ = p.Send(ctx, known, missing) // each message says what became of it
			if ctx.Err() == nil {
				require.NoError(t, known.Err, "the other topic goes on")
			}
			return time.Since(before), missing.Err
		}
		for range 5 {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			_, err := send(ctx)
			cancel()
			require.NotErrorIs(t, err, ErrCircuitOpen, "that nobody waited for it says nothing about the topic")
		}
		for range circuitFailures {
			took, err := send(context.Background())
			require.ErrorIs(t, err, ErrTopicUnknown)
			require.NotErrorIs(t, err, ErrCircuitOpen)
			require.GreaterOrEqual(t, took, time.Second, "it was looked up, with the retries of metadata.retry")
		}
		asked := b.came(3)
		for range 10 {
			took, err := send(context.Background())
			var open *CircuitOpenError
			require.ErrorAs(t, err, &open)
			require.ErrorIs(t, err, ErrTopicUnknown)
			require.Equal(t, int32(-1), open.Partition)
			require.Zero(t, took)
			time.Sleep(900 * time.Millisecond)
		}
		require.Equal(t, asked, b.came(3), "nothing was asked meanwhile")
		time.Sleep(time.Second) // ten seconds are over
		took, err := send(context.Background())
		require.NotErrorIs(t, err, ErrCircuitOpen)
		require.GreaterOrEqual(t, took, time.Second, "looked up again")
		_, err = send(context.Background())
		require.ErrorIs(t, err, ErrCircuitOpen, "one failure opens it again")
		b.set(func() { b.topics = []string{"missing"} })
		time.Sleep(circuitOpen)
		_, err = send(context.Background())
		require.NoError(t, err, "one success closes it")
		missing := p.topic("missing")
		missing.lookedUp(ErrTopicUnknown)
		require.NoError(t, missing.refusedNow("missing"), "then it takes three failures again")
	})
}

// A look-up takes no longer than a message may, and counts for the circuit then.
func TestBatchLookUpsEndWithTheDeliveryTimeout(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Metadata.Retry = RetryConfig{Max: 1000, Backoff: time.Second, MaxBackoff: time.Second}
		cfg.Producer.DeliveryTimeout = 30 * time.Second
		p := b.batch(t, cfg)
		for i := range circuitFailures {
			err := p.Send(context.Background(), &BatchMessage{Topic: "missing"})
			require.ErrorIs(t, err, ErrDeliveryTimeout)
			require.ErrorIs(t, err, ErrTopicUnknown, "with the reason")
			require.Equal(t, time.Duration(i+1)*30*time.Second, time.Since(start))
		}
		require.ErrorIs(t, p.Send(context.Background(), &BatchMessage{Topic: "missing"}), ErrCircuitOpen)
	})
}

// Producer.DeliveryTimeout counts from when a message was accepted: not from when Send was called
// and had to wait for room, nor only from when the message's turn came.
func TestBatchDeliveryTimeoutCountsFromAcceptance(t *testing.T) {
	t.Run("not from before there was room", func(t *testing.T) {
		b := &fakeBroker{partitions: 1, answer: func(n int, _ *kmsg.ProduceRequest) ruling {
			return []ruling{{delay: 8 * time.Second}, {delay: 3 * time.Second, code: 19}, {}}[n]
		}}
		onPipes(t, b, func(t *testing.T, start time.Time) {
			cfg := b.config()
			cfg.Producer.Batch.Async, cfg.Producer.Buffer.Messages, cfg.Producer.DeliveryTimeout = true, 1, 10*time.Second
			p := b.batch(t, cfg)
			first, second := &BatchMessage{Topic: "t", Value: "1"}, &BatchMessage{Topic: "t", Value: "2"}
			require.NoError(t, p.Send(context.Background(), first))
			require.NoError(t, p.Send(context.Background(), second))
			require.Equal(t, 8*time.Second, time.Since(start), "it waited for room")
			require.NoError(t, p.Flush(context.Background()))
			require.Greater(t, time.Since(start), 11*time.Second)
			require.NoError(t, second.Err, "tried again 11 s after Send was called, 3 s after it was accepted")
		})
	})
	for _, async := range []bool{false, true} {
		t.Run(fmt.Sprintf("from before its turn, async=%v", async), func(t *testing.T) {
			b := &fakeBroker{partitions: 1, answer: func(n int, _ *kmsg.ProduceRequest) ruling {
				return []ruling{{delay: 8 * time.Second}, {delay: 3 * time.Second, code: 19}, {}}[n]
			}}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				cfg := b.config()
				cfg.Producer.Batch.Async, cfg.Producer.Flush.MaxMessages, cfg.Producer.DeliveryTimeout = async, 1, 10*time.Second
				p := b.batch(t, cfg)
				msgs := []*BatchMessage{{Topic: "t", Value: "1"}, {Topic: "t", Value: "2"}}
				_ = p.Send(context.Background(), msgs...) // each message says what became of it
				require.NoError(t, p.Flush(context.Background()))
				require.NoError(t, msgs[0].Err)
				require.ErrorIs(t, msgs[1].Err, ErrDeliveryTimeout, "11 s after it was accepted")
				require.ErrorIs(t, msgs[1].Err, wire.ErrNotEnoughReplicas)
				require.Equal(t, 11*time.Second, time.Since(start))
			})
		})
	}
}
