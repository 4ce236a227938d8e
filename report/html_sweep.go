package report

import (
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Limits of columns in a sweep's heat map.
const (
	wideColumns   = 26
	narrowColumns = 9
)

// matrixFigures are the heat maps of a sweep.
func matrixFigures(points []*point) []matrixFigure {
	figures := []matrixFigure{{"throughput, msg/s", func(p *point) spread { return p.rate }, quantity}}
	if names := (&view{points: points}).headlines(); len(names) == 1 {
		figures = append(figures, matrixFigure{names[0] + " p99", func(p *point) spread { return p.p99 }, duration})
	}
	return figures
}

func newMatrixPage(v *view) *plotPage {
	wide, narrow := newMatrix(v.points, wideColumns), newMatrix(v.points, narrowColumns)
	if wide == nil || narrow == nil {
		return nil
	}
	p := &plotPage{Note: "Settings are nested in rows and columns, so that every point has a place of its own. Faint is low, strong is high, by the logarithm. Empty: not run."}
	if v.tally().invalid > 0 {
		p.Note += " A red corner: INVALID, for the reasons in the table of points."
	}
	p.Numbers = table{Head: []string{"point"}}
	for _, f := range matrixFigures(v.points) {
		for _, on := range papers(len(v.points)) {
			m := wide
			if on.narrow {
				m = narrow
			}
			p.Charts = append(p.Charts, framed(matrixChart(m, f, on), on))
		}
		p.Numbers.Head = append(p.Numbers.Head, f.title)
	}
	for _, pt := range v.points {
		cells := []string{pointTitle(pt)}
		for _, f := range matrixFigures(v.points) {
			cells = append(cells, f.of(pt).text(f.format))
		}
		p.Numbers.Rows = append(p.Numbers.Rows, tableRow{Swatch: pt.index, Cells: cells})
	}
	return p
}

// effectsNote says how effects were come by; the same in every form.
const effectsNote = "What a setting does when nothing else changes: runs that differ in it alone are paired repeat by repeat, " +
	"and the ratio is the Hodges–Lehmann estimate over the pairs with the 95 % interval of Wilcoxon's signed-rank test " +
	"(Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3.2–3.3). The setting that matters most is on top. " +
	"An interval that spans 1 shows no effect; a wide one may mean that the effect depends on the other settings. " +
	"Hollow: fewer than 6 valid pairs, too few for an interval; the thin line spans the pairs."

func newEffectsPage(v *view) *plotPage {
	p := &plotPage{Note: effectsNote, Numbers: table{Head: []string{"figure, setting", "from", "to", "ratio", "least", "most", "interval", "pairs"}}}
	if len(v.headlines()) > 1 {
		p.Note += " Only points with the same series are paired."
	}
	for _, fig := range effectFigures {
		list := effects(v.ran(), fig)
		for _, on := range []paper{widePaper, narrowPaper} {
			if chart := effectsChart(list, fig.title, on); chart != "" {
				p.Charts = append(p.Charts, template.HTML(chart))
			}
		}
		for _, e := range list {
			p.Numbers.Rows = append(p.Numbers.Rows, effectRow(fig, e))
		}
	}
	if len(p.Charts) == 0 {
		return nil
	}
	return p
}

func effectRow(fig effectFigure, e effect) tableRow {
	row := tableRow{Swatch: -1, Cells: []string{fig.title + ", " + e.factor.key, e.base, e.value}}
	if e.pairs == 0 {
		row.Cells = append(row.Cells, "–", "–", "–", "no two points differ in it alone", "0")
		return row
	}
	interval := "–"
	if !math.IsNaN(e.lower) {
		interval = ratioText(e.lower) + "–" + ratioText(e.upper)
	}
	row.Cells = append(row.Cells, ratioText(e.ratio), ratioText(e.least), ratioText(e.most), interval, strconv.Itoa(e.pairs))
	return row
}

func newRepeatsPage(v *view) *plotPage {
	shown := v.repeatsShown()
	if len(shown) == 0 {
		return nil
	}
	p := &plotPage{Numbers: repeatsNumbers(shown)}
	for _, on := range papers(len(shown)) {
		p.Charts = append(p.Charts, framed(repeatsChart(shown, on), on))
	}
	p.Note = "A dot is a run, the bar the median of those that the figures are of. Percentiles are of " + strings.Join(v.headlines(), " or ") + "."
	if v.tally().invalid > 0 {
		p.Note += " Hollow: an INVALID run, for the reasons given with the figures above."
	}
	return p
}

// rankingPage is the ranking with what it means.
type rankingPage struct {
	Note  string
	Table table
}

func newRankingPage(v *view) *rankingPage {
	if len(plottable(v.points)) < 2 {
		return nil
	}
	p := &rankingPage{Table: ranking(v)}
	p.Note = "● marks what no other point beats in both throughput and p99; then by the mean of the three places."
	if v.repeated() {
		p.Note += " In brackets the places that the runs leave open: points whose runs overlap cannot be told apart by them."
	} else {
		p.Note += " Every point was run once: places next to each other may be chance."
	}
	return p
}

// smallChart makes a wide chart one that phones show as well.
func smallChart(chart string) string {
	return strings.Replace(chart, `class="chart wide`, `class="chart small`, 1)
}
