package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/report/gate"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// compared are three results of five runs each: the same work, once more with twice the latency,
// and once on another host with a run that is invalid.
func compared(t testing.TB) []Named {
	t.Helper()
	var several []Named
	for i, base := range []time.Duration{2 * time.Millisecond, 4 * time.Millisecond, 2020 * time.Microsecond} {
		s := scenario{seed: uint64(30 + i), loop: "open", ack: "acked", rate: 400, base: base, tail: 0.3, seconds: 3, consumers: true}
		f := keep(t, newResult("steady", ""), 5, []results.Point{{ID: "p00", Label: "steady", Settings: map[string]any{}}}, []scenario{s})
		several = append(several, Named{Name: []string{"before", "slower", "elsewhere"}[i], Dir: f.dir, Result: f.result})
	}
	several[2].Result.Provenance.Host.Hostname = "load-2"
	several[2].Result.Points[0].Runs[1].Verdict = results.Verdict{Reasons: []string{"2.4 % of CPU time was stolen, above the limit of 2 %"}}
	return several
}

func comparisonOf(several []Named) *compare.Comparison {
	var named []compare.Named
	for _, s := range several {
		named = append(named, compare.Named{Name: s.Name, Result: s.Result})
	}
	return compare.Compare(named[0], named[1:], compare.Options{})
}

func TestCompareTerminal(t *testing.T) {
	for _, width := range []int{0, 80} {
		var b, coloured bytes.Buffer
		c := comparisonOf(compared(t))
		require.NoError(t, CompareTerminal(&b, c, TerminalOptions{Width: width}))
		for _, line := range strings.Split(b.String(), "\n") {
			require.LessOrEqual(t, columns.StringWidth(line), map[int]int{0: 100, 80: 80}[width], line)
		}
		require.NoError(t, CompareTerminal(&coloured, c, TerminalOptions{Width: width, Colour: true}))
		require.Equal(t, b.String(), colours.ReplaceAllString(coloured.String(), ""))
		if width == 0 {
			golden(t, "compare.txt", b.Bytes())
		}
	}
}

func TestCompareMarkdown(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, CompareMarkdown(&b, comparisonOf(compared(t))))
	golden(t, "compare.md", b.Bytes())
}

func TestCompareNothingInCommon(t *testing.T) {
	several := compared(t)[:2]
	for i := range several {
		p := several[i].Result.Points[0]
		q := p
		p.Settings, q.Settings = map[string]any{"acks": fmt.Sprint(i)}, map[string]any{"acks": fmt.Sprint(i + 2)}
		several[i].Result.Points = []results.Point{p, q}
	}
	var text, markdown, page bytes.Buffer
	c := comparisonOf(several)
	require.NoError(t, CompareTerminal(&text, c, TerminalOptions{}))
	require.NoError(t, CompareMarkdown(&markdown, c))
	require.NoError(t, CompareHTML(&page, c, several))
	for _, out := range []string{text.String(), markdown.String(), page.String()} {
		require.Contains(t, strings.ToLower(out), "no point has the same settings on both sides")
	}
	require.Contains(t, text.String(), "only base")
}

func TestCompareJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, CompareJSON(&b, comparisonOf(compared(t))))
	var back compare.Comparison
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Len(t, back.News, 2)
	require.Equal(t, "host", back.News[1].Unlike[0].What)
}

func TestCompareHTML(t *testing.T) {
	several := compared(t)
	var b bytes.Buffer
	require.NoError(t, CompareHTML(&b, comparisonOf(several), several))
	page := b.String()
	require.Equal(t, 4, strings.Count(page, `ratios"`), "two plots, wide and narrow")
	require.Contains(t, page, `percentiles"`, "curves over each other")
	for _, want := range []string{"host: load-1, then load-2", "INVALID and left out: 2.4 % of CPU time was stolen", "response.p50: ", ", worse", "before/p00", "slower/p00"} {
		require.Contains(t, page, want)
	}
	require.NotRegexp(t, regexp.MustCompile(`(src|href)="https?:`), page, "nothing is loaded")
	require.Error(t, CompareHTML(&b, comparisonOf(several), several[:1]))
}

func TestCompareHostileText(t *testing.T) {
	several := compared(t)[:2]
	hostile(fixture{several[1].Dir, several[1].Result})
	several[1].Name = hostileText
	c := comparisonOf(several)
	var page, markdown, terminal bytes.Buffer
	require.NoError(t, CompareHTML(&page, c, several))
	require.NoError(t, CompareMarkdown(&markdown, c))
	require.NoError(t, CompareTerminal(&terminal, c, TerminalOptions{}))
	for _, out := range []string{page.String(), markdown.String()} {
		require.NotContains(t, out, "<script>window")
		require.NotContains(t, out, "<img")
	}
}

func TestRatioChartTicks(t *testing.T) {
	for _, r := range []float64{1.01, 1.3, 3, 8, 900, 1e6} {
		chart := ratioChart([]ratioRow{{name: "x", ratio: r, lower: r / 1.1, upper: r * 1.1, verdict: compare.Worse}}, widePaper)
		require.Contains(t, chart, ">1<", "the line at 1 is labelled: %v", r)
		require.NotContains(t, chart, "NaN")
	}
	require.Empty(t, ratioChart(nil, widePaper))
}

// decisions are one of each kind.
func decisions(t testing.TB) map[string]*gate.Decision {
	several := compared(t)
	named := func(i int) compare.Named { return compare.Named{Name: several[i].Name, Result: several[i].Result} }
	limit, err := workloads.ParseThreshold("response.p99<1ms")
	require.NoError(t, err)
	out := map[string]*gate.Decision{}
	out["stored"], err = gate.Stored(named(0), named(1), gate.StoredOptions{Thresholds: []workloads.Threshold{limit}})
	require.NoError(t, err)
	out["forced"], err = gate.Stored(named(0), named(2), gate.StoredOptions{Force: true})
	require.NoError(t, err)
	var p gate.Pairs
	a, b := compare.Valid(&several[0].Result.Points[0]), compare.Valid(&several[1].Result.Points[0])
	for i := range 8 {
		_, err := p.Add(a[i%5], b[(i+2)%5])
		require.NoError(t, err)
	}
	out["pairs"] = p.Decide()
	out["pairs"].Workload, out["pairs"].Base, out["pairs"].New, out["pairs"].Lost = "steady", "A flush=1", "B flush=100", 1
	out["pairs"].Differs = []compare.Difference{{What: "Kafka version", Base: "3.9+", New: "4.4+"}}
	short := func(n compare.Named) compare.Named {
		r := *n.Result
		r.Points = []results.Point{r.Points[0]}
		r.Points[0].Runs = r.Points[0].Runs[:1]
		return compare.Named{Name: n.Name, Result: &r}
	}
	out["once"], err = gate.Stored(short(named(0)), short(named(1)), gate.StoredOptions{})
	require.NoError(t, err)
	one := several[1].Result
	for i := range one.Points[0].Runs {
		one.Points[0].Runs[i].Verdict = results.Verdict{Reasons: []string{"paused"}}
	}
	out["invalid"], err = gate.Stored(named(0), named(1), gate.StoredOptions{})
	require.NoError(t, err)
	return out
}

func TestGateTexts(t *testing.T) {
	for name, d := range decisions(t) {
		t.Run(name, func(t *testing.T) {
			var text, markdown, junit, annotations bytes.Buffer
			require.NoError(t, GateTerminal(&text, d, TerminalOptions{}))
			for _, line := range strings.Split(text.String(), "\n") {
				require.LessOrEqual(t, columns.StringWidth(line), 100, line)
			}
			golden(t, "gate-"+name+".txt", text.Bytes())
			require.NoError(t, GateMarkdown(&markdown, d))
			golden(t, "gate-"+name+".md", markdown.Bytes())
			require.NoError(t, JUnit(&junit, d))
			golden(t, "gate-"+name+".xml", junit.Bytes())
			require.NoError(t, Annotations(&annotations, d, "steady.yaml"))
			golden(t, "gate-"+name+".json", annotations.Bytes())
		})
	}
}

func TestGateVerdicts(t *testing.T) {
	got := map[string]gate.Verdict{}
	for name, d := range decisions(t) {
		got[name] = d.Verdict
	}
	require.Equal(t, map[string]gate.Verdict{"stored": gate.Fail, "forced": gate.Pass, "once": gate.Inconclusive, "pairs": gate.Fail, "invalid": gate.Invalid}, got)
}

func TestJUnitCounts(t *testing.T) {
	for name, d := range decisions(t) {
		var b bytes.Buffer
		d.Workload += " \x00\x0b<&\xff"
		require.NoError(t, JUnit(&b, d))
		var back junitSuites
		require.NoError(t, xml.Unmarshal(b.Bytes(), &back), "%s", b.String())
		s := back.Suites[0]
		require.Equal(t, len(s.Cases), s.Tests)
		failures := 0
		for _, c := range s.Cases {
			if c.Failure != nil {
				failures++
				require.NotEmpty(t, c.Failure.Message)
			}
		}
		require.Equal(t, failures, s.Failures)
		require.Equal(t, d.Verdict == gate.Fail, failures > 0, name)
		require.Equal(t, d.Verdict == gate.Invalid, s.Errors > 0, name)
	}
}

func TestGoBenchmark(t *testing.T) {
	several := compared(t)
	several[1].Name = "flush=1 a/b"
	var b bytes.Buffer
	require.NoError(t, GoBenchmark(&b, []compare.Named{{Name: "before", Result: several[0].Result}, {Name: several[1].Name, Result: several[1].Result}, {Name: "elsewhere", Result: several[2].Result}}))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	var units, runs int
	for _, line := range lines {
		fields := strings.Fields(line)
		if fields[0] == "Unit" {
			units++
			require.Len(t, fields, 3)
			continue
		}
		runs++
		require.Regexp(t, `^BenchmarkKbench/workload=steady/side=(before|flush=1_a_b|elsewhere)$`, fields[0])
		require.Zero(t, len(fields)%2, "name, iterations, then value and unit in turn: %s", line)
		for i := 2; i < len(fields); i += 2 {
			require.Regexp(t, `^[0-9.]+$`, fields[i])
		}
	}
	require.Equal(t, 14, runs, "invalid runs are left out")
	require.Equal(t, 11, units)
	require.Contains(t, b.String(), "Unit msg/s better=higher\n")
	require.Contains(t, b.String(), "Unit response.p99-ns better=lower\n")
}
