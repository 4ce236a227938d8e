package run

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// limits are those of a workload that changes none.
var limits = workloads.Default().Validity

// sound are the facts of a run with nothing to say against it, each at its limit.
func sound() Facts {
	return Facts{
		Open: true, RateAsked: 10_000, RateAchieved: 9_900, Elapsed: time.Minute, Attempted: 600_000,
		Drain: 10 * time.Second, LatenessP99: 2 * time.Millisecond, ResponseP99: 10 * time.Millisecond,
		CPUCores: 1.7, CPUAvailable: 2, StolenShare: 0.02, PauseMax: 100 * time.Millisecond,
		HostShare: 0.95, GCPauseMax: 2 * time.Millisecond, ServiceP99: 8 * time.Millisecond,
		Steady: &results.Steady{Found: true}, LittlesLaw: &results.LittlesLaw{Holds: true},
		Clamped: map[string]int64{results.SeriesResponse: 0}, Ceiling: 10_000 / limits.MaxCeilingShare,
		Topics: []results.Topic{{Name: "t", Partitions: 2, LeadersBefore: []int32{1, 2}, LeadersAfter: []int32{1, 2},
			ISRBefore: []int{3, 2}, ISRAfter: []int{3, 3}}},
	}
}

func TestVerdict(t *testing.T) {
	for _, row := range []struct {
		sentence string
		change   func(*Facts)
		reasons  []string
		warnings []string
	}{
		{"everything at its limit is valid", func(*Facts) {}, nil, nil},
		{"a hair under the rate is not", func(f *Facts) { f.RateAchieved = 9_899 },
			[]string{"rate not met (not sustained): 9899 messages/s of 10000 asked, 98.99 %, limit 99 %"}, nil},
		{"failures are named as the cause", func(f *Facts) { f.RateAchieved, f.Failed = 8_200, 108_000 },
			[]string{"82 %, limit 99 %; 18 % of the messages failed"}, nil},
		{"a long way to the first answer is not held against the rate",
			func(f *Facts) { f.RateAchieved, f.Missing = 9_800, 1200*time.Millisecond }, nil, nil},
		{"T2: two thirds of the rate", func(f *Facts) { f.RateAsked, f.RateAchieved, f.Ceiling = 150_000, 100_000, 0 },
			[]string{"rate not met (not sustained): 100000 messages/s of 150000 asked, 66.7 %"}, nil},
		{"a closed loop has no rate to meet", func(f *Facts) { f.Open, f.RateAsked, f.RateAchieved = false, 0, 5 }, nil, nil},
		{"late beyond 2 ms", func(f *Facts) { f.LatenessP99 = 2_010 * time.Microsecond },
			[]string{"the generator woke up late: lateness p99 2.01ms, limit 2ms"}, nil},
		{"late within 10 % of response p99", func(f *Facts) { f.LatenessP99, f.ResponseP99 = 5*time.Millisecond, 50*time.Millisecond }, nil, nil},
		{"late beyond 10 % of response p99", func(f *Facts) { f.LatenessP99, f.ResponseP99 = 6*time.Millisecond, 50*time.Millisecond },
			[]string{"lateness p99 6ms, limit 5ms"}, nil},
		{"busy in an open loop", func(f *Facts) { f.CPUCores = 1.71 },
			[]string{"the generator was too busy: 1.71 of 2.00 cores busy, 85.5 %, limit 85 %"}, nil},
		{"a producer that cannot do more, on a machine that could", func(f *Facts) { f.RateAchieved, f.Behind, f.BehindOwn = 5_000, time.Minute, 45*time.Second },
			[]string{"rate not met", "generator-bound: each producer was behind its schedule for 1m0s, and for 75 % of that at work itself, not held up by the cluster, limit 50 %"}, nil},
		{"producers that are held up", func(f *Facts) { f.RateAchieved, f.Behind, f.BehindOwn = 5_000, time.Minute, 30*time.Second },
			[]string{"rate not met"}, nil},
		{"producers that were behind for less than half of the time", func(f *Facts) { f.RateAchieved, f.Behind, f.BehindOwn = 5_000, 29*time.Second, 29*time.Second },
			[]string{"rate not met"}, nil},
		{"behind and in time all the same", func(f *Facts) { f.Behind, f.BehindOwn = time.Minute, time.Minute }, nil, nil},
		{"busy in a closed loop only warns", func(f *Facts) { f.Open, f.CPUCores, f.Ceiling = false, 1.9, 2e6 },
			nil, []string{"generator-bound: 1.90 of 2.00 cores busy, 95 %, limit 85 %; the rate is the generator's as much as the cluster's (with no cluster behind it it does 2000000 messages/s)"}},
		{"stolen", func(f *Facts) { f.StolenShare = 0.021 }, []string{"2.1 % stolen, limit 2 %"}, nil},
		{"paused", func(f *Facts) { f.PauseMax = 2 * time.Second },
			[]string{"the generator itself stood still for 2s, limit 100ms"}, nil},
		{"the collector within 10 % of response p99", func(f *Facts) { f.GCPauseMax, f.ResponseP99 = 5*time.Millisecond, 50*time.Millisecond }, nil, nil},
		{"the collector beyond 2 ms and a share of the tail", func(f *Facts) { f.GCPauseMax = 2_010 * time.Microsecond },
			[]string{"the generator's garbage collector stopped it for 2.01ms, limit 2ms (2ms or 10 % of response p99)"}, nil},
		{"the collector in a closed loop", func(f *Facts) {
			f.Open, f.GCPauseMax, f.ServiceP99 = false, 6*time.Millisecond, 50*time.Millisecond
		}, []string{"stopped it for 6ms, limit 5ms (2ms or 10 % of service p99)"}, nil},
		{"a collector without a tail to be held against", func(f *Facts) { f.ResponseP99, f.GCPauseMax = 0, time.Second }, nil, nil},
		{"a busy machine only warns", func(f *Facts) { f.HostShare = 0.951 }, nil,
			[]string{"the machine was 95.1 % busy, limit 95 %: generator and brokers on it waited for processors"}},
		{"no steady state", func(f *Facts) {
			f.Steady = &results.Steady{Reason: "no steady state: why", Figure: "mean response, ns", Drift: -0.123}
		}, []string{"no steady state: why (mean response, ns, from beginning to end -12.3 %): the figures are of the whole measured phase"}, nil},
		{"none asked for", func(f *Facts) { f.Steady = nil }, nil, nil},
		{"figures that contradict each other", func(f *Facts) {
			f.LittlesLaw = &results.LittlesLaw{InFlight: 50, InFlightMost: 60, RateTimesService: 75}
		}, nil, []string{"the figures contradict each other: by rate × service time 75 messages were in flight on average, counted were 50 to 60 (Little's law)"}},
		{"a leader that moved and moved back", func(f *Facts) { f.Topics[0].LeadersMoved = 2 },
			[]string{"leaders moved during the run: 2 of 2 partitions of t, limit 0"}, nil},
		{"a replica that fell out and came back", func(f *Facts) { f.Topics[0].ISRShrunk = 1 },
			[]string{"in-sync replicas were lost during the run: in 1 of 2 partitions of t, limit 0"}, nil},
		{"one unknown", func(f *Facts) { f.Unknown = 1 },
			[]string{"1 messages have no known outcome (drain 10s), limit 0"}, nil},
		{"unknown and never taken", func(f *Facts) { f.Unknown, f.Withheld = 7, 5 },
			[]string{"7 messages have no known outcome (drain 10s), limit 0 (5 of them were never taken by the client)"}, nil},
		{"clamped", func(f *Facts) { f.Clamped[results.SeriesResponse] = 3 },
			[]string{"3 values of response were above the histograms' range of 120 s, limit 0"}, nil},
		{"clocks disagree", func(f *Facts) { f.NegativeE2E, f.WorstE2E = 12, -45*time.Millisecond },
			[]string{"clocks disagree: 12 messages were received before they were due, the worst 45ms before, limit 0"}, nil},
		{"a leader moved", func(f *Facts) { f.Topics[0].LeadersAfter = []int32{1, 1} },
			[]string{"leaders moved during the run: 1 of 2 partitions of t, limit 0"}, nil},
		{"a replica fell out", func(f *Facts) { f.Topics[0].ISRAfter = []int{2, 2} },
			[]string{"in-sync replicas were lost during the run: in 1 of 2 partitions of t, limit 0"}, nil},
		{"a listed fault may do both", func(f *Facts) {
			f.Topics[0].LeadersAfter, f.Topics[0].ISRAfter = []int32{1, 1}, []int{2, 2}
			f.Topics[0].LeadersMoved, f.Topics[0].ISRShrunk = 1, 1
			f.Excused = []Excused{{Leaders: map[int32]bool{1: true}, ISR: map[int32]bool{0: true}}}
		}, nil, nil},
		{"a listed fault excuses its own partition alone", func(f *Facts) {
			f.Topics[0].LeadersAfter, f.Topics[0].LeadersMoved = []int32{2, 1}, 2
			f.Topics[0].ISRAfter, f.Topics[0].ISRShrunk = []int{2, 1}, 2
			f.Excused = []Excused{{Leaders: map[int32]bool{1: true}, ISR: map[int32]bool{1: true}}}
		}, []string{"leaders moved during the run: 1 of 2 partitions of t, limit 0", "in-sync replicas were lost during the run: in 1 of 2 partitions of t, limit 0"}, nil},
		{"and only of its own topic", func(f *Facts) {
			f.Topics = append(f.Topics, results.Topic{Name: "u", Partitions: 2, LeadersMoved: 1})
			f.Excused = []Excused{{Leaders: map[int32]bool{1: true}}}
		}, []string{"leaders moved during the run: 1 of 2 partitions of u, limit 0"}, nil},
		{"ended early", func(f *Facts) { f.EndedEarly, f.Elapsed = "interrupted", 3*time.Second },
			[]string{"the measured phase ended after 3s: interrupted"}, nil},
		{"nothing measured, and no division by it", func(f *Facts) { f.Elapsed, f.RateAchieved = 0, 0 },
			[]string{"nothing was measured"}, nil},
		{"near the ceiling", func(f *Facts) { f.Ceiling = 14_000 }, nil,
			[]string{"the rate asked for, 10000/s, is 71.4 % of this generator's ceiling of 14000/s, limit 70 %"}},
		{"reached near the ceiling, in a closed loop", func(f *Facts) { f.Open, f.RateAsked, f.RateAchieved, f.Ceiling = false, 0, 9900, 14_000 }, nil,
			[]string{"the rate reached, 9900/s, is 70.7 % of this generator's ceiling of 14000/s, limit 70 %"}},
		{"held back by the engine", func(f *Facts) { f.PoolMax = 1000 }, nil, []string{"1000 messages were open at once"}},
		{"e2e from another process's stamps", func(f *Facts) { f.ForeignE2E = 1 }, nil, []string{"e2e spans two clocks: due times were stamped by the run that sent the messages, which may have been on another machine"}},
		{"messages without a stamp", func(f *Facts) { f.Unstamped = 3 }, nil, []string{"3 messages arrived without a stamp of kbench's"}},
		{"foreign messages", func(f *Facts) { f.Foreign = 2 }, nil, []string{"2 messages arrived that this run did not send"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			f := sound()
			row.change(&f)
			v := Judge(f, limits)
			requireEach(t, row.reasons, v.Reasons)
			requireEach(t, row.warnings, v.Warnings)
			require.Equal(t, len(row.reasons) == 0, v.Valid)
			require.NotNil(t, v.Reasons, "an empty list, not null, in JSON")
		})
	}
}

func TestVerdictWithoutLimits(t *testing.T) {
	f := sound()
	f.RateAchieved, f.CPUCores, f.StolenShare, f.PauseMax, f.LatenessP99 = 1, 2, 1, time.Hour, time.Hour
	f.GCPauseMax, f.HostShare, f.Ceiling, f.Behind, f.BehindOwn = time.Hour, 1, 1, time.Minute, time.Minute
	v := Judge(f, workloads.Validity{})
	require.True(t, v.Valid)
	require.Empty(t, v.Warnings)
}

func requireEach(t *testing.T, parts, got []string) {
	t.Helper()
	require.Len(t, got, len(parts), strings.Join(got, "\n"))
	for i := range parts {
		require.Contains(t, got[i], parts[i])
	}
}
