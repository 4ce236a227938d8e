package client

import (
	"context"
	"fmt"
	"time"

	"github.com/kbench/kbench/results/hist"
)

// SetOffset moves every partition of the reader to an offset, FirstOffset or LastOffset. What was
// fetched for the position before is not delivered any more, and a partition that stands still
// after a failure goes on. The new position is first fetched when the request that is under way
// has been answered, within Consumer.MaxWait.
func (r *Reader) SetOffset(offset int64) error {
	if r.group != nil {
		return ErrGroupOffsets
	}
	for _, id := range r.cfg.partitions() {
		if err := r.SetPartitionOffset(id, offset); err != nil {
			return err
		}
	}
	return nil
}

// SetPartitionOffset is SetOffset for one of the reader's partitions.
func (r *Reader) SetPartitionOffset(partition int32, offset int64) error {
	if r.group != nil {
		return ErrGroupOffsets
	}
	if offset < FirstOffset {
		return fmt.Errorf("offset %d: offsets are 0 or more, or FirstOffset or LastOffset", offset)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.life.Err() != nil {
		return ErrClosed
	}
	p, err := r.partitionLocked(partition)
	if err == nil {
		r.seekLocked(p, offset)
	}
	return err
}

func (r *Reader) partitionLocked(id int32) (*partition, error) {
	if p := r.byPlace[topicPartition{r.cfg.Topic, id}]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: the reader does not read partition %d of topic %q", ErrPartitionInvalid, id, r.cfg.Topic)
}

// SetOffsetAt moves every partition to its first message that is not older than t, or to its end
// when all are older. Nothing moves when an offset cannot be found out.
func (r *Reader) SetOffsetAt(ctx context.Context, t time.Time) error {
	if r.group != nil {
		return ErrGroupOffsets
	}
	answers, err := r.list(ctx, t.UnixMilli())
	if err != nil {
		return err
	}
	for _, a := range answers {
		offset := a.Offset
		if offset < 0 {
			offset = LastOffset
		}
		if err := r.SetPartitionOffset(a.Partition, offset); err != nil {
			return err
		}
	}
	return nil
}

// list asks for one offset of each partition; an error for one is an error for all.
func (r *Reader) list(ctx context.Context, at int64) ([]OffsetAnswer, error) {
	positions := r.positions()
	queries := make([]OffsetQuery, len(positions))
	for i, p := range positions {
		queries[i] = OffsetQuery{p.topic, p.id, at}
	}
	return r.listOf(ctx, queries)
}

func (r *Reader) listOf(ctx context.Context, queries []OffsetQuery) ([]OffsetAnswer, error) {
	if len(queries) == 0 {
		return nil, nil
	}
	answers, err := r.client.ListOffsets(ctx, r.consume.IsolationLevel, queries...)
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if a.Err != nil {
			return nil, a.Err
		}
	}
	return answers, nil
}

// Offset is the offset of the next message that the application gets, or FirstOffset or
// LastOffset until that was looked up. It is about the first of the reader's partitions; see
// PartitionOffset and PartitionStates for others. -1 while there is none, as happens in a group.
func (r *Reader) Offset() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.parts) == 0 {
		return -1
	}
	return r.parts[0].pos
}

// PartitionOffset is Offset for one of the reader's partitions.
func (r *Reader) PartitionOffset(partition int32) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.partitionLocked(partition)
	if err != nil {
		return 0, err
	}
	return p.pos, nil
}

// Lag is the number of messages between the positions and the ends of all partitions, as of
// their last answers; -1 until each has had one. It costs nothing.
func (r *Reader) Lag() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum int64
	for _, p := range r.parts {
		lag := p.lag()
		if lag < 0 {
			return -1
		}
		sum += lag
	}
	return sum
}

func (p *partition) lag() int64 {
	if p.hwm < 0 || p.pos < 0 {
		return -1
	}
	return max(p.hwm-p.pos, 0)
}

// PartitionLag is Lag for one of the reader's partitions.
func (r *Reader) PartitionLag(partition int32) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.partitionLocked(partition)
	if err != nil {
		return -1, err
	}
	return p.lag(), nil
}

// ReadLag asks the leaders for the ends of the partitions, and returns how far the positions are
// from them, together. A position that is not looked up yet counts as what it stands for.
func (r *Reader) ReadLag(ctx context.Context) (int64, error) {
	ends, err := r.list(ctx, OffsetNewest)
	if err != nil {
		return -1, err
	}
	starts := map[topicPartition]int64{}
	for _, p := range r.positions() {
		starts[p.topicPartition] = p.offset
	}
	var sum int64
	var unresolved []OffsetQuery
	for _, end := range ends {
		switch pos, held := starts[topicPartition{end.Topic, end.Partition}]; {
		case !held, pos == LastOffset:
		case pos == FirstOffset:
			unresolved = append(unresolved, OffsetQuery{end.Topic, end.Partition, OffsetOldest})
			sum += end.Offset
		default:
			sum += max(end.Offset-pos, 0)
		}
	}
	firsts, err := r.listOf(ctx, unresolved)
	for _, first := range firsts {
		sum -= first.Offset
	}
	return sum, err
}

// ReaderStats are what a reader has counted since it was made, and its state now.
type ReaderStats struct {
	Messages     int64 // delivered
	Bytes        int64 // of their keys and values
	Fetches      int64 // Fetch requests, failed ones included
	FetchedBytes int64 // of their answers
	Errors       int64 // failures of requests and of single partitions
	Timeouts     int64 // requests without an answer in time
	Dials        int64 // connections opened
	Resets       int64 // times that a position out of range was moved by the policy
	Panics       int64 // caught in the user's functions, those of the client included

	// Of a group's member; 0 without one.
	Rebalances    int64         // that it has come through, the first included
	LastRebalance time.Duration // how long it was in no generation, or in one that was ending
	Commits       int64         // requests that committed something
	CommitErrors  int64         // commits that failed with nobody to tell: on the interval, or at the end of an assignment
	Absences      int64         // times that it left because the application did not ask (consumer.group.maxPollInterval)
	StaleCommits  int64         // messages not committed because their assignment had ended

	QueueLength int   // batches fetched and not read
	QueueBytes  int64 // memory of fetched answers in use
	Lag         int64 // as of Lag
	// FetchLatency is from a Fetch request's write to its answer, the broker's wait for data
	// included. It is a copy.
	FetchLatency *hist.Histogram
	// RebalanceLatency holds what LastRebalance was after each of Rebalances, and CommitLatency how
	// long each of Commits took, finding the coordinator included. They are copies too, and empty
	// without a group.
	RebalanceLatency, CommitLatency *hist.Histogram
}

// Stats is what the reader has counted so far.
func (r *Reader) Stats() ReaderStats {
	lag := r.Lag()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.QueueLength, s.QueueBytes, s.Lag = r.batches, r.answers.held.Load(), lag
	s.Panics += r.client.panics.Load()
	s.FetchLatency = r.latency.Clone()
	s.RebalanceLatency, s.CommitLatency = r.rebalanceTimes.snapshot(), r.commitTimes.snapshot()
	return s
}

func (r *Reader) count(add func(*ReaderStats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.stats)
}
