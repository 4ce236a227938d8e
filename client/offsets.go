package client

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/wire"
)

// The times that stand for the ends of a partition's log in GetOffset and ListOffsets; other
// times are milliseconds since the Unix epoch.
const (
	// OffsetNewest asks for the offset that the next message will get; with ReadCommitted, that
	// of the first message whose transaction is open.
	OffsetNewest int64 = fetch.Last
	// OffsetOldest asks for the offset of the first message still in the log.
	OffsetOldest int64 = fetch.First
)

// OffsetQuery asks for one offset of one partition.
type OffsetQuery struct {
	Topic     string
	Partition int32
	// Time is OffsetNewest, OffsetOldest, or a time in milliseconds since the Unix epoch, which
	// asks for the first message that is not older.
	Time int64
}

// OffsetAnswer is the answer to an OffsetQuery.
type OffsetAnswer struct {
	OffsetQuery
	// Offset is -1 when no message is as young as Time, or Err is set.
	Offset int64
	// Timestamp is the found message's time in milliseconds; -1 for the ends of the log.
	Timestamp int64
	// LeaderEpoch is the epoch of the leader that wrote the found message; -1 when unknown.
	LeaderEpoch int32
	Err         error
}

// GetOffset asks a partition's leader for an offset: OffsetNewest, OffsetOldest, or that of the
// first message not older than time in milliseconds since the Unix epoch, which is -1 when every
// message is older. Failures that may pass are retried as Metadata.Retry says.
func (c *Client) GetOffset(ctx context.Context, topic string, partition int32, time int64) (int64, error) {
	answers, err := c.ListOffsets(ctx, ReadUncommitted, OffsetQuery{topic, partition, time})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return -1, err
	}
	return answers[0].Offset, nil
}

// ListOffsets answers many queries, in their order, with one request per leader (one more for a
// partition that is asked about twice), all leaders at once. What fails for one partition is in
// its answer; the error returned means that ctx ended or the client closed.
func (c *Client) ListOffsets(ctx context.Context, level IsolationLevel, queries ...OffsetQuery) ([]OffsetAnswer, error) {
	answers := make([]OffsetAnswer, len(queries))
	open := make([]*OffsetAnswer, len(queries))
	for i, q := range queries {
		answers[i] = OffsetAnswer{OffsetQuery: q, Offset: -1, Timestamp: -1, LeaderEpoch: -1}
		open[i] = &answers[i]
	}
	for attempt := 0; ; attempt++ {
		c.askOffsets(ctx, level, open)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("listing offsets: %w", err)
		}
		open = stillOpen(open)
		if len(open) == 0 || attempt >= c.cfg.Metadata.Retry.Max {
			return answers, nil
		}
		if err := c.sleep(ctx, c.metadataWait(attempt+1)); err != nil {
			return nil, fmt.Errorf("listing offsets: %w (%w)", err, open[0].Err)
		}
		if err := c.RefreshMetadata(ctx, topicsOf(open)...); err != nil {
			return nil, err
		}
	}
}

// stillOpen are the answers worth asking for again.
func stillOpen(asked []*OffsetAnswer) (open []*OffsetAnswer) {
	for _, a := range asked {
		if a.Err != nil && wire.Classify(a.Err).Has(wire.Retriable) {
			open = append(open, a)
		}
	}
	return open
}

func topicsOf(asked []*OffsetAnswer) (topics []string) {
	seen := map[string]bool{}
	for _, a := range asked {
		if !seen[a.Topic] {
			seen[a.Topic] = true
			topics = append(topics, a.Topic)
		}
	}
	return topics
}

// askOffsets sends one request to each leader and waits for all of them.
func (c *Client) askOffsets(ctx context.Context, level IsolationLevel, asked []*OffsetAnswer) {
	type key struct {
		broker *Broker
		nth    int // a partition may be in one request once only
	}
	requests := map[key][]offsetAsk{}
	times := map[place]int{}
	for _, a := range asked {
		b, epoch, err := c.leader(ctx, a.Topic, a.Partition)
		if a.Err = err; err != nil {
			continue
		}
		at := place{a.Topic, a.Partition}
		k := key{b, times[at]}
		times[at]++
		requests[k] = append(requests[k], offsetAsk{a, epoch})
	}
	var all sync.WaitGroup
	for k, asks := range requests {
		// Owned by this call, which waits; each is bounded by ctx and the request's timeout.
		all.Go(func() { listOffsets(ctx, k.broker.Request, level, asks) })
	}
	all.Wait()
}

// offsetAsk is one answer wanted, and the leader epoch that its leader is known by.
type offsetAsk struct {
	*OffsetAnswer
	epoch int32
}

// listOffsets sends one ListOffsets request and fills in every answer, or its Err.
func listOffsets(ctx context.Context, do func(context.Context, kmsg.Request) (kmsg.Response, error), level IsolationLevel, asks []offsetAsk) {
	for _, a := range asks {
		a.Err = fmt.Errorf("offsets of topic %q partition %d: %w", a.Topic, a.Partition, errLeftOut)
	}
	got, err := do(ctx, listOffsetsRequest(level, asks))
	resp, ok := got.(*kmsg.ListOffsetsResponse)
	if err == nil && !ok {
		err = fmt.Errorf("answered ListOffsets with %T", got)
	}
	if err != nil {
		for _, a := range asks {
			a.Err = err
		}
		return
	}
	wanted := make(map[place]*OffsetAnswer, len(asks))
	for _, a := range asks {
		wanted[place{a.Topic, a.Partition}] = a.OffsetAnswer
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			if a := wanted[place{resp.Topics[i].Topic, p.Partition}]; a != nil { // else not asked for
				a.take(p)
			}
		}
	}
}

// place is one partition.
type place struct {
	topic     string
	partition int32
}

func listOffsetsRequest(level IsolationLevel, asks []offsetAsk) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	req.IsolationLevel = int8(level)
	at := map[string]int{}
	for _, a := range asks {
		i, known := at[a.Topic]
		if !known {
			i = len(req.Topics)
			at[a.Topic] = i
			topic := kmsg.NewListOffsetsRequestTopic()
			topic.Topic = a.Topic
			req.Topics = append(req.Topics, topic)
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.Timestamp = a.Partition, a.epoch, a.Time
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	return req
}

// take takes in what a broker says.
func (a *OffsetAnswer) take(p *kmsg.ListOffsetsResponseTopicPartition) {
	if err := wire.ErrorFor(p.ErrorCode); err != nil {
		a.Err = fmt.Errorf("offsets of topic %q partition %d: %w", a.Topic, a.Partition, err)
		return
	}
	a.Offset, a.Timestamp, a.LeaderEpoch, a.Err = p.Offset, p.Timestamp, p.LeaderEpoch, nil
}
