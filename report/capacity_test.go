package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
)

// capacityResult is a search over made-up runs, whose p99 grows with the rate.
func capacityResult(t testing.TB) fixture {
	f := onePoint(t, "orders", "How much at p99 ≤ 5 ms?", scenario{seed: 5, loop: "open", ack: "acked", rate: 1900, base: 2 * time.Millisecond, tail: 0.3, seconds: 20})
	c := results.Capacity{Point: "p00", Objectives: []string{"response.p99<5ms", "errors<0.1%"}, Outcome: results.CapacityFound,
		MessagesPerSecond: 1900, AskedPerSecond: 1900, UpperPerSecond: 1935}
	for i, rate := range []float64{1000, 2000, 1414, 1682, 1834, 1915} {
		run, _ := scenario{seed: uint64(20 + i), loop: "open", ack: "acked", rate: rate, base: time.Millisecond + time.Duration(rate)*500, tail: 0.3, seconds: 2}.make(0, i)
		held := rate < 1900
		p := results.Probe{Stage: results.StageProbe, Number: i + 1, AskedPerSecond: rate, Held: held, Run: run, Reasons: []string{}}
		if !held {
			p.Reasons = []string{"response.p99<5ms does not hold: 6.1 ms"}
		}
		c.Probes = append(c.Probes, p)
	}
	c.Probes = append(c.Probes, results.Probe{Stage: results.StageHold, Number: 1, AskedPerSecond: 1900, Held: true, Reasons: []string{}, Run: f.result.Points[0].Runs[0]})
	f.result.Capacity = []results.Capacity{c}
	require.NoError(t, f.dir.Save(f.result))
	return f
}

func TestCapacityReport(t *testing.T) {
	f := capacityResult(t)
	var b bytes.Buffer
	require.NoError(t, Terminal(&b, f.result, TerminalOptions{}))
	golden(t, "terminal-capacity.txt", b.Bytes())
	for _, line := range bytes.Split(b.Bytes(), []byte("\n")) {
		require.LessOrEqual(t, columns.StringWidth(string(line)), 100, "%s", line)
	}
	b.Reset()
	require.NoError(t, Markdown(&b, f.result))
	golden(t, "report-capacity.md", b.Bytes())
	b.Reset()
	require.NoError(t, HTML(&b, f.result, f.dir))
	golden(t, "report-capacity.html", structure(b.Bytes()))
	pictures := regexp.MustCompile(`(?s)<svg class="chart[^"]* capacity".*?</svg>`).FindAll(b.Bytes(), -1)
	require.Len(t, pictures, 2, "for wide and narrow screens")
	for _, picture := range pictures {
		require.NoError(t, xml.Unmarshal(picture, new(struct{})))
		require.Equal(t, 7, bytes.Count(picture, []byte(`class="spot"`)), "every probe and the hold run")
		require.Equal(t, 2, bytes.Count(picture, []byte("hollow")), "those that did not hold")
	}
	require.NoError(t, Write(f.dir, f.result))
	for _, name := range []string{"capacity.svg", "capacity.png"} {
		info, err := os.Stat(filepath.Join(f.dir.Path(), PlotsFolder, name))
		require.NoError(t, err)
		require.Positive(t, info.Size())
	}
}

func TestCapacityText(t *testing.T) {
	probes := []results.Probe{{Stage: results.StageProbe, Number: 1, AskedPerSecond: 1000, Held: true}, {Stage: results.StageProbe, Number: 2, AskedPerSecond: 2000}}
	held := append(slices.Clone(probes), results.Probe{Stage: results.StageHold, AskedPerSecond: 1000, Held: true, Run: results.Run{ElapsedNs: 30e9}})
	for _, tt := range []struct {
		says string
		c    results.Capacity
		want string
	}{
		{"found", results.Capacity{Outcome: results.CapacityFound, MessagesPerSecond: 999, AskedPerSecond: 1000, UpperPerSecond: 1019, Probes: held},
			"999 msg/s held for 30.0 s with errors<1%; 1,019 msg/s did not hold"},
		{"found, but not narrowed down", results.Capacity{Outcome: results.CapacityFound, MessagesPerSecond: 999, AskedPerSecond: 1000, UpperPerSecond: 2000, Probes: held},
			"999 msg/s held for 30.0 s with errors<1%; 2,000 msg/s did not hold (100 % above: more --probes would narrow that down)"},
		{"ceiling", results.Capacity{Outcome: results.CapacityCeiling, MessagesPerSecond: 999, Probes: held}, "at least 999 msg/s, held for 30.0 s with errors<1%: that is this generator's ceiling"},
		{"generator", results.Capacity{Outcome: results.CapacityGenerator, MessagesPerSecond: 999, UpperPerSecond: 1019, Generator: "the generator was too busy: 1.9 of 2 cores", Probes: held},
			"at least 999 msg/s, held for 30.0 s with errors<1%: at 1,019 msg/s the generator, not the cluster, gave out (the generator was too busy: 1.9 of 2 cores), and the cluster may do more"},
		{"nothing, since the generator gave out", results.Capacity{Outcome: results.CapacityNothing, Generator: "too busy", Probes: probes},
			"held errors<1%; that says nothing of the cluster: the generator gave out (too busy)"},
		{"unconfirmed, since the generator gave out", results.Capacity{Outcome: results.CapacityUnconfirmed, Generator: "too busy", Probes: probes},
			"but no hold run did; that says nothing of the cluster: the generator gave out (too busy)"},
		{"probes", results.Capacity{Outcome: results.CapacityProbes, MessagesPerSecond: 999, Probes: held}, "at least 999 msg/s, held for 30.0 s with errors<1%: every probe held"},
		{"nothing", results.Capacity{Outcome: results.CapacityNothing, Probes: probes}, "none: no rate that was probed (1,000 to 2,000 msg/s) held errors<1%"},
		{"unconfirmed", results.Capacity{Outcome: results.CapacityUnconfirmed, Probes: probes}, "no figure: probes held up to 1,000 msg/s"},
		{"unfinished", results.Capacity{Outcome: results.CapacityUnfinished, Probes: probes}, "not finished: 2 rates probed, 1,000 msg/s the highest that held"},
		{"unfinished before anything", results.Capacity{Outcome: results.CapacityUnfinished}, "not finished: 0 rates probed, 0 msg/s"},
	} {
		tt.c.Objectives = []string{"errors<1%"}
		require.Contains(t, capacityText(&tt.c), tt.want, tt.says)
	}
}

// A figure that is the generator's limit is called a lower bound wherever it stands, and agrees with nothing.
func TestCapacityThatIsTheGenerators(t *testing.T) {
	f := capacityResult(t)
	c := &f.result.Capacity[0]
	c.Outcome, c.Generator = results.CapacityGenerator, "the generator was too busy: 1.80 of 2.00 cores busy"
	again := *c
	again.Repeat = 1
	f.result.Capacity = append(f.result.Capacity, again)
	text := regexp.MustCompile(`at\s+least\s+1,900\s+msg/s,.*1,935\s+msg/s\s+the\s+generator,\s+not\s+the\s+cluster,\s+gave\s+out\s+\(the\s+generator\s+was\s+too\s+busy`)
	var b bytes.Buffer
	require.NoError(t, Terminal(&b, f.result, TerminalOptions{}))
	require.Regexp(t, text, strings.Join(strings.Fields(b.String()), " "))
	require.NotContains(t, b.String(), "agreement")
	b.Reset()
	require.NoError(t, Markdown(&b, f.result))
	require.Regexp(t, text, b.String())
	require.Contains(t, b.String(), "≥ capacity: a lower bound")
	b.Reset()
	require.NoError(t, HTML(&b, f.result, f.dir))
	require.Regexp(t, text, b.String())
	require.Contains(t, b.String(), "≥ capacity: a lower bound")
	require.NotContains(t, b.String(), "capacity found")
}

// A search that found nothing has no run of a point, and is a report all the same.
func TestCapacityOfNothing(t *testing.T) {
	f := capacityResult(t)
	c := &f.result.Capacity[0]
	c.Outcome, c.MessagesPerSecond, c.AskedPerSecond, c.UpperPerSecond = results.CapacityNothing, 0, 0, 0
	c.Probes = c.Probes[1:2]
	f.result.Points[0].Runs = nil
	var b bytes.Buffer
	require.NoError(t, Terminal(&b, f.result, TerminalOptions{}))
	require.Contains(t, b.String(), "none: no rate that was probed")
	require.NotContains(t, b.String(), "nothing was run")
	require.NoError(t, Markdown(&b, f.result))
	require.NoError(t, HTML(&b, f.result, f.dir))
	require.Contains(t, b.String(), "no capacity found")
	require.NotContains(t, b.String(), "not run")
	require.NoError(t, Write(f.dir, f.result))
}

// scalingResult is a sweep of the number of producers, whose throughput follows a law.
func scalingResult(law stat.USL, open bool, counts ...int64) *results.Result {
	r := newResult("scaling", "")
	for i, n := range counts {
		loop := map[bool]string{true: "open", false: "closed"}[open]
		r.Points = append(r.Points, results.Point{ID: fmt.Sprintf("p%02d", i), Label: fmt.Sprintf("count=%d", n), Settings: map[string]any{producersKey: n},
			Runs: []results.Run{{Loop: loop, Verdict: results.Verdict{Valid: true}, Rates: results.Rates{MessagesPerSecond: law.At(float64(n))},
				Counts: results.Counts{Attempted: 1, Acked: 1}}}})
	}
	return r
}

func TestScalability(t *testing.T) {
	law := stat.USL{Gamma: 50_000, Sigma: 0.05, Kappa: 0.01} // peak 9.75
	for _, tt := range []struct {
		says string
		r    *results.Result
		want string // empty: nothing is said
	}{
		{"a peak that was measured", scalingResult(law, false, 1, 2, 4, 8, 16), "adding producers stops helping at 10 of them, with 212.8k msg/s; Universal Scalability Law: 50.00k msg/s of one, contention 5.00 %"},
		{"a peak beyond what was measured", scalingResult(law, false, 1, 2, 3, 4, 5), "(beyond the 5 measured: an extrapolation)"},
		{"no peak", scalingResult(stat.USL{Gamma: 1000, Sigma: 0.1}, false, 1, 2, 4, 8, 16), "throughput approaches 10.00k msg/s"},
		{"linear", scalingResult(stat.USL{Gamma: 1000}, false, 1, 2, 4, 8, 16), "throughput grows with their number"},
		{"never helps", scalingResult(stat.USL{Gamma: 1000, Sigma: 1.2, Kappa: 0.01}, false, 1, 2, 4, 8, 16), "one alone does the most, 1,000 msg/s"},
		{"four numbers are not enough", scalingResult(law, false, 1, 2, 4, 8), ""},
		{"at a rate that is asked for, throughput says nothing", scalingResult(law, true, 1, 2, 4, 8, 16), ""},
	} {
		lines := newView(Named{Result: tt.r}).scalability()
		if tt.want == "" {
			require.Empty(t, lines, tt.says)
			continue
		}
		require.Len(t, lines, 1, tt.says)
		require.Contains(t, lines[0], tt.want, tt.says)
	}

	r := scalingResult(law, true, 1, 2, 4, 8, 16)
	for i := range r.Points {
		n, _ := numberOf(r.Points[i].Settings[producersKey])
		r.Capacity = append(r.Capacity, results.Capacity{Point: r.Points[i].ID, Outcome: results.CapacityFound, MessagesPerSecond: law.At(n)})
	}
	require.Contains(t, newView(Named{Result: r}).scalability()[0], "stops helping at 10", "capacities by number of producers")
	const left = "the figure is the generator's as much as the cluster's, and is left out"
	for _, own := range []string{results.CapacityCeiling, results.CapacityGenerator} {
		r.Capacity[4].Outcome = own
		require.Equal(t, []string{"where adding producers stops helping is not told: with 16 producers " + left + ", and the law needs 5 numbers of them"},
			newView(Named{Result: r}).scalability(), "the generator's limit is no capacity of the cluster's")
	}

	// Closed loops that were bound by the generator bend the law, and do not count: here each beyond 8 does no more.
	r = scalingResult(law, false, 1, 2, 4, 6, 8, 12, 16)
	for _, i := range []int{5, 6} {
		run := &r.Points[i].Runs[0]
		run.Rates.MessagesPerSecond = law.At(8)
		run.Verdict.Warnings = []string{"generator-bound: 1.90 of 2.00 cores busy"} // of a result without verdict.generator
	}
	r.Points[5].Runs[0].Verdict.Generator = r.Points[5].Runs[0].Verdict.Warnings
	lines := newView(Named{Result: r}).scalability()
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "stops helping at 10 of them, with 212.8k msg/s (beyond the 8 measured: an extrapolation)")
	require.Contains(t, lines[0], "; with 12 and 16 producers "+left)

	r = scalingResult(law, false, 1, 2, 4, 8, 16)
	for _, p := range scalingResult(law, false, 1, 2, 4).Points {
		p.Settings["producer.requiredAcks"] = "all"
		r.Points = append(r.Points, p)
	}
	require.Len(t, newView(Named{Result: r}).scalability(), 1, "points that differ in more are apart")
	var b bytes.Buffer
	require.NoError(t, Terminal(&b, r, TerminalOptions{}))
	require.Contains(t, b.String(), "scaling    adding producers stops helping at 10 of them")
	require.NoError(t, Markdown(&b, r))
	require.NoError(t, HTML(&b, r, nil))
	require.Equal(t, 3, bytes.Count(b.Bytes(), []byte("adding producers stops helping")))
}
