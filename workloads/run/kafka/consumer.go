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

// OpenConsumer makes a consumer with its share of the partitions: of all partitions of all
// topics, counted through, those whose number leaves id when divided by the consumers.
func (t *Target) OpenConsumer(_ context.Context, id int, in run.Arrivals) (run.Consumer, error) {
	c := &consumer{target: t, in: in}
	n := 0
	for i, topic := range t.topics {
		var mine []int32
		for p := range t.parts[topic] {
			if n%t.o.Definition.Consumers.Count == id {
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
	return c, nil
}

// consumer is one consumer instance: a reader per topic.
type consumer struct {
	target  *Target
	in      run.Arrivals
	readers []*reading
	mu      sync.Mutex  // one run of arrivals at a time, from whichever reader
	ending  atomic.Bool // requests are being cut short on purpose
}

// reading is a reader and the number of its topic.
type reading struct {
	*client.Reader
	topic int32
}

func (c *consumer) open(number int32, topic string, partitions []int32) error {
	r, err := c.target.admin.NewReader(client.ReaderConfig{
		Topic: topic, Partitions: partitions, OnFetch: c.fetched,
	})
	if err != nil {
		return err
	}
	c.readers = append(c.readers, &reading{Reader: r, topic: number})
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
			Topic: r.topic, Offset: m.Offset, TimestampMs: m.Time.UnixMilli(),
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

// Lag is the sum over the readers, −1 while one of them does not know.
func (c *consumer) Lag() int64 {
	sum := int64(0)
	for _, r := range c.readers {
		lag := r.Lag()
		if lag < 0 {
			return -1
		}
		sum += lag
	}
	return sum
}

// Close ends the readers.
func (c *consumer) Close(context.Context) error {
	c.ending.Store(true)
	var errs []error
	for _, r := range c.readers {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
