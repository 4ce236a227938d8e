package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// What a run can end with besides errors of the target.
var (
	// ErrInterrupted is wrapped by the error of a run whose context was cancelled; what was
	// measured until then is in the Outcome.
	ErrInterrupted = errors.New("interrupted")
	// ErrAllFailed is wrapped by the error of a run in which every message was refused.
	ErrAllFailed = errors.New("every message failed")
)

// Spec is one point to execute once.
type Spec struct {
	// Definition is the workload with the point's settings applied.
	Definition workloads.Definition
	Target     Target
	// Clock is the time of every instant; nil: NewClock(). The target must use the same one,
	// and it must run as fast as package time's.
	Clock Clock
	// Repeat and Order are copied into the result.
	Repeat, Order int
	// AckMeaning is what the producer-side series end with: results' "acked" when empty, or
	// "written" with acks=0.
	AckMeaning string
	// Idempotent says that the client promises no duplicates, so that one breaks the run.
	Idempotent bool
	// ReadCommitted says that consumers receive nothing of transactions that were aborted or are open.
	ReadCommitted bool
	// Ceiling is what this generator can do with no cluster behind it, messages/s; 0: unknown.
	Ceiling float64

	// Disturber makes the faults of the definition happen; needed when it lists any.
	Disturber Disturber

	// Progress, if set, is called once before anything is opened and then about four times a
	// second, never twice at the same time. It may take a few milliseconds; the load does not
	// wait for it.
	Progress func(Progress)

	// HardCtx, if set, ends everything at once when cancelled, also the drain that follows an
	// interrupt.
	HardCtx context.Context
	// InterruptDrain bounds the wait for outcomes after an interrupt or a fatal error; 0: 2 s.
	InterruptDrain time.Duration
	// CloseTimeout bounds closing producers and consumers with Report, and Finish; 0: 15 s. After
	// an interrupt each has 3 s at most.
	CloseTimeout time.Duration
	// Quiet is how long nothing may arrive, with the consumers at the end of their partitions,
	// before what is missing is taken to be lost; 0: 15 s. It is long because a leader shows consumers
	// nothing that its followers have not (the high watermark), and followers of a new topic may take
	// seconds to begin: with acks=0 or 1 messages are acknowledged before.
	Quiet time.Duration
	// FailAfter is how long every message may fail before the run is given up; 0: 3 s.
	FailAfter time.Duration
	// MaxOpen bounds the messages open at once over all producers, and with them the engine's
	// memory; 0: as many as fit in 256 MiB, 1 Mi at most.
	MaxOpen int64
}

// Outcome is what an execution gave.
type Outcome struct {
	Run results.Run
	// Windows are those of the measured phase without gaps, then those of the drain in which
	// something arrived.
	Windows []results.Window
	// Lags are how far the consumers were behind in each partition over time; nil when that is not
	// known.
	Lags *results.Lags
	// Parts are the figures by producer and by partition, where the workload asks for them.
	Parts Splits

	idempotent bool // the client promises no duplicates
	grouped    bool // consumers are members of groups, which deliver at least once
}

// AckMeaning values.
const (
	AckMeaningAcked   = "acked"
	AckMeaningWritten = "written"
)

// Loop values.
const (
	LoopOpen   = "open"
	LoopClosed = "closed"
)

// Defaults of Spec.
const (
	defaultInterruptDrain = 2 * time.Second
	defaultCloseTimeout   = 15 * time.Second
	defaultFailAfter      = 3 * time.Second
	defaultQuiet          = 15 * time.Second
	defaultInterval       = time.Second
	defaultRun            = 128
	defaultOpenMemory     = 256 << 20
	defaultOpenMessages   = 1 << 20
)

// withDefaults fills in what was left zero, and checks what the engine relies on.
func (s Spec) withDefaults() (Spec, error) {
	d := &s.Definition
	if s.Target == nil {
		return s, errors.New("run: Spec.Target is nil")
	}
	if d.Producers.Count < 0 || d.Consumers.Count < 0 || d.Producers.Count+d.Consumers.Count == 0 {
		return s, fmt.Errorf("run: %d producers and %d consumers: at least one is needed",
			d.Producers.Count, d.Consumers.Count)
	}
	if d.Consumers.Groups == 0 {
		d.Consumers.Groups = 1
	}
	if replays := d.Producers.Schedule.Kind == "replay"; replays && len(d.Times) == 0 {
		return s, errors.New("run: a replayed schedule without Definition.Times")
	} else if d.Phases.Length() <= 0 && d.Producers.Messages <= 0 && !replays {
		return s, errors.New("run: neither phases.duration nor producers.messages bounds the measured phase")
	}
	if len(d.Faults) > 0 && s.Disturber == nil {
		return s, errors.New("run: the definition lists faults, and Spec.Disturber is nil")
	}
	if s.Clock == nil {
		s.Clock = NewClock()
	}
	if s.HardCtx == nil {
		s.HardCtx = context.Background()
	}
	orDefault(&s.AckMeaning, AckMeaningAcked)
	orDefault(&s.InterruptDrain, defaultInterruptDrain)
	orDefault(&s.CloseTimeout, defaultCloseTimeout)
	orDefault(&s.FailAfter, defaultFailAfter)
	orDefault(&s.Quiet, defaultQuiet)
	if d.Phases.Interval <= 0 {
		d.Phases.Interval = defaultInterval
	}
	if d.Producers.Run <= 0 {
		d.Producers.Run = defaultRun
	}
	if d.Producers.Form == "sync" {
		d.Producers.Run = 1
	}
	return s, nil
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
