package report

import (
	"errors"
	"fmt"
	"html/template"
	"io"

	"github.com/kbench/kbench/report/compare"
)

// comparePage is what the template of a comparison fills in, beside what every page has.
type comparePage struct {
	*page
	Notes   []string
	Against []againstPage
}

type againstPage struct {
	Title  string
	Unlike []badge
	Points []comparedPoint
	Alone  []string
	Ratios []template.HTML
}

type comparedPoint struct {
	Title string
	Notes []string
	Rows  []comparedRow
	Runs  string
}

type comparedRow struct {
	Cells   []string
	Verdict badge
	Why     string
}

// CompareHTML writes a comparison as one file that needs nothing else: what is unlike, the ratios
// with their intervals, the percentile curves over each other and all figures. The results are
// those that were compared, the base first; their curves are read from their directories. Names
// must differ. The errors are those of w.
func CompareHTML(w io.Writer, c *compare.Comparison, several []Named) error {
	if len(several) != len(c.News)+1 {
		return errors.New("report: a comparison is drawn with the results it was made of")
	}
	v := newView(several...)
	base, err := newPageFrame(v)
	if err != nil {
		return err
	}
	base.Swatches, base.Table, base.Percentiles = swatches(max(len(v.points), 8)), newSweepTable(v), newPercentilesPage(v)
	base.addSources(v)
	base.Title = c.Base + " and " + plural(len(c.News), "result")
	if len(c.News) == 1 {
		base.Title = c.Base + " → " + c.News[0].Name
	}
	p := &comparePage{page: base, Notes: compareNotes(c)}
	for i := range c.News {
		p.Against = append(p.Against, newAgainstPage(c, &c.News[i]))
	}
	if err := pageTemplate.ExecuteTemplate(w, "compare.html", p); err != nil {
		return fmt.Errorf("writing the HTML comparison: %w", err)
	}
	return nil
}

func newAgainstPage(c *compare.Comparison, a *compare.Against) againstPage {
	p := againstPage{Title: c.Base + " → " + a.Name}
	for _, d := range a.Unlike {
		p.Unlike = append(p.Unlike, badge{map[bool]string{true: "mild", false: ""}[d.Decisive], d.String()})
	}
	for _, alone := range a.OnlyBase {
		p.Alone = append(p.Alone, alone+": only in "+c.Base)
	}
	for _, alone := range a.OnlyNew {
		p.Alone = append(p.Alone, alone+": only in "+a.Name)
	}
	rows := ratioRows(a)
	for _, on := range []paper{widePaper, narrowPaper} {
		if chart := ratioChart(rows, on); chart != "" {
			p.Ratios = append(p.Ratios, template.HTML(chart))
		}
	}
	for i := range a.Points {
		p.Points = append(p.Points, newComparedPoint(&a.Points[i]))
	}
	return p
}

func newComparedPoint(p *compare.Point) comparedPoint {
	out := comparedPoint{Title: p.Label, Notes: p.Notes}
	for i := range p.Metrics {
		m := &p.Metrics[i]
		out.Runs = fmt.Sprintf("%d and %s", len(p.Metrics[0].Base.Runs), plural(len(p.Metrics[0].New.Runs), "run"))
		kind := map[compare.Verdict]string{compare.Worse: "bad", compare.Better: "good", compare.Alike: "good", compare.CannotTell: "mild"}[m.Verdict]
		out.Rows = append(out.Rows, comparedRow{append([]string{m.Name}, compareCells(m)...), badge{kind, string(m.Verdict)}, m.Why})
	}
	return out
}
