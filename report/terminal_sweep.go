package report

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kbench/kbench/results"
)

// sweep prints one row for each point, then what there is to know about the rows.
func (t *terminal) sweep(v *view) {
	n := v.tally()
	t.flow(t.totals(n))
	if v.repeated() {
		t.fact("", faint, "medians over the valid runs of a point (over all when none is valid), smallest–largest below")
	}
	t.println("")
	t.sweepTable(v)
	t.println("")
	for _, note := range v.notes() {
		t.fact("", faint, note)
	}
	if p := v.single(); p != nil {
		t.runs(p)
	}
	t.findings(v)
	t.println("")
}

// runs prints what became of the messages in each run of the only point.
func (t *terminal) runs(p *point) {
	for i := range p.data.Runs {
		run := &p.data.Runs[i]
		label := fmt.Sprintf("run %d", run.Repeat+1)
		if !run.Verdict.Valid {
			label += " ✗"
		}
		for _, f := range countFacts(run) {
			t.fact(label, "", f.Label+" "+f.Text)
			label = ""
		}
	}
}

// flow prints parts beside each other, as many on a line as there is room for.
func (t *terminal) flow(parts []string) {
	line := "  " + parts[0]
	for _, part := range parts[1:] {
		if columns.StringWidth(colours.ReplaceAllString(line+" · "+part, "")) > t.width {
			t.println(line)
			line = "    " + part
			continue
		}
		line += " · " + part
	}
	t.println(line)
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// totals is the verdict over all runs in parts.
func (t *terminal) totals(n tally) []string {
	var parts []string
	switch {
	case n.runs == 0:
		return []string{t.paint(mild, "nothing was run")}
	case n.invalid == 0:
		parts = append(parts, t.paint(good, "VALID")+" – all "+plural(n.runs, "run"))
	default:
		parts = append(parts, t.paint(bad, "INVALID")+fmt.Sprintf(" – %d of %s, reasons below", n.invalid, plural(n.runs, "run")))
	}
	if n.broken > 0 {
		parts = append(parts, t.paint(bad, plural(n.broken, "run")+" with a broken threshold"))
	}
	if n.broken == 0 && n.conditions > 0 {
		parts = append(parts, "thresholds held")
	}
	if n.skipped > 0 {
		parts = append(parts, t.paint(mild, plural(n.skipped, "point")+" not run"))
	}
	return parts
}

// columnWidths of the sweep's table after the label: runs, rate, p50, p99, p99.9, errors, cpu.
var columnWidths = []int{4, 8, 8, 8, 8, 7, 8}

const verdictWidth = 9

// sweepTable prints the rows; what is left of the width is the label's.
func (t *terminal) sweepTable(v *view) {
	series := strings.Join(v.headlines(), "/")
	label := t.fitColumns()
	longest := 12
	for _, p := range v.points {
		longest = max(longest, columns.StringWidth(printable(pointTitle(p))))
	}
	label = min(label, longest)
	if series != "" {
		t.println(t.paint(faint, pad("", 4+label+2+4+2+8+2)+series))
	}
	t.println(t.paint(faint, t.row("point", label, []string{"runs", "msg/s", "p50", "p99", "p99.9", "errors", "cpu/msg"}, "verdict")))
	for _, p := range v.points {
		t.pointRow(p, label)
	}
}

// fitColumns leaves columns out, from the last, until labels have room, which it returns.
func (t *terminal) fitColumns() (label int) {
	const least = 14
	for t.columns = len(columnWidths); ; t.columns-- {
		label = t.width - 4 - verdictWidth
		for _, w := range columnWidths[:t.columns] {
			label -= w + 2
		}
		if label >= least || t.columns == 2 {
			return max(label, least)
		}
	}
}

// pointTitle is how a point is called in tables: its identifier, which figures and file names
// have, and its label.
func pointTitle(p *point) string {
	if p.label == "" || p.label == p.id {
		return p.id
	}
	return p.id + " " + p.label
}

func (t *terminal) row(title string, label int, cells []string, verdict string) string {
	var b strings.Builder
	b.WriteString("  " + pad(clip(title, label), label))
	for i, cell := range cells[:min(t.columns, len(cells))] {
		b.WriteString("  " + padLeft(cell, columnWidths[i]))
	}
	return b.String() + "  " + verdict
}

// pointRow prints the medians of a point and, with several runs, their ends below. A label that
// is too long goes on in the rows below its first.
func (t *terminal) pointRow(p *point, label int) {
	titles := wrap(printable(pointTitle(p)), label)
	line := func(i int) string {
		if i < len(titles) {
			return titles[i]
		}
		return ""
	}
	if !p.ran() {
		t.println(t.row(line(0), label, []string{"0", "–", "–", "–", "–", "–", "–"}, t.paint(mild, p.verdict())))
		t.rest(titles, 1, label)
		return
	}
	cells := []string{fmt.Sprint(len(p.data.Runs))}
	for _, f := range p.figures() {
		cells = append(cells, f.middle())
	}
	t.println(t.row(line(0), label, cells, t.mark(p)))
	if p.rate.n < 2 {
		t.rest(titles, 1, label)
		return
	}
	for half := range 2 {
		low := []string{""}
		for _, f := range p.figures() {
			low = append(low, f.end(half == 1))
		}
		word := map[bool]string{false: "least", true: "most"}[half == 1]
		t.println(t.paint(faint, t.row(line(half+1), label, low, word)))
	}
	t.rest(titles, 3, label)
}

// rest prints what is left of a label.
func (t *terminal) rest(titles []string, from, label int) {
	for i := from; i < len(titles); i++ {
		t.println("  " + pad(titles[i], label))
	}
}

// mark is the verdict of a row in its colour.
func (t *terminal) mark(p *point) string {
	bads := p.invalid()
	switch {
	case bads > 0 && bads < len(p.data.Runs):
		return t.paint(bad, fmt.Sprintf("✗ %d of %d", bads, len(p.data.Runs)))
	case bads > 0:
		return t.paint(bad, "✗ INVALID")
	case p.broken() > 0:
		return t.paint(bad, "✗ broken")
	case len(p.warnings()) > 0:
		return t.paint(mild, "✓ warning")
	}
	return t.paint(good, "✓ valid")
}

// figure is a spread with the way to print it.
type figure struct {
	spread
	format func(float64) string
}

// figures are those of a row, in its order.
func (p *point) figures() []figure {
	return []figure{{p.rate, quantity}, {p.p50, duration}, {p.p99, duration}, {p.p999, duration}, {p.failed, errorShare}, {p.cpu, duration}}
}

func (f figure) middle() string {
	if f.n == 0 {
		return "–"
	}
	return f.format(f.median)
}

// end is the largest or the smallest of several runs.
func (f figure) end(largest bool) string {
	switch {
	case f.n < 2:
		return ""
	case largest:
		return f.format(f.max)
	}
	return f.format(f.min)
}

// errorShare is the share of messages that failed or are unknown, 0 when there is none.
func errorShare(v float64) string {
	if v == 0 {
		return "0"
	}
	return share(v)
}

// findings prints reasons, warnings, broken thresholds and errors by point, beside its name.
func (t *terminal) findings(v *view) {
	const most = 12 // points: the report has them all
	shown := 0
	for _, p := range v.points {
		lines := findingsOf(p)
		if len(lines) == 0 {
			continue
		}
		if shown++; shown > most {
			t.fact("", faint, "… more in the report")
			return
		}
		label := clip(printable(p.id), labelWidth-3)
		for _, l := range lines {
			t.fact(label, l.Label, l.Text)
			label = ""
		}
	}
}

// findingsOf is what to know about a point; labels are colours.
func findingsOf(p *point) []labelled {
	var lines []labelled
	if p.data.Skipped != "" {
		lines = append(lines, labelled{mild, "skipped: " + p.data.Skipped})
	}
	for _, reason := range p.reasons() {
		lines = append(lines, labelled{bad, "✗ " + reason})
	}
	for _, th := range p.brokenThresholds() {
		lines = append(lines, labelled{bad, th})
	}
	for _, w := range p.warnings() {
		lines = append(lines, labelled{mild, "warning: " + w})
	}
	return lines
}

// brokenThresholds are the conditions that did not hold, with the runs they did not hold in.
func (p *point) brokenThresholds() []string {
	return p.gather(func(r *results.Run) []string {
		var broken []string
		for _, th := range r.Thresholds {
			if !th.Held {
				broken = append(broken, thresholdText(th))
			}
		}
		return broken
	})
}
