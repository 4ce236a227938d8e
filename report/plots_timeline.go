package report

import (
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// saveTimeline writes the panels of a timeline below each other, as SVG and PNG.
func saveTimeline(into, name, title string, t timeline) error {
	panels := t.panels(wideTimeline)
	height := vg.Length(0)
	plots := make([][]*plot.Plot, len(panels))
	for i, p := range panels {
		height += panelInches(p, i, len(panels))
		heading := ""
		if i == 0 {
			heading = title
		}
		plots[i] = []*plot.Plot{panelPlot(p, t, heading, i == len(panels)-1)}
	}
	return saveCanvas(into, name, height, func(c draw.Canvas) { drawPanels(c, panels, plots) })
}

// panelInches is the height of a panel on paper; the first has the title, the last the time axis.
func panelInches(p panel, i, n int) vg.Length {
	height := vg.Length(p.height)/80*vg.Inch + vg.Inch/5
	if i == 0 || i == n-1 {
		height += vg.Inch / 3
	}
	return height
}

// drawPanels lays the panels out with their time axes in line, and the legends to the right.
func drawPanels(on draw.Canvas, panels []panel, plots [][]*plot.Plot) {
	const aside = 80 // points for the legends
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadRight: vg.Points(10 + aside), PadLeft: vg.Points(6), PadTop: vg.Points(4)}
	aligned := plot.Align(plots, tiles, on)
	top := on.Max.Y
	for i, row := range plots {
		c := aligned[i][0]
		height := panelInches(panels[i], i, len(panels))
		c.Max.Y, c.Min.Y = top-vg.Points(6), top-height
		top -= height
		legend := row[0].Legend
		row[0].Legend = plot.NewLegend()
		row[0].Draw(c)
		row[0].Legend = legend
		beside := c
		beside.Min.X, beside.Max.X = c.Max.X+vg.Points(8), on.Max.X
		if row[0].Title.Text != "" {
			beside.Max.Y -= vg.Points(24)
		}
		legend.Draw(beside)
	}
}

func panelPlot(p panel, t timeline, title string, last bool) *plot.Plot {
	xTitle := ""
	if last {
		xTitle = "since the start of the measured phase"
	}
	fig := newPlot(title, xTitle, strings.NewReplacer("consumer lag, messages", "lag", "pacer lateness, largest", "lateness", "generator's memory, MiB", "memory, MiB").Replace(p.title))
	end := t.moments[len(t.moments)-1]
	x := axis{lo: math.Min(0, t.moments[0].at), hi: math.Max(end.at+end.length, 1e-3), to: 1}
	values := []float64{p.level}
	for _, l := range p.lines {
		for _, m := range t.moments {
			values = append(values, l.of(m))
		}
	}
	scale := linearAxis
	if p.log {
		scale = logAxis
	}
	y := scale(values, 0, 1)
	addMarks(fig, t, x, y)
	for _, l := range p.lines {
		places := make([]place, len(t.moments))
		for i, m := range t.moments {
			places[i] = place{m.at + m.length/2, l.of(m)}
		}
		if line := addLine(fig, places, lineStyle(l, t.look)); line != nil && l.key != "" {
			fig.Legend.Add(l.key, line)
		}
	}
	if p.level > 0 {
		target := draw.LineStyle{Color: axisGrey, Width: vg.Points(1), Dashes: []vg.Length{5, 3}}
		fig.Legend.Add("asked for", addLine(fig, []place{{x.lo, p.level}, {x.hi, p.level}}, target))
	}
	xs := x.ticks(9, timeTick)
	for i := range xs {
		if !last {
			xs[i].label = ""
		}
	}
	x.use(&fig.X, xs)
	y.use(&fig.Y, y.ticks(ticksUp(p.height*1.4), p.format))
	return fig
}

// addMarks shades the warm-up and the events.
func addMarks(fig *plot.Plot, t timeline, x, y axis) {
	if x.lo < 0 {
		addBand(fig, y, x.lo, 0, warmUpGrey)
	}
	for _, e := range t.events {
		from, to := float64(e.AtNs)/1e9, float64(e.AtNs+e.DurationNs)/1e9
		if to >= x.lo && from <= x.hi {
			addBand(fig, y, math.Max(from, x.lo), math.Min(math.Max(to, from+(x.hi-x.lo)/400), x.hi), eventOrange)
		}
	}
}

// lineStyle is the style of a panel's line as the page has it.
func lineStyle(l panelLine, of look) draw.LineStyle {
	style := draw.LineStyle{Color: palette[of.hue].rgba, Width: vg.Points(1.2)}
	if l.hue > 0 {
		style.Color = palette[l.hue-1].rgba
	}
	if l.class == "line bold" {
		style.Width = vg.Points(2)
	}
	if l.dash != "" {
		style.Dashes = []vg.Length{2, 3}
	}
	return style
}
