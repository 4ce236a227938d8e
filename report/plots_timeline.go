package report

import (
	"fmt"
	"math"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// saveTimeline writes the panels of a timeline below each other, as SVG and PNG.
func saveTimeline(into, name, title string, t timeline) error {
	panels := t.panels(wideTimeline)
	height := vg.Length(0)
	for _, p := range panels {
		height += panelInches(p)
	}
	plots := make([][]*plot.Plot, len(panels))
	for i, p := range panels {
		heading := ""
		if i == 0 {
			heading = title
		}
		plots[i] = []*plot.Plot{panelPlot(p, t, heading, i == len(panels)-1)}
	}
	for _, format := range []string{"svg", "png"} {
		canvas, err := draw.NewFormattedCanvas(plotWidth, height, format)
		if err != nil {
			return fmt.Errorf("drawing %s.%s: %w", name, format, err)
		}
		drawPanels(draw.New(canvas), panels, plots)
		if err := saveTo(filepath.Join(into, name+"."+format), canvas); err != nil {
			return err
		}
	}
	return nil
}

// panelInches is the height of a panel on paper.
func panelInches(p panel) vg.Length {
	return vg.Length(p.height)/100*vg.Inch + vg.Inch/2
}

// drawPanels lays the panels out with their time axes in line.
func drawPanels(on draw.Canvas, panels []panel, plots [][]*plot.Plot) {
	on.SetColor(paperWhite)
	on.Fill(on.Rectangle.Path())
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadRight: vg.Points(10), PadLeft: vg.Points(4), PadTop: vg.Points(4)}
	aligned := plot.Align(plots, tiles, on)
	top := on.Max.Y
	for i, row := range plots {
		c := aligned[i][0]
		share := panelInches(panels[i])
		c.Max.Y, c.Min.Y = top-vg.Points(4), top-share
		top -= share
		row[0].Draw(c)
	}
}

func panelPlot(p panel, t timeline, title string, last bool) *plot.Plot {
	xTitle := ""
	if last {
		xTitle = "since the start of the measured phase"
	}
	fig := newPlot(title, xTitle, p.title)
	fig.Y.Label.TextStyle.Font.Size = vg.Points(9)
	end := t.moments[len(t.moments)-1]
	x := axis{lo: math.Min(0, t.moments[0].at), hi: math.Max(end.at+end.length, 1e-3), to: 1}
	values := []float64{p.level}
	for _, l := range p.lines {
		var places []place
		for _, m := range t.moments {
			values = append(values, l.of(m))
			places = append(places, place{m.at + m.length/2, l.of(m)})
		}
		if line := addLine(fig, places, lineStyle(l, t.look)); line != nil && len(p.lines) > 1 {
			fig.Legend.Add(l.key, line)
		}
	}
	scale := linearAxis
	if p.log {
		scale = logAxis
	}
	y := scale(values, 0, 1)
	if p.level > 0 {
		target := draw.LineStyle{Color: axisGrey, Width: vg.Points(1), Dashes: []vg.Length{5, 3}}
		fig.Legend.Add("asked for", addLine(fig, []place{{x.lo, p.level}, {x.hi, p.level}}, target))
	}
	for _, e := range t.events {
		mark := draw.LineStyle{Color: eventOrange, Width: vg.Points(1)}
		if at := float64(e.AtNs) / 1e9; at >= x.lo && at <= x.hi {
			addLine(fig, []place{{at, y.lo}, {at, y.hi}}, mark)
		}
	}
	x.use(&fig.X, x.ticks(9, timeTick))
	y.use(&fig.Y, y.ticks(ticksUp(p.height*1.6), p.format))
	return fig
}

// lineStyle is the style of a panel's line as the page has it.
func lineStyle(l panelLine, of look) draw.LineStyle {
	style := draw.LineStyle{Color: palette[of.hue].rgba, Width: vg.Points(1.2)}
	if l.class == "line bold" {
		style.Width = vg.Points(2)
	}
	if l.dash != "" {
		style.Dashes = []vg.Length{2, 3}
	}
	return style
}
