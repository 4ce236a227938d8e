package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/broker"
)

// kafkaEnv says where the real Kafka is, as for tests; see docker/README.md.
const kafkaEnv = "KBENCH_TEST_KAFKA_1"

// stage is where one figure's programs meet the same broker.
type stage struct {
	bootstrap string
	// topic makes ready for the next run, and clear tidies up after it.
	topic func(ctx context.Context) (name string, err error)
	clear func(ctx context.Context, name string) error
	seen  *requests // what the broker has seen of the run; nil where it cannot tell
	close func()
}

// requests counts what the programs sent, as the broker sees it.
type requests struct{ requests, batches, records, bytes atomic.Int64 }

func (r *requests) reset() {
	for _, n := range []*atomic.Int64{&r.requests, &r.batches, &r.records, &r.bytes} {
		n.Store(0)
	}
}

// Places in a record batch: KIP-98.
const (
	batchLength = 8  // of what follows it, int32
	batchCount  = 57 // of records, int32
	batchHeader = 61
)

// produced takes in one request.
func (r *requests) produced(request kmsg.Request) {
	produce, ok := request.(*kmsg.ProduceRequest)
	if !ok {
		return
	}
	r.requests.Add(1)
	for i := range produce.Topics {
		for _, p := range produce.Topics[i].Partitions {
			r.batch(p.Records)
		}
	}
}

func (r *requests) batch(b []byte) {
	for len(b) >= batchHeader {
		size := 12 + int(int32(binary.BigEndian.Uint32(b[batchLength:])))
		if size < batchHeader || size > len(b) {
			return
		}
		r.batches.Add(1)
		r.records.Add(int64(int32(binary.BigEndian.Uint32(b[batchCount:]))))
		r.bytes.Add(int64(size))
		b = b[size:]
	}
}

// add puts into a program's line what the broker saw.
func (r *requests) add(to line) {
	n, records := float64(r.requests.Load()), float64(r.records.Load())
	if n == 0 || records == 0 {
		return
	}
	to[columnRequests] = records / n
	to["rec/batch"] = records / float64(r.batches.Load())
	to["bytes/rec"] = float64(r.bytes.Load()) / records
}

// open makes a figure's stage.
func (f *figure) open(ctx context.Context) (*stage, error) {
	count := f.partitions
	if count == 0 {
		count = partitions
	}
	switch {
	case f.kafka && f.backlog:
		return backlogStage(ctx, count, f.settings)
	case f.kafka:
		return realStage(ctx, count)
	case f.trickle > 0:
		return trickleStage(ctx, count, f.trickle)
	}
	return embeddedStage(count, f.settings.Size)
}

// embeddedStage is a broker in this process, which has nothing else to do.
func embeddedStage(partitions int32, size int) (*stage, error) {
	const topic = "bench"
	c, err := broker.Start(broker.Options{
		Discard: true, SyntheticValueBytes: size, Topics: []broker.Topic{{Name: topic, Partitions: int(partitions)}},
	})
	if err != nil {
		return nil, err
	}
	s := &stage{bootstrap: strings.Join(c.Bootstrap(), ","), seen: new(requests), close: c.Close}
	c.Observe(int16(kmsg.Produce), func(_ int32, r kmsg.Request) { s.seen.produced(r) })
	s.topic = func(context.Context) (string, error) {
		s.seen.reset()
		return topic, nil
	}
	s.clear = func(context.Context, string) error { return nil }
	return s, nil
}

// realStage gives every run a topic of its own, which is gone from the disk a moment after it.
func realStage(ctx context.Context, partitions int32) (*stage, error) {
	bootstrap := os.Getenv(kafkaEnv)
	if bootstrap == "" {
		return nil, fmt.Errorf("%s is not set: this figure needs a real Kafka; run it with make bench", kafkaEnv)
	}
	c, err := client.NewClientContext(ctx, strings.Split(bootstrap, ","), nil)
	if err != nil {
		return nil, err
	}
	runs := 0
	s := &stage{bootstrap: bootstrap, close: func() { _ = c.Close() }}
	s.topic = func(ctx context.Context) (string, error) {
		runs++
		name := fmt.Sprintf("kbench-bench-%d-%d", os.Getpid(), runs)
		return name, c.CreateTopics(ctx, client.TopicSpec{
			Name: name, Partitions: partitions, ReplicationFactor: 1,
			Config: map[string]string{"file.delete.delay.ms": "1000"},
		})
	}
	s.clear = func(ctx context.Context, name string) error { return c.DeleteTopics(ctx, name) }
	return s, nil
}

// once runs one program on the stage.
func (s *stage) once(ctx context.Context, p *program, set settings) (l line, err error) {
	topic, err := s.topic(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.clear(ctx, topic)) }()
	set.Bootstrap, set.Topic = s.bootstrap, topic
	if l, err = p.run(ctx, set); err == nil && s.seen != nil {
		s.seen.add(l)
	}
	return l, err
}
