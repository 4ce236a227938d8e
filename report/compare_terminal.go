package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kbench/kbench/report/compare"
)

// CompareTerminal prints a comparison for people: what is unlike first, then a table for each
// point. Of o, Width and Colour count. The only errors are those of w.
func CompareTerminal(w io.Writer, c *compare.Comparison, o TerminalOptions) error {
	if o.Width == 0 {
		o.Width = 100
	}
	t := &terminal{width: max(o.Width, 60), colour: o.Colour}
	for i := range c.News {
		t.against(c, &c.News[i])
	}
	t.println("")
	for _, note := range compareNotes(c) {
		t.fact("", faint, note)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// compareNotes say how the figures are to be read.
func compareNotes(c *compare.Comparison) []string {
	how := "intervals invert the test of Mann and Whitney over runs"
	if c.Paired {
		how = "runs are paired by repeat; intervals invert Wilcoxon's signed-rank test"
	}
	return []string{
		fmt.Sprintf("medians over the valid runs; ratio = new ÷ base (Hodges–Lehmann), %.0f %% interval each by itself; %s", 100*c.Level, how),
		fmt.Sprintf("alike: the whole interval is within %.0f %%, of p99 and beyond within %.0f %%", 100*compare.Margin, 100*compare.TailMargin),
	}
}

func (t *terminal) against(c *compare.Comparison, a *compare.Against) {
	t.println("")
	t.println(t.paint(bold, clip(printable(c.Base)+" → "+printable(a.Name), t.width)))
	label := "unlike"
	for _, d := range a.Unlike {
		t.fact(label, mildIf(d.Decisive), d.String())
		label = ""
	}
	for i := range a.Points {
		t.println("")
		t.comparePoint(&a.Points[i])
	}
	if len(a.Points) == 0 {
		t.fact("", bad, "no point has the same settings on both sides: nothing can be compared")
	}
	t.alone("only base", a.OnlyBase)
	t.alone("only new", a.OnlyNew)
}

// mildIf is the colour of what matters.
func mildIf(matters bool) string {
	if matters {
		return mild
	}
	return faint
}

// alone names points without a counterpart.
func (t *terminal) alone(label string, points []string) {
	for _, p := range first(points, 8) {
		t.fact(label, mild, p)
		label = ""
	}
}

// compareWidths of the table after the metric: base, new, ratio, interval.
var compareWidths = []int{10, 10, 7, 15}

const compareName = 18

func compareRow(name string, cells []string, verdict string) string {
	line := "  " + pad(clip(name, compareName), compareName)
	for i, c := range cells {
		line += " " + padLeft(c, compareWidths[i])
	}
	return line + "  " + verdict
}

func (t *terminal) comparePoint(p *compare.Point) {
	for i, line := range wrap(printable(p.Label), t.width-2) {
		t.println("  " + strings.Repeat("  ", min(i, 1)) + t.paint(bold, line))
	}
	for _, n := range p.Notes {
		t.fact("", bad, n)
	}
	if len(p.Metrics) == 0 {
		return
	}
	first := p.Metrics[0]
	t.println(t.paint(faint, compareRow(fmt.Sprintf("%d and %s", len(first.Base.Runs), plural(len(first.New.Runs), "run")), []string{"base", "new", "ratio", "interval"}, "verdict")))
	reasons := map[string][]string{}
	var order []string
	for i := range p.Metrics {
		m := &p.Metrics[i]
		t.println(compareRow(m.Name, compareCells(m), t.paint(verdictColour(m.Verdict), string(m.Verdict))))
		if m.Why != "" {
			if reasons[m.Why] == nil {
				order = append(order, m.Why)
			}
			reasons[m.Why] = append(reasons[m.Why], m.Name)
		}
	}
	for _, why := range order {
		about := strings.Join(reasons[why], ", ")
		if len(reasons[why]) > 4 {
			about = plural(len(reasons[why]), "figure")
		}
		t.fact("", faint, "cannot tell "+about+": "+why)
	}
}

func verdictColour(v compare.Verdict) string {
	return map[compare.Verdict]string{compare.Worse: bad, compare.Better: good, compare.Alike: good, compare.CannotTell: mild}[v]
}

// compareCells are base, new, ratio and interval as printed.
func compareCells(m *compare.Judged) []string {
	format := unitFormat(m.Unit)
	cells := []string{format(m.Base.Median), format(m.New.Median), "", ""}
	if m.Ratio != nil {
		cells[2] = ratioText(*m.Ratio)
	}
	if m.Lower != nil && m.Upper != nil {
		cells[3] = ratioText(*m.Lower) + "–" + ratioText(*m.Upper)
	}
	return cells
}

// unitFormat is how a metric of a unit is printed.
func unitFormat(unit string) func(float64) string {
	switch unit {
	case "ns", "ns/msg":
		return duration
	case "share":
		return errorShare
	}
	return quantity
}

// ratioText has three decimals near 1, where they matter.
func ratioText(r float64) string {
	if r < 0.1 || r >= 10 {
		return digits(r, 3)
	}
	return fmt.Sprintf("%.3f", r)
}
