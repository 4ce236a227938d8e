package kafka

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

// OpenConsumer makes a consumer: a member of its group, or one with its share of the partitions, of all partitions of all
// topics, counted through, those whose number leaves its place in the group when divided by the
// group's consumers.
func (t *Target) OpenConsumer(ctx context.Context, who run.Member, in run.Arrivals) (run.Consumer, error) {
	if len(t.groups) > 0 {
		return t.openMember(ctx, who, in)
	}
	c := &consumer{target: t, who: who, in: in}
	n := 0
	for i, topic := range t.topics {
		var mine []int32
		for p := range t.parts[topic] {
			if n%t.o.Definition.Consumers.Count == who.Place {
				mine = append(mine, p)
			}
			n++
		}
		if len(mine) == 0 {
			continue
		}
		if err := c.open(int32(i), topic, mine); err != nil {
			return nil, errors.Join(err, c.Close(context.Background()))
		}
	}
	t.board.join(c)
	return c, nil
}

// consumer is one consumer instance: a reader per topic, or a member of a group.
type consumer struct {
	target  *Target
	who     run.Member
	in      run.Arrivals
	readers []*reading
	member  *membership // nil without a group
	mu      sync.Mutex  // one run of arrivals at a time, from whichever reader
	ending  atomic.Bool // requests are being cut short on purpose
}

// reading is a reader with the number of its topic, or manyTopics.
type reading struct {
	*client.Reader
	number int32
	// The topic of the last message, since runs of messages are of one. Of the consumer's goroutine.
	lastTopic  string
	lastNumber int32
}

// manyTopics says that messages have to be looked at for their topic.
const manyTopics = -1

// topicOf is the number of a message's topic.
func (c *consumer) topicOf(r *reading, m *client.Message) int32 {
	if r.number != manyTopics {
		return r.number
	}
	if m.Topic != r.lastTopic {
		r.lastTopic, r.lastNumber = m.Topic, c.target.numbers[m.Topic]
	}
	return r.lastNumber
}

func (c *consumer) open(number int32, topic string, partitions []int32) error {
	r, err := c.target.admin.NewReader(client.ReaderConfig{
		Topic: topic, Partitions: partitions, OnFetch: c.fetched,
	})
	if err != nil {
		return err
	}
	c.readers = append(c.readers, &reading{Reader: r, number: number})
	for _, p := range partitions {
		if err := r.SetPartitionOffset(p, c.target.starts[place{topic, p}]); err != nil {
			return err
		}
	}
	return nil
}

func (c *consumer) fetched(f client.FetchStats) {
	if f.Err != nil {
		if !c.ending.Load() {
			c.target.counters.failed(f.Err)
		}
		return
	}
	c.in.Request(results.SeriesFetch, c.target.since(f.Written), c.target.since(f.Read))
}

// Run receives until ctx ends.
func (c *consumer) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { c.ending.Store(true) })()
	g, ctx := errgroup.WithContext(ctx)
	for _, r := range c.readers {
		receive := c.batches
		if c.target.o.Definition.Consumers.Form == "message" {
			receive = c.messages
		}
		g.Go(func() error { return receive(ctx, r) }) // Wait below waits; ctx ends it
	}
	return g.Wait()
}

// most is how many messages are received in one run.
const most = 512

// batches receives by FetchBatch.
func (c *consumer) batches(ctx context.Context, r *reading) error {
	buf := make([]client.Message, most)
	arrivals := make([]run.Arrival, most)
	for {
		n, err := r.FetchBatch(ctx, buf)
		if n > 0 {
			c.receive(r, buf[:n], arrivals)
			c.commit(ctx, r, buf[:n])
		}
		if err != nil {
			if over, err := ended(ctx, err); over {
				return err
			}
		}
	}
}

// messages receives one message at a time.
func (c *consumer) messages(ctx context.Context, r *reading) error {
	buf := make([]client.Message, 1)
	arrivals := make([]run.Arrival, 1)
	for {
		m, err := r.FetchMessage(ctx)
		if err != nil {
			if over, err := ended(ctx, err); over {
				return err
			}
			continue
		}
		buf[0] = m
		c.receive(r, buf, arrivals)
		c.commit(ctx, r, buf)
	}
}

// ended says whether a reader's error ends the consumer, and with what: failures that may pass
// do not, and the end of ctx is none.
func ended(ctx context.Context, err error) (bool, error) {
	if ctx.Err() != nil {
		return true, nil
	}
	var read *client.ReadError
	if errors.As(err, &read) && read.Passing {
		return false, nil
	}
	return true, err
}

// receive passes a run on with one reading of the clock.
func (c *consumer) receive(r *reading, msgs []client.Message, arrivals []run.Arrival) {
	for i := range msgs {
		m := &msgs[i]
		arrivals[i] = run.Arrival{
			Key: m.Key, Value: m.Value, Header: stamp(m.Headers), Partition: m.Partition,
			Topic: c.topicOf(r, m), Offset: m.Offset, TimestampMs: m.Time.UnixMilli(),
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in.Received(arrivals[:len(msgs)], c.target.o.Clock.Now())
}

// stamp is the value of kbench's own header.
func stamp(headers []client.Header) []byte {
	for i := range headers {
		if headers[i].Key == run.HeaderName {
			return headers[i].Value
		}
	}
	return nil
}

// Close ends the readers.
func (c *consumer) Close(ctx context.Context) error {
	c.ending.Store(true)
	c.target.board.leave(c)
	var errs []error
	for _, r := range c.readers {
		if c.member != nil {
			errs = append(errs, c.member.close(ctx, r.Reader))
			continue
		}
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
