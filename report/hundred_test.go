package report

import (
	"bytes"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// realHundred is a sweep as people run them: a hundred points at a rate, each a minute of windows of a second, read
// back with the lag of each partition, some of them invalid for long reasons, one with a fault. Points share
// the files of a few that were made up, but each has its own figures.
func realHundred(t testing.TB) fixture {
	made := make([]scenario, 4)
	for i := range made {
		made[i] = scenario{seed: uint64(70 + i), loop: "open", ack: "acked", rate: 100, base: time.Duration(i+1) * time.Millisecond, tail: 0.3 + 0.1*float64(i),
			stallAt: 20e9, seconds: 60, warmUp: 5, consumers: true, failedEvery: 60 + 30*i}
	}
	made[3].stall = time.Second
	points := make([]results.Point, len(made))
	for i := range points {
		points[i].ID = fmt.Sprintf("p%02d", i)
	}
	f := keep(t, newResult("large", "What do acks, requests in flight and linger cost?"), 1, points, made)
	lags := &results.Lags{}
	for p := range int32(6) {
		lags.Columns = append(lags.Columns, results.LagColumn{Group: "kbench-large-1", Topic: "kbench-large", Partition: p})
	}
	for second := range int64(60) {
		row := results.LagRow{EndNs: (second + 1) * 1e9}
		for p := range lags.Columns {
			row.Messages = append(row.Messages, (second*7919+int64(p)*104_729)%1213)
		}
		lags.Rows = append(lags.Rows, row)
	}
	runs := make([]results.Run, len(made))
	for i := range runs {
		runs[i] = f.result.Points[i].Runs[0]
		require.NoError(t, f.dir.WriteLags(&f.result.Points[i], &runs[i], lags))
	}
	f.result.Points = nil
	for i := range 100 {
		acks, open, linger := []any{0.0, 1.0, "all", "none"}[i/25], float64(1+i/5%5), fmt.Sprintf("%dms", 1<<(i%5))
		run := runs[i%len(runs)]
		worse := 1 + float64(i%37)/20
		run.Order, run.Rates.MessagesPerSecond = i, run.Rates.MessagesPerSecond/worse
		run.Series = maps.Clone(run.Series)
		for name, s := range run.Series {
			s.P50Ns, s.P99Ns, s.P999Ns = int64(float64(s.P50Ns)*worse), int64(float64(s.P99Ns)*worse), int64(float64(s.P999Ns)*worse)
			run.Series[name] = s
		}
		if i%8 == 3 {
			run.Verdict = results.Verdict{Warnings: []string{"one partition took 41 % of the messages"}, Reasons: []string{
				fmt.Sprintf("achieved %.2f %% of the rate asked for, below the limit of 99 %%: the generator or the cluster did not sustain it", 100/worse),
				fmt.Sprintf("the generator stood still for %d ms at %d.2 s, above the limit of 100 ms: what is due meanwhile is sent late, and its lateness is in every latency", 120+i, i%60),
				"2.4 % of CPU time was stolen by the hypervisor, above the limit of 2 %"}}
		}
		f.result.Points = append(f.result.Points, results.Point{ID: fmt.Sprintf("p%02d", i), Runs: []results.Run{run},
			Label:    fmt.Sprintf("requiredAcks=%v maxOpenRequests=%v flush.frequency=%s", acks, open, linger),
			Settings: map[string]any{"producer.requiredAcks": acks, "net.maxOpenRequests": open, "producer.flush.frequency": linger}})
	}
	for i := range 120 {
		f.result.Settings[fmt.Sprintf("producer.some.setting%d", i)] = "a value"
	}
	require.NoError(t, f.dir.Save(f.result))
	return f
}

// A sweep of a hundred points as people run them stays under a megabyte, with nothing left out.
func TestHundredRealPoints(t *testing.T) {
	f := realHundred(t)
	var page bytes.Buffer
	began := time.Now()
	require.NoError(t, HTML(&page, f.result, f.dir))
	t.Logf("%d bytes, drawn in %v", page.Len(), time.Since(began).Round(time.Millisecond))
	require.Less(t, page.Len(), 1_000_000)
	require.Equal(t, 100, bytes.Count(page.Bytes(), []byte("chart small timeline")))
	require.Equal(t, heatLimit, bytes.Count(page.Bytes(), []byte("chart small heat")))
	require.Contains(t, page.String(), "lag of ", "by partition")
	for i := range f.result.Points {
		for _, reason := range f.result.Points[i].Runs[0].Verdict.Reasons {
			require.Contains(t, page.String(), reason)
		}
	}
}
