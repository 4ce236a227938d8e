package results_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

var update = flag.Bool("update", false, "write the golden files anew")

var started = time.Date(2026, 5, 4, 3, 2, 1, 987_654_321, time.UTC)

// full has something in every field, so that every name is in the golden file.
func full() *results.Result {
	series := results.Series{Count: 600_000, MinNs: 400_000, MeanNs: 8_333_000, P50Ns: 500_000, P90Ns: 900_000, P99Ns: 400_000_000, P999Ns: 940_000_000, P9999Ns: 994_000_000, MaxNs: 999_000_000, Clamped: 1}
	run := results.Run{
		Repeat: 1, Order: 2, StartedAt: started, ElapsedNs: 60_000_000_000, Loop: "open", AckMeaning: "acked",
		Counts:     results.Counts{Attempted: 600_000, Acked: 599_997, Failed: 2, Unknown: 1, Received: 599_990, Lost: 7, Duplicated: 3, Reordered: 4, Corrupted: 5, NegativeE2E: 6},
		Rates:      results.Rates{MessagesPerSecond: 9999.95, BytesPerSecond: 1e7, TargetMessagesPerSecond: 10_000, ReceivedPerSecond: 9999.5},
		Series:     map[string]results.Series{results.SeriesResponse: series, results.SeriesProduce: {}},
		Generator:  results.Generator{CPUNsPerMessage: 812.5, CPUCores: 0.5, CPUAvailable: 2, MaxRSSBytes: 1 << 26, GCPauseMaxNs: 90_000, GCPauseTotalNs: 400_000, GCCycles: 12, StolenShare: 0.001, PauseMaxNs: 1_000_000, LatenessP99: 150_000, AllocBytes: 1 << 20, AllocObjects: 1000},
		Verdict:    results.Verdict{Valid: false, Reasons: []string{"values clamped: 1"}, Warnings: []string{"generator-bound"}},
		Thresholds: []results.Threshold{{Expression: "response.p99<20ms", Value: "400ms", Held: false}},
		Errors:     map[string]int64{"NOT_LEADER_OR_FOLLOWER": 2},
		Batches:    results.Batches{Requests: 10, Batches: 20, MessagesPerBatch: 30, MessagesPerRequest: 60, BytesPerBatch: 3000, CompressionRatio: 1.5, Retries: 1, ThrottleNs: 2},
		Topics:     []results.Topic{{Name: "kbench-1", Partitions: 2, ReplicationFactor: 3, Config: map[string]string{"min.insync.replicas": "2"}, LeadersBefore: []int32{1, 2}, LeadersAfter: []int32{1, 3}, ISRBefore: []int{3, 3}, ISRAfter: []int{3, 2}}},
		Consumption: &results.Consumption{
			Lag: &results.Lag{MaxMessages: 500, MaxAtNs: 3e9, FinalMessages: 2},
			Groups: []results.Group{{Name: "kbench-quick-1", Received: 599_990, Lost: 7, Duplicated: 3, Reordered: 4, Corrupted: 5, NotReceived: 1,
				Lag: &results.Lag{MaxMessages: 500, MaxAtNs: 3e9, FinalMessages: 2}, Rebalances: 2, RebalanceMaxNs: 3e9, Commits: 60, StaleCommits: 1}},
			CatchUp: &results.CatchUp{BacklogMessages: 500, BeganNs: 2e9, Reached: true, TookNs: 1e9, MessagesPerSecond: 700, Series: "response", Before: &series, During: &series, After: &series},
		},
		Log: "p00-r1.hlog", Timeline: "p00-r1.csv", Lags: "p00-r1-lag.csv",
		Events: []results.Event{{AtNs: -5, DurationNs: 10, Kind: "pause", Text: "stood still for 10 ns"}},
	}
	return &results.Result{
		Workload: results.Workload{Name: "quick", Description: "What is it like?", Given: "name: quick\n", Overrides: []string{"--rate 10000"}, Effective: json.RawMessage(`{"name":"quick"}`), Hash: "abc"},
		Settings: map[string]any{"producer.requiredAcks": "all", "channelBufferSize": int64(256), "producer.maxBytes": int64(math.MaxInt64), "share": 0.25, "net": map[string]any{"maxOpenRequests": int64(5)}, "list": []any{int64(1), 1.5, "x", nil}},
		Seed:     math.MaxUint64, StartedAt: started,
		Provenance: results.Provenance{KbenchVersion: "1.0.0",
			Host:    results.Host{Hostname: "h", OS: "linux/amd64", Kernel: "6.1", CPUModel: "c", CPUs: 4, GOMAXPROCS: 2, MemoryBytes: 1 << 33, CgroupCPUs: 1.5, CgroupMemory: 1 << 32, ClockSource: "tsc", GoVersion: "go1.26", TimerErrorNs: 80_000, ClockReadNs: 40},
			Cluster: results.Cluster{Embedded: true, Bootstrap: []string{"127.0.0.1:9092"}, ClusterID: "id", Version: "4.0+", Brokers: []results.Broker{{ID: 1, Addr: "a:1", Rack: "r"}}, RTTNs: 100_000}},
		Interrupted: true,
		Points: []results.Point{
			{ID: "p00", Label: "requiredAcks=all", Settings: map[string]any{"producer.requiredAcks": "all"}, Runs: []results.Run{run}},
			{ID: "p01", Label: "requiredAcks=none", Skipped: "idempotence needs acks=all"},
		},
	}
}

func TestGoldenResult(t *testing.T) {
	got, err := results.Encode(full())
	require.NoError(t, err)
	golden := filepath.Join("testdata", "result.json")
	if *update {
		require.NoError(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	back, err := results.Decode(golden, want)
	require.NoError(t, err)
	again, err := results.Encode(back)
	require.NoError(t, err)
	require.Equal(t, string(want), string(again), "reading and writing again changes nothing")
	require.Equal(t, full().Settings, back.Settings, "numbers keep their kind")
}

// TestNames holds the names other programs rely on, apart from the golden file, which -update
// would change silently.
func TestNames(t *testing.T) {
	encoded, err := results.Encode(full())
	require.NoError(t, err)
	var doc any
	require.NoError(t, json.Unmarshal(encoded, &doc))
	has := func(path string) bool {
		at := doc
		for _, step := range strings.Split(path, ".") {
			name, list := strings.CutSuffix(step, "[]")
			object, _ := at.(map[string]any)
			next, found := object[name]
			if !found {
				return false
			}
			if at = next; list {
				elements, _ := next.([]any)
				if len(elements) == 0 {
					return false
				}
				at = elements[0]
			}
		}
		return true
	}
	run := "points[].runs[]."
	paths := []string{"schema", "workload", "settings", "seed", "startedAt", "provenance", "points[].settings",
		run + "repeat", run + "startedAt", run + "elapsedNs", run + "verdict.valid", run + "verdict.reasons[]", run + "verdict.warnings[]"}
	for prefix, names := range map[string]string{
		run + "counts.":          "attempted acked failed unknown received lost duplicated reordered",
		run + "rates.":           "messagesPerSecond bytesPerSecond targetMessagesPerSecond receivedPerSecond",
		run + "series.response.": "count minNs meanNs p50Ns p90Ns p99Ns p999Ns p9999Ns maxNs clamped",
		run + "generator.":       "cpuNsPerMessage cpuCores maxRssBytes",
		run + "thresholds[].":    "expression value held",
	} {
		for _, name := range strings.Fields(names) {
			paths = append(paths, prefix+name)
		}
	}
	for _, path := range paths {
		require.True(t, has(path), path)
	}
	require.False(t, has("points[].runs[].counts.nonsense"))
}

func TestListsAreNeverNull(t *testing.T) {
	encoded, err := results.Encode(&results.Result{Points: []results.Point{{Runs: []results.Run{{}}}, {}}})
	require.NoError(t, err)
	for _, name := range []string{"settings", "points", "runs", "reasons", "warnings", "thresholds", "series", "bootstrap"} {
		require.NotContains(t, string(encoded), `"`+name+`": null`)
	}
	encoded, err = results.Encode(&results.Result{})
	require.NoError(t, err)
	require.Contains(t, string(encoded), `"points": []`)
}

func TestSaveAndLoad(t *testing.T) {
	dir, err := results.Create(filepath.Join(t.TempDir(), "a", "b"))
	require.NoError(t, err)
	r := full()
	require.NoError(t, dir.Save(r))
	require.Zero(t, r.Schema, "Save leaves the result as it is")
	require.Nil(t, r.Points[1].Runs)
	r.Interrupted = false
	require.NoError(t, dir.Save(r), "saving again replaces")
	back, err := dir.Load()
	require.NoError(t, err)
	require.Equal(t, results.Schema, back.Schema)
	require.False(t, back.Interrupted)
	require.Equal(t, r.Points[0].Runs[0].Counts, back.Points[0].Runs[0].Counts)
	_, err = results.Create(dir.Path())
	require.Error(t, err, "a result keeps others out")
	require.NoError(t, dir.Release())
	entries, err := os.ReadDir(dir.Path())
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")

	full := errors.New("no space left")
	require.ErrorIs(t, dir.WriteFile("x.csv", func(io.Writer) error { return full }), full)
	require.Error(t, dir.WriteFile("../x.csv", func(io.Writer) error { return nil }))
	entries, err = os.ReadDir(dir.Path())
	require.NoError(t, err)
	require.Len(t, entries, 1, "nor after a failure")

	r.Points[0].Runs[0].Rates.BytesPerSecond = math.NaN()
	require.ErrorContains(t, dir.Save(r), "NaN")
	_, err = dir.Load()
	require.NoError(t, err, "a failed Save leaves the old result")
	opened, err := results.OpenDir(filepath.Join(dir.Path(), results.FileName))
	require.NoError(t, err)
	require.Equal(t, dir.Path(), opened.Path())
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct{ about, content, says string }{
		{"a newer schema", `{"schema": 99, "points": "of another kind"}`, "newer kbench"},
		{"another program's JSON", `{"name": "x"}`, "not a result of kbench"},
		{"no JSON", "{\n\"schema\": 1,\n oops}", ":3: not valid JSON"},
		{"an empty file", "", "not valid JSON"},
		{"a text where a count belongs", "{\"schema\": 1,\n\"points\": [{\"runs\": [{\"counts\":\n{\"acked\": \"7\"}}]}]}", ":3: points.runs.counts.acked: string where a whole number belongs"},
		{"a fraction where a count belongs", `{"schema": 1, "points": [{"runs": [{"elapsedNs": 1.5}]}]}`, "a whole number belongs"},
		{"two documents", `{"schema": 1} {"schema": 1}`, "not valid JSON"},
		{"a date that is none", `{"schema": 1, "startedAt": "yesterday"}`, "yesterday"},
	} {
		t.Run(c.about, func(t *testing.T) {
			path := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(path, results.FileName), []byte(c.content), 0o600))
			dir, err := results.OpenDir(path)
			require.NoError(t, err)
			_, err = dir.Load()
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, path)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	dir, err := results.OpenDir(t.TempDir())
	require.NoError(t, err)
	_, err = dir.Load()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "not a result directory")
	var schema *results.SchemaError
	_, err = results.Decode("x", fmt.Appendf(nil, `{"schema": %d}`, results.Schema+1))
	require.ErrorAs(t, err, &schema)
	require.Equal(t, results.Schema+1, schema.Version)
}

func TestLoadToleratesUnknownFields(t *testing.T) {
	r, err := results.Decode("x", []byte(`{"schema": 1, "tomorrow": [1], "points": [{"id": "p00", "more": {}}]}`))
	require.NoError(t, err)
	require.Equal(t, "p00", r.Points[0].ID)
}

func TestCreateRefuses(t *testing.T) {
	path := t.TempDir()
	_, err := results.Create(path)
	require.NoError(t, err, "an empty directory is taken")
	file := filepath.Join(path, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = results.Create(path)
	var notEmpty *results.NotEmptyError
	require.ErrorAs(t, err, &notEmpty)
	require.Equal(t, path, notEmpty.Path)
	for _, bad := range []string{file, filepath.Join(file, "below"), "/proc/kbench"} {
		_, err = results.Create(bad)
		require.Error(t, err, bad)
		require.False(t, errors.As(err, &notEmpty))
		require.ErrorContains(t, err, "choose another place")
		require.NotContains(t, err.Error(), "\n")
	}
	_, err = results.OpenDir(file)
	require.ErrorContains(t, err, "it is a file")
	_, err = results.OpenDir(filepath.Join(path, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestDefaultDir(t *testing.T) {
	at := started.In(time.FixedZone("x", 3600))
	require.Equal(t, filepath.Join("kbench-results", "quick-20260504T030201Z"), results.DefaultDir("kbench-results", "quick", at))
}

func FuzzDecode(f *testing.F) {
	encoded, err := results.Encode(full())
	require.NoError(f, err)
	f.Add(encoded)
	f.Add([]byte(`{"schema": 1, "settings": {"a": [1, {"b": 1e999}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := results.Decode("x", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("error of several lines: %q", err)
			}
			return
		}
		again, err := results.Encode(r)
		if err != nil {
			return // an infinity in the settings
		}
		if _, err := results.Decode("x", again); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCreateClaimsTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result")
	d, err := results.Create(path)
	require.NoError(t, err)
	var taken *results.NotEmptyError
	_, err = results.Create(path)
	require.ErrorAs(t, err, &taken, "a second run at the same time")
	require.NoError(t, d.Release())
	require.NoError(t, d.Release(), "twice is no error")
	again, err := results.Create(path)
	require.NoError(t, err, "nothing was kept")
	require.NoError(t, again.Release())
}
