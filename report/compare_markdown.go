package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/kbench/kbench/report/compare"
)

// CompareMarkdown writes a comparison for a pull request or a job summary. The errors are those of w.
func CompareMarkdown(w io.Writer, c *compare.Comparison) error {
	m := &markdown{}
	for i := range c.News {
		a := &c.News[i]
		m.line("# " + md(c.Base) + " → " + md(a.Name))
		m.unlike(a.Unlike)
		for j := range a.Points {
			m.comparePoint(&a.Points[j])
		}
		if len(a.Points) == 0 {
			m.line("**No point has the same settings on both sides: nothing can be compared.**")
		}
		m.findings(a.OnlyBase, "Only in the base")
		m.findings(a.OnlyNew, "Only in the new result")
	}
	for _, note := range compareNotes(c) {
		m.line("*" + md(note) + "*")
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

// unlike lists what differs beside what is compared.
func (m *markdown) unlike(list []compare.Difference) {
	var texts []string
	for _, d := range list {
		texts = append(texts, d.String())
	}
	m.findings(texts, "Unlike beside what is compared")
}

func (m *markdown) comparePoint(p *compare.Point) {
	m.line("## " + md(p.Label))
	m.findings(p.Notes, "Before reading on")
	if len(p.Metrics) == 0 {
		return
	}
	var rows [][]string
	for i := range p.Metrics {
		j := &p.Metrics[i]
		rows = append(rows, append(append([]string{j.Name}, compareCells(j)...), compareVerdict(j)))
	}
	m.table([]string{fmt.Sprintf("%d and %s", len(p.Metrics[0].Base.Runs), plural(len(p.Metrics[0].New.Runs), "run")), "base", "new", "ratio", "interval", "verdict"}, 1, rows)
}

// compareVerdict is the verdict with its reason.
func compareVerdict(j *compare.Judged) string {
	if j.Why == "" {
		return string(j.Verdict)
	}
	return string(j.Verdict) + ": " + j.Why
}

// CompareJSON writes a comparison for programs.
func CompareJSON(w io.Writer, c *compare.Comparison) error { return writeJSON(w, c) }

// writeJSON writes indented JSON without escaping what only matters inside HTML.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}
