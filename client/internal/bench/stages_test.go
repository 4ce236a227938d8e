package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/broker"
)

// backlogStage is real Kafka with one topic that holds s.N messages, which every run reads.
func backlogStage(ctx context.Context, partitions int32, s settings) (*stage, error) {
	st, err := realStage(ctx, partitions)
	if err != nil {
		return nil, err
	}
	name, err := st.topic(ctx)
	if err != nil {
		st.close()
		return nil, err
	}
	end, drop := st.close, st.clear
	st.close = func() {
		if err := drop(context.WithoutCancel(ctx), name); err != nil {
			fmt.Fprintf(os.Stderr, "%s is left behind: %v\n", name, err)
		}
		end()
	}
	st.topic = func(context.Context) (string, error) { return name, nil }
	st.clear = func(context.Context, string) error { return nil }
	s.Lib, s.Mode, s.Bootstrap, s.Topic = "kbench", "run", st.bootstrap, name
	if err := fill(ctx, s); err != nil {
		st.close()
		return nil, fmt.Errorf("filling the topic: %w", err)
	}
	return st, nil
}

// fill sends what is read later.
func fill(ctx context.Context, s settings) error {
	j := &job{settings: s, values: newValues(s.Size)}
	var err error
	if j.cfg, err = s.config(); err != nil {
		return err
	}
	return produceRuns(ctx, j)
}

// trickled is how many partitions of a trickle's topic get anything.
const trickled = 10

// trickleStage is an embedded broker that keeps messages, with a topic for every run to which a
// few messages a second are sent as long as the run lasts.
func trickleStage(ctx context.Context, partitions int32, perSecond int) (*stage, error) {
	b, err := broker.Start(broker.Options{})
	if err != nil {
		return nil, err
	}
	cfg := client.NewConfig()
	cfg.Producer.Partitioner, cfg.Producer.Flush.Frequency = "manual", 0
	c, err := client.NewClientContext(ctx, b.Bootstrap(), cfg)
	if err != nil {
		b.Close()
		return nil, err
	}
	s := &stage{bootstrap: strings.Join(b.Bootstrap(), ","), close: func() {
		_ = c.Close()
		b.Close()
	}}
	runs := 0
	var t *trickle
	s.topic = func(ctx context.Context) (string, error) {
		runs++
		name := fmt.Sprintf("trickle-%d", runs)
		if err := c.CreateTopics(ctx, client.TopicSpec{Name: name, Partitions: partitions, ReplicationFactor: 1}); err != nil {
			return "", err
		}
		t, err = startTrickle(ctx, c, name, min(partitions, trickled), time.Second/time.Duration(perSecond))
		return name, err
	}
	s.clear = func(ctx context.Context, name string) error {
		return errors.Join(t.stop(ctx), c.DeleteTopics(ctx, name))
	}
	return s, nil
}

// trickle sends one message after the other, in equal distances.
type trickle struct {
	end  context.CancelFunc
	done sync.WaitGroup
	p    *client.AsyncProducer
	fail firstFailure
}

func startTrickle(ctx context.Context, c *client.Client, topic string, partitions int32, every time.Duration) (*trickle, error) {
	p, err := client.NewAsyncProducerFromClient(c)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	t := &trickle{end: end, p: p}
	// Owned by the trickle; ends with its context; stop waits.
	t.done.Go(func() { t.run(ctx, topic, partitions, every) })
	return t, nil
}

func (t *trickle) run(ctx context.Context, topic string, partitions int32, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := int32(0); ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		m := &client.ProducerMessage{Topic: topic, Partition: i % partitions, Value: []byte("a message now and then")}
		if _, err := t.p.ProduceRun(ctx, []*client.ProducerMessage{m}, &t.fail); err != nil && ctx.Err() == nil {
			t.fail.fail(err)
			return
		}
	}
}

// stop ends it and says what went wrong.
func (t *trickle) stop(ctx context.Context) error {
	t.end()
	t.done.Wait()
	return errors.Join(t.p.Close(ctx), t.fail.failed())
}
