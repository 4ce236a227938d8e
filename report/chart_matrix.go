package report

import (
	"math"
	"strconv"
)

// matrixFigure is what a sweep's heat map shows.
type matrixFigure struct {
	title  string
	of     func(*point) spread
	format func(float64) string
}

// shadeAxis places figures among the shades by their logarithm.
func (f matrixFigure) shadeAxis(m *matrix) axis {
	lo, hi := math.Inf(1), 0.0
	for _, row := range m.cells {
		for _, p := range row {
			if p == nil {
				continue
			}
			if s := f.of(p); s.n > 0 && s.median > 0 && usable(s.median) {
				lo, hi = math.Min(lo, s.median), math.Max(hi, s.median)
			}
		}
	}
	if lo > hi {
		lo, hi = 1, 1
	}
	const least = 1.2 // what hardly differs looks alike
	return axis{lo: lo, hi: math.Max(hi, lo*least), to: heatLevels, log: true}
}

// shadeAt is the class of a figure's shade.
func shadeAt(a axis, v float64) int { return min(int(a.at(v)), heatLevels-1) }

const (
	matrixRow  = 30.0 // height of a row
	matrixHead = 17.0 // height of a line of column headings
)

// matrixChart draws a sweep as a table of shades, one picture for each figure: settings nested in
// rows and columns (LeBlanc, Ward and Wittels, "Exploring N-dimensional databases", 1990), so that
// every point has a place of its own and nothing is averaged. What is not valid has a red corner,
// what was not run is empty.
func matrixChart(m *matrix, f matrixFigure, on paper) string {
	gutters, left := m.gutters(on)
	on.left = left
	on.top = 22 + matrixHead*float64(len(m.across)+1)
	on.h = on.top + matrixRow*float64(len(m.cells)) + 8
	wide := (on.w - on.left - on.right) / float64(len(m.cells[0]))
	var d drawing
	d.begin(on.class()+" matrix", f.title+" by setting", on.w, on.h, nil)
	d.text("title", "", 2, 13, f.title)
	d.matrixHeads(m, on, gutters, wide)
	shades := f.shadeAxis(m)
	for i, row := range m.cells {
		for j, p := range row {
			if p != nil {
				d.matrixCell(p, f, shades, box{on.left + wide*float64(j), on.top + matrixRow*float64(i), on.left + wide*float64(j+1) - 2, on.top + matrixRow*float64(i+1) - 2})
			}
		}
	}
	return d.String()
}

// gutters are the places of the rows' headings and of the first cell.
func (m *matrix) gutters(on paper) (starts []float64, end float64) {
	limit := (on.w * 0.45) / float64(len(m.down))
	at := 2.0
	for _, f := range m.down {
		longest := len([]rune(f.name))
		for _, v := range f.values {
			longest = max(longest, len([]rune(v)))
		}
		starts = append(starts, at)
		at += math.Min(limit, 7*float64(longest)+10)
	}
	return starts, at
}

// fitting is how much of a text there is room for.
func fitting(text string, room float64) string { return clip(text, max(1, int(room/7))) }

// matrixHeads writes the names and values of the settings; a value that goes on is written once.
// The columns' names stand before their values, the rows' above theirs.
func (d *drawing) matrixHeads(m *matrix, on paper, gutters []float64, wide float64) {
	for i, f := range m.across {
		base := 22 + matrixHead*float64(i+1) - 5
		d.text("key", "end", on.left-6, base, fitting(f.name, on.left-8))
		every := combinations(m.across[i+1:])
		for j := 0; j < len(m.cells[0]); j += every {
			d.text("name", "", on.left+wide*float64(j)+2, base, clip(levelsAt(m.across, j)[i], max(1, int(wide*float64(every)/6))))
		}
	}
	for i, f := range m.down {
		every := combinations(m.down[i+1:])
		room := on.left - gutters[i]
		if i+1 < len(gutters) {
			room = gutters[i+1] - gutters[i]
		}
		d.text("key", "", gutters[i], on.top-5, fitting(f.name, room-4))
		for j := 0; j < len(m.cells); j += every {
			d.text("name", "", gutters[i], on.top+matrixRow*float64(j)+19, fitting(levelsAt(m.down, j)[i], room-4))
		}
	}
}

// matrixCell is one point: its shade, and its figure where there is room.
func (d *drawing) matrixCell(p *point, f matrixFigure, shades axis, at box) {
	wide, middle := at.right-at.left, (at.left+at.right)/2
	s := f.of(p)
	d.open("g", attrs{"class", "cell", "data-p", strconv.Itoa(p.index)})
	rect := attrs{"class", "none", "x", px(at.left), "y", px(at.top), "width", px(wide), "height", px(at.bottom - at.top)}
	text, class := "–", "name"
	if s.n > 0 {
		shade := strconv.Itoa(shadeAt(shades, s.median))
		rect[1], text, class = "h"+shade, f.format(s.median), "on"+shade
	}
	d.element("rect", rect)
	if p.ran() && p.invalid() == len(p.data.Runs) {
		d.element("path", attrs{"class", "corner", "d", "M" + px(at.right) + " " + px(at.top) + "v10l-10-10z"})
	}
	if wide >= 6.2*float64(len([]rune(text)))+2 {
		d.text(class, "", middle, at.top+18, text)
	}
	d.end("g")
}
