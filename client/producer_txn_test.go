package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

// txnVersions are brokers of before and after transactions v2 (KIP-890).
var txnVersions = []struct {
	name, kafka string
	second      bool
}{{"v1", "3.9", false}, {"v2", "", true}}

// inBothVersions runs a test against both, with topic "t" of the given partitions.
func inBothVersions(t *testing.T, nodes, partitions int, test func(t *testing.T, c *broker.Cluster, second bool)) {
	for _, v := range txnVersions {
		t.Run(v.name, func(t *testing.T) {
			c, err := broker.Start(broker.Options{Nodes: nodes, Version: v.kafka})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			require.NoError(t, c.CreateTopic("t", partitions, nil))
			test(t, c, v.second)
		})
	}
}

func txnConfig(id string) *Config {
	cfg := idempotentConfig(5)
	cfg.Producer.Transaction.ID = id
	return cfg
}

// committed reads what a reader with read_committed sees of topic "t". It marks the partitions'
// ends, so that it knows when it has seen all.
func committed(t testing.TB, c *broker.Cluster) []string {
	cfg := NewConfig()
	cfg.Producer.Partitioner = "manual"
	cfg.Consumer.IsolationLevel = ReadCommitted
	cl, err := NewClient(c.Bootstrap(), cfg)
	require.NoError(t, err)
	defer cl.Close()
	return committedOf(t, within(t), cl, "t")
}

const endMark = "end of the log"

func committedOf(t testing.TB, ctx context.Context, cl *Client, topic string) (values []string) {
	parts, err := cl.Partitions(ctx, topic)
	require.NoError(t, err)
	p, err := NewSyncProducerFromClient(cl)
	require.NoError(t, err)
	ends := map[int32]int64{}
	for _, part := range parts {
		_, at, err := p.SendMessageContext(ctx, &ProducerMessage{Topic: topic, Partition: part, Value: []byte(endMark)})
		require.NoError(t, err)
		ends[part] = at
	}
	require.NoError(t, p.Close(ctx))
	r, err := cl.NewReader(ReaderConfig{Topic: topic, Partitions: parts})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for len(ends) > 0 {
		m, err := r.FetchMessage(ctx)
		require.NoError(t, err, "%d partitions not read to their end", len(ends))
		if end, open := ends[m.Partition]; open && m.Offset >= end {
			delete(ends, m.Partition)
		}
		if string(m.Value) != endMark {
			values = append(values, string(m.Value))
		}
	}
	return values
}

// texts are the values of messages.
func texts(msgs []*ProducerMessage) (out []string) {
	for _, m := range msgs {
		out = append(out, string(m.Value))
	}
	return out
}

func begin(t testing.TB, p *AsyncProducer) {
	t.Helper()
	require.NoError(t, p.BeginTransaction(within(t)))
}

// transact sends messages in a transaction of their own.
func transact(t testing.TB, p *AsyncProducer, msgs []*ProducerMessage, commit bool) {
	t.Helper()
	begin(t, p)
	var out tally
	_, err := p.ProduceRun(within(t), msgs, &out)
	require.NoError(t, err)
	if commit {
		require.NoError(t, p.CommitTransaction(within(t)))
		out.require(t, len(msgs), 0)
		return
	}
	require.NoError(t, p.Flush(within(t)))
	require.NoError(t, p.AbortTransaction(within(t)))
}

// versionsSeen notes the versions of requests of a key.
func versionsSeen(c *broker.Cluster, key int16) func() []int16 {
	var mu sync.Mutex
	var seen []int16
	c.Observe(key, func(_ int32, r kmsg.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.GetVersion())
	})
	return func() []int16 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// txnRequests counts what a transactional producer asks.
func txnRequests(c *broker.Cluster) (n int64) {
	for _, key := range []int16{0, 10, 22, 24, 25, 26, 28} {
		n += c.Requests(key)
	}
	return n
}

func TestTransactionsShowAllOrNothing(t *testing.T) {
	inBothVersions(t, 3, 6, func(t *testing.T, c *broker.Cluster, second bool) {
		produces, ends, adds := versionsSeen(c, 0), versionsSeen(c, 26), versionsSeen(c, 24)
		p := asyncProducer(t, c, txnConfig("x"))
		require.NoError(t, p.InitTransactions(within(t)))
		require.NoError(t, p.InitTransactions(within(t)), "again is nothing")
		all := numbered(600, 10)
		transact(t, p, all[:200], true)
		transact(t, p, all[200:400], false)
		transact(t, p, all[400:], true)
		begin(t, p)
		require.NoError(t, p.CommitTransaction(within(t)), "an empty one")
		begin(t, p)
		require.NoError(t, p.AbortTransaction(within(t)), "an empty one")
		require.ElementsMatch(t, texts(slices.Concat(all[:200], all[400:])), committed(t, c))
		require.Len(t, ends(), 3, "empty transactions are nobody's business")
		if second {
			require.Empty(t, adds())
			require.EqualValues(t, 5, slices.Min(ends()))
			require.EqualValues(t, 12, slices.Min(produces()))
		} else {
			require.NotEmpty(t, adds())
			require.LessOrEqual(t, slices.Max(ends()), int16(wire.LastEndTxnTxnV1))
			require.LessOrEqual(t, slices.Max(produces()), int16(wire.LastProduceTxnV1))
		}
	})
}

// A cluster that knows the newest requests but has not finalised transactions v2 is spoken to as v1.
func TestTransactionsV1WhereV2IsNotFinalised(t *testing.T) {
	c := cluster(t, 1, 3)
	for range 20 { // connections
		c.Answer(18, func(_ int32, r kmsg.Request) (kmsg.Response, error) { return withoutFeatures(r.GetVersion()), nil })
	}
	produces, ends, offsets := versionsSeen(c, 0), versionsSeen(c, 26), versionsSeen(c, 28)
	p := asyncProducer(t, c, txnConfig("x"))
	transact(t, p, numbered(60, 10), true)
	begin(t, p)
	require.NoError(t, p.SendOffsetsToTransaction(within(t), []GroupOffset{{Topic: "t", Offset: 1}}, GroupMetadata{GroupID: "g"}))
	require.NoError(t, p.CommitTransaction(within(t)))
	require.EqualValues(t, wire.LastProduceTxnV1, slices.Max(produces()))
	require.EqualValues(t, wire.LastEndTxnTxnV1, slices.Max(ends()))
	require.EqualValues(t, wire.LastTxnOffsetCommitTxnV1, slices.Max(offsets()))
	require.Len(t, committed(t, c), 60)
}

// withoutFeatures is an answer to ApiVersions that offers every request and no feature.
func withoutFeatures(version int16) kmsg.Response {
	r := kmsg.NewPtrApiVersionsResponse()
	r.Version = version
	for key, offered := range wire.Versions {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = key, offered.Min, offered.Max
		r.ApiKeys = append(r.ApiKeys, k)
	}
	return r
}

func TestPartitionsAreAddedTogether(t *testing.T) {
	c, err := broker.Start(broker.Options{Version: "3.9"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.CreateTopic("t", 12, nil))
	cfg := txnConfig("x")
	cfg.Producer.Flush = FlushConfig{Messages: 1000, MaxMessages: 1000} // nothing leaves before the commit
	p := asyncProducer(t, c, cfg)
	transact(t, p, numbered(120, 60), true) // finds the leaders, one after the other
	before := c.Requests(24)
	for range 3 {
		transact(t, p, numbered(120, 60), true)
	}
	require.EqualValues(t, 3, c.Requests(24)-before, "one request a transaction")
}

func TestMessagesAndCallsOutOfPlaceAreRefused(t *testing.T) {
	c := cluster(t, 1, 1)
	plain := asyncProducer(t, c, idempotentConfig(5))
	require.ErrorIs(t, plain.BeginTransaction(within(t)), ErrNotTransactional)

	p := asyncProducer(t, c, txnConfig("x"))
	n, err := p.ProduceRun(within(t), numbered(10, 1), nil)
	require.ErrorIs(t, err, ErrNoTransaction)
	require.Zero(t, n)
	require.ErrorIs(t, p.CommitTransaction(within(t)), ErrNoTransaction)
	require.ErrorIs(t, p.AbortTransaction(within(t)), ErrNoTransaction)
	require.ErrorIs(t, p.SendOffsetsToTransaction(within(t), []GroupOffset{{Topic: "t"}}, GroupMetadata{GroupID: "g"}), ErrNoTransaction)
	begin(t, p)
	require.ErrorIs(t, p.BeginTransaction(within(t)), ErrTransactionOpen)
	require.NoError(t, p.Close(within(t)))
	require.ErrorIs(t, p.BeginTransaction(within(t)), ErrClosed)
	require.Empty(t, committed(t, c))
}

func TestInputOutsideOfATransactionComesBackOnErrors(t *testing.T) {
	c := cluster(t, 1, 1)
	cfg := txnConfig("x")
	cfg.Producer.Return.Successes = true
	p := asyncProducer(t, c, cfg)
	for _, m := range numbered(10, 1) {
		p.Input() <- m
		require.ErrorIs(t, <-p.Errors(), ErrNoTransaction)
	}
	begin(t, p)
	for _, m := range numbered(10, 1) {
		p.Input() <- m
		<-p.Successes()
	}
	require.NoError(t, p.CommitTransaction(within(t)))
	require.Len(t, committed(t, c), 10)
}

func TestSyncProducerTransactions(t *testing.T) {
	inBothVersions(t, 1, 2, func(t *testing.T, c *broker.Cluster, _ bool) {
		p, err := NewSyncProducer(c.Bootstrap(), txnConfig("x"))
		require.NoError(t, err)
		require.NoError(t, p.InitTransactions(within(t)))
		for i, commit := range []bool{true, false, true} {
			require.NoError(t, p.BeginTransaction(within(t)))
			_, _, err := p.SendMessage(&ProducerMessage{Topic: "t", Value: fmt.Append(nil, i)})
			require.NoError(t, err)
			require.NoError(t, p.SendOffsetsToTransaction(within(t), []GroupOffset{{Topic: "t", Offset: int64(i)}}, GroupMetadata{GroupID: "g"}))
			if commit {
				require.NoError(t, p.CommitTransaction(within(t)))
			} else {
				require.NoError(t, p.AbortTransaction(within(t)))
			}
		}
		require.NoError(t, p.Close(within(t)))
		require.ElementsMatch(t, []string{"0", "2"}, committed(t, c))
	})
}

// P12: the one is final and said at once, the other passes.
func TestP12FencedProducers(t *testing.T) {
	inBothVersions(t, 3, 3, func(t *testing.T, c *broker.Cluster, second bool) {
		old := asyncProducer(t, c, txnConfig("x"))
		transact(t, old, numbered(30, 3), true)
		begin(t, old)
		young := asyncProducer(t, c, txnConfig("x"))
		require.NoError(t, young.InitTransactions(within(t)))

		var out tally
		_, err := old.ProduceRun(within(t), numbered(90, 3), &out)
		require.NoError(t, err)
		err = old.CommitTransaction(within(t))
		if second { // leaders cannot tell; the abort can
			require.ErrorIs(t, err, ErrTransactionFailed)
			require.ErrorIs(t, err, wire.ErrInvalidProducerEpoch)
			err = old.AbortTransaction(within(t))
		}
		require.ErrorIs(t, err, ErrProducerFenced)
		out.require(t, 0, 90)
		for _, err := range out.errs {
			require.True(t, errors.Is(err, ErrProducerFenced) || second && errors.Is(err, wire.ErrInvalidProducerEpoch), "%v", err)
		}
		before := txnRequests(c)
		for range 3 {
			_, err = old.ProduceRun(within(t), numbered(1, 1), nil)
			require.ErrorIs(t, err, ErrProducerFenced)
			require.ErrorIs(t, old.InitTransactions(within(t)), ErrProducerFenced)
			require.ErrorIs(t, old.BeginTransaction(within(t)), ErrProducerFenced)
			require.ErrorIs(t, old.CommitTransaction(within(t)), ErrProducerFenced)
			require.ErrorIs(t, old.AbortTransaction(within(t)), ErrProducerFenced)
		}
		require.Equal(t, before, txnRequests(c), "nothing is asked any more")
		require.NoError(t, old.Close(within(t)))

		transact(t, young, numbered(60, 3)[30:], true)
		require.ElementsMatch(t, texts(numbered(60, 3)), committed(t, c))
	})
}

// late holds the first outcomes up until commit has returned too early, or long enough to know that it waits.
type late struct {
	tally
	once              sync.Once
	entered, returned chan struct{}
	early             bool
}

func (l *late) Delivered(batch []*ProducerMessage, d Delivery) {
	l.once.Do(func() {
		close(l.entered)
		select {
		case <-l.returned:
			l.early = true
		case <-time.After(50 * time.Millisecond):
		}
	})
	l.tally.Delivered(batch, d)
}

// A commit that is refused, since the failure was noticed before it was called, returns when everything
// accepted is decided, as any other does.
func TestP12RefusedCommitsWaitForOutcomes(t *testing.T) {
	inBothVersions(t, 3, 3, func(t *testing.T, c *broker.Cluster, _ bool) {
		old := asyncProducer(t, c, txnConfig("x"))
		transact(t, old, numbered(30, 3), true)
		begin(t, old)
		require.NoError(t, asyncProducer(t, c, txnConfig("x")).InitTransactions(within(t)))
		out := late{entered: make(chan struct{}), returned: make(chan struct{})}
		_, err := old.ProduceRun(within(t), numbered(90, 3), &out)
		require.NoError(t, err)
		<-out.entered
		err = old.CommitTransaction(within(t))
		close(out.returned)
		require.Error(t, err)
		out.require(t, 0, 90)
		require.False(t, out.early)
	})
}

func TestP12WhatCoordinatorsSayThatPassesIsTriedAgain(t *testing.T) {
	for _, fault := range []struct {
		name string
		key  int16
		code int16
	}{
		{"P12: the previous transaction is being completed: id", 22, 51},
		{"P12: … partitions", 24, 51},
		{"P12: … end", 26, 51},
		{"P12: … produce", 0, 51},
		{"P12: … offsets", 28, 51},
		{"the coordinator is loading: id", 22, 14},
		{"… partitions", 24, 14},
		{"… end", 26, 14},
		{"… offsets", 28, 14},
		{"the coordinator is elsewhere: id", 22, 16},
		{"… partitions", 24, 16},
		{"… group", 25, 16},
		{"… end", 26, 16},
		{"… offsets", 28, 16},
		{"there is none: end", 26, 15},
		{"there is none: look-up", 10, 15},
	} {
		inBothVersions(t, 3, 3, func(t *testing.T, c *broker.Cluster, second bool) {
			if second && (fault.key == 24 || fault.key == 25) {
				return // v2 does not ask
			}
			t.Run(fault.name, func(t *testing.T) {
				f := c.Fail(broker.Failure{Key: fault.key, Code: fault.code, Count: 3})
				p := asyncProducer(t, c, txnConfig("x"))
				begin(t, p)
				var out tally
				_, err := p.ProduceRun(within(t), numbered(30, 3), &out)
				require.NoError(t, err)
				require.NoError(t, p.SendOffsetsToTransaction(within(t), []GroupOffset{{Topic: "t", Offset: 5}}, GroupMetadata{GroupID: "g"}))
				require.NoError(t, p.CommitTransaction(within(t)))
				out.require(t, 30, 0)
				require.Equal(t, 3, f.Hits())
				require.Len(t, committed(t, c), 30)
			})
		})
	}
}

func TestTransactionsFollowTheirCoordinator(t *testing.T) {
	inBothVersions(t, 3, 3, func(t *testing.T, c *broker.Cluster, _ bool) {
		p := asyncProducer(t, c, txnConfig("x"))
		all := numbered(300, 3)
		for i := range 10 {
			transact(t, p, all[i*30:(i+1)*30], true)
			c.MoveCoordinators()
			if i%3 == 2 {
				c.CloseConnections()
			}
		}
		require.ElementsMatch(t, texts(all), committed(t, c))
	})
}

// P13: the answer to EndTxn is lost.
func TestP13LostEnds(t *testing.T) {
	inBothVersions(t, 1, 3, func(t *testing.T, c *broker.Cluster, _ bool) {
		p := asyncProducer(t, c, txnConfig("x"))
		all := numbered(120, 3)
		c.LoseAnswers(26, 2)
		transact(t, p, all[:30], true) // asked until confirmed
		c.LoseAnswers(26, 2)
		transact(t, p, all[30:60], false)

		begin(t, p)
		_, err := p.ProduceRun(within(t), all[60:90], nil)
		require.NoError(t, err)
		c.LoseAnswers(26, 1<<30)
		ends := c.Requests(26)
		ctx, cancel := context.WithCancel(within(t))
		var calls sync.WaitGroup
		calls.Go(func() { // ends with the test's patience
			if c.AwaitRequests(within(t), 26, ends+2) == nil {
				cancel()
			}
		})
		err = p.CommitTransaction(ctx)
		require.ErrorIs(t, err, ErrOutcomeUnknown, "never reported committed, nor not committed")
		require.ErrorIs(t, err, context.Canceled)
		calls.Wait()
		require.ErrorIs(t, p.AbortTransaction(within(t)), ErrTransactionEnding, "it may be committed")
		require.ErrorIs(t, p.BeginTransaction(within(t)), ErrTransactionEnding)
		_, err = p.ProduceRun(within(t), numbered(1, 1), nil)
		require.ErrorIs(t, err, ErrTransactionEnding)
		c.LoseAnswers(26, 0)
		require.NoError(t, p.CommitTransaction(within(t)), "confirmed")
		transact(t, p, all[90:], true)
		require.ElementsMatch(t, texts(slices.Concat(all[:30], all[60:])), committed(t, c))
	})
}

func TestP13AnUnknownCommitOfAFencedProducerStaysUnknown(t *testing.T) {
	inBothVersions(t, 1, 1, func(t *testing.T, c *broker.Cluster, _ bool) {
		p := asyncProducer(t, c, txnConfig("x"))
		begin(t, p)
		_, err := p.ProduceRun(within(t), numbered(10, 1), nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(within(t)))
		c.LoseAnswers(26, 1)
		c.Answer(26, func(int32, kmsg.Request) (kmsg.Response, error) { // the first is left to the broker
			c.Answer(26, func(_ int32, r kmsg.Request) (kmsg.Response, error) {
				resp := r.ResponseKind().(*kmsg.EndTxnResponse)
				resp.ErrorCode = 90
				return resp, nil
			})
			return nil, nil
		})
		err = p.CommitTransaction(within(t))
		require.ErrorIs(t, err, ErrProducerFenced)
		require.ErrorIs(t, err, ErrOutcomeUnknown, "the first try committed it")
		require.Len(t, committed(t, c), 10)
	})
}

func TestCloseSaysThatACommitIsUnknown(t *testing.T) {
	c := cluster(t, 1, 1)
	p := asyncProducer(t, c, txnConfig("x"))
	begin(t, p)
	_, err := p.ProduceRun(within(t), numbered(10, 1), nil)
	require.NoError(t, err)
	c.LoseAnswers(26, 1<<30)
	ctx, cancel := context.WithTimeout(within(t), 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.CommitTransaction(ctx), ErrOutcomeUnknown)
	require.ErrorIs(t, p.Close(within(t)), ErrOutcomeUnknown)
}
