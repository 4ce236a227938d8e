package condition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/condition"
)

// Every metric has a figure, of a run that can tell it, and none of a run that cannot: silence is no
// pass.
func TestEveryMetricIsKnownOrNot(t *testing.T) {
	growth := 5.0
	run := results.Run{
		Counts:    results.Counts{Attempted: 100, Acked: 97, Failed: 2, Unknown: 1, Received: 97, Lost: 3, Duplicated: 4, Reordered: 5, Corrupted: 6},
		Rates:     results.Rates{MessagesPerSecond: 50, TargetMessagesPerSecond: 100, BytesPerSecond: 5000},
		Generator: results.Generator{CPUNsPerMessage: 700, CPUCores: 0.5},
		Series:    map[string]results.Series{"response": {Count: 97, MinNs: 1, MeanNs: 2, P50Ns: 3, P90Ns: 4, P99Ns: 5, P999Ns: 6, P9999Ns: 7, MaxNs: 8}},
		Consumption: &results.Consumption{Lag: &results.Lag{MaxMessages: 9, FinalMessages: 8, GrowthPerSecond: &growth},
			Groups: []results.Group{{Rebalances: 1}, {Rebalances: 2}}, CatchUp: &results.CatchUp{Reached: true, TookNs: 1e9, MessagesPerSecond: 80}},
	}
	run.Faults = []results.Fault{{Recovered: true, RecoverNs: 1e9}, {Recovered: true, RecoverNs: 25e8}, {Recovered: true}}
	run.Transactions = &results.Transactions{Committed: 15, Aborted: 3, Failed: 2, ReadCommitted: true, AbortedReceived: 7}
	seen := map[string]bool{}
	for expression, printed := range map[string]string{
		"lost=0": "3", "duplicated=0": "4", "reordered=0": "5", "corrupted=0": "6", "errors<1%": "2 %", "errors<1": "2", "unknown=0": "1",
		"rate>=1/s": "50/s", "rate>=1%": "50 %", "throughput>1kB/s": "5 kB/s", "lag.growth<1%": "5 %", "lag.growth<1/s": "5/s", "lag.max<1": "9",
		"lag.final<1": "8", "catchUp.time<1ms": "1000 ms", "catchUp.rate<1%": "80 %", "rebalances<1": "3", "fault.recovery<1s": "2.5 s",
		"generator.cpuNsPerMessage<1": "700", "generator.cpuCores<1": "0.5",
		"transactions.failed<1": "2", "transactions.failed<1%": "10 %", "transactions.aborted<1%": "15 %", "abortedReceived=0": "7",
		"response.min<1ns": "1 ns", "response.mean<1ns": "2 ns", "response.p50<1ns": "3 ns", "response.p90<1ns": "4 ns", "response.p99<1ns": "5 ns",
		"response.p99.9<1ns": "6 ns", "response.p99.99<1ns": "7 ns", "response.max<1ns": "8 ns",
	} {
		th, err := workloads.ParseThreshold(expression)
		require.NoError(t, err)
		seen[th.Metric] = true
		require.Equal(t, printed, condition.Evaluate(th, &run).Value, expression)
		switch th.Metric {
		case "throughput", "generator.cpuNsPerMessage", "generator.cpuCores": // of every run
			continue
		case "errors", "unknown", "rate":
			if !th.Share() {
				continue
			}
		}
		silent := condition.Evaluate(th, &results.Run{})
		require.Equal(t, condition.NotMeasured, silent.Value, expression)
		require.False(t, silent.Held)
	}
	for _, metric := range workloads.Metrics() {
		if series, _ := (workloads.Threshold{Metric: metric}).Series(); series == "" || series == "response" {
			require.True(t, seen[metric], "%s is in no row", metric)
		}
	}
}

// A fault that was not got over, or did not happen, is no pass, and the value says which and why.
func TestFaultsNotRecovered(t *testing.T) {
	th, err := workloads.ParseThreshold("fault.recovery<5s")
	require.NoError(t, err)
	over := results.Fault{Recovered: true, RecoverNs: 1e9}
	for _, c := range []struct {
		says   string
		faults []results.Fault
		held   bool
	}{
		{"1 s", []results.Fault{over}, true},
		{"6 s", []results.Fault{over, {Recovered: true, RecoverNs: 6e9}}, false},
		{"fault 2 not recovered: the measured phase ended before", []results.Fault{over, {NotRecovered: "the measured phase ended before"}}, false},
		{"fault 1 did not happen: no such broker", []results.Fault{{Skipped: "no such broker"}, over}, false},
		{condition.NotMeasured, nil, false},
	} {
		got := condition.Evaluate(th, &results.Run{Faults: c.faults})
		require.Equal(t, c.says, got.Value)
		require.Equal(t, c.held, got.Held, c.says)
	}
}

// What is missing when the wait for arrivals ended is not known to be lost, nor not to be; without
// stamps nothing is known.
func TestWhatCannotBeTold(t *testing.T) {
	run := results.Run{Counts: results.Counts{Received: 5}}
	require.True(t, condition.LostKnown(&run), "a result of version 1")
	run.Counts.NotReceived = 1
	require.False(t, condition.LostKnown(&run))
	require.True(t, condition.Tracked(&run))
	run.Counts.Unchecked = true
	require.False(t, condition.Tracked(&run))
	require.False(t, condition.Tracked(&results.Run{}), "no consumers")
}
