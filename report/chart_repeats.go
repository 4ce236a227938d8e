package report

import (
	"strconv"

	"github.com/kbench/kbench/results"
)

// repeatsFigure is a figure of the runs that is drawn as dots.
type repeatsFigure struct {
	title  string
	of     func(*results.Run, string) (float64, bool) // of a run, given the point's headline series
	log    bool
	format func(float64) string
}

var repeatsFigures = []repeatsFigure{
	{"msg/s", effectFigures[0].of, false, short},
	{"p99 (log)", effectFigures[1].of, true, shortDuration},
}

// repeatsChart draws every run of every point as a dot, points below each other: how much a point
// varies from run to run, and whether two points overlap, is seen without trusting a summary.
// Hollow dots are invalid runs; the bar is the median of those that are used.
func repeatsChart(points []*point, on paper) string {
	const step = 20.0
	on.left = map[bool]float64{true: 46, false: 300}[on.narrow]
	on.h = on.top + on.bottom + step*float64(len(points))
	gap := map[bool]float64{true: 18, false: 40}[on.narrow]
	wide := (on.w - on.left - on.right - gap) / 2
	var d drawing
	d.begin(on.class()+" repeats", "Runs of every point", on.w, on.h, attrs{"data-step", px(step), "data-top", px(on.top)})
	d.open("g", attrs{"class", "ty"})
	for i, p := range points {
		text := pointTitle(p)
		if on.narrow {
			text = p.id
		}
		d.text("", "", on.left-8, on.top+step*(float64(i)+0.5)+4, fitting(text, on.left-10))
	}
	d.end("g")
	for i, f := range repeatsFigures {
		from := on.left + (wide+gap)*float64(i)
		d.repeatsPanel(points, f, on, from, from+wide, step)
	}
	return d.String()
}

// repeatsPanel draws one figure of all points.
func (d *drawing) repeatsPanel(points []*point, f repeatsFigure, on paper, from, to, step float64) {
	x := f.axis(points, from, to)
	y := axis{lo: 0, hi: 1, from: on.h - on.bottom, to: on.top}
	ticks := x.ticks(max(2, int((to-from)/90)), f.format)
	d.open("g", attrs{"class", "panel", "data-x", x.attr("")})
	d.grid(x, y, ticks, nil)
	d.xTicks(x, y, ticks)
	d.text("title", "", x.from, y.to-11, f.title)
	for i, p := range points {
		at := on.top + step*(float64(i)+0.5)
		d.open("g", attrs{"data-p", strconv.Itoa(p.index), "class", "dots c" + strconv.Itoa(p.look().hue)})
		var valid, invalid []place
		for j := range p.data.Runs {
			run := &p.data.Runs[j]
			v, ok := f.of(run, p.headline)
			if !ok {
				continue
			}
			if dot := (place{x.at(v), at}); run.Verdict.Valid {
				valid = append(valid, dot)
			} else {
				invalid = append(invalid, dot)
			}
		}
		if s := f.spread(p); s.n > 1 {
			d.element("path", attrs{"class", "middle", "d", "M" + px(x.at(s.median)) + " " + px(at-6) + "v12"})
		}
		if len(valid) > 0 {
			d.element("path", attrs{"class", "run", "d", dotsOf(valid)})
		}
		if len(invalid) > 0 {
			d.element("path", attrs{"class", "ring", "d", dotsOf(invalid)})
			d.element("path", attrs{"class", "hole", "d", dotsOf(invalid)})
		}
		d.end("g")
	}
	d.end("g")
}

// spread is the figure over the used runs of a point.
func (f repeatsFigure) spread(p *point) spread {
	return p.over(func(r *results.Run) (float64, bool) { return f.of(r, p.headline) })
}

// axis spans all runs of all points.
func (f repeatsFigure) axis(points []*point, from, to float64) axis {
	var values []float64
	for _, p := range points {
		for i := range p.data.Runs {
			if v, ok := f.of(&p.data.Runs[i], p.headline); ok {
				values = append(values, v)
			}
		}
	}
	if f.log {
		return logAxis(values, from, to)
	}
	return spanAxis(values, from, to)
}

// repeatsNumbers has a row for each run.
func repeatsNumbers(points []*point) table {
	t := table{Head: []string{"point", "run", "msg/s", "p50", "p99", "p99.9", "max", "verdict"}}
	for _, p := range points {
		for i := range p.data.Runs {
			run := &p.data.Runs[i]
			rate, _ := rateOf(run)
			cells := []string{p.id, strconv.Itoa(run.Repeat + 1), quantity(rate)}
			s := run.Series[p.headline]
			for _, ns := range []int64{s.P50Ns, s.P99Ns, s.P999Ns, s.MaxNs} {
				cells = append(cells, duration(float64(ns)))
			}
			verdict := "valid"
			if !run.Verdict.Valid {
				verdict = "INVALID"
			}
			t.Rows = append(t.Rows, tableRow{Swatch: -1, Cells: append(cells, verdict)})
		}
	}
	return t
}

// repeatsShown are the points of the chart; none when no point was run twice.
func (v *view) repeatsShown() []*point {
	if !v.repeated() {
		return nil
	}
	return v.ran()
}
