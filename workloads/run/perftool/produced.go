package perftool

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kbench/kbench/results/hist"
	"github.com/kbench/kbench/workloads/run"
)

// Produced prints as kafka-producer-perf-test does. Latency is the engine's service time, acked −
// accepted: from when there was room for the message in the client, where Kafka's counts the wait for
// room as well. Records that failed are in no line, as with Kafka's. MB are of values alone.
type Produced struct {
	Every  time.Duration // between two lines
	WarmUp int64         // records before the steady state
	Out    io.Writer
	Clock  run.Clock

	mu            sync.Mutex
	total, steady tally
	window        tally // since the last line; of the steady state once that has begun
	inSteady      bool  // a line of the steady state was printed
}

// tally is what is known of some records. The zero value is of none.
type tally struct {
	from, to int64 // first handed over, last acknowledged
	bytes    int64
	latency  *hist.Histogram
}

// add takes in records that were handed over and acknowledged together.
func (t *tally) add(n, bytes, accepted, acked int64) {
	if t.latency == nil {
		t.latency, t.from = hist.New(), accepted
	}
	t.from, t.to = min(t.from, accepted), max(t.to, acked)
	t.bytes += bytes
	t.latency.RecordN(acked-accepted, n)
}

func (t *tally) count() int64 {
	if t.latency == nil {
		return 0
	}
	return t.latency.Count()
}

// Watch is target with the printer beside it.
func (p *Produced) Watch(target run.Target) run.Target {
	return producedTarget{beside{target}, p}
}

type producedTarget struct {
	beside
	p *Produced
}

// OpenProducer has outcomes pass by the printer.
func (t producedTarget) OpenProducer(ctx context.Context, id int, out run.Outcomes) (run.Producer, error) {
	return t.Target.OpenProducer(ctx, id, producedOutcomes{out, t.p})
}

type producedOutcomes struct {
	run.Outcomes
	p *Produced
}

// Decided takes in a run of outcomes.
func (o producedOutcomes) Decided(batch []*run.Message, written, acked int64) {
	o.p.decided(batch, acked)
	o.Outcomes.Decided(batch, written, acked)
}

func (p *Produced) decided(batch []*run.Message, acked int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(batch) > 0 { // stretches that were handed over together
		first, n, bytes := batch[0], int64(0), int64(0)
		late := first.Number >= p.WarmUp
		for n < int64(len(batch)) {
			m := batch[n]
			if m.Err != nil || m.Accepted != first.Accepted || m.Number >= p.WarmUp != late {
				break
			}
			bytes += int64(len(m.Value))
			n++
		}
		if n == 0 {
			batch = batch[1:] // it failed
			continue
		}
		p.add(late, n, bytes, first.Accepted, acked)
		batch = batch[n:]
	}
}

func (p *Produced) add(late bool, n, bytes, accepted, acked int64) {
	p.total.add(n, bytes, accepted, acked)
	steady := p.WarmUp > 0 && late
	if steady {
		if p.steady.count() == 0 {
			p.window = tally{}
		}
		p.steady.add(n, bytes, accepted, acked)
	}
	if steady || p.steady.count() == 0 {
		p.window.add(n, bytes, accepted, acked)
	}
}

// Begin announces the warm-up.
func (p *Produced) Begin() {
	if p.WarmUp > 0 {
		p.printf("Warmup first %d records. Steady state results will print after the complete test summary.\n", p.WarmUp)
	}
}

// Update prints a line when it is time for one. It is called from the goroutine that tells how the run
// stands, as Update of run.Spec's Progress.
func (p *Produced) Update() {
	now := p.Clock.Now()
	p.mu.Lock()
	w := p.window
	due := w.count() > 0 && now-w.from >= int64(p.Every)
	first := due && p.steady.count() > 0 && !p.inSteady
	if due {
		p.window = tally{}
		p.inSteady = p.inSteady || first
	}
	p.mu.Unlock()
	if first {
		p.printf("In steady state.\n")
	}
	if due {
		p.printf("%d records sent, %.1f records/sec (%.2f MB/sec), %.1f ms avg latency, %.1f ms max latency.\n",
			w.count(), per(float64(w.count()), now-w.from), per(float64(w.bytes)/megabyte, now-w.from),
			w.latency.Mean()/millisecond, float64(w.latency.Max())/millisecond)
	}
}

// End prints the last lines: of everything and, with a warm-up, of what came after it.
func (p *Produced) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum(&p.total, "")
	if p.WarmUp > 0 {
		p.sum(&p.steady, " steady state")
	}
}

func (p *Produced) sum(t *tally, which string) {
	h := t.latency
	if h == nil {
		h = hist.New()
	}
	elapsed := t.to - t.from
	p.printf("%d%s records sent, %f records/sec (%.2f MB/sec), %.2f ms avg latency, %.2f ms max latency, %d ms 50th, %d ms 95th, %d ms 99th, %d ms 99.9th.\n",
		h.Count(), which, per(float64(h.Count()), elapsed), per(float64(t.bytes)/megabyte, elapsed),
		h.Mean()/millisecond, float64(h.Max())/millisecond,
		wholeMs(h.Quantile(0.5)), wholeMs(h.Quantile(0.95)), wholeMs(h.Quantile(0.99)), wholeMs(h.Quantile(0.999)))
}

func (p *Produced) printf(format string, a ...any) { _, _ = fmt.Fprintf(p.Out, format, a...) } // the result is beside it
