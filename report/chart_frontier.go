package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// frontierChart draws throughput against headline p99, one marker a point, with the ends over
// runs as whiskers and the points that no other beats in both joined by a line.
func frontierChart(points []*point, on paper) string {
	shown := plottable(points)
	if len(shown) == 0 {
		return ""
	}
	var rates, tails []float64
	for _, p := range shown {
		rates = append(rates, p.rate.min, p.rate.max)
		tails = append(tails, p.p99.min, p.p99.max)
	}
	x := spanAxis(rates, on.left, on.w-on.right)
	y := logAxis(tails, on.h-on.bottom, on.top)
	var d drawing
	d.begin(on.class()+" frontier", "Throughput against p99", on.w, on.h, attrs{"data-x", x.attr(""), "data-y", y.attr("")})
	d.frame(x, y, x.ticks(on.ticksAcross(), short), y.ticks(ticksUp(y.from-y.to), shortDuration), "throughput, msg/s", seriesTitle(shown)+" p99 (log)")
	d.path("best", "", onPaper(frontier(shown), x, y))
	labels := labeller{x: x, y: y}
	for _, p := range shown {
		labels.keepFree(x.at(p.rate.median), y.at(p.p99.median), 7)
	}
	for _, p := range shown {
		d.frontierPoint(p, x, y, &labels, on.narrow)
	}
	return d.String()
}

// seriesTitle names the headline series of the points.
func seriesTitle(points []*point) string {
	return strings.Join((&view{points: points}).headlines(), " / ")
}

// frontierPoint draws one point with its whiskers and its name.
func (d *drawing) frontierPoint(p *point, x, y axis, labels *labeller, narrow bool) {
	cx, cy := x.at(p.rate.median), y.at(p.p99.median)
	tip := p.tip()
	if narrow {
		tip = "" // the script has that of the wide picture
	}
	d.open("g", attrs{"data-p", strconv.Itoa(p.index), "tabindex", "0", "class", "spot", "role", "img", "aria-label", p.spoken(), "data-tip", tip})
	if p.rate.n > 1 {
		ends := pathOf([]place{{cx, y.at(p.p99.min)}, {cx, y.at(p.p99.max)}}) + pathOf([]place{{x.at(p.rate.min), cy}, {x.at(p.rate.max), cy}})
		d.element("path", attrs{"class", "whisker c" + strconv.Itoa(p.look().hue), "d", ends})
		d.runDots(p, x, y)
	}
	invalid := p.invalid() == len(p.data.Runs)
	d.marker(p.look(), cx, cy, 5.5, invalid, nil)
	if at, ok := labels.find(cx, cy, p.id); ok {
		d.text("name", "start", at.x, at.y, p.id)
	}
	d.end("g")
}

// runDots draws the runs that a point's figures are of.
func (d *drawing) runDots(p *point, x, y axis) {
	var places []place
	for _, run := range p.used {
		if s := run.Series[p.headline]; s.Count > 0 {
			rate, _ := rateOf(run)
			places = append(places, place{x.at(rate), y.at(float64(s.P99Ns))})
		}
	}
	d.element("path", attrs{"class", "runs c" + strconv.Itoa(p.look().hue), "d", dotsOf(places)})
}

// dotsOf is the path data of dots, to be drawn with a round pen.
func dotsOf(places []place) string {
	var b strings.Builder
	for _, at := range places {
		b.WriteString(pathOf([]place{at}))
	}
	return b.String()
}

// tip is what the page shows beside the point; lines are apart by line breaks.
func (p *point) tip() string {
	text := pointTitle(p) + "\n" + p.rate.text(quantity) + " msg/s"
	if p.headline != "" {
		text += "\n" + p.headline + " p50 " + p.p50.text(duration) + "\n" + p.headline + " p99 " + p.p99.text(duration) + "\n" + p.headline + " p99.9 " + p.p999.text(duration)
	}
	for _, reason := range first(p.reasons(), 3) {
		text += "\n✗ INVALID: " + reason
	}
	return text
}

// spoken is the tip for screen readers.
func (p *point) spoken() string {
	return p.id + ", " + p.verdict() + ", " + quantity(p.rate.median) + " messages a second, p99 " + duration(p.p99.median)
}

// first are at most n of the texts; the last then says how many are left out.
func first(texts []string, n int) []string {
	if len(texts) <= n {
		return texts
	}
	return append(slices.Clone(texts[:n]), "and "+strconv.Itoa(len(texts)-n)+" more")
}

// plottable are the points with a throughput and a p99.
func plottable(points []*point) []*point {
	var shown []*point
	for _, p := range points {
		if p.rate.n > 0 && p.p99.n > 0 {
			shown = append(shown, p)
		}
	}
	return shown
}

// frontier are the places of frontierPoints.
func frontier(points []*point) []place {
	var best []place
	for _, p := range frontierPoints(points) {
		best = append(best, place{p.rate.median, p.p99.median})
	}
	return best
}

// frontierPoints are the valid points that no other valid point beats in throughput and in p99
// (Pareto's front), from the lowest throughput up. Points with different headline series do not
// compare: then it is empty.
func frontierPoints(points []*point) []*point {
	var valid []*point
	for _, p := range points {
		if p.headline != points[0].headline {
			return nil
		}
		if p.invalid() < len(p.data.Runs) {
			valid = append(valid, p)
		}
	}
	slices.SortStableFunc(valid, func(a, b *point) int {
		return cmp.Or(cmp.Compare(b.rate.median, a.rate.median), cmp.Compare(a.p99.median, b.p99.median))
	})
	var best []*point
	lowest := math.Inf(1)
	for _, p := range valid {
		if p.p99.median < lowest {
			lowest = p.p99.median
			best = append(best, p)
		}
	}
	slices.Reverse(best)
	return best
}

func onPaper(values []place, x, y axis) []place {
	places := make([]place, len(values))
	for i, v := range values {
		places[i] = place{x.at(v.x), math.NaN()}
		if !math.IsNaN(v.y) {
			places[i].y = y.at(v.y)
		}
	}
	return places
}

// labeller finds room for names beside markers.
type labeller struct {
	x, y  axis
	taken []box
}

type box struct{ left, top, right, bottom float64 }

func (b box) meets(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

func (l *labeller) keepFree(x, y, r float64) {
	l.taken = append(l.taken, box{x - r, y - r, x + r, y + r})
}

// find gives the place of the text's left end of the base line; false when there is no room, and
// the name is left to the table and to pointing at the marker.
func (l *labeller) find(x, y float64, text string) (place, bool) {
	const height, letter = 12, 6.6
	width := letter * float64(len([]rune(text)))
	for _, at := range []place{{x + 9, y + 4}, {x - 9 - width, y + 4}, {x - width/2, y - 10}, {x - width/2, y + 18}} {
		b := box{at.x, at.y - height + 2, at.x + width, at.y + 2}
		if b.left < l.x.from || b.right > l.x.to+10 || b.top < l.y.to-8 || b.bottom > l.y.from {
			continue
		}
		if slices.ContainsFunc(l.taken, b.meets) {
			continue
		}
		l.taken = append(l.taken, b)
		return at, true
	}
	return place{}, false
}
