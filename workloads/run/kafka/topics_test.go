package kafka

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

func TestTopicWatch(t *testing.T) {
	whole := [][]int32{{1, 2, 3}, {1, 2, 3}}
	before := client.TopicDescription{Name: "t", Leaders: []int32{1, 2}, ISR: whole}
	w := newTopicWatch([]client.TopicDescription{before})
	see := func(at int64, leaders []int32, isr [][]int32) {
		w.saw(0, at, client.TopicDescription{Name: "t", Leaders: leaders, ISR: isr})
	}
	see(10, []int32{1, 2}, whole)
	require.Empty(t, w.events)
	see(20, []int32{3, 2}, [][]int32{{2, 3}, {1, 2, 3}})
	see(30, []int32{3, 2}, [][]int32{{2, 3}, {1, 2, 3}})
	see(40, []int32{1, 2}, whole)
	require.Equal(t, []results.Event{
		{AtNs: 20, Kind: "leader", Text: "1 partitions of t have another leader"},
		{AtNs: 20, Kind: "leader", Text: "1 partitions of t have lost replicas in sync"},
		{AtNs: 40, Kind: "leader", Text: "1 partitions of t have another leader"},
	}, w.events)
	require.Len(t, w.moved[0], 1, "what moved back has moved")
	require.Len(t, w.shrunk[0], 1)
	require.Equal(t, []run.Move{
		{Partition: 0, After: 10, At: 20}, {Partition: 0, ISR: true, After: 10, At: 20}, {Partition: 0, After: 30, At: 40},
	}, w.moves, "each with the looks that it lies between")
	see(50, []int32{1, 2, 3}, append(whole, []int32{1})) // a partition more is no move
	require.Len(t, w.events, 3)
	for i := range 2 * int64(maxTopicEvents) {
		see(60+i, []int32{int32(i%2) + 5, 2}, whole)
	}
	require.Len(t, w.events, maxTopicEvents)
	require.Len(t, w.moves, maxMoves+2, "so many of a partition, one that stands for the rest, and the replica's")
	require.Equal(t, run.Move{After: run.AnyTime, At: run.AnyTime}, w.moves[len(w.moves)-1])
}

// A leader that moves and moves back while a run is on makes it invalid, and is on its time axis.
func TestLeaderThatMovesAndMovesBack(t *testing.T) {
	c := start(t, 2)
	b := bench{d: load(0)}
	b.d.Phases.Duration, b.d.Producers.Messages, b.d.Producers.Rate = 4*time.Second, 0, 200
	b.d.Topics.Count, b.d.Topics.Partitions, b.d.Consumers.Count = 1, 1, 0
	target, spec := b.target(c.Bootstrap())
	from := make(chan int32, 1) // written once by Progress, and read when the run has ended
	moved, back := false, false
	spec.Progress = func(p run.Progress) {
		if p.Phase != run.PhaseMeasure {
			return
		}
		topic := target.topics[0]
		switch {
		case !moved && p.Elapsed > 200*time.Millisecond:
			moved = true
			leader := c.Leader(topic, 0)
			from <- leader
			assert.NoError(t, c.MoveLeader(topic, 0, 1-leader))
		case moved && !back && p.Elapsed > 2200*time.Millisecond:
			back = true
			assert.NoError(t, c.MoveLeader(topic, 0, 1-c.Leader(topic, 0)))
		}
	}
	out, err := run.Execute(within(t), spec)
	require.NoError(t, err)
	require.True(t, back)
	topic := out.Run.Topics[0]
	require.Equal(t, []int32{<-from}, topic.LeadersBefore)
	require.Equal(t, topic.LeadersBefore, topic.LeadersAfter)
	require.Equal(t, 1, topic.LeadersMoved)
	require.Contains(t, out.Run.Verdict.Reasons, "leaders moved during the run: 1 of 1 partitions of "+topic.Name+", limit 0")
	var marks int
	for _, e := range out.Run.Events {
		if e.Kind == "leader" {
			marks++
			require.Positive(t, e.AtNs)
		}
	}
	require.Equal(t, 2, marks)
}
