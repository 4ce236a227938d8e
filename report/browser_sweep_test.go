//go:build browser

package report

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// rowsOf reads a table of the page, without its head.
func rowsOf(b *browser, selector string) [][]string {
	b.t.Helper()
	return eval[[][]string](b, `[...document.querySelectorAll("`+selector+` tbody tr")].map(tr => [...tr.cells].map(td => td.textContent.trim()))`)
}

// Every point of a sweep has a cell with its figures, and stronger shades are larger figures.
func TestBrowserMatrix(t *testing.T) {
	f, path := sweepPage(t)
	b := openBrowser(t)
	b.show(path, 1200, "light")
	saved, err := f.dir.Load()
	require.NoError(t, err)
	type cell struct {
		P           int
		Text, Shade string
	}
	charts := eval[[][]cell](b, `[...document.querySelectorAll("svg.matrix.wide")].map(s => [...s.querySelectorAll(".cell")].map(g =>
		({P: +g.dataset.p, Text: g.querySelector("text")?.textContent ?? "", Shade: g.querySelector("rect").getAttribute("class")})))`)
	require.Len(t, charts, 2, "throughput and p99")
	for i, of := range []func(results.Run) float64{messageRate, responseP99} {
		require.Len(t, charts[i], len(saved.Points))
		shades := map[string][]float64{}
		for _, c := range charts[i] {
			p := saved.Points[c.P]
			if len(p.Runs) == 0 {
				require.Equal(t, "none", c.Shade)
				continue
			}
			v := middle(p, of)
			require.Equal(t, []func(float64) string{quantity, duration}[i](v), c.Text, p.ID)
			shades[c.Shade] = append(shades[c.Shade], v)
		}
		highest := 0.0
		for shade := range heatLevels {
			if within := shades["h"+strconv.Itoa(shade)]; len(within) > 0 {
				require.Greater(t, slices.Min(within), highest)
				highest = slices.Max(within)
			}
		}
	}
	require.Equal(t, 2, eval[int](b, `document.querySelectorAll("svg.matrix.wide .corner").length`), "the point that is invalid, in both")
	eval[chromedp.Void](b, `document.querySelector('svg.matrix.wide .cell[data-p="3"]').dispatchEvent(new PointerEvent("pointermove", {clientX: 5, clientY: 5}))`)
	require.Contains(t, eval[string](b, `document.getElementById("tip").innerText`), saved.Points[3].Runs[0].Verdict.Reasons[0])
	b.quiet(path)
}

// Main effects stand where their figures are, and those are the medians of the runs' own ratios, or near.
func TestBrowserEffects(t *testing.T) {
	f, path := sweepPage(t)
	b := openBrowser(t)
	b.show(path, 1200, "dark")
	rows := rowsOf(b, "#effects .numbers")
	require.NotEmpty(t, rows)
	drawn := 0
	for i, title := range []string{"msg/s", "p99"} {
		x := readAxis(t, eval[string](b, `document.querySelectorAll("svg.effects.wide")[`+strconv.Itoa(i)+`].dataset.x`))
		marks := eval[[]float64](b, `[...document.querySelectorAll("svg.effects.wide")[`+strconv.Itoa(i)+`].querySelectorAll(".mark")].map(m => +m.getAttribute("transform").match(/\(([\d.]+)/)[1])`)
		k := 0
		for _, row := range rows {
			name, key, _ := strings.Cut(row[0], ", ")
			if name != title || row[7] == "0" {
				continue
			}
			ratio, err := strconv.ParseFloat(row[3], 64)
			require.NoError(t, err)
			require.InEpsilon(t, ratio, x(marks[k]), 0.02)
			of := []func(results.Run) float64{messageRate, responseP99}[i]
			ratios := pairRatios(f.result, key, row[1], row[2], of)
			require.Equal(t, row[7], strconv.Itoa(len(ratios)), key)
			slices.Sort(ratios)
			require.GreaterOrEqual(t, ratio, ratios[0]*0.99)
			require.LessOrEqual(t, ratio, ratios[len(ratios)-1]*1.01)
			k++
			drawn++
		}
		require.Len(t, marks, k)
	}
	require.GreaterOrEqual(t, drawn, 8)
	b.quiet(path)
}

// pairRatios divides, repeat by repeat, the figures of points that differ in one setting alone.
func pairRatios(r *results.Result, key, from, to string, of func(results.Run) float64) (ratios []float64) {
	others := func(p results.Point) string {
		text := ""
		for _, k := range []string{"producer.requiredAcks", "net.maxOpenRequests", "producer.flush.frequency"} {
			if k != key {
				text += settingText(p.Settings[k]) + "/"
			}
		}
		return text
	}
	for _, a := range r.Points {
		for _, b := range r.Points {
			if settingText(a.Settings[key]) != from || settingText(b.Settings[key]) != to || others(a) != others(b) {
				continue
			}
			for i := range min(len(a.Runs), len(b.Runs)) {
				if a.Runs[i].Verdict.Valid && b.Runs[i].Verdict.Valid {
					ratios = append(ratios, of(b.Runs[i])/of(a.Runs[i]))
				}
			}
		}
	}
	return ratios
}

var eachDot = regexp.MustCompile(`M([\d.]+) [\d.]+h0`)

// Every run is a dot at its figure, hollow when it is invalid.
func TestBrowserRepeats(t *testing.T) {
	f, path := sweepPage(t)
	b := openBrowser(t)
	b.show(path, 1200, "light")
	type dots struct {
		P          int
		Run, Ring  string
		Panel, Hue string
	}
	all := eval[[]dots](b, `[...document.querySelectorAll("svg.repeats.wide g.dots")].map(g => ({P: +g.dataset.p, Panel: g.closest(".panel").dataset.x, Hue: getComputedStyle(g).color,
		Run: g.querySelector(".run")?.getAttribute("d") ?? "", Ring: g.querySelector(".ring")?.getAttribute("d") ?? ""}))`)
	require.Len(t, all, 24, "two panels of twelve points")
	for i, d := range all {
		of := []func(results.Run) float64{messageRate, responseP99}[i/12]
		x := readAxis(t, d.Panel)
		for valid, data := range map[bool]string{true: d.Run, false: d.Ring} {
			var want, got []float64
			for _, run := range f.result.Points[d.P].Runs {
				if run.Verdict.Valid == valid {
					want = append(want, of(run))
				}
			}
			for _, m := range eachDot.FindAllStringSubmatch(data, -1) {
				at, err := strconv.ParseFloat(m[1], 64)
				require.NoError(t, err)
				got = append(got, x(at))
			}
			require.Len(t, got, len(want))
			for k := range want {
				require.InEpsilon(t, want[k], got[k], 0.01)
			}
		}
		require.Equal(t, eval[string](b, `getComputedStyle(document.querySelector('svg.frontier.wide [data-p="`+strconv.Itoa(d.P)+`"] .mark')).color`), d.Hue, "one colour everywhere")
	}
	require.Len(t, rowsOf(b, "#repeats .numbers"), 36)
	b.quiet(path)
}

// The cells of a heat map are the messages of the run, and pointing at one says how many it stands for.
func TestBrowserHeat(t *testing.T) {
	f := openStall(t)
	b, path := opened(t, f)
	rows := rowsOf(b, "#heat .numbers")
	require.Len(t, rows, 60, "a step for each second")
	filled, measured := 0, int64(0)
	for _, row := range rows {
		for _, text := range row[1:] {
			if text == "" {
				continue
			}
			n, err := strconv.ParseInt(text, 10, 64)
			require.NoError(t, err)
			filled++
			measured += n
		}
	}
	require.Equal(t, f.result.Points[0].Runs[0].Series[results.SeriesResponse].Count, measured)
	drawn := eval[int](b, `[...document.querySelectorAll("svg.heat.wide .cells path")].flatMap(p => [...p.getAttribute("d").matchAll(/h(\d+)/g)]).reduce((n, m) => n + +m[1], 0)`)
	require.Equal(t, filled, drawn, "every cell with a message is drawn, and no other")
	head := eval[[]string](b, `[...document.querySelectorAll("#heat .numbers thead th")].map(e => e.textContent)`)
	band := slices.IndexFunc(rows[20][1:], func(s string) bool { return s != "" }) + 1 // of second 20, in the stall
	y := 1 - (float64(band)-0.5)/float64(len(head)-1)
	eval[chromedp.Void](b, `(s => { const r = s.getBoundingClientRect(), k = r.width / 960;
		s.dispatchEvent(new PointerEvent("pointermove", {clientX: r.left + k * (66 + (960 - 66 - 20) * 20.5 / 60), clientY: r.top + k * (34 + (360 - 34 - 46) * `+strconv.FormatFloat(y, 'f', 5, 64)+`)})); })(document.querySelector("svg.heat.wide"))`)
	require.Equal(t, "20 s\n"+head[band]+" "+rows[20][band], eval[string](b, `document.getElementById("tip").innerText`))
	require.Equal(t, 1, eval[int](b, `document.querySelectorAll("svg.heat.wide .event").length`))
	b.quiet(path)
}

// A hundred points can be read on a phone too, and no text on a shade is hard to read.
func TestBrowserHundredPoints(t *testing.T) {
	path := kept(t, hundredPage(t))
	b := openBrowser(t)
	b.show(path, 390, "dark")
	require.LessOrEqual(t, eval[float64](b, `document.documentElement.scrollWidth`), 390.0)
	require.GreaterOrEqual(t, eval[float64](b, `Math.min(...[...document.querySelectorAll(".chart text")].map(e => e.getBoundingClientRect().height).filter(h => h))`), 8.5)
	for _, scheme := range []string{"light", "dark"} {
		b.show(path, 1200, scheme)
		worst := eval[float64](b, `(() => {
			const lum = c => { const [r, g, b] = c.match(/[\d.]+/g).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
			return [...document.querySelectorAll(".cell")].filter(g => g.querySelector("text[class^=on]")).map(g => {
				const l = lum(getComputedStyle(g.querySelector("text")).fill), k = lum(getComputedStyle(g.querySelector("rect")).fill);
				return (Math.max(l, k) + 0.05) / (Math.min(l, k) + 0.05);
			}).sort((a, b) => a - b)[0];
		})()`)
		require.GreaterOrEqual(t, worst, 4.5, scheme)
	}
	b.quiet(path)
}
