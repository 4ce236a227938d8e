package fault

import (
	"encoding/binary"
	"time"
)

// answers follows the frames that a broker sends, rewrites those with addresses in them, and
// cuts off those that a plan says.
type answers struct {
	t     *tunnel
	line  *line
	split splitter
	now   time.Time
	shift time.Duration

	what   exchange
	whole  []byte // the frame so far, of one that is rewritten
	gather bool
	keep   int64 // bytes left of a frame that is cut off
	cutOff bool
	over   bool // nothing follows what was cut off
	how    End
}

// answerHead is length and correlation id.
const answerHead = 8

func newAnswers(t *tunnel, l *line) *answers {
	return &answers{t: t, line: l, split: splitter{head: answerHead}}
}

func (a *answers) feed(p []byte, now time.Time) {
	a.now = now
	a.split.feed(p, a.begin, a.more)
}

// begin decides what happens to a frame.
func (a *answers) begin(head []byte, size int64) {
	a.shift = a.t.shift(down)
	a.gather = false
	if len(head) == answerHead && !a.over {
		a.choose(int32(binary.BigEndian.Uint32(head[4:])), size)
	}
	a.more(head, size == int64(len(head)))
}

func (a *answers) choose(corr int32, size int64) {
	x, ok := a.t.unanswered.match(corr)
	if !ok {
		return
	}
	link := a.t.link
	if plan, yes := link.proxy.truncates(link.node(), x.key); yes {
		link.truncations.Add(1)
		a.cutOff, a.how, a.keep = true, plan.How, plan.keep(size, a.t.rand[down].Float64())
		return
	}
	switch {
	case !rewritten(x.key, x.version):
	case size > int64(link.proxy.o.MaxFrame):
		link.proxy.passedUntouched()
	default:
		a.what, a.gather, a.whole = x, true, a.whole[:0]
	}
}

func (a *answers) more(p []byte, last bool) {
	at := a.now.Add(a.shift)
	switch {
	case a.cutOff:
		a.truncate(p, at)
	case a.gather:
		a.whole = append(a.whole, p...)
		if last {
			a.complete(at)
		}
	default:
		a.line.add(p, at)
	}
}

// truncate lets through what is left to let through, and then cuts.
func (a *answers) truncate(p []byte, at time.Time) {
	if a.over {
		return
	}
	n := min(a.keep, int64(len(p)))
	a.keep -= n
	a.line.add(p[:n], at)
	if a.keep == 0 {
		a.over = true
		a.line.end(cutBy(a.how), at)
	}
}

// complete forwards a whole answer with the proxy's addresses in it.
func (a *answers) complete(at time.Time) {
	out, err := rewrite(a.whole, a.what, a.t.link.proxy.front)
	if err != nil {
		a.t.link.proxy.passedUntouched()
	}
	a.line.add(out, at)
	if cap(a.whole) > mostKept {
		a.whole = nil
	}
}

// mostKept is how much memory an idle connection keeps for the next answer to be rewritten.
const mostKept = 1 << 20
