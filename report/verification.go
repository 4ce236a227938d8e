package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kbench/kbench/results"
)

// Verification prints what was found in a topic for people. Dir and Report of the options are not
// used. The only errors are those of w.
func Verification(w io.Writer, v *results.Verification, o TerminalOptions) error {
	if o.Width == 0 {
		o.Width = 100
	}
	t := &terminal{width: max(o.Width, 60), colour: o.Colour}
	t.println("")
	t.println(t.paint(bold, clip("topic "+printable(v.Topic), t.width)))
	t.println(t.paint(faint, clip(verificationLine(v), t.width)))
	t.println("")
	t.verified(v)
	t.println("")
	for _, f := range findingFacts(v) {
		t.fact(f.Label, "", f.Text)
	}
	for _, n := range v.Notes {
		t.fact("note", mild, n)
	}
	t.verifiedPartitions(v)
	t.verifiedProducers(v)
	t.examples(v.Examples)
	t.println("")
	label := "thresholds"
	for _, th := range v.Thresholds {
		code := good
		if !th.Held {
			code = bad
		}
		t.fact(label, code, thresholdText(th))
		label = ""
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// verificationLine is what was read, in one line.
func verificationLine(v *results.Verification) string {
	parts := []string{v.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC"), plural(len(v.Partitions), "partition"),
		count(v.Total.Messages) + " messages read in " + duration(float64(v.ElapsedNs))}
	return strings.Join(parts, " · ")
}

// verified is the verdict.
func (t *terminal) verified(v *results.Verification) {
	broken := 0
	for _, th := range v.Thresholds {
		if !th.Held {
			broken++
		}
	}
	switch {
	case !v.Complete:
		t.println("  " + t.paint(bad, "NOT READ TO THE END") + " – what is missing is not known to be lost")
	case broken > 0:
		t.println("  " + t.paint(bad, "BROKEN") + " – " + plural(broken, "threshold"))
	default:
		t.println("  " + t.paint(good, "INTACT"))
	}
}

// findingFacts are the counts of the topic and of each run.
func findingFacts(v *results.Verification) []labelled {
	facts := []labelled{{"messages", count(v.Total.Messages) + " · distinct " + count(v.Total.Distinct) + " · " + findingText(v.Total, v.Complete)}}
	if n := v.Total.Unstamped; n > 0 {
		facts = append(facts, labelled{"unstamped", count(n) + " carry no stamp of kbench's: nothing can be said of them"})
	}
	if n := v.Total.Removed; n > 0 {
		facts = append(facts, labelled{"removed", count(n) + " numbers are missing that retention or compaction may have taken away"})
	}
	if n := v.Total.Unread; n > 0 {
		facts = append(facts, labelled{"unread", count(n) + " offsets are behind damage in the log"})
	}
	const mostRuns = 20
	for i, r := range v.Runs {
		if i == mostRuns {
			facts = append(facts, labelled{"", fmt.Sprintf("… and %s more", plural(len(v.Runs)-i, "run"))})
			break
		}
		text := plural(r.Producers, "producer") + " · due " + r.FirstDue.Format("2006-01-02 15:04:05.000") + " to " + r.LastDue.Format("15:04:05.000 UTC") +
			" · " + count(r.Messages) + " messages · " + findingText(r.Findings, v.Complete)
		facts = append(facts, labelled{"run " + r.Tag[:min(len(r.Tag), 4)], text})
	}
	return facts
}

// findingText is what is wrong with messages.
func findingText(f results.Findings, complete bool) string {
	lost, misplaced := count(f.Lost), count(f.Misplaced)
	if !complete {
		lost = "not known"
	}
	if f.MisplacedUnchecked {
		misplaced = "not checked"
	}
	return fmt.Sprintf("lost %s · duplicated %s · reordered %s · corrupted %s · misplaced %s",
		lost, count(f.Duplicated), count(f.Reordered), count(f.Corrupted), misplaced)
}

// mostRows bounds the tables of partitions and producers.
const mostRows = 64

func (t *terminal) verifiedPartitions(v *results.Verification) {
	rows := [][]string{{"partition", "from", "to", "messages", "duplicated", "reordered", "corrupted", "misplaced", "unstamped", "unread"}}
	for _, p := range v.Partitions[:min(len(v.Partitions), mostRows)] {
		rows = append(rows, []string{fmt.Sprint(p.Partition), count(p.First), count(p.End), count(p.Messages), count(p.Duplicated),
			count(p.Reordered), count(p.Corrupted), count(p.Misplaced), count(p.Unstamped), count(p.Unread)})
	}
	t.println("")
	t.table(rows, func(row int) string {
		if row == 0 {
			return ""
		}
		if p := v.Partitions[row-1]; p.Corrupted+p.Reordered+p.Misplaced+p.Unread > 0 {
			return bad
		}
		return ""
	})
	if n := len(v.Partitions) - mostRows; n > 0 {
		t.println(fmt.Sprintf("  … and %s more (--format json has them all)", plural(n, "partition")))
	}
}

func (t *terminal) verifiedProducers(v *results.Verification) {
	if len(v.Producers) == 0 {
		return
	}
	rows := [][]string{{"producer", "messages", "lost", "duplicated", "reordered", "misplaced"}}
	for _, p := range v.Producers[:min(len(v.Producers), mostRows)] {
		rows = append(rows, []string{fmt.Sprintf("%d of run %s", p.Producer, p.Run), count(p.Messages), count(p.Lost), count(p.Duplicated), count(p.Reordered), count(p.Misplaced)})
	}
	t.println("")
	t.table(rows, func(int) string { return "" })
}

// examples say where to look.
func (t *terminal) examples(list []results.FindingExample) {
	if len(list) > 0 {
		t.println("")
	}
	kind, shown := "", 0
	for _, e := range list {
		label := ""
		if e.Kind != kind {
			kind, label, shown = e.Kind, e.Kind, 0
		}
		const most = 3
		if shown++; shown > most {
			continue // --format json has more
		}
		t.fact(label, "", exampleText(e))
	}
}

func exampleText(e results.FindingExample) string {
	var parts []string
	if e.Partition >= 0 {
		parts = append(parts, fmt.Sprintf("partition %d offset %d", e.Partition, e.Offset))
	}
	if e.Run != "" {
		number := fmt.Sprint("number ", e.Number)
		if e.To > e.Number {
			number = fmt.Sprintf("numbers %d to %d", e.Number, e.To)
		}
		parts = append(parts, fmt.Sprintf("%s of producer %d of run %s", number, e.Producer, e.Run))
	}
	return strings.Join(parts, ", ") + ": " + e.Text
}
