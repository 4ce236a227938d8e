package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/kbench/kbench/results"
)

// TerminalOptions say how the summary is printed. The zero value is plain text, 100 columns wide.
type TerminalOptions struct {
	// Width is the number of columns lines are kept within; 0 means 100, and less than 60 is
	// taken as 60.
	Width int
	// Colour asks for ANSI colours. Whether the output is a terminal and NO_COLOR are for the
	// caller to look at.
	Colour bool
	// Dir and Report are where the result and its HTML report are, for the last lines; empty
	// ones are not printed.
	Dir, Report string
}

// Terminal prints the summary of a result for people: one point with everything about it, or one
// table with a row for each point of a sweep. The only errors are those of w.
func Terminal(w io.Writer, r *results.Result, o TerminalOptions) error {
	if o.Width == 0 {
		o.Width = 100
	}
	t := &terminal{width: max(o.Width, 60), colour: o.Colour}
	v := newView(Named{Result: r})
	t.head(v)
	t.ceilings(v)
	t.capacities(v)
	switch p := v.single(); {
	case p != nil && len(p.data.Runs) == 1:
		t.run(p, &p.data.Runs[0])
	case len(v.ran()) > 0 || len(r.Capacity) == 0: // a search that found nothing has said so
		t.sweep(v)
	}
	t.where(o)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// terminal collects the lines of a summary.
type terminal struct {
	b       strings.Builder
	width   int
	colour  bool
	columns int // of the sweep's table that there is room for
}

// ANSI colours by what they say.
const (
	good  = "32"
	bad   = "31;1"
	mild  = "33"
	faint = "2"
	bold  = "1"
)

// paint colours text when colours were asked for.
func (t *terminal) paint(code, text string) string {
	if !t.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (t *terminal) println(text string) {
	t.b.WriteString(strings.TrimRight(text, " ") + "\n")
}

// labelWidth is the column the facts of a run begin in.
const labelWidth = 13

// fact prints a label and text beside it, wrapped at spaces under itself.
func (t *terminal) fact(label, code, text string) {
	for i, line := range wrap(printable(text), t.width-labelWidth) {
		if i > 0 {
			label = ""
		}
		t.println(pad("  "+label, labelWidth) + t.paint(code, line))
	}
}

// head says what was run, where, and what to know before reading any figure.
func (t *terminal) head(v *view) {
	src := v.sources[0]
	r := src.result
	title := printable(r.Workload.Name)
	if r.Workload.Description != "" {
		title += " – " + printable(r.Workload.Description)
	}
	t.println("")
	t.println(t.paint(bold, clip(title, t.width)))
	t.println(t.paint(faint, clip(printable(subtitle(v)), t.width)))
	if r.Provenance.Cluster.Embedded {
		t.println(t.paint(mild, noteEmbedded))
	}
	if r.Interrupted {
		t.println(t.paint(mild, "not finished: what was measured until then is all here"))
	}
	for _, text := range v.origins() {
		t.println(t.paint(faint, clip(printable(text), t.width)))
	}
	t.println("")
}

// subtitle is when, how much and on what, in one line.
func subtitle(v *view) string {
	src := v.sources[0]
	r := src.result
	parts := []string{r.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC")}
	n := v.tally()
	if n.points > 1 || n.runs != 1 {
		parts = append(parts, plural(n.points, "point"), plural(n.runs, "run"))
	} else {
		run := &v.points[0].data.Runs[0]
		parts = append(parts, run.Loop+" loop", duration(float64(run.ElapsedNs))+" measured")
	}
	if c := clusterLine(r.Provenance.Cluster); c != "" {
		parts = append(parts, c)
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", r.Seed)), " · ")
}

// clusterLine names what was measured.
func clusterLine(c results.Cluster) string {
	if c.Embedded {
		return "embedded broker"
	}
	var parts []string
	if c.Version != "" {
		parts = append(parts, "Kafka "+c.Version)
	}
	if n := len(c.Brokers); n > 0 {
		parts = append(parts, plural(n, "broker"))
	}
	if c.RTTNs > 0 {
		parts = append(parts, "RTT "+duration(float64(c.RTTNs)))
	}
	return strings.Join(parts, ", ")
}

// where says where the rest is. Paths are never cut, for they are there to be copied.
func (t *terminal) where(o TerminalOptions) {
	if o.Dir != "" {
		t.println(pad("  result", labelWidth) + printable(o.Dir))
	}
	if o.Report != "" {
		t.println(pad("  report", labelWidth) + printable(o.Report))
	}
}

// printable keeps foreign text from steering the terminal: control characters become spaces.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || (r >= 0x7f && r < 0xa0) || r == 0x2028 || r == 0x2029 || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
			return ' '
		}
		return r
	}, s)
}

// columns measures text; ambiguous characters (µ, –, ·) are one column wide whatever the locale.
var columns = &runewidth.Condition{EastAsianWidth: false}

// clip cuts text to n columns, with an ellipsis in the last.
func clip(s string, n int) string { return columns.Truncate(s, n, "…") }

// pad fills text up to n columns on the right, padLeft on the left.
func pad(s string, n int) string     { return columns.FillRight(s, n) }
func padLeft(s string, n int) string { return columns.FillLeft(s, n) }

// wrap breaks text at spaces into lines of at most n columns; longer words are cut.
func wrap(s string, n int) []string {
	var lines []string
	line := ""
	n = max(n, 2) // the widest character takes two columns, so that each step takes one at least
	for _, word := range strings.Fields(s) {
		for columns.StringWidth(word) > n {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			head := columns.Truncate(word, n, "")
			lines, word = append(lines, head), word[len(head):]
		}
		switch {
		case line == "":
			line = word
		case columns.StringWidth(line)+1+columns.StringWidth(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}
