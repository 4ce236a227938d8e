package run

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
)

// window is the number of windows that an offset into the measured phase lies behind.
func (f *frame) window(offset int64) int { return int((offset + f.interval - 1) / f.interval) }

// stretch is a part of a run that has figures of its own.
type stretch struct {
	name, kind   string
	from, length int64 // ns since the start of the measured phase as it was laid out
	cell         *cell
	around       bool // warm-up or cool-down: answers are not counted by when they came
}

// stretches are warm-up, the parts of the measured phase, and cool-down, in order. settled is where
// the steady state begins, 0 when none was looked for or found.
func (e *engine) stretches(elapsed, settled int64) []stretch {
	var list []stretch
	p, start := &e.def.Phases, e.frame.start.Load()
	add := func(name, kind string, from, length int64, c *cell, around bool) {
		list = append(list, stretch{name, kind, from, length, c, around})
	}
	if p.WarmUp > 0 || p.WarmUpMessages > 0 {
		add(results.PhaseWarmUp, results.PhaseWarmUp, e.begun-start, start-e.begun, &e.timeline.outside[beforeIt], true)
	}
	if settled > 0 {
		add("settling", results.PhaseWarmUp, 0, settled, e.timeline.sum(0, e.frame.window(settled)), false)
	}
	for _, s := range e.parts(elapsed, settled) {
		add(s.name, results.PhaseMeasure, s.from, s.length, s.cell, false)
	}
	if p.CoolDown > 0 && e.ended == "" {
		add(results.PhaseCoolDown, results.PhaseCoolDown, elapsed, int64(p.CoolDown), &e.timeline.outside[afterIt], true)
	}
	return list
}

// parts are the named phases, as far as the run got, or the measured phase as one. The last has
// what came in the drain.
func (e *engine) parts(elapsed, settled int64) []stretch {
	last := len(e.timeline.cells)
	named := e.def.Phases.Named
	if len(named) == 0 {
		return []stretch{{name: results.PhaseMeasure, from: settled, length: elapsed - settled,
			cell: e.timeline.sum(e.frame.window(settled), last)}}
	}
	var list []stretch
	from := int64(0)
	for i, s := range named {
		to := min(from+int64(s.For), elapsed)
		end := e.frame.window(to)
		if i == len(named)-1 || to == elapsed {
			end = last
		}
		list = append(list, stretch{name: s.Name, from: from, length: to - from, cell: e.timeline.sum(e.frame.window(from), end)})
		if from = to; from == elapsed {
			break
		}
	}
	return list
}

// phases are the stretches as the result has them; its start is settled.
func (e *engine) phases(elapsed, settled int64) []results.Phase {
	var list []results.Phase
	for _, s := range e.stretches(elapsed, settled) {
		if s.length <= 0 {
			continue
		}
		p := results.Phase{Name: s.name, Kind: s.kind, StartNs: s.from - settled, LengthNs: s.length,
			Counts: results.PhaseCounts{Acked: s.cell.acked, Failed: s.cell.failed, Unknown: s.cell.unknown, Received: s.cell.received},
			Series: map[string]results.Series{}}
		p.Counts.Attempted = s.cell.acked + s.cell.failed + s.cell.unknown
		for name, h := range s.cell.named() {
			p.Series[name] = results.Summarise(h)
		}
		acked, bytes := s.cell.acked, s.cell.ackedBytes
		if !s.around {
			acked, bytes = min(acked, s.cell.answered), min(bytes, s.cell.answeredBytes)
		}
		seconds := float64(s.length) / 1e9
		p.Rates = results.Rates{MessagesPerSecond: float64(acked) / seconds, BytesPerSecond: float64(bytes) / seconds,
			ReceivedPerSecond: float64(s.cell.received) / seconds, TargetMessagesPerSecond: e.asked(s)}
		list = append(list, p)
	}
	return list
}

// asked is the mean rate that the schedule has in a stretch; 0 in a closed loop.
func (e *engine) asked(s stretch) float64 {
	if !e.frame.open {
		return 0
	}
	if s.around {
		return fullRate(e.def)
	}
	main := e.course.legs[legMeasured]
	until := func(at int64) int64 { return min(main.count, main.schedule.Count(at)) }
	return float64(until(s.from+s.length)-until(s.from)) / (float64(s.length) / 1e9)
}

// settle looks for the steady state where one is asked for. It gives where it begins, a whole
// number of windows, and what is to be said of it; nil when nobody asked.
func (e *engine) settle(elapsed int64) (settled int64, found *results.Steady) {
	if !e.def.Phases.Steady || e.ended != "" {
		return 0, nil
	}
	whole := int(elapsed / e.frame.interval)
	figures := make([]float64, 0, whole)
	for i := range whole {
		figures = append(figures, e.steadyFigure(i))
	}
	found = &results.Steady{Figure: "service rate, messages/s"}
	if e.frame.open {
		found.Figure = "mean response, ns"
	}
	s, err := stat.SteadyState(figures)
	found.Value, found.Drift = s.Value, s.Drift
	if err != nil {
		found.Reason = err.Error()
		if errors.Is(err, stat.ErrTooShort) {
			found.Reason += fmt.Sprintf(" (%d)", whole)
		}
		return 0, found
	}
	found.Found, found.AfterNs = true, int64(s.From)*e.frame.interval
	return found.AfterNs, found
}

// steadyFigure is the figure of window i that a steady state is looked for in: the mean response
// where there is a schedule, else the rate. A window in which nothing was due has none, which is no
// steady state.
func (e *engine) steadyFigure(i int) float64 {
	if i >= len(e.timeline.cells) || e.timeline.cells[i] == nil {
		return 0
	}
	c := e.timeline.cells[i]
	if !e.frame.open {
		return float64(c.acked) / (float64(e.frame.interval) / 1e9)
	}
	return c.at(slotResponse).Mean()
}

// shift makes windows, events and lags count from where the figures begin.
func (out *Outcome) shift(by int64) {
	if by == 0 {
		return
	}
	for i := range out.Windows {
		out.Windows[i].StartNs -= by
	}
	out.Run.Events = slices.Clone(out.Run.Events)
	for i := range out.Run.Events {
		out.Run.Events[i].AtNs -= by
	}
	for i := range out.Run.Faults {
		if f := &out.Run.Faults[i]; f.Skipped == "" {
			f.AtNs -= by
		}
	}
	if out.Lags != nil {
		for i := range out.Lags.Rows {
			out.Lags.Rows[i].EndNs -= by
		}
	}
	if c := out.Run.Consumption; c != nil {
		moved := map[*results.Lag]bool{nil: true}
		for _, l := range append([]*results.Lag{c.Lag}, lagsOf(c.Groups)...) {
			if !moved[l] {
				l.MaxAtNs -= by
				moved[l] = true
			}
		}
	}
	out.Run.StartedAt = out.Run.StartedAt.Add(time.Duration(by))
}

func lagsOf(groups []results.Group) (list []*results.Lag) {
	for _, g := range groups {
		list = append(list, g.Lag)
	}
	return list
}
