//go:build browser

package report

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// press presses keys as a keyboard does.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		require.NoError(b.t, chromedp.Do(b.ctx, chromedp.KeyEvent(key)))
	}
}

// tabTo presses the Tab key until what has the focus is in an element.
func (b *browser) tabTo(selector string) {
	b.t.Helper()
	const most = 150
	for range most {
		b.press(kb.Tab)
		if eval[bool](b, `document.activeElement.closest('`+selector+`') !== null`) {
			return
		}
	}
	b.t.Fatalf("the Tab key does not reach %s within %d presses", selector, most)
}

func (b *browser) tip() string {
	b.t.Helper()
	return eval[string](b, `document.getElementById("tip").innerText`)
}

// focused is what the focus is on: its point and what a screen reader says of it.
type focused struct {
	Class, P, Label, Value string
	Seen                   bool // not behind anything that is closed
}

func (b *browser) focus() focused {
	b.t.Helper()
	return eval[focused](b, `(e => ({Class: e.getAttribute("class") ?? "", P: e.dataset.p ?? "", Label: e.getAttribute("aria-label") ?? "",
		Value: e.getAttribute("aria-valuetext") ?? "", Seen: e.checkVisibility()}))(document.activeElement)`)
}

// The Tab key stops once at each chart, and arrows go to every point of it.
func TestBrowserKeysOnMarks(t *testing.T) {
	f, path := sweepPage(t)
	b := openBrowser(t)
	b.show(path, 1200, "light")
	for _, chart := range []string{"svg.frontier.wide", "svg.matrix.wide", "svg.effects.wide", "svg.repeats.wide"} {
		b.tabTo(chart)
		first := b.focus()
		require.True(t, first.Seen)
		require.NotEmpty(t, b.tip(), chart)
		marks := eval[int](b, `document.activeElement.closest("svg").querySelectorAll(".spot, .cell, .dots").length`)
		next, distinct := kb.ArrowRight, marks
		if strings.Contains(first.Class, "dots") { // right is the other figure of the same point
			next, distinct = kb.ArrowDown, marks/2
		}
		seen := map[string]bool{first.P + first.Label: true}
		for range marks - 1 {
			b.press(next)
			at := b.focus()
			require.NotEmpty(t, at.Label, chart)
			seen[at.P+at.Label] = true
		}
		require.Len(t, seen, distinct, "%s: each point is reached", chart)
		b.press(kb.Home)
		require.Equal(t, first.Label, b.focus().Label, chart)
		b.press(kb.End)
		last := b.focus()
		b.press(kb.ArrowRight, kb.ArrowDown)
		require.Equal(t, last, b.focus(), "there is nothing beyond the last")
		b.press(kb.Home)
	}
	b.matrixKeys(f)
	b.repeatsKeys(f)
	b.quiet(path)
}

// matrixKeys goes through a sweep's heat map by rows and columns.
func (b *browser) matrixKeys(f fixture) {
	b.t.Helper()
	eval[chromedp.Void](b, `document.querySelector("svg.matrix.wide .cell").focus()`)
	places := eval[map[string][2]float64](b, `Object.fromEntries([...document.querySelector("svg.matrix.wide").querySelectorAll(".cell")].map(g =>
		[g.dataset.p, ["x", "y"].map(k => +g.querySelector("rect").getAttribute(k))]))`)
	from := b.focus().P
	b.press(kb.ArrowDown)
	below := b.focus().P
	require.Equal(b.t, places[from][0], places[below][0], "down stays in the column")
	require.Greater(b.t, places[below][1], places[from][1])
	b.press(kb.ArrowRight)
	beside := b.focus().P
	require.Equal(b.t, places[below][1], places[beside][1], "right stays in the row")
	require.Greater(b.t, places[beside][0], places[below][0])
	index, err := strconv.Atoi(beside)
	require.NoError(b.t, err)
	require.Contains(b.t, b.tip(), duration(middle(f.result.Points[index], responseP99)), "the figures of the point")
	require.NotZero(b.t, eval[int](b, `document.querySelectorAll(".chart .far").length`), "the others step back")
	eval[chromedp.Void](b, `document.querySelector('svg.matrix.wide .cell[data-p="12"]').focus()`)
	require.Contains(b.t, b.tip(), f.result.Points[12].Skipped, "a point that was not run says why")
	b.press(kb.Tab, kb.Tab) // the other figure's chart lies between
	require.Empty(b.t, b.tip(), "the text goes with the focus")
}

// repeatsKeys goes down the points of one figure, and across to the other figure of a point.
func (b *browser) repeatsKeys(f fixture) {
	b.t.Helper()
	eval[chromedp.Void](b, `document.querySelector("svg.repeats.wide .dots").focus()`)
	b.press(kb.ArrowDown, kb.ArrowDown)
	require.Equal(b.t, "2", b.focus().P)
	panel := `[...document.querySelectorAll("svg.repeats.wide .panel")].findIndex(p => p.contains(document.activeElement))`
	require.Equal(b.t, 0, eval[int](b, panel))
	b.press(kb.ArrowRight)
	require.Equal(b.t, "2", b.focus().P)
	require.Equal(b.t, 1, eval[int](b, panel))
	require.Contains(b.t, b.tip(), duration(middle(f.result.Points[2], responseP99)))
}

// What the legend hides, no key reaches; a chart whose stop is hidden has another.
func TestBrowserKeysPassHidden(t *testing.T) {
	_, path := sweepPage(t)
	b := openBrowser(t)
	b.show(path, 1200, "light")
	eval[chromedp.Void](b, `document.querySelector('[data-toggle="0"]').click()`)
	stops := `[...document.querySelectorAll("svg.frontier.wide .spot")].filter(e => e.tabIndex === 0).map(e => e.dataset.p)`
	require.Equal(t, []string{"1"}, eval[[]string](b, stops))
	b.tabTo("svg.frontier.wide")
	require.Equal(t, "1", b.focus().P)
	b.press(kb.Home)
	require.Equal(t, "1", b.focus().P)
	b.quiet(path)
}

// Arrows move along a timeline, and what they tell is what the table says.
func TestBrowserKeysOverTime(t *testing.T) {
	f := openStall(t)
	b, path := opened(t, f)
	rows := rowsOf(b, ".over-time .numbers")
	b.tabTo("svg.timeline.wide")
	require.True(t, strings.HasPrefix(b.tip(), rows[0][0]+" s\nmsg/s "+rows[0][1]+"\n"), b.tip())
	b.press(kb.ArrowRight)
	require.True(t, strings.HasPrefix(b.tip(), rows[1][0]+" s\n"), b.tip())
	require.Equal(t, strings.ReplaceAll(b.tip(), "\n", ", "), strings.ReplaceAll(b.focus().Value, "  ", " "), "a screen reader says the same")
	b.press(kb.Home, kb.PageUp, kb.PageUp, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight)
	require.True(t, strings.HasPrefix(b.tip(), "20 s\n"), b.tip()) // five windows of warm-up
	require.Contains(t, b.tip(), "broker 2 stopped")
	x := readAxis(t, eval[string](b, `document.querySelector("svg.timeline.wide").dataset.x`))
	require.InDelta(t, 20.5, x(eval[float64](b, `+document.querySelector("svg.timeline.wide .cursor.on").getAttribute("x1")`)), 0.05)
	b.press(kb.End, kb.ArrowRight)
	require.True(t, strings.HasPrefix(b.tip(), rows[len(rows)-1][0]+" s\n"), b.tip())
	b.press(kb.Tab)
	require.Empty(t, b.tip())
	require.Zero(t, eval[int](b, `document.querySelectorAll(".cursor.on").length`))
	b.quiet(path)
}

// Arrows move along the percentiles of a curve and from curve to curve.
func TestBrowserKeysOnPercentiles(t *testing.T) {
	f := openStall(t)
	b, path := opened(t, f)
	b.tabTo("svg.percentiles.wide")
	names := eval[[]string](b, `[...document.querySelectorAll("svg.percentiles.wide g[data-p]")].map(g => g.dataset.name)`)
	require.Contains(t, names, results.SeriesResponse)
	run := f.result.Points[0].Runs[0]
	for i, name := range names {
		for _, q := range []struct {
			name string
			ns   int64
		}{{"p50", run.Series[name].P50Ns}, {"p90", run.Series[name].P90Ns}, {"p99", run.Series[name].P99Ns}} {
			b.press(kb.Home)
			for range 20 {
				if strings.Contains(b.tip(), "\n"+q.name+" ") {
					break
				}
				b.press(kb.ArrowRight)
			}
			require.Regexp(t, "^"+name+"\n"+q.name+" ", b.tip())
			require.InEpsilon(t, float64(q.ns), parsedDuration(t, b.tip()[strings.LastIndex(b.tip(), q.name)+len(q.name):]), 0.015, "%s %s", name, q.name)
		}
		if i+1 < len(names) {
			b.press(kb.ArrowDown)
		}
	}
	b.quiet(path)
}

// parsedDuration reads "1.25 ms".
func parsedDuration(t *testing.T, text string) float64 {
	t.Helper()
	var v float64
	var unit string
	_, err := fmt.Sscan(text, &v, &unit)
	require.NoError(t, err, text)
	size := map[string]float64{"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
	require.NotZero(t, size, text)
	return v * size
}

// Arrows go through the steps and the bands of a heat map, on a wide and on a narrow screen.
func TestBrowserKeysOnHeat(t *testing.T) {
	f := openStall(t)
	path := written(t, f)
	b := openBrowser(t)
	for _, screen := range []struct {
		width int64
		chart string
	}{{1200, "svg.heat.wide"}, {390, "svg.heat.narrow"}} {
		b.show(path, screen.width, "light")
		head := eval[[]string](b, `[...document.querySelectorAll("#heat .numbers thead th")].map(e => e.textContent)`)
		rows := rowsOf(b, "#heat .numbers")
		b.tabTo(screen.chart)
		fullest := 1
		for k, text := range rows[0] {
			if k > 0 && atoi(t, text) > atoi(t, rows[0][fullest]) {
				fullest = k
			}
		}
		require.Equal(t, rows[0][0]+" s\n"+head[fullest]+" "+rows[0][fullest], b.tip(), "it begins in the fullest band")
		b.press(kb.ArrowRight, kb.ArrowUp)
		require.Equal(t, rows[1][0]+" s\n"+head[fullest+1]+" "+strconv.Itoa(atoi(t, rows[1][fullest+1])), b.tip())
		b.press(kb.Home, kb.PageUp, kb.PageUp)
		require.Contains(t, b.tip(), "broker 2 stopped")
		require.Equal(t, 1, eval[int](b, `document.querySelectorAll("`+screen.chart+` .cursor.on").length`))
	}
	b.quiet(path)
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// A hundred points are not a thousand stops.
func TestBrowserKeysOfHundredPoints(t *testing.T) {
	path := kept(t, hundredPage(t))
	b := openBrowser(t)
	b.show(path, 1200, "light")
	most := eval[int](b, `Math.max(...[...document.querySelectorAll("svg.chart")].map(svg => [svg, ...svg.querySelectorAll("*")].filter(e => e.tabIndex === 0).length))`)
	require.Equal(t, 1, most, "stops in a chart")
	require.Equal(t, 0, eval[int](b, `[...document.querySelectorAll(".cell, .dots")].filter(e => !e.getAttribute("aria-label")).length`))
	b.tabTo("svg.matrix")
	for range 9 {
		b.press(kb.ArrowRight)
	}
	require.NotEmpty(t, b.tip())
	b.press(kb.Tab)
	require.False(t, eval[bool](b, `document.activeElement.closest("svg.matrix") === document.querySelector("svg.matrix")`), "one press leaves the chart")
	b.quiet(path)
}
