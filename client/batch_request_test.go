package client

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/record"
)

// What waits for a trigger is sent in half of its time at the latest, and fails at once when the client
// has been closed; the trigger by bytes counts anew after each sending.
func TestBatchQueueWaitsNoLongerThanItMay(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Batch.Async, cfg.Producer.Flush.Bytes, cfg.Producer.DeliveryTimeout = true, 100, 10*time.Second
		p := b.batch(t, cfg)
		send := func(n int) (m *BatchMessage) {
			for range n {
				m = &BatchMessage{Topic: "t", Value: "0123456789"}
				require.NoError(t, p.Send(context.Background(), m))
			}
			synctest.Wait()
			return m
		}
		send(10)
		require.Len(t, b.batches(), 1)
		send(1)
		require.Len(t, b.batches(), 1, "ten bytes are no hundred")
		time.Sleep(6 * time.Second)
		require.Len(t, b.batches(), 2)
		require.Equal(t, 5*time.Second, b.batches()[1].at)
		m := send(1)
		require.NoError(t, p.client.Close())
		synctest.Wait()
		require.ErrorIs(t, m.Err, ErrClosed)
		require.Equal(t, 6*time.Second, time.Since(start))
	})
}

// Requests are used again: nothing is left in them of what they were before.
func TestBatchRequestsAreUsedAgain(t *testing.T) {
	b := &fakeBroker{partitions: 2}
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		cfg := b.config()
		cfg.Producer.Partitioner, cfg.Producer.MaxMessageBytes, cfg.Producer.MaxRequestBytes = "manual", 1000, 1000
		dial, dials := cfg.Net.Dialer, 0
		var open net.Conn
		wait := func(context.Context) error { return nil }
		cfg.Net.Dialer = func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
			if dials++; dials > 1 {
				if err := wait(ctx); err != nil {
					return nil, err
				}
			}
			open, err = dial(ctx, network, addr)
			return open, err
		}
		p := b.batch(t, cfg)
		for range 30 {
			require.NoError(t, p.Send(context.Background(), placed(2, 0, 1)...))
		}
		require.Equal(t, 30, b.came(0), "both partitions in each")

		// One that could not connect is tried again.
		failed := false
		wait = func(context.Context) error {
			if failed {
				return nil
			}
			failed = true
			return errors.New("no connection")
		}
		_ = open.Close()
		synctest.Wait()
		require.NoError(t, p.Send(context.Background(), placed(2, 0, 1)...))
		require.True(t, failed)

		// One that is still connecting when its caller goes has written nothing.
		wait = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		_ = open.Close()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := p.Send(ctx, placed(2, 0, 1)...)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, ErrOutcomeUnknown)
	})
}

// A request of which no batch is left is not written.
func TestBatchNothingIsSentOfNothing(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		cfg := b.config()
		cfg.Producer.MaxMessageBytes, cfg.Producer.Compression, cfg.Producer.CheckCompressedSize = 2000, record.ZSTD, true
		p := b.batch(t, cfg)
		var large *MessageTooLargeError
		require.ErrorAs(t, p.Send(context.Background(), &BatchMessage{Topic: "t", Value: noise(1, 3000)}), &large)
		require.Zero(t, b.came(0))
	})
}

// What answers may look like: in any order, of a batch written before, about something else, or about
// nothing that can be read.
func TestBatchAnswers(t *testing.T) {
	answer := func(about ...kmsg.ProduceResponseTopicPartition) func(rawserver.Request) rawserver.Reply {
		return func(raw rawserver.Request) rawserver.Reply {
			r, t := kmsg.NewPtrProduceResponse(), kmsg.NewProduceResponseTopic()
			t.Topic, t.Partitions = "t", about
			r.Topics = append(r.Topics, t)
			return rawserver.Respond(raw, r)
		}
	}
	of := func(partition int32, code int16, base int64) kmsg.ProduceResponseTopicPartition {
		p := kmsg.NewProduceResponseTopicPartition()
		p.Partition, p.ErrorCode, p.BaseOffset = partition, code, base
		return p
	}
	for _, tc := range []struct {
		sentence string
		answer   func(rawserver.Request) rawserver.Reply
		offsets  []int64
		fails    []string // by message; empty: it does not
	}{
		{"in another order than the request", answer(of(1, 0, 200), of(0, 0, 100)), []int64{100, 200}, []string{"", ""}},
		{"P4: written by an earlier try", answer(of(0, 46, -1), of(1, 0, 200)), []int64{-1, 200}, []string{"", ""}},
		{"about a partition twice, and not about the other", answer(of(0, 0, 100), of(0, 87, -1)), []int64{100, -1}, []string{"", "were not asked about"}},
		{"about something else", answer(of(5, 0, 1), of(6, 0, 1)), []int64{-1, -1}, []string{"were not asked about", "were not asked about"}},
		{"less than was asked", answer(of(0, 0, 100)), []int64{100, -1}, []string{"", "leaves out a partition"}},
		{"what cannot be read", func(rawserver.Request) rawserver.Reply { return rawserver.Reply{Body: []byte{1, 2, 3}} }, []int64{-1, -1}, []string{"Produce", "Produce"}},
	} {
		t.Run(tc.sentence, func(t *testing.T) {
			w := newWorld(map[int32]string{0: "a:1"})
			w.topics["t"] = led(2, 0, 4)
			handle := func(addr string, raw rawserver.Request) rawserver.Reply {
				if kmsg.Key(raw.Key) == kmsg.Produce {
					return tc.answer(raw)
				}
				return w.ordinary(addr, raw)
			}
			inBubble(t, handle, func(t *testing.T, n *scripted) {
				told := make(chan error, 10)
				c := n.mustClient(func(c *Config) {
					c.Producer.Retry.Max, c.Producer.Partitioner = 0, "manual"
					c.Producer.OnRequest = func(i RequestInfo) { told <- i.Err }
				}, "a:1")
				defer c.Close()
				p, err := NewBatchProducerFromClient(c)
				require.NoError(t, err)
				defer func() { require.NoError(t, p.Close(t.Context())) }()
				msgs := placed(2, 0, 1)
				_ = p.Send(t.Context(), msgs...) // each message says what became of it
				for i, m := range msgs {
					if tc.fails[i] == "" {
						require.NoError(t, m.Err)
					} else {
						require.ErrorIs(t, m.Err, ErrOutcomeUnknown)
						require.ErrorContains(t, m.Err, tc.fails[i])
					}
					require.Equal(t, tc.offsets[i], m.Offset)
				}
				require.Len(t, told, 1, "the request was told of, whatever its answer")
			})
		})
	}
}

// What a message carries besides key and value is sent, or kept for who looks at it on its way; and
// who asked to be told of requests is told of those without an answer.
func TestBatchWhatMessagesCarry(t *testing.T) {
	b := &fakeBroker{partitions: 1, answer: func(n int, _ *kmsg.ProduceRequest) ruling { return ruling{hangUp: n == 0} }}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		var errs []error // of Send's requests, one after the other
		cfg := b.config()
		cfg.Producer.OnRequest = func(i RequestInfo) { errs = append(errs, i.Err) }
		p := b.batch(t, cfg)
		m := &BatchMessage{Topic: "t", Timestamp: start.Add(-time.Hour), Metadata: "mine"}
		require.NoError(t, p.Send(context.Background(), m))
		require.Equal(t, start.Add(-time.Hour), m.encoded.Timestamp)
		require.Equal(t, "mine", m.encoded.Metadata)
		require.Len(t, errs, 2)
		require.Error(t, errs[0])
		require.NoError(t, errs[1])
	})
}
