package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/workloads/broker"
)

// Messages may be given in any order, of any partitions: each partition is committed up to the last.
func TestCommitsOfMessagesInAnyOrder(t *testing.T) {
	c := newCrew(t, broker.Options{}, 2, nil)
	c.writeAll(2, 0, 10)
	h := c.member(ReaderConfig{})
	read := map[int32][]Message{}
	for range 20 {
		m, err := h.r.FetchMessage(c.ctx)
		require.NoError(t, err)
		read[m.Partition] = append(read[m.Partition], m)
	}
	require.NoError(t, h.r.CommitMessages(c.ctx, read[0][2], read[1][4], read[0][6], read[0][1], read[1][5], read[1][3]))
	require.Equal(t, []int64{7, 6}, c.committed(0, 1))
}

func TestAMessageIsCoveredByTheNext(t *testing.T) {
	first := Message{Topic: "t", Partition: 1, Offset: 5, assignment: 3}
	for _, row := range []struct {
		says   string
		change func(*Message)
		want   bool
	}{
		{"a later one of the same partition", func(m *Message) { m.Offset = 9 }, true},
		{"an earlier one", func(m *Message) { m.Offset = 4 }, false},
		{"one of another partition", func(m *Message) { m.Partition = 2 }, false},
		{"one of another topic", func(m *Message) { m.Topic = "u" }, false},
		{"one that was read under another assignment", func(m *Message) { m.assignment = 4 }, false},
	} {
		next := first
		row.change(&next)
		require.Equal(t, row.want, follows(&first, &next), row.says)
	}
}

func TestCommitsOnTheIntervalSayThatTheContextHasEnded(t *testing.T) {
	c := newCrew(t, broker.Options{}, 1, func(c *Config) { c.Consumer.Group.CommitInterval = time.Hour })
	c.writeAll(1, 0, 1)
	h := c.member(ReaderConfig{})
	m := h.read(0)
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	require.ErrorIs(t, h.r.CommitMessages(ctx, m), context.Canceled)
}

// A partition whose assignment has ended, or ends without a commit, is named once however many of its
// messages were given, and each message counts.
func TestWhatIsNotCommittedIsNamedOnce(t *testing.T) {
	held, ends := group.Partition{Topic: "t", ID: 1}, group.Partition{Topic: "t", ID: 2}
	m := &membership{r: &Reader{client: new(Client)}, book: group.NewBook(), ending: map[group.Partition]bool{}}
	m.book.Open(held, 7, -1)
	m.book.Open(ends, 7, -1)
	of := func(partition int32, offset int64, assignment int32) Message {
		return Message{Topic: "t", Partition: partition, Offset: offset, assignment: assignment}
	}
	marks, stale, err := m.mark([]Message{of(3, 5, 6), of(1, 2, 6), of(3, 4, 6), of(1, 9, 7), of(2, 3, 7)})
	require.NoError(t, err)
	require.Equal(t, []TopicPartition{{"t", 3}, {"t", 1}}, stale)
	require.EqualValues(t, 3, m.r.Stats().StaleCommits)
	require.Len(t, marks, 2)

	require.Empty(t, m.late(marks), "they wait for their commit")
	m.ending[ends] = true
	require.Equal(t, []TopicPartition{{"t", 2}}, m.late(marks), "no generation will come for it")
	m.book.Close(held)
	require.Equal(t, []TopicPartition{{"t", 1}, {"t", 2}}, m.late(marks))
}

// What is committed is told topic by topic, with the epochs read under, and kept as long as the broker keeps
// offsets.
func TestWhatACommitTells(t *testing.T) {
	m := &membership{r: &Reader{cfg: ReaderConfig{GroupID: "g"}}}
	at := func(topic string, id int32, offset int64, epoch int32) group.Offset {
		return group.Offset{Partition: group.Partition{Topic: topic, ID: id}, Offset: offset, Epoch: epoch}
	}
	req := m.offsetCommit(group.Identity{MemberID: "me", Generation: 4}, []group.Offset{at("a", 0, 5, 2), at("a", 3, 6, -1), at("b", 0, 7, 1)})
	require.EqualValues(t, -1, req.RetentionTimeMillis)
	require.Equal(t, []any{"g", "me", int32(4)}, []any{req.Group, req.MemberID, req.Generation})
	require.Nil(t, req.InstanceID)
	require.Len(t, req.Topics, 2)
	a, b := req.Topics[0], req.Topics[1]
	require.Equal(t, []any{"a", int32(0), int64(5), int32(2), int32(3), int64(6), int32(-1)}, []any{a.Topic,
		a.Partitions[0].Partition, a.Partitions[0].Offset, a.Partitions[0].LeaderEpoch,
		a.Partitions[1].Partition, a.Partitions[1].Offset, a.Partitions[1].LeaderEpoch})
	require.Equal(t, []any{"b", int64(7)}, []any{b.Topic, b.Partitions[0].Offset})
	require.Equal(t, "one", *m.offsetCommit(group.Identity{InstanceID: "one"}, nil).InstanceID)
}
