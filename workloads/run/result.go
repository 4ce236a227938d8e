package run

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

// outcome sums up what was recorded. Nothing records any more. err is what ended the run.
func (e *engine) outcome(err error) *Outcome {
	for _, r := range e.allRecorders() {
		e.timeline.collectAll(r)
	}
	e.timeline.atEnd = e.atEnd
	whole := max(0, e.frame.end.Load()-e.frame.start.Load())
	settled, steady := e.settle(whole)
	elapsed := whole - settled
	total := e.timeline.sum(e.frame.window(settled), len(e.timeline.cells))
	series := total.named()
	run := results.Run{
		Repeat: e.spec.Repeat, Order: e.spec.Order,
		StartedAt: time.Unix(0, e.wall+e.frame.start.Load()).UTC(),
		ElapsedNs: elapsed, Loop: LoopClosed, AckMeaning: e.spec.AckMeaning,
		Series: map[string]results.Series{}, Thresholds: []results.Threshold{},
		Batches: e.report.Batches, Topics: e.report.Topics, Errors: e.errors(),
		Events: e.events(whole), Phases: e.phases(whole, settled), Steady: steady,
	}
	if e.frame.open {
		run.Loop = LoopOpen
	}
	for name, h := range series {
		run.Series[name] = results.Summarise(h)
	}
	run.Counts = e.counts(total, settled)
	run.Transactions = e.transactions(e.timeline.total().acked)
	run.Consumption = e.consumption(whole)
	run.Rates = e.rates(settled, elapsed, total, run.Counts.Received)
	all := e.timeline.total()
	run.Generator = e.generator(all)
	run.LittlesLaw = e.littlesLaw(all)
	windows := e.timeline.windows(whole)
	run.Faults = e.faults(windows, whole)
	run.Verdict = Judge(e.facts(&run, series), e.def.Validity)
	run.Verdict.Warnings = append(run.Verdict.Warnings, e.notes...)
	if err != nil && !errors.Is(err, ErrInterrupted) && e.ended == "" {
		run.Verdict.Valid = false
		run.Verdict.Reasons = append(run.Verdict.Reasons, err.Error())
	}
	out := &Outcome{Run: run, Windows: windows, idempotent: e.spec.Idempotent, grouped: e.def.Consumers.Mode == "group",
		Lags: e.lags.table(run.Topics, e.report.Groups), Parts: e.splits()}
	out.Run.Parts = out.Parts.summaries()
	out.shift(settled)
	if c := out.Run.Consumption; c != nil && c.Lag != nil {
		c.Lag.GrowthPerSecond = out.lagGrowth()
	}
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
	list = append(list, e.marks()...)
	list = append(list, e.phaseEvents(elapsed)...)
	if e.drainTook > 0 {
		list = append(list, results.Event{AtNs: elapsed, DurationNs: int64(e.drainTook), Kind: "phase", Text: "drain"})
	}
	slices.SortStableFunc(list, func(a, b results.Event) int { return cmp.Compare(a.AtNs, b.AtNs) })
	return list
}

// phaseEvents mark the phases but the measured one itself; named ones are as long as they are.
func (e *engine) phaseEvents(elapsed int64) []results.Event {
	var list []results.Event
	for _, s := range e.stretches(elapsed, 0) {
		if s.name != results.PhaseMeasure {
			list = append(list, results.Event{AtNs: s.from, DurationNs: s.length, Kind: "phase", Text: s.name})
		}
	}
	return list
}

// counts adds up the messages. What was attempted is counted where messages are handed over,
// what became of them where outcomes arrive; the two agreeing is checked by the tests. Of a steady
// state that was found, the messages are those of its windows; what arrivals told of integrity is
// of the whole.
func (e *engine) counts(total *cell, settled int64) results.Counts {
	found := e.found()
	c := results.Counts{
		Attempted: e.withheld, Acked: total.acked, Failed: total.failed, Unknown: total.unknown,
		Received: found.received, Duplicated: found.duplicated, Reordered: found.reordered,
		Corrupted: found.corrupted, Unstamped: found.unstamped,
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
	if settled > 0 {
		c.Attempted, c.Received = total.acked+total.failed+total.unknown, total.received
	}
	return c
}

// rates are what was acked (received) within the phase, a second. A backlog of the warm-up that is
// worked off in the phase is not the phase's: no rate exceeds what the messages of the phase come to.
func (e *engine) rates(settled, elapsed int64, total *cell, received int64) results.Rates {
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
	if settled > 0 {
		acked, bytes, arrived = total.answered, total.answeredBytes, received
	}
	seconds := float64(elapsed) / 1e9
	r.MessagesPerSecond = float64(min(acked, total.acked)) / seconds
	r.BytesPerSecond = float64(min(bytes, total.ackedBytes)) / seconds
	r.ReceivedPerSecond = float64(min(arrived, received)) / seconds
	if e.frame.open {
		r.TargetMessagesPerSecond = e.asked(stretch{from: settled, length: elapsed})
		asked := fullRate(e.def)
		if kind := e.def.Producers.Schedule.Kind; kind == "constant" && len(e.def.Phases.Named) == 0 && math.Abs(r.TargetMessagesPerSecond-asked)*seconds < 1 {
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
		g.LatenessP99, g.LatenessMaxNs = late.Quantile(0.99), late.Max()
	}
	if e.frame.open {
		g.Pacer = e.course.pacer
		behind, own := e.toil()
		g.BehindNs, g.BehindOwnNs = int64(behind), int64(own)
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
		HostShare: run.Generator.HostCPUShare,
		Behind:    time.Duration(run.Generator.BehindNs), BehindOwn: time.Duration(run.Generator.BehindOwnNs),
		StolenShare: run.Generator.StolenShare, PauseMax: time.Duration(run.Generator.PauseMaxNs),
		GCPauseMax: time.Duration(run.Generator.GCPauseMaxNs), ServiceP99: time.Duration(run.Series[results.SeriesService].P99Ns),
		Steady: run.Steady, LittlesLaw: run.LittlesLaw,
		Ceiling: e.spec.Ceiling, Clamped: map[string]int64{}, NegativeE2E: run.Counts.NegativeE2E,
		Topics: run.Topics, Excused: explain(len(run.Topics), e.report.Moves, e.excuses(run.Faults)), EndedEarly: e.ended,
		Foreign: e.found().foreign, Unstamped: run.Counts.Unstamped, Transactions: run.Transactions,
	}
	if response, ok := run.Series[results.SeriesResponse]; ok && e.def.Phases.WarmUp <= 0 && e.def.Phases.WarmUpMessages <= 0 && run.ElapsedNs == e.frame.end.Load()-e.frame.start.Load() {
		f.Missing = time.Duration(response.MinNs)
	}
	for name, h := range series {
		f.Clamped[name] = h.Clamped()
	}
	if h := series[results.SeriesE2E]; h != nil {
		f.WorstE2E = time.Duration(h.Min())
	}
	if len(e.loaders) == 0 {
		f.ForeignE2E = run.Series[results.SeriesE2E].Count
	}
	for _, l := range e.loaders {
		if l.exhausted {
			f.PoolMax += int64(l.pool.max)
		}
	}
	return f
}
