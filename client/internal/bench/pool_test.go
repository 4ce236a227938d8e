package bench

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results/hist"
)

const (
	runLength = 256     // messages taken from the pool at a time
	poolBound = 250_000 // messages under way
	clockRun  = 64      // messages that share a reading of the clock
)

// pool are the messages that are not under way, in runs. What came back last goes out first, so
// that no more messages are in use than have to be.
type pool[M any] struct {
	ready func(*M) // makes a new message ready

	mu    sync.Mutex
	back  sync.Cond
	made  int // messages in all
	runs  [][]*M
	spare [][]*M // empty
}

func newPool[M any](ready func(*M)) *pool[M] {
	p := &pool[M]{ready: ready}
	p.back.L = &p.mu
	return p
}

// take gives a run, waiting for one when the bound is reached. The slice is given back empty.
func (p *pool[M]) take() []*M {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.runs) == 0 {
		if p.made+runLength <= poolBound {
			return p.make()
		}
		p.back.Wait()
	}
	last := len(p.runs) - 1
	run := p.runs[last]
	p.runs = p.runs[:last]
	return run
}

func (p *pool[M]) make() []*M {
	p.made += runLength
	run, msgs := make([]*M, runLength), make([]M, runLength)
	for i := range run {
		p.ready(&msgs[i])
		run[i] = &msgs[i]
	}
	return run
}

// empty takes back the slice of a run whose messages are under way.
func (p *pool[M]) empty(run []*M) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spare = append(p.spare, run[:0])
}

// give takes back a run of messages, and returns a slice for the next.
func (p *pool[M]) give(run []*M) []*M {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = append(p.runs, run)
	p.back.Signal()
	if last := len(p.spare) - 1; last >= 0 {
		next := p.spare[last]
		p.spare = p.spare[:last]
		return next
	}
	return make([]*M, 0, runLength)
}

// tally takes outcomes, records every message's response time, and gives messages back. It is
// for one goroutine at a time: the brokers of this package have one node, whose answers are read
// by one goroutine.
type tally struct {
	pool *pool[client.ProducerMessage]
	h    *hist.Histogram
	now  time.Time
	back []*client.ProducerMessage
	n    int64

	failure atomic.Pointer[error]
}

func newTally(topic string) *tally {
	ready := func(m *client.ProducerMessage) { m.Topic = topic }
	return &tally{pool: newPool(ready), h: hist.New(), back: make([]*client.ProducerMessage, 0, runLength)}
}

// done is the callback of one message. A message's time ends with the latest reading of the
// clock, of which there is one every clockRun messages.
func (t *tally) done(m *client.ProducerMessage, err error) {
	if err != nil {
		t.fail(err)
	}
	if len(t.back)%clockRun == 0 {
		t.now = time.Now()
	}
	t.record(m, t.now)
}

// Delivered takes a run of outcomes.
func (t *tally) Delivered(batch []*client.ProducerMessage, d client.Delivery) {
	if d.Err != nil {
		t.fail(d.Err)
	}
	for _, m := range batch {
		t.record(m, d.Acked)
	}
}

func (t *tally) record(m *client.ProducerMessage, now time.Time) {
	t.h.Record(int64(now.Sub(m.Timestamp)))
	t.n++
	if t.back = append(t.back, m); len(t.back) == runLength {
		t.back = t.pool.give(t.back)
	}
}

func (t *tally) fail(err error) { t.failure.CompareAndSwap(nil, &err) }

// failed is the first message's failure.
func (t *tally) failed() error {
	if err := t.failure.Load(); err != nil {
		return *err
	}
	return nil
}
