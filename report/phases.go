package report

import (
	"fmt"
	"slices"

	"github.com/kbench/kbench/results"
)

// phaseHead are the columns of a table of phases.
var phaseHead = []string{"phase", "length", "msg/s", "asked", "attempted", "failed", "unknown", "p50", "p99", "max"}

// phaseRows has a row for each phase of a run, none when there is only one. measured says which of
// them are in the run's figures.
func phaseRows(run *results.Run) (rows [][]string, measured []bool) {
	if len(run.Phases) < 2 {
		return nil, nil
	}
	lead := headline(run)
	for i := range run.Phases {
		p := &run.Phases[i]
		asked, rate := "–", p.Rates.MessagesPerSecond
		if p.Rates.TargetMessagesPerSecond > 0 {
			asked = quantity(p.Rates.TargetMessagesPerSecond)
		}
		if consumesOnly(run) {
			rate = p.Rates.ReceivedPerSecond
		}
		row := []string{p.Name, duration(float64(p.LengthNs)), quantity(rate), asked,
			count(p.Counts.Attempted), count(p.Counts.Failed), count(p.Counts.Unknown)}
		s := p.Series[lead]
		for _, ns := range []int64{s.P50Ns, s.P99Ns, s.MaxNs} {
			text := "–"
			if s.Count > 0 {
				text = duration(float64(ns))
			}
			row = append(row, text)
		}
		rows = append(rows, row)
		measured = append(measured, p.Kind == results.PhaseMeasure)
	}
	return rows, measured
}

// phasesCaption says what the phases' latencies are, and which phases are in the figures.
func phasesCaption(run *results.Run) string {
	return "Phases; latencies are of " + headline(run) + ", and only what is strong is in the run's figures"
}

// phases prints the table of phases.
func (t *terminal) phases(run *results.Run) {
	rows, measured := phaseRows(run)
	if rows == nil {
		return
	}
	t.println("")
	t.table(slices.Insert(rows, 0, phaseHead), func(row int) string {
		if row > 0 && !measured[row-1] {
			return faint
		}
		return ""
	})
}

// phaseTable is the table of phases for pages; nil when there is only one.
func phaseTable(run *results.Run) *table {
	rows, measured := phaseRows(run)
	if rows == nil {
		return nil
	}
	t := &table{Caption: phasesCaption(run), Head: phaseHead}
	for i, cells := range rows {
		t.Rows = append(t.Rows, tableRow{Swatch: -1, Strong: measured[i], Cells: cells})
	}
	return t
}

// insightFacts are what is known of a run beyond its counts: steady state, messages in flight, and how
// producers and partitions differ.
func insightFacts(run *results.Run) []labelled {
	var facts []labelled
	if s := run.Steady; s != nil {
		facts = append(facts, labelled{"steady", steadyText(s)})
	}
	if l := run.LittlesLaw; l != nil {
		facts = append(facts, labelled{"in flight", littleText(l)})
	}
	for _, p := range run.Parts {
		facts = append(facts, labelled{p.By + "s", partsText(p)})
	}
	return facts
}

func steadyText(s *results.Steady) string {
	if !s.Found {
		return s.Reason
	}
	text := "from the beginning"
	if s.AfterNs > 0 {
		text = "after " + duration(float64(s.AfterNs)) + ", which are left out"
	}
	return text + fmt.Sprintf(" · trend from then on %+.2g %%, which is no more than chance or of no matter", s.Drift*100)
}

func littleText(l *results.LittlesLaw) string {
	text := quantity(l.InFlight)
	if most := quantity(l.InFlightMost); most != text {
		text += " to " + most
	}
	text += " messages on average · rate × service " + quantity(l.RateTimesService)
	if !l.Holds {
		text += " – these contradict each other"
	}
	return text
}

func partsText(p results.Parts) string {
	text := fmt.Sprintf("%s · acked %s to %s each · p99 %s to %s, median %s", count(int64(p.N)), count(p.Acked.Min), count(p.Acked.Max),
		duration(float64(p.P99Ns.Min)), duration(float64(p.P99Ns.Max)), duration(float64(p.P99Ns.Median)))
	if p.Worst != "" {
		text += ", worst " + p.By + " " + p.Worst
	}
	return text + " · all in " + p.File
}
