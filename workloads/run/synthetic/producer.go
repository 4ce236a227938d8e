package synthetic

import (
	"context"
	"sync/atomic"

	"github.com/kbench/kbench/workloads/run"
)

// producer is one producer of a Target.
type producer struct {
	target *Target
	out    run.Outcomes
	open   atomic.Int64
	// idle holds a token when the last open message was answered. Outcomes write it, Flush
	// reads it.
	idle chan struct{}
}

// NewMessages makes messages without a form of their own.
func (p *producer) NewMessages(n int) []*run.Message {
	all := make([]run.Message, n)
	list := make([]*run.Message, n)
	for i := range all {
		list[i] = &all[i]
	}
	return list
}

// Send queues the run, waiting for room where the buffer is bounded.
func (p *producer) Send(ctx context.Context, batch []*run.Message) (int, error) {
	t := p.target
	waited := false
	select {
	case <-t.turn:
	default:
		waited = true
		select {
		case <-t.turn:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	defer func() { t.turn <- struct{}{} }()
	for i, m := range batch {
		if t.script.SendErr != nil && t.taken >= t.script.SendErrAfter {
			return i, t.script.SendErr
		}
		if waited {
			m.Accepted = t.clock.Now()
		}
		p.open.Add(1)
		for !t.take(m, p) {
			waited = true
			select {
			case <-t.room:
				m.Accepted = t.clock.Now()
			case <-ctx.Done():
				p.open.Add(-1)
				return i, ctx.Err()
			}
		}
	}
	return len(batch), nil
}

// Decided passes outcomes on to the engine and keeps count for Flush.
func (p *producer) Decided(batch []*run.Message, written, acked int64) {
	n := int64(len(batch))
	p.out.Decided(batch, written, acked)
	if p.open.Add(-n) == 0 {
		poke(p.idle)
	}
}

// Request passes a request on.
func (p *producer) Request(kind string, written, read int64) { p.out.Request(kind, written, read) }

// Flush waits until everything is answered.
func (p *producer) Flush(ctx context.Context) error {
	for p.open.Load() > 0 {
		select {
		case <-p.idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close has nothing to give back.
func (p *producer) Close(context.Context) error { return nil }
