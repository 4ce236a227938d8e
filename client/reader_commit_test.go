package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
