package client

import (
	"context"

	"github.com/kbench/kbench/client/record"
)

// view is what a topic producer last learnt of its topic, for whoever places messages without
// being its stage's handler. It is never changed.
type view struct {
	known      *metadata
	topic      *topicMeta
	partitions []*partitionProducer
	keys       *keyPartitioner // the partitioner, where it is one
	manual     bool            // the partitioner takes what the message names
}

// direct is the short way of a message by itself: from Produce into the queue of its partition,
// when nothing has to be asked, waited for or handled on the way there. It takes no message that
// would overtake another of its caller's, which may wait in the topic's queue only while that is
// shared. Not taken: nothing has happened, and the long way is to be gone.
func (p *AsyncProducer) direct(ctx context.Context, m *ProducerMessage, done callback) (taken bool, err error) {
	t := p.last.Load()
	if !p.short || t == nil || t.topic != m.Topic || t.stage.alone.Load() == shared {
		return false, nil
	}
	v := t.view.Load()
	size := m.payloadBytes()
	if v == nil || v.known != p.client.meta.Load() || // a topic's own limit is looked at with the batch
		size+record.HeaderSize+record.MaxRecordOverhead+maxHeaderOverhead*len(m.Headers) > p.cfg.Producer.MaxMessageBytes {
		return false, nil
	}
	partition, placed := t.placeOne(v, m)
	if !placed {
		return false, nil
	}
	if !p.buffer.try(1, int64(size)) {
		return false, nil
	}
	m.sink, m.size, m.accepted = done, uint32(size), 0
	m.Partition, m.placed = partition, true
	m.way = toCallback | way(p.accounts.accepted(1))
	if m.waited != 0 {
		m.waited = 0
	}
	if p.closing.Load() { // Close may have looked at the books before this entry
		p.withdraw(m.alone())
		return false, nil
	}
	if n, _ := v.partitions[partition].stage.offer(m.alone()); n == 1 {
		return true, nil
	}
	if _, err := t.stage.push(ctx, p.ended, m.alone(), true); err != nil {
		p.withdraw(m.alone())
		return true, err
	}
	return true, nil
}

// placeOne is the partition of a message by itself, if that is easily said.
func (t *topicProducer) placeOne(v *view, m *ProducerMessage) (partition int32, placed bool) {
	all := int32(len(v.partitions))
	switch {
	case v.manual:
		return m.Partition, m.Partition >= 0 && m.Partition < all
	case v.keys == nil:
		return 0, false
	case v.keys.RequiresConsistency(m):
		return v.keys.hash(m.Key, all), true
	}
	writable := v.topic.writable
	if len(writable) == 0 || !t.stage.alone.CompareAndSwap(0, 1) {
		return 0, false
	}
	partition = writable[v.keys.keyless.next(m, int32(len(writable)))]
	t.stage.finishAlone(1, nil)
	return partition, true
}

// alone is a run of this message.
func (m *ProducerMessage) alone() []*ProducerMessage {
	if m.one[0] != m {
		m.one[0] = m
	}
	return m.one[:]
}
