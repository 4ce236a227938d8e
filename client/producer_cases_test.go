package client

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/record"

	"github.com/kbench/kbench/client/internal/wire"
)

// landing is one batch as it came to the scripted leader: its first message, by number, and what
// an idempotent producer wrote on it.
type landing struct {
	conn     int // which connection it came on
	first    int
	sequence int32 // −1 without an identity
	at       time.Duration
}

// leader is a scripted leader of partition 0 of topic "t". Its script says, for each Produce
// request by its number from 0, what becomes of it and of those before that have no answer yet.
type leader struct {
	t      testing.TB
	world  *world
	began  time.Time
	script func(n int) fate
	gate   chan struct{} // until the test closes it, what waits does so for other requests too

	mu      sync.Mutex
	arrived []landing
	log     []int // numbers of the messages appended, batch by batch
	waiting [][]byte
}

// fate is what the leader does with a request.
type fate struct {
	code    int16 // 0: none
	append  bool  // the batch goes into the log
	held    bool  // its answer waits until another request's fate is not held
	later   bool  // its answer waits, those before it go
	half    bool  // of the answers due now, the last one ends half-way, and the connection with it
	silence bool  // no answer, ever
}

var accepted = fate{append: true}

// exactly makes a script of the verdicts given, and accepts everything after them.
func exactly(vs ...fate) func(int) fate {
	return func(n int) fate {
		if n < len(vs) {
			return vs[n]
		}
		return accepted
	}
}

func (l *leader) handle(addr string, raw rawserver.Request) rawserver.Reply {
	switch kmsg.Key(raw.Key) {
	case kmsg.InitProducerID:
		resp := kmsg.NewPtrInitProducerIDResponse()
		resp.ProducerID, resp.ProducerEpoch = 4000, 0
		return rawserver.Respond(raw, resp)
	case kmsg.Produce:
		return l.produce(raw)
	}
	reply := l.world.ordinary(addr, raw)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 { // answers come in order
		reply.Raw, reply.Wait = slices.Concat(l.waiting...), l.gate
		l.waiting = nil
	}
	return reply
}

func (l *leader) produce(raw rawserver.Request) rawserver.Reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, numbers := l.open(raw)
	v := l.script(len(l.arrived))
	l.arrived = append(l.arrived, a)
	if v.append && !slices.Contains(l.log, a.first) {
		l.log = append(l.log, numbers...)
	} else if v.append && a.sequence < 0 {
		l.log = append(l.log, numbers...) // nobody can know that it is there already
	}
	if v.silence {
		return rawserver.Reply{}
	}
	answer := produced(raw, func(_ string, p *kmsg.ProduceResponseTopicPartition) {
		p.ErrorCode, p.BaseOffset = v.code, int64(slices.Index(l.log, a.first))
	})
	mine := rawserver.Frame(raw, answer.Body)
	if v.later {
		before := slices.Concat(l.waiting...)
		l.waiting = [][]byte{mine}
		return rawserver.Reply{Raw: before}
	}
	l.waiting = append(l.waiting, mine)
	if v.held {
		return rawserver.Reply{}
	}
	all := slices.Concat(l.waiting...)
	if v.half {
		all = all[:len(all)-len(l.waiting[len(l.waiting)-1])/2]
	}
	l.waiting = nil
	return rawserver.Reply{Raw: all, Close: v.half}
}

// open reads the only batch of a request.
func (l *leader) open(raw rawserver.Request) (a landing, numbers []int) {
	req, ok := raw.Decode().(*kmsg.ProduceRequest)
	require.True(l.t, ok)
	require.Len(l.t, req.Topics, 1)
	require.Len(l.t, req.Topics[0].Partitions, 1, "one batch of a partition in a request")
	b, rest, err := record.Next(req.Topics[0].Partitions[0].Records)
	require.NoError(l.t, err)
	require.Empty(l.t, rest)
	require.NoError(l.t, b.CheckCRC())
	section, err := b.Decompressed(new(record.Decompressor), nil, 1<<20)
	require.NoError(l.t, err)
	for range b.Count {
		var r record.Record
		section, err = record.ReadRecord(section, &r)
		require.NoError(l.t, err)
		n, err := strconv.Atoi(string(r.Value))
		require.NoError(l.t, err)
		numbers = append(numbers, n)
	}
	return landing{conn: raw.Conn, first: numbers[0], sequence: b.BaseSequence, at: time.Since(l.began)}, numbers
}

// wire is the order in which batches came, by the number of their first message.
func (l *leader) wire() (firsts []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.arrived {
		firsts = append(firsts, a.first)
	}
	return firsts
}

// sequences are those of the batches as they came.
func (l *leader) sequences() (out []int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.arrived {
		out = append(out, a.sequence)
	}
	return out
}

func (l *leader) inLog() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.log)
}

// withLeader runs a test against a scripted leader, on a virtual clock, with batches of one
// message each.
func withLeader(t *testing.T, script func(int) fate, change func(*Config), test func(t *testing.T, l *leader, p *AsyncProducer)) {
	l := &leader{t: t, script: script, world: newWorld(map[int32]string{0: "zero:9092"})}
	l.world.topics["t"] = led(1, 0, 1)
	inBubble(t, l.handle, func(t *testing.T, n *scripted) {
		l.began = time.Now()
		c := n.mustClient(func(cfg *Config) {
			cfg.Producer.Flush.MaxMessages = 1
			change(cfg)
		}, "zero:9092")
		defer func() { require.NoError(t, c.Close()) }()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		defer func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = p.Close(ctx)
		}()
		test(t, l, p)
	})
}

// sendNumbered hands over messages from … to−1 of topic "t" one by one, so that each is a batch
// that leaves as soon as it may.
func sendNumbered(t *testing.T, p *AsyncProducer, out *tally, from, to int) {
	for i := from; i < to; i++ {
		_, err := p.ProduceRun(t.Context(), []*ProducerMessage{{Topic: "t", Value: fmt.Append(nil, i)}}, out)
		require.NoError(t, err)
		synctest.Wait()
	}
}

// dawdling makes the outcome of every request known late to the producer.
func dawdling(change func(*Config)) func(*Config) {
	return func(c *Config) {
		change(c)
		c.Producer.OnRequest = func(RequestInfo) { time.Sleep(time.Second) }
	}
}

func set(idempotent bool, inFlight int) func(*Config) {
	return func(c *Config) { c.Producer.Idempotent, c.Net.MaxOpenRequests = idempotent, inFlight }
}

// The first of several batches in flight has to be sent again: none of the partition's others
// leaves before it, and those that were in flight with it follow in their order.
func TestP1P3AFailedBatchIsNotOvertaken(t *testing.T) {
	const notEnough, notEnoughAfter, outOfOrder = 19, 20, 45
	for _, tc := range []struct {
		name     string
		config   func(*Config)
		script   []fate
		send     int
		wire     []int // batches by their first message, as they came
		log      []int
		sequence []int32
	}{
		{
			"P1: idempotent, the leader refuses the first, and with it what came after", set(true, 5),
			[]fate{accepted, {code: notEnough, held: true}, {code: outOfOrder, held: true}, {code: outOfOrder}}, 6,
			[]int{0, 1, 2, 3, 1, 2, 3, 4, 5}, []int{0, 1, 2, 3, 4, 5}, []int32{0, 1, 2, 3, 1, 2, 3, 4, 5},
		},
		{
			"P1: idempotent, the first is written though its answer says failed, the second succeeds", set(true, 5),
			[]fate{accepted, {code: notEnoughAfter, append: true, held: true}, accepted}, 5,
			[]int{0, 1, 2, 1, 3, 4}, []int{0, 1, 2, 3, 4}, []int32{0, 1, 2, 1, 3, 4},
		},
		{
			"P1: one in flight, not idempotent, and the answer takes its time to be dealt with", dawdling(set(false, 1)),
			[]fate{accepted, {code: notEnough}}, 4,
			[]int{0, 1, 1, 2, 3}, []int{0, 1, 2, 3}, []int32{-1, -1, -1, -1, -1},
		},
		{
			"P3: a retried batch goes before all that wait, again and again", set(false, 1),
			[]fate{{code: notEnough}, {code: notEnough}, {code: notEnough}}, 4,
			[]int{0, 0, 0, 0, 1, 2, 3}, []int{0, 1, 2, 3}, []int32{-1, -1, -1, -1, -1, -1, -1},
		},
		{
			"P3: not idempotent, five in flight: what left with it may overtake it, what waits does not", set(false, 5),
			[]fate{accepted, {code: notEnough, held: true}, accepted}, 6,
			[]int{0, 1, 2, 1, 3, 4, 5}, []int{0, 2, 1, 3, 4, 5}, []int32{-1, -1, -1, -1, -1, -1, -1},
		},
		{
			"P3: two of three in flight fail: they come again in their order", set(true, 5),
			[]fate{accepted, {code: notEnoughAfter, append: true, held: true}, {append: true, held: true}, {code: notEnoughAfter, append: true}}, 6,
			[]int{0, 1, 2, 3, 1, 3, 4, 5}, []int{0, 1, 2, 3, 4, 5}, []int32{0, 1, 2, 3, 1, 3, 4, 5},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withLeader(t, exactly(tc.script...), tc.config, func(t *testing.T, l *leader, p *AsyncProducer) {
				var out tally
				sendNumbered(t, p, &out, 0, tc.send)
				require.NoError(t, p.Flush(t.Context()))
				out.require(t, tc.send, 0)
				require.Equal(t, tc.wire, l.wire())
				require.Equal(t, tc.log, l.inLog())
				require.Equal(t, tc.sequence, l.sequences(), "a batch keeps its number")
			})
		})
	}
}

// While something is in flight beside a batch that has to be sent again, nothing leaves: not that
// batch, which its outcome may still follow, and nothing that waits.
func TestP3NothingLeavesUntilAllHaveComeBack(t *testing.T) {
	for _, idempotent := range []bool{true, false} {
		t.Run(fmt.Sprintf("P3: idempotent %v", idempotent), func(t *testing.T) {
			script := exactly(accepted, fate{code: 7, append: true, held: true}, fate{append: true, later: true})
			withLeader(t, script, set(idempotent, 5), func(t *testing.T, l *leader, p *AsyncProducer) {
				l.gate = make(chan struct{})
				var out tally
				sendNumbered(t, p, &out, 0, 5)
				time.Sleep(3 * time.Second)
				require.Equal(t, []int{0, 1, 2}, l.wire(), "the second answer has not come")
				close(l.gate)
				require.NoError(t, p.client.RefreshMetadata(t.Context()))
				require.NoError(t, p.Flush(t.Context()))
				out.require(t, 5, 0)
				require.Equal(t, []int{0, 1, 2, 1, 3, 4}, l.wire())
			})
		})
	}
}

// The connection ends within an answer while others are awaited and more waits.
func TestP2TheConnectionEndsWithinAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config func(*Config)
		script []fate
		wire   []int
		log    []int
	}{
		{
			"P2: idempotent, two in flight, both written", set(true, 5),
			[]fate{accepted, {append: true, held: true}, {append: true, half: true}},
			[]int{0, 1, 2, 2, 3, 4}, []int{0, 1, 2, 3, 4}, // the first answer was whole
		},
		{
			"P2: idempotent, two in flight, the first answer cut off", set(true, 5),
			[]fate{accepted, {append: true, silence: true}, {append: true, half: true}},
			[]int{0, 1, 2, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4},
		},
		{
			"P2: idempotent, the second was not written", set(true, 5),
			[]fate{accepted, {append: true, silence: true}, {half: true}},
			[]int{0, 1, 2, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4},
		},
		{
			"P2: one in flight, not idempotent: in order, and there twice", set(false, 1),
			[]fate{accepted, {append: true, half: true}},
			[]int{0, 1, 1, 2, 3, 4}, []int{0, 1, 1, 2, 3, 4},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withLeader(t, exactly(tc.script...), tc.config, func(t *testing.T, l *leader, p *AsyncProducer) {
				var out tally
				sendNumbered(t, p, &out, 0, 5)
				require.NoError(t, p.Flush(t.Context()))
				out.require(t, 5, 0)
				require.Equal(t, tc.wire, l.wire())
				require.Equal(t, tc.log, l.inLog())
				require.Positive(t, l.arrived[len(l.arrived)-1].conn, "on a new connection")
			})
		})
	}
}

// Closing while the partition has no leader, or has one that refuses all the time, ends when its
// context does or the delivery timeout, whichever is first, and each message gets its error.
func TestP20CloseWhileMessagesAreInRetry(t *testing.T) {
	refusing := func(int) fate { return fate{code: 5} }
	for _, tc := range []struct {
		name     string
		leader   int32
		delivery time.Duration
		patience time.Duration // of Close's context
		took     time.Duration
		want     error
		refused  error // what Close says
	}{
		{"P20: no leader, Close gives up first", -1, time.Minute, 5 * time.Second, 5 * time.Second, ErrClosed, context.DeadlineExceeded},
		{"P20: no leader, the delivery timeout is first", -1, 10 * time.Second, time.Hour, 10 * time.Second, ErrDeliveryTimeout, nil},
		{"P20: a leader that refuses, Close gives up first", 0, time.Minute, 5 * time.Second, 5 * time.Second, ErrClosed, context.DeadlineExceeded},
		{"P20: a leader that refuses, the delivery timeout is first", 0, 10 * time.Second, time.Hour, 10 * time.Second, ErrDeliveryTimeout, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withLeader(t, refusing, func(c *Config) { c.Producer.DeliveryTimeout = tc.delivery }, func(t *testing.T, l *leader, p *AsyncProducer) {
				l.world.set(func() { l.world.topics["t"] = led(1, tc.leader, 1) })
				var out tally
				began := time.Now()
				sendNumbered(t, p, &out, 0, 20)
				ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
				defer cancel()
				err := p.Close(ctx)
				require.InDelta(t, tc.took, time.Since(began), float64(100*time.Millisecond))
				require.ErrorIs(t, err, tc.refused)
				out.require(t, 0, 20)
				for _, err := range out.errs {
					require.ErrorIs(t, err, tc.want)
				}
			})
		})
	}
}

// A request without an answer in time costs the connection: everything in flight on it is tried
// again on another, in order. Only an idempotent producer's messages are sure to be there once.
func TestP29ARequestTimesOut(t *testing.T) {
	silence := fate{append: true, silence: true}
	for _, tc := range []struct {
		name   string
		config func(*Config)
		script []fate
		wire   []int
		log    []int
	}{
		{
			"P29: idempotent, three in flight", set(true, 3), []fate{accepted, silence, silence, silence},
			[]int{0, 1, 2, 3, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4},
		},
		{
			"P29: not idempotent: written twice", set(false, 1), []fate{accepted, silence},
			[]int{0, 1, 1, 2, 3, 4}, []int{0, 1, 1, 2, 3, 4},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			limits := func(c *Config) {
				tc.config(c)
				c.Producer.Timeout, c.Net.ReadTimeout = 3*time.Second, 4*time.Second
			}
			withLeader(t, exactly(tc.script...), limits, func(t *testing.T, l *leader, p *AsyncProducer) {
				var out tally
				sendNumbered(t, p, &out, 0, 4)
				time.Sleep(time.Second)
				sendNumbered(t, p, &out, 4, 5)
				require.NoError(t, p.Flush(t.Context()))
				out.require(t, 5, 0)
				require.Equal(t, tc.wire, l.wire())
				require.Equal(t, tc.log, l.inLog())
				for _, a := range l.arrived {
					late := a.at >= 7*time.Second
					require.Equal(t, late, a.conn > 0, "%+v: the old connection until the timeout, then another", a)
				}
			})
		})
	}
}

// P20: a batch that comes back when everything that waits has been failed already, because closing was
// cut short, fails by itself, and so does one whose messages have run out of time in flight.
func TestP20WhatComesBackTooLateIsNotKept(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		p := b.producer(t, b.config())
		out := b.send(t, p, start, to(0, "a"))
		pp := p.parts[0]
		flying := func(v string) *batch {
			m := to(0, v)
			require.NoError(t, p.admit(context.Background(), []*ProducerMessage{m}, out, toDeliveries))
			x := newBatch(pp, 1, time.Now(), 0)
			_, _ = x.add([]*ProducerMessage{m}, 0, 1000, 0)
			pp.mu.Lock()
			pp.inFlight, pp.flying = 1, []*batch{x}
			pp.mu.Unlock()
			return x
		}
		late := flying("expired")
		p.deliver(late.msgs, 0, -1, Delivery{Err: ErrDeliveryTimeout}) // as expireLate does
		late.expired, late.msgs = true, nil
		pp.again(late, wire.ErrNotEnoughReplicas, wire.Retriable, time.Now())
		require.Nil(t, pp.first(), "nobody waits for it")

		p.end()
		pp.again(flying("b"), wire.ErrNotEnoughReplicas, wire.Retriable, time.Now())
		_, err := out.of("b")
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, err, wire.ErrNotEnoughReplicas)
		require.Nil(t, pp.first())
		require.Zero(t, p.Stats().Open)
	})
}
