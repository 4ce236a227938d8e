package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/kbench/kbench/results"
)

//go:embed templates
var templates embed.FS

var pageTemplate = template.Must(template.New("report.html").Funcs(template.FuncMap{
	"use": useSwatch, "dur": func(ns int64) string { return duration(float64(ns)) }, "count": count,
}).ParseFS(templates, "templates/*.html"))

// HTML writes the report of a result as one file that needs nothing else: no network, no fonts,
// and no script to be read (the script adds pointing, hiding and sorting). Curves and timelines
// are read from dir, which may be nil; see Named. The errors are those of w.
func HTML(w io.Writer, r *results.Result, dir *results.Dir) error {
	return writeHTML(w, newView(Named{Dir: dir, Result: r}))
}

func writeHTML(w io.Writer, v *view) error {
	data, err := newPage(v)
	if err != nil {
		return err
	}
	if err := pageTemplate.ExecuteTemplate(w, "report.html", data); err != nil {
		return fmt.Errorf("writing the HTML report: %w", err)
	}
	return nil
}

// page is what the template fills in.
type page struct {
	Title, Subtitle string
	Policy          string // what the browser may load: nothing but what is in the page
	Style           template.CSS
	Script          template.JS
	Swatches        template.HTML
	Descriptions    []string
	Badges          []badge
	Banners, Notes  []string
	Unread          []string // what could not be read
	Ceilings        []labelled
	CeilingNote     string
	Capacity        *capacityPage
	Single          *singlePage
	Table           *sweepTable
	Ranking         *rankingPage
	Frontier        *plotPage
	Matrix          *plotPage
	Effects         *plotPage
	Repeats         *plotPage
	Percentiles     *plotPage
	Heats           *heatSection
	Timelines       []timelinePage
	TimelineNotes   []string
	Sources         []sourcePage
}

// badge is a short verdict: Kind is good, bad or mild.
type badge struct{ Kind, Text string }

func newPage(v *view) (*page, error) {
	d, err := newPageFrame(v)
	if err != nil {
		return nil, err
	}
	d.fill(v)
	d.addSources(v)
	return d, nil
}

// newPageFrame is a page without figures: what it is about, how it looks, what to know first.
func newPageFrame(v *view) (*page, error) {
	style, err := templates.ReadFile("templates/report.css")
	if err != nil {
		return nil, fmt.Errorf("reading the report's style sheet: %w", err)
	}
	script, err := templates.ReadFile("templates/report.js")
	if err != nil {
		return nil, fmt.Errorf("reading the report's script: %w", err)
	}
	hash := sha256.Sum256(script)
	d := &page{
		Policy: "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'",
		Style:  template.CSS(hueStyle() + string(style)), Script: template.JS(script),
		Title: v.title(), Subtitle: v.subtitle(), Badges: badges(v.tally()), Notes: append(v.origins(), v.notes()...),
	}
	for _, src := range v.sources {
		if text := src.result.Workload.Description; text != "" {
			d.Descriptions = append(d.Descriptions, text)
		}
	}
	t := v.tally()
	if t.embedded {
		d.Banners = append(d.Banners, noteEmbedded)
	}
	if t.interrupted {
		d.Banners = append(d.Banners, "not finished: what was measured until then is all here")
	}
	return d, nil
}

// addSources says where the figures come from, and what of it could not be read.
func (d *page) addSources(v *view) {
	for _, src := range v.sources {
		d.Unread = append(d.Unread, src.notes...)
		d.Sources = append(d.Sources, newSourcePage(src))
	}
}

// fill adds the figures and the plots.
func (d *page) fill(v *view) {
	d.Swatches = swatches(max(len(v.points), 8))
	for _, src := range v.sources {
		d.Ceilings = append(d.Ceilings, ceilingFacts(src.result)...)
	}
	d.CeilingNote, d.Capacity = ceilingNote, newCapacityPage(v)
	if p := v.single(); p != nil {
		d.Single = newSinglePage(p)
	} else if t := v.tally(); t.runs > 0 || t.searches == 0 { // a search that found nothing has said so
		d.Table = newSweepTable(v)
		d.Ranking, d.Frontier, d.Matrix, d.Effects = newRankingPage(v), newFrontierPage(v), newMatrixPage(v), newEffectsPage(v)
	}
	d.Repeats, d.Percentiles = newRepeatsPage(v), newPercentilesPage(v)
	d.Heats = newHeatSection(v)
	d.Timelines, d.TimelineNotes = newTimelinePages(v)
}

// title names what was run.
func (v *view) title() string {
	var names []string
	for _, src := range v.sources {
		names = append(names, src.name)
	}
	return strings.Join(names, ", ")
}

// subtitle is that of the terminal; several results have their own in their sections.
func (v *view) subtitle() string {
	if len(v.sources) == 1 {
		return subtitle(v)
	}
	t := v.tally()
	return plural(len(v.sources), "result") + " · " + plural(t.points, "point") + " · " + plural(t.runs, "run")
}

// badges sum up the verdicts.
func badges(t tally) []badge {
	var bs []badge
	switch {
	case t.searches > 0 && t.found == t.searches && t.atLeast > 0:
		bs = append(bs, badge{"mild", "≥ capacity: a lower bound"})
	case t.searches > 0 && t.found == t.searches:
		bs = append(bs, badge{"good", "✓ capacity found"})
	case t.searches > 1 && t.found > 0:
		bs = append(bs, badge{"bad", fmt.Sprintf("✗ capacity found in %d of %d searches", t.found, t.searches)})
	case t.searches > 0:
		bs = append(bs, badge{"bad", "✗ no capacity found"})
	}
	switch {
	case t.runs == 0 && t.searches > 0:
	case t.runs == 0:
		bs = append(bs, badge{"mild", "nothing was run"})
	case t.invalid == 0 && t.runs == 1:
		bs = append(bs, badge{"good", "✓ VALID"})
	case t.invalid == 0:
		bs = append(bs, badge{"good", fmt.Sprintf("✓ VALID – all %s", plural(t.runs, "run"))})
	case t.runs == 1:
		bs = append(bs, badge{"bad", "✗ INVALID"})
	default:
		bs = append(bs, badge{"bad", fmt.Sprintf("✗ INVALID – %d of %s", t.invalid, plural(t.runs, "run"))})
	}
	if t.broken > 0 {
		bs = append(bs, badge{"bad", "✗ threshold broken in " + plural(t.broken, "run")})
	}
	if t.skipped > 0 && t.runs > 0 {
		bs = append(bs, badge{"mild", plural(t.skipped, "point") + " not run"})
	}
	return bs
}

// hueStyle gives the classes of the palette their colours, for light and dark grounds and paper.
func hueStyle() string {
	var light, dark, classes strings.Builder
	for i, h := range palette {
		fmt.Fprintf(&light, "--c%d:%s;", i, h.light)
		fmt.Fprintf(&dark, "--c%d:%s;", i, h.dark)
		fmt.Fprintf(&classes, ".c%d{color:var(--c%d)}\n", i, i)
	}
	for i, h := range shades {
		fmt.Fprintf(&light, "--h%d:%s;--i%d:%s;", i, h.light, i, shadeInk(i, false))
		fmt.Fprintf(&dark, "--h%d:%s;--i%d:%s;", i, h.dark, i, shadeInk(i, true))
		fmt.Fprintf(&classes, "rect.h%d{fill:var(--h%d)}path.h%d{stroke:var(--h%d)}i.h%d{background:var(--h%d)}.chart .on%d{fill:var(--i%d)}\n", i, i, i, i, i, i, i, i)
	}
	return ":root{" + light.String() + "}\n@media screen and (prefers-color-scheme:dark){:root{" + dark.String() + "}}\n" + classes.String()
}

// swatches defines the keys of the first n looks, to be used by number.
func swatches(n int) template.HTML {
	var b strings.Builder
	b.WriteString(`<svg class="defs" aria-hidden="true"><defs>`)
	for i := range n {
		b.WriteString(swatch(i, lookOf(i)))
	}
	return template.HTML(b.String() + "</defs></svg>")
}

func useSwatch(i int) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="swatch" aria-hidden="true"><use href="#k%d"/></svg>`, i))
}
