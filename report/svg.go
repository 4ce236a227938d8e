package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// drawing builds one SVG picture. Colours and fonts come from the classes of the page's style
// sheet, so that one picture serves the light and the dark ground and paper.
type drawing struct {
	b strings.Builder
}

// attrs are attributes in pairs: name, value, name, value. Values are escaped.
type attrs []string

// px formats a place on paper to a tenth of a unit, in as few characters as it takes.
func px(v float64) string {
	if !usable(v) {
		v = 0
	}
	s := strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	if s == "-0" {
		return "0"
	}
	return s
}

// open starts an element; end closes it.
func (d *drawing) open(name string, as attrs) {
	d.start(name, as)
	d.b.WriteByte('>')
}

func (d *drawing) end(name string) { d.b.WriteString("</" + name + ">") }

func (d *drawing) start(name string, as attrs) {
	d.b.WriteString("<" + name)
	for i := 0; i+1 < len(as); i += 2 {
		if as[i+1] == "" {
			continue
		}
		d.b.WriteString(" " + as[i] + `="` + html.EscapeString(as[i+1]) + `"`)
	}
}

// element writes an element without content.
func (d *drawing) element(name string, as attrs) {
	d.start(name, as)
	d.b.WriteString("/>")
}

// begin starts the picture. The title is what a screen reader says.
func (d *drawing) begin(class, title string, w, h float64, as attrs) {
	all := attrs{"class", class, "viewBox", "0 0 " + px(w) + " " + px(h), "role", "img", "aria-label", title}
	d.open("svg", append(all, as...))
}

// String ends the picture and returns it.
func (d *drawing) String() string { return d.b.String() + "</svg>" }

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.element("line", attrs{"class", class, "x1", px(x1), "y1", px(y1), "x2", px(x2), "y2", px(y2)})
}

// text writes one line of text; anchor is start, middle or end.
func (d *drawing) text(class, anchor string, x, y float64, text string) {
	if anchor == "start" {
		anchor = ""
	}
	d.open("text", attrs{"class", class, "x", px(x), "y", px(y), "text-anchor", anchor})
	d.b.WriteString(html.EscapeString(text))
	d.end("text")
}

// place is a point on paper.
type place struct{ x, y float64 }

// pathOf is the path data through the places, with breaks where one is not a number. Places that
// lie on the straight between their neighbours are left out; one alone between breaks is a dot.
// Each line goes by steps from where it begins, which takes half the characters.
func pathOf(places []place) string {
	var b strings.Builder
	var x, y int // where the pen is
	drawing := false
	for i, p := range places {
		if math.IsNaN(p.y) {
			continue
		}
		before := i > 0 && !math.IsNaN(places[i-1].y)
		after := i+1 < len(places) && !math.IsNaN(places[i+1].y)
		toX, toY := tenths(p.x), tenths(p.y)
		switch {
		case before && after && straight(places[i-1], p, places[i+1]):
			continue
		case before && drawing:
			b.WriteString(spaced(tenthsText(toX - x)))
			b.WriteString(spaced(tenthsText(toY - y)))
		case before:
			b.WriteString("l" + tenthsText(toX-x) + spaced(tenthsText(toY-y)))
		default:
			b.WriteString("M" + tenthsText(toX) + spaced(tenthsText(toY)))
			if !after {
				b.WriteString("h0")
			}
		}
		drawing, x, y = before, toX, toY
	}
	return b.String()
}

// tenths is a place in tenths of a unit, as it is written.
func tenths(v float64) int {
	if !usable(v) {
		return 0
	}
	return int(math.Round(v * 10))
}

// tenthsText is a number of tenths in as few characters as it takes: 1.5, -.3, 12.
func tenthsText(n int) string {
	return strings.Replace(strconv.FormatFloat(float64(n)/10, 'f', -1, 64), "0.", ".", map[bool]int{true: 1}[n > -10 && n < 10])
}

// spaced goes on in path data: a minus parts numbers as well as a space does.
func spaced(number string) string {
	if number[0] == '-' {
		return number
	}
	return " " + number
}

// straight says whether b lies on a horizontal between a and c, to the precision of px.
func straight(a, b, c place) bool {
	return px(a.y) == px(b.y) && px(b.y) == px(c.y)
}

// curve draws a line through the places in the hue and dash of a look.
func (d *drawing) curve(class string, l look, places []place) {
	d.path(class+" c"+strconv.Itoa(l.hue), dashes[l.dash], places)
}

// path draws a line through the places, with more attributes; nothing when there are none.
func (d *drawing) path(class, dash string, places []place, more ...string) {
	if data := pathOf(places); data != "" {
		d.element("path", append(attrs{"class", class, "d", data, "stroke-dasharray", dash}, more...))
	}
}

// marker draws the shape of a look around a place; hollow ones stand for invalid runs.
func (d *drawing) marker(l look, x, y, r float64, hollow bool, as attrs) {
	class := "mark c" + strconv.Itoa(l.hue)
	if hollow {
		class += " hollow"
	}
	all := append(attrs{"class", class, "d", outline(shapes[l.shape], r), "transform", "translate(" + px(x) + " " + px(y) + ")"}, as...)
	d.element("path", all)
}

// outline is the path data of a marker around the origin, of about the same area for all.
func outline(shape string, r float64) string {
	if shape == "circle" {
		return fmt.Sprintf("M%s 0a%s %s 0 1 0 %s 0a%s %s 0 1 0 %s 0z", px(-r), px(r), px(r), px(2*r), px(r), px(r), px(-2*r))
	}
	var b strings.Builder
	for i, c := range corners(shape, r) {
		b.WriteString(map[bool]string{true: "M", false: "L"}[i == 0] + px(c.x) + " " + px(c.y))
	}
	return b.String() + "z"
}

// corners are those of a marker around the origin, with y down as in SVG; a circle has none.
func corners(shape string, r float64) []place {
	switch shape {
	case "square":
		return polygon(4, r*1.25, r*1.25, math.Pi/4)
	case "triangle":
		return polygon(3, r*1.35, r*1.35, -math.Pi/2)
	case "wedge":
		return polygon(3, r*1.35, r*1.35, math.Pi/2)
	case "diamond":
		return polygon(4, r*1.35, r*1.35, 0)
	case "pentagon":
		return polygon(5, r*1.15, r*1.15, -math.Pi/2)
	case "star":
		return polygon(10, r*1.5, r*0.65, -math.Pi/2)
	case "cross":
		arm, end := r*0.45, r*1.35
		return []place{{end, -arm}, {end, arm}, {arm, arm}, {arm, end}, {-arm, end}, {-arm, arm},
			{-end, arm}, {-end, -arm}, {-arm, -arm}, {-arm, -end}, {arm, -end}, {arm, -arm}}
	}
	return nil
}

// polygon is n corners, alternately at the distances outer and inner.
func polygon(n int, outer, inner, turn float64) []place {
	places := make([]place, n)
	for i := range places {
		distance, angle := outer, turn+2*math.Pi*float64(i)/float64(n)
		if i%2 == 1 {
			distance = inner
		}
		places[i] = place{distance * math.Cos(angle), distance * math.Sin(angle)}
	}
	return places
}

// swatch defines the key of a look beside a label, a bit of its line with its marker, as the
// symbol k0, k1, …
func swatch(i int, l look) string {
	var d drawing
	d.open("symbol", attrs{"id", "k" + strconv.Itoa(i), "viewBox", "0 0 28 14"})
	d.curve("line", l, []place{{1, 7}, {27, 7}})
	d.marker(l, 14, 7, 4.2, false, nil)
	d.end("symbol")
	return d.b.String()
}
