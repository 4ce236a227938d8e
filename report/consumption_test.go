package report

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// backlogRun is a run whose consumers began late, in two groups, with the lag of each partition.
func backlogRun(t testing.TB) fixture {
	f := onePoint(t, "backlog", "How fast is a backlog worked off?", scenario{seed: 5, loop: "open", ack: "acked", rate: 1000,
		base: 1800 * time.Microsecond, tail: 0.35, seconds: 20, consumers: true})
	run := &f.result.Points[0].Runs[0]
	lags := &results.Lags{}
	for g := range 2 {
		for p := range int32(3) {
			lags.Columns = append(lags.Columns, results.LagColumn{Group: []string{"kbench-backlog-1", "kbench-backlog-2"}[g], Topic: "kbench-backlog-0", Partition: p})
		}
	}
	for s := range int64(20) {
		row := results.LagRow{EndNs: (s + 1) * 1e9}
		for i := range lags.Columns {
			n := int64(-1)
			switch {
			case s < 5:
				n = 330 * (s + 1)
			case s != 8 || i != 0: // a reading that is missing
				n = max(0, 1650-400*(s-4)-50*int64(i))
			}
			row.Messages = append(row.Messages, n)
		}
		lags.Rows = append(lags.Rows, row)
	}
	require.NoError(t, f.dir.WriteLags(&f.result.Points[0], run, lags))
	whole := &results.Lag{MaxMessages: 9900, MaxAtNs: 5e9, FinalMessages: 0}
	one := run.Series[results.SeriesResponse]
	run.Consumption = &results.Consumption{Lag: whole,
		Groups: []results.Group{
			{Name: "kbench-backlog-1", Received: 20_000, Duplicated: 12, Lag: &results.Lag{MaxMessages: 4950, MaxAtNs: 5e9}, Rebalances: 2, RebalanceMaxNs: 3_210_000_000, Commits: 44, StaleCommits: 1},
			{Name: "kbench-backlog-2", Received: 19_993, Lost: 7, Lag: &results.Lag{MaxMessages: 4950, MaxAtNs: 5e9, FinalMessages: 3}, Rebalances: 1, RebalanceMaxNs: 400_000_000, Commits: 40},
		},
		CatchUp: &results.CatchUp{BacklogMessages: 9900, BeganNs: 5e9, Reached: true, TookNs: 4_310_000_000, MessagesPerSecond: 4321, Series: results.SeriesResponse, Before: &one, During: &one, After: &one}}
	run.Counts.Received, run.Counts.Lost, run.Counts.Duplicated = 39_993, 7, 12
	run.Events = append(run.Events, results.Event{AtNs: 5e9, Kind: "consumers", Text: "the consumers begin, 9900 messages behind"},
		results.Event{AtNs: 12e9, DurationNs: 3_210_000_000, Kind: "rebalance", Text: "kbench-backlog-1: 2 partitions had no reader"})
	require.NoError(t, f.dir.Save(f.result))
	return f
}

func TestConsumptionFacts(t *testing.T) {
	lag := &results.Lag{MaxMessages: 1234, MaxAtNs: 3_040_000_000, FinalMessages: 12}
	for _, row := range []struct {
		says string
		c    *results.Consumption
		want []labelled
	}{
		{"without consumers there is nothing to say", nil, nil},
		{"a group alone is the received line", &results.Consumption{Lag: lag, Groups: []results.Group{{Received: 5}}}, []labelled{{"lag", "max 1,234 at 3.04 s · final 12"}}},
		{"no lag has no time", &results.Consumption{Lag: &results.Lag{}, Groups: []results.Group{{}}}, []labelled{{"lag", "max 0 · final 0"}}},
		{"a lag that was not known is not shown", &results.Consumption{Groups: []results.Group{{}}}, nil},
		{"never caught up", &results.Consumption{Groups: []results.Group{{}}, CatchUp: &results.CatchUp{BacklogMessages: 70, Series: "response", Before: &results.Series{Count: 1, P99Ns: 2e6}}},
			[]labelled{{"catch-up", "70 messages were not caught up with"}, {"", "response p99 2.00 ms before"}}},
		{"a backlog of unknown size", &results.Consumption{Groups: []results.Group{{}}, CatchUp: &results.CatchUp{BacklogMessages: -1, Reached: true, TookNs: 2e9, MessagesPerSecond: 100}},
			[]labelled{{"catch-up", "a backlog caught up with in 2.00 s, receiving 100 msg/s"}}},
		{"rebalances of all groups, the longest of any", &results.Consumption{Groups: []results.Group{{Rebalances: 1, RebalanceMaxNs: 5e6, Commits: 3}}},
			[]labelled{{"rebalances", "1 · longest 5.00 ms until every partition had a reader again"}, {"commits", "3"}}},
	} {
		require.Equal(t, row.want, consumptionFacts(&results.Run{Consumption: row.c}), row.says)
	}
	many := &results.Consumption{Groups: make([]results.Group, 40)}
	facts := consumptionFacts(&results.Run{Consumption: many})
	require.Len(t, facts, mostGroups+1)
	require.Equal(t, "… and 28 groups more", facts[mostGroups].Text)
}

// The lag of each partition is drawn where they can be told apart, with the numbers beside it.
func TestLagByPartitionIsDrawn(t *testing.T) {
	f := backlogRun(t)
	require.NoError(t, Write(f.dir, f.result))
	page, err := os.ReadFile(filepath.Join(f.dir.Path(), HTMLFile))
	require.NoError(t, err)
	text := string(page)
	require.Contains(t, text, "lag by partition")
	require.Contains(t, text, "<th scope=\"col\">lag of g2 1")
	require.Contains(t, text, "p00-r0-lag.csv")
	v := newView(Named{Dir: f.dir, Result: f.result})
	line := v.points[0].timeline(&f.result.Points[0].Runs[0], mostMoments)
	require.Len(t, line.partitions, 6)
	require.Equal(t, []float64{330, 330, 330, 330, 330, 330}, line.moments[0].lags)
	require.True(t, math.IsNaN(line.moments[8].lags[0]), "a reading that is missing is none")
	require.InDelta(t, 0, line.moments[8].lags[1], 0)
	thinned := v.points[0].timeline(&f.result.Points[0].Runs[0], 5)
	require.InDelta(t, 1320, thinned.moments[0].lags[0], 0, "the worst of four windows")
	small := smallTimeline
	for _, p := range line.panels(small) {
		require.NotEqual(t, "lag by partition", p.title, "where many runs are drawn there is no room")
	}

	require.NoError(t, os.WriteFile(filepath.Join(f.dir.Path(), "p00-r0-lag.csv"), []byte("end_s,x\n"), 0o644))
	var b bytes.Buffer
	require.NoError(t, HTML(&b, f.result, f.dir))
	require.Contains(t, b.String(), "lag of p00 run 1: ", "what cannot be read is said")
	require.Contains(t, b.String(), "consumer lag, messages", "and the rest is drawn")

	lags := &results.Lags{Rows: []results.LagRow{{EndNs: 1e9, Messages: make([]int64, 13)}}}
	for p := range int32(13) {
		lags.Columns = append(lags.Columns, results.LagColumn{Topic: "t", Partition: p})
	}
	require.NoError(t, f.dir.WriteLags(&f.result.Points[0], &f.result.Points[0].Runs[0], lags))
	require.Empty(t, newView(Named{Dir: f.dir, Result: f.result}).points[0].timeline(&f.result.Points[0].Runs[0], mostMoments).partitions, "too many to tell apart")
}

func TestPartitionNames(t *testing.T) {
	a, b := results.LagColumn{Topic: "a", Partition: 1}, results.LagColumn{Topic: "b", Partition: 2}
	g, h := results.LagColumn{Group: "g", Topic: "a", Partition: 1}, results.LagColumn{Group: "h", Topic: "a", Partition: 1}
	require.Equal(t, "g2 1", partitionName(h, []results.LagColumn{g, h}))
	for want, row := range map[string][]results.LagColumn{"1": {a}, "a/1": {a, b}, "g1 1": {g, h}, "g1 a/1": {g, h, b}} {
		require.Equal(t, want, partitionName(row[0], row))
	}
}

// Keys that do not fit are left out, all of them, rather than drawn over the title.
func TestKeysOfPartitionsFit(t *testing.T) {
	f := backlogRun(t)
	line := newView(Named{Dir: f.dir, Result: f.result}).points[0].timeline(&f.result.Points[0].Runs[0], mostMoments)
	wide, narrow := timelineChart(line, "x", wideTimeline), timelineChart(line, "x", narrowTimeline)
	require.Contains(t, wide, ">g1 0<")
	require.NotContains(t, narrow, ">g1 0<")
	require.Equal(t, 6, strings.Count(wide, `class="key"`)-strings.Count(narrow, `class="key"`))
}
