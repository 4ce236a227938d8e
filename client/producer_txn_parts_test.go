package client

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

// What is asked about offsets: by topic, with what the caller said of each.
func TestOffsetsAreAskedForByTopic(t *testing.T) {
	topics := offsetTopics([]GroupOffset{
		{Topic: "a", Partition: 1, Offset: 5, LeaderEpoch: 3, Metadata: "m"}, {Topic: "b", Partition: 0, Offset: 6}, {Topic: "a", Partition: 0, Offset: 7},
	})
	require.Len(t, topics, 2)
	require.Equal(t, "a", topics[0].Topic)
	require.Len(t, topics[0].Partitions, 2)
	p := topics[0].Partitions[0]
	require.Equal(t, []any{int32(1), int64(5), int32(3), "m"}, []any{p.Partition, p.Offset, p.LeaderEpoch, *p.Metadata})
	p = topics[1].Partitions[0]
	require.Equal(t, []any{int32(0), int64(6), int32(-1), ""}, []any{p.Partition, p.Offset, p.LeaderEpoch, *p.Metadata})
}

// Only what the answer says of everything that was asked is a yes.
func TestAnswersAboutPartitionsOfATransaction(t *testing.T) {
	type part struct {
		n    int32
		code int16
	}
	for _, tc := range []struct {
		sentence string
		answer   []part
		want     error
	}{
		{"all taken", []part{{0, 0}, {1, 0}}, nil},
		{"in another order", []part{{1, 0}, {0, 0}}, nil},
		{"one refused", []part{{0, 0}, {1, 29}}, wire.ErrTopicAuthorizationFailed},
		{"one left out", []part{{0, 0}}, errLeftOut},
		{"what was not tried is not the reason, before it", []part{{0, 55}, {1, 29}}, wire.ErrTopicAuthorizationFailed},
		{"nor after it", []part{{0, 29}, {1, 55}}, wire.ErrTopicAuthorizationFailed},
	} {
		t.Run(tc.sentence, func(t *testing.T) {
			var added kmsg.AddPartitionsToTxnResponse
			var taken kmsg.TxnOffsetCommitResponse
			at, tt := kmsg.NewAddPartitionsToTxnResponseTopic(), kmsg.NewTxnOffsetCommitResponseTopic()
			at.Topic, tt.Topic = "t", "t"
			for _, a := range tc.answer {
				ap, tp := kmsg.NewAddPartitionsToTxnResponseTopicPartition(), kmsg.NewTxnOffsetCommitResponseTopicPartition()
				ap.Partition, ap.ErrorCode, tp.Partition, tp.ErrorCode = a.n, a.code, a.n, a.code
				at.Partitions, tt.Partitions = append(at.Partitions, ap), append(tt.Partitions, tp)
			}
			added.Topics, taken.Topics = append(added.Topics, at), append(taken.Topics, tt)
			err := partitionsAdded(&added, []*partitionProducer{{topic: "t"}, {topic: "t", number: 1}})
			require.ErrorIs(t, err, tc.want)
			if tc.answer[0].code == 55 { // of offsets each has its own reason
				return
			}
			require.ErrorIs(t, offsetsTaken(&taken, []GroupOffset{{Topic: "t"}, {Topic: "t", Partition: 1}}), tc.want)
		})
	}
}

func TestAPartitionThatAskedTwiceIsNamedOnce(t *testing.T) {
	a, b := &partitionProducer{topic: "t"}, &partitionProducer{topic: "t", number: 1}
	topics := partitionTopics([]*partitionProducer{a, b, a})
	require.Len(t, topics, 1)
	require.Equal(t, []int32{0, 1}, topics[0].Partitions)
}

// KIP-447: the coordinator is told which member commits.
func TestTheMemberIsTold(t *testing.T) {
	c := cluster(t, 1, 1)
	var seen atomic.Pointer[kmsg.TxnOffsetCommitRequest]
	c.Observe(28, func(_ int32, r kmsg.Request) { seen.Store(r.(*kmsg.TxnOffsetCommitRequest)) })
	p := asyncProducer(t, c, txnConfig("x"))
	for _, tc := range []struct {
		group      GroupMetadata
		member     string
		generation int32
		instance   string
	}{
		{GroupMetadata{GroupID: "g"}, "", -1, ""},
		{GroupMetadata{GroupID: "g", GenerationID: 7}, "", -1, ""}, // not looked at without a member
		{GroupMetadata{GroupID: "g", MemberID: "m", GenerationID: 7, InstanceID: "i"}, "m", 7, "i"},
	} {
		begin(t, p)
		_ = p.SendOffsetsToTransaction(within(t), []GroupOffset{{Topic: "t", Offset: 1}}, tc.group) // whether the broker knows the member is not the question
		require.NoError(t, p.AbortTransaction(within(t)))
		r := seen.Load()
		require.Equal(t, tc.member, r.MemberID)
		require.Equal(t, tc.generation, r.Generation)
		if tc.instance == "" {
			require.Nil(t, r.InstanceID)
		} else {
			require.Equal(t, tc.instance, *r.InstanceID)
		}
	}
	before := c.Requests(28)
	begin(t, p)
	require.NoError(t, p.SendOffsetsToTransaction(within(t), nil, GroupMetadata{GroupID: "g"}))
	require.Equal(t, before, c.Requests(28), "of none nobody is asked")
}

// What the coordinator may have heard of, though its answer never came, it has to be told the end of.
func TestWhatWasAskedForIsEnded(t *testing.T) {
	inBothVersions(t, 1, 1, func(t *testing.T, c *broker.Cluster, second bool) {
		p := asyncProducer(t, c, txnConfig("x"))
		transact(t, p, numbered(1, 1), true) // everything is known
		ends := c.Requests(26)
		key := int16(24) // partitions added
		if second {
			key = 28 // offsets, which add themselves
		}
		begin(t, p)
		asked := c.Requests(key)
		c.LoseAnswers(key, 1<<30)
		var calls tally
		if second {
			ctx, cancel := context.WithTimeout(within(t), 200*time.Millisecond)
			defer cancel()
			require.Error(t, p.SendOffsetsToTransaction(ctx, []GroupOffset{{Topic: "t", Offset: 1}}, GroupMetadata{GroupID: "g"}))
		} else {
			_, err := p.ProduceRun(within(t), numbered(1, 1), &calls)
			require.NoError(t, err)
		}
		require.NoError(t, c.AwaitRequests(within(t), key, asked+1))
		require.NoError(t, p.AbortTransaction(within(t)))
		require.Greater(t, c.Requests(26), ends) // more than once where the connection that is reset carries it
		c.LoseAnswers(key, 0)
		begin(t, p)
		require.NoError(t, p.SendOffsetsToTransaction(within(t), []GroupOffset{{Topic: "t", Offset: 1}}, GroupMetadata{GroupID: "g"}))
		require.True(t, p.txn.machine.begun, "the coordinator has a transaction: that there is none would be no answer to an abort")
		require.NoError(t, p.AbortTransaction(within(t)))
	})
	m := txnMachine{state: txnAborting, asked: true}
	require.True(t, m.absent(), "it may not have heard of it")
	m.begun = true
	require.False(t, m.absent())
}

// Partitions are not added while the transaction is being ended: what came behind would belong to none
// that ever ends.
func TestTheEndWaitsForPartitionsBeingAdded(t *testing.T) {
	c, err := broker.Start(broker.Options{Version: "3.9"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.CreateTopic("t", 1, nil))
	p := asyncProducer(t, c, txnConfig("x"))
	begin(t, p)
	_, err = p.ProduceRun(within(t), numbered(1, 1), nil)
	require.NoError(t, err)
	require.NoError(t, p.Flush(within(t)))
	p.txn.adding.Lock()
	done := make(chan error, 1)
	go func() { done <- p.AbortTransaction(within(t)) }() // ends after Unlock; received below
	require.Eventually(t, func() bool { return p.txn.doom() != nil }, patience, time.Millisecond)
	select {
	case err := <-done:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	require.Zero(t, c.Requests(26))
	p.txn.adding.Unlock()
	require.NoError(t, <-done)
	require.EqualValues(t, 1, c.Requests(26))
}

// Where a cap of the user's leaves no room for the requests of transactions v2, v1 is spoken.
func TestTransactionsV1WhereAVersionCapsThem(t *testing.T) {
	c := cluster(t, 1, 2)
	produces, ends := versionsSeen(c, 0), versionsSeen(c, 26)
	cfg := txnConfig("x")
	cfg.Version = Version{3, 9}
	p := asyncProducer(t, c, cfg)
	transact(t, p, numbered(60, 10), true)
	require.LessOrEqual(t, produces()[0], int16(wire.LastProduceTxnV1))
	require.LessOrEqual(t, ends()[0], int16(wire.LastEndTxnTxnV1))
	require.Positive(t, c.Requests(24))
	require.Len(t, committed(t, c), 60)
}

// What a transaction leaves in the pipeline's hands, by itself.
func TestATransactionInThePipeline(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	withTxn(t, b, func(c *Config) { c.Producer.Flush.Frequency = time.Hour }, func(t *testing.T, p *AsyncProducer, s *txnScript) {
		out := b.send(t, p, s.start, to(0, "a"))
		_, err := out.of("a")
		require.NoError(t, err)
		pp := p.parts[0]
		_, err = p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "b")}, nil)
		require.NoError(t, err)
		pp.taken = -1
		p.txn.doomed.Store(&errOfTest)
		taken, more, _ := pp.takeBatch(pp.broker, pp.on, identity{}, time.Now(), 1<<20)
		require.Nil(t, taken, "nothing leaves in a doomed transaction")
		require.True(t, more, "sweep comes for it")
		p.txn.doomed.Store(nil)
		require.NoError(t, p.AbortTransaction(context.Background()))

		p.txn.pending = append(p.txn.pending, pp)
		require.NoError(t, p.BeginTransaction(context.Background()))
		require.Empty(t, p.txn.pending, "what was to be added to the last one is not to be to this")

		p.txn.second.Store(true)
		_, err = p.txn.prepare(wire.LastProduceTxnV1)
		require.ErrorContains(t, err, "upgrade the broker", "an old broker in a cluster with transactions v2")
		p.txn.second.Store(false)
	})
}
