package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/kbench/kbench/results/stat"
)

// summary is a figure in numbers, as it stands in the JSON file.
type summary struct {
	ID       string          `json:"id"`
	Title    string          `json:"title"`
	Settings settings        `json:"settings"`
	Metrics  []metricSummary `json:"metrics,omitempty"`
	Failed   []string        `json:"failed,omitempty"` // a line each: who, and why
	// Runs are all figures of every run, by client and round; null where it failed.
	Runs  map[string][]line `json:"runs"`
	Notes []string          `json:"notes,omitempty"` // what to know before quoting
}

type metricSummary struct {
	Key     string     `json:"key"` // of the programs' lines
	Title   string     `json:"title"`
	Higher  bool       `json:"higherIsBetter,omitempty"`
	Over    string     `json:"reference"`
	Rows    []row      `json:"clients"`
	Verdict string     `json:"verdict,omitempty"` // what was asked, and whether it was reached
	Reached *bool      `json:"reached,omitempty"` // nil: nothing was asked, or there is nothing to compare with
	unit    unit       // of the values
	extra   []extraKey // columns
}

// row is one client's values, a round each.
type row struct {
	Client string    `json:"client"`
	Values []float64 `json:"values"`
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Ratio  *ratio    `json:"ratio,omitempty"` // to the reference
	// Extra are medians of what else the programs and the broker said.
	Extra map[string]float64 `json:"extra,omitempty"`
}

// ratio is the Hodges–Lehmann estimate over the rounds' own ratios, with its interval.
type ratio struct {
	Estimate float64 `json:"estimate"`
	Lower    float64 `json:"lower"`
	Upper    float64 `json:"upper"`
	Level    float64 `json:"level"`
}

// extraKey is a column beside the values.
type extraKey struct {
	key, title string
	verb       string
	unit       unit // where verb is empty
}

var extraKeys = []extraKey{
	{key: columnRequests, title: "records/request", verb: "%.0f"},
	{key: "bytes/rec", title: "bytes/record", verb: "%.1f"},
	{key: "allocs/rec", title: "allocs/message", verb: "%.3f"},
	{key: "rate", title: "messages/s", unit: perSecond},
	{key: "p50", title: "p50", unit: nanoseconds},
	{key: "p99", title: "p99", unit: nanoseconds},
	{key: "p99.9", title: "p99.9", unit: nanoseconds},
	{key: "cpu/rec", title: "CPU a message", unit: nanoseconds},
	{key: "cpu/s", title: "CPU a second", unit: nanoseconds},
}

// alike is how far records a request may be from the reference's.
const alike = 0.10

// summarise reduces an outcome to numbers.
func (o *outcome) summarise() summary {
	f := &o.figure
	s := summary{ID: f.id, Title: f.title, Settings: f.settings, Runs: map[string][]line{}}
	for e, lines := range o.lines {
		s.Runs[e.String()] = lines
	}
	if o.err != nil {
		s.Failed = append(s.Failed, o.err.Error())
	}
	for _, e := range f.entrants {
		if err := o.failed[e]; err != nil {
			s.Failed = append(s.Failed, err.Error())
		}
	}
	for i := range f.metrics {
		if m := o.metric(&f.metrics[i]); len(m.Rows) > 0 {
			s.Metrics = append(s.Metrics, m)
		}
	}
	s.Notes = o.notes()
	return s
}

func (o *outcome) metric(m *metric) metricSummary {
	s := metricSummary{Key: m.key, Title: m.title, Higher: m.higher, Over: m.reference.String(), unit: m.unit}
	for _, e := range o.figure.entrants {
		values := o.values(e, m.key)
		if len(values) == 0 {
			continue
		}
		r := row{
			Client: e.String(), Values: values, Median: stat.Median(values),
			Min: slices.Min(values), Max: slices.Max(values), Extra: map[string]float64{},
		}
		for _, x := range extraKeys {
			if v := o.values(e, x.key); len(v) > 0 && x.key != m.key && slices.Contains(o.figure.columns, x.key) {
				r.Extra[x.key] = stat.Median(v)
			}
		}
		if e != m.reference {
			r.Ratio = o.ratio(e, m.reference, m.key)
		}
		s.Rows = append(s.Rows, r)
	}
	for _, x := range extraKeys {
		if slices.ContainsFunc(s.Rows, func(r row) bool { _, ok := r.Extra[x.key]; return ok }) {
			s.extra = append(s.extra, x)
		}
	}
	s.judge(m)
	return s
}

// values are a client's figures in the rounds that it got through.
func (o *outcome) values(e entrant, key string) (values []float64) {
	for _, l := range o.lines[e] {
		if v, ok := l[key]; ok {
			values = append(values, v)
		}
	}
	return values
}

// ratio compares in pairs, round by round: what a busy moment did to both is in neither. Nil
// without a round that both got through.
func (o *outcome) ratio(e, reference entrant, key string) *ratio {
	var logs []float64
	for round, l := range o.lines[e] {
		v, ok := l[key]
		if !ok || len(o.lines[reference]) <= round {
			continue
		}
		if r, ok := o.lines[reference][round][key]; ok && v > 0 && r > 0 {
			logs = append(logs, math.Log(v/r))
		}
	}
	return ratioOf(logs)
}

// ratioOf is the estimate of a ratio from the logarithms of pairs, at 95 % or as near to it as
// so few can be.
func ratioOf(logs []float64) *ratio {
	if len(logs) == 0 {
		return nil
	}
	alpha := max(0.05, math.Ldexp(1, 1-len(logs)))
	i := stat.SignedRank(logs, alpha)
	if i.Unbounded() { // one pair
		return &ratio{Estimate: math.Exp(i.Estimate), Lower: 0, Upper: math.MaxFloat64, Level: 1}
	}
	return &ratio{Estimate: math.Exp(i.Estimate), Lower: math.Exp(i.Lower), Upper: math.Exp(i.Upper), Level: i.Level}
}

// judge says whether what is asked was reached.
func (s *metricSummary) judge(m *metric) {
	t := m.target
	at := slices.IndexFunc(s.Rows, func(r row) bool { return r.Client == t.entrant.String() })
	if t.limit == 0 || at < 0 {
		return
	}
	got, asked := s.Rows[at].Median, "asked: at most "+m.unit.format(t.limit)
	shown := m.unit.format(got)
	if !t.absolute {
		r := s.Rows[at].Ratio
		if r == nil {
			return
		}
		got, shown = r.Estimate, fmt.Sprintf("%.3f", r.Estimate)
		word := "at most"
		if m.higher {
			word = "at least"
		}
		asked = fmt.Sprintf("asked: %s %.2f × %s", word, t.limit, m.reference)
	}
	reached := got <= t.limit
	if m.higher {
		reached = got >= t.limit
	}
	s.Reached = &reached
	verdict := "reached"
	if !reached {
		verdict = "NOT reached"
	}
	s.Verdict = fmt.Sprintf("%s: %s; %s (%s)", t.entrant, verdict, asked, shown)
}

// notes are what makes a comparison less than equal.
func (o *outcome) notes() (notes []string) {
	f := &o.figure
	for _, e := range o.skipped {
		notes = append(notes, e.String()+": left out, no program was given (PEERS)")
	}
	reference := f.metrics[0].reference
	want := o.values(reference, columnRequests)
	if !slices.Contains(f.columns, columnRequests) {
		want = nil
	}
	for _, e := range f.entrants {
		if got := o.values(e, columnRequests); e != reference && len(got) > 0 && len(want) > 0 {
			if r := stat.Median(got) / stat.Median(want); math.Abs(r-1) > alike {
				notes = append(notes, fmt.Sprintf("%s: %.2f × the records a request of %s", e, r, reference))
			}
		}
		for _, x := range f.settings.expected() {
			if got := o.values(e, x.key); len(got) > 0 && got[0] != x.want {
				notes = append(notes, fmt.Sprintf("%s: ran with %s=%v, not %v", e, x.key, x.show(got[0]), x.show(x.want)))
			}
		}
	}
	return notes
}

// expectation is a setting that programs print as they took it.
type expectation struct {
	key  string
	want float64
	unit unit
}

func (x expectation) show(v float64) string {
	if x.unit == nanoseconds {
		return x.unit.format(v)
	}
	return fmt.Sprint(v)
}

func (s settings) expected() []expectation {
	idempotent := 0.0
	if s.Idempotent {
		idempotent = 1
	}
	return []expectation{
		{key: "idem", want: idempotent}, {key: "inflight", want: float64(s.InFlight)}, {key: "batch", want: float64(s.Batch)},
		{key: "linger", want: float64(s.Linger), unit: nanoseconds},
	}
}
