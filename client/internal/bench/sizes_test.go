package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kbench/kbench/client"
)

// settle is how long idle producers are given before they are weighed.
const settle = 2 * time.Second

// owner is a producer with a client of its own.
type owner struct {
	c *client.Client
	p *client.AsyncProducer
}

func (j *job) owner(ctx context.Context) (o owner, err error) {
	if o.c, err = client.NewClientContext(ctx, j.bootstrap(), j.cfg); err != nil {
		return o, err
	}
	o.p, err = client.NewAsyncProducerFromClient(o.c)
	return o, err
}

func (o owner) close(ctx context.Context) error { return errors.Join(o.p.Close(ctx), o.c.Close()) }

// send sends messages and waits for the outcomes.
func (o owner) send(ctx context.Context, run []*client.ProducerMessage) error {
	f := new(firstFailure)
	if _, err := o.p.ProduceRun(ctx, run, f); err != nil {
		return err
	}
	if err := o.p.Flush(ctx); err != nil {
		return err
	}
	return f.failed()
}

// sendToEach sends a message to every partition of the topic and says how many there are.
func (o owner) sendToEach(ctx context.Context, j *job) (int64, error) {
	partitions, err := o.c.Partitions(ctx, j.Topic)
	if err != nil {
		return 0, err
	}
	run := make([]*client.ProducerMessage, len(partitions))
	for i := range run {
		run[i] = &client.ProducerMessage{Topic: j.Topic, Partition: partitions[i], Value: j.values.next()}
	}
	return int64(len(run)), o.send(ctx, run)
}

// firstFailure is a tally that only looks for errors.
type firstFailure struct{ tally }

// Delivered takes a run of outcomes.
func (f *firstFailure) Delivered(_ []*client.ProducerMessage, d client.Delivery) {
	if d.Err != nil {
		f.fail(d.Err)
	}
}

// idleProducers makes N producers with a client each, has each send one message to every
// partition, and weighs them once nothing happens any more.
func idleProducers(ctx context.Context, j *job) error {
	j.cfg.Producer.Partitioner, j.cfg.Producer.NewPartitioner = "manual", nil
	before := memory()
	all := make([]owner, 0, j.N)
	for range j.N {
		o, err := j.owner(ctx)
		if err != nil {
			return err
		}
		all = append(all, o)
		if _, err := o.sendToEach(ctx, j); err != nil {
			return err
		}
	}
	time.Sleep(settle)
	j.say("mem/each", fmt.Sprintf("%dB", (memory()-before)/j.N))
	j.done = j.N
	for _, o := range all {
		if err := o.close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// manyPartitions is about a topic with N partitions: how long the first message takes, client
// and all, and what is held after it, and after one message to every partition.
func manyPartitions(ctx context.Context, j *job) error {
	j.cfg.Producer.Partitioner, j.cfg.Producer.NewPartitioner = "manual", nil
	before := memory()
	start := time.Now()
	o, err := j.owner(ctx)
	if err != nil {
		return err
	}
	if err := o.send(ctx, []*client.ProducerMessage{{Topic: j.Topic, Value: j.values.next()}}); err != nil {
		return err
	}
	j.say("first", time.Since(start))
	j.say("mem", fmt.Sprintf("%dB", memory()-before))
	start = time.Now()
	if j.done, err = o.sendToEach(ctx, j); err != nil {
		return err
	}
	j.say("all", time.Since(start))
	j.say("mem/all", fmt.Sprintf("%dB", memory()-before))
	return o.close(ctx)
}
