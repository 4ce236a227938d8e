package results_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

func histogram(values ...int64) *hist.Histogram {
	h := hist.New()
	for _, v := range values {
		h.Record(v)
	}
	return h
}

// threeWindows are one of warm-up and two measured ones, the last of them cut short.
func threeWindows() []results.Window {
	return []results.Window{
		{StartNs: -1e9, LengthNs: 1e9, Attempted: 5, Acked: 5, Lag: -1, Series: map[string]*hist.Histogram{results.SeriesResponse: histogram(7e6)}},
		{StartNs: 0, LengthNs: 1e9, Attempted: 4, Acked: 2, Failed: 1, Unknown: 1, Received: 2, AckedBytes: 200, Lag: 0, InFlight: 1, LatenessNs: 123_456, RSSBytes: 48 << 20,
			Series: map[string]*hist.Histogram{results.SeriesResponse: histogram(1e6, 3e6), results.SeriesFailed: histogram(9e6), results.SeriesE2E: histogram(-2e6, 4e6)}},
		{StartNs: 1e9, LengthNs: 5e8, Acked: 1, Attempted: 1, AckedBytes: 100, Lag: 17, Series: map[string]*hist.Histogram{results.SeriesResponse: histogram(2_000_001), results.SeriesFailed: nil}},
	}
}

func TestWriteRun(t *testing.T) {
	dir, err := results.Create(t.TempDir())
	require.NoError(t, err)
	point, run := &results.Point{ID: "p03"}, &results.Run{Repeat: 2, StartedAt: started}
	require.NoError(t, dir.WriteRun(point, run, threeWindows()))
	require.Equal(t, "p03-r2.hlog", run.Log)
	require.Equal(t, "p03-r2.csv", run.Timeline)

	whole, err := dir.ReadSeries(run)
	require.NoError(t, err)
	require.Len(t, whole, 3)
	require.EqualValues(t, 3, whole[results.SeriesResponse].Count(), "the warm-up is not in it")
	require.EqualValues(t, 3e6, whole[results.SeriesResponse].Max())
	require.EqualValues(t, -2e6, whole[results.SeriesE2E].Min())
	require.EqualValues(t, 1, whole[results.SeriesE2E].Negative())
	for _, named := range []string{results.SeriesResponse, results.SeriesE2E} { // untagged, and with a tag
		one, err := dir.ReadSeries(run, named)
		require.NoError(t, err)
		require.Equal(t, map[string]*hist.Histogram{named: whole[named]}, one, "a series by itself is as among all")
	}
	var starts []int64
	require.NoError(t, dir.EachInterval(run, func(series string, start, length int64, h *hist.Histogram) error {
		if series == results.SeriesResponse {
			starts = append(starts, start, length)
		}
		return nil
	}))
	require.Equal(t, []int64{0, 1e9, 1e9, 5e8}, starts)
	stop := errors.New("stop")
	require.ErrorIs(t, dir.EachInterval(run, func(string, int64, int64, *hist.Histogram) error { return stop }), stop)

	rows, err := dir.ReadTimeline(run)
	require.NoError(t, err)
	require.Len(t, rows, 3)
	for i, w := range threeWindows() {
		require.Equal(t, w.Row(), rows[i])
	}
	require.EqualValues(t, 2, rows[2].AckedPerSecond, "1 in half a second")
	require.EqualValues(t, -1, rows[0].Lag)
}

func TestGoldenTimeline(t *testing.T) {
	dir, err := results.Create(t.TempDir())
	require.NoError(t, err)
	run := &results.Run{StartedAt: started}
	require.NoError(t, dir.WriteRun(&results.Point{ID: "p00"}, run, threeWindows()))
	got, err := os.ReadFile(filepath.Join(dir.Path(), run.Timeline))
	require.NoError(t, err)
	golden := filepath.Join("testdata", "timeline.csv")
	if *update {
		require.NoError(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestHeadlineOfAClosedLoop(t *testing.T) {
	dir, err := results.Create(t.TempDir())
	require.NoError(t, err)
	run := &results.Run{StartedAt: started}
	windows := []results.Window{{LengthNs: 1e9, Series: map[string]*hist.Histogram{results.SeriesService: histogram(5e6), results.SeriesProduce: histogram(4e6)}}}
	require.NoError(t, dir.WriteRun(&results.Point{ID: "p00"}, run, windows))
	log, err := os.ReadFile(filepath.Join(dir.Path(), run.Log))
	require.NoError(t, err)
	require.Contains(t, string(log), "\n0.000,1.000,5.000,")
	require.Contains(t, string(log), "\nTag=request.produce,0.000,1.000,4.000,")
	whole, err := dir.ReadSeries(run)
	require.NoError(t, err)
	require.EqualValues(t, 1, whole[results.SeriesService].Count())
}

func TestNoValuesAtAll(t *testing.T) {
	dir, err := results.Create(t.TempDir())
	require.NoError(t, err)
	run := &results.Run{StartedAt: started}
	require.NoError(t, dir.WriteRun(&results.Point{ID: "p00"}, run, nil))
	whole, err := dir.ReadSeries(run)
	require.NoError(t, err)
	require.Empty(t, whole)
	rows, err := dir.ReadTimeline(run)
	require.NoError(t, err)
	require.Empty(t, rows)
}

func TestNamesOfFilesAreNotTrusted(t *testing.T) {
	dir, err := results.Create(filepath.Join(t.TempDir(), "result"))
	require.NoError(t, err)
	outside := filepath.Join(filepath.Dir(dir.Path()), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("start_s\n1\n"), 0o600))
	for _, name := range []string{"", "../outside", outside, "missing"} {
		_, err := dir.ReadTimeline(&results.Run{Timeline: name})
		require.Error(t, err, name)
		_, err = dir.ReadSeries(&results.Run{Log: name})
		require.Error(t, err, name)
	}
	for _, id := range []string{"", "../x", "a/b", ".hidden"} {
		require.Error(t, dir.WriteRun(&results.Point{ID: id}, &results.Run{StartedAt: started}, nil), id)
	}
}

func TestBadTimelines(t *testing.T) {
	for _, c := range []struct{ about, content, says string }{
		{"an empty file", "", "EOF"},
		{"another CSV", "a,b\n1,2\n", "not a timeline"},
		{"a missing field", "start_s,acked\n1,2\n3\n", "t.csv:3: wrong number of fields"},
		{"a word for a number", "start_s,acked\n1,2\n3,many\n", "t.csv:3: column acked"},
		{"a fraction of a message", "start_s,acked\n1,2.5\n", "column acked"},
		{"a rate that is not finite", "start_s,acked_per_s\n1,NaN\n", "column acked_per_s"},
		{"a time beyond all", "start_s\n1e300\n", "column start_s"},
	} {
		t.Run(c.about, func(t *testing.T) {
			_, err := results.ParseTimeline("t.csv", strings.NewReader(c.content))
			var bad *results.FileError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, c.says)
		})
	}
	rows, err := results.ParseTimeline("t.csv", strings.NewReader("future,start_s\nx,1.5\n"))
	require.NoError(t, err, "unknown columns are passed over")
	require.EqualValues(t, 1.5e9, rows[0].StartNs)
	require.EqualValues(t, -1, rows[0].Lag)
	require.Zero(t, rows[0].RSSBytes)
}

func TestTimelineKeepsEveryNanosecond(t *testing.T) {
	dir, err := results.Create(t.TempDir())
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		w := results.Window{
			StartNs:    rapid.Int64Range(-1e15, 1e15).Draw(t, "start"),
			LengthNs:   rapid.Int64Range(0, 1e13).Draw(t, "length"),
			Acked:      rapid.Int64Range(0, math.MaxInt64).Draw(t, "acked"),
			LatenessNs: rapid.Int64Range(0, 1e15).Draw(t, "lateness"),
			Lag:        rapid.Int64Range(-1, 1e15).Draw(t, "lag"),
			RSSBytes:   rapid.Int64Range(0, 1e15).Draw(t, "memory"),
			Series:     map[string]*hist.Histogram{"request.x": histogram(rapid.SliceOf(rapid.Int64Range(-1e12, 1e12)).Draw(t, "values")...)},
		}
		run := &results.Run{StartedAt: started}
		require.NoError(t, dir.WriteRun(&results.Point{ID: "p"}, run, []results.Window{w}))
		rows, err := dir.ReadTimeline(run)
		require.NoError(t, err)
		require.Equal(t, []results.TimelineRow{w.Row()}, rows)
	})
}

func FuzzTimeline(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "timeline.csv"))
	require.NoError(f, err)
	f.Add(golden)
	f.Add([]byte("start_s,x_count,x_p50_ms\n-1.5,3,0.000001\n"))
	f.Add([]byte("start_s,start_s,\"a\nb_count\"\n1,2,3\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := results.ParseTimeline("x", bytes.NewReader(data))
		if err == nil {
			records, _ := csv.NewReader(bytes.NewReader(data)).ReadAll()
			if len(rows) != len(records)-1 {
				t.Fatal("rows went missing")
			}
		}
	})
}

func TestSummarise(t *testing.T) {
	require.Equal(t, results.Series{}, results.Summarise(nil))
	require.Equal(t, results.Series{}, results.Summarise(hist.New()))
	one := results.Summarise(histogram(1_000_500))
	require.Equal(t, results.Series{Count: 1, MinNs: 1_000_500, MeanNs: 1_000_500, P50Ns: 1_000_500, P90Ns: 1_000_500, P99Ns: 1_000_500, P999Ns: 1_000_500, P9999Ns: 1_000_500, MaxNs: 1_000_500}, one)
	negative := results.Summarise(histogram(-45e6, -44e6))
	require.EqualValues(t, -44e6, negative.P50Ns, "no quantile above the maximum")
	require.EqualValues(t, 1, results.Summarise(histogram(1, 121e9)).Clamped)
	rapid.Check(t, func(t *rapid.T) {
		s := results.Summarise(histogram(rapid.SliceOfN(rapid.Int64Range(-1e9, hist.Highest), 1, 50).Draw(t, "values")...))
		if s.MinNs >= 0 {
			require.True(t, slices.IsSorted([]int64{s.MinNs, s.P50Ns, s.P90Ns, s.P99Ns, s.P999Ns, s.P9999Ns, s.MaxNs}), "%+v", s)
		}
	})
}
