// Package compare sets results beside each other: points that have the same settings, and for
// each figure both values, their ratio, an interval, and what can be said. Runs are the
// replicates; it is pure and never prints.
package compare

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
)

// Named is a result with what it is called.
type Named struct {
	Name   string
	Result *results.Result
}

// Options say how runs are related. The zero value takes the two results to be apart in time.
type Options struct {
	// Paired says that runs of the same repeat were executed next to each other, so that what
	// drifts is in both.
	Paired bool
}

// Comparison is one result beside others.
type Comparison struct {
	Base   string    `json:"base"`
	Paired bool      `json:"paired"`
	Level  float64   `json:"level"` // of the intervals
	News   []Against `json:"news"`
}

// Against is one result beside the base.
type Against struct {
	Name string `json:"name"`
	// Unlike is what differs beside what is compared; it comes before any figure.
	Unlike []Difference `json:"unlike"`
	Points []Point      `json:"points"`
	// OnlyBase and OnlyNew are the points without a counterpart.
	OnlyBase []string `json:"onlyBase,omitempty"`
	OnlyNew  []string `json:"onlyNew,omitempty"`
}

// Point is a combination of settings that both have.
type Point struct {
	Label    string         `json:"label"`
	Settings map[string]any `json:"settings"`
	BaseID   string         `json:"baseId"`
	NewID    string         `json:"newId"`
	Notes    []string       `json:"notes,omitempty"` // what to know first: runs that are invalid
	Metrics  []Judged       `json:"metrics"`
}

// Verdict is what can be said of a metric.
type Verdict string

// Verdicts. CannotTell always comes with a reason.
const (
	Worse      Verdict = "worse"
	Better     Verdict = "better"
	Alike      Verdict = "alike" // the whole interval is within the margin
	CannotTell Verdict = "cannot tell"
	Unjudged   Verdict = "" // counts: for thresholds to judge
)

// Judged is a metric of a point on both sides.
type Judged struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Base Values `json:"base"`
	New  Values `json:"new"`
	// Ratio is new ÷ base, of the Hodges–Lehmann estimate; nil where there is none.
	Ratio *float64 `json:"ratio,omitempty"`
	// Lower and Upper are the ends of its interval; nil when it has none.
	Lower   *float64 `json:"lower,omitempty"`
	Upper   *float64 `json:"upper,omitempty"`
	Verdict Verdict  `json:"verdict,omitempty"`
	Why     string   `json:"why,omitempty"`
}

// Values are a figure over the runs of a side.
type Values struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Runs   []float64 `json:"runs"`
}

// Level is the confidence of the intervals of a comparison. Each stands for itself: of twenty
// figures that did not change, about one is outside.
const Level = 0.95

// Margins within which figures count as alike, and their double is what a gate of results that
// were not paired allows.
const (
	Margin     = 0.10
	TailMargin = 0.20
)

// Compare sets base beside each of news, in their order.
func Compare(base Named, news []Named, o Options) *Comparison {
	c := &Comparison{Base: base.Name, Paired: o.Paired, Level: Level}
	for _, other := range news {
		c.News = append(c.News, against(base.Result, other, o))
	}
	return c
}

func against(base *results.Result, other Named, o Options) Against {
	a := Against{Name: other.Name, Unlike: Unlike(base, other.Result), Points: []Point{}}
	pairs := Align(base, other.Result)
	for _, p := range pairs {
		switch {
		case p.New == nil:
			a.OnlyBase = append(a.OnlyBase, title(p.Base))
		case p.Base == nil:
			a.OnlyNew = append(a.OnlyNew, title(p.New))
		default:
			a.Points = append(a.Points, point(p, o))
		}
	}
	return a
}

func title(p *results.Point) string {
	if p.Label == "" || p.Label == p.ID {
		return p.ID
	}
	return p.ID + " " + p.Label
}

// Aligned is a point on both sides; the side that does not have it is nil.
type Aligned struct{ Base, New *results.Point }

// Align matches points by their settings; points that were not run are left out. When each side
// has a single point these are matched whatever their settings.
func Align(base, other *results.Result) []Aligned {
	a, b := ran(base), ran(other)
	if len(a) == 1 && len(b) == 1 {
		return []Aligned{{a[0], b[0]}}
	}
	var list []Aligned
	taken := map[int]bool{}
	for _, p := range a {
		pair := Aligned{Base: p}
		for j, q := range b {
			if !taken[j] && key(p) == key(q) {
				pair.New, taken[j] = q, true
				break
			}
		}
		list = append(list, pair)
	}
	for j, q := range b {
		if !taken[j] {
			list = append(list, Aligned{New: q})
		}
	}
	return list
}

func ran(r *results.Result) []*results.Point {
	var list []*results.Point
	for i := range r.Points {
		if len(r.Points[i].Runs) > 0 {
			list = append(list, &r.Points[i])
		}
	}
	return list
}

// key is what makes two points the same: their settings, which JSON writes in order.
func key(p *results.Point) string {
	encoded, err := json.Marshal(p.Settings)
	if err != nil {
		return p.Label
	}
	return string(encoded)
}

// Valid are the runs whose measurement can be trusted.
func Valid(p *results.Point) []*results.Run {
	var runs []*results.Run
	for i := range p.Runs {
		if p.Runs[i].Verdict.Valid {
			runs = append(runs, &p.Runs[i])
		}
	}
	return runs
}

func point(p Aligned, o Options) Point {
	out := Point{Label: p.New.Label, Settings: p.New.Settings, BaseID: p.Base.ID, NewID: p.New.ID, Metrics: []Judged{}}
	if out.Label == "" {
		out.Label = p.New.ID
	}
	if key(p.Base) != key(p.New) {
		out.Label = p.Base.Label + " → " + p.New.Label
	}
	sides, untrusted := [2][]*results.Run{}, ""
	for i, side := range []*results.Point{p.Base, p.New} {
		sides[i] = Valid(side)
		name := [2]string{"base", "new"}[i]
		if bad := len(side.Runs) - len(sides[i]); bad > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("%s: %d of %d runs INVALID and left out: %s", name, bad, len(side.Runs), firstReason(side)))
		}
		if len(sides[i]) == 0 {
			out.Notes[len(out.Notes)-1] = fmt.Sprintf("%s: all of %d runs INVALID, do not quote their figures: %s", name, len(side.Runs), firstReason(side))
			sides[i], untrusted = all(side), "no run of the "+name+" side is valid"
		}
	}
	for _, m := range Metrics() {
		judged, has := judge(m, sides, o)
		if !has {
			continue
		}
		if untrusted != "" && !m.Count {
			judged.Verdict, judged.Why = CannotTell, untrusted
		}
		out.Metrics = append(out.Metrics, judged)
	}
	if len(out.Metrics) == 0 {
		out.Notes = append(out.Notes, "the sides have no figure in common")
	}
	return out
}

func all(p *results.Point) []*results.Run {
	runs := make([]*results.Run, len(p.Runs))
	for i := range p.Runs {
		runs[i] = &p.Runs[i]
	}
	return runs
}

func firstReason(p *results.Point) string {
	for i := range p.Runs {
		if v := p.Runs[i].Verdict; !v.Valid && len(v.Reasons) > 0 {
			return v.Reasons[0]
		}
	}
	return "no reason was recorded"
}

// judge compares one metric; has is false when a side does not have it.
func judge(m Metric, sides [2][]*results.Run, o Options) (j Judged, has bool) {
	a, b := m.OfAll(sides[0]), m.OfAll(sides[1])
	if len(a) == 0 || len(b) == 0 {
		return j, false
	}
	j = Judged{Name: m.Name, Unit: m.Unit, Base: valuesOf(a), New: valuesOf(b)}
	if m.Count {
		return j, true
	}
	interval, why := interval(m, sides, a, b, o)
	if m.Higher { // turned from "how many times worse" to new ÷ base
		interval.Estimate, interval.Lower, interval.Upper = -interval.Estimate, -interval.Upper, -interval.Lower
	}
	j.Ratio, j.Lower, j.Upper = Ratio(interval.Estimate), Ratio(interval.Lower), Ratio(interval.Upper)
	if why != "" {
		j.Verdict, j.Why = CannotTell, why
		return j, true
	}
	j.Verdict, j.Why = say(m, interval)
	return j, true
}

func valuesOf(runs []float64) Values {
	return Values{Median: stat.Median(runs), Min: stat.Quantile(runs, 0), Max: stat.Quantile(runs, 1), Runs: runs}
}

// interval is of the log of how many times worse the new side is; why says why there is none.
func interval(m Metric, sides [2][]*results.Run, a, b []float64, o Options) (stat.Interval, string) {
	if o.Paired {
		d := Differences(m, sides[0], sides[1])
		i := stat.SignedRank(d, 1-Level)
		if i.Unbounded() {
			return i, fmt.Sprintf("%s: an interval needs 6", counted(len(d), "pair"))
		}
		return i, ""
	}
	for _, v := range append(append([]float64{}, a...), b...) {
		if v <= 0 {
			return stat.Interval{Estimate: math.NaN(), Lower: math.Inf(-1), Upper: math.Inf(1)}, "a figure of 0 has no ratio"
		}
	}
	i := stat.RankSum(worseThanOne(m, a), worseThanOne(m, b), 1-Level)
	switch {
	case !i.Unbounded():
		return i, ""
	case len(a) == 1 && len(b) == 1:
		return i, "one run a side: chance cannot be told from change"
	}
	return i, fmt.Sprintf("%s beside %d: an interval needs 4 a side", counted(len(a), "run"), len(b))
}

func worseThanOne(m Metric, values []float64) []float64 {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = m.Worse(1, v)
	}
	return logs
}

// Differences are m.Worse of the runs of the same repeat, in the order of a. Repeats that only one
// side has are left out.
func Differences(m Metric, a, b []*results.Run) []float64 {
	var list []float64
	for _, x := range a {
		for _, y := range b {
			if x.Repeat != y.Repeat {
				continue
			}
			p, okP := m.Of(x)
			q, okQ := m.Of(y)
			if okP && okQ {
				list = append(list, m.Worse(p, q))
			}
		}
	}
	return list
}

// say puts an interval of the log of new ÷ base into words.
func say(m Metric, i stat.Interval) (Verdict, string) {
	up, down := Worse, Better
	if m.Higher {
		up, down = Better, Worse
	}
	margin := math.Log(1 + MarginOf(m))
	switch {
	case math.IsNaN(i.Estimate):
		return CannotTell, "a figure of 0 has no ratio"
	case i.Lower > 0:
		return up, ""
	case i.Upper < 0:
		return down, ""
	case i.Lower > -margin && i.Upper < margin:
		return Alike, ""
	}
	return CannotTell, "the runs differ too much among themselves"
}

// MarginOf is the margin of a metric as a share.
func MarginOf(m Metric) float64 {
	if m.Tail {
		return TailMargin
	}
	return Margin
}

// Ratio is e^log, nil when that is not finite.
func Ratio(log float64) *float64 {
	v := math.Exp(log)
	if math.IsNaN(v) || math.IsInf(log, 0) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
