package client

import "slices"

// topicProducer is the second stage: it gives every message of one topic its partition and hands
// runs of messages to the partition producers.
type topicProducer struct {
	producer    *AsyncProducer
	topic       string
	stage       *stage
	partitioner Partitioner

	// Only the stage's handler uses these.
	known      *metadata  // that meta came from
	meta       *topicMeta // nil: not known yet
	partitions []*partitionProducer
	runs       [][]*ProducerMessage // by partition: what the run being handled has for it
	touched    []int32              // partitions with something in runs
	left       []*ProducerMessage
}

func newTopicProducer(p *AsyncProducer, topic string) *topicProducer {
	t := &topicProducer{producer: p, topic: topic, partitioner: p.cfg.partitioner(topic)}
	t.stage = newStage(p.cfg.ChannelBufferSize, &p.stages)
	t.stage.handle = t.handle
	return t
}

// handle partitions a run and passes it on; see stage. While the topic is not known it waits, or
// with wait false leaves the run to the stage's goroutine.
func (t *topicProducer) handle(run []*ProducerMessage, wait bool) (left []*ProducerMessage) {
	if t.producer.aborted() {
		t.producer.fail(run, ErrClosed)
		return nil
	}
	if err := t.learn(wait); err != nil {
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

// learn takes in what is known of the topic, asking the cluster for a topic it knows nothing of
// when it may wait.
func (t *topicProducer) learn(wait bool) error {
	m := t.producer.client.meta.Load()
	if m == t.known && t.meta != nil {
		return nil
	}
	now := m.topics[t.topic]
	if now == nil || len(now.partitions) == 0 {
		if t.meta != nil || !wait {
			return nil // what was known has to do until more is
		}
		var err error
		if now, err = t.producer.client.topic(t.producer.life, t.topic); err != nil {
			return err
		}
	}
	noteRefresh(t.partitioner, t.meta, now)
	t.known, t.meta = m, now
	for len(t.partitions) < len(now.partitions) {
		n := int32(len(t.partitions))
		t.partitions = append(t.partitions, newPartitionProducer(t.producer, t.topic, n))
		t.runs = append(t.runs, nil)
	}
	t.producer.remember(t.partitions)
	return nil
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
	defer func() {
		if v := recover(); v != nil {
			t.producer.panics.Add(1)
			err = &PanicError{Where: "the partitioner", Value: v}
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
	t.left = t.left[:0]
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
// too, as in a queue: the bound of this stage is theirs together.
func (t *topicProducer) passOne(run []*ProducerMessage) (left []*ProducerMessage) {
	_, err := t.partitions[run[0].Partition].stage.push(t.producer.life, t.producer.life.Done(), run[:1], false)
	if err != nil {
		t.producer.fail(run, ErrClosed)
		return nil
	}
	return run[1:]
}
