package synthetic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

func scale(d time.Duration, f float64) time.Duration { return time.Duration(float64(d) * f) }

// One stall of S seconds in T: the fraction of messages slower than x is (S−x)/((1−ρ)T), the
// mean S²/(2(1−ρ)T), quantile q S − (1−q)(1−ρ)T, each with the base latency on top.
func TestCheck01StallWithInfiniteCapacity(t *testing.T) {
	T := lengthOf(60*time.Second, 12*time.Second)
	S := T / 60
	const base = 10 * time.Microsecond
	out := measure(t, definition(10_000, T), synthetic.Script{Latency: base,
		Stalls: []synthetic.Stall{{Start: T / 3, Length: S}}})
	r := out.Run.Series[results.SeriesResponse]
	require.EqualValues(t, 10_000*T/time.Second, out.Run.Counts.Attempted, "the offered count stays")
	require.Equal(t, out.Run.Counts.Attempted, out.Run.Counts.Acked)
	near(t, base+S*S/(2*T), r.MeanNs, "mean")
	near(t, base+S-T/100, r.P99Ns, "p99")
	near(t, base+S-T/1000, r.P999Ns, "p99.9")
	near(t, base+S-T/10_000, r.P9999Ns, "p99.99")
	require.InEpsilon(t, base, r.P50Ns, tolerance, "p50 is the base")

	var above, p98 int64
	for _, w := range out.Windows {
		if h := w.Series[results.SeriesResponse]; h != nil {
			above += h.CountAbove(int64(base + S/2))
		}
	}
	require.InEpsilon(t, 10_000*(S/2).Seconds(), above, tolerance, "messages above half the stall")
	p98 = merged(out, results.SeriesResponse).Quantile(0.98)
	near(t, base, p98, "p98 is the base")
	require.Empty(t, out.Run.Verdict.Reasons)
}
