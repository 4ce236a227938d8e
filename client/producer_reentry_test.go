package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// A callback that produces more than there is room for is told so at once: it would wait for
// itself. What it could hand over arrives.
func TestP24ACallbackNeverWaitsForRoom(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Config)
	}{
		{"the buffer is full", func(c *Config) { c.Producer.Buffer.Messages = 4 }},
		{"the buffer is full in bytes", func(c *Config) { c.Producer.Buffer.Bytes = 4 }},
		{"the queues are full", func(c *Config) {
			c.ChannelBufferSize, c.Producer.Flush.MaxMessages, c.Net.MaxOpenRequests = 1, 1, 1
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBroker{partitions: 1}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				cfg := b.config()
				tc.change(cfg)
				p := b.producer(t, cfg)
				var mu sync.Mutex
				accepted, refused, outcomes := 4, 0, 0
				var again func(*ProducerMessage, error)
				again = func(_ *ProducerMessage, err error) {
					mu.Lock()
					defer mu.Unlock()
					outcomes++
					for range 20 {
						if accepted > 200 {
							return
						}
						err := p.Produce(context.Background(), to(0, "x"), again)
						switch {
						case err == nil:
							accepted++
						case errors.Is(err, ErrBufferFull):
							refused++
						default:
							t.Error(err)
						}
					}
				}
				for range 4 {
					require.NoError(t, p.Produce(context.Background(), to(0, "x"), again))
				}
				synctest.Wait()
				require.NoError(t, p.Flush(context.Background()))
				require.Zero(t, time.Since(start), "nobody waited")
				require.Positive(t, refused)
				require.Equal(t, accepted, outcomes)
				require.Len(t, b.log[0], accepted)
			})
		})
	}
}

// What waits for outcomes says at once, inside a function that the producer calls, that it would
// wait for itself; and a goroutine that such a function starts is free to wait.
func TestP24NothingWaitsInsideACallback(t *testing.T) {
	waits := map[string]func(p *AsyncProducer, b *BatchProducer) error{
		"Flush": func(p *AsyncProducer, _ *BatchProducer) error { return p.Flush(context.Background()) },
		"Close": func(p *AsyncProducer, _ *BatchProducer) error { return p.Close(context.Background()) },
		"SendMessage": func(p *AsyncProducer, _ *BatchProducer) error {
			_, _, err := (&SyncProducer{p}).SendMessage(to(0, "y"))
			return err
		},
		"SendMessages": func(p *AsyncProducer, _ *BatchProducer) error {
			return (&SyncProducer{p}).SendMessages([]*ProducerMessage{to(0, "y"), to(0, "z")})
		},
		"Send of a batch producer that shares the client": func(_ *AsyncProducer, b *BatchProducer) error {
			return b.Send(context.Background(), &BatchMessage{Topic: "t", Value: "y"})
		},
	}
	for name, wait := range waits {
		for _, hook := range []string{"callback", "Deliveries", "OnRequest", "Partitioner", "Refreshed", "BackoffFunc"} {
			t.Run(name+" in "+hook, func(t *testing.T) {
				b := &fakeBroker{partitions: 1}
				onPipes(t, b, func(t *testing.T, start time.Time) {
					var p *AsyncProducer
					var batch *BatchProducer
					var got error
					var once sync.Once
					call := func() { once.Do(func() { got = wait(p, batch) }) }
					cfg := b.config()
					hookProducer(b, cfg, hook, call)
					p = b.producer(t, cfg)
					var err error
					batch, err = NewBatchProducerFromClient(p.client)
					require.NoError(t, err)
					defer func() { require.NoError(t, batch.Close(context.Background())) }()
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					if hook == "Refreshed" {
						require.NoError(t, sendOne(t, p, to(0, "w")))
						require.NoError(t, p.client.RefreshMetadata(ctx, "t"))
					}
					done := make(chan struct{})
					if hook == "callback" {
						require.NoError(t, p.Produce(ctx, to(0, "x"), func(*ProducerMessage, error) { call(); close(done) }))
					} else {
						_, err := p.ProduceRun(ctx, []*ProducerMessage{to(0, "x")}, deliveriesFunc(func([]*ProducerMessage, Delivery) {
							if hook == "Deliveries" {
								call()
							}
							close(done)
						}))
						require.NoError(t, err)
					}
					select {
					case <-done:
					case <-ctx.Done():
						t.Fatal("it waited")
					}
					require.ErrorIs(t, got, ErrInCallback)
					require.NoError(t, closeWithin(t, p, time.Minute))
				})
			})
		}
	}
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		p := b.producer(t, b.config())
		flushed := make(chan error)
		require.NoError(t, p.Produce(context.Background(), to(0, "x"), func(*ProducerMessage, error) {
			go func() { flushed <- p.Flush(context.Background()) }() // ends when it is read below
		}))
		require.NoError(t, <-flushed)
	})
}

// hookProducer has one of a producer's functions call do; b makes the occasion.
func hookProducer(b *fakeBroker, cfg *Config, hook string, do func()) {
	switch hook {
	case "OnRequest":
		cfg.Producer.OnRequest = func(RequestInfo) { do() }
	case "Partitioner":
		cfg.Producer.NewPartitioner = func(string) Partitioner {
			return partitionerFunc(func() int32 { do(); return 0 })
		}
	case "Refreshed":
		cfg.Producer.NewPartitioner = func(string) Partitioner {
			return refreshable{partitionerFunc(func() int32 { return 0 }), do}
		}
	case "BackoffFunc":
		cfg.Producer.Retry.BackoffFunc = func(int) time.Duration { do(); return 0 }
		b.answer = func(n int, _ *kmsg.ProduceRequest) ruling {
			if n == 0 {
				return ruling{code: wire.ErrNotEnoughReplicas.Code}
			}
			return ruling{}
		}
	}
}

// refreshable is a partitioner that wants to know of refreshes.
type refreshable struct {
	partitionerFunc
	refreshed func()
}

func (r refreshable) Refreshed() { r.refreshed() }

// No lock is held while a user's function runs: it may call whatever does not wait.
func TestP24NoLockIsHeldInAUsersFunction(t *testing.T) {
	b := &fakeBroker{partitions: 2}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		var p *AsyncProducer
		busy := 0
		poke := func() {
			if busy > 50 || p == nil {
				return
			}
			busy++
			_ = p.Stats()
			_ = p.Produce(context.Background(), to(1, fmt.Sprint("poke", busy)), nil)
			_, _ = p.client.WritablePartitions(context.Background(), "t")
		}
		cfg := b.config()
		cfg.Producer.OnRequest = func(RequestInfo) { poke() }
		cfg.Producer.Interceptors = []ProducerInterceptor{interceptorFunc(poke)}
		cfg.Producer.NewPartitioner = func(string) Partitioner {
			poke()
			return partitionerFunc(func() int32 { poke(); return 0 })
		}
		cfg.Producer.Retry.BackoffFunc = func(int) time.Duration { poke(); return 0 }
		b.answer = func(n int, _ *kmsg.ProduceRequest) ruling {
			if n == 0 {
				return ruling{code: 19}
			}
			return ruling{}
		}
		p = b.producer(t, cfg)
		require.NoError(t, p.Produce(context.Background(), to(0, "x"), func(*ProducerMessage, error) { poke() }))
		require.NoError(t, p.Flush(context.Background()))
		require.Positive(t, busy)
		require.NoError(t, closeWithin(t, p, time.Minute))
	})
}

type interceptorFunc func()

func (f interceptorFunc) OnSend(*ProducerMessage) { f() }
