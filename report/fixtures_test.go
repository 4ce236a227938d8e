package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

// scenario is a run made up for a test: messages due at a steady rate, served after a base
// latency with a tail, and one stall that everything due in it waits out.
type scenario struct {
	seed        uint64
	loop        string
	ack         string
	rate        float64 // asked for in an open loop, reached in a closed one
	achieved    float64 // share of the rate; 1 when 0
	base        time.Duration
	tail        float64 // sigma of the log-normal latency
	stallAt     time.Duration
	stall       time.Duration
	seconds     int
	warmUp      int
	consumers   bool
	failedEvery int
	reasons     []string
	warnings    []string
}

var fixtureStart = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// make gives the run and its windows. The same scenario gives the same run.
func (s scenario) make(repeat, order int) (results.Run, []results.Window) {
	if s.achieved == 0 {
		s.achieved = 1
	}
	rng := rand.New(rand.NewPCG(s.seed, uint64(repeat)))
	run := results.Run{
		Repeat: repeat, Order: order, StartedAt: fixtureStart.Add(time.Duration(order) * 2 * time.Minute),
		ElapsedNs: int64(s.seconds) * 1e9, Loop: s.loop, AckMeaning: s.ack,
		Verdict: results.Verdict{Valid: len(s.reasons) == 0, Reasons: s.reasons, Warnings: s.warnings},
	}
	var windows []results.Window
	whole := map[string]*hist.Histogram{}
	for second := -s.warmUp; second < s.seconds; second++ {
		w := s.window(rng, second, &run)
		windows = append(windows, w)
		if second < 0 {
			continue
		}
		for name, h := range w.Series {
			if whole[name] == nil {
				whole[name] = hist.New()
			}
			whole[name].Merge(h)
		}
	}
	run.Series = map[string]results.Series{}
	for name, h := range whole {
		run.Series[name] = results.Summarise(h)
	}
	s.sumUp(&run, rng)
	return run, windows
}

// window makes one second of the run and adds its messages to the counts.
func (s scenario) window(rng *rand.Rand, second int, run *results.Run) results.Window {
	w := results.Window{StartNs: int64(second) * 1e9, LengthNs: 1e9, Series: map[string]*hist.Histogram{}, Lag: -1, LatenessNs: int64(40_000 + rng.ExpFloat64()*30_000),
		RSSBytes: 64<<20 + int64(second+s.warmUp)*100<<10}
	record := func(name string, ns float64) {
		if w.Series[name] == nil {
			w.Series[name] = hist.New()
		}
		w.Series[name].Record(int64(ns))
	}
	n := int(s.rate * s.achieved * (1 + 0.01*rng.NormFloat64()))
	if s.loop == "open" {
		n = int(s.rate * s.achieved)
	}
	for i := range n {
		due := float64(second) + float64(i)/float64(n)
		w.Attempted++
		if s.failedEvery > 0 && i%s.failedEvery == 7 {
			w.Failed++
			record(results.SeriesFailed, 30e6)
			continue
		}
		s.message(rng, due, record)
		w.Acked++
		w.AckedBytes += 1024
		if s.consumers {
			w.Received++
		}
	}
	if s.consumers {
		w.Lag = int64(float64(n) * 0.004 * (1 + rng.Float64()))
		if at := s.stallAt.Seconds(); s.stall > 0 && float64(second) >= at && float64(second) < at+2 {
			w.Lag += int64(s.rate * s.stall.Seconds())
		}
	}
	if second >= 0 {
		run.Counts.Attempted += w.Attempted
		run.Counts.Acked += w.Acked
		run.Counts.Failed += w.Failed
		run.Counts.Received += w.Received
	}
	return w
}

// message records what one message due at an instant goes through.
func (s scenario) message(rng *rand.Rand, due float64, record func(string, float64)) {
	service := float64(s.base) * math.Exp(s.tail*rng.NormFloat64())
	delay := 20e3 + rng.ExpFloat64()*15e3
	if wait := s.stallAt.Seconds() + s.stall.Seconds() - due; s.stall > 0 && due >= s.stallAt.Seconds() && wait > 0 {
		held := math.Min(wait, 0.2) * 1e9 // what the client's buffer holds; the rest waits before it
		service += held
		delay += wait*1e9 - held
	}
	record(results.SeriesService, service)
	if s.loop == "open" {
		record(results.SeriesResponse, service+delay)
		record(results.SeriesDelay, delay)
	}
	if s.ack != "written" && rng.IntN(20) == 0 {
		record(results.SeriesProduce, service*0.7)
	}
	if s.consumers {
		record(results.SeriesE2E, service+delay+0.4e6+rng.ExpFloat64()*0.3e6)
	}
}

// sumUp fills in rates and what the generator and the batches looked like.
func (s scenario) sumUp(run *results.Run, rng *rand.Rand) {
	seconds := float64(s.seconds)
	run.Rates = results.Rates{MessagesPerSecond: float64(run.Counts.Acked) / seconds, BytesPerSecond: float64(run.Counts.Acked) * 1024 / seconds, ReceivedPerSecond: float64(run.Counts.Received) / seconds}
	if s.loop == "open" {
		run.Rates.TargetMessagesPerSecond = s.rate
	}
	perMessage := 1800 + 200*rng.Float64()
	run.Generator = results.Generator{
		CPUNsPerMessage: perMessage, CPUCores: perMessage * run.Rates.MessagesPerSecond / 1e9, CPUAvailable: 8, MaxRSSBytes: 84 << 20,
		GCPauseMaxNs: 213_000, GCPauseTotalNs: 1_900_000, GCCycles: 12, PauseMaxNs: 740_000, LatenessP99: 118_000,
	}
	perBatch := 62.5
	run.Batches = results.Batches{Requests: run.Counts.Acked / 125, Batches: int64(float64(run.Counts.Acked) / perBatch), MessagesPerBatch: perBatch,
		MessagesPerRequest: 125, BytesPerBatch: perBatch * 1040, CompressionRatio: 1}
	run.Thresholds = []results.Threshold{{Expression: "lost=0", Value: "0", Held: true}, {Expression: "corrupted=0", Value: "0", Held: true}}
	if run.Counts.Failed > 0 {
		run.Errors = map[string]int64{"NOT_ENOUGH_REPLICAS": run.Counts.Failed - 3, "REQUEST_TIMED_OUT": 3}
	}
	run.Topics = []results.Topic{{Name: "kbench-steady-0", Partitions: 6, ReplicationFactor: 3, Config: map[string]string{"min.insync.replicas": "2"},
		LeadersBefore: []int32{1, 2, 3, 1, 2, 3}, LeadersAfter: []int32{1, 2, 3, 1, 2, 3}, ISRBefore: []int{3, 3, 3, 3, 3, 3}, ISRAfter: []int{3, 3, 3, 3, 3, 3}}}
}

// newResult is a result without points.
func newResult(name, description string) *results.Result {
	return &results.Result{
		Schema: results.Schema, Seed: 42, StartedAt: fixtureStart,
		Workload: results.Workload{Name: name, Description: description, Hash: "9f2c41d0a7b3e655",
			Given:     "name: " + name + "\nproducers:\n  count: 4\n  rate: 10000\nphases:\n  duration: 60s\n",
			Overrides: []string{"--set producer.requiredAcks=all"},
			Effective: json.RawMessage(`{"name":"` + name + `","producers":{"count":4,"rate":10000},"phases":{"warmUp":"5s","duration":"1m0s"}}`)},
		Settings: map[string]any{"producer.requiredAcks": "all", "net.maxOpenRequests": 5.0, "channelBufferSize": 256.0, "producer.flush.frequency": "5ms"},
		Provenance: results.Provenance{KbenchVersion: "v0.9.0", Host: results.Host{Hostname: "load-1", OS: "linux/amd64", Kernel: "6.12.4", CPUModel: "AMD EPYC 9354P", CPUs: 8,
			GOMAXPROCS: 8, MemoryBytes: 32 << 30, ClockSource: "tsc", GoVersion: "go1.26.0", TimerErrorNs: 61_000, ClockReadNs: 38},
			Cluster: results.Cluster{Bootstrap: []string{"kafka-1:9092", "kafka-2:9092"}, ClusterID: "q1Sh-9_ISia_zwGINzRvyQ", Version: "4.0+",
				Brokers: []results.Broker{{ID: 1, Addr: "kafka-1:9092", Rack: "a"}, {ID: 2, Addr: "kafka-2:9092", Rack: "b"}, {ID: 3, Addr: "kafka-3:9092", Rack: "c"}}, RTTNs: 312_000}},
	}
}

// fixture is a result with its directory.
type fixture struct {
	dir    *results.Dir
	result *results.Result
}

// keep writes scenarios as the points of a result into a directory, all repeats of each.
func keep(t testing.TB, r *results.Result, repeats int, points []results.Point, scenarios []scenario) fixture {
	t.Helper()
	return keepIn(t, t.TempDir(), r, repeats, points, scenarios)
}

func keepIn(t testing.TB, folder string, r *results.Result, repeats int, points []results.Point, scenarios []scenario) fixture {
	t.Helper()
	dir, err := results.Create(folder)
	require.NoError(t, err)
	order := 0
	for i := range points {
		for repeat := range repeats {
			run, windows := scenarios[i].make(repeat, order)
			order++
			if s := scenarios[i]; s.stall > 0 {
				run.Events = append(run.Events, results.Event{AtNs: int64(s.stallAt), DurationNs: int64(s.stall), Kind: "fault", Text: "broker 2 stopped"})
			}
			require.NoError(t, dir.WriteRun(&points[i], &run, windows))
			points[i].Runs = append(points[i].Runs, run)
		}
	}
	r.Points = points
	require.NoError(t, dir.Save(r))
	require.NoError(t, dir.Release())
	return fixture{dir, r}
}

// onePoint is a result of a single run.
func onePoint(t testing.TB, name, description string, s scenario) fixture {
	return keep(t, newResult(name, description), 1, []results.Point{{ID: "p00", Settings: map[string]any{}}}, []scenario{s})
}

// openStall is an open loop with one stall, with consumers.
func openStall(t testing.TB) fixture {
	f := onePoint(t, "steady", "What does a stall of one second cost at 2,000 messages a second?", scenario{seed: 1, loop: "open", ack: "acked", rate: 2000,
		base: 1800 * time.Microsecond, tail: 0.35, stallAt: 20 * time.Second, stall: time.Second, seconds: 60, warmUp: 5, consumers: true, failedEvery: 997})
	f.result.Points[0].Runs[0].Thresholds = append(f.result.Points[0].Runs[0].Thresholds, results.Threshold{Expression: "response.p99<20ms", Value: "402 ms", Held: false})
	require.NoError(t, f.dir.Save(f.result))
	return f
}

// invalidRun is a run the generator could not keep up in, against the embedded broker.
func invalidRun(t testing.TB) fixture {
	f := onePoint(t, "steady", "", scenario{seed: 2, loop: "open", ack: "acked", rate: 2000, achieved: 0.91, base: 2 * time.Millisecond, tail: 0.5, seconds: 20,
		reasons:  []string{"achieved 91.00 % of the rate asked for, below the limit of 99 %", "the generator stood still for 312 ms at 14.2 s, above the limit of 10 ms"},
		warnings: []string{"one partition took 41 % of the messages"}})
	f.result.Provenance.Cluster = results.Cluster{Embedded: true, Bootstrap: []string{"127.0.0.1:40001"}}
	require.NoError(t, f.dir.Save(f.result))
	return f
}

// acksNone is acks=0; closedLoop has no rate.
func acksNone(t testing.TB) fixture {
	return onePoint(t, "fire-and-forget", "", scenario{seed: 3, loop: "open", ack: "written", rate: 2000, base: 90 * time.Microsecond, tail: 0.3, seconds: 20})
}

func closedLoop(t testing.TB) fixture {
	return onePoint(t, "flood", "How fast does it go?", scenario{seed: 4, loop: "closed", ack: "acked", rate: 3000, base: 4 * time.Millisecond, tail: 0.25, seconds: 20, consumers: true,
		warnings: []string{"generator-bound: the generator used 7.9 of 8 cores"}})
}

// sweeps are made once, for they take a while: by repeats.
var sweeps = map[int]fixture{}

// sweep is a matrix of acks, requests in flight and linger, with repeats; a copy of its own for
// each test.
func sweep(t testing.TB, repeats int) fixture {
	t.Helper()
	if _, made := sweeps[repeats]; !made {
		sweeps[repeats] = makeSweep(t, repeats)
	}
	copied := t.TempDir()
	require.NoError(t, os.CopyFS(copied, os.DirFS(sweeps[repeats].dir.Path())))
	dir, err := results.OpenDir(copied)
	require.NoError(t, err)
	r, err := dir.Load()
	require.NoError(t, err)
	return fixture{dir, r}
}

// TestMain gives the sweeps a folder that outlives the test that makes them.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "kbench-report-test")
	if err != nil {
		panic(err)
	}
	sweepFolder = folder
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

var sweepFolder string

func makeSweep(t testing.TB, repeats int) fixture {
	r := newResult("settings", "What do acks, requests in flight and linger cost at 1,000 messages a second?")
	var points []results.Point
	var scenarios []scenario
	for _, acks := range []string{"0", "1", "all"} {
		for _, open := range []float64{1, 5} {
			for _, linger := range []string{"0s", "10ms"} {
				i := len(points)
				points = append(points, results.Point{ID: fmt.Sprintf("p%02d", i), Label: fmt.Sprintf("requiredAcks=%s maxOpenRequests=%v flush.frequency=%s", acks, open, linger),
					Settings: map[string]any{"producer.requiredAcks": acks, "net.maxOpenRequests": open, "producer.flush.frequency": linger}})
				scenarios = append(scenarios, sweepScenario(uint64(10+i), acks, open, linger))
			}
		}
	}
	scenarios[3].reasons = []string{"achieved 97.10 % of the rate asked for, below the limit of 99 %"}
	points = append(points, results.Point{ID: "p12", Label: "requiredAcks=all idempotent=true maxOpenRequests=6", Skipped: "an idempotent producer has 5 requests in flight at most",
		Settings: map[string]any{"producer.requiredAcks": "all", "net.maxOpenRequests": 6.0}})
	f := keepIn(t, filepath.Join(sweepFolder, fmt.Sprint(repeats)), r, repeats, points[:12], scenarios)
	f.result.Points = append(f.result.Points, points[12])
	if repeats > 1 {
		f.result.Points[9].Runs[1].Verdict = results.Verdict{Reasons: []string{"2.4 % of CPU time was stolen, above the limit of 2 %"}}
		f.result.Points[6].Runs[0].Thresholds = append(f.result.Points[6].Runs[0].Thresholds, results.Threshold{Expression: "response.p99<20ms", Value: "21.4 ms"})
	}
	require.NoError(t, f.dir.Save(f.result))
	return f
}

func sweepScenario(seed uint64, acks string, open float64, linger string) scenario {
	s := scenario{seed: seed, loop: "open", ack: "acked", rate: 700 + 60*open, base: 600 * time.Microsecond, tail: 0.3, seconds: 12}
	switch acks {
	case "0":
		s.ack, s.base = "written", 80*time.Microsecond
	case "all":
		s.base, s.tail = 2400*time.Microsecond, 0.5
	}
	if linger == "10ms" {
		s.base += 5 * time.Millisecond
		s.rate += 220
	}
	if open == 1 {
		s.tail += 0.25
	}
	return s
}

const hostileText = `</script></style><img src="https://example.com/x.png" onerror="window.caught=1">'"><script>window.caught=1</script>`

// hostile puts text that tries to be markup wherever a result has text.
func hostile(f fixture) fixture {
	r := f.result
	r.Workload.Name, r.Workload.Description, r.Workload.Given, r.Workload.Hash = hostileText, hostileText, hostileText, hostileText
	r.Workload.Overrides = []string{hostileText}
	r.Settings = map[string]any{hostileText: hostileText}
	r.Provenance.Cluster.ClusterID, r.Provenance.Cluster.Version, r.Provenance.Host.CPUModel = hostileText, hostileText, hostileText
	p := &r.Points[0]
	p.Label, p.Settings = hostileText, map[string]any{hostileText: hostileText}
	run := &p.Runs[0]
	run.Verdict = results.Verdict{Reasons: []string{hostileText}, Warnings: []string{hostileText}}
	run.Errors = map[string]int64{hostileText: 1}
	run.Thresholds = []results.Threshold{{Expression: hostileText, Value: hostileText}}
	run.Events = []results.Event{{AtNs: 5e9, Kind: hostileText, Text: hostileText}}
	run.Series[hostileText] = run.Series[results.SeriesService]
	run.Topics[0].Name = hostileText
	return f
}
