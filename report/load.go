package report

import (
	"math"
	"slices"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

// How much is drawn, so that a report of a hundred points stays under a megabyte.
const (
	momentBudget  = 1600 // moments over all timelines
	mostMoments   = 240  // in one timeline
	leastMoments  = 16
	timelineLimit = 120  // timelines in one report
	manyTimelines = 60   // from here on they are drawn coarsely
	levelBudget   = 2000 // levels over all percentile curves
	mostLevels    = 120  // in one curve
	leastLevels   = 20
)

// share of a budget among n, within bounds.
func portion(budget, n, least, most int) int {
	return min(most, max(least, budget/max(n, 1)))
}

// histograms merges the whole-run histograms of the runs whose figures are summed up. Series
// that no log could be read for are missing. With names, only those series are read.
func (p *point) histograms(names ...string) map[string]*hist.Histogram {
	merged := map[string]*hist.Histogram{}
	if p.source.dir == nil {
		return merged
	}
	for _, run := range p.used {
		series, err := p.source.dir.ReadSeries(run, names...)
		if err != nil {
			p.source.note("percentiles of %s run %d: %v", p.id, run.Repeat+1, err)
			continue
		}
		for name, h := range series {
			if merged[name] == nil {
				merged[name] = hist.New()
			}
			merged[name].Merge(h)
		}
	}
	return merged
}

// curve is a percentile curve of a series over the used runs; from the quantiles of the result
// where the log is not there.
func (p *point) curve(series string, logs map[string]*hist.Histogram, steps int) []level {
	if h := logs[series]; h != nil && h.Count() > 0 {
		return curveOf(h, steps)
	}
	for _, run := range p.used {
		if levels := curveFrom(run.Series[series]); levels != nil {
			return levels
		}
	}
	return nil
}

// traces are the curves of the percentile chart: one of the headline series for each point, or
// each series of the only point.
func (v *view) traces() []trace {
	if !v.read {
		v.curves, v.read = v.readTraces(), true
	}
	return v.curves
}

func (v *view) readTraces() []trace {
	if p := v.single(); p != nil {
		return p.seriesTraces()
	}
	points := v.ran()
	steps := portion(levelBudget, len(points), leastLevels, mostLevels)
	var traces []trace
	for _, p := range points {
		if p.headline == "" {
			continue
		}
		levels := p.curve(p.headline, p.histograms(p.headline), steps)
		traces = append(traces, trace{name: markedTitle(p), look: p.look(), index: p.index, series: p.headline, levels: levels})
	}
	return traces
}

// seriesTraces are the curves of all series of a point, the headline first and in its look.
func (p *point) seriesTraces() []trace {
	names := seriesOf(p.used[0])
	if i := slices.Index(names, p.headline); i > 0 {
		names = append([]string{p.headline}, slices.Delete(names, i, i+1)...)
	}
	logs := p.histograms()
	var traces []trace
	for i, name := range names {
		levels := p.curve(name, logs, mostLevels)
		traces = append(traces, trace{name: name, look: lookOf(i), index: i, series: name, levels: levels, leads: i == 0})
	}
	return traces
}

// timeline reads a run's windows, thinned to at most n moments; without any when they cannot be
// read, which is then noted.
func (p *point) timeline(run *results.Run, n int) timeline {
	t := timeline{look: p.look(), headline: p.headline, target: run.Rates.TargetMessagesPerSecond, events: run.Events, consumes: consumes(run)}
	if p.source.dir == nil {
		return t
	}
	rows, err := p.source.dir.ReadTimeline(run)
	if err != nil {
		p.source.note("timeline of %s run %d: %v", p.id, run.Repeat+1, err)
		return t
	}
	moments := make([]moment, len(rows))
	lags := p.lagLines(run, &t, rows)
	for i := range rows {
		moments[i] = momentOf(&rows[i], p.headline)
		if lags != nil {
			moments[i].lags = lags[i]
		}
	}
	t.moments, t.each = thin(moments, n)
	return t
}

// drawn are the runs of a point that timelines are drawn of: all, or the one in the middle of the
// headline p99 when there are too many.
func (p *point) drawn(all bool) []*results.Run {
	var runs []*results.Run
	if all || len(p.data.Runs) < 2 {
		for i := range p.data.Runs {
			runs = append(runs, &p.data.Runs[i])
		}
		return runs
	}
	runs = slices.Clone(p.used)
	slices.SortStableFunc(runs, func(a, b *results.Run) int {
		return int(min(1, max(-1, a.Series[p.headline].P99Ns-b.Series[p.headline].P99Ns)))
	})
	return runs[(len(runs)-1)/2 : (len(runs)-1)/2+1]
}

// orNaN is v, or not a number when it is not known.
func orNaN(v float64, known bool) float64 {
	if known {
		return v
	}
	return math.NaN()
}

// momentOf is a window as drawn, with the percentiles of the series that leads.
func momentOf(row *results.TimelineRow, headline string) moment {
	s, ok := row.Series[headline]
	has := ok && s.Count > 0
	return moment{
		at: float64(row.StartNs) / 1e9, length: float64(row.LengthNs) / 1e9,
		rate: row.AckedPerSecond, received: row.ReceivedPerSecond, failed: float64(row.Failed + row.Unknown),
		p50: orNaN(float64(s.P50Ns), has), p99: orNaN(float64(s.P99Ns), has), max: orNaN(float64(s.MaxNs), has),
		lag: orNaN(float64(row.Lag), row.Lag >= 0), inFlight: float64(row.InFlight), lateness: float64(row.LatenessNs),
		rss: orNaN(float64(row.RSSBytes), row.RSSBytes > 0),
	}
}
