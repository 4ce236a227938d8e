package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
)

// KindBaseline is a result judged beside a history.
const KindBaseline = "baseline"

// Entry is one result of a history.
type Entry struct {
	Name   string
	Result *results.Result
	// Failed entries are in the trend, but nothing is judged beside them: a slowdown must not
	// become the measure by being repeated.
	Failed bool
	// Accepted entries begin anew: nothing before them counts.
	Accepted bool
}

// pooled is how many of the last results a new one is judged beside.
const pooled = 10

// PassingError refuses to judge a result beside a history: its host is not there again, so that the
// history would be one of hosts.
type PassingError struct{ Why string }

func (e *PassingError) Error() string {
	return "the result is of " + e.Why + ", which is another each time: a history of such hosts tells machines apart, not changes; " +
		"measure both sides in one job (kbench gate --run), or keep the baseline on a host that stays; --force judges nevertheless"
}

// unlikeLast names what is different in the last entry that does not count, since only what is
// known can be mended.
func unlikeLast(history []Entry, to *results.Result) []string {
	var lines []string
	for _, e := range slices.Backward(history) {
		for _, d := range compare.Unlike(e.Result, to) {
			if d.Decisive {
				lines = append(lines, "unlike "+e.Name+": "+d.String())
			}
		}
		if len(lines) > 0 {
			break
		}
	}
	return lines
}

// Baseline judges a result beside the earlier ones of the same work in the same place: the runs of
// the last ten that did not fail, from the last accepted one on, together. What lies between
// these results is then part of the noise, by which nothing fails (see Stored). Without any it is
// inconclusive, and says what is unlike in the last one. With o.Force those of other work and places count
// as well. A result of a host that is not there again is refused (*PassingError) unless forced.
func Baseline(history []Entry, other compare.Named, o StoredOptions) (*Decision, error) {
	host := other.Result.Provenance.Host
	if host.Passing != "" && !o.Force {
		return nil, &PassingError{host.Passing}
	}
	history = ordered(history, other.Result)
	like := history
	if !o.Force {
		like = alike(history, other.Result)
	}
	base := measureOf(like)
	if len(base) == 0 {
		d := Thresholds(other, o.Thresholds)
		d.Kind = KindBaseline
		if d.Verdict == Pass {
			d.Verdict = Inconclusive
		}
		d.Notes = append(unlikeLast(history, other.Result), fmt.Sprintf("the baseline has no result of the same work in the same place to judge by (%d of other work or places, %d failed)", len(history)-len(like), len(like)))
		return d, nil
	}
	merged := merge(base)
	d, err := Stored(compare.Named{Name: "baseline", Result: merged}, other, o)
	if err != nil {
		return nil, err
	}
	d.Kind = KindBaseline
	if host.Passing != "" {
		d.Notes = append(d.Notes, "FORCED although the result is of "+host.Passing)
	}
	if left := len(history) - len(like); left > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d of the baseline left out, of other work or places", left))
		d.Notes = append(d.Notes, unlikeLast(history, other.Result)...)
	}
	first, last := base[0].Result.StartedAt, base[len(base)-1].Result.StartedAt
	d.Notes = append(d.Notes, fmt.Sprintf("judged beside %d results of %s to %s", len(base), day(first), day(last)))
	d.Trends = Trends(append(slices.Clone(like), Entry{Name: other.Name, Result: other.Result, Failed: d.Verdict == Fail}))
	for _, t := range d.Trends {
		d.Notes = append(d.Notes, t.said()...)
	}
	return d, nil
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02") }

// ordered are the entries from the earliest on, without the result that is judged.
func ordered(history []Entry, judged *results.Result) []Entry {
	var list []Entry
	for _, e := range history {
		if !Same(e.Result, judged) {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return a.Result.StartedAt.Compare(b.Result.StartedAt) })
	return list
}

// Same says whether two are copies of one result.
func Same(a, b *results.Result) bool {
	return a.StartedAt.Equal(b.StartedAt) && a.Workload.Hash == b.Workload.Hash && a.Provenance.Host.Hostname == b.Provenance.Host.Hostname
}

// alike are the entries without a decisive difference to a result.
func alike(history []Entry, to *results.Result) []Entry {
	var list []Entry
	for _, e := range history {
		if !slices.ContainsFunc(compare.Unlike(e.Result, to), func(d compare.Difference) bool { return d.Decisive }) {
			list = append(list, e)
		}
	}
	return list
}

// measureOf are the entries that a new one is judged beside.
func measureOf(like []Entry) []Entry {
	var list []Entry
	for _, e := range like {
		if e.Accepted {
			list = nil
		}
		if !e.Failed || e.Accepted {
			list = append(list, e)
		}
	}
	return list[max(0, len(list)-pooled):]
}

// merge is the last entry's result with the runs of all at its points.
func merge(entries []Entry) *results.Result {
	last := entries[len(entries)-1].Result
	out := *last
	out.Points = slices.Clone(last.Points)
	for i := range out.Points {
		out.Points[i].Runs = slices.Clone(out.Points[i].Runs)
	}
	for _, e := range entries[:len(entries)-1] {
		for _, p := range compare.Align(last, e.Result) {
			if p.Base == nil || p.New == nil {
				continue
			}
			i := slices.IndexFunc(out.Points, func(q results.Point) bool { return q.ID == p.Base.ID })
			out.Points[i].Runs = append(out.Points[i].Runs, p.New.Runs...)
		}
	}
	return &out
}

// Trend is a metric of a point over a history.
type Trend struct {
	Point  string       `json:"point,omitempty"`
	Name   string       `json:"name"`
	Unit   string       `json:"unit"`
	Values []TrendValue `json:"values"`
	// Changes are the indices of Values from which on the level is another.
	Changes []int `json:"changes,omitempty"`
}

// TrendValue is a result in a trend.
type TrendValue struct {
	Result string    `json:"result"`
	At     time.Time `json:"at"`
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Failed bool      `json:"failed,omitempty"`
}

// changeAlpha is the chance of a change point where nothing changed, for each stretch looked at.
const changeAlpha = 0.01

// Trends are the judged metrics over entries, which are in order, with their change points. The
// points are those of the last entry.
func Trends(entries []Entry) []Trend {
	if len(entries) == 0 {
		return nil
	}
	last := entries[len(entries)-1].Result
	var list []Trend
	for i := range last.Points {
		p := &last.Points[i]
		runs := compare.Valid(p)
		if len(runs) == 0 {
			continue
		}
		for _, m := range compare.Gated(runs[0]) {
			t := trendOf(entries, last, p, m)
			if len(last.Points) > 1 {
				t.Point = p.Label
			}
			list = append(list, t)
		}
	}
	return list
}

func trendOf(entries []Entry, last *results.Result, p *results.Point, m compare.Metric) Trend {
	t := Trend{Name: m.Name, Unit: m.Unit, Values: []TrendValue{}}
	var logs []float64
	for _, e := range entries {
		for _, pair := range compare.Align(last, e.Result) {
			if pair.Base != p || pair.New == nil {
				continue
			}
			values := m.OfAll(compare.Valid(pair.New))
			if len(values) == 0 {
				continue
			}
			middle := stat.Median(values)
			t.Values = append(t.Values, TrendValue{e.Name, e.Result.StartedAt.UTC(), middle, slices.Min(values), slices.Max(values), e.Failed})
			logs = append(logs, m.Worse(1, middle))
		}
	}
	for _, c := range stat.ChangePoints(logs, changeAlpha, 1) {
		t.Changes = append(t.Changes, c.At)
	}
	return t
}

// Level is the median of the results from one change to the next; index says which stretch, 0 is
// the one before the first change.
func (t Trend) Level(index int) float64 {
	from, to := 0, len(t.Values)
	if index > 0 {
		from = t.Changes[index-1]
	}
	if index < len(t.Changes) {
		to = t.Changes[index]
	}
	var values []float64
	for _, v := range t.Values[from:to] {
		values = append(values, v.Median)
	}
	return stat.Median(values)
}

// said are the changes in words.
func (t Trend) said() []string {
	var lines []string
	for i, at := range t.Changes {
		name := t.Name
		if t.Point != "" {
			name = t.Point + " " + name
		}
		lines = append(lines, fmt.Sprintf("%s changed by %+.1f %% with %s of %s", name, 100*(t.Level(i+1)/t.Level(i)-1), t.Values[at].Result, day(t.Values[at].At)))
	}
	return lines
}
