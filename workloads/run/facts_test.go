package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
	"github.com/kbench/kbench/workloads"
)

// measured is an engine after a run of a minute, and what it measured: valid, each figure at its limit.
func measured() (*engine, *results.Run, map[string]*hist.Histogram) {
	d := workloads.Default()
	d.Producers.Rate = 10_000
	e := &engine{def: &d, frame: newFrame(int64(time.Second), true), drainBound: d.Phases.Drain}
	e.frame.start.Store(1)
	e.frame.end.Store(int64(time.Minute) + 1)
	e.loaders = []*loader{{pool: &pool{max: 500}}}
	e.spec.Ceiling = 10_000 / 0.7
	response := hist.New()
	response.RecordN(int64(10*time.Millisecond), 594_000)
	series := map[string]*hist.Histogram{results.SeriesResponse: response}
	run := &results.Run{
		Loop: LoopOpen, ElapsedNs: int64(time.Minute),
		Rates:  results.Rates{MessagesPerSecond: 9_900, TargetMessagesPerSecond: 10_000},
		Counts: results.Counts{Attempted: 600_000, Acked: 600_000},
		Series: map[string]results.Series{results.SeriesResponse: {Count: 594_000, P99Ns: int64(10 * time.Millisecond)}},
		Generator: results.Generator{CPUCores: 1.7, CPUAvailable: 2, StolenShare: 0.02, PauseMaxNs: int64(100 * time.Millisecond),
			HostCPUShare: 0.95, GCPauseMaxNs: int64(2 * time.Millisecond), LatenessP99: int64(2 * time.Millisecond),
			BehindNs: int64(time.Minute), BehindOwnNs: int64(30 * time.Second)},
		Steady: &results.Steady{Found: true}, LittlesLaw: &results.LittlesLaw{Holds: true},
		Topics: []results.Topic{{Name: "t", Partitions: 2, LeadersBefore: []int32{1, 2}, LeadersAfter: []int32{1, 2}, ISRBefore: []int{3, 3}, ISRAfter: []int{3, 3}}},
	}
	return e, run, series
}

// Every limit of the defaults trips by what a run measured, on its way through the facts.
func TestEachFigureOfARunTripsItsLimit(t *testing.T) {
	for _, row := range []struct {
		figure   string
		over     func(*engine, *results.Run, map[string]*hist.Histogram)
		reasons  []string
		warnings []string
		own      bool // named as the generator's
	}{
		{"nothing", func(*engine, *results.Run, map[string]*hist.Histogram) {}, nil, nil, false},
		{"validity.minRateShare", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Rates.MessagesPerSecond = 9_899 },
			[]string{"rate not met"}, nil, false},
		{"validity.maxOwnShare", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) {
			r.Rates.MessagesPerSecond, r.Generator.BehindOwnNs = 9_899, int64(30*time.Second)+1
		}, []string{"rate not met", "generator-bound: each producer"}, nil, true},
		{"validity.maxLateness", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Generator.LatenessP99++ },
			[]string{"the generator woke up late"}, nil, true},
		{"validity.maxLatenessShare", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) {
			r.Series[results.SeriesResponse] = results.Series{P99Ns: int64(50 * time.Millisecond)}
			r.Generator.LatenessP99 = int64(5*time.Millisecond) + 1
		}, []string{"the generator woke up late: lateness p99 5ms, limit 5ms"}, nil, true},
		{"validity.maxCpuShare", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Generator.CPUCores = 1.71 },
			[]string{"the generator was too busy"}, nil, true},
		{"validity.maxStolenShare", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Generator.StolenShare = 0.021 },
			[]string{"the hypervisor took CPU away"}, nil, true},
		{"validity.maxPause", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Generator.PauseMaxNs++ },
			[]string{"the generator itself stood still"}, nil, true},
		{"validity.maxGcPauseShare", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Generator.GCPauseMaxNs++ },
			[]string{"garbage collector stopped it"}, nil, true},
		{"validity.maxHostCpuShare", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Generator.HostCPUShare = 0.951 },
			nil, []string{"the machine was 95.1 % busy"}, false},
		{"validity.maxCeilingShare", func(e *engine, _ *results.Run, _ map[string]*hist.Histogram) { e.spec.Ceiling = 14_000 },
			nil, []string{"of this generator's ceiling"}, false},
		{"validity.maxLittleError", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.LittlesLaw.Holds = false },
			nil, []string{"the figures contradict each other"}, false},
		{"unknown outcomes", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Counts.Unknown = 1 },
			[]string{"1 messages have no known outcome (drain 30s)"}, nil, false},
		{"not received", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Counts.NotReceived = 1 },
			[]string{"1 acked messages had not been received"}, nil, false},
		{"transactions without an end", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) {
			r.Transactions = &results.Transactions{Committed: 3, Unknown: 1, UnknownMessages: 7}
		}, []string{"1 of 4 transactions without a known end"}, nil, false},
		{"clamped values", func(_ *engine, _ *results.Run, s map[string]*hist.Histogram) {
			s[results.SeriesResponse].Record(int64(200 * time.Second))
		}, []string{"1 values of response were above"}, nil, false},
		{"negative e2e", func(_ *engine, r *results.Run, s map[string]*hist.Histogram) {
			r.Counts.NegativeE2E, s[results.SeriesE2E] = 1, hist.New()
			s[results.SeriesE2E].Record(-int64(50 * time.Millisecond))
		}, []string{"clocks disagree: 1 messages were received before they were due, the worst 50"}, nil, false},
		{"no steady state", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) {
			r.Steady = &results.Steady{Reason: "no steady state"}
		}, []string{"no steady state"}, nil, false},
		{"a leader that moved", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Topics[0].LeadersMoved = 1 },
			[]string{"leaders moved during the run"}, nil, false},
		{"a replica that was lost", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Topics[0].ISRShrunk = 1 },
			[]string{"in-sync replicas were lost"}, nil, false},
		{"ended early", func(e *engine, _ *results.Run, _ map[string]*hist.Histogram) { e.ended = "interrupted" },
			[]string{"the measured phase ended after 1m0s: interrupted"}, nil, false},
		{"the engine's own bound", func(e *engine, _ *results.Run, _ map[string]*hist.Histogram) { e.loaders[0].exhausted = true },
			nil, []string{"500 messages were open at once"}, false},
		{"others' messages", func(_ *engine, r *results.Run, _ map[string]*hist.Histogram) { r.Counts.Unstamped = 3 },
			nil, []string{"3 messages arrived without a stamp"}, false},
		{"e2e of another run's stamps", func(e *engine, r *results.Run, _ map[string]*hist.Histogram) {
			e.loaders, e.frame.open = nil, false
			r.Series[results.SeriesE2E] = results.Series{Count: 10}
			r.Rates = results.Rates{}
		}, nil, []string{"e2e spans two clocks"}, false},
	} {
		t.Run(row.figure, func(t *testing.T) {
			e, run, series := measured()
			row.over(e, run, series)
			v := Judge(e.facts(run, series), e.def.Validity)
			requireEach(t, row.reasons, v.Reasons)
			requireEach(t, row.warnings, v.Warnings)
			require.Equal(t, row.own, v.GeneratorBound())
		})
	}
}
