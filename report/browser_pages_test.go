//go:build browser

package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/gate"
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
		require.LessOrEqual(b.t, eval[float64](b, `document.documentElement.scrollWidth`), 390.0)
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
