package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kbench/kbench/results"
)

// spread is a figure over the runs of a point.
type spread struct {
	median, min, max float64
	n                int
}

// spreadOf sums up values; without any, all of it is zero.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return spread{median: (s[(n-1)/2] + s[n/2]) / 2, min: s[0], max: s[n-1], n: n}
}

// alone is the spread without its ends, where another figure shows them already.
func (s spread) alone() spread {
	s.n = min(s.n, 1)
	return s
}

// text is the median, with the ends in brackets when the runs differ.
func (s spread) text(format func(float64) string) string {
	if s.n == 0 {
		return "–"
	}
	if !s.varies(format) {
		return format(s.median)
	}
	return format(s.median) + " [" + s.ends(format) + "]"
}

// varies says whether the runs differ by as much as is printed.
func (s spread) varies(format func(float64) string) bool {
	return s.n > 1 && format(s.min) != format(s.max)
}

// ends is the smallest and the largest, "1.00–1.20 ms": the unit once when both have the same.
func (s spread) ends(format func(float64) string) string {
	lo, hi := format(s.min), format(s.max)
	if a, unitLo, ok := strings.Cut(lo, " "); ok {
		if _, unitHi, ok := strings.Cut(hi, " "); ok && unitLo == unitHi {
			lo = a
		}
	}
	return lo + "–" + hi
}

// point is one point of a report with its figures over runs.
type point struct {
	index  int    // place in the report, which decides its look
	id     string // unique in the report: the point's own, or prefixed by the result's name
	label  string
	source *source
	data   *results.Point
	// used are the runs whose figures are summed up: the valid ones, or all when none is valid.
	used     []*results.Run
	headline string // series of p50 … max; empty when the runs have none
	rate     spread // messages a second
	bytes    spread // bytes a second
	p50, p90, p99,
	p999, max spread // nanoseconds
	failed spread // share of attempted that failed or is unknown
	cpu    spread // nanoseconds a message
}

// look is how the point is drawn.
func (p *point) look() look { return lookOf(p.index) }

// ran says whether there is anything to show but the reason it was left out.
func (p *point) ran() bool { return len(p.data.Runs) > 0 }

// invalid is the number of runs that cannot be trusted.
func (p *point) invalid() int {
	n := 0
	for i := range p.data.Runs {
		if !p.data.Runs[i].Verdict.Valid {
			n++
		}
	}
	return n
}

// broken is the number of runs with a threshold that did not hold.
func (p *point) broken() int {
	n := 0
	for i := range p.data.Runs {
		if slices.ContainsFunc(p.data.Runs[i].Thresholds, func(t results.Threshold) bool { return !t.Held }) {
			n++
		}
	}
	return n
}

// verdict is the mark beside the point's figures.
func (p *point) verdict() string {
	runs, bad := len(p.data.Runs), p.invalid()
	switch {
	case runs == 0 && p.data.Skipped != "":
		return "skipped"
	case runs == 0:
		return "not run"
	case bad == runs:
		return "INVALID"
	case bad > 0:
		return fmt.Sprintf("%d of %d INVALID", bad, runs)
	}
	return "valid"
}

// reasons are why runs of the point are invalid, each once, with the repeats it applies to when
// there are several runs.
func (p *point) reasons() []string {
	return p.gather(func(r *results.Run) []string {
		if r.Verdict.Valid {
			return nil
		}
		if len(r.Verdict.Reasons) == 0 {
			return []string{"no reason was recorded"}
		}
		return r.Verdict.Reasons
	})
}

// warnings are what to know before quoting a figure of the point.
func (p *point) warnings() []string {
	return p.gather(func(r *results.Run) []string { return r.Verdict.Warnings })
}

func (p *point) gather(of func(*results.Run) []string) []string {
	var order []string
	repeats := map[string][]string{}
	for i := range p.data.Runs {
		run := &p.data.Runs[i]
		for _, text := range of(run) {
			if _, seen := repeats[text]; !seen {
				order = append(order, text)
			}
			repeats[text] = append(repeats[text], fmt.Sprint(run.Repeat+1))
		}
	}
	if len(p.data.Runs) < 2 {
		return order
	}
	for i, text := range order {
		word := "run "
		if len(repeats[text]) > 1 {
			word = "runs "
		}
		order[i] = word + strings.Join(repeats[text], ", ") + ": " + text
	}
	return order
}

// newPoint sums up the runs of a point.
func newPoint(index int, src *source, data *results.Point) *point {
	p := &point{index: index, id: data.ID, label: data.Label, source: src, data: data}
	if p.label == "" {
		p.label = src.name
	}
	for i := range data.Runs {
		if data.Runs[i].Verdict.Valid {
			p.used = append(p.used, &data.Runs[i])
		}
	}
	if len(p.used) == 0 {
		for i := range data.Runs {
			p.used = append(p.used, &data.Runs[i])
		}
	}
	if len(p.used) == 0 {
		return p
	}
	p.headline = headline(p.used[0])
	p.rate = p.over(rateOf)
	p.bytes = p.over(func(r *results.Run) (float64, bool) { return r.Rates.BytesPerSecond, true })
	p.failed = p.over(failedShare)
	p.cpu = p.over(func(r *results.Run) (float64, bool) { return r.Generator.CPUNsPerMessage, true })
	p.p50 = p.quantile(func(s results.Series) int64 { return s.P50Ns })
	p.p90 = p.quantile(func(s results.Series) int64 { return s.P90Ns })
	p.p99 = p.quantile(func(s results.Series) int64 { return s.P99Ns })
	p.p999 = p.quantile(func(s results.Series) int64 { return s.P999Ns })
	p.max = p.quantile(func(s results.Series) int64 { return s.MaxNs })
	return p
}

// over sums up a figure of the used runs; runs without it are left out.
func (p *point) over(of func(*results.Run) (float64, bool)) spread {
	var values []float64
	for _, run := range p.used {
		if v, ok := of(run); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	return spreadOf(values)
}

func (p *point) quantile(of func(results.Series) int64) spread {
	return p.over(func(r *results.Run) (float64, bool) {
		s, ok := r.Series[p.headline]
		return float64(of(s)), ok && s.Count > 0
	})
}

// headline is the series that leads: response when there were due times, else service; runs that
// only consume have neither and lead with what they have.
func headline(run *results.Run) string {
	order := []string{results.SeriesService, results.SeriesE2E, results.SeriesFetch, results.SeriesProduce}
	if run.Loop == "open" {
		order = append([]string{results.SeriesResponse}, order...)
	}
	for _, name := range order {
		if s, ok := run.Series[name]; ok && s.Count > 0 {
			return name
		}
	}
	return ""
}

// consumesOnly says whether nothing was produced, so that the rate is of messages received.
func consumesOnly(run *results.Run) bool {
	return run.Counts.Attempted == 0 && run.Counts.Received > 0
}

func rateOf(run *results.Run) (float64, bool) {
	if consumesOnly(run) {
		return run.Rates.ReceivedPerSecond, true
	}
	return run.Rates.MessagesPerSecond, true
}

func failedShare(run *results.Run) (float64, bool) {
	if run.Counts.Attempted == 0 {
		return 0, false
	}
	return float64(run.Counts.Failed+run.Counts.Unknown) / float64(run.Counts.Attempted), true
}

// shownSeries are the series of latency tables, in their order. Those that are not in a run are
// left out of its table.
var shownSeries = []string{
	results.SeriesResponse, results.SeriesService, results.SeriesDelay,
	results.SeriesProduce, results.SeriesFetch, results.SeriesE2E, results.SeriesTransaction, results.SeriesCommit, results.SeriesRebalance,
	results.SeriesFailed, results.SeriesUnknown,
}

// seriesOf are the names of a run's series that hold anything: the known ones in their order,
// then others (per broker, per partition) by name.
func seriesOf(run *results.Run) []string {
	var names []string
	for _, name := range shownSeries {
		if run.Series[name].Count > 0 {
			names = append(names, name)
		}
	}
	var others []string
	for name, s := range run.Series {
		if s.Count > 0 && !slices.Contains(shownSeries, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append(names, others...)
}

// Notes that go with every figure they are about.
const (
	noteClosed   = "closed loop, no due times: response and delay are left out, e2e counts from accepted"
	noteWritten  = "acks=0: acked means written to the socket, and there is no request.produce"
	noteEmbedded = "embedded broker: figures say nothing about Apache Kafka"
)

// notesOf are what the figures of a run mean where it differs from the usual.
func notesOf(run *results.Run) []string {
	var notes []string
	if run.Loop == "closed" {
		notes = append(notes, noteClosed)
	}
	if run.AckMeaning == "written" {
		notes = append(notes, noteWritten)
	}
	return notes
}
