package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// Execute runs one point once: it prepares the target, opens producers and consumers, goes
// through warm-up, measured phase and drain, closes everything and sums up.
//
// Cancelling ctx interrupts the run: sending stops, outcomes are awaited for Spec.InterruptDrain,
// and the error wraps ErrInterrupted. Whenever load was started the Outcome is there, also
// beside an error, with what was measured until then.
func Execute(ctx context.Context, spec Spec) (*Outcome, error) {
	spec, err := spec.withDefaults()
	if err != nil {
		return nil, err
	}
	e, err := newEngine(spec)
	if err != nil {
		return nil, err
	}
	if err := e.open(ctx); err != nil {
		e.hurry = ctx.Err() != nil
		e.finish()
		return nil, e.orInterrupted(ctx, err)
	}
	err = e.drive(ctx)
	e.hurry = errors.Is(err, ErrInterrupted)
	e.shut()
	out := e.outcome(err)
	e.notes = nil
	e.finish()
	out.Run.Verdict.Warnings = append(out.Run.Verdict.Warnings, e.notes...)
	return out, err
}

// engine is one execution. Its fields are set up before the goroutines that read them start.
type engine struct {
	spec  Spec
	def   *workloads.Definition
	clock Clock
	wall  int64 // unix ns at the clock's origin
	frame *frame

	course    course
	stamping  stamping
	recorders []*recorder // producers are spread over them
	taken     []intake    // by recorder: messages the target took
	loaders   []*loader
	groups    []*group
	receivers []*receiver // of all groups
	crew      *crew
	timeline  *timeline
	lags      lagLog
	catching  catchUp
	watch     *watch

	disturbances []*disturbance // the workload's faults

	// failed carries the first fatal error. Anyone may write it, once; drive reads it; it is
	// never closed.
	failed chan error

	begun int64 // when the first message was due

	// What the phases leave for the summary.
	edges    [2]results.Usage
	flows    [2]flow
	withheld int64
	// atEnd is what was read off at the end of the measured phase.
	atEnd *mark
	// How long the drain was allowed to take and took.
	drainBound, drainTook time.Duration
	// arrivalsCut: the wait for arrivals was cut short, so nothing is known to be lost.
	arrivalsCut bool
	// waitEnded: it was cut short by an interrupt or a failure, not by the drain's bound.
	waitEnded bool

	hurry  bool   // somebody waits for the end of an interrupted run
	ended  string // why the measured phase ended early, "" when it did not
	report Report
	notes  []string // what went wrong in closing, for the verdict's warnings
}

func newEngine(spec Spec) (*engine, error) {
	d := &spec.Definition
	e := &engine{spec: spec, def: d, clock: spec.Clock, wall: wallBase(spec.Clock),
		frame:  newFrame(int64(d.Phases.Interval), d.Open()),
		failed: make(chan error, 1)}
	e.stamping = newStamping(d, e.wall+e.clock.Now())
	filler, err := newFiller(d, e.stamping, e.wall)
	if err != nil {
		return nil, err
	}
	if e.spec.MaxOpen <= 0 {
		const overhead = 256 // a Message and the target's form of it
		e.spec.MaxOpen = min(defaultOpenMessages, defaultOpenMemory/int64(filler.room()+overhead))
	}
	n := max(1, min(runtime.GOMAXPROCS(0), d.Producers.Count))
	for range n {
		r := newRecorder(e.frame)
		r.split = newSplit(d)
		e.recorders = append(e.recorders, r)
	}
	e.taken = make([]intake, n)
	e.timeline = &timeline{frame: e.frame}
	e.crew = &crew{engine: e}
	e.watch = newWatch(e.clock, e.frame, int64(d.Validity.MaxPause))
	e.course = course{clock: e.clock, producers: int64(d.Producers.Count), run: d.Producers.Run,
		pacer: choosePacer(d.Producers.Pacer, d.Producers.Count, fullRate(d), results.CPUAvailable()),
		frame: e.frame, filler: filler, fatal: e.fatal}
	if d.Producers.Await == "received" {
		e.course.await = d.Phases.Drain
	}
	return e, nil
}

// fatal ends the run with err, unless it is ending with another already.
func (e *engine) fatal(err error) {
	select {
	case e.failed <- err:
	default:
	}
}

// openers bounds how many producers are opened or closed at the same time.
const openers = 64

// open prepares the target and opens everything. ctx ends it at once.
func (e *engine) open(ctx context.Context) error {
	ctx, cancel := withHard(ctx, e.spec.HardCtx)
	defer cancel()
	if e.spec.Progress != nil {
		e.spec.Progress(Progress{Phase: PhasePrepare, Lag: -1})
	}
	if err := e.spec.Target.Prepare(ctx); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	e.prepareLoaders()
	e.prepareGroups()
	if err := e.openConsumers(ctx); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(openers)
	for _, l := range e.loaders {
		g.Go(func() error { return e.openProducer(gctx, l) }) // Wait below waits for them
	}
	return g.Wait()
}

// withHard is ctx that also ends with hard.
func withHard(ctx, hard context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(hard, cancel)
	return ctx, func() { stop(); cancel() }
}

func (e *engine) prepareLoaders() {
	for id := range e.def.Producers.Count {
		shard := id % len(e.recorders)
		e.loaders = append(e.loaders, &loader{course: &e.course, id: int64(id),
			txn: newTransacting(newTurns(&e.def.Producers.Transactions), e.frame, e.spec.ReadCommitted),
			rec: e.recorders[shard], taken: &e.taken[shard], arrived: make(chan struct{}, 1)})
	}
}

// firstPool is how many messages all producers together begin with.
const firstPool = 1 << 16

func (e *engine) openProducer(ctx context.Context, l *loader) error {
	out := &outcomes{rec: l.rec}
	target, err := e.spec.Target.OpenProducer(ctx, int(l.id), out)
	if err != nil {
		return fmt.Errorf("opening producer %d: %w", l.id, err)
	}
	if l.txn != nil {
		if err := l.transact(target, out); err != nil {
			return err
		}
	}
	n := e.course.producers
	most := int(max(e.spec.MaxOpen/n, 16))
	first := int(min(max(firstPool/n, 4), int64(2*e.course.run)))
	l.target = target
	l.holder, _ = target.(Holder)
	l.pool = newPool(first, most, func(n int) []*Message { return e.course.filler.messages(target, n) })
	if e.tracking() {
		for _, g := range e.groups {
			l.pool.ledgers = append(l.pool.ledgers, g.ledgers[l.id])
			if e.course.await > 0 {
				g.ledgers[l.id].arrived = l.arrived
			}
		}
	}
	out.pool = l.pool
	return nil
}

// openConsumers opens those that are there from the beginning, and waits until they read.
func (e *engine) openConsumers(ctx context.Context) error {
	if e.def.Consumers.StartAfter > 0 {
		return nil
	}
	if err := e.crew.open(ctx, e.def.Consumers.Count); err != nil {
		return err
	}
	if s, slow := e.spec.Target.(Settler); slow && len(e.groups) > 0 {
		if err := s.Settle(ctx); err != nil {
			return fmt.Errorf("waiting for the consumers: %w", err)
		}
	}
	return nil
}

// tracking reports whether every message sent is looked for among the arrivals.
func (e *engine) tracking() bool {
	return len(e.receivers) > 0 && e.course.producers > 0 && e.stamping.where != stampNowhere
}

// shut closes producers and consumers, all of them, and asks the target for its report.
func (e *engine) shut() {
	ctx, cancel := e.closing()
	defer cancel()
	e.closeAll(ctx)
	report, err := e.spec.Target.Report(ctx)
	if err != nil {
		e.note("the target could not report on topics and batches: %v", err)
	}
	e.report = report
}

// interruptClose bounds each part of closing after an interrupt.
const interruptClose = 3 * time.Second

// closing bounds a part of closing.
func (e *engine) closing() (context.Context, context.CancelFunc) {
	bound := e.spec.CloseTimeout
	if e.hurry {
		bound = min(bound, interruptClose)
	}
	return context.WithTimeout(e.spec.HardCtx, bound)
}

func (e *engine) closeAll(ctx context.Context) {
	var g errgroup.Group
	g.SetLimit(openers)
	var mu sync.Mutex
	closing := func(what string, id int, f func(context.Context) error) {
		g.Go(func() error { // Wait below waits for them, ctx bounds them
			if err := f(ctx); err != nil {
				mu.Lock()
				e.note("closing %s %d: %v", what, id, err)
				mu.Unlock()
			}
			return nil
		})
	}
	for id, l := range e.loaders {
		if l.target != nil {
			closing("producer", id, l.target.Close)
		}
	}
	for _, m := range e.crew.members {
		closing("consumer", m.ID, m.reader.Close)
	}
	_ = g.Wait()
	e.crew.leaving.Wait()
	for _, text := range e.crew.notes {
		e.note("%s", text)
	}
	if n := e.crew.tooLate; n > 0 {
		e.note("the measured phase was too short for %d of consumers.changes", n)
	}
}

// maxNotes bounds what closing thousands of producers may have to say.
const maxNotes = 5

func (e *engine) note(format string, args ...any) {
	if len(e.notes) < maxNotes {
		e.notes = append(e.notes, fmt.Sprintf(format, args...))
	}
}

// finish lets the target remove what Prepare made, and closes what open left behind.
func (e *engine) finish() {
	ctx, cancel := e.closing()
	defer cancel()
	if e.ended == "" && e.frame.start.Load() == notYet {
		e.closeAll(ctx) // opening failed half-way
	}
	if err := e.spec.Target.Finish(ctx); err != nil {
		e.note("clearing up: %v", err)
	}
}

// orInterrupted makes an error that is only the echo of an interrupt say so.
func (e *engine) orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil || e.spec.HardCtx.Err() != nil {
		return fmt.Errorf("%w while %w", ErrInterrupted, err)
	}
	return err
}
