package report

import (
	"math"
	"strconv"
	"strings"
)

// trace is one line of a percentile chart.
type trace struct {
	name   string
	look   look
	index  int // of its point
	series string
	levels []level
	leads  bool // the headline series among others
}

// percentileChart overlays percentile curves: every further nine takes the same room to the
// right, values stand on a logarithmic axis.
func percentileChart(traces []trace, yTitle string, on paper) string {
	var values []float64
	end := 2.0
	for _, t := range traces {
		for _, l := range t.levels {
			values = append(values, l.ns)
			end = math.Max(end, l.at)
		}
	}
	if len(values) == 0 {
		return ""
	}
	x := axis{lo: 0, hi: end, from: on.left, to: on.w - on.right}
	y := logAxis(values, on.h-on.bottom, on.top)
	var d drawing
	d.begin(on.class()+" percentiles", "Latency by percentile", on.w, on.h, attrs{"data-x", x.attr("nines"), "data-y", y.attr("")})
	d.frame(x, y, percentTicks(end, on.narrow), y.ticks(ticksUp(y.from-y.to), shortDuration), "share of messages not slower", yTitle)
	for _, t := range traces {
		places := make([]place, len(t.levels))
		for i, l := range t.levels {
			places[i] = place{x.at(l.at), y.at(l.ns)}
		}
		if len(traces) > manyCurves {
			toWholeUnits(places)
		}
		d.open("g", attrs{"data-p", strconv.Itoa(t.index), "data-name", t.name})
		d.curve(t.class(), t.look, places)
		d.traceMarks(t, x, y, len(traces) > manyTraces)
		d.end("g")
	}
	return d.String()
}

// class makes the line of the series that leads the broad one: it is drawn first, and what runs
// along it stays visible.
func (t trace) class() string {
	if t.leads {
		return "line lead"
	}
	return "line"
}

// manyCurves is from how many curves on places are rounded to whole units, to keep the page small.
const manyCurves = 60

// manyTraces is how many curves there is room for markers on.
const manyTraces = 32

// traceMarks puts the shape of the point on its curve at each nine, or at p99 alone when there are
// many curves, so that curves of like hue stay apart without colour.
func (d *drawing) traceMarks(t trace, x, y axis, many bool) {
	places := []nines{math.Log10(2), 1, 2, 3, 4}
	if many {
		places = []nines{2}
	}
	for _, at := range places {
		v := valueAt(t.levels, at)
		if !math.IsNaN(v) {
			d.marker(t.look, x.at(at), y.at(v), 3.4, false, attrs{"data-q", strconv.FormatFloat(at, 'g', 6, 64)})
		}
	}
}

// percentTicks label each nine up to the end of the axis; between them where there is room.
func percentTicks(end nines, narrow bool) []tick {
	all := []tick{{0, "0 %"}, {math.Log10(2), "50 %"}, {math.Log10(4), "75 %"}, {1, "90 %"}, {math.Log10(20), "95 %"}, {2, "99 %"},
		{3, "99.9 %"}, {4, "99.99 %"}, {5, "99.999 %"}, {6, "99.9999 %"}}
	var ts []tick
	for _, t := range all {
		if t.value > end+1e-9 {
			break
		}
		between := t.value != math.Trunc(t.value)
		if narrow && (between || t.value == 0) {
			t.label = ""
		}
		if narrow && t.value >= 3 {
			t.label = strings.TrimSuffix(t.label, " %")
		}
		ts = append(ts, t)
	}
	return ts
}

// tableLevels are the levels of the table beside the chart.
var tableLevels = []struct {
	name string
	at   nines
}{
	{"p50", math.Log10(2)}, {"p75", math.Log10(4)}, {"p90", 1}, {"p95", math.Log10(20)}, {"p99", 2},
	{"p99.9", 3}, {"p99.99", 4}, {"p99.999", 5},
}
