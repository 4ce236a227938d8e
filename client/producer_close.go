package client

import (
	"context"
	"fmt"
	"time"
)

// Flush sends what waits, whatever the flush triggers say, and waits until everything accepted
// before the call is decided, or ctx ends. In a callback it is ErrInCallback at once.
func (p *AsyncProducer) Flush(ctx context.Context) error {
	if inCallback() {
		return fmt.Errorf("flush: %w", ErrInCallback)
	}
	p.flushing.Add(1)
	defer p.flushing.Add(-1)
	p.wakeSenders()
	if err := p.accounts.wait(ctx); err != nil {
		return fmt.Errorf("flush: %d messages not decided yet: %w", p.accounts.total(), err)
	}
	return nil
}

func (p *AsyncProducer) wakeSenders() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.brokers {
		b.signal()
	}
}

// closeGrace is how long after its context Close waits for what the end of everything takes: a
// moment, unless a function of the user's does not return.
const closeGrace = 2 * time.Second

// Close flushes and ends the producer. When ctx ends before everything is decided, what is left
// fails with ErrClosed (and ErrOutcomeUnknown where it was written already), and Close says so:
// every message has its outcome when it returns. Outcomes that nobody reads from Successes and
// Errors are discarded. A second call waits for the first, and its context bounds the closing as
// well.
//
// A callback that does not return cannot be ended: then Close returns two seconds after ctx, with
// an error, and what is left ends when the callback does. In a callback Close begins to close the
// producer and returns ErrInCallback.
func (p *AsyncProducer) Close(ctx context.Context) error {
	p.AsyncClose(ctx)
	if inCallback() {
		return fmt.Errorf("close: %w", ErrInCallback)
	}
	// Owned by the producer; ends when the channels are closed, before closed is.
	go p.results.discard()
	select {
	case <-p.closed:
		return p.results.err
	case <-ctx.Done():
	}
	p.cutShort(ctx.Err())
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-p.closed:
		return p.results.err
	case <-grace.C:
		return fmt.Errorf("close: a callback or another function of the user's has not returned; %d messages are not decided: %w",
			p.accounts.total(), ctx.Err())
	}
}

// AsyncClose begins to close the producer and returns at once: Successes and Errors are closed
// when every message has been delivered on them, so that reading both to their end gets all.
// ctx bounds the flush, as in Close.
func (p *AsyncProducer) AsyncClose(ctx context.Context) {
	p.close.Do(func() {
		ctx, cut := context.WithCancelCause(ctx)
		p.cut.Store(&cut)
		p.closing.Store(true)
		// Owned by the producer; bounded by ctx, after which nothing waits any more but for the
		// user to read the channels.
		go p.shutDown(ctx)
	})
}

// cutShort ends what the closing waits for.
func (p *AsyncProducer) cutShort(cause error) { (*p.cut.Load())(cause) }

func (p *AsyncProducer) shutDown(ctx context.Context) {
	p.results.stopInput(ctx)
	if p.txn != nil {
		p.results.err = p.txn.close(ctx)
	}
	p.flushing.Add(1)
	p.wakeSenders()
	err := p.accounts.wait(ctx)
	left := p.accounts.total()
	p.abort(err != nil)
	p.awaitGoroutines(ctx)
	p.failWaiting()
	if p.ownsClient {
		_ = p.client.Close() // the only error is that it was closed before
	}
	// Everything has been decided or is being decided by a connection that was closed.
	_ = p.accounts.wait(context.Background())
	if err != nil {
		late := fmt.Errorf("close: %d messages were not decided in time and failed: %w", left, context.Cause(ctx))
		if p.results.err != nil { // the transaction's end failed as well
			late = fmt.Errorf("%w; %w", late, p.results.err)
		}
		p.results.err = late
	}
	p.results.end(ctx)
	p.stages.wait() // the dispatcher may have started one until it ended
	if p.cfg.Producer.NewPartitioner != nil {
		userCode.Add(-1)
	}
	close(p.closed)
	p.cutShort(nil) // gives the context back
}

// awaitGoroutines waits for the stages and the broker producers. All messages may be decided while
// a request is still being written, when they ran out of time: that is cut short with ctx.
func (p *AsyncProducer) awaitGoroutines(ctx context.Context) {
	over := make(chan struct{})
	go func() { // owned by this call, which waits for it
		p.stages.wait()
		p.senders.Wait()
		close(over)
	}()
	select {
	case <-over:
		return
	case <-ctx.Done():
	}
	p.abort(true)
	<-over
}

// abort cuts short everything that waits. With force it also closes connections on which
// requests of this producer are being written or in flight: on a shared client others have to
// try theirs again, which is the price of ending in time.
func (p *AsyncProducer) abort(force bool) {
	p.end()
	p.over.Store(true)
	p.expiry.stop()
	p.mu.Lock()
	parts := p.parts
	brokers := make([]*brokerProducer, 0, len(p.brokers))
	for _, b := range p.brokers {
		brokers = append(brokers, b)
	}
	p.mu.Unlock()
	for _, pp := range parts {
		pp.mu.Lock()
		pp.makeRoom()
		pp.mu.Unlock()
	}
	for _, b := range brokers {
		if c := b.using.Load(); force && c != nil && b.outstanding.Load() > 0 {
			c.Close(ErrClosed)
		}
	}
}

// failWaiting fails what was in batches and never sent.
func (p *AsyncProducer) failWaiting() {
	p.mu.Lock()
	parts := p.parts
	p.mu.Unlock()
	for _, pp := range parts {
		pp.failAll(ErrClosed)
	}
}
