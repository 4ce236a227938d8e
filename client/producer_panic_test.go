package client

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// hooks are a user's functions, any of which may panic once.
type hooks struct {
	mu     sync.Mutex
	bad    string // the one that panics
	times  int
	called []string
}

func (h *hooks) call(name string) {
	h.mu.Lock()
	h.called = append(h.called, name)
	panics := name == h.bad && h.times > 0
	if panics {
		h.times--
	}
	h.mu.Unlock()
	if panics {
		panic("boom in " + name)
	}
}

// Partition is a Partitioner of this test's.
type hookedPartitioner struct{ h *hooks }

func (p hookedPartitioner) Partition(*ProducerMessage, int32) (int32, error) {
	p.h.call("Partition")
	return 0, nil
}

func (p hookedPartitioner) RequiresConsistency(*ProducerMessage) bool {
	p.h.call("RequiresConsistency")
	return true
}

func (p hookedPartitioner) Refreshed() { p.h.call("Refreshed") }

type hookedInterceptor struct {
	h    *hooks
	name string
}

func (i hookedInterceptor) OnSend(m *ProducerMessage) {
	i.h.call(i.name)
	m.Key = append(m.Key, i.name[len(i.name)-1])
}

// Every function that a user can give panics once. The panic is counted, becomes the error of the
// messages it hit and of no others, and the producer goes on.
func TestPanicsOfEachHookAreContained(t *testing.T) {
	for _, tc := range []struct {
		hook   string
		failed int // messages of the first run of two; the second run of two always succeeds
	}{
		{"interceptor 1", 0},
		{"interceptor 2", 0},
		{"NewPartitioner", 2},
		{"Partition", 1},
		{"RequiresConsistency", 1},
		{"Refreshed", 2},
		{"OnRequest", 0},
		{"callback", 0},
		{"Deliveries", 0},
		{"BackoffFunc", 0},
		{"Dialer", 0}, // the connection is tried again
	} {
		t.Run(tc.hook, func(t *testing.T) {
			b := &fakeBroker{partitions: 1}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				h := &hooks{}
				cfg := b.config()
				cfg.Producer.Interceptors = []ProducerInterceptor{hookedInterceptor{h, "interceptor 1"}, hookedInterceptor{h, "interceptor 2"}}
				cfg.Producer.NewPartitioner = func(string) Partitioner { h.call("NewPartitioner"); return hookedPartitioner{h} }
				cfg.Producer.OnRequest = func(RequestInfo) { h.call("OnRequest") }
				cfg.Producer.Retry.BackoffFunc = func(int) time.Duration { h.call("BackoffFunc"); return time.Millisecond }
				cfg.Net.Dialer = func(context.Context, string, string) (net.Conn, error) { h.call("Dialer"); return b.server.Pipe() }
				p := b.producer(t, cfg)
				if tc.hook == "Refreshed" {
					require.NoError(t, p.Produce(context.Background(), to(0, "0"), nil)) // made known first
					require.NoError(t, p.Flush(context.Background()))
					require.NoError(t, p.client.RefreshMetadata(context.Background(), "t"))
				}
				h.bad, h.times = tc.hook, 1
				switch tc.hook {
				case "BackoffFunc":
					b.set(func() {
						b.answer = func(n int, _ *kmsg.ProduceRequest) ruling {
							if n == 0 {
								return ruling{code: wire.ErrNotEnoughReplicas.Code}
							}
							return ruling{}
						}
					})
				case "Dialer":
					p.client.Brokers()[0].conn.Close(nil)
				}
				ok, bad := 0, 0
				errs := sendTwoRuns(t, p, h)
				for _, err := range errs[:2] {
					if err == nil {
						ok++
						continue
					}
					bad++
					var panicked *PanicError
					require.ErrorAs(t, err, &panicked)
					require.Contains(t, panicked.Value, "boom in "+tc.hook)
				}
				require.Equal(t, tc.failed, bad, "failed: %v", errs)
				require.NoError(t, errs[2])
				require.NoError(t, errs[3])
				require.EqualValues(t, 1, p.Stats().Panics)
				require.Zero(t, h.times, "it did panic")
				require.NoError(t, closeWithin(t, p, time.Minute))
			})
		})
	}
}

// A panic in the source of tokens is an error of the connection, without what it panicked with being
// taken for a refusal of the broker's.
func TestAPanicInTheSourceOfTokens(t *testing.T) {
	var panics atomic.Int64
	s := SASLConfig{Token: func(context.Context) (string, error) { panic("boom") }}
	_, err := s.token(context.Background(), &panics)
	var panicked *PanicError
	require.ErrorAs(t, err, &panicked)
	require.EqualValues(t, 1, panics.Load())
}

// sendTwoRuns sends two messages by ProduceRun, and two by Produce, and returns their outcomes;
// with the hook "callback", the other way round.
func sendTwoRuns(t *testing.T, p *AsyncProducer, h *hooks) (errs []error) {
	errs = make([]error, 4)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run := func(at int) {
		msgs := []*ProducerMessage{{Topic: "t", Metadata: at}, {Topic: "t", Metadata: at + 1}}
		_, err := p.ProduceRun(ctx, msgs, deliveriesFunc(func(batch []*ProducerMessage, d Delivery) {
			for _, m := range batch {
				errs[m.Metadata.(int)] = d.Err
			}
			h.call("Deliveries")
		}))
		require.NoError(t, err)
		require.NoError(t, p.Flush(ctx))
	}
	single := func(at int) {
		for i := range 2 {
			require.NoError(t, p.Produce(ctx, &ProducerMessage{Topic: "t"}, func(_ *ProducerMessage, err error) {
				errs[at+i] = err
				h.call("callback")
			}))
		}
		require.NoError(t, p.Flush(ctx))
	}
	if h.bad == "callback" {
		single(0)
		run(2)
	} else {
		run(0)
		single(2)
	}
	return errs
}

type deliveriesFunc func([]*ProducerMessage, Delivery)

func (f deliveriesFunc) Delivered(batch []*ProducerMessage, d Delivery) { f(batch, d) }

// Interceptors see every message once, in their order, before the partitioner does, and what they
// change is what is sent.
func TestInterceptorsSeeEveryMessageInOrder(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		h := &hooks{bad: "interceptor 2", times: 1}
		cfg := b.config()
		cfg.Producer.Interceptors = []ProducerInterceptor{
			hookedInterceptor{h, "interceptor 1"}, hookedInterceptor{h, "interceptor 2"}, hookedInterceptor{h, "interceptor 3"},
		}
		cfg.Producer.NewPartitioner = func(string) Partitioner { return hookedPartitioner{h} }
		p := b.producer(t, cfg)
		msgs := []*ProducerMessage{to(0, "a"), to(0, "b"), to(0, "c")}
		_, err := p.ProduceRun(context.Background(), msgs, nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(context.Background()))
		require.Equal(t, "13", string(msgs[0].Key), "the second panicked, the third was called all the same")
		require.Equal(t, "123", string(msgs[1].Key))
		require.Equal(t, "123", string(msgs[2].Key))
		want := slices.Repeat([]string{"interceptor 1", "interceptor 2", "interceptor 3"}, 3)
		require.Equal(t, want, h.called[:9])
		require.NotContains(t, h.called[9:], "interceptor 1")
		require.EqualValues(t, 1, p.Stats().Panics)
	})
}

// unreadable is a string that cannot be read: what a message may look like to the encoder when
// another goroutine changes it meanwhile, against the rules.
func unreadable(n int) string {
	header := struct {
		data unsafe.Pointer
		len  int
	}{nil, n}
	return *(*string)(unsafe.Pointer(&header))
}

// A message that cannot be encoded fails alone: its neighbours' batch is whole.
func TestAPanicWhileEncodingFailsOneMessage(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		p := b.producer(t, b.config())
		out := newHeard(start)
		bad := to(0, "bad")
		bad.Headers = []Header{{Key: unreadable(10)}}
		_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "known")}, out)
		require.NoError(t, err)
		require.NoError(t, p.Flush(context.Background()))
		for _, alone := range []bool{false, true} { // the first of a batch, and one in the middle
			var run []*ProducerMessage
			if !alone {
				run = append(run, to(0, "before"))
			}
			run = append(run, bad, to(0, "after"))
			out = newHeard(start)
			_, err := p.ProduceRun(context.Background(), run, out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(context.Background()))
			_, err = out.of("bad")
			var panicked *PanicError
			require.ErrorAs(t, err, &panicked)
			ok, failed := out.count()
			require.Equal(t, []int{len(run) - 1, 1}, []int{ok, failed})
		}
		require.Equal(t, []string{"known", "before", "after", "after"}, b.log[0])
	})
}
