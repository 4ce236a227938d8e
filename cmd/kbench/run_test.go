package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunWithNothingMeasuresAndReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, nil, args("run", "quick", brief)...)
	p.says("prepare")
	broker := p.broker()
	e := p.wait()
	e.requireCode(t, codeDone)
	requireGone(t, broker)

	e.requireWords(t, "quick: one run", "an embedded broker at 127.0.0.1:", "say nothing about Apache Kafka", "measure")
	require.Less(t, strings.Count(e.err, "\n"), 60, "progress is a line now and then")
	for _, pattern := range []string{
		`VALID`, `embedded broker: figures say nothing about Apache Kafka`,
		`attempted 20,000 = acked 20,000 \+ failed 0 \+ unknown 0`,
		`received +20,000 · lost 0 · duplicated 0 · reordered 0`,
		`msg/s · [0-9.]+ MB/s · [0-9.]+ MiB/s`,
		`latency +count +p50 +p90 +p99 +p99\.9 +max`,
		`response +20,000( +[0-9.]+ (ns|µs|ms|s)){5}`, `service +20,000`, `delay +20,000`,
		`request\.produce +[0-9,]+ `, `request\.fetch +[0-9,]+ `, `e2e +20,000`,
		`lost=0 held`, `report +kbench-results/quick-[0-9TZ]+/report\.html`,
	} {
		require.Regexp(t, pattern, e.out)
	}
	require.NotContains(t, e.out, "errors", "closing readers is no error")
	require.NotContains(t, e.out, "\x1b", "no colours where no terminal is")
	requireWholeResult(t, onlyResult(t, dir))
}

// requireWholeResult asserts that every file of a result of one run is there and is what it says.
func requireWholeResult(t *testing.T, dir string) {
	t.Helper()
	r := loadResult(t, dir)
	require.True(t, r.Provenance.Cluster.Embedded)
	require.False(t, r.Interrupted)
	require.Len(t, r.Points, 1)
	require.Len(t, r.Points[0].Runs, 1)
	begins := map[string]string{
		r.Points[0].Runs[0].Log: "#[Histogram log format version 1.3]", r.Points[0].Runs[0].Timeline: "start_s,",
		r.Points[0].Runs[0].Lags: "end_s,",
		"report.html":            "<!", "report.md": "# ", "result.json": "{",
		"plots/percentiles.svg": "<", "plots/percentiles.png": "\x89PNG",
		"plots/timeline-p00.svg": "<", "plots/timeline-p00.png": "\x89PNG",
	}
	for name, begin := range begins {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(strings.TrimSpace(string(text)), begin), "%s begins with %.40q", name, text)
	}
	d, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, d, 7, "nothing is left over: %v", d)
}

func TestRunJSONIsTheResultFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "quick", light, "--format", "json", "--quiet", "--out", "here")...)
	e.requireCode(t, codeDone)
	require.Empty(t, e.err)
	file, err := os.ReadFile(filepath.Join(dir, "here", "result.json"))
	require.NoError(t, err)
	require.Equal(t, string(file), e.out)
	var names struct {
		Schema    int
		Workload  struct{ Name string }
		Settings  map[string]any
		StartedAt string
		Points    []struct {
			Settings map[string]any
			Runs     []struct {
				ElapsedNs int64
				Counts    struct{ Attempted, Acked, Failed, Unknown, Received int64 }
				Rates     struct{ MessagesPerSecond, TargetMessagesPerSecond float64 }
				Series    map[string]struct{ P50Ns, P999Ns, MaxNs int64 }
				Verdict   struct {
					Valid             bool
					Reasons, Warnings []string
				}
				Thresholds []struct {
					Expression string
					Held       bool
				}
			}
		}
	}
	requireJSON(t, e.out, &names)
	require.Equal(t, "quick", names.Workload.Name)
	require.Contains(t, names.Settings, "producer.requiredAcks")
	run := names.Points[0].Runs[0]
	require.Equal(t, int64(500), run.Counts.Attempted)
	require.Equal(t, 500.0, run.Rates.TargetMessagesPerSecond)
	require.Positive(t, run.Series["response"].P50Ns)
	require.True(t, run.Verdict.Valid)
	require.NoDirExists(t, filepath.Join(dir, resultsFolder), "--out is the place")

	t.Run("a directory that is not empty is refused and left alone", func(t *testing.T) {
		e := kbenchIn(t, dir, args("run", "quick", light, "--out", "here")...)
		e.requireCode(t, codeError)
		e.requireOneLine(t, "here", "not empty")
		require.Empty(t, e.out)
		after, err := os.ReadFile(filepath.Join(dir, "here", "result.json"))
		require.NoError(t, err)
		require.Equal(t, string(file), string(after))
	})
	t.Run("the report is drawn again", func(t *testing.T) { redraw(t, dir) })
}

// redraw draws reports from the result in dir/here.
func redraw(t *testing.T, dir string) {
	page := filepath.Join(dir, "here", "report.html")
	before, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NoError(t, os.Remove(page))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "here", "plots")))
	e := kbenchIn(t, dir, "report", "here")
	e.requireCode(t, codeDone)
	require.Equal(t, "report: "+filepath.Join("here", "report.html")+"\n", e.out)
	after, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.FileExists(t, filepath.Join(dir, "here", "plots", "percentiles.png"))

	require.NoError(t, os.CopyFS(filepath.Join(dir, "there"), os.DirFS(filepath.Join(dir, "here"))))
	e = kbenchIn(t, dir, "report", "here", "there", "--out", "both")
	e.requireCode(t, codeDone)
	text, err := os.ReadFile(filepath.Join(dir, "both", "report.html"))
	require.NoError(t, err)
	require.Contains(t, string(text), "there")
	require.Contains(t, string(text), "here")

	for range 2 { // within a second, perhaps
		e = kbenchIn(t, dir, "report", "here", "there")
		e.requireCode(t, codeDone)
		require.Regexp(t, `^report: kbench-results/report-[0-9TZ]+(-2)?/report\.html\n$`, e.out)
		require.FileExists(t, filepath.Join(dir, strings.TrimSpace(strings.TrimPrefix(e.out, "report: "))))
	}
	drawn, err := filepath.Glob(filepath.Join(dir, resultsFolder, "report-*", "report.html"))
	require.NoError(t, err)
	require.Len(t, drawn, 2, "each in a folder of its own")
	e = kbenchIn(t, dir, "report", "here", "nowhere")
	e.requireCode(t, codeError)
	e.requireOneLine(t, "nowhere")
	e = kbenchIn(t, dir, "report", "here", "there", "--out", "here")
	e.requireCode(t, codeUsage)
	e.requireOneLine(t, "is a result itself")
	e = kbenchIn(t, dir, "report", "both")
	e.requireCode(t, codeError)
	e.requireOneLine(t, "both", "not a result directory")
}

func TestQuietRunSaysNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", light, "--quiet")...)
	e.requireCode(t, codeDone)
	require.Empty(t, e.out)
	require.Empty(t, e.err)
	require.Len(t, loadResult(t, onlyResult(t, dir)).Points, 1)
}

func TestRunRefusesPlacesItCannotWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	for _, out := range []string{"file", "file/below", "/dev/null/below"} {
		e := kbenchIn(t, dir, args("run", "quick", light, "--out", out)...)
		e.requireCode(t, codeError)
		e.requireOneLine(t, strings.TrimSuffix(out, "/below"), "result directory", "choose another place")
		require.Empty(t, e.out)
	}
}

func TestRunKeepsSecretsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, []string{"KBENCH_SASL_PASSWORD=hunter2-secret", "KBENCH_ANYTHING=hunter2-secret"},
		args("run", "quick", light, "--out", "r")...)
	e := p.wait()
	e.requireCode(t, codeDone)
	require.NotContains(t, e.out+e.err, "hunter2")
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, "r"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		require.NotContains(t, string(text), "hunter2", path)
		return err
	}))
}

func TestSweepSettingsAndRepeats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flags := args("quick", "--rate", "400", brief, "--duration", "300ms", "--set", "payload.size=64",
		"--sweep", "producer.requiredAcks=1,all", "--sweep", "producer.flush={messages: 1},{bytes: 4096, frequency: 5ms}",
		"--repeat", "2")
	e := kbenchIn(t, dir, args("run", flags, "--out", "r")...)
	e.requireCode(t, codeDone)
	r := loadResult(t, filepath.Join(dir, "r"))
	require.Contains(t, r.Workload.Overrides, "--set payload.size=64")
	var effective map[string]any
	require.NoError(t, json.Unmarshal(r.Workload.Effective, &effective))
	text := string(r.Workload.Effective)
	require.Regexp(t, `payload\.?.*64`, text)
	require.Len(t, r.Points, 4)
	orders, topics := map[int]bool{}, map[string]bool{}
	for _, p := range r.Points {
		require.Len(t, p.Runs, 2)
		require.Contains(t, p.Settings, "producer.requiredAcks")
		require.Contains(t, p.Settings, "producer.flush")
		for i, run := range p.Runs {
			require.Equal(t, 400.0, run.Rates.TargetMessagesPerSecond)
			require.Equal(t, int64(120), run.Counts.Attempted)
			require.Equal(t, int64(300e6), run.ElapsedNs)
			require.True(t, i == 0 || run.Repeat != p.Runs[0].Repeat)
			orders[run.Order] = true
			require.Len(t, run.Topics, 1)
			topics[run.Topics[0].Name] = true
		}
	}
	require.Len(t, orders, 8, "every run has a place of its own in the order")
	require.Len(t, topics, 8, "and a fresh topic: %v", topics)
	require.Equal(t, 8, strings.Count(e.err, "response p50"), "a line for each run")
	require.Regexp(t, regexp.MustCompile(`\[8/8\] `), e.err)
	requireSeededOrder(t, flags)
}

// requireSeededOrder asserts that a seed decides the order of a plan.
func requireSeededOrder(t *testing.T, flags []string) {
	t.Helper()
	order := func(seed string) (p planForm) {
		e := kbench(t, args("plan", flags, "--set", "seed="+seed, "--repeat", "3", "--format", "json")...)
		e.requireCode(t, codeDone)
		requireJSON(t, e.out, &p)
		require.Len(t, p.Order, 12)
		for block := range 3 {
			seen := map[string]bool{}
			for _, o := range p.Order[4*block : 4*block+4] {
				seen[o.Point] = true
			}
			require.Len(t, seen, 4, "each block has every point once")
		}
		return p
	}
	require.Equal(t, order("7").Order, order("7").Order)
	require.NotEqual(t, order("7").Order, order("8").Order)
}

func TestShortenedBuiltInSweepFinishes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "acks-flush-inflight", "--rate", "500", brief, "--duration", "300ms",
		"--set", "phases.warmUp=100ms", "--sweep", "channelBufferSize=16", "--sweep", "net.maxOpenRequests=5", "--out", "r")...)
	e.requireCode(t, codeDone)
	r := loadResult(t, filepath.Join(dir, "r"))
	require.Len(t, r.Points, 9, "3 acknowledgements × 3 ways to flush")
	for _, p := range r.Points {
		require.Empty(t, p.Skipped)
		require.Len(t, p.Runs, 1)
		require.Equal(t, int64(150), p.Runs[0].Counts.Acked)
	}
	require.Contains(t, e.out, "requiredAcks=all")
}

func TestClosedLoop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "max-throughput", brief, "--duration", "300ms", "--out", "r")...)
	e.requireCode(t, codeDone)
	run := loadResult(t, filepath.Join(dir, "r")).Points[0].Runs[0]
	require.Equal(t, "closed", run.Loop)
	require.Contains(t, run.Series, "service")
	require.NotContains(t, run.Series, "response")
}
