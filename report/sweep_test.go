package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

// swept is a full matrix of two settings with repeats: figures are what rate and p99 say, and runs
// for which bad is true are invalid.
func swept(repeats int, rate, p99 func(acks, open, repeat int) float64, bad func(acks, open, repeat int) bool) *results.Result {
	r := newResult("swept", "")
	for acks := range 2 {
		for open := range 3 {
			p := results.Point{ID: fmt.Sprintf("p%d%d", acks, open), Label: fmt.Sprintf("requiredAcks=%d maxOpenRequests=%d", acks, open),
				Settings: map[string]any{"producer.requiredAcks": float64(acks), "net.maxOpenRequests": float64(open)}}
			for repeat := range repeats {
				run := runWith(rate(acks, open, repeat), int64(p99(acks, open, repeat)), bad == nil || !bad(acks, open, repeat))
				run.Repeat = repeat
				p.Runs = append(p.Runs, run)
			}
			r.Points = append(r.Points, p)
		}
	}
	return r
}

func pointsOf(r *results.Result) []*point { return newView(Named{Result: r}).points }

// requiredAcks=1 costs 20 % of the rate at every number of open requests, to which repeats add
// their own level; open requests change nothing.
func TestEffectsAreThoseThatAreThere(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func() float64 { return 1 + 0.01*rng.NormFloat64() }
	r := swept(3, func(acks, _, repeat int) float64 {
		return 1000 * math.Pow(0.8, float64(acks)) * (1 + 0.3*float64(repeat)) * noise()
	}, func(_, open, _ int) float64 { return 5e6 * math.Pow(3, float64(open)) * noise() }, nil)
	list := effects(pointsOf(r), effectFigures[0])
	require.Len(t, list, 3, "one for requiredAcks, two for the values of maxOpenRequests beside the first")
	acks := list[0]
	require.Equal(t, "producer.requiredAcks", acks.factor.key, "the setting that matters most comes first")
	require.Equal(t, 9, acks.pairs, "three settings of the other, three repeats")
	require.InDelta(t, 0.8, acks.ratio, 0.01)
	require.Less(t, acks.lower, 0.8)
	require.Greater(t, acks.upper, 0.8)
	require.Less(t, acks.upper, 0.85, "what differs between repeats is not in the interval")
	for _, e := range list[1:] {
		require.Equal(t, "net.maxOpenRequests", e.factor.key)
		require.Equal(t, 6, e.pairs)
		require.InDelta(t, 1, e.ratio, 0.03)
	}
	tails := effects(pointsOf(r), effectFigures[1])
	require.Equal(t, "net.maxOpenRequests", tails[0].factor.key)
	require.Equal(t, [2]string{"0", "2"}, [2]string{tails[1].base, tails[1].value})
	require.InEpsilon(t, 9, tails[1].ratio, 0.05)
}

func TestEffectsAreHonestAboutFewPairs(t *testing.T) {
	flat := func(int, int, int) float64 { return 1000 }
	for about, row := range map[string]struct {
		repeats, pairs int
		bad            func(acks, open, repeat int) bool
		interval       bool
	}{
		"one repeat of three settings":              {1, 3, nil, false},
		"six pairs are enough":                      {2, 6, nil, true},
		"an invalid run takes its pair with it":     {2, 5, func(acks, open, repeat int) bool { return acks == 1 && open == 2 && repeat == 1 }, false},
		"invalid runs on one side: nothing is said": {2, 0, func(acks, _, _ int) bool { return acks == 1 }, false},
	} {
		t.Run(about, func(t *testing.T) {
			for _, e := range effects(pointsOf(swept(row.repeats, flat, flat, row.bad)), effectFigures[0]) {
				if e.factor.key != "producer.requiredAcks" {
					continue
				}
				require.Equal(t, row.pairs, e.pairs)
				require.Equal(t, row.interval, !math.IsNaN(e.lower))
			}
		})
	}
	// Of a random sample no two points need differ in one setting alone.
	r := swept(1, flat, flat, nil)
	r.Points = []results.Point{r.Points[0], r.Points[4]}
	for _, e := range effects(pointsOf(r), effectFigures[0]) {
		require.Zero(t, e.pairs)
		require.Contains(t, effectRow(effectFigures[0], e).Cells, "no two points differ in it alone")
	}
	require.Nil(t, newEffectsPage(newView(Named{Result: r})))
}

// One factor at a time: a point says only what it changes, the rest is as in the result's settings.
func TestEffectsOfOneFactorAtATime(t *testing.T) {
	r := newResult("ofat", "")
	r.Settings = map[string]any{"a": 1.0, "b": "x"}
	for i, settings := range []map[string]any{{}, {"a": 2.0}, {"b": "y"}} {
		r.Points = append(r.Points, results.Point{ID: fmt.Sprint(i), Settings: settings, Runs: []results.Run{runWith(1000*float64(i+1), 5, true)}})
	}
	ratios := map[string]float64{}
	for _, e := range effects(pointsOf(r), effectFigures[0]) {
		ratios[e.title()] = math.Round(e.ratio*1e6) / 1e6
	}
	require.Equal(t, map[string]float64{"a  1 → 2": 2, "b  x → y": 3}, ratios)
}

func TestMatrixHasEveryPointOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "values of each setting")
		columns := rapid.IntRange(1, 30).Draw(t, "columns")
		r, n, varied := newResult("m", ""), 1, 0
		for _, size := range sizes {
			n *= size
			if size > 1 {
				varied++
			}
		}
		for i := range n {
			p := results.Point{ID: fmt.Sprint(i), Settings: map[string]any{}}
			for k, rest := 0, i; k < len(sizes); k++ {
				p.Settings[fmt.Sprintf("key%d", k)] = float64(rest % sizes[k])
				rest /= sizes[k]
			}
			r.Points = append(r.Points, p)
		}
		m := newMatrix(pointsOf(r), columns)
		if varied < 2 {
			require.Nil(t, m)
			return
		}
		seen := map[*point]int{}
		for i, row := range m.cells {
			for j, p := range row {
				require.NotNil(t, p, "a full matrix has no hole")
				seen[p]++
				for k, f := range m.down {
					require.Equal(t, levelsAt(m.down, i)[k], f.valueOf(p))
				}
				for k, f := range m.across {
					require.Equal(t, levelsAt(m.across, j)[k], f.valueOf(p))
				}
			}
		}
		require.Len(t, seen, n)
	})
}

func TestMatrixOfWhatCannotBeLaidOut(t *testing.T) {
	same := newResult("same", "")
	for i := range 4 { // two points at the same place
		same.Points = append(same.Points, results.Point{ID: fmt.Sprint(i), Settings: map[string]any{"a": float64(i % 2), "b": float64(i % 2)}})
	}
	require.Nil(t, newMatrix(pointsOf(same), 9))
	require.Nil(t, newMatrix(pointsOf(newResult("none", "")), 9))
}

func TestRanking(t *testing.T) {
	r := newResult("r", "")
	add := func(id string, valid bool, rates ...float64) {
		p := results.Point{ID: id}
		for _, rate := range rates {
			p.Runs = append(p.Runs, runWith(rate, 5e6, valid))
		}
		r.Points = append(r.Points, p)
	}
	add("first", true, 300, 310, 305)
	add("second", true, 200, 210, 220)
	add("overlaps it", true, 190, 205, 230)
	add("last", true, 100, 110, 105)
	add("invalid", false, 999)
	points := pointsOf(r)
	places := rank(points, func(p *point) spread { return p.rate }, true)
	for i, want := range []string{"1", "2 [2–3]", "3 [2–3]", "4", "–"} {
		require.Equal(t, want, places[points[i]].text(), points[i].id)
	}
	down := rank(points, func(p *point) spread { return p.rate }, false)
	for i, want := range []string{"4", "3 [2–3]", "2 [2–3]", "1", "–"} {
		require.Equal(t, want, down[points[i]].text(), points[i].id)
	}
}

// Every place lies within the places that the runs leave open.
func TestRankingHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newResult("r", "")
		for i := range rapid.IntRange(1, 8).Draw(t, "points") {
			p := results.Point{ID: fmt.Sprint(i)}
			for range rapid.IntRange(1, 3).Draw(t, "runs") {
				p.Runs = append(p.Runs, runWith(float64(rapid.IntRange(1, 9).Draw(t, "rate")), 5, true))
			}
			r.Points = append(r.Points, p)
		}
		for _, higher := range []bool{true, false} {
			for _, p := range rank(pointsOf(r), func(p *point) spread { return p.rate }, higher) {
				require.LessOrEqual(t, 1, p.best)
				require.LessOrEqual(t, p.best, p.place)
				require.LessOrEqual(t, p.place, p.worst)
				require.LessOrEqual(t, p.worst, len(r.Points))
			}
		}
	})
}

// A heat map loses no message and puts each into its step and band, whatever the values.
func TestHeatCountsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []heatInterval
		total := int64(0)
		n := rapid.IntRange(4, 12).Draw(t, "intervals")
		for i := range n {
			h := hist.New()
			for range rapid.IntRange(1, 6).Draw(t, "values") {
				h.Record(rapid.Int64Range(0, 200e9).Draw(t, "ns"))
			}
			total += h.Count()
			all = append(all, heatInterval{start: int64(i-2) * 1e9, length: 1e9, values: h})
		}
		h := newHeat(all, rapid.IntRange(1, 50).Draw(t, "steps"), rapid.IntRange(4, 30).Draw(t, "bands"))
		require.NotNil(t, h)
		sum := int64(0)
		for _, step := range h.counts {
			for _, c := range step {
				sum += c
			}
		}
		require.Equal(t, total, sum)
		require.GreaterOrEqual(t, h.end()+1e-9, float64(n-2), "to the end of the last interval")
		least := heatSteps(h.most())
		require.Equal(t, int64(1), least[0], "a single message is seen")
		require.Equal(t, len(least)-1, shadeOf(h.most(), least))
		require.NotContains(t, heatChart(h, "x", wideHeat), "NaN")
	})
}

func TestHeatPutsValuesWhereTheyBelong(t *testing.T) {
	var all []heatInterval
	for i := range 6 {
		h := hist.New()
		h.RecordN(2e6, 100)
		if i == 4 {
			h.RecordN(900e6, 3)
		}
		all = append(all, heatInterval{start: int64(i) * 1e9, length: 1e9, values: h})
	}
	h := newHeat(all, 6, 20)
	for i, step := range h.counts {
		for j, n := range step {
			inside := func(ns float64) bool { return h.edges[j] <= ns && ns < h.edges[j+1] }
			want := int64(0)
			if inside(2e6) {
				want += 100
			}
			if i == 4 && inside(900e6) {
				want += 3
			}
			require.Equal(t, want, n, "step %d, %v–%v", i, h.edges[j], h.edges[j+1])
		}
	}
	require.Nil(t, newHeat(all[:3], 6, 20), "three windows are no course")
}

// A sweep with repeats has every chart as a file, in both formats.
func TestPlotsOfASweep(t *testing.T) {
	f, into := sweep(t, 3), t.TempDir()
	all := f.result.Points // of which five are enough: two acks by two lingers, and the one that was not run
	f.result.Points = append(append(slices.Clone(all[:2]), all[8:10]...), all[12])
	require.NoError(t, Plots(into, f.result, f.dir))
	files := names(t, into)
	for _, name := range []string{"throughput-p99", "settings-throughput", "settings-p99", "effects", "runs", "percentiles", "heat-p00", "heat-p09", "timeline-p00"} {
		require.Contains(t, files, name+".svg")
		require.Contains(t, files, name+".png")
	}
	require.NotContains(t, files, "heat-p12.svg", "a point that was not run has none")
	page, err := os.ReadFile(filepath.Join(into, "settings-p99.svg"))
	require.NoError(t, err)
	require.Contains(t, string(page), duration(pointsOf(f.result)[3].p99.median))
}
