package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/gate"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
	"github.com/kbench/kbench/workloads"
)

// How often the gate errs on a real cluster: rates_kafka_test.go runs the gates, what is here sums
// them up. `make gate-rates` writes the summary into results/data.

// ratesSummary is what came of two sets of gates, the content of gate-rates.json.
type ratesSummary struct {
	Command   string       `json:"command"`
	StartedAt time.Time    `json:"startedAt"`
	TookNs    int64        `json:"tookNs"`
	Kbench    string       `json:"kbench"`
	Kafka     string       `json:"kafka"`
	Host      results.Host `json:"host"`
	Workload  string       `json:"workload"` // the file
	Settings  []string     `json:"settings"` // of every gate, beside
	Loosened  []string     `json:"loosened"` // limits of validity that were not the default ones
	Sets      []*ratesSet  `json:"sets"`
}

// ratesSet is a number of gates of the same two sides.
type ratesSet struct {
	Name  string `json:"name"`
	About string `json:"about"`
	A     string `json:"a,omitempty"`
	B     string `json:"b,omitempty"`
	// Expect is the verdict that Least to Most of the gates are to end with.
	Expect gate.Verdict `json:"expect"`
	// InjectedNs is what B's requests are delayed by more than A's, and Share what part of p50 that was
	// to be.
	InjectedNs int64   `json:"injectedNs,omitempty"`
	Share      float64 `json:"share,omitempty"`
	Least      int     `json:"least"`
	Most       int     `json:"most"`
	Met        bool    `json:"met"`

	Verdicts map[gate.Verdict]int `json:"verdicts"`
	Gates    []ratesGate          `json:"gates"`
	TookNs   int64                `json:"tookNs"`
	Runs     int                  `json:"runs"`
	// Doubtful counts runs that default limits would have called invalid, by what they break; such a
	// run may break several. DoubtfulRuns counts each once.
	Doubtful     map[string]int `json:"doubtful"`
	DoubtfulRuns int            `json:"doubtfulRuns"`
}

// ratesGate is one of them.
type ratesGate struct {
	Verdict gate.Verdict       `json:"verdict"`
	Pairs   int                `json:"pairs"`
	Lost    int                `json:"lost,omitempty"`
	TookNs  int64              `json:"tookNs"`
	BaseP50 int64              `json:"baseP50Ns"` // of A, the median over its runs
	Worse   map[string]float64 `json:"worse"`     // by metric, as a ratio
	Failed  []string           `json:"failed,omitempty"`
}

// add takes a gate that has ended, with the results of both sides.
func (s *ratesSet) add(d *gate.Decision, took time.Duration, sides ...*results.Result) {
	g := ratesGate{Verdict: d.Verdict, Pairs: d.Pairs, Lost: len(d.Invalid), TookNs: int64(took), Worse: map[string]float64{}}
	for _, m := range d.Metrics {
		if strings.HasSuffix(m.Name, ".p50") {
			g.BaseP50 = int64(m.Base)
		}
		if m.Worse != nil {
			g.Worse[m.Name] = math.Round(*m.Worse*1e4) / 1e4
		}
		if m.Verdict == gate.Fail {
			g.Failed = append(g.Failed, m.Name)
		}
	}
	s.Gates = append(s.Gates, g)
	s.Verdicts[d.Verdict]++
	s.TookNs += int64(took)
	s.Met = s.Verdicts[s.Expect] >= s.Least && s.Verdicts[s.Expect] <= s.Most && s.Verdicts[gate.Invalid] == 0 && s.fair()
	for _, r := range sides {
		for i := range r.Points[0].Runs {
			s.Runs++
			broken := beyondDefaults(&r.Points[0].Runs[i])
			for _, name := range broken {
				s.Doubtful[name]++
			}
			if len(broken) > 0 {
				s.DoubtfulRuns++
			}
		}
	}
}

// mostOfShare is how much more of p50 than was said may have been injected: finding more is no feat.
const mostOfShare = 1.15

// injected is the part of A's p50, the median over the gates, that B is slower by; 0 in A/A.
func (s *ratesSet) injected() (share float64, p50 time.Duration) {
	var p50s []float64
	for _, g := range s.Gates {
		p50s = append(p50s, float64(g.BaseP50))
	}
	middle := stat.Median(p50s)
	if s.InjectedNs == 0 || !(middle > 0) {
		return 0, 0
	}
	return float64(s.InjectedNs) / middle, time.Duration(middle)
}

func (s *ratesSet) fair() bool {
	share, _ := s.injected()
	return share <= mostOfShare*s.Share
}

// beyondDefaults names the default limits of validity that a run breaks.
func beyondDefaults(r *results.Run) []string {
	v, g := workloads.Default().Validity, r.Generator
	late := max(v.MaxLateness, time.Duration(float64(r.Series[results.SeriesResponse].P99Ns)*v.MaxLatenessShare))
	var list []string
	for _, c := range []struct {
		name   string
		broken bool
	}{
		{"stolen CPU", g.StolenShare > v.MaxStolenShare},
		{"stood still", time.Duration(g.PauseMaxNs) > v.MaxPause},
		{"woke up late", time.Duration(g.LatenessP99) > late},
		{"too busy", g.CPUAvailable > 0 && g.CPUCores/g.CPUAvailable > v.MaxCPUShare},
		{"rate not met", r.Rates.TargetMessagesPerSecond > 0 && r.Rates.MessagesPerSecond < v.MinRateShare*r.Rates.TargetMessagesPerSecond},
	} {
		if c.broken {
			list = append(list, c.name)
		}
	}
	return list
}

// expected says what of n gates is asked: of the same setting at most one in ten fails, of a slowdown at
// least nine in ten do.
func (s *ratesSet) expected(slower bool, n int) {
	s.Expect, s.Verdicts, s.Doubtful, s.Gates = gate.Fail, map[gate.Verdict]int{}, map[string]int{}, []ratesGate{}
	s.Least, s.Most = 0, (n+9)/10
	if slower {
		s.Least, s.Most = (9*n+9)/10, n
	}
}

// markdown writes the summary for people.
func (s *ratesSummary) markdown(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# How often the gate errs on Apache Kafka\n")
	line("Made by `%s` on %s, in %s.\n", s.Command, s.StartedAt.UTC().Format("2006-01-02 15:04 UTC"), time.Duration(s.TookNs).Round(time.Second))
	line("Kafka %s and kbench %s on one machine: %s, %d CPUs, %s.\n", s.Kafka, s.Kbench, s.Host.CPUModel, s.Host.CPUs, s.Host.OS)
	line("| gates | FAIL | PASS | INCONCLUSIVE | INVALID | asked for | met | pairs a gate | a gate takes |")
	line("|---|---:|---:|---:|---:|---|---|---:|---:|")
	for _, x := range s.Sets {
		pairs := 0
		for _, g := range x.Gates {
			pairs += g.Pairs
		}
		n := max(1, len(x.Gates))
		line("| %d × %s: %s | %d | %d | %d | %d | %s | %s | %.1f | %s |", len(x.Gates), x.Name, x.About, x.Verdicts[gate.Fail], x.Verdicts[gate.Pass],
			x.Verdicts[gate.Inconclusive], x.Verdicts[gate.Invalid], x.asked(), map[bool]string{true: "yes", false: "**no**"}[x.Met],
			float64(pairs)/float64(n), time.Duration(x.TookNs/int64(n)).Round(time.Second))
	}
	line("")
	for _, x := range s.Sets {
		if share, p50 := x.injected(); share > 0 {
			line("%s: A's p50 was %s (median over the gates), so that %s more are %.1f %% of it.\n", x.Name, p50.Round(10*time.Microsecond), time.Duration(x.InjectedNs), 100*share)
		}
		line("%s, by gate (%s):", x.Name, "how many times worse; FAIL marks the figures that failed it")
		for i, g := range x.Gates {
			line("%d. %s after %d pairs%s: %s", i+1, g.Verdict, g.Pairs, lostText(g.Lost), worseText(g))
		}
		line("")
	}
	s.validity(line)
	line("## What was run\n\n```yaml\n%s```\n\nSettings beside: %s", s.Workload, orNothing(s.Settings))
	for _, x := range s.Sets {
		if x.A != "" {
			line("%s: A `%s`, B `%s`", x.Name, x.A, x.B)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// validity says by which limits runs were taken, and how many would not have been by the default ones.
func (s *ratesSummary) validity(line func(string, ...any)) {
	line("## Validity\n")
	if len(s.Loosened) == 0 {
		line("Every run met the default limits of validity; those that did not were run again, and are counted above as lost.\n")
		return
	}
	line("**Limits of validity were loosened** (%s), because the machine was not quiet: the rates above are those of a gate on such a machine.", strings.Join(s.Loosened, ", "))
	for _, x := range s.Sets {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(x.Doubtful)) {
			parts = append(parts, fmt.Sprintf("%s %d", name, x.Doubtful[name]))
		}
		line("%s: by the default limits %d of %d runs would have been invalid (%s).", x.Name, x.DoubtfulRuns, x.Runs, orNothing(parts))
	}
	line("")
}

func (s *ratesSet) asked() string {
	if s.Least == 0 {
		return fmt.Sprintf("at most %d %s", s.Most, s.Expect)
	}
	return fmt.Sprintf("at least %d %s", s.Least, s.Expect)
}

func lostText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d lost)", n)
}

func worseText(g ratesGate) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(g.Worse)) {
		text := fmt.Sprintf("%s %.3f", name, g.Worse[name])
		if slices.Contains(g.Failed, name) {
			text += " FAIL"
		}
		parts = append(parts, text)
	}
	return orNothing(parts)
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// write puts both forms into a folder.
func (s *ratesSummary) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "gate-rates.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return writeTo(nil, filepath.Join(dir, "gate-rates.md"), s.markdown)
}

// What is asked of a set, and when it is met.
func TestRatesOfASet(t *testing.T) {
	for _, c := range []struct {
		about    string
		slower   bool
		verdicts string // F, P, I or V for INVALID, one a gate
		met      bool
	}{
		{"the same setting, one false alarm of ten", false, "PPPPPPPPPF", true},
		{"the same setting, two of ten", false, "PPPPPPPPFF", false},
		{"the same setting, not decided", false, "IIIIIIIIII", true},
		{"a slowdown found nine times", true, "FFFFFFFFFI", true},
		{"a slowdown found eight times", true, "FFFFFFFFPP", false},
		{"gates that could not measure show nothing", false, "PPPPPPPPPV", false},
		{"two gates, one false alarm", false, "PF", true},
		{"two gates, one slowdown missed", true, "FP", false},
	} {
		t.Run(c.about, func(t *testing.T) {
			s := &ratesSet{}
			s.expected(c.slower, len(c.verdicts))
			for _, v := range c.verdicts {
				s.add(&gate.Decision{Verdict: map[rune]gate.Verdict{'F': gate.Fail, 'P': gate.Pass, 'I': gate.Inconclusive, 'V': gate.Invalid}[v]}, time.Second)
			}
			require.Equal(t, c.met, s.Met)
			require.Len(t, s.Gates, len(c.verdicts))
		})
	}
}

// A slowdown larger than was said shows nothing.
func TestRatesOfAFairSet(t *testing.T) {
	for p50, met := range map[time.Duration]bool{20 * time.Millisecond: true, 30 * time.Millisecond: true, 15 * time.Millisecond: false} {
		s := &ratesSet{InjectedNs: int64(2 * time.Millisecond), Share: 0.1}
		s.expected(true, 1)
		worse := 1.1
		s.add(&gate.Decision{Verdict: gate.Fail, Metrics: []gate.MetricDecision{{Name: "response.p50", Base: float64(p50), Worse: &worse}}}, time.Second)
		require.Equal(t, met, s.Met, "%s", p50)
	}
}

func TestRatesSummary(t *testing.T) {
	s := &ratesSummary{Command: "make gate-rates", Kafka: "4.4", Kbench: "dev", Workload: "name: x\n", Loosened: []string{"validity.maxStolenShare=1"}, TookNs: 61e9}
	set := &ratesSet{Name: "A/A", About: "the same setting"}
	set.expected(false, 1)
	worse := 1.0204
	run := results.Run{Generator: results.Generator{StolenShare: 0.3, CPUCores: 1.9, CPUAvailable: 2}}
	calm := results.Run{Generator: results.Generator{StolenShare: 0.01, CPUCores: 0.2, CPUAvailable: 2}}
	set.add(&gate.Decision{Verdict: gate.Fail, Pairs: 8, Invalid: []string{"pair 2"}, Metrics: []gate.MetricDecision{{Name: "cpu", Worse: &worse, Verdict: gate.Fail}}}, time.Minute,
		&results.Result{Points: []results.Point{{Runs: []results.Run{run, calm, run}}}})
	s.Sets = append(s.Sets, set)
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, s.write(dir))
	page, err := os.ReadFile(filepath.Join(dir, "gate-rates.md"))
	require.NoError(t, err)
	for _, part := range []string{
		"Made by `make gate-rates`", "| 1 × A/A: the same setting | 1 | 0 | 0 | 0 | at most 1 FAIL | yes | 8.0 | 1m0s |",
		"1. FAIL after 8 pairs (1 lost): cpu 1.020 FAIL", "**Limits of validity were loosened** (validity.maxStolenShare=1)",
		"A/A: by the default limits 2 of 3 runs would have been invalid (stolen CPU 2, too busy 2).",
	} {
		require.Contains(t, string(page), part)
	}
	text, err := os.ReadFile(filepath.Join(dir, "gate-rates.json"))
	require.NoError(t, err)
	var back ratesSummary
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, s.Sets[0].Doubtful, back.Sets[0].Doubtful)
	s.Loosened = nil
	require.NoError(t, s.write(dir))
	page, err = os.ReadFile(filepath.Join(dir, "gate-rates.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "Every run met the default limits")
}
