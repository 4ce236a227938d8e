package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/results"
)

// benchstat's own parser reads every line, and finds every valid run of every point with its
// figures.
func TestBenchstatReadsIt(t *testing.T) {
	f := sweep(t, 3)
	var b bytes.Buffer
	require.NoError(t, GoBenchmark(&b, []compare.Named{{Name: "before change", Result: f.result}, {Name: "after", Result: f.result}}))
	read := map[string][]float64{} // by side and point
	units := 0
	reader := benchfmt.NewReader(bytes.NewReader(b.Bytes()), "text")
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			base, parts := record.Name.Parts()
			require.Equal(t, "Kbench", string(base))
			require.Len(t, parts, 3)
			require.Equal(t, "/workload=settings", string(parts[0]))
			rate, ok := record.Value("msg/s")
			require.True(t, ok)
			p99, ok := record.Value("response.p99-sec") // it tidies nanoseconds
			require.True(t, ok)
			key := string(parts[2]) + string(parts[1])
			read[key] = append(read[key], rate, p99)
		case *benchfmt.UnitMetadata:
			units++
			if record.Unit == "msg/s" {
				require.Equal(t, "higher", record.Value)
			}
		case *benchfmt.SyntaxError:
			t.Fatalf("benchstat cannot read: %v", record)
		}
	}
	require.NoError(t, reader.Err())
	require.Positive(t, units)
	require.Equal(t, 1, reader.Units().GetBetter("msg/s"))
	require.Equal(t, -1, reader.Units().GetBetter("response.p99-sec"))
	require.Len(t, read, 2*11, "the point that is invalid has no line")
	for _, side := range []string{"/side=before_change", "/side=after"} {
		for i := range f.result.Points {
			p := &f.result.Points[i]
			var want []float64
			for _, run := range compare.Valid(p) {
				want = append(want, run.Rates.MessagesPerSecond, float64(run.Series[results.SeriesResponse].P99Ns)/1e9)
			}
			got := read[side+"/point="+benchName(p.Label)]
			require.Len(t, got, len(want), p.ID)
			for k := range want {
				require.InEpsilon(t, want[k], got[k], 1e-5)
			}
		}
	}
}
