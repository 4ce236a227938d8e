package synthetic

import (
	"context"
	"sync/atomic"
	"time"

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

	// Of the goroutine that sends.
	commits  int   // asked for
	held     int64 // see HeldUntil
	failedAt int64 // messages taken when Send last said that the transaction had failed
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
	p.held = 0
	select {
	case <-t.turn:
	default:
		waited = true
		select {
		case <-t.turn:
			p.held = t.clock.Now()
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	defer p.toil(len(batch)) // after the next has the turn
	defer func() { t.turn <- struct{}{} }()
	for i, m := range batch {
		if n := t.script.FailSend; n > 0 && t.taken > p.failedAt && t.taken%n == 0 {
			p.failedAt = t.taken
			return i, run.ErrTransactionFailed
		}
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
				p.held = t.clock.Now()
				m.Accepted = p.held
			case <-ctx.Done():
				p.open.Add(-1)
				return i, ctx.Err()
			}
		}
	}
	return len(batch), nil
}

// toil is at work for so many messages.
func (p *producer) toil(n int) {
	if each := p.target.script.Toil; each > 0 {
		time.Sleep(time.Duration(n) * each) // on the virtual clock: nobody else is held up by it
	}
}

// HeldUntil is when the last Send had its turn and room for its last message; 0 when it waited for neither.
func (p *producer) HeldUntil() int64 { return p.held }

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

// Begin opens a transaction.
func (p *producer) Begin(context.Context) error { return p.target.script.BeginErr }

// End ends it as the script has it, once everything is answered.
func (p *producer) End(ctx context.Context, commit bool) error {
	if err := p.Flush(ctx); err != nil {
		return err
	}
	s := &p.target.script
	if commit {
		p.commits++
		if s.LoseCommit > 0 && p.commits >= s.LoseCommit {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	if s.EndErr != nil {
		return s.EndErr
	}
	timer := time.NewTimer(s.EndTxn)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if commit && s.FailCommit > 0 && p.commits%s.FailCommit == 0 {
		return run.ErrTransactionFailed
	}
	return nil
}

// Close has nothing to give back.
func (p *producer) Close(context.Context) error { return nil }
