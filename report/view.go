package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kbench/kbench/results"
)

// Named is one of several results in a report.
type Named struct {
	// Name goes before the identifiers and labels of the result's points. It must differ from
	// the other names of the report; empty with a single result.
	Name string
	// Dir is where logs and timelines are read from. Without one the report has neither
	// percentile curves between the known quantiles nor timelines, and says so.
	Dir    *results.Dir
	Result *results.Result
}

// source is a result inside a report.
type source struct {
	name   string // of the workload, or as given for one of several
	result *results.Result
	dir    *results.Dir
	notes  []string // what could not be read, in order
}

// note adds to what could not be read. The first few are enough to say what is wrong.
func (s *source) note(format string, args ...any) {
	const most = 8
	switch {
	case len(s.notes) < most:
		s.notes = append(s.notes, fmt.Sprintf(format, args...))
	case len(s.notes) == most:
		s.notes = append(s.notes, "… and more that could not be read")
	}
}

// view is what a report shows: one or several results and their points in one order.
type view struct {
	sources []*source
	points  []*point
	curves  []trace // once read, for reading logs takes the longest
	read    bool
}

// newView arranges results for showing. Points keep the order of their results, which decides
// how they are drawn.
func newView(several ...Named) *view {
	v := &view{}
	for _, one := range several {
		src := &source{name: one.Name, result: one.Result, dir: one.Dir}
		if src.name == "" {
			src.name = one.Result.Workload.Name
		}
		v.sources = append(v.sources, src)
		for i := range one.Result.Points {
			p := newPoint(len(v.points), src, &one.Result.Points[i])
			if one.Name != "" {
				p.prefix(one.Name)
			}
			v.points = append(v.points, p)
		}
	}
	return v
}

// prefix marks the point as one of a named result.
func (p *point) prefix(name string) {
	p.id = name + "/" + p.id
	if p.data.Label == "" {
		p.label = name
		return
	}
	p.label = name + ": " + p.data.Label
}

// ran are the points with runs.
func (v *view) ran() []*point {
	var ps []*point
	for _, p := range v.points {
		if p.ran() {
			ps = append(ps, p)
		}
	}
	return ps
}

// single is the only point of the report, or nil when there are more (or none that ran).
func (v *view) single() *point {
	if len(v.points) == 1 && v.points[0].ran() {
		return v.points[0]
	}
	return nil
}

// repeated says whether any point has several runs.
func (v *view) repeated() bool {
	for _, p := range v.points {
		if len(p.data.Runs) > 1 {
			return true
		}
	}
	return false
}

// tally counts runs by what became of them.
type tally struct {
	points, runs, invalid, skipped int
	conditions, broken             int // thresholds, and runs in which one did not hold
	searches, found, atLeast       int // of capacity, those that found one, and of these those that found a lower bound
	embedded, interrupted          bool
}

func (v *view) tally() tally {
	var t tally
	for _, src := range v.sources {
		t.embedded = t.embedded || src.result.Provenance.Cluster.Embedded
		t.interrupted = t.interrupted || src.result.Interrupted
		t.searches += len(src.result.Capacity)
		for i := range src.result.Capacity {
			if src.result.Capacity[i].Held() {
				t.found++
			}
			if src.result.Capacity[i].AtLeast() {
				t.atLeast++
			}
		}
	}
	for _, p := range v.points {
		t.points++
		t.runs += len(p.data.Runs)
		t.invalid += p.invalid()
		t.broken += p.broken()
		for i := range p.data.Runs {
			t.conditions += len(p.data.Runs[i].Thresholds)
		}
		if !p.ran() {
			t.skipped++
		}
	}
	return t
}

// headlines are the headline series of the points, in order of appearance.
func (v *view) headlines() []string {
	var names []string
	for _, p := range v.points {
		if p.headline != "" && !slices.Contains(names, p.headline) {
			names = append(names, p.headline)
		}
	}
	return names
}

// notes are the notes of all runs, each once, with the points they are about unless that is all.
func (v *view) notes() []string {
	var order []string
	about := map[string][]string{}
	ran := v.ran()
	for _, p := range ran {
		var notes []string
		for i := range p.data.Runs {
			notes = append(notes, notesOf(&p.data.Runs[i])...)
		}
		slices.Sort(notes)
		for _, n := range slices.Compact(notes) {
			if about[n] == nil {
				order = append(order, n)
			}
			about[n] = append(about[n], p.id)
		}
	}
	for i, n := range order {
		if len(about[n]) < len(ran) {
			order[i] = n + " (" + strings.Join(about[n], ", ") + ")"
		}
	}
	return order
}

// origins say which points were run, where these are not all combinations of a sweep, and what was
// merged.
func (v *view) origins() []string {
	var texts []string
	add := func(text string) {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	for _, src := range v.sources {
		if d := src.result.Design; d != nil {
			add("points: " + d.Text)
		}
		if n := len(src.result.Shards); n > 0 {
			var hosts []string
			for _, s := range src.result.Shards {
				hosts = append(hosts, s.Folder+" on "+s.Provenance.Host.Hostname)
			}
			const most = 8
			if n > most {
				hosts = append(hosts[:most:most], fmt.Sprintf("and %d more", n-most))
			}
			add(fmt.Sprintf("merged from %d results that were measured at the same time: %s", n, strings.Join(hosts, ", ")))
		}
	}
	return texts
}
