package run

import (
	"sync"

	"github.com/kbench/kbench/results/hist"
)

// recorder takes down what became of messages, in cells by window. Producers are spread over
// about GOMAXPROCS of them and each consumer has its own, so that a lock is taken once per run
// of messages and is seldom contended.
//
// Cells of windows that lie back are taken out now and then and merged into the timeline; a
// message decided later than that simply begins a new cell for its window. So memory follows
// what is recent, not the length of the run.
type recorder struct {
	frame *frame

	mu      sync.Mutex
	cells   []*cell // by window; nil where nothing is to be merged
	touched []int   // windows with a cell
	spare   []*cell // reset ones, used again
	outside [within]cell
	split   *split // figures by producer and partition; nil when nobody asked

	decided                  int64 // messages of every phase, whatever became of them
	decidedAt                int64 // the instants of that, added up; see flowTime
	ackedInPhase, phaseBytes int64 // acked (or received) during the measured phase, whenever due
	ackedEver                int64 // of every phase
	failedEver, unknownEver  int64 // the same
	measuredAcked            int64 // of the measured phase
	firstFailure             error
	lastAcked                int64 // latest instant a measured message was acked
	errors                   map[string]int64
	lateness                 *hist.Histogram // of waking up, in the measured phase
	live                     *hist.Histogram // response (service in a closed loop) since last asked
	liveAcked, liveFailed    int64
	_                        [64]byte // no two recorders' locks share a cache line
}

func newRecorder(f *frame) *recorder {
	return &recorder{frame: f, errors: map[string]int64{}, lateness: hist.New(), live: hist.New()}
}

// cell gives the cell of window i. Called with the lock held.
func (r *recorder) cell(i int) *cell {
	for i >= len(r.cells) {
		r.cells = append(r.cells, nil)
	}
	c := r.cells[i]
	if c != nil {
		return c
	}
	if n := len(r.spare); n > 0 {
		c, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		c = &cell{}
	}
	r.cells[i] = c
	r.touched = append(r.touched, i)
	return c
}

// record takes down a run of messages that were decided at one instant. Messages of a run
// mostly lie in one window and were handed over together, so both are looked up per change.
func (r *recorder) record(batch []*Message, acked int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decided += int64(len(batch))
	r.decidedAt += int64(len(batch)) * flowTime(acked)
	for len(batch) > 0 {
		if side := r.frame.side(batch[0].Due); side != within {
			batch = r.aside(side, batch, acked)
			continue
		}
		i := r.frame.index(batch[0].Due)
		from, to := r.frame.bounds(i)
		to = min(to, r.frame.cool.Load())
		n := 1
		for n < len(batch) && batch[n].Due >= from && batch[n].Due < to {
			n++
		}
		r.inWindow(r.cell(i), batch[:n], acked)
		batch = batch[n:]
	}
}

// aside takes down the messages at the head of a run that are of the warm-up or of the cool-down.
// They have a cell of their own, and are in no figure of the measured phase but the rate at which
// it saw answers.
func (r *recorder) aside(side int, batch []*Message, acked int64) []*Message {
	n := 1
	for n < len(batch) && r.frame.side(batch[n].Due) == side {
		n++
	}
	r.inCell(&r.outside[side], batch[:n], acked, false)
	return batch[n:]
}

// since is the instant latency counts from, for people watching: due, or accepted in a closed
// loop.
func (r *recorder) since(m *Message) int64 {
	if r.frame.open {
		return m.Due
	}
	return m.Accepted
}

// tally keeps the counts that do not belong to a window.
func (r *recorder) tally(ok, failed, bytes, acked int64) {
	r.ackedEver += ok
	r.failedEver += failed
	r.liveAcked += ok
	r.liveFailed += failed
	if r.frame.measured(acked) && ok > 0 {
		r.ackedInPhase += ok
		r.phaseBytes += bytes
		c := r.cell(r.frame.index(acked))
		c.answered += ok
		c.answeredBytes += bytes
	}
}

// tallyArrived keeps the counts of arrivals that do not belong to a window.
func (r *recorder) tallyArrived(n, received int64) {
	if n == 0 {
		return
	}
	r.liveAcked += n
	if r.frame.measured(received) {
		r.ackedInPhase += n
	}
	r.lastAcked = max(r.lastAcked, received)
}

// inWindow records messages of one window.
func (r *recorder) inWindow(c *cell, batch []*Message, acked int64) {
	ok := r.inCell(c, batch, acked, true)
	r.measuredAcked += ok
	if ok > 0 {
		r.lastAcked = max(r.lastAcked, acked)
	}
	if r.split != nil {
		r.split.record(batch, acked, r.frame.open)
	}
}

// inCell records messages and gives how many were acked. Those handed over together have the same
// service time, which is recorded once for all of them. Errors are counted by kind only of messages
// that are measured.
func (r *recorder) inCell(c *cell, batch []*Message, acked int64, measured bool) int64 {
	service, response, delay := c.at(slotService), (*hist.Histogram)(nil), (*hist.Histogram)(nil)
	if r.frame.open {
		response, delay = c.at(slotResponse), c.at(slotDelay)
	}
	var ok, failed, bytes, same int64
	accepted := batch[0].Accepted
	for _, m := range batch {
		if m.Err != nil {
			failed += r.fail(c, m, acked, measured)
			continue
		}
		if m.Accepted != accepted {
			service.RecordN(acked-accepted, same)
			ok += same
			accepted, same = m.Accepted, 0
		}
		same++
		bytes += int64(len(m.Key) + len(m.Value))
		if response != nil {
			response.Record(acked - m.Due)
			delay.Record(m.Accepted - m.Due)
		}
	}
	service.RecordN(acked-accepted, same)
	ok += same
	// One value a run is enough to look at.
	r.live.RecordN(acked-r.since(batch[len(batch)/2]), ok)
	c.acked += ok
	c.failed += failed
	c.ackedBytes += bytes
	r.tally(ok, failed, bytes, acked)
	return ok
}

// maxErrorKinds bounds the table of errors; texts with numbers in them must not grow it.
const maxErrorKinds = 64

// fail records one message that was refused, or whose outcome the target gave up on. It returns
// how many messages have failed by it.
func (r *recorder) fail(c *cell, m *Message, at int64, measured bool) int64 {
	refused := int64(1)
	if m.Unknown {
		refused = 0
		r.unknownEver++
		c.unknown++
		c.at(slotUnknown).Record(at - r.since(m))
	} else {
		c.at(slotFailed).Record(at - r.since(m))
	}
	if r.firstFailure == nil {
		r.firstFailure = m.Err
	}
	if !measured {
		return refused
	}
	r.countError(errorKind(m.Err))
	return refused
}

// countError counts an error by its kind. Called with the lock held.
func (r *recorder) countError(kind string) {
	if _, known := r.errors[kind]; !known && len(r.errors) >= maxErrorKinds {
		kind = "other"
	}
	r.errors[kind]++
}

// errorKind is the name an error is counted under: its own, if it has one.
func errorKind(err error) string {
	if k, ok := err.(interface{ Kind() string }); ok {
		return k.Kind()
	}
	const longest = 200
	text := err.Error()
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return text
}

// request takes down one request that was answered in the measured phase, or after it having
// been written before its end.
func (r *recorder) request(kind string, written, read int64) {
	if read < r.frame.start.Load() || written >= r.frame.end.Load() {
		return
	}
	r.mu.Lock()
	r.cell(r.frame.index(read)).request(kind).Record(read - written)
	r.mu.Unlock()
}

// unknown takes down a message whose outcome is not known at an age.
func (r *recorder) unknown(due, age int64) {
	r.mu.Lock()
	var c *cell
	if side := r.frame.side(due); side != within {
		c = &r.outside[side]
	} else {
		c = r.cell(r.frame.index(due))
	}
	r.unknownEver++
	c.unknown++
	c.at(slotUnknown).Record(age)
	r.mu.Unlock()
}

// late takes down how much after a due time a pacer woke up.
func (r *recorder) late(due, now int64) {
	if r.frame.side(due) != within {
		return
	}
	r.mu.Lock()
	r.lateness.Record(now - due)
	c := r.cell(r.frame.index(due))
	c.lateness = max(c.lateness, now-due)
	r.mu.Unlock()
}

// takeBefore removes the cells of windows before i and gives them to f one by one, then keeps
// them for use again. f runs without the lock. Only one goroutine calls it at a time.
func (r *recorder) takeBefore(i int, f func(window int, c *cell)) {
	type taken struct {
		window int
		cell   *cell
	}
	var list []taken
	r.mu.Lock()
	kept := r.touched[:0]
	for _, w := range r.touched {
		if w >= i {
			kept = append(kept, w)
			continue
		}
		list = append(list, taken{w, r.cells[w]})
		r.cells[w] = nil
	}
	r.touched = kept
	r.mu.Unlock()
	for _, t := range list {
		f(t.window, t.cell)
		t.cell.reset()
	}
	r.mu.Lock()
	for _, t := range list {
		r.spare = append(r.spare, t.cell)
	}
	r.mu.Unlock()
}
