package report

import (
	"math"
	"strconv"
)

// effectsChart draws the main effects of a sweep's settings on one figure: a row for each value of
// a setting, held against the first value, as a ratio with its interval over pairs of runs that
// differ in that alone (see effects). The setting that matters most is on top. A hollow marker has
// too few pairs for an interval: its thin line spans the pairs themselves.
func effectsChart(list []effect, title string, on paper) string {
	list = told(list)
	if len(list) == 0 {
		return ""
	}
	on.left = map[bool]float64{true: 168, false: 330}[on.narrow]
	on.h = ratioHeight(on, len(list))
	x := effectsAxis(list, on.left, on.w-on.right)
	var names []string
	for _, e := range list {
		names = append(names, fitting(e.title(), on.left-12))
	}
	var d drawing
	d.ratioFrame("effects", "Main effects on "+title, "ratio (log)", names, x, on)
	d.text("title", "", 2, on.top-11, title)
	for i, e := range list {
		d.effect(e, x, ratioRowAt(on, i))
	}
	return d.String()
}

// told are the effects that any pair tells of.
func told(list []effect) []effect {
	var some []effect
	for _, e := range list {
		if e.pairs > 0 {
			some = append(some, e)
		}
	}
	return some
}

// effectsAxis spans the effects, their intervals or pairs, and 1.
func effectsAxis(list []effect, from, to float64) axis {
	var rows []ratioRow
	for _, e := range list {
		lower, upper := e.ends()
		rows = append(rows, ratioRow{ratio: e.ratio, lower: lower, upper: upper})
	}
	return ratioAxis(rows, from, to)
}

// ends are the interval's, or those of the pairs when there is none.
func (e effect) ends() (lower, upper float64) {
	if math.IsNaN(e.lower) {
		return e.least, e.most
	}
	return e.lower, e.upper
}

// look is one for all: colours stand for points.
func (e effect) look() look { return look{hue: 7, shape: 0} }

func (d *drawing) effect(e effect, x axis, at float64) {
	text := e.title() + "\n" + e.text()
	lower, upper := e.ends()
	d.open("g", attrs{"class", "spot", "role", "img", "aria-label", text, "tabindex", "0", "data-tip", text})
	class := "whisker c" + strconv.Itoa(e.look().hue)
	if math.IsNaN(e.lower) {
		class += " pairs"
	}
	d.line(class, x.at(lower), at, x.at(upper), at)
	d.marker(e.look(), x.at(e.ratio), at, 4.6, math.IsNaN(e.lower), nil)
	d.end("g")
}

// text is the effect in figures.
func (e effect) text() string {
	text := ratioText(e.ratio)
	if math.IsNaN(e.lower) {
		return text + ", no interval of 95 % from " + plural(e.pairs, "pair")
	}
	return text + " (" + ratioText(e.lower) + "–" + ratioText(e.upper) + "), " + plural(e.pairs, "pair")
}
