package report

import (
	"fmt"
	"strings"

	"github.com/kbench/kbench/results"
)

// transactionFacts say what became of transactions, and of the messages in them.
func transactionFacts(run *results.Run) []labelled {
	t := run.Transactions
	if t == nil {
		return nil
	}
	parts := []string{"committed " + count(t.Committed)}
	messages := []string{"in committed ones " + count(t.CommittedMessages)}
	if n := t.Aborted + t.Failed; n > 0 || t.AbortedMessages > 0 {
		parts = append(parts, "aborted "+count(t.Aborted), "failed "+count(t.Failed))
		messages = append(messages, "in aborted and failed ones "+count(t.AbortedMessages))
	}
	if t.Unknown > 0 || t.UnknownMessages > 0 {
		parts = append(parts, "unknown "+count(t.Unknown))
		messages = append(messages, "in those with an unknown end "+count(t.UnknownMessages))
	}
	text := strings.Join(parts, " · ")
	if t.Committed > 0 {
		text += " · " + quantity(float64(t.CommittedMessages)/float64(t.Committed)) + " messages each"
	}
	facts := []labelled{{"transactions", text}}
	if len(messages) > 1 {
		facts = append(facts, labelled{"", "acked messages " + strings.Join(messages, " · ")})
	}
	if run.Consumption == nil {
		return facts
	}
	read := "consumers read all messages, whatever becomes of their transaction (consumer.isolationLevel)"
	if t.ReadCommitted {
		read = fmt.Sprintf("consumers read committed messages only: e2e holds the wait for the commit · aborted ones received %s", count(t.AbortedReceived))
	}
	return append(facts, labelled{"", read})
}
