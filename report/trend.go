package report

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/kbench/kbench/report/gate"
)

// trendPage is what the template of a trend fills in, beside what every page has.
type trendPage struct {
	*page
	Verdict badge
	Remarks []string
	Trends  []trendPlot
}

// trendPlot is the plot of a metric over a history, with its numbers.
type trendPlot struct {
	Title   string
	Charts  []template.HTML
	Numbers table
}

// TrendHTML draws the trends of a decision as one file that needs nothing else. judged is the
// result that was judged. The errors are those of w.
func TrendHTML(w io.Writer, d *gate.Decision, judged Named) error {
	if len(d.Trends) == 0 {
		return errors.New("report: a decision without a history has no trend")
	}
	frame, err := newPageFrame(newView(judged))
	if err != nil {
		return err
	}
	frame.Title = d.Workload
	kind := map[gate.Verdict]string{gate.Pass: "good", gate.Inconclusive: "mild"}[d.Verdict]
	if kind == "" {
		kind = "bad"
	}
	p := &trendPage{page: frame, Verdict: badge{kind, string(d.Verdict)}, Remarks: gateRemarks(d)}
	for i := range d.Trends {
		p.Trends = append(p.Trends, newTrendPlot(&d.Trends[i]))
	}
	if err := pageTemplate.ExecuteTemplate(w, "trend.html", p); err != nil {
		return fmt.Errorf("writing the HTML trend: %w", err)
	}
	return nil
}

func newTrendPlot(t *gate.Trend) trendPlot {
	p := trendPlot{Title: t.Name, Numbers: table{Head: []string{"result", "date", "median", "least", "most", ""}}}
	if t.Point != "" {
		p.Title = t.Point + " " + t.Name
	}
	for _, on := range []paper{widePaper, narrowPaper} {
		p.Charts = append(p.Charts, template.HTML(trendChart(t, on)))
	}
	format := unitFormat(t.Unit)
	changed := map[int]bool{}
	for _, at := range t.Changes {
		changed[at] = true
	}
	for i, v := range t.Values {
		mark := ""
		if v.Failed {
			mark = "failed"
		}
		if changed[i] {
			mark += " changed"
		}
		p.Numbers.Rows = append(p.Numbers.Rows, tableRow{Swatch: -1, Strong: changed[i],
			Cells: []string{v.Result, v.At.Format("2006-01-02 15:04"), format(v.Median), format(v.Min), format(v.Max), mark}})
	}
	return p
}

// trendChart draws a metric over a history: a marker for each result with its ends over runs,
// hollow where the gate failed, the level between changes and a line at each change.
func trendChart(t *gate.Trend, on paper) string {
	on.h = 260
	var values []float64
	for _, v := range t.Values {
		values = append(values, v.Min, v.Max)
	}
	x := axis{lo: -0.5, hi: math.Max(0.5, float64(len(t.Values))-0.5), from: on.left, to: on.w - on.right}
	y := logAxis(values, on.h-on.bottom, on.top)
	format := unitFormat(t.Unit)
	var d drawing
	d.begin(on.class()+" trend", t.Name+" over time", on.w, on.h, attrs{"data-y", y.attr("")})
	d.frame(x, y, trendTicks(t, on), y.ticks(ticksUp(y.from-y.to), func(v float64) string { return trimZeros(format(v)) }), "", t.Name+" ("+t.Unit+", log)")
	for i := range len(t.Changes) + 1 {
		from, to := 0, len(t.Values)
		if i > 0 {
			from = t.Changes[i-1]
			at := x.at(float64(from) - 0.5)
			d.line("target", at, y.from, at, y.to)
		}
		if i < len(t.Changes) {
			to = t.Changes[i]
		}
		if to > from {
			level := y.at(t.Level(i))
			d.curve("line thin", lookOf(1), []place{{x.at(float64(from) - 0.5), level}, {x.at(float64(to) - 0.5), level}})
		}
	}
	for i, v := range t.Values {
		text := v.Result + "\n" + v.At.Format("2006-01-02 15:04") + "\n" + format(v.Median) + " [" + format(v.Min) + "–" + format(v.Max) + "]"
		d.open("g", attrs{"class", "spot", "tabindex", "0", "role", "img", "aria-label", text, "data-tip", text})
		d.line("whisker c0", x.at(float64(i)), y.at(v.Min), x.at(float64(i)), y.at(v.Max))
		d.marker(lookOf(0), x.at(float64(i)), y.at(v.Median), 3.6, v.Failed, nil)
		d.end("g")
	}
	return d.String()
}

// trendTicks are dates, as many as there is room for.
func trendTicks(t *gate.Trend, on paper) []tick {
	n := len(t.Values)
	every := max(1, (n+on.ticksAcross()-1)/on.ticksAcross())
	var ts []tick
	for i := 0; i < n; i += every {
		ts = append(ts, tick{float64(i), t.Values[i].At.Format("01-02")})
	}
	return ts
}
