package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

func TestThresholds(t *testing.T) {
	out := &Outcome{Run: results.Run{
		Consumption: &results.Consumption{Lag: &results.Lag{}},
		ElapsedNs:   3e9,
		Counts:      results.Counts{Attempted: 1000, Acked: 988, Failed: 2, Unknown: 10, Lost: 3},
		Rates:       results.Rates{MessagesPerSecond: 98.8, TargetMessagesPerSecond: 100, BytesPerSecond: 5 << 20},
		Series: map[string]results.Series{
			"response":        {P99Ns: 19_900_000, P999Ns: 25_400_000, MaxNs: 31_000_000, Count: 988},
			"request.produce": {P99Ns: 7_250_000, Count: 5},
		},
	}, Windows: []results.Window{{LengthNs: 1e9, Lag: 10}, {StartNs: 1e9, LengthNs: 1e9, Lag: 12}, {StartNs: 2e9, LengthNs: 1e9, Lag: 14},
		{StartNs: 3e9, LengthNs: 1e9, Lag: 0}}}
	out.Run.Consumption.Lag.GrowthPerSecond = out.lagGrowth()
	for _, row := range []struct {
		expression, value string
		held              bool
	}{
		{"response.p99<20ms", "19.9 ms", true},
		{"response.p99 <= 19.9 ms", "19.9 ms", true},
		{"response.p99<19900us", "19900 us", false},
		{"response.p99.9<25ms", "25.4 ms", false},
		{"response.p999<0.03s", "0.0254 s", true},
		{"response.max>1s", "0.031 s", false},
		{"request.produce.p99<7ms", "7.25 ms", false},
		{"errors<0.1%", "0.2 %", false},
		{"errors<0.3%", "0.2 %", true},
		{"errors<=2", "2", true},
		{"errors=0%", "0.2 %", false},
		{"unknown=0", "10", false},
		{"rate>=98.8/s", "98.8/s", true},
		{"rate!=98.8", "98.8", false},
		{"rate>=99%", "98.8 %", false},
		{"throughput>4MiB/s", "5 MiB/s", true},
		{"lag.growth<=1%", "2 %", false},
		{"lag.growth<=2/s", "2/s", true},
		{"lost=0", "3", false},
		{"e2e.p99<1s", "not measured", false},
		{"nonsense<1", `"nonsense" is no metric`, false},
		{"what", `"what" is no condition`, false},
	} {
		t.Run(row.expression, func(t *testing.T) {
			got := out.evaluateAll([]string{row.expression})[0]
			require.Equal(t, row.expression, got.Expression)
			require.Contains(t, got.Value, row.value)
			require.Equal(t, row.held, got.Held)
		})
	}
}

// The lag of what was left out as settling is not in its growth: it rose by 1 000/s there, and by 10/s since.
func TestLagGrowthIsOfTheSteadyState(t *testing.T) {
	out := Outcome{Run: results.Run{ElapsedNs: 4e9}}
	for i, lag := range []int64{1000, 2000, 3000, 3010, 3020, 3030, 3040, 9000} {
		out.Windows = append(out.Windows, results.Window{StartNs: int64(i-3) * 1e9, LengthNs: 1e9, Lag: lag})
	}
	growth := out.lagGrowth()
	require.NotNil(t, growth)
	require.InDelta(t, 10, *growth, 1e-9, "nor is that of the drain")
}

func TestDefaultThresholds(t *testing.T) {
	expressions := func(o Outcome, given ...string) (list []string) {
		for _, th := range o.evaluateAll(given) {
			list = append(list, th.Expression)
		}
		return list
	}
	tracked := results.Run{Consumption: &results.Consumption{}}
	require.Empty(t, expressions(Outcome{}), "a run without consumers cannot tell")
	require.Equal(t, []string{"lost=0", "corrupted=0", "reordered=0"}, expressions(Outcome{Run: tracked}))
	require.Equal(t, []string{"lost=0", "corrupted=0", "reordered=0", "duplicated=0"},
		expressions(Outcome{Run: tracked, idempotent: true}))
	require.Equal(t, []string{"lost<=5", "corrupted=0", "reordered=0"}, expressions(Outcome{Run: tracked}, "lost<=5"),
		"what the workload names itself stands")
	cut := results.Run{Consumption: &results.Consumption{}, Counts: results.Counts{NotReceived: 1}}
	require.Equal(t, []string{"corrupted=0", "reordered=0"}, expressions(Outcome{Run: cut}), "what had not arrived when the wait ended may not be lost")
	require.False(t, (&Outcome{Run: cut}).evaluateAll([]string{"lost=0"})[0].Held, "nor is it known that nothing is")
	require.False(t, (&Outcome{}).evaluateAll([]string{"lost=0"})[0].Held, "silence is no pass")
}
