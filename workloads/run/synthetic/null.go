package synthetic

import (
	"context"

	"github.com/kbench/kbench/workloads/run"
)

// Null is a target with nothing behind it: it takes every message and decides it at once, in
// the call. What the engine reaches with it is what the engine itself can do.
type Null struct{ clock run.Clock }

// NewNull makes a null target that answers by clock.
func NewNull(clock run.Clock) *Null { return &Null{clock: clock} }

// Prepare does nothing.
func (*Null) Prepare(context.Context) error { return nil }

// OpenProducer makes a producer.
func (n *Null) OpenProducer(_ context.Context, _ int, out run.Outcomes) (run.Producer, error) {
	return &nullProducer{clock: n.clock, out: out}, nil
}

// OpenConsumer makes a consumer that never receives anything.
func (*Null) OpenConsumer(context.Context, run.Member, run.Arrivals) (run.Consumer, error) {
	return nullConsumer{}, nil
}

// Lags knows of none.
func (*Null) Lags(into []run.PartitionLag) []run.PartitionLag { return into }

// Mark does nothing.
func (*Null) Mark(context.Context, run.Edge) {}

// Report has nothing to tell.
func (*Null) Report(context.Context) (run.Report, error) { return run.Report{}, nil }

// Finish does nothing.
func (*Null) Finish(context.Context) error { return nil }

type nullProducer struct {
	producer
	clock run.Clock
	out   run.Outcomes
}

func (p *nullProducer) Send(_ context.Context, batch []*run.Message) (int, error) {
	n := len(batch)
	p.out.Decided(batch, 0, p.clock.Now())
	return n, nil
}

func (*nullProducer) Begin(context.Context) error { return nil }

func (*nullProducer) End(context.Context, bool) error { return nil }

func (*nullProducer) Flush(context.Context) error { return nil }

type nullConsumer struct{}

func (nullConsumer) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
func (nullConsumer) Close(context.Context) error { return nil }
