package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kbench/kbench/client"
)

// readRun is how many messages are taken from the reader at a time.
const readRun = 512

// Read reads every partition of a topic from its first message to what is its end when Read is
// called, and gives each message to each, in the order of its partition. The message's memory is
// each's for the call only. It ends early with each's error, or ctx's.
func Read(ctx context.Context, c *client.Client, topic string, each func(*client.Message) error) error {
	left, err := spans(ctx, c, topic)
	if err != nil {
		return err
	}
	parts := make([]int32, 0, len(left))
	for p := range left {
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		return nil
	}
	r, err := c.NewReader(client.ReaderConfig{Topic: topic, Partitions: parts})
	if err != nil {
		return err
	}
	defer r.Close()
	for p, s := range left {
		if err := r.SetPartitionOffset(p, s.from); err != nil {
			return err
		}
	}
	return drain(ctx, r, left, each)
}

// span is the offsets of a partition that are to be read: from, and up to before to.
type span struct{ from, to int64 }

// spans asks for the ends of every partition's log; partitions without messages are left out.
func spans(ctx context.Context, c *client.Client, topic string) (map[int32]span, error) {
	ids, err := c.Partitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	queries := make([]client.OffsetQuery, 0, 2*len(ids))
	for _, at := range []int64{client.OffsetOldest, client.OffsetNewest} {
		for _, p := range ids {
			queries = append(queries, client.OffsetQuery{Topic: topic, Partition: p, Time: at})
		}
	}
	level := c.Config().Consumer.IsolationLevel
	answers, err := c.ListOffsets(ctx, level, queries...)
	if err != nil {
		return nil, err
	}
	out := map[int32]span{}
	for i := range ids {
		first, last := &answers[i], &answers[i+len(ids)]
		for _, a := range []*client.OffsetAnswer{first, last} {
			if a.Err != nil {
				return nil, fmt.Errorf("verify: ends of topic %q partition %d: %w", topic, a.Partition, a.Err)
			}
		}
		if last.Offset > first.Offset {
			out[first.Partition] = span{first.Offset, last.Offset}
		}
	}
	return out, nil
}

// quiet is how long nothing arrives before the positions of all partitions are looked at.
const quiet = 200 * time.Millisecond

// drain reads until every partition has come to its end. Messages that were written later are
// passed over.
func drain(ctx context.Context, r *client.Reader, left map[int32]span, each func(*client.Message) error) error {
	buf := make([]client.Message, readRun)
	for len(left) > 0 {
		n, err := some(ctx, r, buf)
		if err != nil {
			return fmt.Errorf("verify: reading back, %d partitions not read to their ends: %w", len(left), err)
		}
		for i := range buf[:n] {
			m := &buf[i]
			if s, ok := left[m.Partition]; !ok || m.Offset >= s.to {
				continue
			}
			if err := each(m); err != nil {
				return err
			}
		}
		if n > 0 { // all of one partition
			err = arrived(r, left, buf[0].Partition)
		} else {
			err = arrived(r, left, slices.Collect(maps.Keys(left))...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// some is FetchBatch that gives up after a while: a log may end with what is no message.
func some(ctx context.Context, r *client.Reader, buf []client.Message) (int, error) {
	short, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	n, err := r.FetchBatch(short, buf)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return n, nil //nolint:nilerr // only the short wait is over
	}
	return n, err
}

// arrived takes those of the partitions out that were read to their ends. The reader's position
// tells: the last offsets may be control records or gaps.
func arrived(r *client.Reader, left map[int32]span, partitions ...int32) error {
	for _, p := range partitions {
		at, err := r.PartitionOffset(p)
		if err != nil {
			return err
		}
		if s, ok := left[p]; ok && at >= s.to {
			delete(left, p)
		}
	}
	return nil
}
