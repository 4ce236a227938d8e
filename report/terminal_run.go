package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kbench/kbench/results"
)

// run prints everything about one run.
func (t *terminal) run(p *point, run *results.Run) {
	t.verdict(p)
	t.println("")
	for _, f := range countFacts(run) {
		t.fact(f.Label, "", f.Text)
	}
	t.println("")
	t.latencies(run)
	for _, n := range notesOf(run) {
		t.fact("", faint, n)
	}
	t.phases(run)
	t.println("")
	t.fact("generator", "", generatorLine(run.Generator))
	if b := batchLine(run.Batches); b != "" {
		t.fact("batches", "", b)
	}
	for _, f := range insightFacts(run) {
		t.fact(f.Label, "", f.Text)
	}
	label := "errors"
	for _, e := range errorsOf(run) {
		t.fact(label, mild, e)
		label = ""
	}
	t.thresholds(run)
	t.println("")
}

// verdict prints whether the figures below it can be trusted, and why not.
func (t *terminal) verdict(p *point) {
	if p.invalid() == 0 {
		t.println("  " + t.paint(good, "VALID"))
	} else {
		t.println("  " + t.paint(bad, "INVALID") + " – do not quote these figures:")
		for _, reason := range p.reasons() {
			t.fact("", bad, "✗ "+reason)
		}
	}
	for _, w := range p.warnings() {
		t.fact("warning", mild, w)
	}
}

func (t *terminal) thresholds(run *results.Run) {
	label := "thresholds"
	for _, th := range run.Thresholds {
		text, code := thresholdText(th), good
		if !th.Held {
			code = bad
		}
		t.fact(label, code, text)
		label = ""
	}
}

// thresholdText is a condition, the figure it was held against, and what came of it.
func thresholdText(th results.Threshold) string {
	if th.Held {
		return "✓ " + th.Expression + " held (" + th.Value + ")"
	}
	return "✗ " + th.Expression + " BROKEN (" + th.Value + ")"
}

// labelled is a line of a summary.
type labelled struct{ Label, Text string }

// countFacts are what became of the messages, and how fast.
func countFacts(run *results.Run) []labelled {
	c := run.Counts
	var facts []labelled
	if !consumesOnly(run) {
		facts = append(facts, labelled{"messages", fmt.Sprintf("attempted %s = %s %s + failed %s + unknown %s",
			count(c.Attempted), ackWord(run), count(c.Acked), count(c.Failed), count(c.Unknown))})
	}
	if consumes(run) {
		text := count(c.Received) + " · " + integrityText(c)
		if c.NegativeE2E > 0 {
			text += " · negative e2e " + count(c.NegativeE2E)
		}
		facts = append(facts, labelled{"received", text})
	}
	facts = append(facts, labelled{"rate", rateLine(run)})
	facts = append(facts, transactionFacts(run)...)
	facts = append(facts, consumptionFacts(run)...)
	return append(facts, faultFacts(run)...)
}

// integrityText is what is known of messages that did not arrive as they were sent.
func integrityText(c results.Counts) string {
	if c.Unchecked {
		return "lost, duplicated, reordered and corrupted not checked: messages carry no stamp"
	}
	lost := count(c.Lost)
	if c.NotReceived > 0 {
		lost = "not known (" + count(c.NotReceived) + " not received in time)"
	}
	text := fmt.Sprintf("lost %s · duplicated %s · reordered %s · corrupted %s",
		lost, count(c.Duplicated), count(c.Reordered), count(c.Corrupted))
	if c.Unstamped > 0 {
		text += " · unstamped " + count(c.Unstamped) + " (others')"
	}
	return text
}

// ackWord is what "acked" means in the run.
func ackWord(run *results.Run) string {
	if run.AckMeaning == "written" {
		return "written"
	}
	return "acked"
}

// consumes says whether the run had consumers, as far as its figures tell.
func consumes(run *results.Run) bool {
	c := run.Counts
	return c.Received > 0 || c.Lost > 0 || run.Series[results.SeriesE2E].Count > 0 || run.Rates.ReceivedPerSecond > 0
}

// rateLine is the throughput in every unit it is asked for in.
func rateLine(run *results.Run) string {
	if consumesOnly(run) {
		return quantity(run.Rates.ReceivedPerSecond) + " msg/s received"
	}
	mb, mib := perSecond(run.Rates.BytesPerSecond)
	parts := []string{quantity(run.Rates.MessagesPerSecond) + " msg/s", mb, mib}
	if target := run.Rates.TargetMessagesPerSecond; target > 0 {
		parts = append(parts, share(run.Rates.MessagesPerSecond/target)+" of the "+quantity(target)+" msg/s asked for")
	}
	if consumes(run) {
		parts = append(parts, "received "+quantity(run.Rates.ReceivedPerSecond)+" msg/s")
	}
	return strings.Join(parts, " · ")
}

// latencies prints the table of series.
func (t *terminal) latencies(run *results.Run) {
	names := seriesOf(run)
	if len(names) == 0 {
		t.fact("latency", mild, "no message was acked or received")
		return
	}
	rows := [][]string{{"latency", "count", "p50", "p90", "p99", "p99.9", "max"}}
	for _, name := range names {
		s := run.Series[name]
		label := name
		if s.Clamped > 0 {
			label += " (clamped " + count(s.Clamped) + ")"
		}
		rows = append(rows, []string{clip(printable(label), 30), count(s.Count), duration(float64(s.P50Ns)), duration(float64(s.P90Ns)),
			duration(float64(s.P99Ns)), duration(float64(s.P999Ns)), duration(float64(s.MaxNs))})
	}
	t.table(rows, func(row int) string {
		if row > 0 && names[row-1] == headline(run) {
			return bold
		}
		return ""
	})
}

// table prints rows with the first column to the left and the others to the right; the first row
// is the heading. code gives a row's colour.
func (t *terminal) table(rows [][]string, code func(row int) string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], columns.StringWidth(cell))
		}
	}
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i == 0 {
				b.WriteString(pad(cell, widths[0]))
				continue
			}
			b.WriteString("  " + padLeft(cell, widths[i]))
		}
		style := code(n)
		if n == 0 {
			style = faint
		}
		t.println("  " + t.paint(style, b.String()))
	}
}

// generatorLine is what making the load cost.
func generatorLine(g results.Generator) string {
	cpu := digits(g.CPUCores, 3)
	if g.CPUAvailable > 0 {
		cpu += " of " + digits(g.CPUAvailable, 3)
	}
	parts := []string{cpu + " cores", duration(g.CPUNsPerMessage) + "/message",
		fmt.Sprintf("GC %s× (max %s)", count(g.GCCycles), duration(float64(g.GCPauseMaxNs))),
		latenessText(g)}
	if g.PauseMaxNs > 0 {
		parts = append(parts, "longest pause "+duration(float64(g.PauseMaxNs)))
	}
	if g.HostCPUShare > 0 {
		parts = append(parts, "machine "+share(g.HostCPUShare)+" busy")
	}
	if g.StolenShare > 0 {
		parts = append(parts, "stolen "+share(g.StolenShare))
	}
	if g.CeilingPerSecond > 0 {
		parts = append(parts, "ceiling "+quantity(g.CeilingPerSecond)+" msg/s")
	}
	if g.MaxRSSBytes > 0 {
		parts = append(parts, memory(g.MaxRSSBytes)+" RSS")
	}
	return strings.Join(parts, " · ")
}

// latenessText is how late the pacers woke up, and which they were.
func latenessText(g results.Generator) string {
	text := "lateness p99 " + duration(float64(g.LatenessP99))
	if g.LatenessMaxNs > 0 {
		text += ", max " + duration(float64(g.LatenessMaxNs))
	}
	if g.Pacer != "" {
		text += " (" + g.Pacer + ")"
	}
	return text
}

// batchLine is what the producers' requests looked like; empty when there were none.
func batchLine(b results.Batches) string {
	if b.Batches == 0 && b.Requests == 0 {
		return ""
	}
	parts := []string{count(b.Batches) + " in " + count(b.Requests) + " requests", quantity(b.MessagesPerBatch) + " messages and " + bytesOf(b.BytesPerBatch) + " a batch"}
	if b.CompressionRatio > 0 {
		parts = append(parts, "compression "+digits(b.CompressionRatio, 3)+"×")
	}
	parts = append(parts, "sent again "+count(b.Retries))
	if b.ThrottleNs > 0 {
		parts = append(parts, "throttled "+duration(float64(b.ThrottleNs)))
	}
	return strings.Join(parts, " · ")
}

// errorsOf are the kinds of errors with their counts, most frequent first.
func errorsOf(run *results.Run) []string {
	kinds := slices.SortedFunc(maps.Keys(run.Errors), func(a, b string) int {
		return cmp.Or(cmp.Compare(run.Errors[b], run.Errors[a]), strings.Compare(a, b))
	})
	var lines []string
	for _, kind := range kinds {
		lines = append(lines, count(run.Errors[kind])+" × "+kind)
	}
	return lines
}
