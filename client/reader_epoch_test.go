package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

// truncating is a broker whose log has ten messages of epoch 3 until a reader has come to its end.
// Then another leader, of epoch 5, has only the first six of them, and three others behind those.
type truncating struct {
	script
	t testing.TB
	// told says how the broker lets the reader know: a diverging epoch in the answer to Fetch, or
	// FENCED_LEADER_EPOCH, so that the reader looks at the epochs.
	inFetch bool
	moved   bool // guarded by mu
}

func newTruncating(t testing.TB, inFetch bool) *truncating {
	s := &truncating{t: t, inFetch: inFetch}
	s.last = 10
	s.fetch = s.answer
	s.more = func(m *kmsg.MetadataResponse) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.moved && !s.inFetch {
			m.Topics[0].Partitions[0].LeaderEpoch = 5
		}
	}
	s.epochs = func(ask kmsg.OffsetForLeaderEpochRequestTopicPartition, p *kmsg.OffsetForLeaderEpochResponseTopicPartition) {
		require.EqualValues(t, 3, ask.LeaderEpoch)
		p.LeaderEpoch, p.EndOffset = 3, 6
	}
	return s
}

func (s *truncating) answer(_ rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.moved && ask.FetchOffset < 10:
		p.RecordBatches = logFrom([][]byte{batchOf(s.t, shape{base: 0}, values(0, 6)), batchOf(s.t, shape{base: 6}, values(6, 10))}, ask.FetchOffset)
		return nil
	case !s.moved:
		s.moved = true
	}
	s.last, p.HighWatermark = 9, 9
	switch {
	case ask.FetchOffset == 6:
		p.RecordBatches = batchOf(s.t, shape{base: 6}, values(106, 109))
	case ask.FetchOffset < 9:
		p.RecordBatches = logFrom([][]byte{batchOf(s.t, shape{base: 0}, values(0, 6)), batchOf(s.t, shape{base: 6}, values(106, 109))}, ask.FetchOffset)
	case s.inFetch && ask.FetchOffset > 9 && ask.LastFetchedEpoch == 3:
		p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = 3, 6
	case !s.inFetch && ask.CurrentLeaderEpoch < 5:
		p.ErrorCode = wire.ErrFencedLeaderEpoch.Code
	}
	return nil
}

// KIP-320: where the log was truncated behind the reader's back it goes on where the logs part, and
// says so when it must not.
func TestReaderNoticesTruncation(t *testing.T) {
	rows := []struct {
		what    string
		inFetch bool
		policy  string
	}{
		{"by the epochs of the new leader, earliest", false, "earliest"},
		{"by the epochs of the new leader, latest", false, "latest"},
		{"by the epochs of the new leader, error", false, "error"},
		{"in the answer to Fetch, earliest", true, "earliest"},
		{"in the answer to Fetch, error", true, "error"},
	}
	for _, row := range rows {
		t.Run(row.what, func(t *testing.T) {
			s := newTruncating(t, row.inFetch)
			r, ctx := s.start(t, ReaderConfig{}, func(c *Config) { c.Consumer.OutOfRange = row.policy })
			require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, offsets(t, ctx, r, 10))
			if row.policy == "error" {
				_, err := r.FetchMessage(ctx)
				var truncated *LogTruncatedError
				require.ErrorAs(t, err, &truncated)
				require.Equal(t, LogTruncatedError{Offset: 10, Epoch: 3, End: 6, EndEpoch: 3}, *truncated)
				require.ErrorContains(t, err, "offset 10")
				require.ErrorContains(t, err, "offset 6")
				require.NoError(t, r.SetOffset(6))
			}
			for i := range 3 {
				m, err := r.FetchMessage(ctx)
				require.NoError(t, err)
				require.EqualValues(t, 6+i, m.Offset)
				require.Equal(t, string(values(106+i, 107+i)[0].value), string(m.Value), "of the log that there is")
			}
		})
	}
}

// A position that comes with the epoch of what was read before it is checked before anything is
// fetched, as a member of a group finds it committed.
func TestReaderChecksTheEpochOfACommittedPosition(t *testing.T) {
	noSuchVersion := map[int16]wire.Range{}
	for key, versions := range wire.Versions {
		noSuchVersion[key] = versions
	}
	noSuchVersion[keyOffsetForLeaderEpoch] = wire.Range{Min: 2, Max: 2}
	rows := []struct {
		what       string
		end        int64
		endEpoch   int32
		failures   int
		versions   map[int16]wire.Range
		first      int64
		asked      int
		resets     int64
		batchEpoch int32
	}{
		{"the log is the same", 9, 3, 0, nil, 8, 1, 0, 3},
		{"it ends where the position is", 8, 3, 0, nil, 8, 1, 0, 3},
		{"it parts before the position", 5, 2, 0, nil, 5, 1, 1, 3},
		{"the leader knows nothing about it", -1, -1, 0, nil, 8, 1, 0, 3},
		{"the leader is not one, for a while", 9, 3, 3, nil, 8, 4, 0, 3},
		{"the broker does not let clients ask", 0, 0, 0, noSuchVersion, 8, 0, 0, 3},
		{"what was read before is of the leader itself", 0, 0, 0, nil, 8, 0, 0, 4},
	}
	for _, row := range rows {
		t.Run(row.what, func(t *testing.T) {
			s := serve(batchOf(t, shape{base: 0}, values(0, 5)), batchOf(t, shape{base: 5}, values(5, 8)), batchOf(t, shape{base: 8}, values(8, 10)))
			s.versions = row.versions
			asked := 0 // of the script's goroutine, one request after the other; read at the end
			s.epochs = func(ask kmsg.OffsetForLeaderEpochRequestTopicPartition, p *kmsg.OffsetForLeaderEpochResponseTopicPartition) {
				require.Empty(t, s.asked(), "nothing is fetched before")
				require.Equal(t, [2]int32{3, 4}, [2]int32{ask.LeaderEpoch, ask.CurrentLeaderEpoch})
				if asked++; asked <= row.failures {
					p.ErrorCode = wire.ErrNotLeaderOrFollower.Code
				}
				p.LeaderEpoch, p.EndOffset = row.endEpoch, row.end
			}
			r, ctx := s.start(t, ReaderConfig{StartOffset: LastOffset}, func(c *Config) { c.Consumer.OutOfRange = "earliest" })
			in := topicPartition{"in", 0}
			require.Eventually(t, func() bool { return r.Offset() == 10 }, 10*time.Second, time.Millisecond)
			r.revoke([]topicPartition{in})
			require.Eventually(t, func() bool { return r.idleSources() == 0 }, 10*time.Second, time.Millisecond)
			s.forget()
			r.assign(1, []assignedAt{{in, 8, row.batchEpoch}})
			m, err := r.FetchMessage(ctx)
			require.NoError(t, err)
			require.Equal(t, row.first, m.Offset)
			require.NoError(t, r.Close())
			require.Equal(t, row.asked, asked)
			require.Equal(t, row.resets, r.Stats().Resets)
		})
	}
}

// idleSources is how many sources there are.
func (r *Reader) idleSources() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sources)
}

// What a broker says of diverging logs without having been told of one is a fault of its own: it
// neither moves the position nor is it believed for ever.
func TestReaderRefusesSenselessDivergence(t *testing.T) {
	rows := []struct {
		what  string
		start int64
		epoch int32
		end   int64
	}{
		{"from a log that it was not told of", 5, 3, 2},
		{"without an end", 0, 3, -1},
		{"without an epoch", 0, -1, 2},
	}
	for _, row := range rows {
		s := serve(batchOf(t, shape{base: 0}, values(0, 5)))
		whole := s.fetch
		s.fetch = func(raw rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
			whole(raw, ask, p)
			if ask.FetchOffset == 5 {
				p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = row.epoch, row.end
				p.RecordBatches = []byte{}
			}
			return nil
		}
		r, ctx := s.start(t, ReaderConfig{StartOffset: row.start}, func(c *Config) { c.Consumer.OutOfRange = "earliest" })
		if row.start == 0 {
			offsets(t, ctx, r, 5)
		}
		_, err := r.FetchMessage(ctx)
		require.ErrorIs(t, err, errDiverging, row.what)
		require.EqualValues(t, 5, r.Offset(), row.what)
		require.Less(t, len(s.asked()), 10, row.what)
	}
}

// A broker that says again and again that the log was truncated is asked with pauses, and what it
// says takes no memory.
func TestReaderIsNotHurriedByTruncation(t *testing.T) {
	s := serve(batchOf(t, shape{base: 0}, values(0, 5)))
	whole := s.fetch
	s.fetch = func(raw rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		if ask.LastFetchedEpoch < 0 {
			return whole(raw, ask, p)
		}
		p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = 1, ask.FetchOffset
		return nil
	}
	r, ctx := s.start(t, ReaderConfig{}, func(c *Config) {
		c.Consumer.OutOfRange = "earliest"
		c.Consumer.ReadBackoffMin, c.Consumer.ReadBackoffMax = 20*time.Millisecond, 20*time.Millisecond
	})
	begin := time.Now()
	require.Eventually(t, func() bool { return r.Stats().Resets >= 10 }, 10*time.Second, time.Millisecond)
	require.GreaterOrEqual(t, time.Since(begin), 180*time.Millisecond)
	r.mu.Lock()
	queued := r.queue.n
	r.mu.Unlock()
	require.LessOrEqual(t, queued, 2, "the messages, and one move")
	offsets(t, ctx, r, 5)
}

// The leader moves on a broker whose log is what it was: the epochs are looked at, and nothing
// comes twice or is missed.
func TestReaderChecksEpochsWhenTheLeaderMoves(t *testing.T) {
	b := newReaderBed(t, broker.Options{Nodes: 3}, 1, nil)
	r := b.reader(ReaderConfig{})
	for i := range 6 {
		b.write(0, values(10*i, 10*i+10))
		b.expect(r, 10*i, 10*i+10)
		require.NoError(t, b.cluster.MoveLeader("in", 0, int32(i%3)))
	}
	require.Positive(t, b.cluster.Requests(keyOffsetForLeaderEpoch))
	require.Zero(t, r.Stats().Resets)
}

// M6: a topic that was deleted and made again has another id. Its offsets mean nothing any more,
// though the broker has them.
func TestM6ReaderOfATopicMadeAgain(t *testing.T) {
	for _, policy := range []string{"earliest", "latest", "error"} {
		b := newReaderBed(t, broker.Options{}, 1, func(c *Config) {
			c.Consumer.OutOfRange = policy
			c.Consumer.ReadBackoffMin, c.Consumer.ReadBackoffMax = 300*time.Millisecond, 300*time.Millisecond
		})
		b.write(0, values(0, 20))
		r := b.reader(ReaderConfig{})
		b.expect(r, 0, 20)
		require.NoError(t, b.cluster.DeleteTopic("in"))
		require.NoError(t, b.cluster.CreateTopic("in", 1, nil))
		b.write(0, values(1000, 1030))
		if policy == "error" {
			_, err := r.FetchMessage(b.ctx)
			var again *TopicRecreatedError
			require.ErrorAs(t, err, &again)
			require.Equal(t, TopicRecreatedError{"in", 20}, *again)
			require.NoError(t, r.SetOffset(25), "leads on in the new topic")
			b.expect(r, 1025, 1030)
			continue
		}
		require.Eventually(t, func() bool { return r.Stats().Resets == 1 && r.Offset() >= 0 }, 10*time.Second, time.Millisecond)
		first := 1000
		if policy == "latest" {
			first += int(r.Offset()) // the end, as it was when the reader came to see it
		}
		b.write(0, values(1030, 1035))
		b.expect(r, first, 1035)
	}
}
