package run

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

// outcome sums up what was recorded. Nothing records any more. err is what ended the run.
func (e *engine) outcome(err error) *Outcome {
	for _, r := range e.allRecorders() {
		e.timeline.collect(r, notYet)
	}
	e.timeline.atEnd = e.atEnd
	elapsed := max(0, e.frame.end.Load()-e.frame.start.Load())
	total := e.timeline.total()
	series := total.named()
	run := results.Run{
		Repeat: e.spec.Repeat, Order: e.spec.Order,
		StartedAt: time.Unix(0, e.wall+e.frame.start.Load()).UTC(),
		ElapsedNs: elapsed, Loop: LoopClosed, AckMeaning: e.spec.AckMeaning,
		Series: map[string]results.Series{}, Thresholds: []results.Threshold{},
		Batches: e.report.Batches, Topics: e.report.Topics, Errors: e.errors(),
		Events: e.events(elapsed),
	}
	if e.frame.open {
		run.Loop = LoopOpen
	}
	for name, h := range series {
		run.Series[name] = results.Summarise(h)
	}
	run.Counts = e.counts(total)
	run.Consumption = e.consumption(elapsed)
	run.Rates = e.rates(elapsed, total, run.Counts.Received)
	run.Generator = e.generator(total)
	run.Verdict = Judge(e.facts(&run, series), e.def.Validity)
	run.Verdict.Warnings = append(run.Verdict.Warnings, e.notes...)
	if err != nil && !errors.Is(err, ErrInterrupted) && e.ended == "" {
		run.Verdict.Valid = false
		run.Verdict.Reasons = append(run.Verdict.Reasons, err.Error())
	}
	out := &Outcome{Run: run, Windows: e.timeline.windows(elapsed), tracked: e.tracking(), cut: e.arrivalsCut, idempotent: e.spec.Idempotent, grouped: e.def.Consumers.Mode == "group",
		Lags: e.lags.table(run.Topics, e.report.Groups)}
	out.Run.Thresholds = out.evaluateAll(e.def.Thresholds)
	return out
}

// events are the marks on the time axis, in order of time.
func (e *engine) events(elapsed int64) []results.Event {
	list := append([]results.Event{}, e.watch.pauses...)
	for _, event := range e.report.Events {
		event.AtNs -= e.frame.start.Load()
		list = append(list, event)
	}
	list = append(list, e.crew.events...)
	if w := int64(e.def.Phases.WarmUp); w > 0 {
		list = append(list, results.Event{AtNs: -w, DurationNs: w, Kind: "phase", Text: "warm-up"})
	}
	if e.drainTook > 0 {
		list = append(list, results.Event{AtNs: elapsed, DurationNs: int64(e.drainTook), Kind: "phase", Text: "drain"})
	}
	slices.SortStableFunc(list, func(a, b results.Event) int { return cmp.Compare(a.AtNs, b.AtNs) })
	return list
}

// counts adds up the messages. What was attempted is counted where messages are handed over,
// what became of them where outcomes arrive; the two agreeing is checked by the tests.
func (e *engine) counts(total *cell) results.Counts {
	found := e.found()
	c := results.Counts{
		Attempted: e.withheld, Acked: total.acked, Failed: total.failed, Unknown: total.unknown,
		Received: found.received, Duplicated: found.duplicated, Reordered: found.reordered,
		Corrupted: found.corrupted,
	}
	if e.arrivalsCut {
		c.NotReceived = e.lostAll()
	} else {
		c.Lost = e.lostAll()
	}
	c.Unchecked = len(e.receivers) > 0 && !e.tracking()
	for _, l := range e.loaders {
		c.Attempted += l.attempted
	}
	if h := total.series[slotE2E]; h != nil {
		c.NegativeE2E = h.Negative()
	}
	return c
}

// rates are what was acked (received) within the phase, a second. A backlog of the warm-up that is
// worked off in the phase is not the phase's: no rate exceeds what the messages of the phase come to.
func (e *engine) rates(elapsed int64, total *cell, received int64) results.Rates {
	var r results.Rates
	if elapsed <= 0 {
		return r
	}
	var acked, bytes, arrived int64
	for _, rec := range e.recorders {
		acked += rec.ackedInPhase
		bytes += rec.phaseBytes
	}
	for _, in := range e.receivers {
		arrived += in.rec.ackedInPhase
	}
	seconds := float64(elapsed) / 1e9
	r.MessagesPerSecond = float64(min(acked, total.acked)) / seconds
	r.BytesPerSecond = float64(min(bytes, total.ackedBytes)) / seconds
	r.ReceivedPerSecond = float64(min(arrived, received)) / seconds
	if e.frame.open {
		main := e.course.legs[len(e.course.legs)-1]
		due := min(main.count, main.schedule.Count(elapsed))
		r.TargetMessagesPerSecond = float64(due) / seconds
		if asked := e.def.Producers.Rate; due == int64(asked*seconds) && e.def.Producers.Schedule.Kind == "constant" {
			r.TargetMessagesPerSecond = asked
		}
	}
	return r
}

// generator is what the load generator used. CPU is shared out over the messages decided or
// received in the measured phase.
func (e *engine) generator(total *cell) results.Generator {
	g := e.edges[1].Since(e.edges[0])
	if e.edges[0].At.IsZero() {
		g = results.Generator{}
	}
	messages := total.acked
	if messages == 0 {
		messages = total.received
	}
	if messages > 0 {
		g.CPUNsPerMessage = float64(e.edges[1].CPUSince(e.edges[0])) / float64(messages)
	}
	g.PauseMaxNs, g.CeilingPerSecond = e.watch.longest, e.spec.Ceiling
	late := hist.New()
	for _, r := range e.recorders {
		late.Merge(r.lateness)
	}
	if late.Count() > 0 {
		g.LatenessP99 = late.Quantile(0.99)
	}
	return g
}

// errors are the target's counts by kind, and the engine's where the target has none of that
// kind.
func (e *engine) errors() map[string]int64 {
	all := map[string]int64{}
	for _, r := range e.recorders {
		for kind, n := range r.errors {
			all[kind] += n
		}
	}
	maps.Copy(all, e.report.Errors)
	if len(all) == 0 {
		return nil
	}
	return all
}

// overdue are the messages that were waited for in vain for as long as the drain may take. A wait
// that an interrupt ended says nothing.
func (e *engine) overdue(c results.Counts) int64 {
	if e.waitEnded {
		return 0
	}
	return c.NotReceived
}

func (e *engine) facts(run *results.Run, series map[string]*hist.Histogram) Facts {
	f := Facts{
		Open: e.frame.open, RateAsked: run.Rates.TargetMessagesPerSecond, RateAchieved: run.Rates.MessagesPerSecond,
		Elapsed: time.Duration(run.ElapsedNs), Attempted: run.Counts.Attempted, Failed: run.Counts.Failed,
		Received: run.Counts.Received, NotReceived: e.overdue(run.Counts), Unknown: run.Counts.Unknown, Withheld: e.withheld, Drain: e.drainBound,
		LatenessP99: time.Duration(run.Generator.LatenessP99),
		ResponseP99: time.Duration(run.Series[results.SeriesResponse].P99Ns),
		CPUCores:    run.Generator.CPUCores, CPUAvailable: run.Generator.CPUAvailable,
		StolenShare: run.Generator.StolenShare, PauseMax: time.Duration(run.Generator.PauseMaxNs),
		Ceiling: e.spec.Ceiling, Clamped: map[string]int64{}, NegativeE2E: run.Counts.NegativeE2E,
		Topics: run.Topics, LeadersMayMove: e.spec.LeadersMayMove, EndedEarly: e.ended,
		Foreign: e.found().foreign,
	}
	if response, ok := run.Series[results.SeriesResponse]; ok && e.def.Phases.WarmUp <= 0 {
		f.Missing = time.Duration(response.MinNs)
	}
	for name, h := range series {
		f.Clamped[name] = h.Clamped()
	}
	if h := series[results.SeriesE2E]; h != nil {
		f.WorstE2E = time.Duration(h.Min())
	}
	for _, l := range e.loaders {
		if l.exhausted {
			f.PoolMax += int64(l.pool.max)
		}
	}
	return f
}
