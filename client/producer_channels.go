package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ProducerError is a message that failed, with the reason; on Errors.
type ProducerError struct {
	Msg *ProducerMessage
	Err error
}

func (e *ProducerError) Error() string {
	if e.Msg == nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("topic %q: %v", e.Msg.Topic, e.Err)
}
func (e *ProducerError) Unwrap() error { return e.Err }

// Input is the channel form of Produce: messages sent here come back on Successes or Errors,
// as far as Producer.Return asks for them. It holds ChannelBufferSize messages and blocks while
// the producer's bounds are full, which they stay while outcomes asked for are not read. Stop
// sending before closing the producer: what is sent later fails, and after the end of the
// closing nobody receives it.
func (p *AsyncProducer) Input() chan<- *ProducerMessage {
	p.results.start()
	return p.input
}

// Successes delivers acknowledged messages of the channel form. It must be read unless
// Producer.Return.Successes is off. It is closed at the end of AsyncClose.
func (p *AsyncProducer) Successes() <-chan *ProducerMessage {
	p.results.start()
	return p.results.successes
}

// Errors delivers failed messages of the channel form. It must be read unless
// Producer.Return.Errors is off. It is closed at the end of AsyncClose.
func (p *AsyncProducer) Errors() <-chan *ProducerError {
	p.results.start()
	return p.results.failures
}

// results is the channel form: a dispatcher that reads Input, and a deliverer that writes
// Successes and Errors. Its queue is bounded by the producer's buffer, in which a message keeps
// its place until its outcome has been read.
type results struct {
	p *AsyncProducer

	once      sync.Once
	started   bool
	successes chan *ProducerMessage // written and closed by the deliverer
	failures  chan *ProducerError   // written and closed by the deliverer

	stop    chan struct{} // closed by stopInput: the dispatcher takes what Input holds, and nothing more
	drained chan struct{} // closed by the dispatcher once it has
	ended   chan struct{} // closed by the dispatcher at its end: it puts nothing more
	over    chan struct{} // closed by end: nothing more is put
	drop    chan struct{} // closed when closing is late and nobody reads: what is left is dropped
	done    sync.WaitGroup

	mu    sync.Mutex
	queue []outcome
	spare []outcome
	wake  chan struct{} // capacity 1; written by put, read by the deliverer

	read atomic.Int64 // outcomes that have left the deliverer

	err error // of closing
}

type outcome struct {
	m   *ProducerMessage
	err error
}

func (r *results) init(p *AsyncProducer) {
	r.p = p
	r.successes = make(chan *ProducerMessage, p.cfg.ChannelBufferSize)
	r.failures = make(chan *ProducerError, p.cfg.ChannelBufferSize)
	r.stop, r.drained, r.ended = make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.over, r.drop, r.wake = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
}

// start starts the goroutines on first use, so that producers without channels have none.
func (r *results) start() {
	r.once.Do(func() {
		r.mu.Lock()
		r.started = true
		r.mu.Unlock()
		r.done.Add(2)
		// Both are owned by the producer and end in its closing, which waits.
		go r.dispatch()
		go r.deliver()
	})
}

// dispatch takes runs of messages from Input.
func (r *results) dispatch() {
	defer r.done.Done()
	defer close(r.ended)
	run := make([]*ProducerMessage, 0, chunk)
	for {
		select {
		case m := <-r.p.input:
			run = append(run[:0], m)
		case <-r.stop:
			r.lastMessages(run[:0])
			return
		}
		r.accept(r.gather(run))
	}
}

// gather adds what Input holds to run, up to its capacity.
func (r *results) gather(run []*ProducerMessage) []*ProducerMessage {
	for len(run) < cap(run) {
		select {
		case m := <-r.p.input:
			run = append(run, m)
		default:
			return run
		}
	}
	return run
}

func (r *results) accept(run []*ProducerMessage) {
	for _, m := range run {
		if m == nil {
			r.refuse(nil, errNilMessage)
		}
	}
	run = slices.DeleteFunc(run, func(m *ProducerMessage) bool { return m == nil })
	n, err := r.p.accept(r.p.life, run, nil, toChannels)
	for _, m := range run[n:] {
		r.refuse(m, err)
	}
}

// refuse fails a message that never came into the books.
func (r *results) refuse(m *ProducerMessage, err error) {
	if m != nil {
		m.Partition, m.Offset, m.size = -1, -1, 0
	}
	if r.p.life.Err() != nil {
		err = ErrClosed
	}
	r.p.buffer.add(1, 0) // given back when it has been read
	r.put([]*ProducerMessage{m}, Delivery{Err: err})
}

// lastMessages takes what Input held when closing began, and fails what comes later.
func (r *results) lastMessages(run []*ProducerMessage) {
	for {
		run = r.gather(run[:0])
		if len(run) == 0 {
			break
		}
		r.accept(run)
	}
	close(r.drained)
	for {
		select {
		case m := <-r.p.input:
			r.refuse(m, ErrClosed)
		case <-r.over:
			for _, m := range r.gather(run[:0]) {
				r.refuse(m, ErrClosed)
			}
			return
		}
	}
}

// put queues outcomes for the deliverer; those nobody wants are over at once.
func (r *results) put(run []*ProducerMessage, d Delivery) {
	want := r.p.cfg.Producer.Return.Successes
	if d.Err != nil {
		want = r.p.cfg.Producer.Return.Errors
	}
	for _, m := range run {
		if !want {
			r.p.buffer.release(1, bytesOf(m))
		}
	}
	if !want {
		return
	}
	r.mu.Lock()
	for _, m := range run {
		r.queue = append(r.queue, outcome{m, d.Err})
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// deliver writes outcomes to their channels until closing is over.
func (r *results) deliver() {
	defer r.done.Done()
	defer close(r.successes)
	defer close(r.failures)
	for {
		r.mu.Lock()
		batch := r.queue
		r.queue, r.spare = r.spare[:0], nil
		r.mu.Unlock()
		r.write(batch)
		clear(batch)
		r.spare = batch[:0]
		if len(batch) > 0 {
			continue
		}
		select {
		case <-r.wake:
		case <-r.over:
			<-r.ended
			r.mu.Lock()
			empty := len(r.queue) == 0
			r.mu.Unlock()
			if empty {
				return
			}
		}
	}
}

func (r *results) write(batch []outcome) {
	for _, o := range batch {
		size := bytesOf(o.m)
		if o.err == nil {
			select {
			case r.successes <- o.m:
			case <-r.drop:
			}
		} else {
			select {
			case r.failures <- &ProducerError{Msg: o.m, Err: o.err}:
			case <-r.drop:
			}
		}
		r.p.buffer.release(1, size)
		r.read.Add(1)
	}
}

// bytesOf is what a message holds of the bound; nil is one that the user sent.
func bytesOf(m *ProducerMessage) int64 {
	if m == nil {
		return 0
	}
	return int64(m.size)
}

// stopInput makes the dispatcher take what Input holds, and waits for that within ctx.
func (r *results) stopInput(ctx context.Context) {
	r.once.Do(func() {}) // never started: there is nothing to stop, and nothing starts any more
	if !r.running() {
		close(r.successes)
		close(r.failures)
		return
	}
	close(r.stop)
	select {
	case <-r.drained:
	case <-ctx.Done():
	}
}

// running says that the channel form was used: there are goroutines of it.
func (r *results) running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// end delivers what is left and waits until the channels are closed. Once ctx has ended, what is
// left is dropped as soon as nothing has been read for closeGrace.
func (r *results) end(ctx context.Context) {
	if r.running() {
		<-r.drained // nothing it waits for lasts: the producer's life is over
	}
	close(r.over)
	finished := make(chan struct{})
	go func() { // owned by this call, which waits for it
		r.done.Wait()
		close(finished)
	}()
	select {
	case <-finished:
		return
	case <-ctx.Done():
	}
	grace := time.NewTicker(closeGrace)
	defer grace.Stop()
	for read := r.read.Load(); ; {
		select {
		case <-finished:
			return
		case <-grace.C:
		}
		now := r.read.Load()
		if now == read {
			close(r.drop)
			<-finished
			return
		}
		read = now
	}
}

// discard reads both channels to their end.
func (r *results) discard() {
	go func() { // ends when the deliverer closes the channel
		for range r.successes {
		}
	}()
	for range r.failures {
	}
}
