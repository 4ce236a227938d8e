package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/report/gate"
	"github.com/kbench/kbench/results"
)

// The elements of JUnit's XML, as far as test reporters read them.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Skipped *junitProblem `xml:"skipped"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Body    string `xml:",chardata"`
	}
)

// JUnit writes a decision as a test suite: a case for each metric and condition, figures in the
// body of failures. INCONCLUSIVE is skipped, for it is neither; an invalid measurement is an error.
func JUnit(w io.Writer, d *gate.Decision) error {
	suite := junitSuite{Name: xmlText("kbench gate " + d.Workload)}
	for i := range d.Metrics {
		suite.add(metricCase(d, &d.Metrics[i]))
	}
	for _, c := range d.Thresholds {
		one := junitCase{Class: suite.Name, Name: xmlText(strings.TrimSpace(c.Point + " " + c.Expression))}
		if !c.Held {
			one.Failure = &junitProblem{Message: xmlText(conditionText(c)), Type: "threshold"}
		}
		suite.add(one)
	}
	measurement := junitCase{Class: suite.Name, Name: "measurement is valid"}
	if d.Verdict == gate.Invalid {
		measurement.Error = &junitProblem{Message: "too many runs are invalid", Type: "invalid", Body: xmlText(strings.Join(d.Invalid, "\n"))}
	}
	suite.add(measurement)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{suite}}); err != nil {
		return fmt.Errorf("writing JUnit XML: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

func metricCase(d *gate.Decision, m *gate.MetricDecision) junitCase {
	c := junitCase{Class: xmlText("kbench gate " + d.Workload), Name: xmlText(strings.TrimSpace(m.Point + " " + m.Name))}
	problem := &junitProblem{Message: xmlText(metricText(m)), Body: xmlText(metricBody(d, m))}
	switch m.Verdict {
	case gate.Fail:
		problem.Type = "regression"
		c.Failure = problem
	case gate.Inconclusive:
		c.Skipped = &junitProblem{Message: xmlText("inconclusive: " + inconclusiveText(m))}
	}
	return c
}

// metricText is a metric's change in one line.
func metricText(m *gate.MetricDecision) string {
	text := fmt.Sprintf("%s is worse by %s", m.Name, changeText(m.Worse))
	if m.AtLeast != nil {
		text += " (at least " + changeText(m.AtLeast) + ")"
	}
	return text
}

func metricBody(d *gate.Decision, m *gate.MetricDecision) string {
	format := unitFormat(m.Unit)
	return fmt.Sprintf("%s\nbase (%s): %s\nnew (%s): %s\nworse by %s, at least %s, at most %s\nfails above %s, passes below %s\n",
		gateTitle(d), d.Base, format(m.Base), d.New, format(m.New), changeText(m.Worse), changeText(m.AtLeast), changeText(m.AtMost),
		changeText(&m.FailsAbove), changeText(&m.PassesBelow))
}

// xmlText keeps foreign text within what XML 1.0 can hold, line breaks included.
func xmlText(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = printable(strings.ToValidUTF8(lines[i], "�"))
	}
	return strings.Join(lines, "\n")
}

// annotation is what GitHub's check runs take, and others can make something of.
type annotation struct {
	Path      string `json:"path"`
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
	Level     string `json:"annotation_level"` // notice, warning or failure
	Title     string `json:"title"`
	Message   string `json:"message"`
}

// GitHub's bounds, in characters: of a title, and of a message of 64 KiB whatever its characters.
const (
	annotationTitle   = 255
	annotationMessage = 64 << 10 / 4
)

// Annotations writes what a decision has to say as a JSON list in the form of GitHub's check-run
// annotations. path is the file they are put on, such as the workload's.
func Annotations(w io.Writer, d *gate.Decision, path string) error {
	list := []annotation{}
	add := func(level, title, message string) {
		list = append(list, annotation{path, 1, 1, level, clip(xmlText(title), annotationTitle), clip(xmlText(message), annotationMessage)})
	}
	levels := map[gate.Verdict]string{gate.Pass: "notice", gate.Inconclusive: "warning", gate.Fail: "failure", gate.Invalid: "failure"}
	add(levels[d.Verdict], "kbench gate: "+string(d.Verdict), gateTitle(d))
	for i := range d.Metrics {
		m := &d.Metrics[i]
		switch m.Verdict {
		case gate.Fail:
			add("failure", "slower: "+strings.TrimSpace(m.Point+" "+m.Name), metricBody(d, m))
		case gate.Inconclusive:
			add("warning", "inconclusive: "+strings.TrimSpace(m.Point+" "+m.Name), inconclusiveText(m))
		}
	}
	for _, c := range d.Thresholds {
		if !c.Held {
			add("failure", "condition broken", conditionText(c))
		}
	}
	for _, line := range d.Invalid {
		add("warning", "invalid runs", line)
	}
	return writeJSON(w, list)
}

// GoBenchmark writes the runs of results in the text format of Go's benchmarks, a line for each
// valid run, for benchstat and what else reads it: benchstat -col /side FILE. Names are those of
// the sides.
func GoBenchmark(w io.Writer, sides []compare.Named) error {
	var b strings.Builder
	for _, m := range compare.Metrics() {
		if !m.Count {
			fmt.Fprintf(&b, "Unit %s better=%s\n", benchUnit(m), map[bool]string{true: "higher", false: "lower"}[m.Higher])
		}
	}
	for _, side := range sides {
		for i := range side.Result.Points {
			p := &side.Result.Points[i]
			for _, run := range compare.Valid(p) {
				b.WriteString(benchLine(side, p, run) + "\n")
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func benchLine(side compare.Named, p *results.Point, run *results.Run) string {
	name := "BenchmarkKbench/workload=" + benchName(side.Result.Workload.Name)
	if len(side.Result.Points) > 1 {
		name += "/point=" + benchName(p.Label)
	}
	line := fmt.Sprintf("%s/side=%s %d", name, benchName(side.Name), max(run.Counts.Acked, run.Counts.Received, 1))
	for _, m := range compare.Metrics() {
		if v, has := m.Of(run); has && !m.Count {
			line += " " + digits(v, 6) + " " + benchUnit(m)
		}
	}
	return line
}

// benchUnit names figure and unit in one, as the format wants it: "response.p99-ns".
func benchUnit(m compare.Metric) string {
	if m.Name == compare.Throughput {
		return "msg/s"
	}
	if m.Name == compare.CPU {
		return "cpu-ns/msg"
	}
	return m.Name + "-" + m.Unit
}

// benchName keeps a name in one word without slashes.
func benchName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r == '/' || r == 0x7f {
			return '_'
		}
		return r
	}, printable(s))
	if s = strings.ReplaceAll(s, " ", "_"); s == "" {
		return "none"
	}
	return s
}
