package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// txnScript is a coordinator of transactions v1 on pipes, which agrees with everything unless the
// test says otherwise, and notes when the end of a transaction was asked for.
type txnScript struct {
	b     *fakeBroker
	start time.Time
	ends  []time.Duration // guarded by b.mu
	codes map[int16]int16 // what is answered, by key; guarded by b.mu
}

// withTxn runs a test on pipes with a transactional producer inside a transaction.
func withTxn(t *testing.T, b *fakeBroker, change func(*Config), test func(t *testing.T, p *AsyncProducer, s *txnScript)) {
	s := &txnScript{b: b, codes: map[int16]int16{}}
	b.coordinate = s.answer
	onPipes(t, b, func(t *testing.T, start time.Time) {
		s.start = start
		cfg := b.config()
		cfg.Producer.Idempotent, cfg.Producer.Transaction.ID, cfg.Producer.Partitioner = true, "x", "manual"
		if change != nil {
			change(cfg)
		}
		p := b.producer(t, cfg)
		require.NoError(t, p.BeginTransaction(context.Background()))
		test(t, p, s)
	})
}

func (s *txnScript) answer(raw rawserver.Request, req kmsg.Request) rawserver.Reply {
	code := s.codes[raw.Key]
	switch req := req.(type) {
	case *kmsg.FindCoordinatorRequest:
		r := kmsg.NewPtrFindCoordinatorResponse()
		for _, key := range req.CoordinatorKeys {
			c := kmsg.NewFindCoordinatorResponseCoordinator()
			c.Key, c.NodeID, c.Host, c.Port = key, 1, "pipe", 1
			r.Coordinators = append(r.Coordinators, c)
		}
		return rawserver.Respond(raw, r)
	case *kmsg.AddPartitionsToTxnRequest:
		r := kmsg.NewPtrAddPartitionsToTxnResponse()
		for _, t := range req.Topics {
			rt := kmsg.NewAddPartitionsToTxnResponseTopic()
			rt.Topic = t.Topic
			for _, n := range t.Partitions {
				p := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
				p.Partition, p.ErrorCode = n, code
				rt.Partitions = append(rt.Partitions, p)
			}
			r.Topics = append(r.Topics, rt)
		}
		return rawserver.Respond(raw, r)
	case *kmsg.AddOffsetsToTxnRequest:
		r := kmsg.NewPtrAddOffsetsToTxnResponse()
		r.ErrorCode = code
		return rawserver.Respond(raw, r)
	case *kmsg.EndTxnRequest:
		s.ends = append(s.ends, time.Since(s.start))
		r := kmsg.NewPtrEndTxnResponse()
		r.ErrorCode = code
		return rawserver.Respond(raw, r)
	}
	return rawserver.Reply{Close: true}
}

func (s *txnScript) ended() []time.Duration {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return append([]time.Duration(nil), s.ends...)
}

// A batch that ran out of time in flight may still arrive: the end of its transaction is not asked
// for before its answer is there, for as long as the caller waits, and at once then.
func TestAnAbortWaitsForWhatIsInFlightAndHasItsOutcome(t *testing.T) {
	for _, close := range []bool{false, true} {
		b := &fakeBroker{partitions: 1, answer: func(int, *kmsg.ProduceRequest) ruling { return ruling{delay: 8 * time.Second} }}
		withTxn(t, b, func(c *Config) { c.Producer.DeliveryTimeout = time.Second }, func(t *testing.T, p *AsyncProducer, s *txnScript) {
			out := newHeard(s.start)
			_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "a")}, out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(context.Background()))
			at, err := out.of("a")
			require.Equal(t, time.Second, at)
			require.ErrorIs(t, err, ErrOutcomeUnknown)
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			require.ErrorIs(t, p.AbortTransaction(ctx), context.DeadlineExceeded)
			require.Equal(t, 4*time.Second, time.Since(s.start), "no longer than the caller waits")
			require.Empty(t, s.ended())
			if close {
				require.NoError(t, closeWithin(t, p, time.Minute), "it aborts what is being aborted")
			} else {
				require.NoError(t, p.AbortTransaction(context.Background()))
			}
			require.Equal(t, []time.Duration{8 * time.Second}, s.ended())
		})
	}
}

// What waits fails as soon as its transaction has failed, whatever failed, also for a leader that is
// away and will not be looked for again for an hour.
func TestWhatWaitsFailsWithItsTransaction(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(t *testing.T, p *AsyncProducer, s *txnScript)
		want error
	}{
		{"a message is refused", func(t *testing.T, p *AsyncProducer, s *txnScript) {
			s.b.set(func() { s.b.answer = func(int, *kmsg.ProduceRequest) ruling { return ruling{code: 87} } })
			_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "x")}, nil)
			require.NoError(t, err)
		}, wire.ErrInvalidRecord},
		{"a message never came into a batch", func(t *testing.T, p *AsyncProducer, _ *txnScript) {
			_, err := p.ProduceRun(context.Background(), []*ProducerMessage{{Topic: "t", Value: make([]byte, 2_000_000)}}, nil)
			require.NoError(t, err)
		}, nil},
		{"offsets are refused", func(t *testing.T, p *AsyncProducer, s *txnScript) {
			s.b.set(func() { s.codes[25] = 30 })
			require.ErrorIs(t, p.SendOffsetsToTransaction(context.Background(), []GroupOffset{{Topic: "t"}}, GroupMetadata{GroupID: "g"}), ErrTransactionFailed)
		}, wire.ErrGroupAuthorizationFailed},
		{"the partitions are refused", func(t *testing.T, p *AsyncProducer, s *txnScript) {
			s.b.set(func() { s.codes[24] = 29 })
			_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "x")}, nil)
			require.NoError(t, err)
		}, wire.ErrTopicAuthorizationFailed},
		{"it is aborted", func(t *testing.T, p *AsyncProducer, _ *txnScript) {
			require.NoError(t, p.AbortTransaction(context.Background()))
		}, ErrTransactionAborted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBroker{partitions: 2, leaderless: map[int32]bool{1: true}}
			withTxn(t, b, func(c *Config) { c.Producer.Retry.Backoff, c.Producer.Retry.MaxBackoff = time.Hour, time.Hour }, func(t *testing.T, p *AsyncProducer, s *txnScript) {
				out := newHeard(s.start)
				_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(1, "waits")}, out)
				require.NoError(t, err)
				time.Sleep(time.Second) // the first look-up has failed
				tc.fail(t, p, s)
				require.NoError(t, p.Flush(context.Background()))
				at, err := out.of("waits")
				require.Equal(t, time.Second, at)
				if errors.Is(tc.want, ErrTransactionAborted) {
					require.ErrorIs(t, err, ErrTransactionAborted)
					return
				}
				require.ErrorIs(t, err, ErrTransactionFailed)
				if tc.want != nil {
					require.ErrorIs(t, err, tc.want)
				}
			})
		})
	}
}

// What comes back to be sent again after its transaction has failed is not.
func TestNothingIsSentAgainInAFailedTransaction(t *testing.T) {
	b := &fakeBroker{partitions: 2, answer: func(n int, _ *kmsg.ProduceRequest) ruling {
		return []ruling{{}, {}, {delay: 3 * time.Second, code: 87}, {code: 19}}[n]
	}}
	withTxn(t, b, func(c *Config) { c.Producer.Retry.Backoff, c.Producer.Retry.MaxBackoff = time.Hour, time.Hour }, func(t *testing.T, p *AsyncProducer, s *txnScript) {
		out := newHeard(s.start)
		for i, v := range []string{"1", "2", "refused", "again"} {
			_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(int32(i%2), v)}, out)
			require.NoError(t, err)
			if i < 2 {
				require.NoError(t, p.Flush(context.Background()), "each partition has sent once")
			} else {
				time.Sleep(time.Second)
			}
		}
		require.NoError(t, p.Flush(context.Background()))
		at, err := out.of("again")
		require.Equal(t, 3*time.Second, at)
		require.ErrorIs(t, err, ErrTransactionFailed)
		require.ErrorIs(t, err, wire.ErrNotEnoughReplicas, "with what it came back for")
		require.NotErrorIs(t, err, ErrRetriesExhausted)
		require.Equal(t, 4, len(b.batches()))
	})
}

// CONCURRENT_TRANSACTIONS passes in milliseconds: it is not waited for as long as for other failures.
func TestP12ConcurrentTransactionsAreNotWaitedForLong(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	withTxn(t, b, func(c *Config) {
		c.Admin.Retry.Backoff, c.Admin.Retry.MaxBackoff = 10*time.Second, 10*time.Second
	}, func(t *testing.T, p *AsyncProducer, s *txnScript) {
		s.b.set(func() { s.codes[26] = 51 })
		time.AfterFunc(100*time.Millisecond, func() { s.b.set(func() { s.codes[26] = 0 }) })
		out := b.send(t, p, s.start, to(0, "a"))
		_, err := out.of("a")
		require.NoError(t, err)
		require.NoError(t, p.CommitTransaction(context.Background()))
		require.Less(t, time.Since(s.start), time.Second)
		require.Greater(t, len(s.ended()), 3)
	})
}

// A coordinator that says no for longer than admin.timeout: the error names both.
func TestTransactionRequestsEndWithAdminTimeout(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	withTxn(t, b, func(c *Config) { c.Admin.Timeout = 20 * time.Second }, func(t *testing.T, p *AsyncProducer, s *txnScript) {
		s.b.set(func() { s.codes[26] = 14 })
		b.send(t, p, s.start, to(0, "a"))
		err := p.CommitTransaction(context.Background())
		require.ErrorIs(t, err, wire.ErrCoordinatorLoadInProgress)
		require.ErrorContains(t, err, "admin.timeout, 20s")
		require.NotErrorIs(t, err, ErrOutcomeUnknown, "it was refused each time")
		require.Equal(t, 20*time.Second, time.Since(s.start).Truncate(time.Second))
		s.b.set(func() { s.codes[26] = 0 })
		require.NoError(t, p.CommitTransaction(context.Background()), "it is open as before")
	})
}

// Calls in a callback, where waiting would be for oneself, and after Close has begun, are refused at
// once.
func TestTransactionCallsThatWouldWaitForThemselves(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	withTxn(t, b, nil, func(t *testing.T, p *AsyncProducer, _ *txnScript) {
		ctx := context.Background()
		calls := map[string]func() error{
			"init": func() error { return p.InitTransactions(ctx) }, "begin": func() error { return p.BeginTransaction(ctx) },
			"commit": func() error { return p.CommitTransaction(ctx) }, "abort": func() error { return p.AbortTransaction(ctx) },
			"offsets": func() error { return p.SendOffsetsToTransaction(ctx, nil, GroupMetadata{}) },
		}
		inside := map[string]error{}
		require.NoError(t, p.Produce(ctx, to(0, "a"), func(*ProducerMessage, error) {
			for name, call := range calls {
				inside[name] = call()
			}
		}))
		require.NoError(t, p.Flush(ctx))
		for name := range calls {
			require.ErrorIs(t, inside[name], ErrInCallback, name)
		}
		require.NoError(t, p.CommitTransaction(ctx))

		p.txn.call <- struct{}{} // another call is under way
		p.closing.Store(true)
		require.ErrorIs(t, p.BeginTransaction(context.Background()), ErrClosed)
		p.closing.Store(false)
		<-p.txn.call
	})
}
