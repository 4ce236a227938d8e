package run

import (
	"context"
	"sync"
	"time"
)

// keeper looks after a run while it is under way: a few times a second it merges windows that
// lie back, reads lag, messages in flight and memory off at the end of each window, lets go of
// sequences that arrived whole, notices when nothing succeeds, and tells how things stand.
// Everything in it but phase belongs to its goroutine.
type keeper struct {
	*engine
	tick   time.Duration
	recent *recent
	failed time.Time // since when every message failed; zero when not

	mu         sync.Mutex // guards what follows: the conductor enters phases
	phase      Phase
	phaseStart time.Time
	phaseTotal time.Duration
}

// maxTick is how seldom the keeper looks at most.
const maxTick = 250 * time.Millisecond

func newKeeper(e *engine) *keeper {
	tick := min(maxTick, max(e.def.Phases.Interval, 10*time.Millisecond))
	return &keeper{engine: e, tick: tick, recent: newRecent(int(max(1, time.Second/tick)))}
}

// enter notes the phase the run is in now. Called from the conductor.
func (k *keeper) enter(p Phase, total time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.phase, k.phaseStart, k.phaseTotal = p, time.Now(), max(total, 0)
}

// run looks until ctx ends.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTimer(k.untilNext())
	defer tick.Stop()
	lastTold := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := k.clock.Now()
		k.mark(now)
		k.merge(now)
		k.look()
		if t := time.Now(); k.spec.Progress != nil && t.Sub(lastTold) >= maxTick {
			lastTold = t
			k.spec.Progress(k.progress(t))
		}
		tick.Reset(k.untilNext())
	}
}

// untilNext is the time to the next multiple of the tick since the measured phase began, so
// that windows are read off at their ends.
func (k *keeper) untilNext() time.Duration {
	since := k.clock.Now() - k.frame.start.Load()
	past := since % int64(k.tick)
	if past < 0 {
		past += int64(k.tick)
	}
	return k.tick - time.Duration(past)
}

// readLag reads off lag at the end of a window, −1 when it is not known.
func (e *engine) readLag(endNs int64) int64 {
	if len(e.groups) == 0 {
		return -1
	}
	start, end := e.frame.start.Load(), e.frame.end.Load()
	return e.lags.read(endNs, endNs <= end-start, e.spec.Target.Lags)
}

// mark reads off lag, messages in flight and memory for the windows that ended.
func (k *keeper) mark(now int64) {
	if now < k.frame.start.Load()+k.frame.interval {
		return
	}
	ended := k.frame.index(now)
	if len(k.timeline.marks) >= ended {
		return
	}
	m := k.markAt(int64(ended) * k.frame.interval)
	for len(k.timeline.marks) < ended {
		k.timeline.marks = append(k.timeline.marks, m)
	}
}

// merge moves windows that lie two intervals back to the timeline.
func (k *keeper) merge(now int64) {
	if now < k.frame.start.Load() {
		return
	}
	before := k.frame.index(now) - 2
	for _, r := range k.allRecorders() {
		k.timeline.collect(r, before)
	}
	if k.tracking() {
		for _, g := range k.groups {
			for _, l := range g.ledgers {
				l.retire()
			}
		}
	}
}

// look gathers what is recent and gives the run up when nothing but failures was seen for long.
func (k *keeper) look() {
	part, acked := k.recent.part()
	for _, r := range k.recorders {
		r.mu.Lock()
		part.Merge(r.live)
		r.live.Reset()
		*acked += r.liveAcked
		r.liveAcked = 0
		r.mu.Unlock()
	}
	if len(k.loaders) == 0 {
		*acked = k.receivedLately()
	}
	err := k.allFailed()
	switch {
	case err == nil:
		k.failed = time.Time{}
	case k.failed.IsZero():
		k.failed = time.Now()
	case time.Since(k.failed) >= k.spec.FailAfter:
		k.fatal(err)
	}
}

func (k *keeper) receivedLately() (n int64) {
	for _, in := range k.receivers {
		in.rec.mu.Lock()
		n += in.rec.liveAcked
		in.rec.liveAcked = 0
		in.rec.mu.Unlock()
	}
	return n
}

// progress is how the run stands.
func (k *keeper) progress(now time.Time) Progress {
	p := Progress{TargetRate: fullRate(k.def), Lag: k.lag(), InFlight: k.inFlight(), Received: k.found().received}
	h, acked := k.recent.sum()
	p.Rate = float64(acked) / (k.tick * time.Duration(len(k.recent.parts))).Seconds()
	if h.Count() > 0 {
		p.P50, p.P99 = time.Duration(h.Quantile(0.5)), time.Duration(h.Quantile(0.99))
	}
	for _, r := range k.recorders {
		r.mu.Lock()
		p.Acked += r.ackedEver
		p.Failed += r.failedEver
		p.Unknown += r.unknownEver
		r.mu.Unlock()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p.Phase, p.Elapsed, p.Total = k.phase, max(now.Sub(k.phaseStart), 0), k.phaseTotal
	return p
}
