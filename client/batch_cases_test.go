package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// Only the topic that failed is asked about again, not all that are in use.
func TestBatchRefreshesWhatFailed(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"], w.topics["u"] = led(1, 0, 4), led(1, 0, 4)
	failed := false // of the one connection's handler
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if kmsg.Key(raw.Key) != kmsg.Produce || failed {
			return w.ordinary(addr, raw)
		}
		return produced(raw, func(topic string, p *kmsg.ProduceResponseTopicPartition) {
			if topic == "t" {
				failed, p.ErrorCode = true, wire.ErrNotEnoughReplicas.Code
			}
		})
	}
	inBubble(t, handle, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) { c.Metadata.RefreshFrequency = -1 }, "a:1")
		defer c.Close()
		p, err := NewBatchProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		before := 0
		for range 2 {
			before = len(n.requests(kmsg.Metadata))
			require.NoError(t, p.Send(t.Context(), &BatchMessage{Topic: "t"}, &BatchMessage{Topic: "u"}))
		}
		asked := n.requests(kmsg.Metadata)
		require.Len(t, asked, before, "the second time nothing failed")
		last := asked[len(asked)-1].Decode().(*kmsg.MetadataRequest)
		require.Len(t, last.Topics, 1)
		require.Equal(t, "t", *last.Topics[0].Topic)
	})
}

// M3: not leader: the hint in the answer is followed, even while metadata are behind.
func TestBatchFollowsTheHintInTheAnswer(t *testing.T) {
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
		p, err := NewBatchProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		require.NoError(t, p.Send(t.Context(), &BatchMessage{Topic: "t"}))
		sent := n.requests(kmsg.Produce)
		require.Len(t, sent, 2)
		require.Equal(t, "b:1", sent[1].addr, "the second try went to the node that the first had named")
	})
}

// A partition without a leader is tried again, up to Retry.Max; the error says what it lacks.
func TestBatchWaitsForALeader(t *testing.T) {
	b := &fakeBroker{partitions: 2, leaderless: map[int32]bool{0: true}}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Partitioner, cfg.Producer.Retry = "manual", RetryConfig{Max: 3, Backoff: time.Second, MaxBackoff: time.Second}
		p := b.batch(t, cfg)
		msgs := placed(2, 0, 1)
		err := p.Send(context.Background(), msgs...)
		require.ErrorIs(t, err, ErrRetriesExhausted)
		require.ErrorIs(t, err, wire.ErrLeaderNotAvailable)
		require.ErrorContains(t, msgs[0].Err, `topic "t" partition 0 has no leader`)
		require.NoError(t, msgs[1].Err, "the other partition goes on")
		require.GreaterOrEqual(t, time.Since(start), 3*time.Second, "a backoff before each try")
		require.NotErrorIs(t, err, ErrOutcomeUnknown)

		time.AfterFunc(1500*time.Millisecond, func() { b.set(func() { b.leaderless = map[int32]bool{} }) })
		require.NoError(t, p.Send(context.Background(), placed(1, 0)...))
		require.Equal(t, []string{"0"}, b.log[0])
	})
}

// A message whose time is over between two tries fails then, and is not sent once more.
func TestBatchDeliveryTimeoutEndsABackoff(t *testing.T) {
	b := &fakeBroker{partitions: 1, answer: func(int, *kmsg.ProduceRequest) ruling { return ruling{code: 19} }}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Retry.Backoff, cfg.Producer.Retry.MaxBackoff, cfg.Producer.DeliveryTimeout = time.Minute, time.Minute, 10*time.Second
		p := b.batch(t, cfg)
		err := p.Send(context.Background(), &BatchMessage{Topic: "t"})
		require.ErrorIs(t, err, ErrDeliveryTimeout)
		require.ErrorIs(t, err, wire.ErrNotEnoughReplicas)
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Len(t, b.batches(), 1)
		require.EqualValues(t, 1, p.Stats().Retries)
	})
}

// What ran out of time while what was before it was tried says so, and no retry is counted that
// never came.
func TestBatchOfWhatItsTimeWasTaken(t *testing.T) {
	b := &fakeBroker{partitions: 1, answer: func(n int, _ *kmsg.ProduceRequest) ruling {
		return []ruling{{delay: 3 * time.Second, code: 19}, {delay: 9 * time.Second}}[n]
	}}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Flush.MaxMessages, cfg.Producer.DeliveryTimeout = 1, 10*time.Second
		p := b.batch(t, cfg)
		msgs := []*BatchMessage{{Topic: "t"}, {Topic: "t"}}
		_ = p.Send(context.Background(), msgs...) // each message says what became of it
		require.NoError(t, msgs[0].Err)
		require.ErrorIs(t, msgs[1].Err, ErrDeliveryTimeout)
		require.ErrorIs(t, msgs[1].Err, errNotItsTurn)
		require.NotErrorIs(t, msgs[1].Err, wire.ErrNotEnoughReplicas, "that was the one before it")
		require.EqualValues(t, 1, p.Stats().Retries)

		b.set(func() {
			b.answer = func(int, *kmsg.ProduceRequest) ruling { return ruling{delay: 11 * time.Second, code: 19} }
		})
		require.ErrorIs(t, p.Send(context.Background(), &BatchMessage{Topic: "t"}), ErrDeliveryTimeout)
		require.EqualValues(t, 1, p.Stats().Retries, "it was not sent again")
	})
}

// A message that cannot be encoded, because it was changed meanwhile against the rules, fails alone.
func TestBatchAPanicWhileEncodingFailsOneMessage(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		p := b.batch(t, b.config())
		bad := &BatchMessage{Topic: "t", Headers: []Header{{Key: unreadable(10)}}}
		for _, first := range []bool{true, false} {
			msgs := []*BatchMessage{{Topic: "t", Value: "before"}, bad, {Topic: "t", Value: "after"}}
			if first {
				msgs = msgs[1:]
			}
			err := p.Send(context.Background(), msgs...)
			var some *BatchError
			require.ErrorAs(t, err, &some)
			require.Equal(t, []*BatchMessage{bad}, some.Failed)
			var panicked *PanicError
			require.ErrorAs(t, bad.Err, &panicked)
		}
		require.Equal(t, []string{"after", "before", "after"}, b.log[0])
		require.EqualValues(t, 2, p.Stats().Panics)
	})
}

// What a call does when a refresh ends, or an answer comes after it was abandoned, of which the
// order in time is nobody's to choose.
func TestBatchCallByItself(t *testing.T) {
	b := &fakeBroker{partitions: 2}
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		p := b.batch(t, b.config())
		parts := func(c *batchCall) (asked, later *batchPart) {
			m := &BatchMessage{Topic: "t"}
			asked = &batchPart{topic: "t", msgs: []*BatchMessage{m}, batch: newBatch(nil, 0, time.Now(), 0), stale: true, asked: true}
			later = &batchPart{topic: "t", number: 1, msgs: []*BatchMessage{m}, batch: newBatch(nil, 0, time.Now(), 0), stale: true}
			c.open = []*batchPart{asked, later}
			return asked, later
		}
		// A refresh counts only for what had failed before it began.
		c := p.call(context.Background())
		asked, later := parts(c)
		c.refreshing = true
		c.step(time.Now())
		require.False(t, later.asked, "it waits for the next refresh")
		c.refreshed = true
		c.collect()
		require.False(t, asked.stale)
		require.True(t, later.stale)
		require.False(t, c.refreshing)

		// What comes for an abandoned call is let go, and it is not used again.
		c = p.call(context.Background())
		parts(c)
		r := p.sender(0).request(c)
		r.parts, r.answers = append(r.parts, c.open[0]), make([]batchAnswer, 1)
		c.open[0].batch = nil // as abandon leaves it
		c.dead = true
		c.answer(r)
		c.later(func() { t.Error("this, too") })
		require.NotPanics(t, c.collect)
		p.putBack(c)
		require.NotContains(t, p.idle, c)

		// Nor is one whose refresh is under way, yet.
		c = p.call(context.Background())
		c.refreshing = true
		p.putBack(c)
		require.NotContains(t, p.idle, c)
		c.refreshing = false
		p.putBack(c)
		require.Contains(t, p.idle, c)
	})
}

// P7: whether a message may be in the log is not forgotten by what comes after.
func TestBatchOutcomesThatAreUnknown(t *testing.T) {
	const minute = time.Minute
	for _, tc := range []struct {
		name    string
		answers []ruling
		unknown bool
		want    error
	}{
		{"P7: timed out in the broker, then refused", []ruling{{code: 7}, {code: 87}}, true, wire.ErrInvalidRecord},
		{"the answer is lost, then refused", []ruling{{hangUp: true, applied: true}, {code: 87}}, true, wire.ErrInvalidRecord},
		{"refused", []ruling{{code: 87}}, false, wire.ErrInvalidRecord},
		{"refused for now, then for good", []ruling{{code: 19}, {code: 87}}, false, wire.ErrInvalidRecord},
		{"the answer is lost, and no time for more", []ruling{{hangUp: true}, {delay: minute}}, true, context.DeadlineExceeded},
		{"P7: timed out in the broker, and no time for more", []ruling{{code: 7}}, true, context.DeadlineExceeded},
		{"refused for now, and no time for more", []ruling{{code: 19}}, false, context.DeadlineExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBroker{partitions: 1, answer: func(n int, _ *kmsg.ProduceRequest) ruling { return tc.answers[n] }}
			onPipes(t, b, func(t *testing.T, _ time.Time) {
				cfg := b.config()
				cfg.Producer.Retry.BackoffFunc = func(attempt int) time.Duration {
					if attempt == len(tc.answers) { // the next try does not come in time
						return minute
					}
					return time.Millisecond
				}
				p := b.batch(t, cfg)
				ctx, cancel := context.WithTimeout(context.Background(), minute/2)
				defer cancel()
				err := p.Send(ctx, &BatchMessage{Topic: "t"})
				require.ErrorIs(t, err, tc.want)
				if tc.unknown {
					require.ErrorIs(t, err, ErrOutcomeUnknown)
				} else {
					require.NotErrorIs(t, err, ErrOutcomeUnknown)
				}
			})
		})
	}
}

// What the end of a request says about its batches.
func TestBatchWhatMayBeWritten(t *testing.T) {
	lost, refused := wire.Retriable, wire.Retriable|wire.DefinitelyRefused
	for _, tc := range []struct {
		sentence string
		sent     bool
		noAnswer error
		class    wire.Class
		before   bool
		want     bool
	}{
		{"no answer to what was sent: perhaps", true, ErrClosed, lost, false, true},
		{"it was not sent: no", false, ErrClosed, lost, false, false},
		{"it was not written after all: no", true, ErrClosed, refused, false, false},
		{"the broker does not know: perhaps", true, nil, wire.Retriable | wire.OutcomeUnknown, false, true},
		{"the broker has refused it: no", true, nil, wire.Retriable, false, false},
		{"once perhaps, always perhaps", true, nil, wire.Retriable, true, true},
	} {
		t.Run(tc.sentence, func(t *testing.T) {
			b := &fakeBroker{partitions: 1}
			onPipes(t, b, func(t *testing.T, _ time.Time) {
				p := b.batch(t, b.config())
				c := p.call(context.Background())
				part := &batchPart{topic: "t", msgs: []*BatchMessage{{Topic: "t"}}, batch: newBatch(nil, 0, time.Now(), 0)}
				part.batch.mayBeWritten = tc.before
				r := p.sender(0).request(c)
				r.parts, r.err = append(r.parts, part), tc.noAnswer
				r.answers = []batchAnswer{{told: true, err: wire.ErrNotEnoughReplicas, class: tc.class}}
				r.sent.Store(tc.sent)
				c.answered(r, time.Now())
				require.Equal(t, tc.want, part.batch.mayBeWritten)
			})
		})
	}
}

// When the call's context has ended, that is why what is left fails, whatever its request ended with;
// and a batch that may be being written still is not used for others.
func TestBatchAbandonedCalls(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		cfg := b.config()
		cfg.Producer.Retry.Max = 0
		p := b.batch(t, cfg)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c := p.call(ctx)
		m := &BatchMessage{Topic: "t"}
		part := &batchPart{topic: "t", msgs: []*BatchMessage{m}, batch: newBatch(nil, 0, time.Now(), 0)}
		part.batch.msgs = append(part.batch.msgs, &m.encoded)
		batch := part.batch
		p.accounts.accepted(1)
		r := p.sender(0).request(c)
		r.parts, r.err = append(r.parts, part), ErrClosed
		r.answers = []batchAnswer{{told: true, err: wire.ErrNetworkException, class: wire.Retriable}}
		c.open = []*batchPart{part}
		c.answered(r, time.Now())
		require.Equal(t, 1, part.left(), "undecided still")
		c.finish()
		require.ErrorIs(t, m.Err, context.Canceled)
		require.ErrorIs(t, m.Err, wire.ErrNetworkException)
		require.NotErrorIs(t, m.Err, ErrRetriesExhausted)
		require.Len(t, batch.msgs, 1, "it is not given back")
	})
}
