package kafka

import (
	"context"
	"errors"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

// OpenProducer makes a producer with a connection of its own, or on the shared client.
func (t *Target) OpenProducer(ctx context.Context, id int, out run.Outcomes) (run.Producer, error) {
	p := &producer{target: t, out: out, topic: t.topics[id%len(t.topics)]}
	if t.o.Definition.Producers.Form == "sync" {
		p.decided = make(chan struct{}, 1)
	}
	var err error
	if t.o.Definition.Producers.ShareConnection {
		p.async, err = t.sharedProducer(ctx, out)
	} else {
		p.async, p.client, err = t.ownProducer(ctx, out)
	}
	if err != nil {
		return nil, err
	}
	t.counters.add(p.async)
	return p, nil
}

func (t *Target) ownProducer(ctx context.Context, out run.Outcomes) (*client.AsyncProducer, *client.Client, error) {
	cfg := t.o.Config
	cfg.Producer.OnRequest = (&observer{target: t, out: out}).request
	c, err := client.NewClientContext(ctx, t.o.Bootstrap, &cfg)
	if err != nil {
		return nil, nil, err
	}
	p, err := client.NewAsyncProducerFromClient(c)
	return p, c, err
}

// sharedProducer is a producer on the one client that all producers share. Its requests are
// recorded with the first producer's: they carry messages of any.
func (t *Target) sharedProducer(ctx context.Context, out run.Outcomes) (*client.AsyncProducer, error) {
	t.sharedMu.Lock()
	defer t.sharedMu.Unlock()
	if t.shared == nil {
		t.sharedBy = &observer{target: t, out: out}
		cfg := t.o.Config
		cfg.Producer.OnRequest = t.sharedBy.request
		c, err := client.NewClientContext(ctx, t.o.Bootstrap, &cfg)
		if err != nil {
			return nil, err
		}
		t.shared = c
	}
	return client.NewAsyncProducerFromClient(t.shared)
}

// observer takes the facts of Produce requests.
type observer struct {
	target *Target
	out    run.Outcomes
}

func (o *observer) request(i client.RequestInfo) {
	o.target.counters.request(i)
	if i.Err == nil && i.Read.After(i.Written) {
		o.out.Request(results.SeriesProduce, o.target.since(i.Written), o.target.since(i.Read))
	}
}

// producer is one producer instance. Send is called by one goroutine at a time, Delivered by the
// client's, for different runs at once.
type producer struct {
	target *Target
	client *client.Client // nil when shared
	async  *client.AsyncProducer
	out    run.Outcomes
	topic  string

	handing []*client.ProducerMessage // Send's own
	// decided is nil but in the sync form, where Delivered writes and sendSync reads.
	decided chan struct{}
}

// slot is the client's form of a message, made once with it.
type slot struct {
	run.Message
	client client.ProducerMessage
	header [1]client.Header
}

// NewMessages makes messages whose memory lies together.
func (p *producer) NewMessages(n int) []*run.Message {
	slots := make([]slot, n)
	out := make([]*run.Message, n)
	for i := range slots {
		s := &slots[i]
		s.Handle = s
		s.header[0].Key = run.HeaderName
		s.client.Topic, s.client.Metadata = p.topic, s
		out[i] = &s.Message
	}
	return out
}

// Send hands a run to the client. With the sync form it waits for the outcome of each message
// before the next.
func (p *producer) Send(ctx context.Context, batch []*run.Message) (int, error) {
	p.handing = p.handing[:0]
	for _, m := range batch {
		s := m.Handle.(*slot)
		s.client.Key, s.client.Value = m.Key, m.Value
		s.client.Headers = nil
		if m.Header != nil {
			s.header[0].Value = m.Header
			s.client.Headers = s.header[:]
		}
		p.handing = append(p.handing, &s.client)
	}
	if p.target.o.Definition.Producers.Form == "sync" {
		return p.sendSync(ctx)
	}
	return p.async.ProduceRun(ctx, p.handing, p)
}

func (p *producer) sendSync(ctx context.Context) (int, error) {
	for i := range p.handing {
		if _, err := p.async.ProduceRun(ctx, p.handing[i:i+1], p); err != nil {
			return i, err
		}
		select {
		case <-p.decided:
		case <-ctx.Done():
			return i + 1, ctx.Err()
		}
	}
	return len(p.handing), nil
}

// failure is why a message failed, under the client's name for its kind, which the engine counts
// it by.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// Kind is the name of the kind of error, without what differs from one to the next.
func (f failure) Kind() string { return client.ErrorKind(f.error) }

// delivered is how many outcomes are passed on at a time, without allocating.
const delivered = 128

// Delivered passes outcomes on to the engine.
func (p *producer) Delivered(batch []*client.ProducerMessage, d client.Delivery) {
	written, acked := p.target.since(d.Written), p.target.since(d.Acked)
	if acked == 0 {
		acked = p.target.o.Clock.Now() // failed without an answer
	}
	err, unknown := d.Err, false
	if err != nil {
		err, unknown = failure{err}, errors.Is(err, client.ErrOutcomeUnknown)
	}
	var out [delivered]*run.Message
	for len(batch) > 0 {
		n := min(len(batch), delivered)
		for i, m := range batch[:n] {
			s := m.Metadata.(*slot)
			s.Partition, s.Err, s.Unknown = m.Partition, err, unknown
			if room := m.Waited(); !room.IsZero() {
				s.Accepted = max(s.Accepted, p.target.since(room))
			}
			out[i] = &s.Message
		}
		p.out.Decided(out[:n], written, acked)
		batch = batch[n:]
	}
	if p.decided != nil {
		select {
		case p.decided <- struct{}{}:
		default: // nobody waits any more: an interrupted run
		}
	}
}

// Flush waits until everything taken is decided.
func (p *producer) Flush(ctx context.Context) error { return p.async.Flush(ctx) }

// Close ends the producer and its own connection.
func (p *producer) Close(ctx context.Context) error {
	err := p.async.Close(ctx)
	if p.client != nil {
		_ = p.client.Close() // nothing is open on it any more
	}
	return err
}
