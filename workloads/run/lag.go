package run

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/kbench/kbench/results"
)

// maxLagCells bounds how many readings of single partitions are kept: 32 MB. Beyond it every other
// row goes, and from then on only every other one is taken.
const maxLagCells = 4 << 20

// allGroups stands for all groups together.
const allGroups = -1

// lagLog is how far the consumers were behind in each partition at the ends of the windows, and
// the worst of all readings. The keeper takes them, and the conductor the one at the end of the
// measured phase.
type lagLog struct {
	most int // readings of single partitions kept; 0: maxLagCells

	mu      sync.Mutex     // guards what follows
	columns []PartitionLag // what the cells of a row are; Messages is not used
	index   map[PartitionLag]int
	rows    []results.LagRow
	stride  int // every stride-th reading is kept; 0: all
	taken   int
	last    int64 // when the last reading was for
	buf     []PartitionLag

	sums    []int64 // of the last reading, by group; −1 when unknown
	extreme map[int]*results.Lag
}

// read takes a reading at the end of a window, of the measured phase or of the drain after it, and
// gives its sum over all groups and partitions; −1 when it is not known.
func (l *lagLog) read(endNs int64, measured bool, lags func([]PartitionLag) []PartitionLag) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = lags(l.buf[:0])
	total := l.sum()
	if measured {
		l.judge(allGroups, total, endNs)
		for g, sum := range l.sums {
			l.judge(g, sum, endNs)
		}
	}
	if endNs > l.last {
		l.last = endNs
		l.keep(endNs)
	}
	return total
}

// sum adds up the reading, by group and over all.
func (l *lagLog) sum() int64 {
	l.sums = l.sums[:0]
	var total int64
	for _, p := range l.buf {
		for p.Group >= len(l.sums) {
			l.sums = append(l.sums, 0)
		}
		if p.Messages < 0 || l.sums[p.Group] < 0 {
			l.sums[p.Group], total = -1, -1
			continue
		}
		l.sums[p.Group] += p.Messages
		if total >= 0 {
			total += p.Messages
		}
	}
	if len(l.buf) == 0 {
		return -1
	}
	return total
}

// judge notes the largest lag and the last one.
func (l *lagLog) judge(of int, messages, at int64) {
	if messages < 0 {
		return
	}
	x := l.extreme[of]
	if x == nil {
		if l.extreme == nil {
			l.extreme = map[int]*results.Lag{}
		}
		x = &results.Lag{MaxMessages: -1}
		l.extreme[of] = x
	}
	if messages > x.MaxMessages {
		x.MaxMessages, x.MaxAtNs = messages, at
	}
	x.FinalMessages = messages
}

// worst is what judge noted; nil when the lag was never known.
func (l *lagLog) worst(of int) *results.Lag { return l.extreme[of] }

// keep adds a row, and thins out the earlier ones when there are too many.
func (l *lagLog) keep(endNs int64) {
	l.taken++
	if len(l.buf) == 0 || l.stride > 1 && l.taken%l.stride != 0 {
		return
	}
	row := results.LagRow{EndNs: endNs, Messages: unknownLags(nil, max(len(l.columns), len(l.buf)))}
	for _, p := range l.buf {
		i := l.column(p)
		row.Messages = unknownLags(row.Messages, i+1)
		row.Messages[i] = p.Messages
	}
	l.rows = append(l.rows, row)
	if len(l.rows)*len(l.columns) <= l.bound() || len(l.rows) < 2 {
		return
	}
	half := l.rows[:0]
	for i := 1; i < len(l.rows); i += 2 {
		half = append(half, l.rows[i])
	}
	clear(l.rows[len(half):])
	l.rows, l.stride = half, max(1, l.stride)*2
}

// bound is how many readings of single partitions are kept.
func (l *lagLog) bound() int { return cmp.Or(l.most, maxLagCells) }

// column is the number of a partition's column.
func (l *lagLog) column(p PartitionLag) int {
	p.Messages = 0
	i, known := l.index[p]
	if !known {
		if l.index == nil {
			l.index = map[PartitionLag]int{}
		}
		i = len(l.columns)
		l.index[p] = i
		l.columns = append(l.columns, p)
	}
	return i
}

// unknownLags makes a row n cells long.
func unknownLags(row []int64, n int) []int64 {
	for len(row) < n {
		row = append(row, -1)
	}
	return row
}

// table is the log with the names of topics and groups; nil when nothing is known.
func (l *lagLog) table(topics []results.Topic, groups []results.Group) *results.Lags {
	if len(l.rows) == 0 {
		return nil
	}
	out := &results.Lags{Rows: slices.Clone(l.rows)}
	several := slices.ContainsFunc(l.columns, func(c PartitionLag) bool { return c.Group > 0 })
	for _, c := range l.columns {
		column := results.LagColumn{Partition: c.Partition}
		if int(c.Topic) < len(topics) {
			column.Topic = topics[c.Topic].Name
		}
		if c.Group < len(groups) {
			column.Group = groups[c.Group].Name
		}
		if column.Group == "" && several {
			column.Group = fmt.Sprintf("group-%d", c.Group+1)
		}
		out.Columns = append(out.Columns, column)
	}
	for i := range out.Rows {
		out.Rows[i].Messages = unknownLags(out.Rows[i].Messages, len(out.Columns))
	}
	slices.SortStableFunc(out.Rows, func(a, b results.LagRow) int { return int(min(1, max(-1, a.EndNs-b.EndNs))) })
	return out
}

// lag is how far all consumers are behind together; −1 when there are none or it is not known.
func (e *engine) lag() int64 {
	if len(e.groups) == 0 {
		return -1
	}
	var l lagLog
	l.buf = e.spec.Target.Lags(nil)
	return l.sum()
}
