package verify

import (
	"cmp"
	"slices"

	"github.com/kbench/kbench/results"
)

// mostExamples bounds the examples of one kind, mostProducers the producers that are listed.
const (
	mostExamples  = 10
	mostProducers = 100
)

// exampleKinds are the kinds of findings, in the order in which they are told.
var exampleKinds = []string{"lost", "corrupted", "reordered", "misplaced", "duplicated", "unread", "unstamped"}

// examples are the first findings of each kind. The zero value is ready for use.
type examples struct {
	of map[string][]results.FindingExample
}

func (x *examples) full(kind string) bool { return len(x.of[kind]) >= mostExamples }

func (x *examples) add(kind string, e results.FindingExample, text string) {
	if x.full(kind) {
		return
	}
	if x.of == nil {
		x.of = map[string][]results.FindingExample{}
	}
	e.Kind, e.Text = kind, text
	x.of[kind] = append(x.of[kind], e)
}

func (x *examples) list() []results.FindingExample {
	out := []results.FindingExample{}
	for _, kind := range exampleKinds {
		out = append(out, x.of[kind]...)
	}
	return out
}

func (s sender) compare(o sender) int {
	return cmp.Or(cmp.Compare(s.tag, o.tag), cmp.Compare(s.producer, o.producer))
}

// add sums findings up.
func add(to *results.Findings, f results.Findings) {
	to.Messages += f.Messages
	to.Distinct += f.Distinct
	to.Lost += f.Lost
	to.Removed += f.Removed
	to.Duplicated += f.Duplicated
	to.Reordered += f.Reordered
	to.Misplaced += f.Misplaced
	to.Corrupted += f.Corrupted
	to.Unstamped += f.Unstamped
	to.Unread += f.Unread
}

// wrong is how many messages of a producer are not as they should be.
func wrong(f results.Findings) int64 { return f.Lost + f.Reordered + f.Misplaced + f.Duplicated }

// worst lists the producers with something wrong.
func (a *Audit) worst(who []sender) []results.VerifiedProducer {
	list := []results.VerifiedProducer{}
	for _, s := range who {
		if acc := a.senders[s]; wrong(acc.Findings) > 0 {
			acc.MisplacedUnchecked = a.By == nil
			list = append(list, results.VerifiedProducer{Run: tagText(s.tag), Producer: s.producer, Highest: acc.highest, Findings: acc.Findings})
		}
	}
	slices.SortStableFunc(list, func(a, b results.VerifiedProducer) int { return cmp.Compare(wrong(b.Findings), wrong(a.Findings)) })
	return list[:min(len(list), mostProducers)]
}
