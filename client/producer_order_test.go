package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

// pipeline is a broker with topic "t" of one partition that reads Produce requests while it owes
// the answers to earlier ones: the test takes them and answers when it likes.
type pipeline struct {
	t        *testing.T
	fake     fakeBroker
	requests chan inFlight // written by serve, read by the test, never closed
	log      int64         // messages accepted
}

// answers are what a connection is owed, in the order of the requests, as brokers answer.
type answers struct {
	conn net.Conn
	mu   sync.Mutex
	owed []*[]byte // nil until it is known
}

// owe makes a place for the next answer.
func (a *answers) owe() *[]byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	place := new([]byte)
	a.owed = append(a.owed, place)
	return place
}

// pay fills a place, and writes what now can be.
func (a *answers) pay(place *[]byte, frame []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	*place = frame
	for len(a.owed) > 0 && *a.owed[0] != nil {
		if _, err := a.conn.Write(*a.owed[0]); err != nil {
			return err
		}
		a.owed = a.owed[1:]
	}
	return nil
}

// inFlight is a Produce request that was read.
type inFlight struct {
	raw    rawserver.Request
	to     *answers
	place  *[]byte
	epoch  int16
	base   int32
	count  int32
	before string // what else identifies its bytes
}

// onPipeline runs a test on a virtual clock against such a broker.
func onPipeline(t *testing.T, cfg *Config, test func(t *testing.T, b *pipeline, p *AsyncProducer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &pipeline{t: t, requests: make(chan inFlight, 100)}
		b.fake.partitions, b.fake.asked = 1, map[int16]int{}
		b.fake.server = rawserver.StartPipes(rawserver.Script{Opened: b.serve})
		defer b.fake.server.Close()
		cfg.Net.Dialer = b.fake.config().Net.Dialer
		p, err := NewAsyncProducer([]string{"pipe:1"}, cfg)
		require.NoError(t, err)
		defer func() { _ = closeWithin(t, p, time.Second) }()
		test(t, b, p)
	})
}

// serve answers a connection after its ApiVersions.
func (b *pipeline) serve(c net.Conn) {
	to := &answers{conn: c}
	for {
		var size [4]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(c, frame); err != nil {
			return
		}
		raw, err := rawserver.ParseRequest(frame)
		if err != nil {
			b.t.Error(err)
			return
		}
		r := inFlight{raw: raw, to: to, place: to.owe()}
		req, produces := raw.Decode().(*kmsg.ProduceRequest)
		if !produces {
			if to.pay(r.place, rawserver.Frame(raw, b.fake.handle(b.t, time.Now(), raw).Body)) != nil {
				return
			}
			continue
		}
		records := req.Topics[0].Partitions[0].Records
		batch, _, err := record.Next(records)
		if err != nil {
			b.t.Error(err)
			return
		}
		r.epoch, r.base, r.count, r.before = batch.ProducerEpoch, batch.BaseSequence, batch.Count, string(records)
		b.requests <- r
	}
}

// next is the next Produce request, which must come within a minute of the virtual clock.
func (b *pipeline) next() inFlight {
	b.t.Helper()
	select {
	case r := <-b.requests:
		return r
	case <-time.After(time.Minute):
		require.FailNow(b.t, "no request came")
		return inFlight{}
	}
}

// quiet requires that nothing is sent for a minute of the virtual clock.
func (b *pipeline) quiet(why string) {
	b.t.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	require.Empty(b.t, b.requests, why)
}

// answer answers a request.
func (b *pipeline) answer(r inFlight, code int16) {
	b.t.Helper()
	resp := kmsg.NewPtrProduceResponse()
	topic, p := kmsg.NewProduceResponseTopic(), kmsg.NewProduceResponseTopicPartition()
	topic.Topic, p.ErrorCode, p.BaseOffset = "t", code, -1
	if code == 0 {
		p.BaseOffset = b.log
		b.log += int64(r.count)
	}
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	require.NoError(b.t, r.to.pay(r.place, rawserver.Frame(r.raw, rawserver.Respond(r.raw, resp).Body)))
}

// onePerBatch makes every message a batch, and tries again at once and for ever.
func onePerBatch() *Config {
	cfg := idempotentConfig(5)
	cfg.Producer.Flush.MaxMessages = 1
	cfg.Producer.DeliveryTimeout, cfg.Producer.Timeout, cfg.Net.ReadTimeout = 0, time.Hour, time.Hour
	cfg.Metadata.RefreshFrequency = 0
	return cfg
}

// send hands messages over on a goroutine of its own: the broker may not read.
func (b *pipeline) send(p *AsyncProducer, n int, out *tally) *sync.WaitGroup {
	var sending sync.WaitGroup
	sending.Go(func() { // ends when they are accepted
		_, err := p.ProduceRun(context.Background(), numbered(n, 1), out)
		if err != nil {
			b.t.Error(err)
		}
	})
	return &sending
}

// One of several in flight is to be sent again: it waits for the answers to all of them, so that
// what the leader refuses because of it is not taken for a gap that nothing will fill.
func TestP1NothingIsSentAgainBeforeAllOfAPartitionIsBack(t *testing.T) {
	onPipeline(t, onePerBatch(), func(t *testing.T, b *pipeline, p *AsyncProducer) {
		var out tally
		b.send(p, 1, &out).Wait()
		b.answer(b.next(), 0)
		sending := b.send(p, 4, &out)
		var first []inFlight
		for range 4 {
			first = append(first, b.next())
		}
		b.answer(first[0], 2) // CORRUPT_MESSAGE: it was damaged on its way
		b.quiet("three are in flight")
		b.answer(first[1], 45) // and so these leave a gap
		b.answer(first[2], 45)
		b.quiet("one is in flight")
		b.answer(first[3], 45)
		for i := range 4 {
			again := b.next()
			require.Equal(t, first[i].base, again.base, "in order, from the oldest on")
			require.Equal(t, first[i].epoch, again.epoch, "it was no gap")
			b.answer(again, 0)
		}
		sending.Wait()
		require.NoError(t, p.Flush(context.Background()))
		out.require(t, 5, 0)
	})
}

// P6: also of a leader that the partition came to later.
func TestP6OneInFlightUntilALeaderHasAcceptedOne(t *testing.T) {
	onPipeline(t, onePerBatch(), func(t *testing.T, b *pipeline, p *AsyncProducer) {
		var out tally
		b.send(p, 3, &out).Wait()
		first := b.next()
		b.quiet("the first of the identity is in flight")
		b.answer(first, 6) // NOT_LEADER_OR_FOLLOWER
		first = b.next()
		b.quiet("and still is")
		b.answer(first, 0)
		second, third := b.next(), b.next()
		b.answer(second, 6) // the leader moved, and may be the same node again
		b.answer(third, 6)
		second = b.next()
		b.quiet("nothing of the new leader is known")
		b.answer(second, 0)
		b.answer(b.next(), 0)
		require.NoError(t, p.Flush(context.Background()))
		out.require(t, 3, 0)
	})
}

// P9: messages that come while a batch waits for another try do not join it.
func TestP9ABatchThatWasSentIsFrozen(t *testing.T) {
	cfg := onePerBatch()
	cfg.Producer.Flush.MaxMessages = 0
	onPipeline(t, cfg, func(t *testing.T, b *pipeline, p *AsyncProducer) {
		var out tally
		b.send(p, 3, &out).Wait()
		first := b.next()
		b.send(p, 5, &out).Wait()
		for _, code := range []int16{19, 7, 20, 6, 3} {
			b.answer(first, code)
			again := b.next()
			require.Equal(t, first.before, again.before, "the same bytes after error %d", code)
			first = again
		}
		require.NoError(t, first.to.conn.Close())
		again := b.next()
		require.Equal(t, first.before, again.before, "the same bytes after a lost connection")
		b.answer(again, 0)
		second := b.next()
		require.Equal(t, sequenceAfter(again.base, int(again.count)), second.base)
		b.answer(second, 0)
		require.NoError(t, p.Flush(context.Background()))
		out.require(t, 8, 0)
	})
}

// P7: what may have been written is neither dropped silently nor reported as failed.
func TestP7WhatMayBeWrittenIsUnknown(t *testing.T) {
	for _, tc := range []struct {
		name    string
		code    int16
		end     string
		unknown bool
	}{
		{"P7: REQUEST_TIMED_OUT, then Close", 7, "close", true},
		{"P7: REQUEST_TIMED_OUT, no more tries", 7, "tries", true},
		{"P7: NOT_ENOUGH_REPLICAS_AFTER_APPEND, then Close", 20, "close", true},
		{"P7: NOT_ENOUGH_REPLICAS_AFTER_APPEND, no more tries", 20, "tries", true},
		{"NOT_ENOUGH_REPLICAS was decided before", 19, "tries", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(t, 1, 1)
			cfg := idempotentConfig(5)
			if tc.end == "tries" {
				cfg.Producer.Retry.Max = 3
			}
			p := asyncProducer(t, c, cfg)
			fault := c.FailProduce(tc.code, -1)
			var out tally
			_, err := p.ProduceRun(within(t), numbered(10, 1), &out)
			require.NoError(t, err)
			require.NoError(t, fault.Wait(within(t), 3), "it is tried again")
			want := ErrRetriesExhausted
			if tc.end == "close" {
				want = ErrClosed
				ctx, cancel := context.WithCancel(within(t))
				cancel()
				require.Error(t, p.Close(ctx))
			} else {
				require.NoError(t, p.Flush(within(t)))
			}
			out.require(t, 0, 10)
			for _, err := range out.errs {
				require.ErrorIs(t, err, want)
				require.Equal(t, tc.unknown, errors.Is(err, ErrOutcomeUnknown), "%v", err)
			}
		})
	}
}

// P4: the leader wrote it before and still knows where: the message gets the offset that it has in
// the log.
func TestP4ABatchSentAgainHasItsOriginalOffset(t *testing.T) {
	c := cluster(t, 1, 1)
	p := asyncProducer(t, c, idempotentConfig(5))
	const before, lost, after = 30, 20, 50 // messages: the answer to those in between is lost
	msgs := numbered(before+lost+after, 1)
	sent := watchProduce(c)
	for _, run := range [][]*ProducerMessage{msgs[:before], msgs[before : before+lost], msgs[before+lost:]} {
		if len(run) == lost {
			c.LoseAnswers(0, 1)
		}
		var out tally
		_, err := p.ProduceRun(within(t), run, &out)
		require.NoError(t, err)
		require.NoError(t, p.Flush(within(t)))
		out.require(t, len(run), 0)
	}
	require.EqualValues(t, 1, p.Stats().Retries)
	twice := 0
	for _, b := range sent() {
		if b.base == before {
			twice++
		}
	}
	require.Equal(t, 2, twice, "times that the batch came")
	for i, m := range msgs {
		require.EqualValues(t, i, m.Offset, "offset of message %d", i)
	}
	requireWhole(t, c, 1, len(msgs), 1)
}

// P4: the leader wrote it before and no longer knows where.
func TestP4ADuplicateIsASuccessWithoutAnOffset(t *testing.T) {
	c := cluster(t, 1, 1)
	p := asyncProducer(t, c, idempotentConfig(5))
	c.FailProduce(46, 1)
	m := &ProducerMessage{Topic: "t", Value: []byte("v")}
	outcome := make(chan error, 1)
	require.NoError(t, p.Produce(within(t), m, func(_ *ProducerMessage, err error) { outcome <- err }))
	require.NoError(t, <-outcome)
	require.EqualValues(t, -1, m.Offset)
	require.EqualValues(t, 1, c.Requests(0), "not sent again")
	require.Zero(t, p.Stats().Retries)
}

// P5: a new epoch is one for every partition, and each begins at 0 in it.
func TestP5EveryPartitionRestartsAtZero(t *testing.T) {
	c := cluster(t, 1, 4)
	cfg := idempotentConfig(5)
	cfg.Producer.Partitioner = "manual"
	seen := watchProduce(c)
	p := asyncProducer(t, c, cfg)
	var out tally
	to := func(partition int32) {
		_, err := p.ProduceRun(within(t), []*ProducerMessage{{Topic: "t", Partition: partition}}, &out)
		require.NoError(t, err)
		require.NoError(t, p.Flush(within(t)))
	}
	for partition := range int32(4) {
		to(partition)
		to(partition)
	}
	epoch := seen()[0].epoch
	c.FailProduce(45, 1)
	to(0)
	for partition := range int32(4) {
		before := len(seen())
		to(partition)
		base := int32(0)
		if partition == 0 {
			base = 1
		}
		require.Equal(t, []sent{{epoch + 1, base, 1}}, seen()[before:], "partition %d", partition)
	}
	out.require(t, 13, 0)
}

// P8: leaders move while idempotent producers send their first batches.
func TestP8LeadersMoveWhileProducersStart(t *testing.T) {
	c, err := broker.Start(broker.Options{Nodes: 3})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for round := range 20 {
		topic := fmt.Sprintf("t%d", round)
		require.NoError(t, c.CreateTopic(topic, 3, nil))
		p, err := NewAsyncProducer(c.Bootstrap(), idempotentConfig(5))
		require.NoError(t, err)
		var out tally
		msgs := numbered(300, 10)
		for i, m := range msgs {
			m.Topic = topic
			if i%30 == 0 {
				require.NoError(t, c.MoveLeader(topic, int32(i/30%3), int32((round+i/30)%3)))
			}
			_, err := p.ProduceRun(within(t), msgs[i:i+1], &out)
			require.NoError(t, err)
		}
		require.NoError(t, p.Flush(within(t)))
		out.require(t, 300, 0)
		require.NoError(t, p.Close(within(t)))
		requireWholeTopic(t, c, topic, 3, 300, 10)
	}
}

// holds is what keeps the order; each of its reasons stands alone.
func TestAPartitionHoldsBackWhileOrderIsAtStake(t *testing.T) {
	one, two := identity{id: 1, known: true}, identity{id: 1, epoch: 1, known: true}
	for _, tc := range []struct {
		name       string
		inFlight   int
		draining   bool
		idempotent bool
		proven     bool
		now        identity
		elsewhere  bool // in flight on another connection
		want       bool
	}{
		{"nothing is in flight", 0, true, true, false, two, true, false},
		{"something is to be sent again", 1, true, true, true, one, false, true},
		{"also without idempotence", 1, true, false, false, identity{}, false, true},
		{"the leader has accepted nothing yet", 1, false, true, false, one, false, true},
		{"the identity is another", 1, false, true, true, two, false, true},
		{"the connection is another", 1, false, true, true, one, true, true},
		{"nothing stands in the way", 4, false, true, true, one, false, false},
		{"nothing does without idempotence", 4, false, false, false, identity{}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			producer := &AsyncProducer{}
			producer.cfg.Producer.Idempotent = tc.idempotent
			p := &partitionProducer{producer: producer, inFlight: tc.inFlight, draining: tc.draining, numbers: numbering{identity: one, proven: tc.proven}, on: new(conn.Conn)}
			on := p.on
			if tc.elsewhere {
				on = new(conn.Conn)
			}
			require.Equal(t, tc.want, p.holds(on, tc.now))
		})
	}
}
