package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/kbench/kbench/results"
)

// singlePage is everything about the only point.
type singlePage struct {
	Cards            []card
	Reasons, Warning []string
	Runs             []runPage
}

// card is a leading figure with its name below.
type card struct{ Value, Unit, Name, More string }

// runPage is one run in figures.
type runPage struct {
	Title      string // empty when it is the only one
	Invalid    bool
	Reasons    []string
	Facts      []labelled
	Latencies  *table
	Phases     *table // nil when there is only one
	Thresholds []thresholdLine
	Events     []string
}

type thresholdLine struct {
	Held bool
	Text string
}

// table is a plain table of figures.
type table struct {
	Caption string
	Head    []string
	Rows    []tableRow
}

// tableRow is a row; Swatch is the number of its look, or -1. Strong rows lead.
type tableRow struct {
	Swatch int
	Strong bool
	Cells  []string
}

func newSinglePage(p *point) *singlePage {
	s := &singlePage{Cards: cards(p), Reasons: p.reasons(), Warning: p.warnings()}
	for i := range p.data.Runs {
		run := newRunPage(&p.data.Runs[i])
		if len(p.data.Runs) > 1 {
			run.Title = fmt.Sprintf("Run %d", p.data.Runs[i].Repeat+1)
		}
		s.Runs = append(s.Runs, run)
	}
	return s
}

// cards are the figures people quote.
func cards(p *point) []card {
	run := p.used[0]
	more := ""
	if target := run.Rates.TargetMessagesPerSecond; target > 0 {
		more = share(p.rate.median/target) + " of " + quantity(target) + " asked for"
	} else if run.Loop == "closed" {
		more = "closed loop"
	}
	cs := []card{newCard("throughput, messages "+ackWord(run), quantity(p.rate.median)+" msg/s", p.rate, quantity, more)}
	if consumesOnly(run) {
		cs[0].Name = "throughput, messages received"
	} else {
		mb, mib := perSecond(p.bytes.median)
		cs = append(cs, newCard("of key and value bytes", mb, spread{}, nil, mib))
	}
	if p.headline != "" {
		for _, q := range []struct {
			name string
			s    spread
		}{{"p50", p.p50}, {"p99", p.p99}, {"p99.9", p.p999}, {"max", p.max}} {
			cs = append(cs, newCard(p.headline+" "+q.name, duration(q.s.median), q.s, duration, ""))
		}
	}
	return cs
}

func newCard(name, value string, s spread, format func(float64) string, more string) card {
	number, unit, _ := strings.Cut(value, " ")
	if format != nil && s.varies(format) {
		more = strings.TrimPrefix(more+" · "+s.ends(format), " · ")
	}
	return card{Value: number, Unit: unit, Name: name, More: more}
}

func newRunPage(run *results.Run) runPage {
	r := runPage{Invalid: !run.Verdict.Valid, Reasons: run.Verdict.Reasons}
	r.Facts = append(r.Facts, countFacts(run)...)
	r.Facts = append(r.Facts, labelled{"measured", duration(float64(run.ElapsedNs)) + ", " + run.Loop + " loop, from " + run.StartedAt.UTC().Format("15:04:05.000 UTC")})
	r.Facts = append(r.Facts, labelled{"generator", generatorLine(run.Generator)})
	if b := batchLine(run.Batches); b != "" {
		r.Facts = append(r.Facts, labelled{"batches", b})
	}
	r.Facts = append(r.Facts, insightFacts(run)...)
	for i, e := range errorsOf(run) {
		r.Facts = append(r.Facts, labelled{map[bool]string{true: "errors"}[i == 0], e})
	}
	r.Latencies, r.Phases = latencyTable(run), phaseTable(run)
	for _, th := range run.Thresholds {
		r.Thresholds = append(r.Thresholds, thresholdLine{th.Held, thresholdText(th)})
	}
	return r
}

// latencyTable has a row for each series of a run.
func latencyTable(run *results.Run) *table {
	t := &table{Caption: "Latency by series", Head: []string{"series", "count", "min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"}}
	lead := headline(run)
	for _, name := range seriesOf(run) {
		s := run.Series[name]
		cells := []string{name, count(s.Count)}
		for _, ns := range []int64{s.MinNs, s.MeanNs, s.P50Ns, s.P90Ns, s.P99Ns, s.P999Ns, s.P9999Ns, s.MaxNs} {
			cells = append(cells, duration(float64(ns)))
		}
		if s.Clamped > 0 {
			cells[0] += " (clamped " + count(s.Clamped) + ")"
		}
		t.Rows = append(t.Rows, tableRow{Swatch: -1, Strong: name == lead, Cells: cells})
	}
	return t
}

// sweepTable is the table of points, sortable by every column.
type sweepTable struct {
	Repeated bool
	Series   string
	Head     []column
	Points   []sweepRow
}

// column is a heading; Number columns stand to the right.
type column struct {
	Name, Title string
	Number      bool
}

// sweepRow is a point: its cells, and what to know about them.
type sweepRow struct {
	Index   int
	ID      string
	Invalid bool
	Cells   []cell
	Verdict badge
	Notes   []badge
	Width   int // columns in all
}

// cell is a figure with its value for sorting and the ends over runs.
type cell struct {
	Text, Ends, Sort string
	Number           bool
}

// mostSettings is how many swept keys get a column each; with more, points show their labels.
const mostSettings = 5

func newSweepTable(v *view) *sweepTable {
	keys := v.sweptKeys()
	t := &sweepTable{Repeated: v.repeated(), Series: strings.Join(v.headlines(), " or ")}
	if len(v.sources) > 1 {
		t.Head = append(t.Head, column{Name: "result"})
	}
	for _, key := range keys {
		t.Head = append(t.Head, column{Name: breakable(shortKey(key, keys)), Title: key})
	}
	if len(keys) == 0 {
		t.Head = append(t.Head, column{Name: "label"})
	}
	for _, name := range []string{"runs", "msg/s", "MB/s", "p50", "p99", "p99.9", "max", "errors", "cpu/msg"} {
		t.Head = append(t.Head, column{Name: name, Number: true})
	}
	for _, p := range v.points {
		t.Points = append(t.Points, newSweepRow(p, v, keys, len(t.Head)+2))
	}
	return t
}

func newSweepRow(p *point, v *view, keys []string, width int) sweepRow {
	r := sweepRow{Index: p.index, ID: p.id, Width: width, Verdict: verdictBadge(p), Invalid: p.ran() && p.invalid() == len(p.data.Runs)}
	if len(v.sources) > 1 {
		r.Cells = append(r.Cells, cell{Text: p.source.name, Sort: p.source.name})
	}
	for _, key := range keys {
		r.Cells = append(r.Cells, settingCell(p.data.Settings[key]))
	}
	if len(keys) == 0 {
		r.Cells = append(r.Cells, cell{Text: p.label, Sort: p.label})
	}
	r.Cells = append(r.Cells, cell{Text: strconv.Itoa(len(p.data.Runs)), Sort: strconv.Itoa(len(p.data.Runs)), Number: true})
	megabytes := func(v float64) string { return digits(v/1e6, 3) }
	for _, f := range []figure{{p.rate, quantity}, {p.bytes.alone(), megabytes}, {p.p50, duration}, {p.p99, duration}, {p.p999, duration},
		{p.max, duration}, {p.failed, errorShare}, {p.cpu, duration}} {
		r.Cells = append(r.Cells, figureCell(f))
	}
	for _, l := range findingsOf(p) {
		r.Notes = append(r.Notes, badge{map[string]string{bad: "bad", mild: "mild"}[l.Label], l.Text})
	}
	return r
}

func figureCell(f figure) cell {
	c := cell{Text: f.middle(), Number: true}
	if f.n > 0 {
		c.Sort = strconv.FormatFloat(f.median, 'g', 8, 64)
	}
	if f.varies(f.format) {
		c.Ends = f.ends(f.format)
	}
	return c
}

// verdictBadge is the verdict of a row.
func verdictBadge(p *point) badge {
	switch bads := p.invalid(); {
	case !p.ran():
		return badge{"mild", p.verdict()}
	case bads > 0:
		return badge{"bad", "✗ " + p.verdict()}
	case p.broken() > 0:
		return badge{"bad", "✗ threshold"}
	case len(p.warnings()) > 0:
		return badge{"mild", "✓ valid, warning"}
	}
	return badge{"good", "✓ valid"}
}

// sweptKeys are the keys of the points' settings, by name; none when there are too many for a
// column each.
func (v *view) sweptKeys() []string {
	var keys []string
	for _, p := range v.points {
		for key := range p.data.Settings {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) > mostSettings {
		return nil
	}
	slices.Sort(keys)
	return keys
}

// shortKey is the last part of a key, or all of it when another key ends like it.
func shortKey(key string, among []string) string {
	last := func(k string) string { return k[strings.LastIndexByte(k, '.')+1:] }
	for _, other := range among {
		if other != key && last(other) == last(key) {
			return key
		}
	}
	return last(key)
}

// breakable lets a key in a narrow heading go on in the next line before a capital or after a dot.
func breakable(key string) string {
	var b strings.Builder
	for _, r := range key {
		if unicode.IsUpper(r) {
			b.WriteRune('\u200b')
		}
		b.WriteRune(r)
		if r == '.' {
			b.WriteRune('\u200b')
		}
	}
	return b.String()
}

// settingText is a setting's value as people write it.
func settingText(v any) string {
	switch s := v.(type) {
	case nil:
		return "–"
	case string:
		return s
	case float64:
		return strconv.FormatFloat(s, 'f', -1, 64)
	}
	return jsonText(v)
}

func settingCell(v any) cell {
	text := settingText(v)
	return cell{Text: text, Sort: text}
}

// plotPage is a plot with its numbers.
type plotPage struct {
	Charts  []template.HTML
	Legend  []legendEntry
	Invalid []string // points whose figures cannot be trusted, with the reasons
	Note    string
	Numbers table
}

// legendEntry is a line of a legend, which hides and shows what it names.
type legendEntry struct {
	Index      int
	Name, Mark string
}
