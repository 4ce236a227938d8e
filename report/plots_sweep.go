package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// sweepPlots writes the charts of a sweep: heat maps by setting, main effects, every run.
func sweepPlots(into string, v *view) error {
	if m := newMatrix(v.points, wideColumns); m != nil && len(plottable(v.points)) > 1 {
		for i, f := range matrixFigures(v.points) {
			height := vg.Points(float64(len(m.cells))*matrixRow*0.75 + 110)
			if err := saveSingle(into, []string{"settings-throughput", "settings-p99"}[i], height, matrixPlot(m, f)); err != nil {
				return err
			}
		}
	}
	if panels := effectPlots(v); len(panels) > 0 {
		if err := savePanels(into, "effects", panels); err != nil {
			return err
		}
	}
	if shown := v.repeatsShown(); len(shown) > 0 {
		if err := savePanels(into, "runs", repeatsPlots(shown)); err != nil {
			return err
		}
	}
	return nil
}

// sized is a plot with its height.
type sized struct {
	*plot.Plot
	height vg.Length
}

// savePanels writes plots below each other.
func savePanels(into, name string, panels []sized) error {
	whole := vg.Length(0)
	for _, p := range panels {
		whole += p.height
	}
	return saveCanvas(into, name, whole, func(c draw.Canvas) {
		top := c.Max.Y
		for _, p := range panels {
			part := c
			part.Max.Y, part.Min.Y = top, top-p.height
			p.Draw(draw.Crop(part, vg.Points(6), -vg.Points(14), vg.Points(4), -vg.Points(6)))
			top -= p.height
		}
	})
}

func saveSingle(into, name string, height vg.Length, p *plot.Plot) error {
	return savePanels(into, name, []sized{{p, height}})
}

// addRunDots puts a dot for each run of a point behind its marker.
func addRunDots(fig *plot.Plot, p *point) {
	if p.rate.n < 2 {
		return
	}
	for _, run := range p.used {
		if s := run.Series[p.headline]; s.Count > 0 {
			rate, _ := rateOf(run)
			addGlyph(fig, place{rate, float64(s.P99Ns)}, dot(p.look(), false, 1.8))
		}
	}
}

// dot is a round marker in the colour of a look.
func dot(l look, hollow bool, radius float64) draw.GlyphStyle {
	return draw.GlyphStyle{Color: palette[l.hue].rgba, Radius: vg.Points(radius), Shape: glyph{shapes[0], hollow}}
}

// nameAxis labels the rows of a plot, the first on top.
func nameAxis(of *plot.Axis, names []string) {
	ticks := make(plot.ConstantTicks, len(names))
	for i, name := range names {
		ticks[i] = plot.Tick{Value: float64(len(names) - 1 - i), Label: legendText(name)}
	}
	of.Min, of.Max, of.Tick.Marker, of.Tick.Length = -0.6, float64(len(names))-0.4, ticks, 0
}

// rowHeight is the height of a plot of so many rows.
func rowHeight(rows int) vg.Length { return vg.Points(17*float64(rows) + 80) }

// effectPlots are the main effects, a plot for each figure; see effectsChart.
func effectPlots(v *view) []sized {
	var panels []sized
	for _, fig := range effectFigures {
		list := told(effects(v.ran(), fig))
		if len(list) == 0 {
			continue
		}
		p := newPlot("Main effects on "+fig.title+" (hollow: too few pairs for an interval)", "ratio (log), 95 % intervals", "")
		names := make([]string, len(list))
		x := effectsAxis(list, 0, 1)
		addLine(p, []place{{1, -0.6}, {1, float64(len(list)) - 0.4}}, draw.LineStyle{Color: axisGrey, Width: vg.Points(1), Dashes: []vg.Length{5, 3}})
		for i, e := range list {
			names[i] = e.title()
			at := float64(len(list) - 1 - i)
			lower, upper := e.ends()
			style := draw.LineStyle{Color: palette[e.look().hue].rgba, Width: vg.Points(1.2)}
			hollow := math.IsNaN(e.lower)
			if hollow {
				style.Dashes = []vg.Length{2, 2}
			}
			addLine(p, []place{{lower, at}, {upper, at}}, style)
			addGlyph(p, place{e.ratio, at}, dot(e.look(), hollow, 3.4))
		}
		x.use(&p.X, ratioTicks(x, widePaper))
		nameAxis(&p.Y, names)
		panels = append(panels, sized{p, rowHeight(len(list))})
	}
	return panels
}

// repeatsPlots are the runs of every point, a plot for each figure; see repeatsChart.
func repeatsPlots(points []*point) []sized {
	var panels []sized
	names := pointNames(points)
	for _, f := range repeatsFigures {
		p := newPlot("Every run: "+f.title+" (hollow: invalid)", f.title, "")
		x := f.axis(points, 0, 1)
		for i, pt := range points {
			at := float64(len(points) - 1 - i)
			if s := f.spread(pt); s.n > 1 {
				addLine(p, []place{{s.median, at - 0.35}, {s.median, at + 0.35}}, draw.LineStyle{Color: color.Black, Width: vg.Points(1.4)})
			}
			for j := range pt.data.Runs {
				run := &pt.data.Runs[j]
				if v, ok := f.of(run, pt.headline); ok {
					addGlyph(p, place{v, at}, dot(pt.look(), !run.Verdict.Valid, 2.8))
				}
			}
		}
		x.use(&p.X, x.ticks(8, f.format))
		nameAxis(&p.Y, names)
		panels = append(panels, sized{p, rowHeight(len(points))})
	}
	return panels
}

// shaded fills boxes in the units of a plot.
type shaded []shade

// shade is a filled box; top is the larger y.
type shade struct {
	box
	fill, ink color.Color
	text      string // in the middle, where there is room
	corner    bool   // a red corner, for what is invalid
}

// Plot fills the boxes.
func (s shaded) Plot(c draw.Canvas, p *plot.Plot) {
	across, up := p.Transforms(&c)
	style := p.Y.Tick.Label
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	for _, b := range s {
		left, right, top, bottom := across(b.left), across(b.right), up(b.top), up(b.bottom)
		c.FillPolygon(b.fill, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
		if b.corner {
			c.FillPolygon(palette[1].rgba, []vg.Point{{X: right, Y: top}, {X: right, Y: top - 7}, {X: right - 7, Y: top}})
		}
		if b.text != "" && style.Width(b.text) < right-left-2 {
			style.Color = b.ink
			c.FillText(style, vg.Point{X: (left + right) / 2, Y: (top + bottom) / 2}, b.text)
		}
	}
}

var _ plot.Plotter = shaded{}

// matrixPlot is a sweep as a table of shades; see matrixChart.
func matrixPlot(m *matrix, f matrixFigure) *plot.Plot {
	p := newPlot(f.title+" by setting (red corner: invalid)", "", "")
	strength := f.shadeAxis(m)
	rows, cols := len(m.cells), len(m.cells[0])
	var s shaded
	for i, row := range m.cells {
		for j, pt := range row {
			if pt == nil || f.of(pt).n == 0 {
				continue
			}
			at, median := float64(rows-1-i), f.of(pt).median
			strong := shadeAt(strength, median)
			s = append(s, shade{
				box: box{float64(j) - 0.48, at + 0.46, float64(j) + 0.48, at - 0.46}, fill: shades[strong].rgba,
				ink: map[bool]color.Color{true: color.Black, false: color.White}[strong <= heatLevels/2], text: f.format(median),
				corner: pt.invalid() == len(pt.data.Runs),
			})
		}
	}
	p.Add(s)
	names := make([]string, rows)
	for i := range names {
		names[i] = levelNames(m.down, i)
	}
	nameAxis(&p.Y, names)
	heads := make(plot.ConstantTicks, cols)
	for j := range heads {
		heads[j] = plot.Tick{Value: float64(j), Label: clip(printable(levelNames(m.across, j)), 40)}
	}
	p.X.Min, p.X.Max, p.X.Tick.Marker, p.X.Tick.Length = -0.6, float64(cols)-0.4, heads, 0
	if cols > 3 {
		p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/6, draw.XRight, draw.YCenter
	}
	return p
}

// saveHeat writes the latencies of a run over time; see heatChart.
func saveHeat(into, name, title string, h *heat) error {
	p := newPlot(title, "since the start of the measured phase", h.series)
	x, y := axis{lo: h.from, hi: h.end(), to: 1}, axis{lo: h.edges[0], hi: h.edges[len(h.edges)-1], to: 1, log: true}
	for _, e := range h.events {
		addBand(p, y, math.Max(float64(e.AtNs)/1e9, x.lo), math.Min(float64(e.AtNs+e.DurationNs)/1e9, x.hi), eventOrange)
	}
	least := heatSteps(h.most())
	var s shaded
	for i, bands := range h.counts {
		from := h.from + h.step*float64(i)
		for j, n := range bands {
			if strong := shadeOf(n, least); strong >= 0 {
				s = append(s, shade{box: box{from, h.edges[j+1], from + h.step, h.edges[j]}, fill: shades[shadeClass(strong, len(least))].rgba})
			}
		}
	}
	p.Add(s)
	for i, key := range shadeKeys(h.most()) {
		p.Legend.Add(key.Text, swatchOf{shades[shadeClass(i, len(least))].rgba})
	}
	x.use(&p.X, x.ticks(9, timeTick))
	y.use(&p.Y, y.ticks(6, shortDuration))
	texts := make([]string, len(least))
	for i, key := range shadeKeys(h.most()) {
		texts[i] = key.Text
	}
	return savePlot(into, name, p, texts)
}

// swatchOf is a filled box in a legend.
type swatchOf struct{ fill color.Color }

// Thumbnail fills the box.
func (s swatchOf) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(s.fill, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
}

var _ plot.Thumbnailer = swatchOf{}
