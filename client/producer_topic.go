package client

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// topicProducer is the second stage: it gives every message of one topic its partition and hands
// runs of messages to the partition producers.
type topicProducer struct {
	producer *AsyncProducer
	topic    string
	size     *sizeLimit
	stage    stage
	view     atomic.Pointer[view] // of what follows, for others; written by the stage's handler

	// Only the stage's handler uses these.
	partitioner Partitioner     // nil: not made yet
	keys        *keyPartitioner // the partitioner, where it is one
	circuit     circuit         // of looking the topic up
	known       *metadata       // that meta came from
	meta        *topicMeta      // nil: not known yet
	partitions  []*partitionProducer
	runs        [][]*ProducerMessage // by partition: what the run being handled has for it
	touched     []int32              // partitions with something in runs
	left        []*ProducerMessage
	passing     bool // what is not in left or runs has been passed on
}

func newTopicProducer(p *AsyncProducer, topic string) *topicProducer {
	t := &topicProducer{producer: p, topic: topic, size: &sizeLimit{client: p.client, topic: topic, life: p.life, tasks: &p.stages}}
	t.stage.init(p.cfg.ChannelBufferSize, &p.stages, t)
	return t
}

// A topic's messages are placed as they come: nothing is gathered.
func (t *topicProducer) fetched() bool            { return false }
func (t *topicProducer) gathers(*ProducerMessage) {}

// handle partitions a run and passes it on; see stage. While the topic is not known it waits, or
// with wait false leaves the run to the stage's goroutine.
func (t *topicProducer) handle(run []*ProducerMessage, wait bool) (left []*ProducerMessage) {
	t.passing = false
	defer func() {
		if v := recover(); v != nil {
			t.producer.fail(t.rescue(run), t.producer.caught("the topic producer", v))
			left = nil
		}
	}()
	if err := t.producer.halting(); err != nil {
		t.producer.fail(run, err)
		return nil
	}
	if err := t.ready(run, wait); err != nil {
		t.producer.fail(run, err)
		return nil
	}
	if t.meta == nil {
		return run
	}
	run = t.place(run)
	if left = t.pass(run); len(left) == len(run) && wait && len(left) > 0 {
		return t.passOne(left)
	}
	return left
}

// ready makes sure that there is a partitioner and, as far as it may wait, that the topic is known.
func (t *topicProducer) ready(run []*ProducerMessage, wait bool) (err error) {
	if t.partitioner == nil {
		if t.partitioner, err = t.producer.newPartitioner(t.topic); err != nil {
			return err
		}
		t.keys, _ = t.partitioner.(*keyPartitioner)
	}
	return t.learn(run, wait)
}

// learn takes in what is known of the topic, asking the cluster for a topic it knows nothing of
// when it may wait.
func (t *topicProducer) learn(run []*ProducerMessage, wait bool) error {
	m := t.producer.client.meta.Load()
	if m == t.known && t.meta != nil {
		return nil
	}
	now := m.topics[t.topic]
	if now == nil || len(now.partitions) == 0 {
		if t.meta != nil {
			return nil // what was known has to do until more is
		}
		if t.circuit.open(time.Now()) {
			return t.circuit.failure(t.topic, -1)
		}
		if !wait {
			return nil
		}
		var err error
		if now, err = t.lookUp(run); err != nil {
			return err
		}
	}
	before := t.meta
	t.circuit = circuit{}
	t.known, t.meta = m, now
	for len(t.partitions) < len(now.partitions) {
		n := int32(len(t.partitions))
		t.partitions = append(t.partitions, newPartitionProducer(t, n))
		t.runs = append(t.runs, nil)
	}
	t.producer.remember(t.partitions)
	_, manual := t.partitioner.(manualPartitioner)
	t.view.Store(&view{known: m, topic: now, partitions: slices.Clip(t.partitions), keys: t.keys, manual: manual})
	noteRefresh(t.partitioner, before, now) // the user's: when it panics, the rest has been done
	return nil
}

// lookUp asks the cluster for the topic, on behalf of a run that waits for it.
func (t *topicProducer) lookUp(run []*ProducerMessage) (*topicMeta, error) {
	t.stage.waiting(run)
	defer t.stage.goesOn()
	ctx, cancel := t.producer.lifeUntil(run[0])
	defer cancel()
	meta, err := t.producer.client.topic(ctx, t.topic)
	switch {
	case err == nil:
		t.circuit.succeeded()
	case t.producer.aborted():
		err = ErrClosed
	default:
		t.circuit.failed(time.Now(), err)
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%v): %w", ErrDeliveryTimeout, t.producer.cfg.Producer.DeliveryTimeout, err)
		}
	}
	return meta, err
}

// place gives each message that has none its partition, and fails those the partitioner refuses.
func (t *topicProducer) place(run []*ProducerMessage) []*ProducerMessage {
	if n, err := t.placeAll(run); err != nil {
		// Rare: fail the one message and go on without it.
		t.producer.fail(run[n:n+1], err)
		return t.place(slices.Concat(run[:n], run[n+1:]))
	}
	return run
}

// placeAll returns the index of the first message that could not be placed, and why.
func (t *topicProducer) placeAll(run []*ProducerMessage) (n int, err error) {
	if t.producer.cfg.Producer.NewPartitioner == nil {
		return t.placeByOwn(run)
	}
	return t.placeByUser(run)
}

// placeByOwn is placeAll with a partitioner of this package. A message without a key, which the
// most used of them treat as the sticky one does, is placed without asking what it is.
func (t *topicProducer) placeByOwn(run []*ProducerMessage) (n int, err error) {
	from := t.meta.writable
	for ; n < len(run); n++ {
		m := run[n]
		switch {
		case m.placed:
			continue
		case t.keys != nil && len(from) > 0 && !t.keys.RequiresConsistency(m):
			m.Partition = from[t.keys.keyless.next(m, int32(len(from)))]
		default:
			if m.Partition, err = choosePartition(t.partitioner, t.meta, m); err != nil {
				return n, err
			}
		}
		m.placed = true
	}
	return n, nil
}

// placeByUser is placeAll with the user's partitioner, whose panics stay there.
func (t *topicProducer) placeByUser(run []*ProducerMessage) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = t.producer.caught("the partitioner", v)
		}
	}()
	for ; n < len(run); n++ {
		m := run[n]
		if m.placed {
			continue
		}
		if m.Partition, err = choosePartition(t.partitioner, t.meta, m); err != nil {
			return n, err
		}
		m.placed = true
	}
	return n, nil
}

// pass hands each partition its messages and returns those whose partition has no room. A run
// for one partition, the usual case with sticky partitioning, goes on as it is.
func (t *topicProducer) pass(run []*ProducerMessage) (left []*ProducerMessage) {
	if len(run) == 0 {
		return nil
	}
	if p := run[0].Partition; run[len(run)-1].Partition == p && onePartition(run) {
		return t.partitions[p].stage.tryPush(run)
	}
	for _, m := range run {
		if len(t.runs[m.Partition]) == 0 {
			t.touched = append(t.touched, m.Partition)
		}
		t.runs[m.Partition] = append(t.runs[m.Partition], m)
	}
	t.left, t.passing = t.left[:0], true
	for _, p := range t.touched {
		t.left = append(t.left, t.partitions[p].stage.tryPush(t.runs[p])...)
		clear(t.runs[p])
		t.runs[p] = t.runs[p][:0]
	}
	t.touched = t.touched[:0]
	return t.left
}

func onePartition(run []*ProducerMessage) bool {
	for _, m := range run {
		if m.Partition != run[0].Partition {
			return false
		}
	}
	return true
}

// passOne waits until the partition of the first message has room. The messages behind it wait
// too, as in a queue: the bound of this stage is theirs together. Nobody waits for a partition
// whose circuit is open: what finds no room there fails, and the others go on.
func (t *topicProducer) passOne(run []*ProducerMessage) (left []*ProducerMessage) {
	t.stage.waiting(run)
	defer t.stage.goesOn()
	to := t.partitions[run[0].Partition]
	_, err := to.stage.push(t.producer.life, to.circuitOpens(), run[:1], false)
	switch {
	case err == nil:
		return run[1:]
	case t.producer.aborted():
		t.producer.fail(run, ErrClosed)
		return nil
	}
	var failed []*ProducerMessage
	t.left = t.left[:0]
	for _, m := range slices.Clone(run) { // run may be t.left
		if m.Partition == to.number {
			failed = append(failed, m)
		} else {
			t.left = append(t.left, m)
		}
	}
	t.producer.fail(failed, to.circuitFailure())
	return t.left
}

// rescue is what a panic while a run was handled has left here.
func (t *topicProducer) rescue(run []*ProducerMessage) (left []*ProducerMessage) {
	left = slices.Clone(run)
	if t.passing {
		left = slices.Clone(t.left)
	}
	for _, p := range t.touched {
		if t.passing {
			left = append(left, t.runs[p]...)
		}
		clear(t.runs[p])
		t.runs[p] = t.runs[p][:0]
	}
	t.touched = t.touched[:0]
	return left
}
