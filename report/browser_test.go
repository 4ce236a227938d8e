//go:build browser

package report

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	logged "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// browser is a page open in Chromium, with what it said and asked for.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	said     []string // errors and warnings on the console
	requests []string
}

// chromium is where the browser is. Without one the test fails: under the tag it was asked for.
func chromium(t *testing.T) string {
	path := os.Getenv("KBENCH_CHROMIUM")
	if path == "" {
		path = "/usr/bin/chromium"
	}
	_, err := os.Stat(path)
	require.NoError(t, err, "the browser tests need Chromium; install it or set KBENCH_CHROMIUM")
	return path
}

// openBrowser starts Chromium with a profile of its own; it ends with the test.
func openBrowser(t *testing.T) *browser {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	bounded, cancelBound := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancelBound)
	allocator, cancelAllocator := chromedp.NewExecAllocator(bounded, options...)
	t.Cleanup(cancelAllocator)
	ctx, _ := chromedp.NewContext(allocator)
	b := &browser{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	t.Cleanup(func() { require.NoError(t, ignoreClosed(chromedp.Cancel(ctx))) }) // waits for the process
	_, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	require.NoError(t, err)
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	return b
}

// opened is a browser that shows the page of a fixture, on a wide and light screen.
func opened(t *testing.T, f fixture) (b *browser, path string) {
	t.Helper()
	b, path = openBrowser(t), written(t, f)
	b.show(path, 1200, "light")
	return b, path
}

// openedWithoutScript is opened where scripts do not run.
func openedWithoutScript(t *testing.T, f fixture) (b *browser, path string) {
	t.Helper()
	b, path = openBrowser(t), written(t, f)
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	b.show(path, 1200, "light")
	return b, path
}

func ignoreClosed(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.said = append(b.said, string(e.Type))
	case *logged.EventEntryAdded:
		b.said = append(b.said, string(e.Entry.Level)+": "+e.Entry.Text)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// show opens a page of a given size in a colour scheme.
func (b *browser) show(path string, width int64, scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	require.NoError(b.t, err)
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate("file://"+path)))
}

// screenshots is the variable that names a folder for pictures of the pages.
const screenshots = "KBENCH_SCREENSHOTS"

// keep puts a picture of the whole page into the folder named by KBENCH_SCREENSHOTS, if it is set.
func (b *browser) keep(name string) {
	b.t.Helper()
	folder := os.Getenv(screenshots)
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}

// quiet says that nothing was said on the console and nothing was asked for but the page.
func (b *browser) quiet(path string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.said, "console")
	for _, url := range b.requests {
		require.Equal(b.t, "file://"+path, url, "a request that leaves the page")
	}
}

// eval runs a script in the page.
func eval[T any](b *browser, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	require.NoError(b.t, err, script)
	return v
}

// written writes the page of a fixture, without the plots beside it, and gives its path.
func written(t *testing.T, f fixture) string {
	t.Helper()
	require.NoError(t, f.dir.WriteFile(HTMLFile, func(w io.Writer) error { return HTML(w, f.result, f.dir) }))
	return filepath.Join(f.dir.Path(), HTMLFile)
}

var pageOfSweep []byte

// sweepPage is the page of a sweep of three repeats, which is made once.
func sweepPage(t *testing.T) (fixture, string) {
	t.Helper()
	f := sweep(t, 3)
	if pageOfSweep == nil {
		var b bytes.Buffer
		require.NoError(t, HTML(&b, f.result, f.dir))
		pageOfSweep = b.Bytes()
	}
	return f, kept(t, pageOfSweep)
}

// drawn is an axis read back from a picture.
func readAxis(t *testing.T, text string) func(float64) float64 {
	parts := strings.Fields(text)
	require.Len(t, parts, 5)
	var n [4]float64
	for i := range n {
		v, err := strconv.ParseFloat(parts[i+1], 64)
		require.NoError(t, err)
		n[i] = v
	}
	return func(at float64) float64 {
		share := (at - n[2]) / (n[3] - n[2])
		if parts[0] == "log" {
			return n[0] * math.Pow(n[1]/n[0], share)
		}
		return n[0] + (n[1]-n[0])*share
	}
}

// middle is the median of a figure over the valid runs of a point, or over all when none is valid,
// worked out from result.json without the package's own arithmetic.
func middle(p results.Point, of func(results.Run) float64) float64 {
	var valid, all []float64
	for _, r := range p.Runs {
		all = append(all, of(r))
		if r.Verdict.Valid {
			valid = append(valid, of(r))
		}
	}
	if len(valid) == 0 {
		valid = all
	}
	slices.Sort(valid)
	return (valid[(len(valid)-1)/2] + valid[len(valid)/2]) / 2
}

func responseP99(r results.Run) float64 { return float64(r.Series[results.SeriesResponse].P99Ns) }
func messageRate(r results.Run) float64 { return r.Rates.MessagesPerSecond }

type spot struct {
	P     int
	X, Y  float64
	Label string
}

const readSpots = `[...document.querySelectorAll("svg.frontier.wide g.spot")].map(g => {
	const m = g.querySelector(".mark").getAttribute("transform").match(/translate\(([\d.]+) ([\d.]+)\)/);
	return {P: +g.dataset.p, X: +m[1], Y: +m[2], Label: g.getAttribute("aria-label")};
})`

func TestBrowserSweep(t *testing.T) {
	f, path := sweepPage(t)
	saved, err := f.dir.Load()
	require.NoError(t, err)
	b := openBrowser(t)
	b.show(path, 1200, "light")
	b.keep("sweep-light")
	x := readAxis(t, eval[string](b, `document.querySelector("svg.frontier.wide").dataset.x`))
	y := readAxis(t, eval[string](b, `document.querySelector("svg.frontier.wide").dataset.y`))
	spots := eval[[]spot](b, readSpots)
	require.Len(t, spots, 12, "every point that ran is drawn, the skipped one is not")
	for _, s := range spots {
		p := saved.Points[s.P]
		require.InEpsilon(t, middle(p, messageRate), x(s.X), 0.005, p.ID)
		require.InEpsilon(t, middle(p, responseP99), y(s.Y), 0.01, p.ID)
		row := eval[string](b, `document.querySelector('tbody[data-p="`+strconv.Itoa(s.P)+`"] tr').innerText`)
		require.Contains(t, row, duration(middle(p, responseP99)), p.ID)
		require.Contains(t, row, quantity(middle(p, messageRate)), p.ID)
	}
	text := eval[string](b, `document.body.innerText`)
	for _, reason := range saved.Points[3].Runs[0].Verdict.Reasons {
		require.GreaterOrEqual(t, strings.Count(text, reason), 3, "in the table and beside both plots")
	}
	require.Contains(t, text, saved.Points[12].Skipped)
	b.quiet(path)
}

func TestBrowserInteraction(t *testing.T) {
	_, path := sweepPage(t)
	b := openBrowser(t)
	b.show(path, 1200, "light")
	order := `[...document.querySelectorAll("table.sortable tbody")].map(e => +e.dataset.p)`
	p99 := `[...document.querySelectorAll("table.sortable thead button")].find(e => e.textContent === "p99")`
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, eval[[]int](b, order))
	eval[chromedp.Void](b, p99+`.click()`)
	up := eval[[]int](b, order)
	require.Equal(t, 2, up[0], "the fastest first")
	require.Equal(t, 12, up[12], "a point without figures last")
	eval[chromedp.Void](b, p99+`.click()`)
	require.Equal(t, []int{9, 11}, eval[[]int](b, order)[:2], "the slowest first")

	eval[chromedp.Void](b, `document.querySelector('[data-toggle="3"]').click()`)
	require.Equal(t, 0, eval[int](b, `[...document.querySelectorAll('.chart [data-p="3"]')].filter(e => e.getBoundingClientRect().width).length`), "hidden in every chart")
	eval[chromedp.Void](b, `document.querySelector('[data-toggle="3"]').click()`)
	require.NotEqual(t, 0, eval[int](b, `[...document.querySelectorAll('.chart [data-p="3"]')].filter(e => e.getBoundingClientRect().width).length`))

	eval[chromedp.Void](b, `document.querySelector('svg.frontier.wide g.spot[data-p="3"]').focus()`)
	require.Contains(t, eval[string](b, `document.getElementById("tip").innerText`), "INVALID", "the keyboard reaches points, and the reason comes along")
	require.NotZero(t, eval[int](b, `document.querySelectorAll(".chart .far").length`), "the others step back")
	b.quiet(path)
}

type markAt struct {
	Series string
	Q      float64
	Y      float64
}

func TestBrowserSingle(t *testing.T) {
	f := openStall(t)
	b, path := opened(t, f)
	b.keep("open-light")
	run := f.result.Points[0].Runs[0]
	y := readAxis(t, eval[string](b, `document.querySelector("svg.percentiles.wide").dataset.y`))
	marks := eval[[]markAt](b, `[...document.querySelectorAll("svg.percentiles.wide g[data-p]")].flatMap(g => [...g.querySelectorAll(".mark")].map(m =>
		({Series: g.dataset.name, Q: +m.dataset.q, Y: +m.getAttribute("transform").match(/ ([\d.]+)\)/)[1]})))`)
	checked := 0
	for _, m := range marks {
		want := map[float64]int64{1: run.Series[m.Series].P90Ns, 2: run.Series[m.Series].P99Ns, 3: run.Series[m.Series].P999Ns}[m.Q]
		if want > 0 {
			checked++
			require.InEpsilon(t, float64(want), y(m.Y), 0.015, "%s at %v nines", m.Series, m.Q)
		}
	}
	require.GreaterOrEqual(t, checked, 16)
	text := eval[string](b, `document.body.innerText`)
	for _, want := range []string{count(run.Counts.Attempted), count(run.Counts.Acked), duration(responseP99(run)), "response.p99<20ms BROKEN", "broker 2 stopped"} {
		require.Contains(t, text, want)
	}
	b.point("svg.timeline.wide", 0.392) // second 20.5, in the stall
	tip := eval[string](b, `document.getElementById("tip").innerText`)
	require.Regexp(t, `^20 s\nmsg/s`, tip)
	require.Contains(t, tip, "broker 2 stopped")
	b.keep("open-pointed")
	b.quiet(path)
}

// point moves the pointer over a picture, a share of its width from the left and in its middle.
func (b *browser) point(selector string, across float64) {
	b.t.Helper()
	// The page hears of the scrolling with its next frame, and closes then what a pointer opened.
	_, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.querySelector("`+selector+`").scrollIntoView({block: "center"});
		new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	box := eval[[]float64](b, `(r => [r.left, r.top, r.width, r.height])(document.querySelector("`+selector+`").getBoundingClientRect())`)
	left, width := 66.0/960*box[2], (960.0-66-20)/960*box[2] // the plot inside the picture
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.MouseEvent("mouseMoved", box[0]+left+across*width, box[1]+box[3]/2)))
}

// luminance works out the contrast of two colours as WCAG 2 does.
const luminance = `(() => {
	const lum = c => { const [r, g, b] = c.match(/[\d.]+/g).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = lum(getComputedStyle(document.body).backgroundColor);
	return [...document.querySelectorAll("h1, .soft, .note, td, dd, .chart .tx text, .bad, .good, .mild, .legend button")].map(e => {
		const s = getComputedStyle(e), l = lum(e.closest(".chart") ? s.fill : s.color);
		return (Math.max(l, ground) + 0.05) / (Math.min(l, ground) + 0.05);
	}).sort((a, b) => a - b)[0];
})()`

func TestBrowserSchemesAndPhone(t *testing.T) {
	for name, f := range map[string]fixture{"sweep": sweep(t, 3), "open": openStall(t), "invalid": invalidRun(t), "closed": closedLoop(t), "backlog": backlogRun(t)} {
		t.Run(name, func(t *testing.T) {
			path := written(t, f)
			b := openBrowser(t)
			grounds := map[string]string{}
			for _, scheme := range []string{"light", "dark"} {
				b.show(path, 1200, scheme)
				b.keep(name + "-" + scheme)
				grounds[scheme] = eval[string](b, `getComputedStyle(document.body).backgroundColor`)
				require.GreaterOrEqual(t, eval[float64](b, luminance), 4.5, "contrast in the %s scheme", scheme)
			}
			require.NotEqual(t, grounds["light"], grounds["dark"])
			b.show(path, 390, "light")
			eval[chromedp.Void](b, `document.querySelectorAll("details").forEach(e => e.open = true)`)
			require.LessOrEqual(t, eval[float64](b, `document.documentElement.scrollWidth`), 390.0, "nothing runs out of a phone's screen")
			require.Zero(t, eval[int](b, `[...document.querySelectorAll(".wide")].filter(e => e.getBoundingClientRect().width).length`))
			require.GreaterOrEqual(t, eval[float64](b, `Math.min(...[...document.querySelectorAll(".chart text")].map(e => e.getBoundingClientRect().height).filter(h => h))`), 9.0, "text in charts is large enough to read")
			if os.Getenv(screenshots) != "" { // with the details closed again
				b.show(path, 390, "light")
				b.keep(name + "-phone")
			}
			b.quiet(path)
		})
	}
}

func TestBrowserWithoutScript(t *testing.T) {
	b, _ := openedWithoutScript(t, sweep(t, 1))
	require.False(t, eval[bool](b, `document.documentElement.classList.contains("js")`))
	require.NotZero(t, eval[float64](b, `document.querySelector("svg.frontier.wide").getBoundingClientRect().height`))
	require.NotZero(t, eval[float64](b, `document.querySelector("svg.percentiles.wide .line").getBoundingClientRect().width`))
}

// TestBrowserForeignText opens a report whose every text tries to be markup.
func TestBrowserForeignText(t *testing.T) {
	f := openStall(t)
	b, path := opened(t, hostile(f))
	require.Equal(t, "undefined", eval[string](b, `typeof window.caught`))
	require.Zero(t, eval[int](b, `document.querySelectorAll("img, iframe, a, link, object").length`))
	require.Equal(t, 1, eval[int](b, `document.querySelectorAll("script").length`))
	require.Contains(t, eval[string](b, `document.querySelector("h1").innerText`), hostileText)
	b.quiet(path)
}
