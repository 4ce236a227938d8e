package capacity_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/capacity"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lengthOf is the length of a probe: whole under KBENCH_SOAK=1, else shorter.
func lengthOf(whole, short time.Duration) time.Duration {
	if os.Getenv("KBENCH_SOAK") == "1" {
		return whole
	}
	return short
}

// errorOf is how near a figure of random arrivals comes in a probe of that length.
func errorOf() float64 {
	return map[bool]float64{true: 0.03, false: 0.05}[os.Getenv("KBENCH_SOAK") == "1"]
}

// workload is one producer, paced exactly on a virtual clock, where no CPU is used.
func workload(length time.Duration, thresholds ...string) workloads.Definition {
	return workloads.Definition{
		Seed:      7,
		Producers: workloads.Producers{Count: 1, Pacer: "sleep", Run: 1000, Schedule: workloads.Schedule{Kind: "constant"}},
		Payload:   workloads.Payload{Stamp: "none"},
		Phases:    workloads.Phases{WarmUp: 200 * time.Millisecond, Duration: length, Drain: 2 * time.Minute, Interval: time.Second},
		Validity: workloads.Validity{MinRateShare: 0.99, MaxLateness: 2 * time.Millisecond, MaxLatenessShare: 0.1,
			MaxPause: 100 * time.Millisecond},
		Thresholds: thresholds,
	}
}

// measured runs every step of a search on the synthetic target, each on a virtual clock of its own.
func measured(t *testing.T, o capacity.Options, d workloads.Definition, script synthetic.Script) taken {
	t.Helper()
	var last *run.Outcome
	all := follow(t, capacity.New(o), func(s capacity.Step) (a capacity.Answer) {
		def := d
		def.Producers.Rate = s.Rate
		if s.Stage == capacity.Hold {
			def.Phases.Duration *= 3
		}
		script.Seed++
		synctest.Test(t, func(t *testing.T) {
			clock := run.NewClock()
			out, err := run.Execute(t.Context(), run.Spec{Definition: def, Clock: clock, Target: synthetic.New(script, clock)})
			require.NoError(t, err)
			var reasons []string
			a, reasons = capacity.Judge(out, d.Validity)
			require.Equal(t, a.Held, len(reasons) == 0, "%v", reasons)
			if s.Stage == capacity.Hold && a.Held {
				last = out
			}
		})
		return a
	})
	if all.Asked > 0 {
		require.InDelta(t, last.Run.Rates.MessagesPerSecond, all.Achieved, 1e-9, "the hold run's figure is the one reported")
		require.Equal(t, 3*d.Phases.Duration, time.Duration(last.Run.ElapsedNs))
	}
	return all
}

// T6: the search converges and a hold run confirms what it finds.
func TestT6CapacityOfAQueue(t *testing.T) {
	d := workload(lengthOf(30*time.Second, 400*time.Millisecond), "response.p99<1s")
	all := measured(t, capacity.Options{Start: 1000}, d, synthetic.Script{Latency: time.Millisecond, Capacity: 20_000})
	require.Equal(t, capacity.Found, all.Outcome)
	require.LessOrEqual(t, all.probes, 12, "%v", rates(all.steps))
	require.GreaterOrEqual(t, all.Achieved, 19_600.0)
	require.LessOrEqual(t, all.Achieved, 20_000.0)
	t.Logf("check 16: %.0f messages/s, above %.0f nothing held, in %d probes", all.Achieved, all.Upper, all.probes)
}

// A generator that can do half of what the cluster can: the search ends at its limit and says so.
func TestCapacityAtTheGeneratorsLimit(t *testing.T) {
	d := workload(lengthOf(10*time.Second, 400*time.Millisecond), "response.p99<1s")
	d.Validity.MaxOwnShare = workloads.Default().Validity.MaxOwnShare
	script := synthetic.Script{Latency: time.Millisecond, Capacity: 20_000, Toil: 100 * time.Microsecond}
	all := measured(t, capacity.Options{Start: 1000}, d, script)
	require.Equal(t, capacity.Generator, all.Outcome)
	require.GreaterOrEqual(t, all.Achieved, 9_800.0)
	require.LessOrEqual(t, all.Achieved, 10_100.0, "99 % of the rate are enough")
	require.Contains(t, all.Reason, "generator-bound: each producer was behind its schedule")
	require.Greater(t, all.Upper, all.Asked)

	script.Capacity = 5_000 // and a cluster that can do half of what the generator can, as its buffer tells
	script.Buffer = 100
	all = measured(t, capacity.Options{Start: 1000}, d, script)
	require.Equal(t, capacity.Found, all.Outcome)
	require.Empty(t, all.Reason)
	require.LessOrEqual(t, all.Achieved, 5_000.0)
}

// M/M/1: p99 is ln 100/(μ−λ), which is 5 ms at 9 079/s.
func TestCheck16CapacityAtAnObjective(t *testing.T) {
	d := workload(lengthOf(120*time.Second, 3*time.Second), "response.p99<=5ms")
	d.Producers.Schedule.Kind = "poisson"
	all := measured(t, capacity.Options{Start: 1000}, d, synthetic.Script{Capacity: 10_000, Exponential: true, Seed: 11})
	require.Equal(t, capacity.Found, all.Outcome)
	require.LessOrEqual(t, all.probes, 12)
	require.InEpsilon(t, 9079, all.Achieved, errorOf())
	t.Logf("check 16: %.0f messages/s with p99 ≤ 5 ms, above %.0f nothing held, in %d probes", all.Achieved, all.Upper, all.probes)
}

// Consumers that are slower than the producers' cluster: the lag grows, and bounds the capacity.
func TestCapacityIsBoundedByTheConsumers(t *testing.T) {
	d := workload(3 * time.Second)
	d.Consumers = workloads.Consumers{Count: 1, Groups: 1}
	d.Payload = workloads.Payload{Size: 64, Stamp: "value"}
	all := measured(t, capacity.Options{Start: 150}, d, synthetic.Script{Capacity: 20_000, Reading: 900})
	require.Equal(t, capacity.Found, all.Outcome)
	require.InEpsilon(t, 900, all.Achieved, 0.025)
}

func TestCapacityWhenEverythingOrNothingHolds(t *testing.T) {
	d := workload(3*time.Second, "response.p99<20ms")
	all := measured(t, capacity.Options{Start: 1000, Most: 6000}, d, synthetic.Script{Latency: time.Millisecond})
	require.Equal(t, capacity.AtMost, all.Outcome)
	require.InEpsilon(t, 6000, all.Achieved, 0.001)
	require.Zero(t, all.Upper)

	all = measured(t, capacity.Options{Start: 1000}, d, synthetic.Script{Latency: 30 * time.Millisecond})
	require.Equal(t, capacity.Nothing, all.Outcome)
	require.LessOrEqual(t, all.probes, 12)
}

func TestJudge(t *testing.T) {
	sound := func() *run.Outcome {
		return &run.Outcome{Run: results.Run{ElapsedNs: 4e9,
			Rates:      results.Rates{MessagesPerSecond: 9900, TargetMessagesPerSecond: 10_000},
			Verdict:    results.Verdict{Valid: true},
			Thresholds: []results.Threshold{{Expression: "response.p99<20ms", Value: "3 ms", Held: true}},
		}}
	}
	growing := func(by float64) *results.Consumption {
		return &results.Consumption{Lag: &results.Lag{GrowthPerSecond: &by}}
	}
	for _, row := range []struct {
		sentence string
		change   func(*run.Outcome)
		reasons  []string
		disturbs bool
	}{
		{"everything at its limit holds", func(*run.Outcome) {}, nil, false},
		{"a hair under 99 % does not", func(o *run.Outcome) { o.Run.Rates.MessagesPerSecond = 9899 },
			[]string{"9899 of 10000 messages/s achieved, 99.0 %, at least 99 % are needed"}, false},
		{"a broken objective", func(o *run.Outcome) {
			o.Run.Thresholds[0] = results.Threshold{Expression: "response.p99<20ms", Value: "21 ms"}
		},
			[]string{"response.p99<20ms does not hold: 21 ms"}, false},
		{"invalid though the rate was met", func(o *run.Outcome) {
			o.Run.Verdict = results.Verdict{Reasons: []string{"the generator stood still for 2s"}}
		}, []string{"invalid: the generator stood still for 2s"}, true},
		{"invalid by the generator's doing", func(o *run.Outcome) {
			o.Run.Verdict = results.Verdict{Reasons: []string{"clocks disagree", "too busy"}, Generator: []string{"too busy"}}
		}, []string{"invalid: clocks disagree", "invalid: too busy"}, true},
		{"invalid, and the rate not met: that is overload", func(o *run.Outcome) {
			o.Run.Rates.MessagesPerSecond = 5000
			o.Run.Verdict = results.Verdict{Reasons: []string{"rate not met"}}
		}, []string{"5000 of 10000", "invalid: rate not met"}, false},
		{"lag that grows by 1 % of the rate", func(o *run.Outcome) {
			o.Run.Consumption = growing(100)
		}, nil, false},
		{"lag that grows by more", func(o *run.Outcome) {
			o.Run.Consumption = growing(102)
		}, []string{"the lag of the consumers grew by 102 messages/s, 1.0 % of the rate, at most 1 % are allowed"}, false},
		{"consumers whose lag is not known: silence is no pass", func(o *run.Outcome) { o.Run.Consumption = &results.Consumption{} },
			[]string{"whether the lag of the consumers grew is not known"}, false},
		{"no rate at all, and no division by it", func(o *run.Outcome) { o.Run.Rates = results.Rates{} },
			[]string{"0 of 0 messages/s achieved"}, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			out := sound()
			row.change(out)
			a, reasons := capacity.Judge(out, workloads.Validity{})
			require.Len(t, reasons, len(row.reasons), "%v", reasons)
			for i, want := range row.reasons {
				require.Contains(t, reasons[i], want)
			}
			require.Equal(t, len(row.reasons) == 0, a.Held)
			require.Equal(t, row.disturbs, a.Disturbed)
			require.Equal(t, strings.Join(out.Run.Verdict.Generator, "; "), a.Generator)
		})
	}
}

// A run that holds although its closed loop's generator was busy blames nobody.
func TestJudgeBlamesNobodyForWhatHolds(t *testing.T) {
	out := &run.Outcome{Run: results.Run{Rates: results.Rates{MessagesPerSecond: 10_000, TargetMessagesPerSecond: 10_000},
		Verdict: results.Verdict{Valid: true, Generator: []string{"generator-bound"}}}}
	a, _ := capacity.Judge(out, workloads.Validity{})
	require.Equal(t, capacity.Answer{Achieved: 10_000, RateMet: true, Held: true}, a)
}

func TestJudgeByTheWorkloadsOwnShare(t *testing.T) {
	out := &run.Outcome{Run: results.Run{Rates: results.Rates{MessagesPerSecond: 9100, TargetMessagesPerSecond: 10_000}, Verdict: results.Verdict{Valid: true}}}
	a, _ := capacity.Judge(out, workloads.Validity{MinRateShare: 0.9})
	require.True(t, a.Held && a.RateMet)
	a, reasons := capacity.Judge(out, workloads.Validity{MinRateShare: 0.92})
	require.False(t, a.Held || a.RateMet)
	require.Contains(t, reasons[0], "at least 92 % are needed")
}

func TestCheckRefusesWhatCannotBeSearched(t *testing.T) {
	base := func() *workloads.Definition {
		d := workloads.Default()
		d.Name, d.Consumers.Count = "w", 1
		return &d
	}
	for _, row := range []struct {
		sentence string
		change   func(*workloads.Definition)
		slo      string
		problem  string // empty: none
	}{
		{"a plain workload", func(*workloads.Definition) {}, "response.p99<20ms", ""},
		{"lag with consumers", func(*workloads.Definition) {}, "lag.growth<1%", ""},
		{"lag without consumers", func(d *workloads.Definition) { d.Consumers.Count = 0 }, "lag.growth<1%",
			"lag.growth<1%: this workload cannot tell: it has no consumers (consumers.count is 0)"},
		{"e2e without consumers", func(d *workloads.Definition) { d.Consumers.Count = 0 }, "e2e.p99<1s", "it has no consumers"},
		{"e2e without consumers, which a sweep brings", func(d *workloads.Definition) {
			d.Consumers.Count, d.Sweep = 0, []workloads.Axis{{Key: "consumers.count"}}
		}, "e2e.p99<1s", ""},
		{"lost without a stamp", func(d *workloads.Definition) { d.Payload.Stamp = "none" }, "lost=0", "messages carry no stamp"},
		{"rebalances without a group", func(*workloads.Definition) {}, "rebalance.p99<1s", "there are no members of a group"},
		{"catching up", func(*workloads.Definition) {}, "catchUp.time<5s", "no backlog to catch up on"},
		{"a workload that only consumes", func(d *workloads.Definition) { d.Producers.Count = 0 }, "errors<1%", "only consumes"},
		{"a ramp", func(d *workloads.Definition) { d.Producers.Schedule.Kind = "ramp" }, "errors<1%", "has rates of its own"},
		{"times of a file", func(d *workloads.Definition) { d.Producers.Schedule.Kind = "replay" }, "errors<1%", "has rates of its own"},
		{"named phases", func(d *workloads.Definition) { d.Phases.Named = []workloads.Stage{{Name: "a", For: time.Second}} }, "errors<1%", "phases.named"},
		{"a topic that exists", func(d *workloads.Definition) { d.Topics.Name = "orders" }, "errors<1%", "needs a fresh one"},
		{"a number of messages", func(d *workloads.Definition) { d.Producers.Messages = 5 }, "errors<1%", "bounded by phases.duration"},
		{"a backlog", func(d *workloads.Definition) { d.Consumers.StartAfter = time.Second }, "errors<1%", "lets a backlog grow"},
		{"too short for the lag to show", func(d *workloads.Definition) { d.Phases.Duration = time.Second }, "errors<1%", "over two intervals"},
		{"a sweep of the rate", func(d *workloads.Definition) { d.Sweep = []workloads.Axis{{Key: "producers.rate"}} }, "errors<1%", "sets the rate itself"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			d := base()
			row.change(d)
			slo, err := workloads.ParseThreshold(row.slo)
			require.NoError(t, err)
			err = capacity.Check(d, []workloads.Threshold{slo})
			if row.problem == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.problem)
			}
		})
	}
}
