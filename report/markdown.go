package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kbench/kbench/results"
)

// Markdown writes the figures of a result for a pull request or a job summary. The errors are
// those of w.
func Markdown(w io.Writer, r *results.Result) error {
	return writeMarkdown(w, newView(Named{Result: r}))
}

// JSON writes the content of result.json. It fails for figures that JSON has no words for.
func JSON(w io.Writer, r *results.Result) error {
	data, err := results.Encode(r)
	if err != nil {
		return fmt.Errorf("writing the result as JSON: %w", err)
	}
	_, err = w.Write(data)
	return err
}

func writeMarkdown(w io.Writer, v *view) error {
	m := &markdown{}
	m.line("# " + md(v.title()))
	for _, src := range v.sources {
		if text := src.result.Workload.Description; text != "" {
			m.line(md(text))
		}
	}
	m.line(md(v.subtitle()))
	var verdicts []string
	for _, b := range badges(v.tally()) {
		verdicts = append(verdicts, "**"+md(b.Text)+"**")
	}
	m.line(strings.Join(verdicts, " · "))
	t := v.tally()
	if t.embedded {
		m.line("> **" + noteEmbedded + "**")
	}
	if t.interrupted {
		m.line("> not finished: what was measured until then is all here")
	}
	m.ceilings(v)
	m.capacities(v)
	if p := v.single(); p != nil {
		m.single(p)
	} else if t.runs > 0 || t.searches == 0 {
		m.points(v)
	}
	for _, n := range append(v.origins(), v.notes()...) {
		m.line("*" + md(n) + "*")
	}
	for _, src := range v.sources {
		m.source(src)
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

// markdown collects paragraphs.
type markdown struct{ b strings.Builder }

// line is a paragraph of its own.
func (m *markdown) line(text string) { m.b.WriteString(text + "\n\n") }

// list is a list of texts, which are escaped.
func (m *markdown) list(texts []string) {
	for _, t := range texts {
		m.b.WriteString("- " + md(t) + "\n")
	}
	if len(texts) > 0 {
		m.b.WriteByte('\n')
	}
}

// table writes rows of escaped cells; the first left columns stand to the left.
func (m *markdown) table(head []string, left int, rows [][]string) {
	m.row(head)
	marks := make([]string, len(head))
	for i := range marks {
		marks[i] = map[bool]string{true: ":---", false: "---:"}[i < left]
	}
	m.row(marks)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = md(c)
		}
		m.row(cells)
	}
	m.b.WriteByte('\n')
}

func (m *markdown) row(cells []string) { m.b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

// single is everything about the only point.
func (m *markdown) single(p *point) {
	m.findings(p.reasons(), "INVALID – do not quote these figures")
	m.findings(p.warnings(), "Before quoting a figure")
	for i := range p.data.Runs {
		run := &p.data.Runs[i]
		if len(p.data.Runs) > 1 {
			verdict := "valid"
			if !run.Verdict.Valid {
				verdict = "INVALID: " + strings.Join(run.Verdict.Reasons, "; ")
			}
			m.line(fmt.Sprintf("## Run %d – %s", run.Repeat+1, md(verdict)))
		}
		m.run(run)
	}
}

func (m *markdown) findings(texts []string, title string) {
	if len(texts) > 0 {
		m.line("**" + title + ":**")
		m.list(texts)
	}
}

func (m *markdown) run(run *results.Run) {
	t := latencyTable(run)
	if len(t.Rows) > 0 {
		var rows [][]string
		for _, r := range t.Rows {
			rows = append(rows, r.Cells)
		}
		m.table(t.Head, 1, rows)
	}
	if t := phaseTable(run); t != nil {
		m.line(md("Phases; latencies are of "+headline(run)) + ":")
		var rows [][]string
		for _, r := range t.Rows {
			cells := slices.Clone(r.Cells)
			if !r.Strong {
				cells[0] += " (not in the figures)"
			}
			rows = append(rows, cells)
		}
		m.table(t.Head, 1, rows)
	}
	var facts [][]string
	for _, f := range newRunPage(run).Facts {
		facts = append(facts, []string{f.Label, f.Text})
	}
	m.table([]string{"", ""}, 2, facts)
	var conditions []string
	for _, th := range run.Thresholds {
		conditions = append(conditions, thresholdText(th))
	}
	m.list(conditions)
}

// points is a table with a row for each point and what there is to know about them.
func (m *markdown) points(v *view) {
	note := ""
	if series := v.headlines(); len(series) > 0 {
		note = "Percentiles are of " + strings.Join(series, " or ") + ". "
	}
	if v.repeated() {
		note += "Medians over the valid runs of a point (over all when none is valid), smallest–largest in brackets."
	}
	m.line(md(note))
	var rows [][]string
	for _, p := range v.points {
		row := []string{p.id, p.label, fmt.Sprint(len(p.data.Runs))}
		for _, f := range p.figures() {
			row = append(row, f.text(f.format))
		}
		rows = append(rows, append(row, verdictBadge(p).Text))
	}
	m.table([]string{"point", "", "runs", "msg/s", "p50", "p99", "p99.9", "errors", "cpu/msg", "verdict"}, 2, rows)
	for _, p := range v.points {
		var texts []string
		for _, f := range findingsOf(p) {
			texts = append(texts, f.Text)
		}
		m.findings(texts, md(p.id))
	}
}

// source says where the figures came from.
func (m *markdown) source(src *source) {
	m.b.WriteString("<details><summary>Configuration and provenance: " + md(src.name) + "</summary>\n\n")
	var rows [][]string
	for _, f := range provenanceFacts(src.result) {
		rows = append(rows, []string{f.Label, f.Text})
	}
	m.table([]string{"", ""}, 2, rows)
	if len(src.result.Workload.Overrides) > 0 {
		m.line("Given on the command line:")
		m.list(src.result.Workload.Overrides)
	}
	m.line("</details>")
}

// mdEscapes keep foreign text from being markup, in a cell and outside of one.
var mdEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "`", "\\`",
	"[", `\[`, "]", `\]`, "#", `\#`, "~", `\~`)

// md escapes foreign text and keeps it on one line.
func md(s string) string {
	return mdEscapes.Replace(strings.Join(strings.Fields(printable(s)), " "))
}
