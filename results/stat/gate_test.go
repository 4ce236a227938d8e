package stat_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results/stat"
)

// oneMetric is a gate with a single metric and the default looks.
func oneMetric() stat.GateDesign {
	return stat.GateDesign{Metrics: []stat.GateMetric{{Name: "p50", Delta: math.Log(1.05), Margin: math.Log(1.1)}}, Looks: stat.DefaultLooks(), Alpha: stat.DefaultGateAlpha}
}

// around are n values at equal steps of spread/2 around a centre.
func around(centre, spread float64, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = centre + spread*(float64(i)/float64(n-1)-0.5)
		if i%2 == 1 {
			xs[i] = 2*centre - xs[i]
		}
	}
	return xs
}

func feed(t *testing.T, d stat.GateDesign, values []float64) (stat.GateState, int) {
	t.Helper()
	g, err := stat.NewGate(d)
	require.NoError(t, err)
	for i, v := range values {
		s := g.Add([]float64{v})
		require.Equal(t, i+1, s.Pairs)
		if s.Verdict != stat.GateOpen {
			require.Zero(t, s.Next)
			return s, i + 1
		}
		require.Greater(t, s.Next, s.Pairs)
	}
	return g.State(), len(values)
}

func TestGateDecides(t *testing.T) {
	step := append(around(0, 0.02, 8), around(0.5, 0.02, 12)...)
	for _, c := range []struct {
		about  string
		values []float64
		want   stat.GateVerdict
		at     int
	}{
		{"nothing changed, little noise: passes at the first look", around(0, 0.02, 20), stat.GatePass, 8},
		{"12 % worse: fails at the first look", around(0.12, 0.04, 20), stat.GateFail, 8},
		{"better is no failure", around(-0.3, 0.04, 20), stat.GatePass, 8},
		{"4 % worse for certain is not worth failing for", around(math.Log(1.04), 0.002, 20), stat.GatePass, 8},
		{"6 % worse for certain is, though within the margin", around(math.Log(1.06), 0.002, 20), stat.GateFail, 8},
		{"far too noisy: every look is taken", around(0.02, 1.5, 20), stat.GateInconclusive, 20},
		{"what happens after the decision changes nothing", step, stat.GatePass, 8},
	} {
		t.Run(c.about, func(t *testing.T) {
			s, at := feed(t, oneMetric(), c.values)
			require.Equal(t, c.want, s.Verdict)
			require.Equal(t, c.at, at)
			require.Equal(t, c.want, s.Findings[0].Verdict)
		})
	}
}

func TestGateLooksOnlyWhereItSaid(t *testing.T) {
	g, err := stat.NewGate(oneMetric())
	require.NoError(t, err)
	for i := range 13 {
		s := g.Add([]float64{0.6 * float64(i%5-2)})
		require.Equal(t, stat.GateOpen, s.Verdict, "pair %d", i+1)
		require.Equal(t, i >= 7, s.Findings != nil)
		require.Equal(t, map[bool]int{true: 14, false: 8}[i >= 7], s.Next)
	}
	s := g.Finish()
	require.Equal(t, stat.GateInconclusive, s.Verdict)
	require.Equal(t, 13, s.Pairs)
	require.Equal(t, stat.GateInconclusive, g.Add([]float64{9}).Verdict)
	require.Equal(t, 13, g.State().Pairs)
}

func TestGateBrokenOffNeverDecides(t *testing.T) {
	g, err := stat.NewGate(oneMetric())
	require.NoError(t, err)
	for _, v := range around(0.5, 0.02, 7) {
		require.Equal(t, stat.GateOpen, g.Add([]float64{v}).Verdict)
	}
	s := g.Finish()
	require.Equal(t, stat.GateInconclusive, s.Verdict, "however clear it looks after seven")
	require.Equal(t, stat.GateInconclusive, s.Findings[0].Verdict)
}

func TestGateBounds(t *testing.T) {
	// Eight values, one metric, three looks: FAIL at 0.05/3 looks at the third smallest Walsh
	// average (P(T ≤ 2) = 3/256), and so does PASS from above.
	xs := []float64{0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08}
	s, _ := feed(t, oneMetric(), append([]float64{}, xs...))
	require.InDelta(t, 0.045, s.Findings[0].Estimate, 1e-12)
	require.InDelta(t, 0.02, s.Findings[0].Lower, 1e-12)
	require.InDelta(t, 0.07, s.Findings[0].Upper, 1e-12)
	require.InDelta(t, math.Log(1.05), s.Findings[0].Seen, 1e-12, "never less than the least worth failing for")
	// Four metrics: 0.05/12 is reached by the smallest value alone (1/256).
	d := oneMetric()
	d.Metrics = append(d.Metrics, d.Metrics[0], d.Metrics[0], d.Metrics[0])
	g, err := stat.NewGate(d)
	require.NoError(t, err)
	for _, x := range xs {
		s = g.Add([]float64{x, 4 * x, x - 0.045, math.NaN()})
	}
	require.InDelta(t, 0.01, s.Findings[0].Lower, 1e-12)
	require.InDelta(t, 4*0.035, s.Findings[1].Seen, 1e-12, "estimate − lower bound")
	require.Equal(t, stat.GateFail, s.Findings[1].Verdict)
	require.Equal(t, stat.GateFail, s.Verdict, "one metric is enough")
	require.Equal(t, stat.GatePass, s.Findings[2].Verdict)
	require.True(t, s.Findings[3].Unjudged)
}

func TestGateUnjudgedNeverPasses(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		values := around(0, 0.02, 20)
		values[3] = bad
		s, at := feed(t, oneMetric(), values)
		require.Equal(t, stat.GateInconclusive, s.Verdict)
		require.Equal(t, 20, at)
	}
	g, err := stat.NewGate(oneMetric())
	require.NoError(t, err)
	for range 20 {
		g.Add(nil)
	}
	require.Equal(t, stat.GateInconclusive, g.State().Verdict, "no figure is none to pass by")
}

func TestGateTooFewPairsAtALook(t *testing.T) {
	d := oneMetric()
	d.Looks = []int{3}
	s, _ := feed(t, d, []float64{1, 1.1, 1.2})
	require.Equal(t, stat.GateInconclusive, s.Verdict)
	require.True(t, math.IsInf(s.Findings[0].Seen, 1), "no effect could have been seen")
}

func TestGateDesignCheck(t *testing.T) {
	for about, change := range map[string]func(*stat.GateDesign){
		"no metric":               func(d *stat.GateDesign) { d.Metrics = nil },
		"no look":                 func(d *stat.GateDesign) { d.Looks = nil },
		"looks that descend":      func(d *stat.GateDesign) { d.Looks = []int{8, 8} },
		"a look at nothing":       func(d *stat.GateDesign) { d.Looks = []int{0} },
		"alpha of 0":              func(d *stat.GateDesign) { d.Alpha = 0 },
		"alpha of 1":              func(d *stat.GateDesign) { d.Alpha = 1 },
		"a margin of nothing":     func(d *stat.GateDesign) { d.Metrics[0].Margin = 0 },
		"a margin without end":    func(d *stat.GateDesign) { d.Metrics[0].Margin = math.Inf(1) },
		"a delta that is none":    func(d *stat.GateDesign) { d.Metrics[0].Delta = math.NaN() },
		"a delta below no change": func(d *stat.GateDesign) { d.Metrics[0].Delta = -0.1 },
	} {
		t.Run(about, func(t *testing.T) {
			d := oneMetric()
			change(&d)
			_, err := stat.NewGate(d)
			require.Error(t, err)
		})
	}
	require.Equal(t, []string{"open", "PASS", "FAIL", "INCONCLUSIVE"}, []string{stat.GateOpen.String(), stat.GatePass.String(), stat.GateFail.String(), stat.GateInconclusive.String()})
}
