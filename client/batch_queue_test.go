package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/workloads/broker"
)

// batchTally counts outcomes, and those that come twice.
type batchTally struct {
	mu    sync.Mutex
	times map[*BatchMessage]int
	bad   int
	runs  int
	wrong []string
}

func (o *batchTally) DeliveredBatch(run []*BatchMessage, d Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.times == nil {
		o.times = map[*BatchMessage]int{}
	}
	o.runs++
	for _, m := range run {
		o.times[m]++
		if !errors.Is(m.Err, d.Err) {
			o.wrong = append(o.wrong, fmt.Sprintf("the message says %v, the delivery %v", m.Err, d.Err))
		}
		if d.Err != nil {
			o.bad++
		} else if d.Written.IsZero() || d.Acked.Before(d.Written) {
			o.wrong = append(o.wrong, fmt.Sprintf("written %v, acknowledged %v", d.Written, d.Acked))
		}
	}
}

// requireAll checks that every message has had one outcome.
func (o *batchTally) requireAll(t require.TestingT, msgs []*BatchMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(t, o.wrong)
	for _, m := range msgs {
		require.Equal(t, 1, o.times[m], "outcomes of a message")
	}
	require.Len(t, o.times, len(msgs))
}

func TestBatchResultsByCallback(t *testing.T) {
	for _, async := range []bool{false, true} {
		t.Run(fmt.Sprintf("async=%v", async), func(t *testing.T) {
			c := cluster(t, 2, 4)
			cfg := quickConfig()
			var out batchTally
			cfg.Producer.Batch.OnResults, cfg.Producer.Batch.Async = &out, async
			p := batchProducer(t, c.Bootstrap(), cfg)
			msgs := numberedBatch(1000, 9)
			msgs[7].Value = 5 // no encoder
			err := p.Send(within(t), msgs...)
			require.Equal(t, async, err == nil)
			require.NoError(t, p.Flush(within(t)))
			out.requireAll(t, msgs)
			require.Equal(t, 1, out.bad)
			require.Less(t, out.runs, 50, "told in runs")
		})
	}
}

func TestBatchResultsByChannel(t *testing.T) {
	c := cluster(t, 2, 4)
	cfg := quickConfig()
	cfg.Producer.Batch.Async, cfg.Producer.Return = true, ReturnConfig{Successes: true, Errors: true}
	p := batchProducer(t, c.Bootstrap(), cfg)
	msgs := numberedBatch(1000, 9)
	msgs[500].Topic = "missing"
	got := map[*BatchMessage]bool{}
	var reading sync.WaitGroup
	reading.Go(func() { // ends when Close closes the channel
		for m := range p.Results() {
			got[m] = true
		}
	})
	for _, m := range msgs {
		require.NoError(t, p.Send(within(t), m))
	}
	require.NoError(t, p.Close(within(t)))
	reading.Wait()
	require.Len(t, got, len(msgs))
	require.ErrorIs(t, msgs[500].Err, ErrTopicUnknown)
	require.Equal(t, int32(-1), msgs[500].Partition)
}

// Results that are asked for and not read hold up what comes after, within the bounds, and Close
// all the same ends in time.
func TestBatchResultsThatNobodyReads(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.ChannelBufferSize, cfg.Producer.Buffer.Messages = 2, 10
	cfg.Producer.Batch.Async, cfg.Producer.Return.Successes = true, true
	p := batchProducer(t, c.Bootstrap(), cfg)
	ctx, cancel := context.WithTimeout(within(t), 100*time.Millisecond)
	defer cancel()
	msgs := numberedBatch(100, 1)
	sent := 0
	for _, m := range msgs {
		if p.Send(ctx, m) != nil {
			break
		}
		sent++
	}
	require.Less(t, sent, 30, "nothing grows")
	require.GreaterOrEqual(t, sent, 10)
	closing, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := p.Close(closing)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "results not read")
	require.Less(t, time.Since(start), 5*time.Second)
	_, open := <-p.Results()
	require.True(t, open, "what the channel holds can be read")
}

// The queue's triggers, each by itself: nothing leaves before one fires.
func TestBatchQueueTriggers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*FlushConfig)
		before int // messages that leave nothing
		more   int // messages that make it leave
	}{
		{"messages", func(f *FlushConfig) { f.Messages = 10 }, 9, 1},
		{"bytes", func(f *FlushConfig) { f.Bytes = 100 }, 9, 1}, // ten bytes each
		{"time", func(f *FlushConfig) { f.Frequency = 300 * time.Millisecond }, 9, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(t, 1, 1)
			cfg := quickConfig()
			cfg.Producer.Batch.Async = true
			tc.change(&cfg.Producer.Flush)
			p := batchProducer(t, c.Bootstrap(), cfg)
			start := time.Now()
			send := func(n int) {
				for range n {
					require.NoError(t, p.Send(within(t), &BatchMessage{Topic: "t", Value: "0123456789"}))
				}
			}
			send(tc.before)
			if f := cfg.Producer.Flush.Frequency; f > 0 {
				require.NoError(t, c.AwaitRequests(within(t), keyProduce, 1))
				require.GreaterOrEqual(t, time.Since(start), f)
			} else {
				require.Zero(t, c.Requests(keyProduce))
				send(tc.more)
				require.NoError(t, c.AwaitRequests(within(t), keyProduce, 1))
			}
			require.NoError(t, p.Flush(within(t)))
			require.EqualValues(t, 1, c.Requests(keyProduce), "all of it in one request")
			send(3)
			require.NoError(t, p.Flush(within(t)))
			_, vs := logOf(t, c, 0)
			require.Len(t, vs, tc.before+tc.more+3, "Flush waits for no trigger")
		})
	}
}

// The bound of the queue: Send takes what fits, waits, and says what it did not take.
func TestBatchQueueIsBounded(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*BufferConfig)
		most   int
	}{
		{"in messages", func(b *BufferConfig) { b.Messages = 50 }, 50},
		{"in bytes", func(b *BufferConfig) { b.Bytes = 500 }, 50}, // ten bytes each
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(t, 1, 1)
			cfg := quickConfig()
			var out batchTally
			cfg.Producer.Batch.Async, cfg.Producer.Batch.OnResults = true, &out
			tc.change(&cfg.Producer.Buffer)
			p := batchProducer(t, c.Bootstrap(), cfg)
			c.Stall(0)
			msgs := make([]*BatchMessage, 200)
			taken := 0
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			for i := range msgs {
				msgs[i] = &BatchMessage{Topic: "t", Value: fmt.Sprintf("%010d", i)}
			}
			for taken < len(msgs) {
				part := msgs[taken:min(taken+7, len(msgs))]
				err := p.Send(ctx, part...)
				taken += len(part)
				var bad *BatchError
				if errors.As(err, &bad) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.Equal(t, part[len(part)-len(bad.Failed):], bad.Failed, "the last ones")
					taken -= len(bad.Failed)
					break
				}
			}
			require.InDelta(t, tc.most, taken, 7)
			require.LessOrEqual(t, taken, tc.most)
			c.Resume()
			require.NoError(t, p.Flush(within(t)))
			out.requireAll(t, msgs[:taken])
			m := &BatchMessage{Topic: "t"}
			require.NoError(t, p.Send(within(t), m), "there is room again")
		})
	}
}

// A message that waited for room says until when.
func TestBatchQueueTellsOfWaiting(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.Batch.Async, cfg.Producer.Buffer.Messages = true, 1
	p := batchProducer(t, c.Bootstrap(), cfg)
	c.Stall(0)
	first, second := &BatchMessage{Topic: "t"}, &BatchMessage{Topic: "t"}
	require.NoError(t, p.Send(within(t), first))
	require.NoError(t, c.AwaitRequests(within(t), keyProduce, 1))
	begun := time.Now()
	done := make(chan error, 1)
	go func() { done <- p.Send(within(t), second) }() // ends when there is room; received below
	require.Eventually(t, func() bool { return p.queue.pressed.Load() == 1 }, patience, time.Millisecond)
	c.Resume()
	require.NoError(t, <-done)
	require.NoError(t, p.Flush(within(t)))
	require.Zero(t, first.Waited())
	require.True(t, second.Waited().After(begun))
}

// A partition that is tried again and again holds up no other one in the queue.
func TestBatchQueueGoesOnBesideAFailingPartition(t *testing.T) {
	c := cluster(t, 1, 2)
	cfg := quickConfig()
	cfg.Producer.Batch.Async, cfg.Producer.Partitioner = true, "manual"
	p := batchProducer(t, c.Bootstrap(), cfg)
	f := c.Fail(broker.Failure{Key: keyProduce, Code: 19, Count: -1, Partitions: []int32{1}})
	stuck := placed(3, 1)
	require.NoError(t, p.Send(within(t), stuck...))
	require.NoError(t, f.Wait(within(t), 3))
	require.NoError(t, p.Send(within(t), placed(5, 0)...))
	require.Eventually(t, func() bool { _, end, err := c.Offsets("t", 0); return err == nil && end == 5 }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return p.Stats().Open == 3 }, patience, time.Millisecond, "only what is stuck is open")
	require.NoError(t, p.Send(within(t), placed(3, 1)...), "and what comes for it waits behind")
	f.Remove()
	require.NoError(t, p.Flush(within(t)))
	_, vs := logOf(t, c, 1)
	require.Equal(t, []string{"0", "1", "2", "0", "1", "2"}, vs)
}

// Results = inputs, whatever happens: random calls, sizes, faults and ends.
func TestBatchEveryMessageHasOneOutcome(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := cluster(t, 2, 4)
		defer c.Close()
		cfg := quickConfig()
		var out batchTally
		async := rapid.Bool().Draw(r, "async")
		cfg.Producer.Batch.OnResults, cfg.Producer.Batch.Async = &out, async
		cfg.Producer.Retry.Max = rapid.IntRange(0, 3).Draw(r, "retries")
		cfg.Producer.Buffer.Messages = rapid.IntRange(1, 60).Draw(r, "buffer")
		cfg.Producer.Flush.MaxMessages = rapid.IntRange(0, 10).Draw(r, "batch")
		cfg.Producer.MaxMessageBytes = 500
		p, err := NewBatchProducer(c.Bootstrap(), cfg)
		require.NoError(r, err)
		var accepted, refused []*BatchMessage
		steps := rapid.SliceOfN(rapid.IntRange(0, 7), 1, 12).Draw(r, "steps")
		for i, step := range steps {
			switch step {
			case 0:
				c.FailProduce([]int16{19, 6, 7, 10, 29}[rapid.IntRange(0, 4).Draw(r, "code")], rapid.IntRange(1, 5).Draw(r, "times"))
			case 1:
				c.CloseConnections()
			case 2:
				c.LoseAnswers(keyProduce, 1)
			case 3:
				require.NoError(r, c.MoveLeader("t", int32(i%4), int32(i%2)))
			default:
				msgs := numberedBatch(rapid.IntRange(1, 80).Draw(r, "messages"), 7)
				if step == 4 {
					msgs[0].Key, msgs[len(msgs)-1].Value = 5, make([]byte, 1000)
				}
				ctx, cancel := context.WithTimeout(within(t), time.Duration(rapid.IntRange(1, 200).Draw(r, "patience"))*time.Millisecond)
				err := p.Send(ctx, msgs...)
				cancel()
				var bad *BatchError
				if async && errors.As(err, &bad) {
					refused = append(refused, bad.Failed...)
					msgs = msgs[:len(msgs)-len(bad.Failed)]
				}
				accepted = append(accepted, msgs...)
			}
		}
		ctx, cancel := context.WithTimeout(within(t), time.Duration(rand.IntN(100))*time.Millisecond)
		defer cancel()
		_ = p.Close(ctx) // whether all was decided in time is not the question
		out.requireAll(r, accepted)
		for _, m := range refused {
			require.Zero(r, out.times[m], "what was not taken has no outcome")
			require.Error(r, m.Err)
		}
		acked := int64(0)
		for _, m := range accepted {
			if m.Err == nil {
				acked++
			}
		}
		total := int64(0)
		for i := range int32(4) {
			_, end, err := c.Offsets("t", i)
			require.NoError(r, err)
			total += end
		}
		require.GreaterOrEqual(r, total, acked, "what was acknowledged is in the log")
	})
}

func TestBatchHotPathAllocatesNothingPerMessage(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := quickConfig()
	type blob struct{ data []byte }
	cfg.Producer.Batch.Values = EncoderOf(func(_ string, v *blob) ([]byte, error) { return v.data, nil })
	p := batchProducer(t, c.Bootstrap(), cfg)
	msgs := make([]*BatchMessage, 1000)
	for i := range msgs {
		msgs[i] = &BatchMessage{Topic: "t", Value: &blob{[]byte(strconv.Itoa(i))}}
	}
	require.NoError(t, p.Send(within(t), msgs...))
	ctx := within(t)
	per := testing.AllocsPerRun(20, func() {
		if err := p.Send(ctx, msgs...); err != nil {
			t.Error(err)
		}
	})
	require.Less(t, per, 900.0, "allocations of a Send of 1000 messages, the broker's own among them")
}
