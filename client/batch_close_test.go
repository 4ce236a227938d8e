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
)

// silentBroker takes requests and never answers.
func silentBroker() *fakeBroker {
	return &fakeBroker{partitions: 1, answer: func(int, *kmsg.ProduceRequest) ruling { return ruling{delay: 1000 * time.Hour} }}
}

// Close sends what waits for a trigger that nothing will fire any more.
func TestBatchCloseSendsWhatWaitsForATrigger(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Batch.Async, cfg.Producer.Flush.Messages = true, 1000
		p := b.batch(t, cfg)
		require.NoError(t, p.Send(context.Background(), &BatchMessage{Topic: "t", Value: "a"}))
		synctest.Wait()
		require.Empty(t, b.batches())
		require.NoError(t, p.Close(context.Background()))
		require.Equal(t, []string{"a"}, b.log[0])
		require.Equal(t, start, time.Now())
	})
}

// A second Close bounds the closing that the first began without a bound.
func TestBatchASecondCloseBoundsTheFirst(t *testing.T) {
	b := silentBroker()
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Batch.Async, cfg.Producer.DeliveryTimeout = true, 0
		p := b.batch(t, cfg)
		m := &BatchMessage{Topic: "t"}
		require.NoError(t, p.Send(context.Background(), m))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.Flush(ctx), context.DeadlineExceeded, "so is Flush by its own")
		require.NoError(t, m.Err)
		first := make(chan error, 1)
		go func() { first <- p.Close(context.Background()) }() // ends with the second; received below
		synctest.Wait()
		ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, <-first, context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.ErrorIs(t, m.Err, ErrClosed)
		require.ErrorIs(t, m.Err, ErrOutcomeUnknown)
	})
}

// Every message has its outcome, and whoever is told of it was told, when Close returns; unless that
// takes longer than can be waited for.
func TestBatchCloseWaitsForWhoIsToldOfOutcomes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		takes time.Duration
		late  bool
	}{{"a second", time.Second, false}, {"for long", time.Hour, true}} {
		t.Run(tc.name, func(t *testing.T) {
			b := silentBroker()
			onPipes(t, b, func(t *testing.T, start time.Time) {
				cfg := b.config()
				cfg.Producer.DeliveryTimeout = 0
				cfg.Producer.Batch.OnResults = batchDeliveries(func([]*BatchMessage, Delivery) { time.Sleep(tc.takes) })
				p := b.batch(t, cfg)
				sent := make(chan error, 1)
				go func() { sent <- p.Send(context.Background(), &BatchMessage{Topic: "t"}) }() // Close ends it; received below
				synctest.Wait()
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				err := p.Close(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				if tc.late {
					require.ErrorContains(t, err, "has not returned; 1 messages are not decided")
					require.Equal(t, time.Second+closeGrace, time.Since(start))
				} else {
					require.Zero(t, p.Stats().Open)
					require.Equal(t, 2*time.Second, time.Since(start))
				}
				require.ErrorIs(t, <-sent, ErrClosed)
				require.NotErrorIs(t, p.Close(context.Background()), ErrClosed, "a second call says what the first did")
			})
		})
	}
}

// A Send with a context of its own ends with the producer as well.
func TestBatchCloseEndsASendWithItsOwnContext(t *testing.T) {
	b := silentBroker()
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.DeliveryTimeout = 0
		p := b.batch(t, cfg)
		own, cancel := context.WithTimeout(context.Background(), 100*time.Hour)
		defer cancel()
		sent := make(chan error, 1)
		go func() { sent <- p.Send(own, &BatchMessage{Topic: "t"}) }() // Close ends it; received below
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.Error(t, p.Close(ctx))
		require.ErrorIs(t, <-sent, ErrClosed)
		require.Equal(t, time.Second, time.Since(start))
	})
}

// What is refused because closing has begun leaves nothing in the books, at whichever look.
func TestBatchWhatClosingRefusesLeavesNothing(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		cfg := b.config()
		cfg.Producer.Batch.Async, cfg.Producer.Buffer.Messages = true, 1
		p := b.batch(t, cfg)
		p.closing.Store(true)
		m := &BatchMessage{Topic: "t"}
		require.ErrorIs(t, p.takeIn(context.Background(), []*BatchMessage{m}), ErrClosed)
		require.Zero(t, p.Stats().Open)
		require.True(t, p.buffer.try(1, 0), "its room was given back")
		p.buffer.release(1, 0)
		require.True(t, p.queue.over())
		p.accounts.accepted(1)
		require.False(t, p.queue.over(), "somebody is taking a message in")
		p.accounts.decided(0, 1)
		p.closing.Store(false)
		require.False(t, p.queue.over())
	})
}

// One Send of more than the buffer holds takes what there is room for.
func TestBatchQueueIsBoundedWithinASend(t *testing.T) {
	b := silentBroker()
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		cfg := b.config()
		cfg.Producer.Batch.Async, cfg.Producer.Buffer.Messages, cfg.Producer.DeliveryTimeout = true, 5, 0
		p := b.batch(t, cfg)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var bad *BatchError
		require.ErrorAs(t, p.Send(ctx, numberedBatch(20, 1)...), &bad)
		require.Len(t, bad.Failed, 15)
	})
}

// Who waits for room has the queue sent, whatever its trigger waits for.
func TestBatchQueueIsSentForWhoWaitsForRoom(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Batch.Async, cfg.Producer.Buffer.Messages, cfg.Producer.Flush.Messages, cfg.Producer.DeliveryTimeout = true, 5, 1000, 0
		p := b.batch(t, cfg)
		require.NoError(t, p.Send(context.Background(), numberedBatch(5, 1)...))
		synctest.Wait() // the queue's goroutine waits for its trigger
		require.Empty(t, b.batches())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, p.Send(ctx, numberedBatch(1, 1)...))
		require.Equal(t, start, time.Now())
		require.Len(t, b.batches(), 1)
	})
}

// Failures that nobody asked to be told of are not told.
func TestBatchResultsOnlyOfWhatIsAskedFor(t *testing.T) {
	for _, want := range []ReturnConfig{{Successes: true}, {Errors: true}, {}} {
		b := &fakeBroker{partitions: 1}
		onPipes(t, b, func(t *testing.T, _ time.Time) {
			cfg := b.config()
			cfg.Producer.Batch.Async, cfg.Producer.Return = true, want
			p := b.batch(t, cfg)
			good, bad := &BatchMessage{Topic: "t"}, &BatchMessage{Topic: "t", Value: 5}
			require.NoError(t, p.Send(context.Background(), good, bad))
			require.NoError(t, p.Close(context.Background()))
			var got []*BatchMessage
			for m := range p.Results() {
				got = append(got, m)
			}
			var expected []*BatchMessage
			if want.Errors {
				expected = append(expected, bad)
			}
			if want.Successes {
				expected = append(expected, good)
			}
			require.Equal(t, expected, got, "%+v", want)
		})
	}
}

// Requests that hold one batch each go to the partitions in turn: none starves behind another.
func TestBatchPartitionsTakeTurns(t *testing.T) {
	b := &fakeBroker{partitions: 2}
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		cfg := b.config()
		cfg.Producer.Partitioner, cfg.Producer.Flush.MaxMessages = "manual", 1
		cfg.Producer.MaxMessageBytes, cfg.Producer.MaxRequestBytes = 200, 200
		p := b.batch(t, cfg)
		msgs := placed(8, 0, 1)
		for _, m := range msgs {
			m.Value = fmt.Sprintf("%0100d", 0) // two do not fit
		}
		require.NoError(t, p.Send(context.Background(), msgs...))
		var order []int32
		for _, a := range b.batches() {
			order = append(order, a.partition)
		}
		require.Len(t, order, 8)
		require.ElementsMatch(t, []int32{0, 1}, order[:2], "%v", order)
		require.ElementsMatch(t, []int32{0, 1}, order[2:4], "%v", order)
	})
}

// When the first message of a partition runs out of time in a backoff, the next one does not wait for
// the rest of it, nor for a refresh that nobody asked for.
func TestBatchABackoffEndsWithItsMessage(t *testing.T) {
	b := &fakeBroker{partitions: 1, answer: func(n int, _ *kmsg.ProduceRequest) ruling { return ruling{code: []int16{19, 0}[min(n, 1)]} }}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Retry.Backoff, cfg.Producer.Retry.MaxBackoff, cfg.Producer.DeliveryTimeout = 12*time.Second, 12*time.Second, 10*time.Second
		cfg.Producer.Batch.Async, cfg.Producer.Flush.MaxMessages, cfg.Metadata.RefreshFrequency = true, 1, -1
		p := b.batch(t, cfg)
		first, second := &BatchMessage{Topic: "t", Value: "1"}, &BatchMessage{Topic: "t", Value: "2"}
		require.NoError(t, p.Send(context.Background(), first))
		time.Sleep(5 * time.Second)
		asked := b.came(3)
		require.NoError(t, p.Send(context.Background(), second))
		require.NoError(t, p.Flush(context.Background()))
		require.ErrorIs(t, first.Err, ErrDeliveryTimeout)
		require.NoError(t, second.Err)
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Equal(t, asked, b.came(3))
	})
}

// Topics: many that are not known are asked about together, those in use are refreshed with the rest,
// and one that has gone when its messages' turn comes fails them.
func TestBatchTopics(t *testing.T) {
	c := cluster(t, 1, 1)
	var names []string
	var msgs []*BatchMessage
	for i := range 20 {
		names = append(names, fmt.Sprintf("t%d", i))
		require.NoError(t, c.CreateTopic(names[i], 1, nil))
		msgs = append(msgs, &BatchMessage{Topic: names[i]})
	}
	cfg := quickConfig()
	cfg.Metadata.RefreshFrequency = -1
	p := batchProducer(t, c.Bootstrap(), cfg)
	before := c.Requests(keyMetadata)
	require.NoError(t, p.Send(within(t), msgs...))
	require.EqualValues(t, 1, c.Requests(keyMetadata)-before, "one request for all")

	full := quickConfig()
	full.Metadata.Full = true
	shared, err := NewClient(c.Bootstrap(), full)
	require.NoError(t, err)
	defer shared.Close()
	p, err = NewBatchProducerFromClient(shared)
	require.NoError(t, err)
	require.NoError(t, p.Send(within(t), msgs[0]))
	require.Contains(t, shared.used, "t0", "though it was known already")
	gone := &BatchMessage{Topic: "gone"}
	require.NoError(t, p.encode(gone))
	p.accounts.accepted(1)
	call := p.call(within(t))
	call.admit([]*BatchMessage{gone})
	require.ErrorIs(t, gone.Err, ErrTopicUnknown)
	require.Empty(t, call.open)
	require.NoError(t, p.Close(within(t)))
}

// Messages on both sides of a Flush's beginning may have their outcome together: each is taken out of
// its own books.
func TestBatchOutcomesOnBothSidesOfAFlush(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		p := b.batch(t, b.config())
		msgs := numberedBatch(3, 1)
		var err error
		msgs[0].epoch, err = p.accept(1)
		require.NoError(t, err)
		flushed := make(chan error, 1)
		go func() { flushed <- p.Flush(context.Background()) }() // ends with the first; received below
		synctest.Wait()
		for _, m := range msgs[1:] {
			m.epoch, err = p.accept(1)
			require.NoError(t, err)
		}
		require.NotEqual(t, msgs[0].epoch, msgs[1].epoch)
		p.settle(msgs[:2], Delivery{Err: wire.ErrInvalidRecord})
		require.NoError(t, <-flushed)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.Error(t, p.Flush(ctx), "the third is open")
		p.settle(msgs[2:], Delivery{})
		require.NoError(t, p.Flush(context.Background()))
	})
}
