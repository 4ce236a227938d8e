package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/kbench/kbench/results"
)

func newFrontierPage(v *view) *plotPage {
	shown := plottable(v.points)
	if len(shown) < 2 {
		return nil
	}
	p := &plotPage{Invalid: invalidLines(shown), Legend: legend(shown)}
	for _, on := range papers(len(shown)) {
		p.Charts = append(p.Charts, framed(frontierChart(shown, on), on))
	}
	p.Note = "Down and to the right is better."
	if len(frontier(shown)) > 1 {
		p.Note += " The grey line joins the valid points that no other beats in both (Pareto's front)."
	}
	if v.repeated() {
		p.Note += " Small dots are the runs."
	}
	if len(v.headlines()) > 1 {
		p.Note += " Points are of different series (" + strings.Join(v.headlines(), ", ") + "), which do not compare."
	}
	p.Numbers = table{Head: []string{"point", "msg/s", "least", "most", "p99", "least", "most", "front"}}
	front := v.front()
	for _, pt := range shown {
		p.Numbers.Rows = append(p.Numbers.Rows, tableRow{Swatch: pt.index, Cells: []string{pt.id,
			quantity(pt.rate.median), quantity(pt.rate.min), quantity(pt.rate.max),
			duration(pt.p99.median), duration(pt.p99.min), duration(pt.p99.max), map[bool]string{true: "●"}[front[pt]]}})
	}
	return p
}

func newPercentilesPage(v *view) *plotPage {
	traces := v.traces()
	if len(traces) == 0 {
		return nil
	}
	p := &plotPage{Invalid: invalidLines(v.ran())}
	title := strings.Join(v.headlines(), " / ") + " (log)"
	if v.single() != nil {
		title = "latency (log)"
		for _, t := range traces {
			p.Legend = append(p.Legend, legendEntry{Index: t.index, Name: t.name})
		}
	} else {
		p.Legend = legend(v.ran())
	}
	for _, on := range papers(len(traces)) {
		if chart := percentileChart(traces, title, on); chart != "" {
			p.Charts = append(p.Charts, framed(chart, on))
		}
	}
	p.Note = "Each nine takes the same room. A curve ends where a single message is left."
	if v.repeated() {
		p.Note += " The valid runs of a point are merged (all of them when none is valid)."
	}
	p.Numbers = percentileNumbers(traces)
	return p
}

func percentileNumbers(traces []trace) table {
	t := table{Head: []string{""}}
	for _, l := range tableLevels {
		t.Head = append(t.Head, l.name)
	}
	t.Head = append(t.Head, "slowest drawn")
	for _, tr := range traces {
		cells := []string{tr.name}
		for _, l := range tableLevels {
			cells = append(cells, knownDuration(valueAt(tr.levels, l.at)))
		}
		last := math.NaN()
		if n := len(tr.levels); n > 0 {
			last = tr.levels[n-1].ns
		}
		t.Rows = append(t.Rows, tableRow{Swatch: tr.index, Cells: append(cells, knownDuration(last))})
	}
	return t
}

func legend(points []*point) []legendEntry {
	var entries []legendEntry
	for _, p := range points {
		e := legendEntry{Index: p.index, Name: pointTitle(p)}
		if n := p.invalid(); n > 0 {
			e.Mark = p.verdict()
		}
		entries = append(entries, e)
	}
	return entries
}

// invalidLines say beside a plot which of its figures cannot be trusted, and why.
func invalidLines(points []*point) []string {
	var lines []string
	for _, p := range points {
		for _, reason := range p.reasons() {
			lines = append(lines, p.id+": "+reason)
		}
	}
	return first(lines, 12)
}

func knownDuration(ns float64) string {
	if math.IsNaN(ns) {
		return "–"
	}
	return duration(ns)
}

func known(v float64, format func(float64) string) string {
	if math.IsNaN(v) {
		return "–"
	}
	return format(v)
}

// timelinePage is one run over time.
type timelinePage struct {
	Index    int
	Title    string
	Anchor   string
	Invalid  []string
	Charts   []template.HTML
	Events   []string
	File     string
	Numbers  table
	Expanded bool // shown at once, for it is the only one
}

// newTimelinePages draws the runs. The notes say what is left out for size, and what the lines are.
func newTimelinePages(v *view) (pages []timelinePage, notes []string) {
	points := v.ran()
	runs := v.tally().runs
	all := runs <= timelineLimit
	each := portion(momentBudget, min(runs, timelineLimit), leastMoments, mostMoments)
	if !all {
		each = portion(momentBudget, min(len(points), timelineLimit), leastMoments, mostMoments)
	}
	single := v.single() != nil && runs == 1
	small := smallTimeline
	small.coarse = runs > manyTimelines
	thinned := 1
	for _, p := range points {
		for _, run := range p.drawn(all) {
			if len(pages) == timelineLimit {
				break
			}
			t := p.timeline(run, each)
			if len(t.moments) > 0 {
				pages = append(pages, newTimelinePage(p, run, t, single, small))
				thinned = max(thinned, t.each)
			}
		}
	}
	if !all {
		notes = append(notes, fmt.Sprintf("%d of %s are drawn, for each point the one with the middle p99, to keep this file small; the timelines of all runs are beside it as CSV.", len(pages), plural(runs, "run")))
	}
	if small.coarse && len(pages) > 0 {
		notes = append(notes, "Times are since the start of the measured phase. Bold: p99, thin: p50, dotted: the slowest. In the rates, thin and dotted: received, dashed: asked for.")
	}
	if thinned > 1 {
		notes = append(notes, fmt.Sprintf("A step stands for up to %d windows: their mean rate, the median of their p50, the worst of all else.", thinned))
	}
	return pages, notes
}

func newTimelinePage(p *point, run *results.Run, t timeline, single bool, small timelinePaper) timelinePage {
	tp := timelinePage{Index: p.index, Title: p.id, File: run.Timeline, Expanded: single, Numbers: timelineNumbers(t)}
	if len(p.data.Runs) > 1 {
		tp.Title += fmt.Sprintf(" · run %d", run.Repeat+1)
	}
	if p.label != p.id && p.label != "" {
		tp.Title += " · " + p.label
	}
	if !run.Verdict.Valid {
		tp.Invalid = run.Verdict.Reasons
		if len(tp.Invalid) == 0 {
			tp.Invalid = []string{"no reason was recorded"}
		}
	}
	papers := []timelinePaper{small}
	if single {
		papers = []timelinePaper{wideTimeline, narrowTimeline}
	}
	for _, on := range papers {
		chart := timelineChart(t, "Timeline of "+p.id, on)
		if !single {
			chart = smallChart(chart)
		}
		tp.Charts = append(tp.Charts, template.HTML(chart))
	}
	for i, e := range run.Events {
		tp.Events = append(tp.Events, fmt.Sprintf("%d. %s", i+1, eventText(e)))
	}
	return tp
}

// timelineNumbers are the moments as drawn. The script reads the times off the first column.
func timelineNumbers(t timeline) table {
	n := table{Head: []string{"s", "msg/s", "p50", "p99", "max"}}
	lag := t.known(func(m moment) float64 { return m.lag })
	failed := t.known(func(m moment) float64 { return m.failed })
	if t.consumes {
		n.Head = append(n.Head, "received/s")
	}
	if lag {
		n.Head = append(n.Head, "lag")
	}
	if lag {
		for _, name := range t.partitions {
			n.Head = append(n.Head, "lag of "+name)
		}
	}
	if failed {
		n.Head = append(n.Head, "failed")
	}
	n.Head = append(n.Head, "lateness")
	rss := t.known(func(m moment) float64 { return m.rss })
	if rss {
		n.Head = append(n.Head, "memory")
	}
	for _, m := range t.moments {
		cells := []string{trimZeros(fmt.Sprintf("%.3f", m.at)), quantity(m.rate), knownDuration(m.p50), knownDuration(m.p99), knownDuration(m.max)}
		if t.consumes {
			cells = append(cells, quantity(m.received))
		}
		if lag {
			cells = append(cells, known(m.lag, quantity))
			for i := range t.partitions {
				v := math.NaN()
				if i < len(m.lags) {
					v = m.lags[i]
				}
				cells = append(cells, known(v, quantity))
			}
		}
		if failed {
			cells = append(cells, known(m.failed, quantity))
		}
		cells = append(cells, knownDuration(m.lateness))
		if rss {
			cells = append(cells, known(m.rss, func(v float64) string { return memory(int64(v)) }))
		}
		n.Rows = append(n.Rows, tableRow{Swatch: -1, Cells: cells})
	}
	return n
}

// jsonText is a value in JSON, or what Go prints when there is no JSON for it.
func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
