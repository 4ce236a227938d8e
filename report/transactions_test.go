package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

func TestTransactionFacts(t *testing.T) {
	consumers := &results.Consumption{}
	for _, row := range []struct {
		says      string
		t         *results.Transactions
		consumers *results.Consumption
		want      []labelled
	}{
		{"without any there is nothing to say", nil, consumers, nil},
		{"all committed, nobody reads", &results.Transactions{Committed: 40, CommittedMessages: 1000}, nil,
			[]labelled{{"transactions", "committed 40 · 25 messages each"}}},
		{"of all kinds, read as they are committed",
			&results.Transactions{Committed: 10, Aborted: 2, Failed: 1, Unknown: 1, CommittedMessages: 1000, AbortedMessages: 200, UnknownMessages: 50, ReadCommitted: true, AbortedReceived: 3}, consumers,
			[]labelled{{"transactions", "committed 10 · aborted 2 · failed 1 · unknown 1 · 100 messages each"},
				{"", "acked messages in committed ones 1,000 · in aborted and failed ones 200 · in those with an unknown end 50"},
				{"", "consumers read committed messages only: e2e holds the wait for the commit · aborted ones received 3"}}},
		{"read at once", &results.Transactions{Committed: 1, CommittedMessages: 1}, consumers,
			[]labelled{{"transactions", "committed 1 · 1 messages each"},
				{"", "consumers read all messages, whatever becomes of their transaction (consumer.isolationLevel)"}}},
	} {
		require.Equal(t, row.want, transactionFacts(&results.Run{Transactions: row.t, Consumption: row.consumers}), row.says)
	}
}

// Series and counts of transactions are in every form of the report.
func TestTransactionsAreReported(t *testing.T) {
	f := backlogRun(t)
	run := &f.result.Points[0].Runs[0]
	run.Transactions = &results.Transactions{Committed: 123, CommittedMessages: 1230}
	run.Series[results.SeriesTransaction] = results.Series{Count: 123, P50Ns: 5e6}
	run.Series[results.SeriesCommit] = results.Series{Count: 123, P50Ns: 1e6}
	var terminal, markdown, page bytes.Buffer
	require.NoError(t, Terminal(&terminal, f.result, TerminalOptions{}))
	require.NoError(t, Markdown(&markdown, f.result))
	require.NoError(t, HTML(&page, f.result, f.dir))
	for name, text := range map[string]string{"terminal": terminal.String(), "markdown": markdown.String(), "page": page.String()} {
		for _, want := range []string{"committed 123", "10 messages each", "5.00 ms"} {
			require.Contains(t, text, want, name)
		}
	}
}
