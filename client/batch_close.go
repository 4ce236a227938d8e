package client

import (
	"context"
	"fmt"
	"time"
)

// Flush sends what is queued, whatever the flush triggers say, and waits until everything taken
// before the call is decided, or ctx ends. In OnResults it is ErrInCallback at once.
func (p *BatchProducer) Flush(ctx context.Context) error {
	if inCallback() {
		return fmt.Errorf("flush: %w", ErrInCallback)
	}
	p.queue.flushing.Add(1)
	defer p.queue.flushing.Add(-1)
	p.queue.wake()
	if err := p.accounts.wait(ctx); err != nil {
		return fmt.Errorf("flush: %d messages not decided yet: %w", p.accounts.total(), err)
	}
	return nil
}

// Close flushes and ends the producer. When ctx ends before everything is decided, what is left
// fails with ErrClosed, and ErrOutcomeUnknown where it was written already, and Close says so: every
// message has its outcome when it returns. Results is closed then; outcomes on it that nobody has
// read by the end of ctx are dropped, and counted in the error. A second call waits for the first,
// and its context bounds the closing as well.
//
// An encoder or OnResults that does not return cannot be ended: then Close returns two seconds after
// ctx, with an error. In OnResults Close begins to close the producer and returns ErrInCallback.
func (p *BatchProducer) Close(ctx context.Context) error {
	p.close.Do(func() {
		ctx, cut := context.WithCancelCause(ctx)
		p.cut = cut
		p.closing.Store(true)
		// Owned by the producer; bounded by ctx, unless the user's code does not return.
		go p.shutDown(ctx)
	})
	if inCallback() {
		return fmt.Errorf("close: %w", ErrInCallback)
	}
	select {
	case <-p.closed:
		return p.result
	case <-ctx.Done():
	}
	p.cut(ctx.Err())
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-p.closed:
		return p.result
	case <-grace.C:
		return fmt.Errorf("close: a function of the user's has not returned; %d messages are not decided: %w",
			p.accounts.total(), ctx.Err())
	}
}

func (p *BatchProducer) shutDown(ctx context.Context) {
	defer close(p.closed)
	defer p.cut(nil) // gives the context back
	p.queue.flushing.Add(1)
	p.queue.wake()
	err := p.accounts.wait(ctx)
	left := p.accounts.total()
	if err != nil {
		err = context.Cause(ctx)
		close(p.drop)
	}
	p.end()
	_ = p.accounts.wait(context.Background()) // nothing waits for longer than life
	p.interruptWrites()
	p.work.Wait()
	close(p.results)
	p.reportLastDrops()
	if p.ownsClient {
		_ = p.client.Close() // the only error is that it was closed before
	}
	if err == nil {
		return
	}
	p.result = fmt.Errorf("close: %d messages were not decided in time and failed: %w", left, err)
	if n := p.unread.Load(); n > 0 {
		p.result = fmt.Errorf("close: %d messages were not decided in time, or their results not read (%d): %w", left, n, err)
	}
}

// reportLastDrops tells of connections that were lost after the last request on them, with acks=0.
func (p *BatchProducer) reportLastDrops() {
	if p.cfg.Producer.RequiredAcks != AcksNone {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.senders {
		if c := s.using.Load(); c != nil && c.Err() != nil {
			p.dropped.Add(1)
		}
	}
}

// interruptWrites closes connections on which a request of a call that was given up is still being
// written: on a shared client others have to try theirs again, which is the price of ending in time.
func (p *BatchProducer) interruptWrites() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.senders {
		if c := s.using.Load(); c != nil && s.writing.Load() > 0 {
			c.Close(ErrClosed)
		}
	}
}
