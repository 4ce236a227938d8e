package perftool

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/kbench/kbench/results/hist"
	"github.com/kbench/kbench/workloads/run"
)

// EndToEnd prints as EndToEndLatency does, of a run with one message at a time on its way. Latency is
// from handing a message over to having it back.
type EndToEnd struct {
	Out   io.Writer
	Clock run.Clock

	sent atomic.Int64 // when the message under way was handed over; 0 when there is none

	mu      sync.Mutex
	n       int64
	latency *hist.Histogram
}

// every is how many messages lie between two lines.
const every = 1000

// Watch is target with the printer beside it.
func (e *EndToEnd) Watch(target run.Target) run.Target { return endToEndTarget{beside{target}, e} }

type endToEndTarget struct {
	beside
	e *EndToEnd
}

// OpenProducer has messages pass by the printer.
func (t endToEndTarget) OpenProducer(ctx context.Context, id int, out run.Outcomes) (run.Producer, error) {
	p, err := t.Target.OpenProducer(ctx, id, out)
	if err != nil {
		return nil, err
	}
	return endToEndProducer{p, t.e}, nil
}

// endToEndProducer is a producer of form sync, which is no run.Waiter.
type endToEndProducer struct {
	run.Producer
	e *EndToEnd
}

// Send notes when.
func (p endToEndProducer) Send(ctx context.Context, batch []*run.Message) (int, error) {
	p.e.sent.Store(p.e.Clock.Now())
	return p.Producer.Send(ctx, batch)
}

// OpenConsumer has arrivals pass by the printer.
func (t endToEndTarget) OpenConsumer(ctx context.Context, who run.Member, in run.Arrivals) (run.Consumer, error) {
	return t.Target.OpenConsumer(ctx, who, endToEndArrivals{in, t.e})
}

type endToEndArrivals struct {
	run.Arrivals
	e *EndToEnd
}

// Received takes in an arrival.
func (a endToEndArrivals) Received(batch []run.Arrival, received int64) {
	if sent := a.e.sent.Swap(0); sent > 0 {
		a.e.received(received - sent)
	}
	a.Arrivals.Received(batch, received)
}

func (e *EndToEnd) received(took int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.latency == nil {
		e.latency = hist.New()
	}
	e.latency.Record(took)
	if e.n%every == 0 {
		e.printf("%d\t%v\n", e.n, float64(took)/millisecond)
	}
	e.n++
}

// End prints the last lines.
func (e *EndToEnd) End() {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.latency
	if h == nil {
		h = hist.New()
	}
	e.printf("Avg latency: %.4f ms\n", h.Mean()/millisecond)
	e.printf("Percentiles: 50th = %d, 99th = %d, 99.9th = %d\n", wholeMs(h.Quantile(0.5)), wholeMs(h.Quantile(0.99)), wholeMs(h.Quantile(0.999)))
}

func (e *EndToEnd) printf(format string, a ...any) { _, _ = fmt.Fprintf(e.Out, format, a...) } // the result is beside it
