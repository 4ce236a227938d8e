package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// disturbed is a result of one run with faults of every outcome.
func disturbed() *results.Result {
	base := &results.FaultBase{MessagesPerSecond: 5000, P99Ns: 2e6, Windows: 6}
	run := results.Run{
		ElapsedNs: 30e9, Loop: "open", AckMeaning: "acked", Counts: results.Counts{Attempted: 10, Acked: 10},
		Series:  map[string]results.Series{results.SeriesResponse: {Count: 10, P50Ns: 1e6, P99Ns: 2e6, MaxNs: 3e6}},
		Verdict: results.Verdict{Valid: true},
		Faults: []results.Fault{
			{Kind: "stall", Text: "all connections stalled", AtNs: 6e9, DurationNs: 2e9, Series: "response", Before: base, Recovered: true, RecoverNs: 3e9, Affected: 10_130, WorstP99Ns: 2e9, LowestRate: 5000},
			{Kind: "cut", Text: "4 connections cut", AtNs: 15e9, Series: "response", Before: base, Recovered: true},
			{Kind: "delay", Text: "slow", AtNs: 20e9, DurationNs: 1e9, Series: "response", Before: base, NotRecovered: "the measured phase ended before", Affected: 12, FailedMessages: 5},
			{Kind: "cut", Given: "at=50s kind=cut", Skipped: "the measured phase ended before"},
		},
		Events: []results.Event{{AtNs: 6e9, DurationNs: 2e9, Kind: "fault", Text: "all connections stalled"}},
	}
	return &results.Result{Schema: results.Schema, Workload: results.Workload{Name: "stall"}, Points: []results.Point{{ID: "p00", Label: "p00", Runs: []results.Run{run}}}}
}

// What each fault was and did stands wherever the run's figures do.
func TestFaultsAreInEveryReport(t *testing.T) {
	var text, markdown, page, data bytes.Buffer
	r := disturbed()
	require.NoError(t, Terminal(&text, r, TerminalOptions{Width: 400}))
	require.NoError(t, Markdown(&markdown, r))
	require.NoError(t, HTML(&page, r, nil))
	require.NoError(t, JSON(&data, r))
	for _, words := range []string{
		"at 6.00 s, for 2.00 s: all connections stalled",
		"recovered 3.00 s after it began · 10,130 messages affected · before 5,000 msg/s and response p99 2.00 ms, then down to 5,000 and up to 2.00 s",
		"at 15.0 s: 4 connections cut",
		"the load did not leave its bounds · 0 messages affected",
		"not recovered: the measured phase ended before · 12 messages affected, 5 of them failed or unknown",
		"did not happen: the measured phase ended before",
		"recovered: 3 windows in a row",
	} {
		for name, out := range map[string]string{"terminal": text.String(), "Markdown": strings.ReplaceAll(markdown.String(), `\`, ""), "HTML": page.String()} {
			require.Contains(t, out, words, name)
		}
	}
	require.Contains(t, data.String(), `"recoverNs": 3000000000`)
	require.Contains(t, data.String(), `"affectedMessages": 10130`)
	many := results.Run{Faults: make([]results.Fault, 30)}
	facts := faultFacts(&many)
	require.Equal(t, "… and 10 more faults", facts[len(facts)-2].Text)
	require.Empty(t, faultFacts(&results.Run{}))
}

func TestVerificationForPeople(t *testing.T) {
	v := &results.Verification{Topic: "orders", Complete: true, ElapsedNs: 1e9,
		Total:      results.Findings{Messages: 1200, Distinct: 1190, Lost: 3, Removed: 7, Duplicated: 2, Reordered: 1, Misplaced: 4, Corrupted: 5, Unstamped: 6, Unread: 8},
		Runs:       []results.VerifiedRun{{Tag: "0abc1234", Producers: 2, Findings: results.Findings{Messages: 1190, Lost: 3}}},
		Partitions: []results.VerifiedPartition{{Partition: 0, End: 1300, Findings: results.Findings{Messages: 1200, Corrupted: 5}}},
		Producers:  []results.VerifiedProducer{{Run: "0abc1234", Producer: 1, Findings: results.Findings{Messages: 600, Lost: 3}}},
		Examples: []results.FindingExample{{Kind: "lost", Run: "0abc1234", Producer: 1, Number: 5, To: 7, Partition: -1, Offset: -1, Text: "nowhere"},
			{Kind: "corrupted", Partition: 2, Offset: 77, Text: "the checksum"}},
		Notes: []string{"a note"}, Thresholds: []results.Threshold{{Expression: "lost=0", Value: "3"}},
	}
	var out bytes.Buffer
	require.NoError(t, Verification(&out, v, TerminalOptions{Width: 300}))
	for _, words := range []string{"topic orders", "1 partition · 1,200 messages read in 1.00 s", "BROKEN – 1 threshold",
		"1,200 · distinct 1,190 · lost 3 · duplicated 2 · reordered 1 · corrupted 5 · misplaced 4", "6 carry no stamp", "7 numbers are missing", "8 offsets are behind damage",
		"run 0abc", "2 producers", "a note", "1 of run 0abc1234", "numbers 5 to 7 of producer 1 of run 0abc1234: nowhere", "partition 2 offset 77: the checksum", "✗ lost=0 BROKEN (3)"} {
		require.Contains(t, out.String(), words)
	}
	v.Complete, v.Total.MisplacedUnchecked = false, true
	out.Reset()
	require.NoError(t, Verification(&out, v, TerminalOptions{Width: 300}))
	require.Contains(t, out.String(), "NOT READ TO THE END")
	require.Contains(t, out.String(), "lost not known")
	require.Contains(t, out.String(), "misplaced not checked")
}
