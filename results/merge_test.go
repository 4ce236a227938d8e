package results_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

// load makes the windows of a run, with random latencies, and puts every value into all as well.
func load(seed uint64, all map[string]*hist.Histogram) (windows []results.Window, counts results.Counts) {
	random := rand.New(rand.NewPCG(seed, 1))
	for second := -1; second < 6; second++ { // one of warm-up, four measured, one of drain
		w := results.Window{StartNs: int64(second) * 1e9, LengthNs: 1e9, Lag: int64(second + 1), RSSBytes: int64(1000 + second), Series: map[string]*hist.Histogram{}}
		for _, name := range []string{results.SeriesResponse, results.SeriesService, results.SeriesE2E} {
			h := hist.New()
			for range 200 + random.IntN(50) {
				v := int64(random.ExpFloat64() * 3e6)
				h.Record(v)
				if second >= 0 {
					all[name].Record(v)
				}
			}
			w.Series[name] = h
		}
		w.Attempted = w.Series[results.SeriesResponse].Count() + 3
		w.Acked, w.Failed, w.Unknown = w.Attempted-3, 2, 1
		if second >= 0 {
			counts.Attempted, counts.Acked = counts.Attempted+w.Attempted, counts.Acked+w.Acked
			counts.Failed, counts.Unknown = counts.Failed+2, counts.Unknown+1
			counts.Received += w.Series[results.SeriesE2E].Count()
		}
		windows = append(windows, w)
	}
	return windows, counts
}

// shardDir writes a result as one kbench process would have.
func shardDir(t *testing.T, n int, offset time.Duration, all map[string]*hist.Histogram, change func(*results.Result)) *results.Dir {
	dir, err := results.Create(filepath.Join(t.TempDir(), fmt.Sprintf("host-%d", n)))
	require.NoError(t, err)
	r := &results.Result{
		Workload: results.Workload{Name: "w", Hash: "abc", Effective: []byte("{}")}, StartedAt: started.Add(offset), Seed: uint64(n),
		Points:     []results.Point{{ID: "p00", Label: "w"}, {ID: "p01", Label: "x", Skipped: "makes no sense"}},
		Provenance: results.Provenance{Host: results.Host{Hostname: fmt.Sprintf("host-%d", n), CPUs: n}, Cluster: results.Cluster{ClusterID: "c"}},
	}
	for repeat := range 2 {
		windows, counts := load(uint64(n*10+repeat), all)
		run := results.Run{
			Repeat: repeat, StartedAt: started.Add(offset + time.Duration(repeat)*time.Minute), ElapsedNs: 4e9, Loop: "open", AckMeaning: "acked", Counts: counts,
			Rates:   results.Rates{MessagesPerSecond: float64(counts.Acked) / 4, TargetMessagesPerSecond: 250},
			Series:  map[string]results.Series{},
			Verdict: results.Verdict{Valid: true}, Errors: map[string]int64{"TIMEOUT": 2},
			Thresholds:  []results.Threshold{{Expression: "errors=0", Value: "2", Held: false}},
			Generator:   results.Generator{CPUCores: 0.5, CPUAvailable: 2, CPUNsPerMessage: 100 * float64(n), MaxRSSBytes: 1000, GCPauseMaxNs: int64(n)},
			Consumption: &results.Consumption{Groups: []results.Group{{Received: counts.Received}}},
			Events:      []results.Event{{AtNs: 1e9, Kind: "pause", Text: "stood still"}},
			Phases:      []results.Phase{{Name: "measure", Kind: "measure", LengthNs: 4e9, Counts: results.PhaseCounts{Acked: counts.Acked}}},
			Batches:     results.Batches{Batches: 10, Requests: 5, MessagesPerBatch: float64(n), MessagesPerRequest: 2, BytesPerBatch: 100, CompressionRatio: 2},
			LittlesLaw:  &results.LittlesLaw{InFlight: 1, RateTimesService: 1, Holds: true},
			Topics:      []results.Topic{{Name: "t"}},
		}
		for _, name := range []string{results.SeriesResponse, results.SeriesService, results.SeriesE2E} {
			h := hist.New()
			for _, w := range windows[1:] {
				h.Merge(w.Series[name])
			}
			run.Series[name] = results.Summarise(h)
		}
		require.NoError(t, dir.WriteRun(&r.Points[0], &run, windows))
		r.Points[0].Runs = append(r.Points[0].Runs, run)
	}
	if change != nil {
		change(r)
	}
	require.NoError(t, dir.Save(r))
	require.NoError(t, dir.Release())
	return dir
}

func series() map[string]*hist.Histogram {
	return map[string]*hist.Histogram{results.SeriesResponse: hist.New(), results.SeriesService: hist.New(), results.SeriesE2E: hist.New()}
}

// Merged histograms are those of one run that had all values, and nothing is lost on the way.
func TestMergeIsWithoutLoss(t *testing.T) {
	all := series()
	var dirs []*results.Dir
	for n, offset := range []time.Duration{0, 20 * time.Millisecond, 7 * time.Millisecond} {
		dirs = append(dirs, shardDir(t, n+1, offset, all, nil))
	}
	to, err := results.Create(filepath.Join(t.TempDir(), "all"))
	require.NoError(t, err)
	r, err := results.Merge(to, dirs...)
	require.NoError(t, err)
	require.NoError(t, to.Save(r))
	require.NoError(t, to.Release())
	back, err := to.Load()
	require.NoError(t, err)

	whole := series()
	var counts results.Counts
	require.Len(t, back.Points[0].Runs, 2)
	for i := range back.Points[0].Runs {
		run := &back.Points[0].Runs[i]
		merged, err := to.ReadSeries(run)
		require.NoError(t, err)
		for name, h := range merged {
			whole[name].Merge(h)
			require.Equal(t, run.Series[name].Count, h.Count())
			require.Equal(t, run.Series[name].P99Ns, results.Summarise(h).P99Ns, "the log and the summary are of the same")
		}
		require.Equal(t, run.Counts.Attempted, run.Counts.Acked+run.Counts.Failed+run.Counts.Unknown)
		counts.Acked, counts.Failed, counts.Received = counts.Acked+run.Counts.Acked, counts.Failed+run.Counts.Failed, counts.Received+run.Counts.Received
		require.True(t, run.Verdict.Valid)
		require.EqualValues(t, 4e9+20e6, run.ElapsedNs)
		require.InDelta(t, float64(run.Counts.Acked)*4e9/float64(run.ElapsedNs)/4, run.Rates.MessagesPerSecond, 1e-6)
		require.EqualValues(t, 750, run.Rates.TargetMessagesPerSecond)
		require.EqualValues(t, map[string]int64{"TIMEOUT": 6}, run.Errors)
		require.Equal(t, 1.5, run.Generator.CPUCores)
		require.EqualValues(t, 3000, run.Generator.MaxRSSBytes)
		require.EqualValues(t, 3, run.Generator.GCPauseMaxNs)
		require.Equal(t, 2.0, run.Batches.MessagesPerBatch)
		require.Equal(t, 2.0, run.Batches.CompressionRatio)
		require.Equal(t, run.Counts.Received, run.Consumption.Groups[0].Received)
		require.EqualValues(t, 12, run.Consumption.Lag.FinalMessages, "of three shards in the last measured window")
		require.Equal(t, run.Counts.Acked, run.Phases[0].Counts.Acked)
		require.Len(t, run.Events, 3)
		require.Contains(t, run.Events[0].Text, "shard-1: stood still")
		require.Equal(t, 3.0, run.LittlesLaw.InFlight)
		require.Len(t, run.Topics, 1)
		rows, err := to.ReadTimeline(run)
		require.NoError(t, err)
		require.Len(t, rows, 7)
		acked := int64(0)
		for _, row := range rows {
			if row.StartNs >= 0 {
				acked += row.Acked
			}
			require.EqualValues(t, 3*(1000+row.StartNs/1e9), row.RSSBytes, "of three generators")
		}
		require.Equal(t, run.Counts.Acked, acked)
	}
	for name, want := range all {
		got := whole[name]
		require.Equal(t, want.Count(), got.Count(), name)
		for _, q := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
			require.Equal(t, want.Quantile(q), got.Quantile(q), "%s at %v", name, q)
		}
	}
	require.Equal(t, all[results.SeriesResponse].Count(), counts.Acked)
	require.EqualValues(t, 2*3*6*2, counts.Failed)
	require.Equal(t, "makes no sense", back.Points[1].Skipped)
	require.Equal(t, "host-1, host-2, host-3", back.Provenance.Host.Hostname)
	require.Len(t, back.Shards, 3)
	for i, s := range back.Shards {
		require.Equal(t, i+1, s.Provenance.Host.CPUs, "the environment of each is kept")
		require.EqualValues(t, i+1, s.Seed)
		one, err := results.OpenDir(filepath.Join(to.Path(), s.Folder))
		require.NoError(t, err)
		for _, name := range []string{"result.json", "p00-r1.hlog", "p00-r0.csv"} {
			want, err := os.ReadFile(filepath.Join(dirs[i].Path(), name))
			require.NoError(t, err)
			got, err := os.ReadFile(filepath.Join(one.Path(), name))
			require.NoError(t, err)
			require.Equal(t, want, got, "each shard is kept whole")
		}
	}
}

func TestMergeRefusesWhatIsUnlike(t *testing.T) {
	base := shardDir(t, 1, 0, series(), nil)
	for _, row := range []struct {
		says, want string
		offset     time.Duration
		change     func(*results.Result)
	}{
		{"another workload", "their workloads differ", 0, func(r *results.Result) { r.Workload.Hash = "abd" }},
		{"another cluster", "measured on different clusters", 0, func(r *results.Result) { r.Provenance.Cluster.ClusterID = "d" }},
		{"fewer points", "one has 2 points and the other 1", 0, func(r *results.Result) { r.Points = r.Points[:1] }},
		{"other points", `point p01 is "x" in one and "y" in the other`, 0, func(r *results.Result) { r.Points[1].Label = "y" }},
		{"another kind of load", "the runs of point p00 differ in kind: open and closed", 0, func(r *results.Result) { r.Points[0].Runs[0].Loop = "closed" }},
		{"another time", "was not measured at the same time", time.Hour, nil},
		{"what was merged", "was merged itself", 0, func(r *results.Result) { r.Shards = []results.Shard{{}} }},
		{"a search", "is no result of kbench run", 0, func(r *results.Result) { r.Capacity = []results.Capacity{{}} }},
		{"a file of another run", "a file is not the run's", 0, func(r *results.Result) {
			s := r.Points[0].Runs[1].Series["response"]
			s.Count++
			r.Points[0].Runs[1].Series["response"] = s
		}},
	} {
		t.Run(row.says, func(t *testing.T) {
			to, err := results.Create(filepath.Join(t.TempDir(), "all"))
			require.NoError(t, err)
			_, err = results.Merge(to, base, shardDir(t, 2, row.offset, series(), row.change))
			require.ErrorContains(t, err, row.want)
			require.NotContains(t, err.Error(), "\n")
			require.NoError(t, to.Clear())
			require.NoError(t, to.Release())
			require.NoError(t, os.Remove(to.Path()), "nothing is left")
		})
	}
	_, err := results.Merge(base, base)
	require.ErrorContains(t, err, "2 to 1000 are needed")
	_, err = results.Merge(base, base, base)
	require.ErrorContains(t, err, "they are the same directory")
}

// A shard that is not valid, that ran beside the others for too short a time, or that lacks a run, shows.
func TestMergeJudges(t *testing.T) {
	base := shardDir(t, 1, 0, series(), nil)
	merge := func(offset time.Duration, change func(*results.Result)) *results.Result {
		to, err := results.Create(filepath.Join(t.TempDir(), "all"))
		require.NoError(t, err)
		r, err := results.Merge(to, base, shardDir(t, 2, offset, series(), change))
		require.NoError(t, err)
		require.NoError(t, to.Release())
		return r
	}
	r := merge(0, func(r *results.Result) {
		r.Points[0].Runs[1].Verdict = results.Verdict{Reasons: []string{"too busy"}, Warnings: []string{"a warning"}}
	})
	require.True(t, r.Points[0].Runs[0].Verdict.Valid)
	require.Equal(t, results.Verdict{Reasons: []string{"shard-2: too busy"}, Warnings: []string{"shard-2: a warning"}}, r.Points[0].Runs[1].Verdict)

	r = merge(time.Second, nil)
	require.False(t, r.Points[0].Runs[0].Verdict.Valid)
	require.Equal(t, "the shards measured together for 60.0 % of the time only, limit 95 %: the load was not all of theirs at once", r.Points[0].Runs[0].Verdict.Reasons[0])

	r = merge(0, func(r *results.Result) { r.Points[0].Runs = r.Points[0].Runs[:1] })
	require.True(t, r.Interrupted)
	require.Len(t, r.Points[0].Runs, 1)
	require.False(t, merge(0, nil).Interrupted)
}
