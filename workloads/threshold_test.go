package workloads

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseThreshold(t *testing.T) {
	for _, row := range []struct {
		text   string
		metric string
		op     string
		value  float64
		unit   string
		limit  float64
	}{
		{"response.p99<20ms", "response.p99", "<", 20, "ms", 20e6},
		{" request.produce.p99.9 <= 1.5 s ", "request.produce.p99.9", "<=", 1.5, "s", 1.5e9},
		{"response.p999<5us", "response.p99.9", "<", 5, "us", 5e3},
		{"e2e.p9999<5µs", "e2e.p99.99", "<", 5, "µs", 5e3},
		{"e2e.max>=250µs", "e2e.max", ">=", 250, "µs", 250e3},
		{"errors<0.1%", "errors", "<", 0.1, "%", 0.001},
		{"errors<=2", "errors", "<=", 2, "", 2},
		{"lost==0", "lost", "=", 0, "", 0},
		{"duplicated!=5", "duplicated", "!=", 5, "", 5},
		{"rate>=99%", "rate", ">=", 99, "%", 0.99},
		{"rate>20k/s", "rate", ">", 20_000, "/s", 20_000},
		{"rate>1.5M", "rate", ">", 1.5e6, "", 1.5e6},
		{"lag.growth<1%", "lag.growth", "<", 1, "%", 0.01},
		{"throughput>=10MiB/s", "throughput", ">=", 10, "MiB/s", 10 << 20},
		{"attempted_is_no_metric<1", "", "", 0, "", 0},
	} {
		got, err := ParseThreshold(row.text)
		if row.metric == "" {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, row.text)
		require.Equal(t, Threshold{Metric: row.metric, Op: row.op, Value: row.value, Unit: row.unit, Expression: row.text}, got)
		require.InEpsilon(t, row.limit+1, got.Limit()+1, 1e-12)
	}
}

func TestParseThresholdProblems(t *testing.T) {
	for text, want := range map[string]string{
		"respnse.p99<20ms":   `"respnse.p99" is no metric; did you mean response.p99?`,
		"errrors<1%":         `"errrors" is no metric; did you mean errors?`,
		"response.p99":       `"response.p99" is no condition; write it like response.p99<20ms, errors<0.1% or lost=0`,
		"response.p99<20":    `"response.p99<20": response.p99 needs a unit: ns, us, µs, ms, s, m`,
		"response.p99<20%":   `"response.p99<20%": "%" is no unit of response.p99; use ns, us, µs, ms, s, m`,
		"lost=0ms":           `"lost=0ms": "ms" is no unit of lost; use no unit`,
		"lost=":              `"lost=": a number is needed after =`,
		"lost!0":             `"lost!0": after the metric one of <, <=, >, >=, = and != is needed`,
		"lost=1.2.3":         `"lost=1.2.3": "1.2.3" is not a number of 0 or more`,
		"lost=-1":            `"lost=-1": "-1" is not a number of 0 or more`,
		"response.p99<1e3ms": `"response.p99<1e3ms": 1000`,
	} {
		_, err := ParseThreshold(text)
		if text == "response.p99<1e3ms" {
			require.NoError(t, err, "an exponent is a number")
			continue
		}
		require.EqualError(t, err, want)
	}
}

func TestThresholdHolds(t *testing.T) {
	for text, row := range map[string]struct{ yes, no float64 }{
		"response.p99<20ms": {19.9e6, 20e6}, "response.p99<=20ms": {20e6, 20.1e6}, "rate>5": {6, 5}, "rate>=5": {5, 4}, "lost=0": {0, 1}, "lost!=0": {1, 0},
		"errors<0.3%": {0.002, 0.003},
	} {
		th, err := ParseThreshold(text)
		require.NoError(t, err)
		require.True(t, th.Holds(row.yes), text)
		require.False(t, th.Holds(row.no), text)
	}
	th, _ := ParseThreshold("request.fetch.p99.9<1s")
	series, statistic := th.Series()
	require.Equal(t, "request.fetch p99.9", series+" "+statistic)
	th, _ = ParseThreshold("lag.growth<1%")
	series, _ = th.Series()
	require.Empty(t, series)
	require.True(t, th.Share())
}

func FuzzParseThreshold(f *testing.F) {
	for _, seed := range []string{"response.p99<20ms", "errors<0.1%", "lost=0", "rate>=20k/s", "a<", "<", "lag.growth<1%", "rate>1e999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		th, err := ParseThreshold(text)
		if err != nil {
			return
		}
		if th.Metric == "" || th.Op == "" || !(th.Limit() >= 0) {
			t.Fatalf("accepted without its parts: %#v", th)
		}
		th.Holds(1)
	})
}
