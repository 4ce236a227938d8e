package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kbench/kbench/results"
)

// search is one capacity search in a report.
type search struct {
	index int    // of its point in the report, which decides its look
	title string // of its point, and which search of several; empty when it is the only one
	data  *results.Capacity
}

// searches are those of all results, in order.
func (v *view) searches() []search {
	var all []search
	several := map[string]int{}
	for _, src := range v.sources {
		for i := range src.result.Capacity {
			c := &src.result.Capacity[i]
			index, title := v.pointOf(src, c.Point)
			several[title]++
			all = append(all, search{index: index, title: title, data: c})
		}
	}
	for i := range all {
		if several[all[i].title] > 1 {
			all[i].title += fmt.Sprintf(" · search %d", all[i].data.Repeat+1)
		}
	}
	if len(all) == 1 {
		all[0].title = ""
	}
	return all
}

// pointOf is the place of a source's point in the report, and how it is called.
func (v *view) pointOf(src *source, id string) (index int, title string) {
	for _, p := range v.points {
		if p.source == src && p.data.ID == id {
			return p.index, pointTitle(p)
		}
	}
	return 0, id // a result that was tampered with
}

// capacityText is what a search has found, in a sentence.
func capacityText(c *results.Capacity) string {
	objective := strings.Join(c.Objectives, ", ")
	switch c.Outcome {
	case results.CapacityFound:
		text := fmt.Sprintf("%s msg/s held %s with %s", quantity(c.MessagesPerSecond), heldFor(c), objective)
		if c.UpperPerSecond > 0 {
			text += "; " + quantity(c.UpperPerSecond) + " msg/s did not hold"
		}
		const narrow = 1.025 // the search's 2 %, and what rounding adds
		if c.AskedPerSecond > 0 && c.UpperPerSecond/c.AskedPerSecond > narrow {
			text += fmt.Sprintf(" (%.0f %% above: more --probes would narrow that down)", 100*(c.UpperPerSecond/c.AskedPerSecond-1))
		}
		return text
	case results.CapacityCeiling:
		return fmt.Sprintf("at least %s msg/s, held %s with %s: that is this generator's ceiling, no higher rate was asked for, and the cluster may do more",
			quantity(c.MessagesPerSecond), heldFor(c), objective)
	case results.CapacityGenerator:
		return fmt.Sprintf("at least %s msg/s, held %s with %s: at %s msg/s the generator, not the cluster, gave out (%s), and the cluster may do more",
			quantity(c.MessagesPerSecond), heldFor(c), objective, quantity(c.UpperPerSecond), c.Generator)
	case results.CapacityProbes:
		return fmt.Sprintf("at least %s msg/s, held %s with %s: every probe held until they were used up; begin with a higher --rate or allow more --probes",
			quantity(c.MessagesPerSecond), heldFor(c), objective)
	case results.CapacityNothing:
		return fmt.Sprintf("none: no rate that was probed (%s msg/s) held %s", probedRates(c), objective) + generatorText(c)
	case results.CapacityUnconfirmed:
		return fmt.Sprintf("no figure: probes held up to %s msg/s with %s, but no hold run did", quantity(highestHeld(c)), objective) + generatorText(c)
	}
	return fmt.Sprintf("not finished: %s probed, %s msg/s the highest that held %s", plural(len(c.Probes), "rate"), quantity(highestHeld(c)), objective)
}

// generatorText says whose doing it was that nothing held, if it was the generator's.
func generatorText(c *results.Capacity) string {
	if c.Generator == "" {
		return ""
	}
	return "; that says nothing of the cluster: the generator gave out (" + c.Generator + ")"
}

// heldFor is how long the hold run took.
func heldFor(c *results.Capacity) string {
	for i := range c.Probes {
		if p := &c.Probes[i]; p.Stage == results.StageHold && p.Held {
			return "for " + duration(float64(p.Run.ElapsedNs))
		}
	}
	return "in the hold run"
}

// probedRates are the lowest and the highest rate probed.
func probedRates(c *results.Capacity) string {
	var all []float64
	for i := range c.Probes {
		all = append(all, c.Probes[i].AskedPerSecond)
	}
	if s := spreadOf(all); s.varies(quantity) {
		return quantity(s.min) + " to " + quantity(s.max)
	}
	return quantity(spreadOf(all).median)
}

func highestHeld(c *results.Capacity) float64 {
	highest := 0.0
	for i := range c.Probes {
		if p := &c.Probes[i]; p.Held {
			highest = max(highest, p.AskedPerSecond)
		}
	}
	return highest
}

// agreements say how far the searches of one point agree.
func (v *view) agreements() []string {
	var order []string
	figures := map[string][]float64{}
	for _, src := range v.sources {
		for i := range src.result.Capacity {
			c := &src.result.Capacity[i]
			_, title := v.pointOf(src, c.Point)
			if !slices.Contains(order, title) {
				order = append(order, title)
			}
			if c.Held() && c.Outcome != results.CapacityGenerator { // how far the cluster's agree
				figures[title] = append(figures[title], c.MessagesPerSecond)
			}
		}
	}
	var lines []string
	for _, title := range order {
		s := spreadOf(figures[title])
		if s.n < 2 {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: median %s msg/s of %d searches, %s apart (%s)", title, quantity(s.median),
			s.n, share((s.max-s.min)/s.median), s.ends(quantity)))
	}
	return lines
}

// probeTable has a row for each run of a search.
func probeTable(c *results.Capacity) *table {
	t := &table{Caption: "Probes", Head: []string{"run", "asked msg/s", "achieved", "p50", "p99", "p99.9", ""}}
	for i := range c.Probes {
		p := &c.Probes[i]
		s := p.Run.Series[headline(&p.Run)]
		cells := []string{fmt.Sprintf("%s %d", p.Stage, p.Number), quantity(p.AskedPerSecond), quantity(p.Run.Rates.MessagesPerSecond)}
		for _, ns := range []int64{s.P50Ns, s.P99Ns, s.P999Ns} {
			if s.Count == 0 {
				cells = append(cells, "–")
			} else {
				cells = append(cells, duration(float64(ns)))
			}
		}
		t.Rows = append(t.Rows, tableRow{Swatch: -1, Strong: p.Stage == results.StageHold && p.Held, Cells: append(cells, probeText(p))})
	}
	return t
}

// probeText is what came of a probe.
func probeText(p *results.Probe) string {
	if p.Held {
		return "✓ held"
	}
	return "✗ " + strings.Join(p.Reasons, "; ")
}

// capacities prints what the searches found, and where adding producers stops helping.
func (t *terminal) capacities(v *view) {
	searches, scaling := v.searches(), v.scalability()
	for _, s := range searches {
		if s.title != "" {
			t.fact("", bold, s.title)
		}
		code := bad
		if s.data.Held() {
			code = good
		}
		t.fact("capacity", code, capacityText(s.data))
		table := probeTable(s.data)
		rows := [][]string{table.Head}
		for _, r := range table.Rows {
			rows = append(rows, slices.Clone(r.Cells))
		}
		t.fitLast(rows)
		t.table(rows, func(row int) string {
			if row > 0 && table.Rows[row-1].Strong {
				return bold
			}
			return ""
		})
		t.println("")
	}
	for _, line := range v.agreements() {
		t.fact("agreement", "", line)
	}
	for _, line := range scaling {
		t.fact("scaling", bold, line)
	}
	if len(searches) > 0 && len(v.ran()) > 0 {
		t.fact("", faint, "the figures below are those of the hold runs")
	}
	if len(searches)+len(scaling) > 0 {
		t.println("")
	}
}

// fitLast cuts the last cell of each row so that the table keeps to the width.
func (t *terminal) fitLast(rows [][]string) {
	last := len(rows[0]) - 1
	room := t.width - 2
	for i := range last {
		widest := 0
		for _, row := range rows {
			widest = max(widest, columns.StringWidth(row[i]))
		}
		room -= widest + 2
	}
	widest := 0
	for _, row := range rows {
		row[last] = clip(printable(row[last]), max(room, 8))
		widest = max(widest, columns.StringWidth(row[last]))
	}
	for _, row := range rows {
		row[last] = pad(row[last], widest) // to the left: it is text
	}
}

// capacities writes the searches of all results.
func (m *markdown) capacities(v *view) {
	for _, s := range v.searches() {
		title := "Capacity"
		if s.title != "" {
			title += " – " + s.title
		}
		m.line("## " + md(title))
		m.line("**" + md(capacityText(s.data)) + "**")
		var rows [][]string
		table := probeTable(s.data)
		for _, r := range table.Rows {
			rows = append(rows, r.Cells)
		}
		m.table(table.Head, 1, rows)
	}
	m.list(v.agreements())
	m.list(v.scalability())
}
