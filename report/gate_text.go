package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kbench/kbench/report/gate"
)

// GateTerminal prints a gate's decision for people. Of o, Width and Colour count. The only errors
// are those of w.
func GateTerminal(w io.Writer, d *gate.Decision, o TerminalOptions) error {
	if o.Width == 0 {
		o.Width = 100
	}
	t := &terminal{width: max(o.Width, 60), colour: o.Colour}
	t.println("")
	t.println(t.paint(gateColour(d.Verdict), string(d.Verdict)) + " " + clip(printable(gateTitle(d)), t.width-14))
	for _, line := range gateRemarks(d) {
		t.fact("", mild, line)
	}
	if len(d.Metrics) > 0 {
		t.println("")
		t.println(t.paint(faint, gateRow("", []string{"base", "new", "worse by", "at least", "at most", "fails at"}, "verdict")))
	}
	for i := range d.Metrics {
		t.gateMetric(d, i)
	}
	t.println("")
	for _, c := range d.Thresholds {
		t.fact("", map[bool]string{true: good, false: bad}[c.Held], conditionText(c))
	}
	for _, line := range d.Invalid {
		t.fact("invalid", bad, line)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *terminal) gateMetric(d *gate.Decision, i int) {
	m := &d.Metrics[i]
	if m.Point != "" && (i == 0 || d.Metrics[i-1].Point != m.Point) {
		t.println("  " + t.paint(bold, clip(printable(m.Point), t.width-2)))
	}
	t.println(gateRow(m.Name, gateCells(m), t.paint(gateColour(m.Verdict), string(m.Verdict))))
	if m.Verdict == gate.Inconclusive {
		t.fact("", faint, inconclusiveText(m))
	}
}

func gateColour(v gate.Verdict) string {
	return map[gate.Verdict]string{gate.Pass: good, gate.Fail: bad, gate.Invalid: bad, gate.Inconclusive: mild}[v]
}

func gateRow(name string, cells []string, verdict string) string {
	line := "  " + pad(clip(name, compareName), compareName)
	for _, c := range cells {
		line += " " + padLeft(c, 9)
	}
	return strings.TrimRight(line+"  "+verdict, " ")
}

// gateCells are base, new, the change and its bounds, and the least that fails.
func gateCells(m *gate.MetricDecision) []string {
	format := unitFormat(m.Unit)
	return []string{format(m.Base), format(m.New), changeText(m.Worse), changeText(m.AtLeast), changeText(m.AtMost), changeText(&m.FailsAbove)}
}

// changeText is a ratio as a change: "+9.8 %".
func changeText(r *float64) string {
	switch {
	case r == nil:
		return "–"
	case *r >= 11:
		return "×" + digits(*r, 3)
	}
	return fmt.Sprintf("%+.1f %%", 100*(*r-1))
}

// inconclusiveText says why, and what would have been needed.
func inconclusiveText(m *gate.MetricDecision) string {
	text := m.Name + ": " + m.Why
	if m.Seen == nil {
		return text + "; no effect of any size could have been seen"
	}
	return text + "; the smallest effect that could have been seen is " + changeText(m.Seen)
}

// gateTitle says what was judged.
func gateTitle(d *gate.Decision) string {
	switch d.Kind {
	case gate.KindPairs:
		return fmt.Sprintf("%s: %s → %s, %s", d.Workload, d.Base, d.New, plural(d.Pairs, "pair"))
	case gate.KindThresholds:
		return d.Workload + ": " + d.New
	}
	if d.Base == "" {
		return d.Workload + ": " + d.New
	}
	return fmt.Sprintf("%s: %s → %s, not paired", d.Workload, d.Base, d.New)
}

// gateRemarks are what to know before the figures.
func gateRemarks(d *gate.Decision) []string {
	var lines []string
	for _, x := range d.Differs {
		lines = append(lines, "the sides differ in "+x.String())
	}
	for _, u := range d.Forced {
		lines = append(lines, "FORCED although unlike: "+u.String())
	}
	if d.Lost > 0 {
		lines = append(lines, plural(d.Lost, "pair")+" lost to an invalid run, others took their place")
	}
	return append(lines, d.Notes...)
}

func conditionText(c gate.ThresholdResult) string {
	mark, word := "✓ ", " held: "
	if !c.Held {
		mark, word = "✗ ", " BROKEN: "
	}
	if c.Point != "" {
		mark += c.Point + ": "
	}
	return mark + c.Expression + word + c.Value
}

// GateMarkdown writes a decision for a job summary. The errors are those of w.
func GateMarkdown(w io.Writer, d *gate.Decision) error {
	m := &markdown{}
	m.line("# " + string(d.Verdict) + " – " + md(gateTitle(d)))
	m.list(gateRemarks(d))
	if len(d.Metrics) > 0 {
		var rows [][]string
		for i := range d.Metrics {
			x := &d.Metrics[i]
			row := append([]string{strings.TrimSpace(x.Point + " " + x.Name)}, gateCells(x)...)
			rows = append(rows, append(row, string(x.Verdict)))
		}
		m.table([]string{"metric", "base", "new", "worse by", "at least", "at most", "fails at", "verdict"}, 1, rows)
	}
	var open []string
	for i := range d.Metrics {
		if d.Metrics[i].Verdict == gate.Inconclusive {
			open = append(open, inconclusiveText(&d.Metrics[i]))
		}
	}
	m.findings(open, "Inconclusive")
	var conditions []string
	for _, c := range d.Thresholds {
		conditions = append(conditions, conditionText(c))
	}
	m.findings(conditions, "Conditions")
	m.findings(d.Invalid, "Invalid runs")
	_, err := io.WriteString(w, m.b.String())
	return err
}

// GateJSON writes a decision for programs: the content of gate.json.
func GateJSON(w io.Writer, d *gate.Decision) error { return writeJSON(w, d) }
