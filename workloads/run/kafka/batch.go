package kafka

import (
	"context"
	"errors"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run"
)

// batchProducer is the batch form: a run is one list for the client's batch producer. In its
// synchronous mode Send waits for the outcomes; in the asynchronous one the list is queued.
type batchProducer struct {
	common
	batch *client.BatchProducer
	async bool
	until context.Context // ends the waiting for outcomes; nil: Send's own does

	handing []*client.BatchMessage // Send's own
}

// batchSlot is the batch producer's form of a message, made once with it. It is key and value of the
// client's message itself, and the encoders take the bytes out of it.
type batchSlot struct {
	run.Message
	owner   *batchProducer
	client  client.BatchMessage
	headers headers
}

func slotKey(_ string, v any) ([]byte, error)   { return v.(*batchSlot).Key, nil }
func slotValue(_ string, v any) ([]byte, error) { return v.(*batchSlot).Value, nil }

// NewMessages makes messages whose memory lies together.
func (p *batchProducer) NewMessages(n int) []*run.Message {
	slots := make([]batchSlot, n)
	out := make([]*run.Message, n)
	for i := range slots {
		s := &slots[i]
		s.Handle, s.owner = s, p
		s.client = client.BatchMessage{Topic: p.topic, Key: s, Value: s, Metadata: s}
		s.Topic = p.number
		out[i] = &s.Message
	}
	return out
}

// AwaitUntil gives the context that ends the waiting for outcomes.
func (p *batchProducer) AwaitUntil(ctx context.Context) { p.until = ctx }

// Send hands over a run as one list. Every message that was taken has its outcome by DeliveredBatch.
func (p *batchProducer) Send(ctx context.Context, batch []*run.Message) (int, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	p.handing = p.handing[:0]
	for _, m := range batch {
		s := m.Handle.(*batchSlot)
		s.client.Headers = s.headers.of(m)
		p.handing = append(p.handing, &s.client)
	}
	if p.async {
		return p.queue(ctx)
	}
	return p.send(ctx)
}

// queue hands over in the asynchronous mode: what does not fit before ctx ends was not taken.
func (p *batchProducer) queue(ctx context.Context) (int, error) {
	var left *client.BatchError
	err := p.batch.Send(ctx, p.handing...)
	if errors.As(err, &left) {
		return len(p.handing) - len(left.Failed), left.Failed[0].Err
	}
	return len(p.handing), err
}

// send hands over in the synchronous mode. What failed was taken all the same, and has its outcome.
func (p *batchProducer) send(ctx context.Context) (int, error) {
	until := p.until
	if until == nil {
		until = ctx
	}
	var failed *client.BatchError
	if err := p.batch.Send(until, p.handing...); err != nil && !errors.As(err, &failed) {
		return 0, err
	}
	return len(p.handing), ctx.Err()
}

// batchResults passes the batch producers' outcomes on to the engine. It is one for all, since with a
// shared client they share a configuration; a message knows its producer.
type batchResults struct{}

// DeliveredBatch takes a run of outcomes, of one producer.
func (batchResults) DeliveredBatch(batch []*client.BatchMessage, d client.Delivery) {
	p := batch[0].Metadata.(*batchSlot).owner
	written, acked := p.target.instants(d)
	unknown, err := outcomeOf(d.Err)
	var out [delivered]*run.Message
	for len(batch) > 0 {
		n := min(len(batch), delivered)
		for i, m := range batch[:n] {
			s := m.Metadata.(*batchSlot)
			out[i] = p.target.decided(&s.Message, m.Partition, m.Waited(), unknown, err)
		}
		p.out.Decided(out[:n], written, acked)
		batch = batch[n:]
	}
}

// Flush waits until everything taken is decided.
func (p *batchProducer) Flush(ctx context.Context) error { return p.batch.Flush(ctx) }

// Close ends the producer and its own connection.
func (p *batchProducer) Close(ctx context.Context) error {
	err := p.batch.Close(ctx)
	p.closeOwn()
	return err
}
