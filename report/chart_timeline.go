package report

import (
	"cmp"
	"math"
	"strconv"

	"github.com/kbench/kbench/results"
)

// timeline is one run over time.
type timeline struct {
	look     look
	headline string
	target   float64 // messages a second asked for; 0 in a closed loop
	consumes bool
	moments  []moment
	each     int // windows in a moment
	// partitions are the names of those that have a lag in each moment.
	partitions []string
	events     []results.Event
}

// timelinePaper says how a timeline is laid out: panels share the time axis and stand below each
// other.
type timelinePaper struct {
	paper
	rate, latency, extra float64 // heights of the panels
	coarse               bool    // one of very many: whole units, and the lines are explained once for all
	partitions           bool    // there is room for a panel of the lag by partition
}

var (
	wideTimeline   = timelinePaper{paper: paper{w: 960, left: 66, right: 20, top: 26, bottom: 44}, rate: 100, latency: 190, extra: 64, partitions: true}
	narrowTimeline = timelinePaper{paper: paper{w: 360, left: 54, right: 12, top: 26, bottom: 42, narrow: true}, rate: 74, latency: 150, extra: 50, partitions: true}
	smallTimeline  = timelinePaper{paper: paper{w: 460, left: 56, right: 12, top: 24, bottom: 42}, rate: 62, latency: 116, extra: 40}
)

const panelGap = 30 // room above a panel for its title

// panel is one plot of a timeline.
type panel struct {
	title  string
	height float64
	log    bool
	format func(float64) string
	lines  []panelLine
	level  float64 // a line across, for the rate asked for; 0 for none
}

// panelLine is one line of a panel. key names it beside the title when there are several.
type panelLine struct {
	key, class, dash string
	of               func(moment) float64
	hue              int // from 1: one of the palette's; 0: the timeline's
}

// panels are those a timeline has figures for.
func (t timeline) panels(on timelinePaper) []panel {
	rate := panel{title: "msg/s", height: on.rate, format: short, level: t.target,
		lines: []panelLine{{"acked", "line", "", func(m moment) float64 { return m.rate }, 0}}}
	if t.consumes {
		rate.lines = append(rate.lines, panelLine{"received", "line thin", "2 3", func(m moment) float64 { return m.received }, 0})
	}
	all := []panel{rate, {title: t.headline, height: on.latency, log: true, format: shortDuration, lines: []panelLine{
		{"max", "line thin", "2 3", func(m moment) float64 { return m.max }, 0},
		{"p99", "line bold", "", func(m moment) float64 { return m.p99 }, 0},
		{"p50", "line thin", "", func(m moment) float64 { return m.p50 }, 0},
	}}}
	if t.known(func(m moment) float64 { return m.lag }) {
		all = append(all, panel{title: "consumer lag, messages", height: on.extra, format: short,
			lines: []panelLine{{"", "line", "", func(m moment) float64 { return m.lag }, 0}}})
	}
	if on.partitions && len(t.partitions) > 0 && t.known(func(m moment) float64 { return m.lag }) {
		all = append(all, t.lagPanel(on))
	}
	if t.known(func(m moment) float64 { return m.lateness }) {
		all = append(all, panel{title: "pacer lateness, largest", height: on.extra, format: shortDuration,
			lines: []panelLine{{"", "line", "", func(m moment) float64 { return m.lateness }, 0}}})
	}
	if !on.coarse && t.known(func(m moment) float64 { return m.rss }) {
		all = append(all, panel{title: "generator's memory, MiB", height: on.extra, format: short,
			lines: []panelLine{{"", "line", "", func(m moment) float64 { return m.rss / (1 << 20) }, 0}}})
	}
	return all
}

// lagPanel has a line for each partition.
func (t timeline) lagPanel(on timelinePaper) panel {
	p := panel{title: "lag by partition", height: on.extra * 1.5, format: short}
	for i, name := range t.partitions {
		p.lines = append(p.lines, panelLine{name, "line thin", dashes[i/len(palette)%len(dashes)], func(m moment) float64 {
			if i < len(m.lags) {
				return m.lags[i]
			}
			return math.NaN()
		}, i%len(palette) + 1})
	}
	return p
}

// hueOf is the class of a line's colour.
func (t timeline) hueOf(l panelLine) string {
	if l.hue > 0 {
		return " c" + strconv.Itoa(l.hue-1)
	}
	return " c" + strconv.Itoa(t.look.hue)
}

// known says whether a figure is ever above zero.
func (t timeline) known(of func(moment) float64) bool {
	for _, m := range t.moments {
		if of(m) > 0 {
			return true
		}
	}
	return false
}

// timelineChart draws a run over time.
func timelineChart(t timeline, title string, on timelinePaper) string {
	if len(t.moments) == 0 {
		return ""
	}
	panels := t.panels(on)
	on.h = on.top + on.bottom - panelGap
	for _, p := range panels {
		on.h += p.height + panelGap
	}
	last := t.moments[len(t.moments)-1]
	x := axis{lo: math.Min(0, t.moments[0].at), hi: math.Max(last.at+last.length, 1e-3), from: on.left, to: on.w - on.right}
	var d drawing
	d.begin(on.class()+" timeline", title, on.w, on.h, attrs{"data-x", x.attr("")})
	if x.lo < 0 {
		d.element("rect", attrs{"class", "warm-up", "x", px(x.from), "y", px(on.top), "width", px(x.at(0) - x.from), "height", px(on.h - on.top - on.bottom)})
		d.text("number", "", x.from+3, on.h-on.bottom-4, "warm-up")
	}
	d.events(t.events, x, on)
	top := on.top
	for i, p := range panels {
		d.panel(p, t, x, top, on, i == len(panels)-1)
		top += p.height + panelGap
	}
	d.line("cursor", 0, on.top, 0, on.h-on.bottom)
	return d.String()
}

// panel draws one plot; only the last has its time axis labelled.
func (d *drawing) panel(p panel, t timeline, x axis, top float64, on timelinePaper, last bool) {
	values := []float64{p.level}
	for _, l := range p.lines {
		for _, m := range t.moments {
			values = append(values, l.of(m))
		}
	}
	scale := linearAxis
	if p.log {
		scale = logAxis
	}
	y := scale(values, top+p.height, top)
	xs, xTitle := x.ticks(on.ticksAcross(), timeTick), ""
	switch {
	case on.coarse && last:
	case on.coarse:
		xs = nil
	case last:
		xTitle = "since the start of the measured phase"
	default:
		for i := range xs {
			xs[i].label = ""
		}
	}
	if !on.coarse { // what reads figures off the picture finds its axes and lines by these
		d.open("g", attrs{"class", "panel", "data-name", p.title, "data-y", y.attr("")})
	}
	d.frame(x, y, xs, y.ticks(ticksUp(p.height*1.6), p.format), xTitle, p.title)
	if p.level > 0 {
		d.line("target", x.from, y.at(p.level), x.to, y.at(p.level))
	}
	for _, l := range p.lines {
		places := make([]place, len(t.moments))
		for i, m := range t.moments {
			places[i] = place{m.at + m.length/2, l.of(m)}
		}
		places = onPaper(places, x, y)
		if on.coarse {
			toWholeUnits(places)
		}
		name := cmp.Or(l.key, "all")
		if on.coarse {
			name = ""
		}
		d.path(l.class+t.hueOf(l), l.dash, places, "data-line", name)
	}
	if !on.coarse {
		d.keys(p, t, x.from, x.to, top-9)
		d.end("g")
	}
}

// toWholeUnits rounds places to whole units of the paper.
func toWholeUnits(places []place) {
	for i, p := range places {
		places[i] = place{math.Round(p.x), math.Round(p.y)} // what is not a number stays so
	}
}

// keys name the lines of a panel at the right end of its title, from the last to the first; none
// where there is no room for all of them.
func (d *drawing) keys(p panel, t timeline, left, right, base float64) {
	at := right
	room := left + 6.5*float64(len(p.title))
	for _, l := range p.lines {
		room += 5.8*float64(len(l.key)) + 32
	}
	if room > right && len(p.lines) > 3 {
		return
	}
	key := func(name, class, dash string) {
		at -= 5.8 * float64(len(name))
		d.text("key", "start", at, base, name)
		d.path(class, dash, []place{{at - 22, base - 4}, {at - 5, base - 4}})
		at -= 32
	}
	if p.level > 0 {
		key("asked for", "target", "")
	}
	if len(p.lines) < 2 && p.level == 0 {
		return
	}
	for i := len(p.lines) - 1; i >= 0; i-- {
		key(p.lines[i].key, p.lines[i].class+t.hueOf(p.lines[i]), p.lines[i].dash)
	}
}

// events draws marks across all panels, numbered as in the list below the picture.
func (d *drawing) events(events []results.Event, x axis, on timelinePaper) {
	for i, e := range events {
		from, to := float64(e.AtNs)/1e9, float64(e.AtNs+e.DurationNs)/1e9
		if to < x.lo || from > x.hi {
			continue
		}
		left, right := x.at(from), x.at(to)
		d.open("g", attrs{"class", "event", "data-text", eventText(e)})
		d.element("rect", attrs{"x", px(left - 1), "y", px(on.top), "width", px(math.Max(2, right-left+1)), "height", px(on.h - on.top - on.bottom)})
		d.text("number", "middle", (left+right)/2, on.h-on.bottom-4, strconv.Itoa(i+1))
		d.end("g")
	}
}

// eventText is an event with its time.
func eventText(e results.Event) string {
	text := digits(float64(e.AtNs)/1e9, 3) + " s"
	if e.DurationNs > 0 {
		text += ", for " + duration(float64(e.DurationNs))
	}
	return text + ": " + e.Kind + " – " + e.Text
}
