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
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/kbench/kbench/results"
)

// Plots draws the charts of a result as files of their own, SVG and PNG, into a folder that is
// there: throughput-p99, settings-throughput and settings-p99, effects, runs, capacity, percentiles, and
// timeline-<point> and heat-<point> for each point. Charts without figures are left out. dir may be nil; see Named.
func Plots(into string, r *results.Result, dir *results.Dir) error {
	return writePlots(into, newView(Named{Dir: dir, Result: r}))
}

const (
	plotWidth  = 10 * vg.Inch
	plotHeight = 5 * vg.Inch
	// manyPoints is how many points a legend still has room for.
	manyPoints = 20
)

func writePlots(into string, v *view) error {
	if shown := plottable(v.points); len(shown) > 1 {
		if err := savePlot(into, "throughput-p99", frontierPlot(shown), legendOf(pointNames(shown))); err != nil {
			return err
		}
	}
	if shown := drawable(v.searches()); len(shown) > 0 {
		if err := savePlot(into, "capacity", capacityPlot(shown), legendOf(searchNames(shown))); err != nil {
			return err
		}
	}
	if err := sweepPlots(into, v); err != nil {
		return err
	}
	if traces := v.traces(); len(traces) > 0 {
		if err := savePlot(into, "percentiles", percentilePlot(traces, v.plotSuffix()), legendOf(traceNames(traces))); err != nil {
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
			if h := newHeat(p.intervals(run), mostHeatSteps, mostHeatBands); h != nil {
				h.series, h.events = p.headline, run.Events
				if err := saveHeat(into, "heat-"+fileName(p.id), pointTitle(p)+verdictSuffix(run), h); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// plotSuffix marks the title of the only point's plots when its figures cannot be trusted.
func (v *view) plotSuffix() string {
	if p := v.single(); p != nil && p.invalid() > 0 {
		for i := range p.data.Runs {
			if !p.data.Runs[i].Verdict.Valid {
				return verdictSuffix(&p.data.Runs[i])
			}
		}
	}
	return ""
}

// legendText is a name as short as a legend has room for.
func legendText(name string) string { return clip(printable(name), 56) }

// legendOf are the texts of a legend; none when it would be longer than the plot is high.
func legendOf(names []string) []string {
	if len(names) > manyPoints {
		return nil
	}
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = legendText(name)
	}
	return texts
}

// markedTitle is a point's title with its verdict, when that is not "valid".
func markedTitle(p *point) string {
	if p.invalid() == 0 {
		return pointTitle(p)
	}
	return p.id + " (" + p.verdict() + ") " + p.label
}

func pointNames(points []*point) (names []string) {
	for _, p := range points {
		names = append(names, markedTitle(p))
	}
	return names
}

func traceNames(traces []trace) (names []string) {
	for _, t := range traces {
		names = append(names, t.name)
	}
	return names
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
		addRunDots(fig, p)
		s := addGlyph(fig, place{p.rate.median, p.p99.median}, p.look().glyph(p.invalid() == len(p.data.Runs)))
		if len(shown) <= manyPoints {
			fig.Legend.Add(legendText(markedTitle(p)), s)
		}
	}
	x.use(&fig.X, x.ticks(8, short))
	y.use(&fig.Y, y.ticks(6, shortDuration))
	return fig
}

func percentilePlot(traces []trace, suffix string) *plot.Plot {
	var values []float64
	end := 2.0
	for _, t := range traces {
		for _, l := range t.levels {
			values, end = append(values, l.ns), math.Max(end, l.at)
		}
	}
	x, y := axis{lo: 0, hi: end, to: 1}, logAxis(values, 0, 1)
	fig := newPlot("Latency by percentile"+suffix, "share of messages not slower", "latency")
	for _, t := range traces {
		places := make([]place, len(t.levels))
		for i, l := range t.levels {
			places[i] = place{l.at, l.ns}
		}
		width := vg.Points(1.4)
		if t.leads {
			width = vg.Points(3.6)
		}
		line := addLine(fig, places, t.look.line(width))
		if line != nil && len(traces) <= manyPoints {
			fig.Legend.Add(legendText(t.name), line)
		}
	}
	x.use(&fig.X, percentTicks(end, false))
	y.use(&fig.Y, y.ticks(6, shortDuration))
	return fig
}

// savePlot writes a plot as SVG and PNG, with its legend to the right of it.
func savePlot(into, name string, p *plot.Plot, legend []string) error {
	room := vg.Length(0)
	for _, text := range legend {
		room = max(room, p.Legend.TextStyle.Width(text)+vg.Points(38))
	}
	aside := p.Legend
	p.Legend = plot.NewLegend()
	return saveCanvas(into, name, plotHeight, func(c draw.Canvas) {
		p.Draw(draw.Crop(c, vg.Points(6), -room-vg.Points(14), vg.Points(4), -vg.Points(6)))
		if len(legend) > 0 {
			aside.Draw(draw.Crop(c, c.Max.X-c.Min.X-room-vg.Points(4), 0, 0, -vg.Points(30)))
		}
	})
}

// saveCanvas draws on white paper once for each format.
func saveCanvas(into, name string, height vg.Length, paint func(draw.Canvas)) error {
	for _, format := range []string{"svg", "png"} {
		canvas, err := draw.NewFormattedCanvas(plotWidth, height, format)
		if err != nil {
			return fmt.Errorf("drawing %s.%s: %w", name, format, err)
		}
		c := draw.New(canvas)
		c.SetColor(paperWhite)
		c.Fill(c.Rectangle.Path())
		paint(c)
		if err := saveTo(filepath.Join(into, name+"."+format), canvas); err != nil {
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
