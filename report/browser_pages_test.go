//go:build browser

package report

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/gate"
	"github.com/kbench/kbench/results"
)

// kept writes a page into a file of its own.
func kept(t *testing.T, page []byte) string {
	path := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(path, page, 0o644))
	return path
}

// fits says that a page is quiet, and runs out of no screen in either scheme.
func (b *browser) fits(path string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.show(path, 390, scheme)
		eval[chromedp.Void](b, `document.querySelectorAll("details").forEach(e => e.open = true)`)
		require.LessOrEqual(b.t, eval[float64](b, `document.documentElement.scrollWidth`), 390.0)
		require.GreaterOrEqual(b.t, eval[float64](b, luminance), 4.5, "contrast in the %s scheme", scheme)
	}
	b.show(path, 1200, "light")
	b.quiet(path)
}

// The markers of a comparison stand at the ratios that were worked out.
func TestBrowserCompare(t *testing.T) {
	several := compared(t)
	c := comparisonOf(several)
	var page bytes.Buffer
	require.NoError(t, CompareHTML(&page, c, several))
	path := kept(t, page.Bytes())
	b := openBrowser(t)
	b.fits(path)
	b.keep("compare")
	for i := range c.News {
		chart := `document.querySelectorAll("svg.ratios.wide")[` + string(rune('0'+i)) + `]`
		x := readAxis(t, eval[string](b, chart+`.dataset.x`))
		marks := eval[[]float64](b, `[...`+chart+`.querySelectorAll(".mark")].map(m => +m.getAttribute("transform").match(/\(([\d.]+)/)[1])`)
		rows := ratioRows(&c.News[i])
		require.Len(t, marks, len(rows))
		for k, row := range rows {
			require.InEpsilon(t, row.ratio, x(marks[k]), 0.01, row.name)
		}
	}
	require.Contains(t, eval[string](b, `document.body.innerText`), "host: load-1, then load-2")
}

// The markers of a trend stand at the medians of the results, hollow where the gate failed.
func TestBrowserTrend(t *testing.T) {
	trend := gate.Trend{Name: "response.p50", Unit: "ns", Changes: []int{6}}
	for i := range 12 {
		v := 2e6 + float64(i/6)*1e6
		trend.Values = append(trend.Values, gate.TrendValue{Result: "night", At: fixtureStart.Add(time.Duration(i) * 24 * time.Hour), Median: v, Min: v * 0.9, Max: v * 1.1, Failed: i == 6})
	}
	f := acksNone(t)
	var page bytes.Buffer
	require.NoError(t, TrendHTML(&page, &gate.Decision{Kind: gate.KindBaseline, Verdict: gate.Fail, Workload: "steady", Trends: []gate.Trend{trend}}, Named{Name: "new", Dir: f.dir, Result: f.result}))
	path := kept(t, page.Bytes())
	b := openBrowser(t)
	b.fits(path)
	b.keep("trend")
	type mark struct {
		Y      float64
		Hollow bool
	}
	y := readAxis(t, eval[string](b, `document.querySelector("svg.trend.wide").dataset.y`))
	marks := eval[[]mark](b, `[...document.querySelectorAll("svg.trend.wide .mark")].map(m => ({Y: +m.getAttribute("transform").match(/ ([\d.]+)\)/)[1], Hollow: m.classList.contains("hollow")}))`)
	require.Len(t, marks, len(trend.Values))
	for i, v := range trend.Values {
		require.InEpsilon(t, v.Median, y(marks[i].Y), 0.01)
		require.Equal(t, v.Failed, marks[i].Hollow)
	}
	require.Len(t, rowsOf(b, ".numbers"), len(trend.Values))
}

// The markers of a search stand at the figures of its probes, filled where they held.
func TestBrowserCapacity(t *testing.T) {
	f := capacityResult(t)
	path := written(t, f)
	b := openBrowser(t)
	b.fits(path)
	b.keep("capacity")
	saved, err := f.dir.Load()
	require.NoError(t, err)
	x := readAxis(t, eval[string](b, `document.querySelector("svg.capacity.wide").dataset.x`))
	y := readAxis(t, eval[string](b, `document.querySelector("svg.capacity.wide").dataset.y`))
	type mark struct {
		X, Y, Size float64
		Hollow     bool
		Tip        string
	}
	marks := eval[[]mark](b, `[...document.querySelectorAll("svg.capacity.wide .spot")].map(g => {
		const m = g.querySelector(".mark"), at = m.getAttribute("transform").match(/translate\(([\d.]+) ([\d.]+)\)/);
		return {X: +at[1], Y: +at[2], Size: m.getBBox().width, Hollow: m.classList.contains("hollow"), Tip: g.dataset.tip};
	})`)
	probes := slices.Clone(saved.Capacity[0].Probes)
	require.Len(t, marks, len(probes))
	slices.SortStableFunc(probes, func(a, b results.Probe) int { return cmp.Compare(a.AskedPerSecond, b.AskedPerSecond) })
	largest := 0
	for i, m := range marks {
		require.InEpsilon(t, messageRate(probes[i].Run), x(m.X), 0.005)
		require.InEpsilon(t, responseP99(probes[i].Run), y(m.Y), 0.01)
		require.Equal(t, probes[i].Held, !m.Hollow)
		for _, reason := range probes[i].Reasons {
			require.Contains(t, m.Tip, reason)
		}
		if m.Size > marks[largest].Size {
			largest = i
		}
	}
	require.Equal(t, results.StageHold, probes[largest].Stage, "the large one is the hold run")
	require.Contains(t, eval[string](b, `document.querySelector("#capacity .lead").innerText`), quantity(saved.Capacity[0].MessagesPerSecond))
	require.Len(t, rowsOf(b, ".probes"), len(probes))
	b.tabTo("svg.capacity.wide")
	b.press(kb.End)
	require.Contains(t, b.tip(), probes[len(probes)-1].Reasons[0])
	b.quiet(path)
}

// A report over several results has the points of all, each at its own figures and under its own name.
func TestBrowserSeveral(t *testing.T) {
	swept, again := sweep(t, 1), sweep(t, 3)
	out := filepath.Join(t.TempDir(), "both")
	require.NoError(t, os.MkdirAll(out, 0o755))
	path := filepath.Join(out, HTMLFile)
	v := newView(Named{"before", swept.dir, swept.result}, Named{"after", again.dir, again.result})
	require.NoError(t, replaceFile(path, func(w io.Writer) error { return writeHTML(w, v) }))
	b := openBrowser(t)
	b.fits(path)
	b.keep("several")
	x := readAxis(t, eval[string](b, `document.querySelector("svg.frontier.wide").dataset.x`))
	y := readAxis(t, eval[string](b, `document.querySelector("svg.frontier.wide").dataset.y`))
	spots := eval[[]spot](b, readSpots)
	require.Len(t, spots, 24)
	for _, s := range spots {
		f, name, at := swept, "before", s.P
		if n := len(swept.result.Points); at >= n {
			f, name, at = again, "after", at-n
		}
		p := f.result.Points[at]
		require.Contains(t, s.Label, name+"/"+p.ID+",")
		require.InEpsilon(t, middle(p, messageRate), x(s.X), 0.005, s.Label)
		require.InEpsilon(t, middle(p, responseP99), y(s.Y), 0.01, s.Label)
		row := eval[string](b, `document.querySelector('tbody[data-p="`+strconv.Itoa(s.P)+`"] tr').innerText`)
		require.Contains(t, row, duration(middle(p, responseP99)), s.Label)
	}
	require.Equal(t, 2, eval[int](b, `document.querySelectorAll(".source").length`), "the configuration of both")
	require.Equal(t, 12+36, eval[int](b, `document.querySelectorAll("svg.timeline").length`))
}
