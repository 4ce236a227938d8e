package kafka

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run"
)

// channelProducer is the channel form: messages go into Input one by one, and come back on
// Successes and Errors, which a goroutine each reads. A message's outcome is known when it was read
// there, so that the way through the channels is in the figures; when its request left is not told.
type channelProducer struct {
	producer
	open    atomic.Int64 // sent and not read back
	reading sync.WaitGroup
	// failed is why the open transaction can only be aborted, as a reader has seen; nil when it goes on.
	failed atomic.Pointer[error]
	read   chan struct{} // capacity 1; written by the readers, read by Flush; never closed
}

func newChannelProducer(base producer) *channelProducer {
	p := &channelProducer{producer: base, read: make(chan struct{}, 1)}
	// Both are owned by the producer; they end when Close has made the client close the channels,
	// and Close waits.
	p.reading.Go(func() {
		readAll(p, p.async.Successes(), func(m *client.ProducerMessage) (*client.ProducerMessage, error) { return m, nil })
	})
	p.reading.Go(func() {
		readAll(p, p.async.Errors(), func(e *client.ProducerError) (*client.ProducerMessage, error) { return e.Msg, e.Err })
	})
	return p
}

// Send puts a run into Input. A message that had to wait for room there was accepted when there was
// some.
func (p *channelProducer) Send(ctx context.Context, batch []*run.Message) (int, error) {
	if err := p.failed.Load(); err != nil {
		return 0, transactionError(*err)
	}
	p.hand(batch)
	p.held = 0
	in := p.async.Input()
	for i, m := range p.handing {
		s := m.Metadata.(*slot)
		s.roomAt.Store(0)
		p.open.Add(1)
		select {
		case in <- m:
			continue
		default:
		}
		select {
		case in <- m:
			p.held = p.target.o.Clock.Now()
			s.roomAt.Store(p.held)
		case <-ctx.Done():
			p.open.Add(-1)
			return i, ctx.Err()
		}
	}
	return len(batch), nil
}

// readAll reads a channel to its end, in runs: as many as are there, with one clock reading.
func readAll[T any](p *channelProducer, from <-chan T, split func(T) (*client.ProducerMessage, error)) {
	var out [delivered]*run.Message
	for first := range from {
		n := 0
		add := func(v T) {
			m, err := split(v)
			p.notice(err)
			s := m.Metadata.(*slot)
			s.Accepted = max(s.Accepted, s.roomAt.Load())
			unknown, err := outcomeOf(err)
			out[n] = p.target.decided(&s.Message, m.Partition, m.Waited(), unknown, err)
			n++
		}
		add(first)
		gather(from, add, &n)
		p.out.Decided(out[:n], 0, p.target.o.Clock.Now())
		p.open.Add(int64(-n))
		select {
		case p.read <- struct{}{}:
		default:
		}
	}
}

// notice keeps the first failure of the open transaction. Its argument is its own: the caller's variable
// goes on to change.
func (p *channelProducer) notice(err error) {
	if err != nil && errors.Is(err, client.ErrTransactionFailed) {
		failure := err // so that only this one is allocated
		p.failed.CompareAndSwap(nil, &failure)
	}
}

// gather adds what a channel holds, up to the length of a run.
func gather[T any](from <-chan T, add func(T), n *int) {
	for *n < delivered {
		select {
		case v, open := <-from:
			if !open {
				return
			}
			add(v)
		default:
			return
		}
	}
}

// flushEvery is how often Flush looks again: what was in Input still when it flushed may wait for a
// trigger by now.
const flushEvery = 5 * time.Millisecond

// Flush waits until everything sent was read back, or ctx ends.
func (p *channelProducer) Flush(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for p.open.Load() > 0 {
		if err := p.async.Flush(ctx); err != nil {
			return err
		}
		select {
		case <-p.read:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// End ends the transaction once everything sent was read back: what is in Input is part of it.
func (p *channelProducer) End(ctx context.Context, commit bool) error {
	if err := p.Flush(ctx); err != nil {
		return err
	}
	p.failed.Store(nil)
	return p.producer.End(ctx, commit)
}

// Close ends the producer: what is undecided comes back, and both channels are read to their end.
func (p *channelProducer) Close(ctx context.Context) error {
	p.async.AsyncClose(ctx)
	p.reading.Wait() // bounded: the client closes the channels within ctx
	err := p.async.Close(ctx)
	p.closeOwn()
	return err
}
