package run

import (
	"github.com/kbench/kbench/results"
)

// group is the consumers that share out the partitions among them, those included that join or
// leave while the load is on. Every group reads everything, and is looked at by itself.
type group struct {
	ledgers   []*ledger   // by producer
	receivers []*receiver // by place
}

// prepareGroups makes what arrivals are counted in, for everybody who will ever be there.
func (e *engine) prepareGroups() {
	c := &e.def.Consumers
	if c.Count == 0 {
		return
	}
	places := c.Count + joining(c.Changes)
	for range max(1, c.Groups) {
		g := &group{ledgers: make([]*ledger, e.def.Producers.Count)}
		for i := range g.ledgers {
			g.ledgers[i] = newLedger(e.frame)
		}
		for range places {
			in := newReceiver(newRecorder(e.frame), e.stamping, e.wall, g.ledgers)
			in.shared = e.def.Topics.Existing()
			g.receivers = append(g.receivers, in)
			e.receivers = append(e.receivers, in)
		}
		e.groups = append(e.groups, g)
	}
}

// found sums what is known about the arrivals of one group.
func (g *group) found() (sum integrity) {
	for _, in := range g.receivers {
		in.rec.mu.Lock()
		sum.add(in.found)
		in.rec.mu.Unlock()
	}
	return sum
}

// found sums what is known about arrivals.
func (e *engine) found() (sum integrity) {
	for _, g := range e.groups {
		sum.add(g.found())
	}
	return sum
}

// lost counts the messages of the measured phase that were acked and did not arrive in group
// number g.
func (e *engine) lost(g int) (n int64) {
	if !e.tracking() {
		return 0
	}
	for i, l := range e.loaders {
		l.pool.mu.Lock()
		n += e.groups[g].ledgers[i].lost()
		l.pool.mu.Unlock()
	}
	return n
}

// absent counts the acked messages that group number g did not receive, and rightly so: their transaction
// was aborted, or may have been.
func (e *engine) absent(g int) (n int64) {
	e.leftOut(g, func(absent, _ int64) { n += absent })
	return n
}

// abortedReceived counts messages that groups received although their transaction was aborted.
func (e *engine) abortedReceived() (n int64) {
	for g := range e.groups {
		e.leftOut(g, func(_, shown int64) { n += shown })
	}
	return n
}

func (e *engine) leftOut(g int, take func(absent, shown int64)) {
	if !e.tracking() || !e.def.Producers.Transactions.On() {
		return
	}
	for i, l := range e.loaders {
		l.pool.mu.Lock()
		take(e.groups[g].ledgers[i].absent())
		l.pool.mu.Unlock()
	}
}

// lostAll sums lost over the groups.
func (e *engine) lostAll() (n int64) {
	for g := range e.groups {
		n += e.lost(g)
	}
	return n
}

// arrivals counts what was received since the run began, the warm-up's included.
func (e *engine) arrivals() (n int64) {
	for _, in := range e.receivers {
		in.rec.mu.Lock()
		n += in.arrived
		in.rec.mu.Unlock()
	}
	return n
}

// allArrived reports whether everything acked was received, by every group.
func (e *engine) allArrived() bool {
	var acked int64
	for _, r := range e.recorders {
		r.mu.Lock()
		acked += r.measuredAcked
		r.mu.Unlock()
	}
	for i, g := range e.groups {
		found := g.found()
		if !e.tracking() && (found.received < acked || e.lag() != 0) {
			return false
		}
		if e.tracking() && (found.distinct < acked-e.absent(i) || e.lost(i) != 0) {
			return false
		}
	}
	return true
}

// consumption is what is known of the consumers beside the counts of all of them; nil without any.
func (e *engine) consumption(elapsed int64) *results.Consumption {
	if len(e.groups) == 0 {
		return nil
	}
	out := &results.Consumption{Lag: e.lags.worst(allGroups), CatchUp: e.catchUpResult(elapsed)}
	for i, g := range e.groups {
		var r results.Group
		if i < len(e.report.Groups) {
			r = e.report.Groups[i]
		}
		found := g.found()
		r.Received, r.Duplicated, r.Reordered, r.Corrupted = found.received, found.duplicated, found.reordered, found.corrupted
		if e.arrivalsCut {
			r.NotReceived = e.lost(i)
		} else {
			r.Lost = e.lost(i)
		}
		r.Lag = e.lags.worst(i)
		out.Groups = append(out.Groups, r)
	}
	return out
}
