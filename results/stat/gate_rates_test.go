package stat_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results/stat"
)

// noise is how a metric varies from run to run: the log is an AR(1) drift of the environment, seen
// by both sides in time order, with a normal error of the run and now and then an outlier.
type noise struct {
	run, drift   float64 // standard deviations
	outliers     float64 // probability
	outlier      float64 // mean of its exponential size
	delta, allow float64 // of the gate, as ratios
}

var (
	steadyNoise = noise{run: 0.03, drift: 0.03, outliers: 0.05, outlier: 0.2, delta: 1.05, allow: 1.1}
	tailNoise   = noise{run: 0.08, drift: 0.06, outliers: 0.1, outlier: 0.5, delta: 1.1, allow: 1.2}
)

// gateNoise are the four metrics of the gate; CPU a message varies like the others that are no
// tail.
var gateNoise = []struct {
	name string
	noise
}{{"throughput", steadyNoise}, {"response.p50", steadyNoise}, {"response.p99", tailNoise}, {"cpu", steadyNoise}}

const driftKept = 0.95 // from one run to the next

// simulated is the noise of a metric run by run.
type simulated struct {
	noise
	r    *rand.Rand
	here float64
}

func (s *simulated) next() float64 {
	s.here = driftKept*s.here + s.drift*math.Sqrt(1-driftKept*driftKept)*s.r.NormFloat64()
	x := s.here + s.run*s.r.NormFloat64()
	if s.r.Float64() < s.outliers {
		x += s.outlier * s.r.ExpFloat64()
	}
	return x
}

func gateDesign() stat.GateDesign {
	d := stat.GateDesign{Looks: stat.DefaultLooks(), Alpha: stat.DefaultGateAlpha}
	for _, m := range gateNoise {
		d.Metrics = append(d.Metrics, stat.GateMetric{Name: m.name, Delta: math.Log(m.delta), Margin: math.Log(m.allow)})
	}
	return d
}

// simulateGate runs one gate in which B is worse by the given logs of ratios.
func simulateGate(t *testing.T, seed uint64, worse []float64) stat.GateState {
	r := rand.New(rand.NewPCG(seed, 8))
	g, err := stat.NewGate(gateDesign())
	require.NoError(t, err)
	metrics := make([]simulated, len(gateNoise))
	for i, m := range gateNoise {
		metrics[i] = simulated{noise: m.noise, r: r, here: m.drift * r.NormFloat64()}
	}
	for g.State().Verdict == stat.GateOpen {
		first := r.IntN(2) // A first, or B
		differences := make([]float64, len(metrics))
		for i := range metrics {
			runs := [2]float64{metrics[i].next(), metrics[i].next()}
			differences[i] = runs[1-first] - runs[first] + worse[i]
		}
		g.Add(differences)
	}
	return g.State()
}

// TestGateErrorRates is the table of error rates that the documentation of the gate quotes.
func TestGateErrorRates(t *testing.T) {
	const gates = 1000
	explained, err := os.ReadFile("../../report/gate/README.md")
	require.NoError(t, err)
	for _, c := range []struct {
		about               string
		worse               []float64
		leastFail, mostFail float64 // per cent
		leastPass, mostPass float64
	}{
		{"none", []float64{0, 0, 0, 0}, 0, 2, 85, 100},
		{"p50 +10 %", []float64{0, math.Log(1.1), 0, 0}, 94, 100, 0, 2},
		{"p99 +20 %", []float64{0, 0, math.Log(1.2), 0}, 80, 100, 0, 5}, // of PASS the table says nothing: alpha
	} {
		t.Run(c.about, func(t *testing.T) {
			t.Parallel()
			count := map[stat.GateVerdict]int{}
			pairs := 0
			for seed := range uint64(gates) {
				s := simulateGate(t, seed, c.worse)
				count[s.Verdict]++
				pairs += s.Pairs
			}
			of := func(v stat.GateVerdict) float64 { return 100 * float64(count[v]) / gates }
			row := fmt.Sprintf("| %s | %.1f %% | %.1f %% | %.1f %% | %.1f |", c.about, of(stat.GateFail), of(stat.GatePass), of(stat.GateInconclusive), float64(pairs)/gates)
			require.Contains(t, string(explained), row, "the table that users read")
			t.Logf("FAIL %.1f %%, PASS %.1f %%, INCONCLUSIVE %.1f %%, %.1f pairs a gate", of(stat.GateFail), of(stat.GatePass), of(stat.GateInconclusive), float64(pairs)/gates)
			require.InDelta(t, (c.leastFail+c.mostFail)/2, of(stat.GateFail), (c.mostFail-c.leastFail)/2, "FAIL")
			require.InDelta(t, (c.leastPass+c.mostPass)/2, of(stat.GatePass), (c.mostPass-c.leastPass)/2, "PASS")
		})
	}
}
