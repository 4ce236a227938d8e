package run

import (
	"github.com/kbench/kbench/results"
)

// timeline is a run's windows, merged from all recorders. One goroutine at a time owns it: the
// keeper while load runs, the engine after that.
type timeline struct {
	frame *frame
	cells []*cell
	// outside are warm-up and cool-down.
	outside [within]cell
	marks   []mark
	atEnd   *mark // of the measured phase's last window, which may be shorter; nil: as the others
}

// mark is what is read off at the end of a window; rss is 0 when it is not known.
type mark struct{ lag, inFlight, rss int64 }

// markAt reads off the end of a window.
func (e *engine) markAt(endNs int64) mark {
	return mark{lag: e.readLag(endNs), inFlight: e.inFlight(), rss: results.ResidentBytes()}
}

// into puts down what was read off at the end of the window.
func (m mark) into(w *results.Window) { w.Lag, w.InFlight, w.RSSBytes = m.lag, m.inFlight, m.rss }

// merge adds a recorder's cell of window i.
func (t *timeline) merge(i int, c *cell) {
	for i >= len(t.cells) {
		t.cells = append(t.cells, nil)
	}
	if t.cells[i] == nil {
		t.cells[i] = &cell{}
	}
	t.cells[i].merge(c)
}

// collect merges what a recorder has of windows before i.
func (t *timeline) collect(r *recorder, i int) { r.takeBefore(i, t.merge) }

// collectAll merges everything a recorder has, once nothing records any more.
func (t *timeline) collectAll(r *recorder) {
	t.collect(r, notYet)
	for side := range t.outside {
		t.outside[side].merge(&r.outside[side])
	}
}

// total merges all windows.
func (t *timeline) total() *cell { return t.sum(0, len(t.cells)) }

// sum merges the windows from one to before another.
func (t *timeline) sum(from, to int) *cell {
	sum := &cell{}
	for i := from; i < min(to, len(t.cells)); i++ {
		if c := t.cells[i]; c != nil {
			sum.merge(c)
		}
	}
	return sum
}

// windows lists the windows of a measured phase of the given length, and after them those that
// hold something of the drain.
func (t *timeline) windows(elapsed int64) []results.Window {
	step := t.frame.interval
	n := int((elapsed + step - 1) / step)
	var list []results.Window
	for i := range max(n, len(t.cells)) {
		w := results.Window{StartNs: int64(i) * step, LengthNs: step, Lag: -1}
		if i < n {
			w.LengthNs = min(step, elapsed-w.StartNs)
		}
		if i < len(t.marks) {
			t.marks[i].into(&w)
		}
		if i == n-1 && t.atEnd != nil {
			t.atEnd.into(&w)
		}
		if i >= len(t.cells) || t.cells[i] == nil {
			if i < n {
				list = append(list, w)
			}
			continue
		}
		c := t.cells[i]
		w.Series = c.named()
		w.Acked, w.Failed, w.Unknown, w.Received = c.acked, c.failed, c.unknown, c.received
		w.Attempted = c.acked + c.failed + c.unknown
		w.AckedBytes, w.LatenessNs = c.ackedBytes, c.lateness
		if i < n || len(w.Series) > 0 || w.Received > 0 {
			list = append(list, w)
		}
	}
	return list
}
