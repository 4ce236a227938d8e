package report

import (
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
)

// paper is the size of a picture in user units, which are CSS pixels at full width.
type paper struct {
	w, h                     float64
	left, right, top, bottom float64 // margins around the plot
	narrow                   bool    // made for a phone: fewer ticks, no room beside the plot
	pan                      bool    // phones show a part of it, to be moved
}

var (
	widePaper   = paper{w: 960, h: 440, left: 66, right: 20, top: 30, bottom: 46}
	narrowPaper = paper{w: 360, h: 340, left: 54, right: 12, top: 28, bottom: 44, narrow: true}
)

// class is what shows the picture on screens it was made for.
func (p paper) class() string {
	switch {
	case p.narrow:
		return "chart narrow"
	case p.pan:
		return "chart pan"
	}
	return "chart wide"
}

// manyDrawn is from how many points on there is one picture for all screens, to keep the page small.
const manyDrawn = 60

// papers are the sizes that a picture of n points is drawn in.
func papers(n int) []paper {
	if n <= manyDrawn {
		return []paper{widePaper, narrowPaper}
	}
	pan := widePaper
	pan.pan = true
	return []paper{pan}
}

// framed lets a picture that is too wide for a phone be moved there.
func framed(chart string, on paper) template.HTML {
	if chart != "" && on.pan {
		chart = `<div class="scroll" tabindex="0" role="region" aria-label="picture">` + chart + "</div>"
	}
	return template.HTML(chart)
}

// ticksAcross and ticksUp are how many ticks there is room for.
func (p paper) ticksAcross() int { return max(4, int((p.w-p.left-p.right)/110)) }
func ticksUp(height float64) int { return max(3, int(height/48)) }

// attr describes an axis to the script that reads values off the picture: scale, values at the
// ends, places of the ends.
func (a axis) attr(kind string) string {
	if kind == "" {
		kind = map[bool]string{true: "log", false: "linear"}[a.log]
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }
	return kind + " " + number(a.lo) + " " + number(a.hi) + " " + px(a.from) + " " + px(a.to)
}

// frame draws the grid, the ticks and the titles of a plot. The title of the upright axis stands
// above it, where it can be read without turning one's head.
func (d *drawing) frame(x, y axis, xs, ys []tick, xTitle, yTitle string) {
	d.grid(x, y, xs, ys)
	d.open("g", attrs{"class", "ty"})
	for _, t := range ys {
		if t.label != "" {
			d.text("", "", x.from-7, y.at(t.value)+4, t.label)
		}
	}
	d.end("g")
	d.xTicks(x, y, xs)
	if yTitle != "" {
		d.text("title", "", math.Max(2, x.from-52), y.to-11, yTitle)
	}
	if xTitle != "" {
		d.text("title", "end", x.to, y.from+36, xTitle)
	}
}

// xTicks labels the level axis, if it has labels.
func (d *drawing) xTicks(x, y axis, xs []tick) {
	if !slices.ContainsFunc(xs, func(t tick) bool { return t.label != "" }) {
		return
	}
	d.open("g", attrs{"class", "tx"})
	for i, t := range xs {
		at := x.at(t.value)
		if i == len(xs)-1 { // stays on the paper
			at = math.Min(at, x.to-2.2*float64(len(t.label)))
		}
		if t.label != "" {
			d.text("", "", at, y.from+17, t.label)
		}
	}
	d.end("g")
}

// grid draws a line for each tick, all in one path, thinner ones for those without a label on the
// upright axis.
func (d *drawing) grid(x, y axis, xs, ys []tick) {
	var major, minor strings.Builder
	for _, t := range ys {
		into := &major
		if t.label == "" {
			into = &minor
		}
		into.WriteString("M" + px(x.from) + " " + px(y.at(t.value)) + "H" + px(x.to))
	}
	for _, t := range xs {
		major.WriteString("M" + px(x.at(t.value)) + " " + px(y.from) + "V" + px(y.to))
	}
	if minor.Len() > 0 {
		d.element("path", attrs{"class", "grid minor", "d", minor.String()})
	}
	d.element("path", attrs{"class", "grid", "d", major.String()})
	d.element("path", attrs{"class", "axis", "d", "M" + px(x.from) + " " + px(y.from) + "H" + px(x.to)})
}

// timeTick labels seconds since the start of a run.
func timeTick(v float64) string {
	return strconv.FormatFloat(v, 'f', -1, 64) + " s"
}
