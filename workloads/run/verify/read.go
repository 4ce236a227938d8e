package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kbench/kbench/client"
)

// readRun is how many messages are taken from the reader at a time.
const readRun = 512

// Span is the offsets of a partition that are to be read: From, and up to before To.
type Span struct {
	From, To int64
	cut      bool // retention took something away meanwhile
}

// Cut says that the log does not begin at its beginning any more.
func (s Span) Cut() bool { return s.From > 0 || s.cut }

// Messages is at most how many there are: some offsets may be control records or gaps.
func (s Span) Messages() int64 { return max(0, s.To-s.From) }

// Read reads every partition of a topic from its first message to what is its end when Read is
// called, and gives each message to each, in the order of its partition. The message's memory is
// each's for the call only. It ends early with each's error, or ctx's.
func Read(ctx context.Context, c *client.Client, topic string, each func(*client.Message) error) error {
	spans, err := Spans(ctx, c, topic)
	if err != nil {
		return err
	}
	return ReadSpans(ctx, c, topic, spans, Visitor{Message: each})
}

// Visitor is told what is read. Without Unreadable and Removed, what they would be told ends the
// reading as an error.
type Visitor struct {
	Message func(*client.Message) error
	// Unreadable is told that a partition cannot be read from an offset on, since what the broker gave
	// is damaged. The others are read on.
	Unreadable func(partition int32, offset int64, err error)
	// Removed is told that retention took away what was to be read next in a partition, which is read on
	// behind the gap.
	Removed func(partition int32)
}

// ReadSpans reads the spans of a topic's partitions, as Read does.
func ReadSpans(ctx context.Context, c *client.Client, topic string, spans map[int32]Span, v Visitor) error {
	left := maps.Clone(spans)
	maps.DeleteFunc(left, func(_ int32, s Span) bool { return s.Messages() == 0 })
	if len(left) == 0 {
		return nil
	}
	r, err := c.NewReader(client.ReaderConfig{Topic: topic, Partitions: slices.Sorted(maps.Keys(left))})
	if err != nil {
		return err
	}
	defer r.Close()
	for p, s := range left {
		if err := r.SetPartitionOffset(p, s.From); err != nil {
			return err
		}
	}
	return (&draining{Reader: r, left: left, visit: v}).run(ctx)
}

// Spans asks for the ends of every partition's log.
func Spans(ctx context.Context, c *client.Client, topic string) (map[int32]Span, error) {
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
	out := map[int32]Span{}
	for i := range ids {
		first, last := &answers[i], &answers[i+len(ids)]
		for _, a := range []*client.OffsetAnswer{first, last} {
			if a.Err != nil {
				return nil, fmt.Errorf("verify: ends of topic %q partition %d: %w", topic, a.Partition, a.Err)
			}
		}
		out[first.Partition] = Span{From: first.Offset, To: last.Offset}
	}
	return out, nil
}

// quiet is how long nothing arrives before the positions of all partitions are looked at.
const quiet = 200 * time.Millisecond

// draining is a reader on its way to the ends of its partitions.
type draining struct {
	*client.Reader
	left  map[int32]Span
	visit Visitor
}

// run reads until every partition has come to its end. Messages that were written later are
// passed over.
func (d *draining) run(ctx context.Context) error {
	buf := make([]client.Message, readRun)
	for len(d.left) > 0 {
		n, err := d.some(ctx, buf)
		if err != nil {
			if err = d.settle(err); err != nil {
				return fmt.Errorf("verify: reading back, %d partitions not read to their ends: %w", len(d.left), err)
			}
			continue
		}
		for i := range buf[:n] {
			m := &buf[i]
			if s, ok := d.left[m.Partition]; !ok || m.Offset >= s.To {
				continue
			}
			if err := d.visit.Message(m); err != nil {
				return err
			}
		}
		if n > 0 { // all of one partition
			err = d.arrived(buf[0].Partition)
		} else {
			err = d.arrived(slices.Collect(maps.Keys(d.left))...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// some is FetchBatch that gives up after a while: a log may end with what is no message.
func (d *draining) some(ctx context.Context, buf []client.Message) (int, error) {
	short, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	n, err := d.FetchBatch(short, buf)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return n, nil //nolint:nilerr // only the short wait is over
	}
	return n, err
}

// settle deals with a partition that cannot be read on as it was; it returns what ends the reading.
func (d *draining) settle(err error) error {
	var read *client.ReadError
	if !errors.As(err, &read) {
		return err
	}
	var out *client.OffsetOutOfRangeError
	s, ours := d.left[read.Partition]
	switch {
	case read.Passing || !ours:
		return nil // it is tried on
	case errors.As(err, &out) && out.First > read.Offset && d.visit.Removed != nil:
		d.visit.Removed(read.Partition)
		if out.First >= s.To {
			delete(d.left, read.Partition)
			return nil
		}
		return d.SetPartitionOffset(read.Partition, out.First)
	case d.visit.Unreadable != nil && client.IsDamaged(err):
		d.visit.Unreadable(read.Partition, read.Offset, err)
		delete(d.left, read.Partition)
		return nil
	}
	return err
}

// arrived takes those of the partitions out that were read to their ends. The reader's position
// tells: the last offsets may be control records or gaps.
func (d *draining) arrived(partitions ...int32) error {
	for _, p := range partitions {
		at, err := d.PartitionOffset(p)
		if err != nil {
			return err
		}
		if s, ok := d.left[p]; ok && at >= s.To {
			delete(d.left, p)
		}
	}
	return nil
}
