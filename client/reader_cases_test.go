package client

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

func TestC1ReaderResumesAfterBrokerRestarts(t *testing.T) {
	b := newReaderBed(t, broker.Options{Nodes: 2}, 1, nil)
	b.write(0, values(0, 10))
	r := b.reader(ReaderConfig{})
	b.expect(r, 0, 10)
	leader := b.cluster.Leader("in", 0)
	step := func(what string, n int, down, up func()) {
		down()
		errors := r.Stats().Errors
		if up != nil {
			require.Eventually(t, func() bool { return r.Stats().Errors > errors }, 10*time.Second, time.Millisecond, what)
			up()
		}
		b.write(0, values(n, n+10))
		b.expect(r, n, n+10)
	}
	step("connections reset", 10, func() { b.cluster.CloseConnections() }, nil)
	step("unreachable for a while", 20, func() { b.cluster.Unreachable(leader) }, b.cluster.Reachable)
	step("stopped, another node leads", 30, func() { require.NoError(t, b.cluster.StopNode(leader)) }, nil)
	step("started again", 40, func() {
		_, err := b.cluster.StartNode(leader)
		require.NoError(t, err)
	}, nil)
	step("an answer is lost", 50, func() { b.cluster.LoseAnswers(1, 1) }, nil)
	require.EqualValues(t, 60, r.Offset())
	require.Zero(t, r.Stats().Resets)
}

// C1: a broker that has just started describes a cluster without brokers for a while.
func TestC1ReaderWaitsForABrokerThatIsStarting(t *testing.T) {
	s := serve(batchOf(t, shape{base: 0}, values(0, 3)))
	whole := s.fetch
	var empty atomic.Int32 // how many answers are to be empty from now on
	var once sync.Once
	s.fetch = func(raw rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		first := false
		once.Do(func() { first = true })
		if first {
			empty.Store(10) // more than a refresh tries
			p.ErrorCode = 6 // NOT_LEADER_OR_FOLLOWER
			return nil
		}
		return whole(raw, ask, p)
	}
	s.more = func(m *kmsg.MetadataResponse) {
		if empty.Add(-1) >= 0 {
			m.Brokers = nil
		}
	}
	r, ctx := s.start(t, ReaderConfig{}, nil)
	require.Equal(t, []int64{0, 1, 2}, offsets(t, ctx, r, 3))
	require.Negative(t, empty.Load(), "it asked until there was a broker")
	require.Greater(t, r.Stats().Errors, int64(2), "refreshes failed meanwhile")
}

func TestReaderFollowsTheLeader(t *testing.T) {
	b := newReaderBed(t, broker.Options{Nodes: 3}, 1, nil)
	r := b.reader(ReaderConfig{})
	for i := range 9 {
		require.NoError(t, b.cluster.MoveLeader("in", 0, int32(i%3)))
		b.write(0, values(10*i, 10*i+10))
		b.expect(r, 10*i, 10*i+10)
	}
}

// M3: the answer of the broker that is not the leader any more names the new one.
func TestM3ReaderTakesTheHint(t *testing.T) {
	b := newReaderBed(t, broker.Options{Nodes: 2}, 1, nil)
	b.write(0, values(0, 10))
	require.NoError(t, b.cluster.MoveLeader("in", 0, 1-b.cluster.Leader("in", 0)))
	asked := b.cluster.Requests(3)
	r := b.reader(ReaderConfig{StartOffset: 4})
	b.expect(r, 4, 10)
	require.Equal(t, asked, b.cluster.Requests(3), "without asking for metadata")
	require.EqualValues(t, 1, r.Stats().Errors)
}

func TestReaderRetriesWhatMayPass(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, nil)
	b.write(0, values(0, 20))
	for _, err := range []*wire.KafkaError{wire.ErrNotLeaderOrFollower, wire.ErrLeaderNotAvailable, wire.ErrUnknownLeaderEpoch,
		wire.ErrFencedLeaderEpoch, wire.ErrUnknownTopicOrPartition, wire.ErrKafkaStorage} {
		fetches := b.cluster.Fail(broker.Failure{Key: 1, Code: err.Code, Count: 2, Topic: "in"})
		lists := b.cluster.Fail(broker.Failure{Key: 2, Code: err.Code, Count: 2, Topic: "in"})
		r := b.reader(ReaderConfig{})
		b.expect(r, 0, 20)
		require.Equal(t, 2, fetches.Hits(), err)
		require.Equal(t, 2, lists.Hits(), err)
		require.NoError(t, r.Close())
	}
}

func TestC2CompactedTailAndEmptyBatch(t *testing.T) {
	s := serve(
		batchOf(t, shape{base: 0, lastDelta: 9}, values(0, 3)), // offsets 3 to 9 are gone
		emptied(10, 89),
		batchOf(t, shape{base: 100}, values(100, 102)),
		emptied(102, 97), // the tail up to 199
	)
	r, ctx := s.start(t, ReaderConfig{}, nil)
	require.Equal(t, []int64{0, 1, 2, 100, 101}, offsets(t, ctx, r, 5))
	waiting, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := r.FetchMessage(waiting)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualValues(t, 200, r.Offset(), "base + last offset delta + 1")
	require.Zero(t, r.Lag())
	require.Less(t, len(s.asked()), 100, "no loop: only long polls at the end of the log")
}

// An answer with an empty batch only, and the reader asks on behind it.
func TestC2OnlyAnEmptyBatch(t *testing.T) {
	s := &script{last: 50}
	s.fetch = func(_ rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		switch ask.FetchOffset {
		case 0:
			p.RecordBatches = emptied(0, 39)
		case 40:
			p.RecordBatches = batchOf(t, shape{base: 40}, values(40, 50))
		}
		return nil
	}
	r, ctx := s.start(t, ReaderConfig{}, nil)
	require.Equal(t, []int64{40, 41}, offsets(t, ctx, r, 2))
}

func TestC3ControlAndAbortedBatchesAdvance(t *testing.T) {
	log := [][]byte{
		marker(t, 0, 7, record.Commit),
		inTxn(t, 1, 8, values(1, 3)),
		inTxn(t, 3, 9, values(3, 5)),
		marker(t, 5, 8, record.Abort),
		inTxn(t, 6, 8, values(6, 8)),
		marker(t, 8, 9, record.Commit),
		marker(t, 9, 8, record.Commit),
		batchOf(t, shape{base: 10}, values(10, 11)),
		inTxn(t, 11, 8, values(11, 15)),
		marker(t, 15, 8, record.Abort),
	}
	for _, row := range []struct {
		level IsolationLevel
		want  []int64
	}{
		{ReadUncommitted, []int64{1, 2, 3, 4, 6, 7, 10, 11, 12, 13, 14}},
		{ReadCommitted, []int64{3, 4, 6, 7, 10}},
	} {
		s := serve(log...)
		whole := s.fetch
		s.fetch = func(raw rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
			whole(raw, ask, p)
			if row.level == ReadCommitted {
				p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 8, FirstOffset: 11}, {ProducerID: 8, FirstOffset: 1}}
			}
			return nil
		}
		r, ctx := s.start(t, ReaderConfig{}, func(c *Config) { c.Consumer.IsolationLevel = row.level })
		require.Equal(t, row.want, offsets(t, ctx, r, len(row.want)))
		waiting, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		_, err := r.FetchMessage(waiting)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 16, r.Offset(), "%v: the position is behind the last marker", row.level)
		require.EqualValues(t, row.level, s.asked()[0].IsolationLevel)
	}
}

func TestC4OutOfRange(t *testing.T) {
	rows := []struct {
		what   string
		policy string
		start  int64
		want   []int64
	}{
		{"below the log, earliest", "earliest", 1, []int64{40, 41}},
		{"beyond the log, earliest", "earliest", 500, []int64{40, 41}},
		{"below the log, latest", "latest", 1, []int64{100, 101}},
		{"beyond the log, latest", "latest", 500, []int64{100, 101}},
		{"below the log, error", "error", 1, nil},
		{"beyond the log, error", "error", 500, nil},
	}
	for _, row := range rows {
		b := newReaderBed(t, broker.Options{}, 1, func(c *Config) { c.Consumer.OutOfRange = row.policy })
		for i := 0; i < 100; i += 10 {
			b.write(0, values(i, i+10))
		}
		require.NoError(t, b.cluster.DeleteRecords("in", 0, 40))
		r := b.reader(ReaderConfig{StartOffset: row.start})
		if row.want == nil {
			_, err := r.FetchMessage(b.ctx)
			var read *ReadError
			require.ErrorAs(t, err, &read, row.what)
			var out *OffsetOutOfRangeError
			require.ErrorAs(t, err, &out, row.what)
			require.Equal(t, OffsetOutOfRangeError{row.start, 40, 100}, *out)
			require.ErrorIs(t, err, wire.ErrOffsetOutOfRange)
			_, again := r.FetchMessage(b.ctx)
			require.Equal(t, err, again, "it stands still and says so")
			require.NoError(t, r.SetOffset(99))
			b.expect(r, 99, 100)
			continue
		}
		require.Eventually(t, func() bool { return r.Stats().Resets == 1 }, 10*time.Second, time.Millisecond, row.what)
		b.write(0, values(100, 102))
		require.Equal(t, row.want, offsets(t, b.ctx, r, 2), row.what)
	}
}

// A broker that says "out of range" about an offset that is in the log, by ListOffsets at the
// leader, must not move the position.
func TestC4WronglyOutOfRangeDoesNotReset(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, func(c *Config) { c.Consumer.OutOfRange = "latest" })
	b.write(0, values(0, 20))
	fault := b.cluster.Fail(broker.Failure{Key: 1, Code: wire.ErrOffsetOutOfRange.Code, Count: 5, Topic: "in"})
	r := b.reader(ReaderConfig{StartOffset: 7})
	b.expect(r, 7, 20)
	require.Equal(t, 5, fault.Hits())
	require.Zero(t, r.Stats().Resets)
}

// ListOffsets failing while the position is being decided must not move it either.
func TestC4FailingListOffsetsDoesNotReset(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, func(c *Config) { c.Consumer.OutOfRange = "earliest" })
	b.write(0, values(0, 20))
	require.NoError(t, b.cluster.DeleteRecords("in", 0, 10))
	fault := b.cluster.Fail(broker.Failure{Key: 2, Code: wire.ErrLeaderNotAvailable.Code, Count: 5, Topic: "in"})
	r := b.reader(ReaderConfig{StartOffset: 7})
	b.expect(r, 10, 20)
	require.Equal(t, 5, fault.Hits())
	require.EqualValues(t, 1, r.Stats().Resets)
}

func TestC8NullAndEmptyStayDistinct(t *testing.T) {
	msgs := []msg{
		{},
		{key: []byte{}, value: []byte{}},
		{key: []byte{}, headers: []Header{{Key: "", Value: nil}, {Key: "h", Value: []byte{}}, {Key: "h", Value: []byte("v")}}},
		{value: []byte{}},
	}
	b := newReaderBed(t, broker.Options{}, 1, nil)
	b.write(0, msgs)
	check := func(i int, m Message) {
		require.Equal(t, msgs[i].key, m.Key)
		require.Equal(t, msgs[i].value, m.Value)
		require.Equal(t, msgs[i].headers, m.Headers)
	}
	r := b.reader(ReaderConfig{})
	for i := range msgs {
		m, err := r.FetchMessage(b.ctx)
		require.NoError(t, err)
		check(i, m)
	}
	require.NoError(t, r.SetOffset(0))
	buf := make([]Message, 10)
	n, err := r.FetchBatch(b.ctx, buf)
	require.NoError(t, err)
	require.Equal(t, len(msgs), n)
	for i := range msgs {
		check(i, buf[i])
	}
}

func TestC9RecordLargerThanMaxBytes(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, func(c *Config) {
		c.Consumer.MaxBytes, c.Consumer.MaxPartitionBytes = 1000, 500
	})
	large := make([]byte, 100_000)
	b.write(0, []msg{{value: large}})
	b.write(0, []msg{{value: []byte("small")}})
	r := b.reader(ReaderConfig{QueueBytes: 100})
	m, err := r.FetchMessage(b.ctx)
	require.NoError(t, err)
	require.Equal(t, large, m.Value)
	m, err = r.FetchMessage(b.ctx)
	require.NoError(t, err)
	require.Equal(t, "small", string(m.Value))
}

func TestC9PartialBatch(t *testing.T) {
	log := [][]byte{batchOf(t, shape{base: 0}, values(0, 2)), batchOf(t, shape{base: 2}, []msg{{value: make([]byte, 5000)}}), batchOf(t, shape{base: 3}, values(3, 4))}
	rows := []struct {
		what  string
		least int // however little is asked for
		most  int // fetches until everything is read
	}{
		{"cut at what was asked for, as brokers before Kafka 0.10.1 do", 0, 20},
		{"cut within the first bytes of a batch", 5, 30},
	}
	for _, row := range rows {
		s := &script{last: 4}
		s.fetch = func(_ rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
			all := logFrom(log, ask.FetchOffset)
			p.RecordBatches = all[:min(len(all), max(int(ask.PartitionMaxBytes), row.least))]
			return nil
		}
		r, ctx := s.start(t, ReaderConfig{}, func(c *Config) { c.Consumer.MaxPartitionBytes = 10 })
		require.Equal(t, []int64{0, 1, 2, 3}, offsets(t, ctx, r, 4), row.what)
		require.Less(t, len(s.asked()), row.most, row.what)
		require.Zero(t, r.Stats().Errors, row.what)
	}
}

func TestC9BatchLargerThanAnyAnswer(t *testing.T) {
	log := [][]byte{batchOf(t, shape{base: 0}, []msg{{value: make([]byte, 300_000)}})}
	s := &script{last: 1}
	s.fetch = func(_ rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		p.RecordBatches = log[0][:min(len(log[0]), int(ask.PartitionMaxBytes))]
		return nil
	}
	r, ctx := s.start(t, ReaderConfig{}, func(c *Config) { c.Net.MaxResponseBytes = 200_000 })
	_, err := r.FetchMessage(ctx)
	require.ErrorIs(t, err, errCut)
	require.ErrorContains(t, err, "net.maxResponseBytes")
	require.Less(t, len(s.asked()), 10, "no spin")
}

func TestC10FollowerIsLeftForTheLeader(t *testing.T) {
	// The leader sends those who name their rack to node 5, which does not exist.
	s := serve(batchOf(t, shape{base: 0}, values(0, 3)))
	whole := s.fetch
	s.fetch = func(raw rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		if req, ok := raw.Decode().(*kmsg.FetchRequest); ok && req.Rack == "here" {
			p.PreferredReadReplica = 5
			return nil
		}
		return whole(raw, ask, p)
	}
	r, ctx := s.start(t, ReaderConfig{}, func(c *Config) { c.Consumer.Rack = "here" })
	require.Equal(t, []int64{0, 1, 2}, offsets(t, ctx, r, 3))
	require.EqualValues(t, 1, r.Stats().Errors)
}

func TestReaderReadsFromTheFollowerNamed(t *testing.T) {
	follower := serve(batchOf(t, shape{base: 0}, values(0, 3)), batchOf(t, shape{base: 3}, values(3, 6)))
	srv, err := rawserver.Start(rawserver.Script{Handle: func(req rawserver.Request) rawserver.Reply { return follower.handle("", req) }})
	require.NoError(t, err)
	t.Cleanup(srv.Close)

	leader := &script{last: 6}
	leader.fetch = func(_ rawserver.Request, _ kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		p.PreferredReadReplica = 1
		return nil
	}
	leader.more = func(m *kmsg.MetadataResponse) { m.Brokers = append(m.Brokers, brokerAt(1, srv.Addr())) }
	r, ctx := leader.start(t, ReaderConfig{}, func(c *Config) { c.Consumer.Rack = "here" })
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5}, offsets(t, ctx, r, 6))
	require.Len(t, leader.asked(), 1)
	require.NotEmpty(t, follower.asked())
	srv.Close() // and when it is gone, back to the leader
	require.Eventually(t, func() bool {
		asked := leader.asked()
		return len(asked) > 1 && asked[len(asked)-1].Rack == ""
	}, 10*time.Second, time.Millisecond)
}
