package client

import (
	"context"
	"errors"
	"sync"
)

// SyncProducer sends messages and waits for their outcomes. It is an AsyncProducer with a
// waiting caller: concurrent calls share batches. All methods are safe for concurrent use.
//
// Without Producer.Idempotent, which is off by default, a message whose answer is lost is sent again
// and may be in the log twice, and messages of concurrent calls, or of one SendMessages that makes
// several batches, may change their order: see AsyncProducer. Calls made one after the other keep
// theirs.
type SyncProducer struct{ async *AsyncProducer }

// NewSyncProducer makes a producer with a client of its own. cfg may be nil for the defaults.
func NewSyncProducer(addrs []string, cfg *Config) (*SyncProducer, error) {
	p, err := NewAsyncProducer(addrs, cfg)
	if err != nil {
		return nil, err
	}
	return &SyncProducer{p}, nil
}

// NewSyncProducerFromClient makes a producer that shares the client. Close it before the client.
func NewSyncProducerFromClient(c *Client) (*SyncProducer, error) {
	p, err := NewAsyncProducerFromClient(c)
	if err != nil {
		return nil, err
	}
	return &SyncProducer{p}, nil
}

// MessageErrors are the failures of SendMessages.
type MessageErrors []*ProducerError

func (e MessageErrors) Error() string {
	errs := make([]error, len(e))
	for i := range e {
		errs[i] = e[i]
	}
	return errors.Join(errs...).Error()
}

// Unwrap gives each message's failure.
func (e MessageErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i := range e {
		errs[i] = e[i]
	}
	return errs
}

// waiter waits for the outcomes of one call. It is the destination of its messages.
type waiter struct {
	mu     sync.Mutex
	left   int
	failed MessageErrors
	done   chan struct{} // capacity 1: written when left comes to 0, read by the caller
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

// Delivered takes outcomes; see Deliveries.
func (w *waiter) Delivered(batch []*ProducerMessage, d Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.Err != nil {
		for _, m := range batch {
			w.failed = append(w.failed, &ProducerError{Msg: m, Err: d.Err})
		}
	}
	w.settle(len(batch))
}

// settle says that n messages less are waited for. Called with mu held.
func (w *waiter) settle(n int) {
	if w.left -= n; w.left == 0 {
		w.done <- struct{}{}
	}
}

// SendMessage sends one message and returns where it went. It waits for the outcome, which
// Producer.DeliveryTimeout bounds.
func (p *SyncProducer) SendMessage(m *ProducerMessage) (partition int32, offset int64, err error) {
	return p.SendMessageContext(context.Background(), m)
}

// SendMessageContext is SendMessage that also ends with ctx. The message may be sent all the
// same then, and must not be changed before the producer is closed.
func (p *SyncProducer) SendMessageContext(ctx context.Context, m *ProducerMessage) (partition int32, offset int64, err error) {
	m.one[0] = m
	failed, err := p.send(ctx, m.one[:])
	if err != nil {
		return -1, -1, err
	}
	if len(failed) > 0 {
		return -1, -1, failed[0].Err
	}
	return m.Partition, m.Offset, nil
}

// SendMessages sends messages together and waits for all outcomes. The error is a MessageErrors
// with those that failed.
func (p *SyncProducer) SendMessages(msgs []*ProducerMessage) error {
	return p.SendMessagesContext(context.Background(), msgs)
}

// SendMessagesContext is SendMessages that also ends with ctx; see SendMessageContext.
func (p *SyncProducer) SendMessagesContext(ctx context.Context, msgs []*ProducerMessage) error {
	if len(msgs) == 0 {
		return nil
	}
	failed, err := p.send(ctx, msgs)
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		return failed
	}
	return nil
}

// send returns the messages' failures, or why they are not known.
func (p *SyncProducer) send(ctx context.Context, msgs []*ProducerMessage) (MessageErrors, error) {
	if inCallback() {
		return nil, ErrInCallback
	}
	w := waiters.Get().(*waiter)
	w.left, w.failed = len(msgs), nil
	n, err := p.async.ProduceRun(ctx, msgs, w)
	if err != nil {
		w.mu.Lock()
		for _, m := range msgs[n:] {
			w.failed = append(w.failed, &ProducerError{Msg: m, Err: err})
		}
		w.settle(len(msgs) - n)
		w.mu.Unlock()
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return nil, ctx.Err() // the waiter is still a destination: it is not used again
	}
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock() // after the last Delivered has let go
	waiters.Put(w)
	return failed, nil
}

// Stats may be called at any time; see AsyncProducer.Stats.
func (p *SyncProducer) Stats() ProducerStats { return p.async.Stats() }

// Close waits for what is being sent, within ctx, and ends the producer; see AsyncProducer.Close.
func (p *SyncProducer) Close(ctx context.Context) error { return p.async.Close(ctx) }
