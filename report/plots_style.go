package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// newPlot is an empty plot in the house's manner.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = printable(title), x, y
	for _, style := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle,
		&p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant, style.Font.Size = "Sans", vg.Points(9)
	}
	p.Title.TextStyle.Font.Size, p.Title.Padding = vg.Points(12), vg.Points(8)
	p.X.Padding, p.Y.Padding = vg.Points(4), vg.Points(4)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe4}, color.Gray{0xe4}
	p.Add(grid)
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(2.5)
	return p
}

// use gives an axis of a plot the ends, the scale and the ticks of one of ours, which is safe at
// zero: gonum's own logarithmic scale panics there.
func (a axis) use(of *plot.Axis, ticks []tick) {
	of.Min, of.Max = a.lo, a.hi
	marks := make(plot.ConstantTicks, len(ticks))
	for i, t := range ticks {
		marks[i] = plot.Tick{Value: t.value, Label: t.label}
	}
	of.Tick.Marker = marks
	unit := a
	unit.from, unit.to = 0, 1
	of.Scale = unitScale{unit}
}

// unitScale is an axis as gonum wants it.
type unitScale struct{ axis }

// Normalize is the place of x between the ends, from 0 to 1.
func (s unitScale) Normalize(_, _, x float64) float64 { return s.at(x) }

// line is the line of a look.
func (l look) line(width vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: palette[l.hue].rgba, Width: width,
		Dashes: [][]vg.Length{nil, {6, 3}, {2, 3}, {9, 3, 2, 3}}[l.dash]}
}

// glyph is the marker of a look.
func (l look) glyph(hollow bool) draw.GlyphStyle {
	return draw.GlyphStyle{Color: palette[l.hue].rgba, Radius: vg.Points(4), Shape: glyph{shapes[l.shape], hollow}}
}

// glyph draws the markers of the page, so that a point has one shape everywhere.
type glyph struct {
	shape  string
	hollow bool
}

// DrawGlyph draws the marker around a place; gonum's y axis points up.
func (g glyph) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	var path vg.Path
	for i, corner := range corners(g.shape, float64(style.Radius)) {
		to := vg.Point{X: at.X + vg.Length(corner.x), Y: at.Y - vg.Length(corner.y)}
		if i == 0 {
			path.Move(to)
			continue
		}
		path.Line(to)
	}
	if len(path) == 0 {
		path.Move(vg.Point{X: at.X + style.Radius, Y: at.Y})
		path.Arc(at, style.Radius, 0, 2*math.Pi)
	}
	path.Close()
	if !g.hollow {
		c.SetColor(style.Color)
		c.Fill(path)
		return
	}
	c.SetColor(paperWhite)
	c.Fill(path)
	c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: vg.Points(1.4)})
	c.Stroke(path)
}

// addLine adds a line; values that are not numbers break it.
func addLine(p *plot.Plot, places []place, style draw.LineStyle) (thumb *plotter.Line) {
	var run plotter.XYs
	flush := func() {
		if len(run) > 0 {
			line := &plotter.Line{XYs: run, LineStyle: style}
			p.Add(line)
			thumb, run = line, nil
		}
	}
	for _, at := range places {
		if math.IsNaN(at.y) || math.IsInf(at.y, 0) {
			flush()
			continue
		}
		run = append(run, plotter.XY{X: at.x, Y: at.y})
	}
	flush()
	return thumb
}

// addGlyph adds one marker.
func addGlyph(p *plot.Plot, at place, style draw.GlyphStyle) *plotter.Scatter {
	s := &plotter.Scatter{XYs: plotter.XYs{{X: at.x, Y: at.y}}, GlyphStyle: style}
	p.Add(s)
	return s
}

// addBand shades what lies between two values of x.
func addBand(p *plot.Plot, y axis, from, to float64, fill color.Color) {
	p.Add(&plotter.Polygon{XYs: []plotter.XYs{{{X: from, Y: y.lo}, {X: to, Y: y.lo}, {X: to, Y: y.hi}, {X: from, Y: y.hi}}}, Color: fill})
}
