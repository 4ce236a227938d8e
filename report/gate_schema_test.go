package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/gate"
)

// junitElements are the elements of JUnit's XML with the attributes they need and may have and the
// elements they may hold, as the schema of the xUnit plugin for Jenkins (junit-10.xsd) has them, as far as
// GitLab's and GitHub's readers know them as well.
var junitElements = map[string]struct{ needs, may, holds []string }{
	"testsuites": {nil, []string{"name", "time", "tests", "failures", "disabled", "errors"}, []string{"testsuite"}},
	"testsuite": {[]string{"name", "tests"}, []string{"failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
		[]string{"properties", "testcase", "system-out", "system-err"}},
	"testcase": {[]string{"name"}, []string{"classname", "time", "file", "line", "assertions", "status"}, []string{"skipped", "error", "failure", "system-out", "system-err"}},
	"failure":  {nil, []string{"type", "message"}, nil},
	"error":    {nil, []string{"type", "message"}, nil},
	"skipped":  {nil, []string{"type", "message"}, nil},
}

// checkJUnit says what of a document is not as the table has it, and whether the suites count right.
func checkJUnit(document []byte) error {
	d := xml.NewDecoder(bytes.NewReader(document))
	var stack []xml.StartElement
	count := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.StartElement:
			if err := checkElement(stack, e); err != nil {
				return err
			}
			stack = append(stack, e.Copy())
			count[e.Name.Local]++
		case xml.EndElement:
			if e.Name.Local == "testsuite" {
				if err := checkCounts(stack[len(stack)-1], count); err != nil {
					return err
				}
				clear(count)
			}
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if text := strings.TrimSpace(string(e)); text != "" && !slices.Contains([]string{"failure", "error", "skipped"}, stack[len(stack)-1].Name.Local) {
				return fmt.Errorf("text %q where there is none", text)
			}
		}
	}
}

func checkElement(stack []xml.StartElement, e xml.StartElement) error {
	name := e.Name.Local
	known, is := junitElements[name]
	switch {
	case !is:
		return fmt.Errorf("unknown element %s", name)
	case len(stack) == 0 && name != "testsuites":
		return fmt.Errorf("%s at the top", name)
	case len(stack) > 0 && !slices.Contains(junitElements[stack[len(stack)-1].Name.Local].holds, name):
		return fmt.Errorf("%s within %s", name, stack[len(stack)-1].Name.Local)
	}
	given := map[string]bool{}
	for _, a := range e.Attr {
		if given[a.Name.Local] = true; !slices.Contains(append(slices.Clone(known.needs), known.may...), a.Name.Local) {
			return fmt.Errorf("%s has no attribute %s", name, a.Name.Local)
		}
	}
	for _, need := range known.needs {
		if !given[need] {
			return fmt.Errorf("%s needs %s", name, need)
		}
	}
	return nil
}

func checkCounts(suite xml.StartElement, count map[string]int) error {
	for attribute, element := range map[string]string{"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"} {
		for _, a := range suite.Attr {
			if a.Name.Local == attribute && a.Value != strconv.Itoa(count[element]) {
				return fmt.Errorf("%s is %s, there are %d", attribute, a.Value, count[element])
			}
		}
	}
	return nil
}

// awkward is a decision whose names are as bad as names can be.
func awkward(d *gate.Decision) *gate.Decision {
	c := *d
	bad := "<&\">'\x00\x1b[31m\u2028\xff ]]> " + strings.Repeat("long ", 100)
	c.Workload, c.Base, c.New = bad, bad, bad
	c.Metrics = slices.Clone(d.Metrics)
	for i := range c.Metrics {
		c.Metrics[i].Point = bad
	}
	c.Thresholds = append(slices.Clone(d.Thresholds), gate.ThresholdResult{Point: bad, Expression: "errors<1%", Value: bad})
	c.Invalid = append(slices.Clone(d.Invalid), bad)
	return &c
}

func TestJUnitFollowsTheSchema(t *testing.T) {
	for name, d := range decisions(t) {
		for about, d := range map[string]*gate.Decision{name: d, name + " awkward": awkward(d)} {
			var b bytes.Buffer
			require.NoError(t, JUnit(&b, d))
			require.NoError(t, checkJUnit(b.Bytes()), about)
		}
	}
	for _, wrong := range []string{
		"<testsuite name='x' tests='0'/>", "<testsuites><testcase name='x'/></testsuites>", "<testsuites><testsuite name='x'/></testsuites>",
		"<testsuites><testsuite name='x' tests='1'/></testsuites>", "<testsuites><testsuite name='x' tests='0' test='1'/></testsuites>",
		"<testsuites>text</testsuites>", "<testsuites><suite/></testsuites>", "<testsuites>",
	} {
		require.Error(t, checkJUnit([]byte(wrong)), "%s: the check must be able to say no", wrong)
	}
}

// What GitHub's API takes as annotations of a check run: these keys, these levels, titles of 255
// characters and messages of 64 KiB at most.
func TestAnnotationsAreAsGitHubTakesThem(t *testing.T) {
	for name, d := range decisions(t) {
		for about, d := range map[string]*gate.Decision{name: d, name + " awkward": awkward(d)} {
			var b bytes.Buffer
			require.NoError(t, Annotations(&b, d, "perf/gate.yaml"))
			decoder := json.NewDecoder(&b)
			decoder.DisallowUnknownFields()
			var list []struct {
				Path      string `json:"path"`
				StartLine int    `json:"start_line"`
				EndLine   int    `json:"end_line"`
				Level     string `json:"annotation_level"`
				Title     string `json:"title"`
				Message   string `json:"message"`
			}
			require.NoError(t, decoder.Decode(&list), about)
			require.NotEmpty(t, list)
			for _, a := range list {
				require.Equal(t, "perf/gate.yaml", a.Path)
				require.Positive(t, a.StartLine)
				require.GreaterOrEqual(t, a.EndLine, a.StartLine)
				require.Contains(t, []string{"notice", "warning", "failure"}, a.Level)
				require.NotEmpty(t, a.Message, about)
				require.LessOrEqual(t, utf8.RuneCountInString(a.Title), 255, about)
				require.LessOrEqual(t, len(a.Message), 64<<10, about)
				require.NotContains(t, a.Title+a.Message, "\x1b", "nothing that a log would obey")
			}
		}
	}
}
