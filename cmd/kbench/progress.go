package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run"
)

// progress shows how a plan stands, to people: a bar on a terminal, a line every few seconds
// elsewhere, nothing when they asked for quiet. update is called from the engine's progress
// goroutine, the others from the one that executes the plan, never at the same time.
type progress interface {
	// expect says how many runs there will be and how long they should take; without it the first run
	// has to end before anything is said of what is left.
	expect(runs int, whole time.Duration)
	begin(order int, p *plan.Point)
	update(run.Progress)
	done(*results.Run)
	// grow says that there are more runs than were thought.
	grow(by int)
	end()
}

// unknownRuns is the number of runs when it depends on what comes of them: then each has a label of
// its own.
const unknownRuns = 0

func newProgress(w io.Writer, quiet bool, runs int) progress {
	switch {
	case quiet:
		return silent{}
	case isTerminal(w) && hasRoom(w):
		return &bar{w: w, runs: runs, left: remaining{runs: runs}}
	}
	return &lines{w: w, runs: runs, left: remaining{runs: runs}}
}

type silent struct{}

func (silent) expect(int, time.Duration) {}
func (silent) begin(int, *plan.Point)    {}
func (silent) update(run.Progress)       {}
func (silent) done(*results.Run)         {}
func (silent) grow(int)                  {}
func (silent) end()                      {}

// lineEvery is the distance of two plain lines.
const lineEvery = 5 * time.Second

// lines is for logs.
type lines struct {
	w     io.Writer
	runs  int
	name  string
	last  time.Time
	phase run.Phase
	left  remaining
}

func (l *lines) expect(runs int, whole time.Duration) { l.left.runs, l.left.expected = runs, whole }

func (l *lines) begin(order int, p *plan.Point) {
	l.left.begin(time.Now())
	l.name, l.last, l.phase = title(order, l.runs, p), time.Time{}, ""
}

func (l *lines) update(p run.Progress) {
	if p.Phase == l.phase && time.Since(l.last) < lineEvery {
		return
	}
	l.phase, l.last = p.Phase, time.Now()
	_, _ = fmt.Fprintf(l.w, "%s%s%s\n", l.name, standing(p), l.left.text(l.last)) // progress is not worth an error
}

func (l *lines) done(r *results.Run) {
	l.left.finish(time.Now())
	_, _ = fmt.Fprintf(l.w, "%s%s\n", l.name, verdict(r))
}

func (l *lines) grow(by int) { l.runs += by }

func (l *lines) end() {}

// bar is for terminals: two rows that are drawn over, one with the point, a bar and the time left, one with
// how the run stands.
type bar struct {
	w    io.Writer
	runs int
	name string
	all  *mpb.Progress
	over atomic.Pointer[mpb.Progress] // all, for Write
	one  *mpb.Bar
	text atomic.Value // barText; read by the goroutine that draws
	left remaining
}

// barText is what a bar shows of a run: how it stands, in a row of its own, and the time left.
type barText struct{ figures, left string }

func (b *bar) expect(runs int, whole time.Duration) { b.left.runs, b.left.expected = runs, whole }

func (b *bar) begin(order int, p *plan.Point) {
	b.stop()
	b.left.begin(time.Now())
	b.name = title(order, b.runs, p)
	name := strings.TrimSuffix(b.name, ": ")
	b.all = mpb.New(mpb.WithOutput(b.w), mpb.WithWidth(barWidth), mpb.WithAutoRefresh())
	b.over.Store(b.all)
	b.text.Store(barText{figures: string(run.PhasePrepare)})
	text := func() barText { return b.text.Load().(barText) }
	b.one = b.all.New(0, mpb.BarStyle().Lbound("").Rbound("").Filler("━").Tip("━").Padding("─"),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Any(func(s decor.Statistics) string {
			return clip(name, s.AvailableWidth-barWidth-len(text().left)-barGaps)
		})),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return text().left })),
		mpb.BarBtmExtender(mpb.BarFillerFunc(func(w io.Writer, s decor.Statistics) error {
			_, err := fmt.Fprintln(w, clip(text().figures, s.AvailableWidth))
			return err
		})),
	)
}

const (
	barWidth = 24
	barGaps  = 2 // columns before and behind the bar
)

// clip is text in as many columns.
func clip(text string, columns int) string {
	if runes := []rune(text); len(runes) > max(columns, 0) {
		if columns < 1 {
			return ""
		}
		return string(runes[:columns-1]) + "…"
	}
	return text
}

func (b *bar) update(p run.Progress) {
	if b.one == nil {
		return
	}
	b.text.Store(barText{figures: briefly(p), left: strings.TrimPrefix(b.left.text(time.Now()), ", ")})
	if total := max(p.Total, p.Elapsed) + 1; total > 1 {
		b.one.SetTotal(int64(total), false)
		b.one.SetCurrent(int64(p.Elapsed))
	}
}

func (b *bar) done(r *results.Run) {
	b.stop()
	b.left.finish(time.Now())
	if b.runs != 1 {
		_, _ = fmt.Fprintln(b.w, b.name+verdict(r))
	}
}

func (b *bar) grow(by int) { b.runs += by }

func (b *bar) end() { b.stop() }

func (b *bar) stop() {
	if b.one == nil {
		return
	}
	b.one.Abort(true)
	b.all.Wait()
	b.over.Store(nil)
	b.one, b.all = nil, nil
}

// Write puts a line above the bar, which would draw over what is written past it. It is safe for
// concurrent use with the other methods.
func (b *bar) Write(p []byte) (int, error) {
	if over := b.over.Load(); over != nil {
		if _, err := over.Write(bytes.TrimLeft(p, "\n")); err == nil {
			return len(p), nil
		}
	}
	return b.w.Write(p)
}

// title is where in the plan a run is.
func title(order, runs int, p *plan.Point) string {
	switch runs {
	case 1:
		return ""
	case unknownRuns:
		return p.Label + ": "
	}
	return fmt.Sprintf("[%d/%d] %s: ", order+1, runs, p.Label)
}

// standing is how a run stands, in one line.
func standing(p run.Progress) string {
	s := string(p.Phase)
	if p.Total > 0 {
		round := time.Second
		if p.Total < 10*time.Second {
			round /= 10
		}
		s += fmt.Sprintf(" %s of %s", p.Elapsed.Round(round), p.Total.Round(round))
	}
	if p.Rate <= 0 && p.Acked == 0 {
		return s
	}
	s += fmt.Sprintf(", %.0f msg/s", p.Rate)
	if p.TargetRate > 0 {
		s += fmt.Sprintf(" of %.0f", p.TargetRate)
	}
	s += fmt.Sprintf(", p50 %s, p99 %s", short(p.P50), short(p.P99))
	if p.Lag >= 0 {
		s += fmt.Sprintf(", lag %d", p.Lag)
	}
	if p.Failed > 0 {
		s += fmt.Sprintf(", %d failed", p.Failed)
	}
	if p.Unknown > 0 {
		s += fmt.Sprintf(", %d unknown", p.Unknown)
	}
	return s
}

// briefly is how a run stands in the row of a terminal, in 80 columns.
func briefly(p run.Progress) string {
	s := string(p.Phase)
	if p.Total > 0 {
		s += fmt.Sprintf(" %s/%s", p.Elapsed.Round(time.Second), p.Total.Round(time.Second))
	}
	if p.Rate <= 0 && p.Acked == 0 {
		return s
	}
	s += ", " + many(p.Rate) + "/s"
	if p.TargetRate > 0 {
		s += " of " + many(p.TargetRate)
	}
	s += fmt.Sprintf(", p50 %s, p99 %s", short(p.P50), short(p.P99))
	if p.Lag >= 0 {
		s += ", lag " + many(float64(p.Lag))
	}
	if n := p.Failed + p.Unknown; n > 0 {
		s += ", errors " + many(float64(n))
	}
	return s
}

// many is a number in at most seven columns, as long as it is below a billion.
func many(n float64) string {
	const thousand, million = 1e3, 1e6
	switch {
	case n < 10*thousand:
		return fmt.Sprintf("%.0f", n)
	case n < million:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", n/thousand), ".0") + "k"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n/million), ".0") + "M"
}

func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// verdict sums up a finished run in one line.
func verdict(r *results.Run) string {
	s := fmt.Sprintf("%.0f msg/s", r.Rates.MessagesPerSecond)
	name := results.Headline(r.Series)
	if h, ok := r.Series[name]; ok {
		s += fmt.Sprintf(", %s p50 %s p99 %s", name, short(time.Duration(h.P50Ns)), short(time.Duration(h.P99Ns)))
	}
	if !r.Verdict.Valid && len(r.Verdict.Reasons) > 0 {
		s += ", INVALID: " + r.Verdict.Reasons[0]
	}
	return s
}
