package report

import (
	"fmt"
	"math"
	"strconv"

	"github.com/kbench/kbench/report/compare"
)

// ratioRow is a line of the ratio plot.
type ratioRow struct {
	name         string
	ratio        float64
	lower, upper float64 // not a number without an interval
	verdict      compare.Verdict
}

// ratioRows are the metrics of a comparison that have a ratio, point by point.
func ratioRows(a *compare.Against) []ratioRow {
	var rows []ratioRow
	for i := range a.Points {
		p := &a.Points[i]
		for _, m := range p.Metrics {
			if m.Ratio == nil {
				continue
			}
			r := ratioRow{name: m.Name, ratio: *m.Ratio, lower: math.NaN(), upper: math.NaN(), verdict: m.Verdict}
			if len(a.Points) > 1 {
				r.name = p.NewID + " " + m.Name
			}
			if m.Lower != nil && m.Upper != nil {
				r.lower, r.upper = *m.Lower, *m.Upper
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// mostRatioRows bounds the plot; the table has them all.
const mostRatioRows = 120

// ratioAxis spans all ratios and intervals and 1, by their logarithm.
func ratioAxis(rows []ratioRow, from, to float64) axis {
	lo, hi := 0.9, 1.0/0.9
	for _, r := range rows {
		for _, v := range []float64{r.ratio, r.lower, r.upper} {
			if v > 0 && usable(v) {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
		}
	}
	return axis{lo: math.Max(lo/1.02, 1e-3), hi: math.Min(hi*1.02, 1e3), from: from, to: to, log: true}
}

// ratioHues are the palette's hues by verdict: vermilion, green, grey, sky.
var ratioHues = map[compare.Verdict]look{
	compare.Worse: {hue: 1, shape: 2}, compare.Better: {hue: 2, shape: 3},
	compare.Alike: {hue: 5, shape: 0}, compare.CannotTell: {hue: 7, shape: 1},
}

// ratioChart draws new ÷ base of every metric with its interval, beside a line at 1. Without an
// interval the marker is hollow.
func ratioChart(rows []ratioRow, on paper) string {
	rows = rows[:min(len(rows), mostRatioRows)]
	if len(rows) == 0 {
		return ""
	}
	on.left = map[bool]float64{true: 128, false: 210}[on.narrow]
	on.h = ratioHeight(on, len(rows))
	x := ratioAxis(rows, on.left, on.w-on.right)
	var names []string
	for _, r := range rows {
		names = append(names, clip(r.name, map[bool]int{true: 19, false: 32}[on.narrow]))
	}
	var d drawing
	d.ratioFrame("ratios", "New divided by base, with intervals", "new ÷ base (log)", names, x, on)
	for i, r := range rows {
		d.ratio(r, x, ratioRowAt(on, i))
	}
	return d.String()
}

const ratioStep = 22.0 // height of a row of a chart of ratios

func ratioHeight(on paper, rows int) float64 { return on.top + on.bottom + ratioStep*float64(rows) }

// ratioRowAt is the middle of a row.
func ratioRowAt(on paper, i int) float64 { return on.top + ratioStep*(float64(i)+0.5) }

// ratioFrame begins a chart of ratios: its grid, the line at 1, and the names of its rows.
func (d *drawing) ratioFrame(class, about, axisTitle string, names []string, x axis, on paper) {
	y := axis{lo: 0, hi: 1, from: on.h - on.bottom, to: on.top}
	d.begin(on.class()+" "+class, about, on.w, on.h, attrs{"data-x", x.attr("")})
	ticks := ratioTicks(x, on)
	d.grid(x, y, ticks, nil)
	d.xTicks(x, y, ticks)
	d.line("target", x.at(1), y.from, x.at(1), y.to)
	d.open("g", attrs{"class", "ty"})
	for i, name := range names {
		d.text("", "", on.left-9, ratioRowAt(on, i)+4, name)
	}
	d.end("g")
	d.text("title", "end", x.to, y.from+36, axisTitle)
}

func (d *drawing) ratio(r ratioRow, x axis, at float64) {
	l := ratioHues[r.verdict]
	text := r.name + ": " + ratioText(r.ratio)
	bounded := !math.IsNaN(r.lower)
	if bounded {
		text += " (" + ratioText(r.lower) + "–" + ratioText(r.upper) + ")"
	}
	text += ", " + string(r.verdict)
	d.open("g", attrs{"class", "spot", "role", "img", "aria-label", text, "tabindex", "0", "data-tip", text})
	if bounded {
		d.line("whisker c"+strconv.Itoa(l.hue), x.at(r.lower), at, x.at(r.upper), at)
	}
	d.marker(l, x.at(r.ratio), at, 4.6, !bounded, nil)
	d.end("g")
}

// ratioTicks are round ratios: 0.5, 0.8, 1, 1.25, 2 and the like, as many as there is room for.
func ratioTicks(x axis, on paper) []tick {
	sets := [][]float64{
		{0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2}, {0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4}, {0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4},
		{0.1, 0.2, 0.5, 1, 2, 5, 10}, {0.001, 0.01, 0.1, 1, 10, 100, 1000},
	}
	widths := []float64{1.25, 1.6, 4.2, 11, math.Inf(1)}
	reach := math.Max(x.hi, 1/x.lo)
	set := sets[len(sets)-1]
	for i, w := range widths {
		if reach <= w {
			set = sets[i]
			break
		}
	}
	var ts []tick
	for i, v := range set {
		if v < x.lo || v > x.hi {
			continue
		}
		label := fmt.Sprint(v)
		if on.narrow && i%2 == 0 && v != 1 {
			label = ""
		}
		ts = append(ts, tick{v, label})
	}
	return ts
}
