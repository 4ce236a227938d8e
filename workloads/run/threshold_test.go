package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

func TestThresholds(t *testing.T) {
	run := &results.Run{
		Counts: results.Counts{Attempted: 1000, Acked: 988, Failed: 2, Unknown: 10, Lost: 3},
		Rates:  results.Rates{MessagesPerSecond: 98.8, BytesPerSecond: 5 << 20},
		Series: map[string]results.Series{
			"response":        {P99Ns: 19_900_000, P999Ns: 25_400_000, MaxNs: 31_000_000, Count: 988},
			"request.produce": {P99Ns: 7_250_000},
		},
	}
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
		{"unknown=0", "10", false},
		{"rate>=98.8/s", "98.8/s", true},
		{"rate!=98.8", "98.8", false},
		{"throughput>4MiB/s", "5 MiB/s", true},
		{"lost=0", "3", false},
		{"e2e.p99<1s", "not measured", false},
		{"nonsense<1", "not measured", false},
		{"what", `"what" is no condition; it wants FIGURE<LIMIT, such as response.p99<20ms`, false},
		{"lost=1parsec", `"lost=1parsec": "1parsec" is no limit`, false},
	} {
		t.Run(row.expression, func(t *testing.T) {
			got := evaluateAll([]string{row.expression}, run, findings{arrivals: true})[0]
			require.Equal(t, results.Threshold{Expression: row.expression, Value: row.value, Held: row.held}, got)
		})
	}
}

func TestDefaultThresholds(t *testing.T) {
	expressions := func(can findings, given ...string) (list []string) {
		for _, th := range evaluateAll(given, &results.Run{}, can) {
			list = append(list, th.Expression)
		}
		return list
	}
	require.Empty(t, expressions(findings{}), "a run without consumers cannot tell")
	require.Equal(t, []string{"lost=0", "corrupted=0", "reordered=0"}, expressions(findings{arrivals: true}))
	require.Equal(t, []string{"lost=0", "corrupted=0", "reordered=0", "duplicated=0"},
		expressions(findings{arrivals: true, idempotent: true}))
	require.Equal(t, []string{"lost<=5", "corrupted=0", "reordered=0"}, expressions(findings{arrivals: true}, "lost<=5"),
		"what the workload names itself stands")
	require.False(t, evaluateAll([]string{"lost=0"}, &results.Run{}, findings{})[0].Held, "silence is no pass")
}
