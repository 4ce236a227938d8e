package report

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/kbench/kbench/results"
)

// drawnProbe is one probe as drawn: the throughput it achieved and its p99.
type drawnProbe struct {
	place
	probe *results.Probe
}

// hold says whether the spot is the figure of the search.
func (s drawnProbe) hold() bool { return s.probe.Stage == results.StageHold && s.probe.Held }

// spots are the probes of a search with a throughput and a p99, by the rate asked for.
func (s search) spots() []drawnProbe {
	var all []drawnProbe
	for i := range s.data.Probes {
		p := &s.data.Probes[i]
		series := p.Run.Series[headline(&p.Run)]
		if series.Count > 0 && p.Run.Rates.MessagesPerSecond > 0 {
			all = append(all, drawnProbe{place{p.Run.Rates.MessagesPerSecond, float64(series.P99Ns)}, p})
		}
	}
	slices.SortStableFunc(all, func(a, b drawnProbe) int { return cmp.Compare(a.probe.AskedPerSecond, b.probe.AskedPerSecond) })
	return all
}

// look is that of the search's point.
func (s search) look() look { return lookOf(s.index) }

// drawable are the searches with at least two spots: one makes no curve.
func drawable(searches []search) []search {
	var shown []search
	for _, s := range searches {
		if len(s.spots()) > 1 {
			shown = append(shown, s)
		}
	}
	return shown
}

// capacityAxes are throughput across and p99 up, over all spots.
func capacityAxes(shown []search, on paper) (x, y axis) {
	var rates, tails []float64
	for _, s := range shown {
		for _, at := range s.spots() {
			rates, tails = append(rates, at.x), append(tails, at.y)
		}
	}
	return spanAxis(rates, on.left, on.w-on.right), logAxis(tails, on.h-on.bottom, on.top)
}

// capacitySeries names the series of the curves.
func capacitySeries(shown []search) string {
	return headline(&shown[0].data.Probes[0].Run) + " p99"
}

// capacityChart draws each search as a curve of the p99 over the throughput achieved: filled markers
// held, hollow ones did not, the hold run is the large one.
func capacityChart(shown []search, on paper) string {
	x, y := capacityAxes(shown, on)
	var d drawing
	d.begin(on.class()+" capacity", "Throughput against p99 of every probe", on.w, on.h, attrs{"data-x", x.attr(""), "data-y", y.attr("")})
	d.frame(x, y, x.ticks(on.ticksAcross(), short), y.ticks(ticksUp(y.from-y.to), shortDuration), "throughput achieved, msg/s", capacitySeries(shown)+" (log)")
	for _, s := range shown {
		index := strconv.Itoa(s.index)
		spots := s.spots()
		places := make([]place, len(spots))
		for i, at := range spots {
			places[i] = place{x.at(at.x), y.at(at.y)}
		}
		d.open("g", attrs{"data-p", index})
		d.curve("line", s.look(), places)
		d.end("g")
		for i, at := range spots {
			size := 4.5
			if at.hold() {
				size = 8
			}
			d.open("g", attrs{"data-p", index, "tabindex", "0", "class", "spot", "role", "img", "aria-label", s.spoken(at), "data-tip", s.tip(at)})
			d.marker(s.look(), places[i].x, places[i].y, size, !at.probe.Held, nil)
			d.end("g")
		}
	}
	return d.String()
}

// tip is what the page shows beside a spot.
func (s search) tip(at drawnProbe) string {
	text := at.probe.Stage + " " + strconv.Itoa(at.probe.Number) + ", " + quantity(at.probe.AskedPerSecond) + " msg/s asked\n" +
		quantity(at.x) + " msg/s\np99 " + duration(at.y)
	if s.title != "" {
		text = s.title + "\n" + text
	}
	if at.probe.Held {
		return text + "\n✓ held"
	}
	for _, reason := range first(at.probe.Reasons, 3) {
		text += "\n✗ " + reason
	}
	return text
}

// spoken is the tip for screen readers.
func (s search) spoken(at drawnProbe) string {
	return at.probe.Stage + " " + strconv.Itoa(at.probe.Number) + ", " + quantity(at.x) + " messages a second, p99 " + duration(at.y) + ", " +
		map[bool]string{true: "held", false: "did not hold"}[at.probe.Held]
}

// capacityPage is the section about the searches.
type capacityPage struct {
	Title    string
	Searches []searchPage
	Plot     *plotPage
	Lines    []labelled // agreement and scaling
}

// searchPage is one search in figures.
type searchPage struct {
	Title, Text string
	Held        bool
	Probes      *table
}

func newCapacityPage(v *view) *capacityPage {
	searches := v.searches()
	if len(searches) == 0 && len(v.scalability()) == 0 {
		return nil
	}
	p := &capacityPage{Title: "Capacity"}
	if len(searches) == 0 {
		p.Title = "Scaling"
	}
	for _, s := range searches {
		p.Searches = append(p.Searches, searchPage{Title: s.title, Text: capacityText(s.data), Held: s.data.Held(), Probes: probeTable(s.data)})
	}
	for _, line := range v.agreements() {
		p.Lines = append(p.Lines, labelled{"agreement", line})
	}
	for _, line := range v.scalability() {
		p.Lines = append(p.Lines, labelled{"scaling", line})
	}
	shown := drawable(searches)
	if len(shown) == 0 {
		return p
	}
	p.Plot = &plotPage{Note: "Each marker is a probe: filled ones held, hollow ones did not, the large one is the hold run whose figures are reported."}
	for _, on := range []paper{widePaper, narrowPaper} {
		p.Plot.Charts = append(p.Plot.Charts, template.HTML(capacityChart(shown, on)))
	}
	p.Plot.Numbers = table{Head: []string{"", "msg/s", "p99", ""}}
	seen := map[int]bool{}
	for _, s := range shown {
		if s.title != "" && !seen[s.index] {
			seen[s.index] = true
			p.Plot.Legend = append(p.Plot.Legend, legendEntry{Index: s.index, Name: v.points[s.index].label})
		}
		for _, at := range s.spots() {
			p.Plot.Numbers.Rows = append(p.Plot.Numbers.Rows, tableRow{Swatch: s.index, Strong: at.hold(),
				Cells: []string{at.probe.Stage + " " + strconv.Itoa(at.probe.Number), quantity(at.x), duration(at.y), probeText(at.probe)}})
		}
	}
	return p
}

// capacityPlot is the same as a picture of its own.
func capacityPlot(shown []search) *plot.Plot {
	x, y := capacityAxes(shown, paper{w: 1, h: 1})
	fig := newPlot("Throughput against p99 of every probe (hollow: did not hold, large: the hold run)", "throughput achieved, msg/s", capacitySeries(shown))
	for _, s := range shown {
		var places []place
		for _, at := range s.spots() {
			places = append(places, at.place)
		}
		line := addLine(fig, places, s.look().line(vg.Points(1.2)))
		for _, at := range s.spots() {
			glyph := s.look().glyph(!at.probe.Held)
			if at.hold() {
				glyph.Radius = vg.Points(7)
			}
			addGlyph(fig, at.place, glyph)
		}
		if s.title != "" && line != nil && len(shown) <= manyPoints {
			fig.Legend.Add(legendText(s.title), line)
		}
	}
	x.use(&fig.X, x.ticks(8, short))
	y.use(&fig.Y, y.ticks(6, shortDuration))
	return fig
}

// searchNames are the texts of the plot's legend.
func searchNames(shown []search) (names []string) {
	for _, s := range shown {
		if s.title != "" {
			names = append(names, s.title)
		}
	}
	return names
}
