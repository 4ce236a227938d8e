package report

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/kbench/kbench/results"
)

// Plots draws the charts of a result as files of their own, SVG and PNG, into a folder that is
// there: throughput-p99, percentiles, and timeline-<point> for each point. Charts without figures
// are left out. dir may be nil; see Named.
func Plots(into string, r *results.Result, dir *results.Dir) error {
	return writePlots(into, newView(Named{Dir: dir, Result: r}))
}

const (
	plotWidth  = 9 * vg.Inch
	plotHeight = 5 * vg.Inch
	// manyPoints is how many points a legend still has room for.
	manyPoints = 16
)

func writePlots(into string, v *view) error {
	if shown := plottable(v.points); len(shown) > 1 {
		if err := savePlot(into, "throughput-p99", frontierPlot(shown), plotHeight); err != nil {
			return err
		}
	}
	if traces := v.traces(); len(traces) > 0 {
		if err := savePlot(into, "percentiles", percentilePlot(traces), plotHeight); err != nil {
			return err
		}
	}
	for _, p := range v.ran() {
		for _, run := range p.drawn(false) {
			if t := p.timeline(run, mostMoments); len(t.moments) > 0 {
				if err := saveTimeline(into, "timeline-"+fileName(p.id), pointTitle(p)+verdictSuffix(run), t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// fileName makes a point's identifier safe in a file name.
func fileName(id string) string { return unsafeInName.ReplaceAllString(id, "-") }

// verdictSuffix marks the title of a plot whose figures cannot be trusted.
func verdictSuffix(run *results.Run) string {
	if run.Verdict.Valid {
		return ""
	}
	text := "  INVALID"
	for _, reason := range first(run.Verdict.Reasons, 1) {
		text += ": " + reason
	}
	return clip(text, 90)
}

// newPlot is an empty plot in the house's manner.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = printable(title), x, y
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.Title.Padding = vg.Points(8)
	p.X.Padding, p.Y.Padding = vg.Points(4), vg.Points(4)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe4}, color.Gray{0xe4}
	p.Add(grid)
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	p.Legend.TextStyle.Font.Size = vg.Points(9)
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

func (l look) line(width vg.Length) draw.LineStyle {
	style := draw.LineStyle{Color: palette[l.hue].rgba, Width: width}
	for _, n := range [][]vg.Length{nil, {6, 3}, {2, 3}, {9, 3, 2, 3}}[l.dash] {
		style.Dashes = append(style.Dashes, n)
	}
	return style
}

func (l look) glyph(hollow bool) draw.GlyphStyle {
	glyphs := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{},
		draw.BoxGlyph{}, draw.RingGlyph{}, draw.PlusGlyph{}, draw.CrossGlyph{}}
	style := draw.GlyphStyle{Color: palette[l.hue].rgba, Radius: vg.Points(4), Shape: glyphs[l.shape]}
	if hollow {
		style.Shape = draw.RingGlyph{}
	}
	return style
}

// addLine adds a line and its glyphs; values that are not numbers break it.
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

func addGlyphs(p *plot.Plot, places []place, style draw.GlyphStyle) *plotter.Scatter {
	points := make(plotter.XYs, len(places))
	for i, at := range places {
		points[i] = plotter.XY{X: at.x, Y: at.y}
	}
	s := &plotter.Scatter{XYs: points, GlyphStyle: style}
	p.Add(s)
	return s
}

func frontierPlot(shown []*point) *plot.Plot {
	var rates, tails []float64
	for _, p := range shown {
		rates, tails = append(rates, p.rate.min, p.rate.max), append(tails, p.p99.min, p.p99.max)
	}
	x, y := spanAxis(rates, 0, 1), logAxis(tails, 0, 1)
	fig := newPlot("Throughput against p99 (hollow: invalid)", "throughput, msg/s", seriesTitle(shown)+" p99")
	grey := draw.LineStyle{Color: color.Gray{0x90}, Width: vg.Points(1), Dashes: []vg.Length{3, 3}}
	addLine(fig, frontier(shown), grey)
	for _, p := range shown {
		thin := p.look().line(vg.Points(0.8))
		thin.Dashes = nil
		if p.rate.n > 1 {
			addLine(fig, []place{{p.rate.min, p.p99.median}, {p.rate.max, p.p99.median}}, thin)
			addLine(fig, []place{{p.rate.median, p.p99.min}, {p.rate.median, p.p99.max}}, thin)
		}
		s := addGlyphs(fig, []place{{p.rate.median, p.p99.median}}, p.look().glyph(p.invalid() == len(p.data.Runs)))
		if len(shown) <= manyPoints {
			fig.Legend.Add(clip(printable(pointTitle(p)), 48), s)
		}
	}
	fig.Legend.Left = true
	x.use(&fig.X, x.ticks(8, short))
	y.use(&fig.Y, y.ticks(6, shortDuration))
	return fig
}

func percentilePlot(traces []trace) *plot.Plot {
	var values []float64
	end := 2.0
	for _, t := range traces {
		for _, l := range t.levels {
			values, end = append(values, l.ns), math.Max(end, l.at)
		}
	}
	x, y := axis{lo: 0, hi: end, to: 1}, logAxis(values, 0, 1)
	fig := newPlot("Latency by percentile", "share of messages not slower", "latency")
	for _, t := range traces {
		places := make([]place, len(t.levels))
		for i, l := range t.levels {
			places[i] = place{l.at, l.ns}
		}
		line := addLine(fig, places, t.look.line(vg.Points(1.4)))
		if line != nil && len(traces) <= manyPoints {
			fig.Legend.Add(clip(printable(t.name), 48), line)
		}
	}
	fig.Legend.Left = true
	x.use(&fig.X, percentTicks(end, false))
	y.use(&fig.Y, y.ticks(6, shortDuration))
	return fig
}

// savePlot writes a plot as SVG and PNG.
func savePlot(into, name string, p *plot.Plot, height vg.Length) error {
	for _, format := range []string{"svg", "png"} {
		w, err := p.WriterTo(plotWidth, height, format)
		if err != nil {
			return fmt.Errorf("drawing %s.%s: %w", name, format, err)
		}
		if err := saveTo(filepath.Join(into, name+"."+format), w); err != nil {
			return err
		}
	}
	return nil
}

// saveTo writes one file of the folder, which is swapped in whole.
func saveTo(path string, from io.WriterTo) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = from.WriteTo(f)
	return errors.Join(err, f.Close())
}
