package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// phased is a run with phases of its own, a steady state, parts, and figures that contradict each other.
func phased(t *testing.T) fixture {
	f := openStall(t)
	run := &f.result.Points[0].Runs[0]
	s := results.Series{Count: 2000, P50Ns: 1_000_000, P99Ns: 3_000_000, MaxNs: 9_000_000}
	series := map[string]results.Series{results.SeriesResponse: s}
	run.Phases = []results.Phase{
		{Name: "warm-up", Kind: results.PhaseWarmUp, StartNs: -2e9, LengthNs: 2e9},
		{Name: "base", Kind: results.PhaseMeasure, LengthNs: 2e9, Counts: results.PhaseCounts{Attempted: 2000, Acked: 2000},
			Rates: results.Rates{MessagesPerSecond: 1000, TargetMessagesPerSecond: 1000}, Series: series},
		{Name: "peak", Kind: results.PhaseMeasure, StartNs: 2e9, LengthNs: 1e9, Counts: results.PhaseCounts{Attempted: 5000, Acked: 4980, Failed: 17, Unknown: 3},
			Rates: results.Rates{MessagesPerSecond: 4980, TargetMessagesPerSecond: 5000}, Series: series},
	}
	run.Steady = &results.Steady{Found: true, AfterNs: 12e9, Drift: -0.002}
	run.LittlesLaw = &results.LittlesLaw{InFlight: 50, InFlightMost: 60, RateTimesService: 75}
	run.Generator.Pacer, run.Generator.LatenessMaxNs, run.Generator.HostCPUShare = "nanosleep", 3_000_000, 0.42
	run.Parts = []results.Parts{{By: results.ByProducer, N: 14_000, Acked: results.Ends{Min: 60, Median: 60, Max: 61},
		P99Ns: results.Ends{Min: 1_000_000, Median: 1_300_000, Max: 9_300_000}, Worst: "812", File: "p00-r0-producers.csv"}}
	return f
}

func TestPhasesAndInsightsEverywhere(t *testing.T) {
	f := phased(t)
	for name, draw := range map[string]func(*bytes.Buffer) error{
		"terminal": func(b *bytes.Buffer) error { return Terminal(b, f.result, TerminalOptions{Width: 250}) },
		"markdown": func(b *bytes.Buffer) error { return Markdown(b, f.result) },
		"html":     func(b *bytes.Buffer) error { return HTML(b, f.result, f.dir) },
	} {
		var b bytes.Buffer
		require.NoError(t, draw(&b), name)
		text := strings.NewReplacer("&#43;", "+", "<td class=\"n\">", " ", "</td>", " ", "|", " ", "\\", "").Replace(b.String())
		for _, part := range []string{
			"warm-up", "base", "peak", "4,980", "5,000", "17",
			"after 12.0 s, which are left out · trend from then on -0.2 %",
			"50 to 60 messages on average · rate × service 75 – these contradict each other",
			"14,000 · acked 60 to 61 each · p99 1.00 ms to 9.30 ms, median 1.30 ms, worst producer 812 · all in p00-r0-producers.csv",
			"max 3.00 ms (nanosleep)", "machine 42.00 % busy",
		} {
			require.Contains(t, text, part, name)
		}
	}
}

func TestPhasesOfOneAreNoTable(t *testing.T) {
	run := &results.Run{Phases: []results.Phase{{Name: "measure"}}}
	require.Nil(t, phaseTable(run))
	rows, measured := phaseRows(&phased(t).result.Points[0].Runs[0])
	require.Equal(t, []bool{false, true, true}, measured)
	require.Equal(t, "–", rows[0][len(rows[0])-1], "a phase without messages has no latency")
	require.Equal(t, "from the beginning · trend from then on +61 %, which is no more than chance or of no matter", steadyText(&results.Steady{Found: true, Drift: 0.61}))
	require.Equal(t, "no steady state: why", steadyText(&results.Steady{Reason: "no steady state: why"}))
}
