package perftool_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/perftool"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// definition is a run of one producer and nobody else, of values of 100 bytes.
func definition(change func(d *workloads.Definition)) workloads.Definition {
	d := workloads.Default()
	d.Phases.WarmUp, d.Phases.Duration = 0, 0
	d.Payload.Stamp, d.Producers.Pacer = "none", "sleep"
	change(&d)
	return d
}

// printer is one of the tools.
type printer interface{ Watch(run.Target) run.Target }

// execute runs a definition against a script on a virtual clock, whose seconds are exact.
func execute(t *testing.T, d workloads.Definition, s synthetic.Script, clock func() (run.Clock, printer, func())) *run.Outcome {
	t.Helper()
	var out *run.Outcome
	synctest.Test(t, func(t *testing.T) {
		c, tool, tell := clock()
		var err error
		out, err = run.Execute(t.Context(), run.Spec{Definition: d, Clock: c, Target: tool.Watch(synthetic.New(s, c)),
			Progress: func(run.Progress) { tell() }})
		require.NoError(t, err)
	})
	return out
}

func TestProducedPrintsAsKafkasTool(t *testing.T) {
	for _, row := range []struct {
		name   string
		warmUp int64
		script synthetic.Script
		change func(d *workloads.Definition)
	}{
		{"by-schedule", 0, synthetic.Script{Latency: 5 * time.Millisecond}, func(d *workloads.Definition) {
			d.Producers.Rate, d.Producers.Messages = 1000, 12_000
		}},
		{"with-warm-up", 6000, synthetic.Script{Latency: 5 * time.Millisecond}, func(d *workloads.Definition) {
			d.Producers.Rate, d.Producers.Messages, d.Phases.WarmUpMessages = 1000, 12_000, 6000
		}},
		{"closed-loop-some-refused", 0, synthetic.Script{Capacity: 1000, Buffer: 100, Refuse: 0.18}, func(d *workloads.Definition) {
			d.Producers.Messages, d.Producers.Run = 1000, 10
		}},
		{"nothing-acknowledged-in-its-steady-state", 999, synthetic.Script{Capacity: 1000, Buffer: 100, Refuse: 1 / 1000.}, func(d *workloads.Definition) {
			d.Producers.Messages, d.Producers.Run, d.Phases.WarmUpMessages = 1, 10, 999
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var text bytes.Buffer
			p := &perftool.Produced{Every: 5 * time.Second, WarmUp: row.warmUp, Out: &text}
			out := execute(t, definition(row.change), row.script, func() (run.Clock, printer, func()) {
				p.Clock = run.NewClock()
				p.Begin()
				return p.Clock, p, p.Update
			})
			p.End()
			require.NotContains(t, text.String(), "NaN")
			require.NotContains(t, text.String(), "Inf")
			if row.warmUp == 0 {
				require.Regexp(t, fmt.Sprintf(`(?m)^%d records sent, [0-9.]+ records/sec .* 99\.9th\.$`, out.Run.Counts.Acked), text.String())
			}
			golden(t, row.name+".txt", windows(t, text.String()))
		})
	}
}

// During the run it is a matter of who comes first at an instant, whether a line has a record more.
var during = regexp.MustCompile(`(?m)^(\d+) records sent, [\d.]+ records/sec`)

// windows checks the lines during the run, of five seconds at 1000/s, and replaces their counts.
func windows(t *testing.T, text string) string {
	return regexp.MustCompile(`(?m)^.*max latency\.$`).ReplaceAllStringFunc(text, func(line string) string {
		found := during.FindStringSubmatch(line)
		require.NotNil(t, found, line)
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		require.InDelta(t, 5000, n, 260, "of the tick that it came with")
		return during.ReplaceAllString(line, "ABOUT 5000 records sent, ABOUT 1000 records/sec")
	})
}

// The dates are of the local time, and in no golden file.
var dates = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}`)

var figures = regexp.MustCompile(`\b[\d.]{4,}\b`)

// roughly is a figure without what depends on who comes first at an instant.
func roughly(figure string) string {
	x, err := strconv.ParseFloat(figure, 64)
	if err != nil {
		return figure
	}
	if x < 1 {
		return fmt.Sprintf("≈%.2f", x)
	}
	return fmt.Sprintf("≈%.0f", 100*math.Round(x/100))
}

func TestConsumedPrintsAsKafkasTool(t *testing.T) {
	for _, row := range []struct {
		name           string
		detailed, hide bool
		script         synthetic.Script
		asked          int64
	}{
		{"consumed", false, false, synthetic.Script{Feed: 1000}, 12_000},
		{"consumed-hidden-header", false, true, synthetic.Script{Feed: 1000}, 12_000},
		{"consumed-detailed", true, false, synthetic.Script{Feed: 1000}, 12_000},
		{"consumed-nothing", false, false, synthetic.Script{}, 12_000},
		{"consumed-nothing-detailed", true, false, synthetic.Script{}, 12_000},
	} {
		t.Run(row.name, func(t *testing.T) {
			var text bytes.Buffer
			c := &perftool.Consumed{Every: 5 * time.Second, Detailed: row.detailed, Hide: row.hide, Out: &text}
			d := definition(func(d *workloads.Definition) {
				d.Producers.Count, d.Producers.Messages, d.Consumers.Count, d.Consumers.Idle = 0, row.asked, 1, 2*time.Second
			})
			execute(t, d, row.script, func() (run.Clock, printer, func()) {
				c.Clock = run.NewClock()
				c.Begin()
				return c.Clock, c, c.Update
			})
			c.End(row.asked, d.Consumers.Idle, false)
			require.NotContains(t, text.String(), "NaN", "T5")
			require.NotContains(t, text.String(), "Inf")
			require.NotRegexp(t, `-\d`, dates.ReplaceAllString(text.String(), ""), "T5: nothing is negative")
			golden(t, row.name+".txt", figures.ReplaceAllStringFunc(dates.ReplaceAllString(text.String(), "DATE"), roughly))
		})
	}
}

func TestEndToEndPrintsAsKafkasTool(t *testing.T) {
	for _, messages := range []int64{2001, 1} {
		var text bytes.Buffer
		e := &perftool.EndToEnd{Out: &text}
		d := definition(func(d *workloads.Definition) {
			d.Producers.Form, d.Producers.Await, d.Producers.Messages = "sync", "received", messages
			d.Payload.Stamp, d.Consumers.Count = "auto", 1
		})
		execute(t, d, synthetic.Script{Latency: 2 * time.Millisecond, Delivery: 3 * time.Millisecond, Partitions: 1}, func() (run.Clock, printer, func()) {
			e.Clock = run.NewClock()
			return e.Clock, e, func() {}
		})
		e.End()
		golden(t, fmt.Sprintf("end-to-end-%d.txt", messages), text.String())
	}
	var text bytes.Buffer
	(&perftool.EndToEnd{Out: &text}).End()
	require.Equal(t, "Avg latency: 0.0000 ms\nPercentiles: 50th = 0, 99th = 0, 99.9th = 0\n", text.String(), "T5: nothing received")
}

// Every figure is there under its name in the result.
func TestMetrics(t *testing.T) {
	d := definition(func(d *workloads.Definition) { d.Producers.Rate, d.Producers.Messages = 1000, 2000 })
	p := &perftool.Produced{Every: time.Hour, Out: &bytes.Buffer{}}
	out := execute(t, d, synthetic.Script{Latency: time.Millisecond}, func() (run.Clock, printer, func()) {
		p.Clock = run.NewClock()
		return p.Clock, p, p.Update
	})
	var text bytes.Buffer
	require.NoError(t, perftool.Metrics(&text, &out.Run))
	require.Regexp(t, `(?m)^Metric Name +Value$`, text.String())
	require.Regexp(t, `(?m)^counts\.acked +: 2000\.000$`, text.String())
	require.Regexp(t, `(?m)^series\.service\.p99Ns +: 1000\d\d\d\.000$`, text.String())
	require.Regexp(t, `(?m)^rates\.messagesPerSecond +: `, text.String())
}
