package report

import (
	"github.com/kbench/kbench/results"
)

// ceilingNote says what a ceiling is, once beside the figures.
const ceilingNote = "a ceiling is what this generator does with no cluster behind it: a run above 70 % of it says as much about the generator as about the cluster"

// ceilingFacts are the ceilings that were measured for this result.
func ceilingFacts(r *results.Result) []labelled {
	var facts []labelled
	for _, c := range r.Ceilings {
		if c.From == "" {
			facts = append(facts, labelled{"ceiling", ceilingText(c, len(r.Ceilings) > 1)})
		}
	}
	return facts
}

// ceilingText is a ceiling in a line.
func ceilingText(c results.Ceiling, named bool) string {
	text := quantity(c.MessagesPerSecond) + " msg/s on a broker that discards · the engine alone " + quantity(c.EngineMessagesPerSecond) + " msg/s on the null target"
	if named && c.Label != "" {
		return c.Label + ": " + text
	}
	return text
}

// ceilingProvenance says where ceilings that the runs were held against came from.
func ceilingProvenance(r *results.Result) []labelled {
	var facts []labelled
	for _, c := range r.Ceilings {
		text := ceilingText(c, len(r.Ceilings) > 1)
		if c.From != "" {
			text += ", from " + c.From
		}
		facts = append(facts, labelled{"ceiling", text})
	}
	return facts
}

// ceilings prints what was measured of the generator itself.
func (t *terminal) ceilings(v *view) {
	facts := ceilingFacts(v.sources[0].result)
	for _, f := range facts {
		t.fact(f.Label, bold, f.Text)
	}
	if len(facts) > 0 {
		t.fact("", faint, ceilingNote)
		t.println("")
	}
}

// ceilings writes them for each result of the report.
func (m *markdown) ceilings(v *view) {
	for _, src := range v.sources {
		var texts []string
		for _, f := range ceilingFacts(src.result) {
			texts = append(texts, f.Label+": "+f.Text)
		}
		if len(texts) > 0 {
			m.list(texts)
			m.line("*" + md(ceilingNote) + "*")
		}
	}
}
