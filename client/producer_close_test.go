package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// Close ends within its context, whatever the producer is at, and every message has its outcome
// then. P20 and P21 are among the states.
func TestCloseIsBoundedInEveryState(t *testing.T) {
	const limit = time.Second
	answer := func(r ruling) func(*fakeBroker) {
		return func(b *fakeBroker) { b.answer = func(int, *kmsg.ProduceRequest) ruling { return r } }
	}
	silent := func(b *fakeBroker) {
		b.answer = func(int, *kmsg.ProduceRequest) ruling { return ruling{wait: make(chan struct{})} }
	}
	for _, tc := range []struct {
		name   string
		broker func(*fakeBroker)
		config func(*Config)
		n      int // messages
		takes  time.Duration
		err    bool
		bad    int // of them fail
	}{
		{name: "never used"},
		{name: "idle after use", n: 1},
		{name: "waiting for a trigger: the rest is sent", n: 3, config: func(c *Config) { c.Producer.Flush.Frequency = time.Hour }},
		{name: "connecting", n: 3, config: func(c *Config) { secondDial(c, func(ctx context.Context) { <-ctx.Done() }) }, takes: limit, err: true, bad: 3},
		{name: "in a dialler that does not obey its context for a while", n: 3, config: func(c *Config) {
			secondDial(c, func(context.Context) { time.Sleep(limit + time.Second) })
		}, takes: limit + time.Second, err: true, bad: 3},
		{name: "P20: the leader is unknown", n: 3, broker: func(b *fakeBroker) { b.leaderless = map[int32]bool{0: true} }, takes: limit, err: true, bad: 3},
		{name: "the topic is looked up", n: 3, broker: func(b *fakeBroker) { b.noTopic = true },
			config: func(c *Config) { c.Metadata.Retry.Backoff, c.Metadata.Retry.MaxBackoff = time.Hour, time.Hour }, takes: limit, err: true, bad: 3},
		{name: "in flight, no answer", n: 3, broker: silent, takes: limit, err: true, bad: 3},
		{name: "in flight, and the next request cannot be written", n: 40, broker: silent,
			config: func(c *Config) { c.Producer.Flush.MaxMessages = 1 }, takes: limit, err: true, bad: 40},
		{name: "in flight, the answer comes in time", n: 1, broker: answer(ruling{delay: limit / 2}), takes: limit / 2},
		{name: "P20: retrying", n: 3, broker: answer(ruling{code: 19}), takes: limit, err: true, bad: 3},
		{name: "in a backoff", n: 3, broker: answer(ruling{code: 19}),
			config: func(c *Config) { c.Producer.Retry.Backoff, c.Producer.Retry.MaxBackoff = time.Hour, time.Hour }, takes: limit, err: true, bad: 3},
		{name: "throttled", n: 3, broker: answer(ruling{throttle: time.Minute}),
			config: func(c *Config) { c.Producer.Flush.MaxMessages, c.Net.MaxOpenRequests = 1, 1 }, takes: limit, err: true, bad: 2},
		{name: "the queues are full", n: 60, broker: silent, config: func(c *Config) {
			c.ChannelBufferSize, c.Producer.Flush.MaxMessages, c.Net.MaxOpenRequests = 20, 5, 1
		}, takes: limit, err: true, bad: 60},
		{name: "connections are lost all the time", n: 3, broker: answer(ruling{hangUp: true}), takes: limit, err: true, bad: 3},
		{name: "without acks, throttling or not", n: 3, config: func(c *Config) { c.Producer.RequiredAcks = AcksNone }},
		{name: "P21: failed for good", n: 3, broker: answer(ruling{code: 87}), bad: 3},
	} {
		for _, form := range []string{"run", "channels"} {
			t.Run(tc.name+", "+form, func(t *testing.T) {
				b := &fakeBroker{partitions: 1}
				if tc.broker != nil {
					tc.broker(b)
				}
				onPipes(t, b, func(t *testing.T, start time.Time) {
					cfg := b.config()
					cfg.Producer.Return = ReturnConfig{Successes: true, Errors: true}
					if tc.config != nil {
						tc.config(cfg)
					}
					p := b.producer(t, cfg)
					out := newHeard(start)
					read := func() {}
					if form == "channels" {
						read = readChannels(p, out)
					}
					for i := range tc.n {
						if form == "channels" {
							p.Input() <- to(0, fmt.Sprint(i))
							continue
						}
						_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(0, fmt.Sprint(i))}, out)
						require.NoError(t, err)
					}
					synctest.Wait()
					before := time.Now()
					ctx, cancel := context.WithTimeout(context.Background(), limit)
					defer cancel()
					p.AsyncClose(ctx)
					read() // to the end of both channels
					err := p.Close(ctx)
					require.WithinDuration(t, before.Add(tc.takes), time.Now(), 50*time.Millisecond)
					require.Equal(t, tc.err, err != nil, "%v", err)
					if tc.err {
						require.ErrorIs(t, err, context.DeadlineExceeded)
					}
					ok, bad := out.count()
					require.Equal(t, []int{tc.n - tc.bad, tc.bad}, []int{ok, bad}, "%v", out.errs)
					require.Empty(t, out.twice)
					require.Zero(t, p.Stats().Open)
					_, err = p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "late")}, out)
					require.ErrorIs(t, err, ErrClosed)
				})
			})
		}
	}
}

// secondDial has the connection break after the first contact, and every later dial do what wait
// says before it fails.
func secondDial(c *Config, wait func(context.Context)) {
	dial, dials := c.Net.Dialer, 0
	var first net.Conn
	c.Producer.Interceptors = append(c.Producer.Interceptors, interceptorFunc(func() { _ = first.Close() }))
	c.Net.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials++; dials == 1 {
			var err error
			first, err = dial(ctx, network, addr)
			return first, err
		}
		wait(ctx)
		return nil, errors.New("no connection")
	}
}

// readChannels reads both channels into out; the returned function waits for their ends.
func readChannels(p *AsyncProducer, out *heard) (wait func()) {
	var reading sync.WaitGroup
	successes, errs := p.Successes(), p.Errors()
	reading.Go(func() { // both end with their channel
		for m := range successes {
			out.Delivered([]*ProducerMessage{m}, Delivery{})
		}
	})
	reading.Go(func() {
		for e := range errs {
			out.Delivered([]*ProducerMessage{e.Msg}, Delivery{Err: e.Err})
		}
	})
	return reading.Wait
}

// A callback that blocks holds up the connection's reader; Close tells so two seconds after its
// context, and the messages behind have their outcome as soon as the callback returns.
func TestCloseWhileACallbackBlocks(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		p := b.producer(t, b.config())
		release := make(chan struct{})
		var outcomes atomic.Int64
		for i := range 5 {
			require.NoError(t, p.Produce(context.Background(), to(0, "x"), func(*ProducerMessage, error) {
				outcomes.Add(1)
				if i == 0 {
					<-release
				}
			}))
		}
		synctest.Wait()
		before := time.Now()
		err := closeWithin(t, p, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "has not returned")
		require.Equal(t, time.Second+closeGrace, time.Since(before))
		close(release)
		require.Error(t, p.Close(context.Background()))
		require.EqualValues(t, 5, outcomes.Load())
		require.Zero(t, p.Stats().Open)
	})
}

// A second Close bounds the closing that AsyncClose began without a bound.
func TestCloseBoundsAnAsyncClose(t *testing.T) {
	b := &fakeBroker{partitions: 1, leaderless: map[int32]bool{0: true}}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		p := b.producer(t, b.config())
		out := newHeard(start)
		_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "x")}, out)
		require.NoError(t, err)
		p.AsyncClose(context.Background())
		require.Error(t, closeWithin(t, p, time.Second))
		require.Equal(t, time.Second, time.Since(start))
		_, err = out.of("x")
		require.ErrorIs(t, err, ErrClosed)
	})
}

// Whatever is set, sent and answered: every message that was accepted has one outcome, what counts
// as sent is in the log, and closing is in time.
func TestResultsEqualInputsWhateverHappens(t *testing.T) {
	b := &fakeBroker{}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		rapid.Check(noDeadline{t}, func(rt *rapid.T) { anyCourse(rt, b) })
	})
}

// noDeadline hides Deadline, which must not be asked for in a bubble.
type noDeadline struct{ testing.TB }

func anyCourse(rt *rapid.T, b *fakeBroker) {
	codes := []int16{0, 0, 0, 3, 5, 6, 7, 19, 20, 10, 87, 45, 59}
	rulings := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) ruling {
		return ruling{
			code:     rapid.SampledFrom(codes).Draw(rt, "code"),
			hangUp:   rapid.IntRange(0, 9).Draw(rt, "hangUp") == 0,
			delay:    time.Duration(rapid.SampledFrom([]int{0, 0, 1, 50, 5000}).Draw(rt, "delay")) * time.Millisecond,
			throttle: time.Duration(rapid.SampledFrom([]int{0, 0, 0, 10, 3000}).Draw(rt, "throttle")) * time.Millisecond,
		}
	}), 1, 12).Draw(rt, "rulings")
	leaderless := rapid.IntRange(0, 5).Draw(rt, "leaderless") == 0
	b.set(func() {
		b.partitions, b.requests, b.log = 2, 0, map[int32][]string{}
		b.leaderless = map[int32]bool{1: leaderless}
		b.answer = func(n int, _ *kmsg.ProduceRequest) ruling { return rulings[n%len(rulings)] }
	})
	cfg := b.config()
	cfg.ChannelBufferSize = rapid.SampledFrom([]int{0, 1, 5, 256}).Draw(rt, "channelBufferSize")
	cfg.Net.MaxOpenRequests = rapid.IntRange(1, 5).Draw(rt, "maxOpenRequests")
	pc := &cfg.Producer
	pc.Flush.MaxMessages = rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "maxMessages")
	pc.Buffer.Messages = rapid.SampledFrom([]int{1, 10, 1000}).Draw(rt, "buffer")
	pc.Retry.Max = rapid.SampledFrom([]int{1, 3, 1 << 20}).Draw(rt, "retryMax")
	pc.DeliveryTimeout = time.Duration(rapid.SampledFrom([]int{0, 100, 10_000}).Draw(rt, "deliveryTimeout")) * time.Millisecond
	pc.Idempotent = rapid.Bool().Draw(rt, "idempotent")
	if !pc.Idempotent {
		pc.RequiredAcks = RequiredAcks(rapid.IntRange(-1, 1).Draw(rt, "acks"))
	}
	pc.Return = ReturnConfig{Successes: true, Errors: true}
	pc.Partitioner = "manual"
	p, err := NewAsyncProducer([]string{"pipe:1"}, cfg)
	if err != nil {
		rt.Fatal(err)
	}
	out := newHeard(time.Now())
	accepted, read := sendAny(rt, p, out)
	limit := time.Duration(rapid.SampledFrom([]int{0, 10, 2000}).Draw(rt, "close")) * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	before := time.Now()
	p.AsyncClose(ctx)
	read()
	_ = p.Close(ctx) // an error where it was cut short
	if took := time.Since(before); took > limit+100*time.Millisecond {
		rt.Fatalf("closing took %v of %v", took, limit)
	}
	if len(out.twice) > 0 || len(out.at) != accepted || p.Stats().Open != 0 {
		rt.Fatalf("%d accepted, %d outcomes, twice: %v, open: %d", accepted, len(out.at), out.twice, p.Stats().Open)
	}
	inLog := map[string]bool{}
	b.set(func() {
		for _, values := range b.log {
			for _, v := range values {
				inLog[v] = true
			}
		}
	})
	for v, err := range out.errs {
		if err == nil && cfg.Producer.RequiredAcks != AcksNone && !inLog[v] {
			rt.Fatalf("message %s counts as sent and is not in the log", v)
		}
	}
}

// sendAny hands over messages in any form, at any pace.
func sendAny(rt *rapid.T, p *AsyncProducer, out *heard) (accepted int, read func()) {
	form := rapid.SampledFrom([]string{"run", "callback", "channels"}).Draw(rt, "form")
	read = func() {}
	if form == "channels" {
		read = readChannels(p, out)
	}
	pause := time.Duration(rapid.SampledFrom([]int{0, 0, 3}).Draw(rt, "pause")) * time.Millisecond
	for i := range rapid.IntRange(0, 60).Draw(rt, "n") {
		m := to(int32(i%2), fmt.Sprint(i))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		switch form {
		case "run":
			n, _ := p.ProduceRun(ctx, []*ProducerMessage{m}, out)
			accepted += n
		case "callback":
			if p.Produce(ctx, m, func(m *ProducerMessage, err error) { out.Delivered([]*ProducerMessage{m}, Delivery{Err: err}) }) == nil {
				accepted++
			}
		case "channels":
			select {
			case p.Input() <- m:
				accepted++
			case <-ctx.Done():
			}
		}
		cancel()
		time.Sleep(pause)
	}
	return accepted, read
}
