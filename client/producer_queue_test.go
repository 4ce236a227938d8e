package client

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What a producer holds beside its two queues in these tests: a batch of one message in flight (the
// first left alone), and two full batches.
const (
	perBatch   = 10
	heldBeside = 1 + 2*perBatch
)

// queueConfig has one request in flight and batches of ten.
func queueConfig(b *fakeBroker, size int) *Config {
	cfg := b.config()
	cfg.ChannelBufferSize = size
	cfg.Net.MaxOpenRequests, cfg.Producer.Flush.MaxMessages = 1, perBatch
	return cfg
}

// The bound of a stage of size 0 is the message it handles.
func bound(size int) int { return max(size, 1) }

// ChannelBufferSize is how many messages the topic producer's queue and the partition producer's
// hold: what is accepted while the broker is silent, what a burst may be without anybody waiting,
// and how much memory the queues take.
func TestChannelBufferSizeBoundsTheQueues(t *testing.T) {
	for _, size := range []int{0, 1, 16, 256, 4096} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := &fakeBroker{partitions: 1, answer: func(int, *kmsg.ProduceRequest) ruling { return ruling{wait: make(chan struct{})} }}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				p := b.producer(t, queueConfig(b, size))
				want := heldBeside + 2*bound(size)
				var last *ProducerMessage
				accepted := 0
				for {
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					m := to(0, "x")
					err := p.Produce(ctx, m, nil)
					cancel()
					if err != nil {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						break
					}
					synctest.Wait()
					last = m
					accepted++
				}
				require.Equal(t, want, accepted, "messages accepted while the broker is silent")
				require.Equal(t, time.Second, time.Since(start), "none but the last had to wait")
				require.True(t, last.Waited().IsZero())
				require.EqualValues(t, want, p.Stats().Open)
				for _, s := range []*stage{&p.topics["t"].stage, &p.parts[0].stage} {
					s.mu.Lock()
					require.LessOrEqual(t, cap(s.queue)+cap(s.spare), 4*bound(size)+16, "places in the queue")
					s.mu.Unlock()
				}
			})
		})
	}
}

// Under back-pressure a message is as old, when it is acknowledged, as the queues before it take
// (Little's law): here a message takes a millisecond, ten to a request.
func TestChannelBufferSizeIsLatencyUnderBackPressure(t *testing.T) {
	for _, size := range []int{0, 16, 256} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := &fakeBroker{partitions: 1, answer: func(int, *kmsg.ProduceRequest) ruling { return ruling{delay: perBatch * time.Millisecond} }}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				p := b.producer(t, queueConfig(b, size))
				var latest atomic.Int64
				for range 3*(heldBeside+2*size) + 100 {
					m := to(0, "x")
					m.Metadata = time.Now() // of the wait for room too
					require.NoError(t, p.Produce(context.Background(), m, func(m *ProducerMessage, err error) {
						latest.Store(int64(time.Since(m.Metadata.(time.Time))))
					}))
				}
				require.NoError(t, p.Flush(context.Background()))
				depth := time.Duration(heldBeside+perBatch+2*bound(size)) * time.Millisecond
				require.InDelta(t, depth.Seconds(), time.Duration(latest.Load()).Seconds(), 0.25*depth.Seconds()+0.012)
			})
		})
	}
}

// P22: one goroutine that both writes Input and reads Successes blocks at the bound, as documented,
// whatever ChannelBufferSize is; nothing grows; and closing ends it in time.
func TestP22InputBlocksAtTheBoundWhenResultsAreNotRead(t *testing.T) {
	for _, size := range []int{0, 1, 256} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := &fakeBroker{partitions: 1}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				cfg := b.config()
				cfg.ChannelBufferSize = size
				cfg.Producer.Buffer.Messages = 20
				cfg.Producer.Return.Successes = true
				p := b.producer(t, cfg)
				sent := 0
				for blocked := false; !blocked; {
					select {
					case p.Input() <- to(0, fmt.Sprint(sent)):
						sent++
						synctest.Wait()
					case <-time.After(time.Minute):
						blocked = true
					}
				}
				// Those with an outcome that nobody reads, a run in the dispatcher's hand, and what
				// the Input channel holds. What was acknowledged gives its place back when it is read,
				// or has reached the channel.
				require.GreaterOrEqual(t, sent, 20)
				require.LessOrEqual(t, sent, 20+1+chunk+2*size)
				read := 0
				for range 10 { // each makes room
					<-p.Successes()
					read++
				}
				synctest.Wait()
				select {
				case p.Input() <- to(0, "more"):
					sent++
				default:
					require.Zero(t, size, "there is room again")
				}
				before := time.Now()
				p.AsyncClose(context.Background())
				for range p.Successes() {
					read++
				}
				require.Equal(t, sent, read, "results = inputs")
				require.NoError(t, p.Close(context.Background()))
				require.Less(t, time.Since(before), time.Second)
			})
		})
	}
}

// The same, but nobody ever reads: Close discards what is not read.
func TestP22CloseEndsWhenNobodyReads(t *testing.T) {
	for _, size := range []int{0, 1, 256} {
		b := &fakeBroker{partitions: 1}
		onPipes(t, b, func(t *testing.T, start time.Time) {
			cfg := b.config()
			cfg.ChannelBufferSize, cfg.Producer.Buffer.Messages, cfg.Producer.Return.Successes = size, 5, true
			p := b.producer(t, cfg)
			for blocked := false; !blocked; {
				select {
				case p.Input() <- to(0, "x"):
				case <-time.After(time.Second):
					blocked = true
				}
			}
			before := time.Now()
			require.NoError(t, closeWithin(t, p, time.Minute))
			require.Less(t, time.Since(before), time.Second)
			require.Zero(t, p.Stats().Open)
		})
	}
}

// Return says which outcomes the channels deliver; what is not asked for holds nothing.
func TestReturnSuccessesAndErrors(t *testing.T) {
	for _, successes := range []bool{false, true} {
		for _, errs := range []bool{false, true} {
			t.Run(fmt.Sprintf("successes %v, errors %v", successes, errs), func(t *testing.T) {
				b := &fakeBroker{partitions: 1, answer: func(n int, _ *kmsg.ProduceRequest) ruling {
					return ruling{code: int16(87 * (n % 2))}
				}}
				onPipes(t, b, func(t *testing.T, start time.Time) {
					cfg := b.config()
					cfg.Producer.Return = ReturnConfig{Successes: successes, Errors: errs}
					cfg.Producer.Buffer.Messages, cfg.Producer.Flush.MaxMessages, cfg.Net.MaxOpenRequests = 200, 1, 1
					p := b.producer(t, cfg)
					for i := range 100 {
						p.Input() <- to(0, fmt.Sprint(i))
						if i == 50 {
							p.Input() <- nil // a mistake is an error like others
						}
					}
					p.AsyncClose(context.Background())
					ok, bad := 0, 0
					done := make(chan struct{})
					go func() { // ends with the channel
						defer close(done)
						for e := range p.Errors() {
							require.NotEmpty(t, e.Error())
							bad++
						}
					}()
					for m := range p.Successes() {
						require.GreaterOrEqual(t, m.Offset, int64(0))
						ok++
					}
					<-done
					want := map[bool]int{true: 1}
					require.Equal(t, 50*want[successes], ok)
					require.Equal(t, 51*want[errs], bad)
					require.NoError(t, p.Close(context.Background()))
					require.Zero(t, p.Stats().Open)
				})
			})
		}
	}
}

func TestSyncProducerTellsOfEachMessage(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.MaxMessageBytes = 200
		async := b.producer(t, cfg)
		p := &SyncProducer{async}
		large := to(0, string(make([]byte, 300)))
		other := &ProducerMessage{Topic: "unknown", Value: []byte("u")}
		msgs := []*ProducerMessage{to(0, "a"), large, to(0, "b"), other, to(0, "c")}
		err := p.SendMessages(msgs)
		var failed MessageErrors
		require.ErrorAs(t, err, &failed)
		require.Len(t, failed, 2)
		byMessage := map[*ProducerMessage]error{}
		for _, f := range failed {
			byMessage[f.Msg] = f.Err
		}
		require.ErrorIs(t, byMessage[other], ErrTopicUnknown)
		var tooLarge *MessageTooLargeError
		require.ErrorAs(t, byMessage[large], &tooLarge)
		require.Equal(t, []string{"a", "b", "c"}, b.log[0])
		require.Equal(t, []int64{0, 1, 2}, []int64{msgs[0].Offset, msgs[2].Offset, msgs[4].Offset})
		require.NoError(t, p.SendMessages(nil))

		never := make(chan struct{})
		b.set(func() { b.answer = func(int, *kmsg.ProduceRequest) ruling { return ruling{wait: never} } })
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		before := time.Now()
		_, _, err = p.SendMessageContext(ctx, to(0, "d"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(before))
		require.ErrorIs(t, p.SendMessagesContext(ctx, []*ProducerMessage{to(0, "e")}), context.DeadlineExceeded)
		close(never)
	})
}
