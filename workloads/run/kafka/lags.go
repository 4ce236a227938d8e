package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run"
)

// board keeps how far each group is in each partition, and where the partitions end: what readers
// last said, also after they have gone, and what the cluster said where nobody reads.
type board struct {
	mu    sync.Mutex
	parts []run.PartitionLag // all partitions, in order; Group and Messages are not used
	index map[place]int
	ends  []int64   // −1 when not seen
	at    [][]int64 // by group: position
	live  []*consumer
}

// lay makes the board of all partitions, with every group at the starts.
func (b *board) lay(topics []string, parts map[string]int32, groups int, starts map[place]int64) {
	b.index = map[place]int{}
	var begin []int64
	for i, topic := range topics {
		for p := range parts[topic] {
			at := place{topic, p}
			b.index[at] = len(b.parts)
			b.parts = append(b.parts, run.PartitionLag{Topic: int32(i), Partition: p})
			b.ends = append(b.ends, -1)
			begin = append(begin, starts[at])
		}
	}
	for range groups {
		b.at = append(b.at, append([]int64{}, begin...))
	}
}

func (b *board) join(c *consumer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live = append(b.live, c)
}

// leave takes a consumer's last positions and forgets it.
func (b *board) leave(c *consumer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.live {
		if other == c {
			b.look(c)
			b.live = append(b.live[:i], b.live[i+1:]...)
			return
		}
	}
}

// look asks a consumer's readers where they are.
func (b *board) look(c *consumer) {
	for _, r := range c.readers {
		for _, s := range r.PartitionStates() {
			i, known := b.index[place{s.Topic, s.Partition}]
			if !known || s.Offset < 0 {
				continue
			}
			b.at[c.who.Group][i] = s.Offset
			b.ends[i] = max(b.ends[i], s.HighWaterMark)
		}
	}
}

// ended takes in where partitions end.
func (b *board) ended(answers []client.OffsetAnswer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range answers {
		if i, known := b.index[place{a.Topic, a.Partition}]; known && a.Err == nil {
			b.ends[i] = max(b.ends[i], a.Offset)
		}
	}
}

// Lags is how far each group is behind in each partition.
func (t *Target) Lags(into []run.PartitionLag) []run.PartitionLag {
	b := &t.board
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.live {
		b.look(c)
	}
	for g, at := range b.at {
		for i, p := range b.parts {
			p.Group, p.Messages = g, -1
			if b.ends[i] >= 0 {
				p.Messages = max(0, b.ends[i]-at[i])
			}
			into = append(into, p)
		}
	}
	return into
}

// Ends are asked for ten times a window, within these bounds.
const (
	fastestPoll = 50 * time.Millisecond
	slowestPoll = 250 * time.Millisecond
)

// pollEnds asks the cluster for the ends of all partitions over and over, so that the lag of those
// that nobody reads is known: before consumers begin, and between two members of a group. Owned by
// the target; Finish stops it and waits for it.
func (t *Target) pollEnds(ctx context.Context) {
	tick := time.NewTicker(min(slowestPoll, max(fastestPoll, t.o.Definition.Phases.Interval/10)))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_ = t.ReadEnds(ctx) // what was seen before stands; the readers tell of failures
	}
}

// ReadEnds asks where the partitions end.
func (t *Target) ReadEnds(ctx context.Context) error {
	answers, err := t.list(ctx, client.OffsetNewest, t.o.Config.Consumer.IsolationLevel)
	if err != nil {
		return err
	}
	t.board.ended(answers)
	return nil
}

// list asks for an offset of every partition.
func (t *Target) list(ctx context.Context, when int64, level client.IsolationLevel) ([]client.OffsetAnswer, error) {
	var queries []client.OffsetQuery
	for _, topic := range t.topics {
		for p := range t.parts[topic] {
			queries = append(queries, client.OffsetQuery{Topic: topic, Partition: p, Time: when})
		}
	}
	return t.admin.ListOffsets(ctx, level, queries...)
}

// watchEnds starts polling where readers alone would not know all ends.
func (t *Target) watchEnds(ctx context.Context) error {
	c := &t.o.Definition.Consumers
	if c.Count == 0 || c.StartAfter == 0 && c.Mode != "group" {
		return nil
	}
	if err := t.ReadEnds(ctx); err != nil {
		return err
	}
	life, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.stopPolling = func() { stop(); <-done }
	go func() { // owned by the target; stopPolling ends it and waits
		defer close(done)
		t.pollEnds(life)
	}()
	return nil
}
