package report

import (
	"math"
	"strconv"
	"strings"
)

// heatChart draws how latencies are spread over time: time across, latency upwards in bands of
// equal ratio, the stronger the shade the more messages fell into a band within a step (Gregg, "Visualizing
// System Latency", 2010). It shows what percentiles over time hide: two modes, a few messages
// that waited, and when. Shades go by the logarithm of the count.
func heatChart(h *heat, title string, on paper) string {
	x := axis{lo: h.from, hi: h.end(), from: on.left, to: on.w - on.right}
	y := axis{lo: h.edges[0], hi: h.edges[len(h.edges)-1], from: on.h - on.bottom, to: on.top, log: true}
	var d drawing
	d.begin(on.class()+" heat", title, on.w, on.h, attrs{"data-x", x.attr(""), "data-y", y.attr("")})
	d.frame(x, y, x.ticks(on.ticksAcross(), timeTick), y.ticks(ticksUp(y.from-y.to), shortDuration), "since the start of the measured phase", h.series+" (log)")
	d.heatCells(h, x, y)
	if at := x.at(0); h.from < 0 && h.end() > 0 {
		d.line("target", at, y.from, at, y.to)
		d.text("number", "end", at-3, y.to-3, "warm-up")
	}
	for i, e := range h.events {
		d.heatEvent(i, float64(e.AtNs)/1e9, float64(e.AtNs+e.DurationNs)/1e9, x, y, eventText(e))
	}
	return d.String()
}

// heatCells draws the cells of a shade as one path: each is a bit of a line one unit wide, in
// units of cells, from the top left.
func (d *drawing) heatCells(h *heat, x, y axis) {
	least := heatSteps(h.most())
	paths := make([]strings.Builder, len(least))
	bands := len(h.edges) - 1
	for band := bands - 1; band >= 0; band-- {
		row := strconv.Itoa(bands - 1 - band)
		for from := 0; from < len(h.counts); {
			shade, to := shadeOf(h.counts[from][band], least), from+1
			for to < len(h.counts) && shadeOf(h.counts[to][band], least) == shade {
				to++
			}
			if shade >= 0 {
				paths[shade].WriteString("M" + strconv.Itoa(from) + " " + row + "h" + strconv.Itoa(to-from))
			}
			from = to
		}
	}
	across, up := (x.to-x.from)/float64(len(h.counts)), (y.from-y.to)/float64(bands)
	scale := func(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }
	d.open("g", attrs{"class", "cells", "transform", "translate(" + px(x.from) + " " + px(y.to+up/2) + ")scale(" + scale(across) + " " + scale(up) + ")"})
	for shade := range paths {
		if data := paths[shade].String(); data != "" {
			d.element("path", attrs{"class", "h" + strconv.Itoa(shadeClass(shade, len(least))), "d", data})
		}
	}
	d.end("g")
}

// heatEvent marks an event above the picture, numbered as in the list below it: over the cells it
// would change their shade.
func (d *drawing) heatEvent(i int, from, to float64, x, y axis, text string) {
	if to <= x.lo && from < x.lo || from >= x.hi {
		return
	}
	left, right := x.at(from), x.at(to)
	d.open("g", attrs{"class", "event mark-above", "data-text", text})
	d.element("rect", attrs{"x", px(left), "y", px(y.to - 5), "width", px(math.Max(2, right-left)), "height", "5"})
	if title := x.from + 60; left > title { // not over the name of the axis
		d.text("number", "middle", (left+right)/2, y.to-8, strconv.Itoa(i+1))
	}
	d.end("g")
}
