package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"

	"github.com/kbench/kbench/results"
)

// heatPage is the latencies of one run over time, step by step.
type heatPage struct {
	Index   int
	Title   string
	Invalid []string
	Charts  []template.HTML
	Shades  []shadeKey
	Events  []string
	Numbers table
}

// shadeKey is an entry of the legend of shades.
type shadeKey struct {
	Class int
	Text  string
}

// heatSection is all heat maps of a report.
type heatSection struct {
	Note     string
	Pages    []heatPage
	Expanded bool
}

// heatLimit is how many heat maps a report has room for; plots/ has that of every point.
const heatLimit = 12

// heatPaper is shared by the wide and the small form.
var (
	wideHeat   = paper{w: 960, h: 360, left: 66, right: 20, top: 34, bottom: 46}
	narrowHeat = paper{w: 360, h: 300, left: 54, right: 12, top: 34, bottom: 44, narrow: true}
	smallHeat  = paper{w: 460, h: 250, left: 60, right: 12, top: 34, bottom: 44}
)

// newHeatSection draws a run of each point, that with the middle p99; every run of the only point.
func newHeatSection(v *view) *heatSection {
	s := &heatSection{Expanded: v.single() != nil}
	points := v.heated()
	for _, p := range points {
		for _, run := range p.drawn(s.Expanded) {
			if len(s.Pages) == heatLimit {
				break
			}
			if page, ok := newHeatPage(p, run, s.Expanded); ok {
				s.Pages = append(s.Pages, page)
			}
		}
	}
	if len(s.Pages) == 0 {
		return nil
	}
	s.Note = "The stronger a shade, the more messages of a step fell into a band of latency, by the logarithm of the count. A faint cell far up is a few slow messages."
	if left := len(v.ran()) - len(points); left > 0 {
		s.Note += fmt.Sprintf(" To keep this file small %d points are drawn, those that no other beats first; plots/ has all of them.", len(points))
	}
	return s
}

// heated are the points whose heat maps are in the page: all, or as many as there is room for.
func (v *view) heated() []*point {
	points := v.ran()
	if len(points) <= heatLimit {
		return points
	}
	best := v.front()
	slices.SortStableFunc(points, func(a, b *point) int {
		return rankOf(best[b]) - rankOf(best[a])
	})
	chosen := points[:heatLimit]
	slices.SortFunc(chosen, func(a, b *point) int { return a.index - b.index })
	return chosen
}

// front are the points on the front of throughput against p99.
func (v *view) front() map[*point]bool {
	on := map[*point]bool{}
	if shown := plottable(v.points); len(shown) > 1 {
		for _, p := range frontierPoints(shown) {
			on[p] = true
		}
	}
	return on
}

func rankOf(first bool) int {
	if first {
		return 1
	}
	return 0
}

func newHeatPage(p *point, run *results.Run, single bool) (heatPage, bool) {
	page := heatPage{Index: p.index, Title: pointTitle(p)}
	if len(p.data.Runs) > 1 {
		page.Title += fmt.Sprintf(" · run %d", run.Repeat+1)
	}
	if !run.Verdict.Valid {
		page.Invalid = run.Verdict.Reasons
	}
	all := p.intervals(run)
	forms := []struct {
		paper
		steps, bands int
	}{{smallHeat, portion(heatBudget, len(p.source.result.Points), leastHeatSteps, smallHeatSteps), smallHeatBands}}
	if single {
		forms[0].paper, forms[0].steps, forms[0].bands = wideHeat, mostHeatSteps, mostHeatBands
		forms = append(forms, forms[0])
		forms[1].paper, forms[1].steps, forms[1].bands = narrowHeat, narrowHeatSteps, narrowHeatBands
	}
	for i, form := range forms {
		h := newHeat(all, form.steps, form.bands)
		if h == nil {
			return page, false
		}
		h.series, h.events = p.headline, run.Events
		chart := heatChart(h, "Latencies of "+p.id+" over time", form.paper)
		if !single {
			chart = smallChart(chart)
		}
		page.Charts = append(page.Charts, template.HTML(chart))
		if i == 0 {
			page.Shades, page.Numbers = shadeKeys(h.most()), heatNumbers(h)
		}
	}
	for i, e := range run.Events {
		page.Events = append(page.Events, fmt.Sprintf("%d. %s", i+1, eventText(e)))
	}
	return page, true
}

// shadeKeys say how many messages each shade stands for.
func shadeKeys(most int64) []shadeKey {
	least := heatSteps(most)
	keys := make([]shadeKey, len(least))
	for i, from := range least {
		to := most
		if i+1 < len(least) {
			to = least[i+1] - 1
		}
		keys[i] = shadeKey{shadeClass(i, len(least)), count(from)}
		if to > from {
			keys[i].Text += "–" + count(to)
		}
	}
	return keys
}

// heatNumbers has a row for each step and a column for each band. The script reads counts off it.
func heatNumbers(h *heat) table {
	t := table{Head: []string{"s"}}
	for i := range len(h.edges) - 1 {
		t.Head = append(t.Head, duration(h.edges[i])+"–"+duration(h.edges[i+1]))
	}
	for i, bands := range h.counts {
		cells := []string{trimZeros(strconv.FormatFloat(h.from+h.step*float64(i), 'f', 3, 64))}
		for _, n := range bands {
			text := ""
			if n > 0 {
				text = strconv.FormatInt(n, 10)
			}
			cells = append(cells, text)
		}
		t.Rows = append(t.Rows, tableRow{Swatch: -1, Cells: cells})
	}
	return t
}
