package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

// OpenProducer makes a producer of the workload's form, with a connection of its own or on the
// shared client.
func (t *Target) OpenProducer(ctx context.Context, id int, out run.Outcomes) (run.Producer, error) {
	var c, own *client.Client
	var err error
	if t.o.Definition.Producers.ShareConnection {
		c, err = t.sharedClient(ctx, out)
	} else {
		c, err = t.newClient(ctx, &observer{target: t, out: out}, t.transactionalID(id))
		own = c
	}
	if err != nil {
		return nil, err
	}
	p, err := t.formOn(ctx, c, common{target: t, own: own, out: out, number: int32(id % len(t.topics)), topic: t.topics[id%len(t.topics)]})
	if err != nil && own != nil {
		_ = own.Close() // nothing is open on it
	}
	return p, err
}

// formOn makes a producer on a client.
func (t *Target) formOn(ctx context.Context, c *client.Client, base common) (run.Producer, error) {
	if t.o.Definition.Producers.Form == "batch" {
		p, err := client.NewBatchProducerFromClient(c)
		if err != nil {
			return nil, err
		}
		t.counters.add(p)
		return &batchProducer{common: base, batch: p, async: t.o.Config.Producer.Batch.Async}, nil
	}
	p, err := client.NewAsyncProducerFromClient(c)
	if err != nil {
		return nil, err
	}
	t.counters.add(p)
	if t.o.Definition.Producers.Transactions.On() { // now, so that the first message does not wait for it
		if err := p.InitTransactions(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("beginning as %q: %w", c.Config().Producer.Transaction.ID, err), p.Close(ctx))
		}
	}
	form := producer{common: base, async: p}
	switch t.o.Definition.Producers.Form {
	case "sync":
		form.decided = make(chan struct{}, 1)
	case "channels":
		return newChannelProducer(form), nil
	}
	return &form, nil
}

// newClient makes a producer's client; by is told of its requests. name is its transactional id.
func (t *Target) newClient(ctx context.Context, by *observer, name string) (*client.Client, error) {
	cfg := t.o.Config
	cfg.Producer.Transaction.ID = name
	cfg.Producer.OnRequest = by.request
	switch t.o.Definition.Producers.Form {
	case "channels":
		cfg.Producer.Return = client.ReturnConfig{Successes: true, Errors: true}
	case "batch":
		cfg.Producer.Batch.Keys, cfg.Producer.Batch.Values = client.EncoderFunc(slotKey), client.EncoderFunc(slotValue)
		cfg.Producer.Batch.OnResults = batchResults{}
	}
	c, err := client.NewClientContext(ctx, t.o.Bootstrap, &cfg)
	if err == nil {
		t.counters.join(c)
	}
	return c, err
}

// sharedClient is the one client that all producers share. Its requests are recorded with the first
// producer's: they carry messages of any.
func (t *Target) sharedClient(ctx context.Context, out run.Outcomes) (*client.Client, error) {
	t.sharedMu.Lock()
	defer t.sharedMu.Unlock()
	if t.shared == nil {
		c, err := t.newClient(ctx, &observer{target: t, out: out}, "")
		if err != nil {
			return nil, err
		}
		t.shared = c
	}
	return t.shared, nil
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

// common is what producers of every form have.
type common struct {
	target *Target
	own    *client.Client // nil when shared
	out    run.Outcomes
	number int32 // of the topic
	topic  string
}

// closeOwn closes the producer's own client, on which nothing is open any more.
func (c *common) closeOwn() {
	if c.own != nil {
		_ = c.own.Close() // the only error is that it was closed before
	}
}

// producer is one producer instance of the callback and of the sync form. Send is called by one
// goroutine at a time, Delivered by the client's, for different runs at once.
type producer struct {
	common
	async *client.AsyncProducer

	handing []*client.ProducerMessage // Send's own
	held    int64                     // see HeldUntil
	// decided is nil but in the sync form, where Delivered writes and sendSync reads.
	decided chan struct{}
}

// slot is the client's form of a message, made once with it.
type slot struct {
	run.Message
	client  client.ProducerMessage
	headers headers
	roomAt  atomic.Int64 // channel form: when there was room in Input, if it waited
}

// NewMessages makes messages whose memory lies together.
func (p *producer) NewMessages(n int) []*run.Message {
	slots := make([]slot, n)
	out := make([]*run.Message, n)
	for i := range slots {
		s := &slots[i]
		s.Handle = s
		s.client.Topic, s.client.Metadata = p.topic, s
		s.Topic = p.number
		out[i] = &s.Message
	}
	return out
}

// Send hands a run to the client. With the sync form it waits for the outcome of each message
// before the next.
func (p *producer) Send(ctx context.Context, batch []*run.Message) (int, error) {
	p.hand(batch)
	if p.decided != nil {
		p.held = run.HeldThroughout // but for the little that handing over one message takes
		return p.sendSync(ctx)
	}
	n, err := p.async.ProduceRun(ctx, p.handing, p)
	p.held = p.room()
	return n, transactionError(err)
}

// HeldUntil is the instant until which the last Send was held up.
func (p *producer) HeldUntil() int64 { return p.held }

// room is when the messages of the run that waited last found room in the client; 0 when none had to wait.
// Those that follow each other find it together, so that not every one is looked at.
func (p *producer) room() int64 {
	const stride = 16
	for i := len(p.handing) - 1; i >= 0; i -= stride {
		if at := p.handing[i].Waited(); !at.IsZero() {
			return p.target.since(at)
		}
	}
	return 0
}

// hand makes handing the client's form of a run.
func (p *producer) hand(batch []*run.Message) {
	p.handing = p.handing[:0]
	for _, m := range batch {
		s := m.Handle.(*slot)
		s.client.Key, s.client.Value = m.Key, m.Value
		s.client.Headers = s.headers.of(m)
		p.handing = append(p.handing, &s.client)
	}
}

func (p *producer) sendSync(ctx context.Context) (int, error) {
	for i := range p.handing {
		if _, err := p.async.ProduceRun(ctx, p.handing[i:i+1], p); err != nil {
			return i, transactionError(err)
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

// outcomeOf is an outcome as the engine has it.
func outcomeOf(err error) (unknown bool, failed error) {
	if err == nil {
		return false, nil
	}
	return errors.Is(err, client.ErrOutcomeUnknown), failure{err}
}

// decided fills in what became of a message, whichever form sent it. waited is when there was room
// for it, zero when it did not have to wait: only then was it accepted.
func (t *Target) decided(m *run.Message, partition int32, waited time.Time, unknown bool, err error) *run.Message {
	m.Partition, m.Err, m.Unknown = partition, err, unknown
	m.Accepted = max(m.Accepted, t.since(waited))
	return m
}

// instants are when the request of a delivery left and when its outcome was known, on the engine's
// clock.
func (t *Target) instants(d client.Delivery) (written, acked int64) {
	if written, acked = t.since(d.Written), t.since(d.Acked); acked == 0 {
		acked = t.o.Clock.Now() // failed without an answer
	}
	return written, acked
}

// delivered is how many outcomes are passed on at a time, without allocating.
const delivered = 128

// Delivered passes outcomes on to the engine.
func (p *producer) Delivered(batch []*client.ProducerMessage, d client.Delivery) {
	written, acked := p.target.instants(d)
	unknown, err := outcomeOf(d.Err)
	var out [delivered]*run.Message
	for len(batch) > 0 {
		n := min(len(batch), delivered)
		for i, m := range batch[:n] {
			s := m.Metadata.(*slot)
			out[i] = p.target.decided(&s.Message, m.Partition, m.Waited(), unknown, err)
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
	p.closeOwn()
	return err
}
