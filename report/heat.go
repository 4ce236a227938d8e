package report

import (
	"math"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

// heat is how the latencies of a run were spread, step by step: counts of messages in bands of
// latency. Steps are merged from the histograms of the run's intervals, so nothing is averaged.
type heat struct {
	series     string
	from, step float64 // seconds since the start of the measured phase
	edges      []float64
	counts     [][]int64 // by step, then by band from the fastest up
	events     []results.Event
}

// Sizes of heat maps: how many steps and bands there are at most.
const (
	mostHeatSteps, mostHeatBands     = 96, 26
	smallHeatSteps, smallHeatBands   = 40, 16
	leastHeatSteps, heatBudget       = 24, 1200
	narrowHeatSteps, narrowHeatBands = 48, 18
)

// heatInterval is one histogram of the log.
type heatInterval struct {
	start, length int64
	values        *hist.Histogram
}

// intervals reads a run's histograms of its headline series over time; none when they cannot be
// read, which the percentile curves, read from the same file, have noted.
func (p *point) intervals(run *results.Run) []heatInterval {
	if p.source.dir == nil || p.headline == "" {
		return nil
	}
	var all []heatInterval
	err := p.source.dir.EachInterval(run, func(_ string, start, length int64, h *hist.Histogram) error {
		if length > 0 {
			all = append(all, heatInterval{start, length, h})
		}
		return nil
	}, p.headline)
	if err != nil {
		return nil
	}
	return all
}

// newHeat spreads intervals over at most so many steps and bands; nil when there are too few for a
// picture over time.
func newHeat(all []heatInterval, steps, bands int) *heat {
	const least = 4
	var window, from, to int64
	lowest, highest := math.Inf(1), 0.0
	for i, v := range all {
		window = max(window, v.length)
		if i == 0 {
			from, to = v.start, v.start
		}
		from, to = min(from, v.start), max(to, v.start+v.length)
		lowest, highest = math.Min(lowest, float64(max(v.values.Min(), 1))), math.Max(highest, float64(max(v.values.Max(), 1)))
	}
	if len(all) < least || window == 0 {
		return nil
	}
	windows := int((to - from + window/2) / window)
	step := window * int64((windows+steps-1)/steps)
	h := &heat{from: float64(from) / 1e9, step: float64(step) / 1e9}
	perDecade, first := bandsFor(lowest, highest, bands)
	for i := first; ; i++ {
		h.edges = append(h.edges, math.Pow(10, float64(i)/float64(perDecade)))
		if h.edges[len(h.edges)-1] > highest {
			break
		}
	}
	h.counts = make([][]int64, (to-from+step-1)/step)
	for i := range h.counts {
		h.counts[i] = make([]int64, len(h.edges)-1)
	}
	for _, v := range all {
		at := min(int((v.start+v.length/2-from)/step), len(h.counts)-1)
		for ns, n := range v.values.Buckets() {
			h.counts[at][h.band(float64(ns), perDecade, first)] += n
		}
	}
	return h
}

// bandsFor finds the finest division of decades that takes at most so many bands, and the number of
// the lowest band.
func bandsFor(lowest, highest float64, most int) (perDecade, first int) {
	for _, perDecade = range []int{24, 12, 8, 6, 4, 3, 2, 1} {
		first = int(math.Floor(math.Log10(lowest) * float64(perDecade)))
		last := int(math.Floor(math.Log10(highest) * float64(perDecade)))
		if last-first+1 <= most {
			break
		}
	}
	return perDecade, first
}

// band is where a latency belongs. The middle of a histogram's bucket may be a little beyond the
// extremes: it goes to the band at the end.
func (h *heat) band(ns float64, perDecade, first int) int {
	at := int(math.Floor(math.Log10(math.Max(ns, 1))*float64(perDecade))) - first
	return min(max(at, 0), len(h.edges)-2)
}

// end is the end of the last step.
func (h *heat) end() float64 { return h.from + h.step*float64(len(h.counts)) }

// most is the largest count of a cell.
func (h *heat) most() int64 {
	most := int64(0)
	for _, step := range h.counts {
		for _, n := range step {
			most = max(most, n)
		}
	}
	return most
}

// heatLevels is how many shades there are.
const heatLevels = 7

// heatSteps are the least counts of the shades, by their logarithm: a single slow message has to
// be seen beside thousands of fast ones. Fewer shades when the largest count is small.
func heatSteps(most int64) []int64 {
	var least []int64
	for i := range heatLevels {
		n := int64(math.Ceil(math.Pow(float64(most), float64(i)/heatLevels) - 1e-9))
		if len(least) == 0 || n > least[len(least)-1] {
			least = append(least, max(n, 1))
		}
	}
	return least
}

// shadeOf is the shade of a count, from 0; -1 for none.
func shadeOf(n int64, least []int64) int {
	shade := -1
	for i, from := range least {
		if n >= from {
			shade = i
		}
	}
	return shade
}

// spread over all shades, so that two of them are the lightest and the darkest.
func shadeClass(shade, of int) int {
	if of < 2 {
		return heatLevels - 1
	}
	return shade * (heatLevels - 1) / (of - 1)
}
