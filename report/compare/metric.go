package compare

import (
	"math"
	"strings"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/condition"
)

// Metric is a figure of a run that is compared.
type Metric struct {
	// Name is "throughput", SERIES.STATISTIC as in thresholds ("response.p99.9"), "cpu",
	// "errors", "unknown", "lost", "lag.max" or "lag.final".
	Name string
	// Unit is "msg/s", "ns" (latencies), "ns/msg", "share" or "messages".
	Unit string
	// Higher says that a higher figure is the better one.
	Higher bool
	// Tail says that it is p99 or beyond, which varies more from run to run.
	Tail bool
	// Count says that it may well be 0, so that ratios say nothing: it is judged by thresholds.
	Count bool

	of func(*results.Run) (float64, bool)
}

// Of is the figure of a run, and whether the run has it.
func (m Metric) Of(run *results.Run) (float64, bool) {
	v, ok := m.of(run)
	return v, ok && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// OfAll are the figures of the runs that have it.
func (m Metric) OfAll(runs []*results.Run) []float64 {
	var list []float64
	for _, run := range runs {
		if v, ok := m.Of(run); ok {
			list = append(list, v)
		}
	}
	return list
}

// Worse is the logarithm of how many times worse b is than a: above 0 when it is worse. It is
// not a number when either is not above 0.
func (m Metric) Worse(a, b float64) float64 {
	if !(a > 0) || !(b > 0) {
		return math.NaN()
	}
	if m.Higher {
		return math.Log(a) - math.Log(b)
	}
	return math.Log(b) - math.Log(a)
}

// Metrics are all figures that are compared, in their order. Runs have those they have: only in
// an open loop there is response, only with consumers e2e and lag.
func Metrics() []Metric {
	list := []Metric{{Name: Throughput, Unit: "msg/s", Higher: true, of: rate}}
	for _, series := range []string{results.SeriesResponse, results.SeriesService, results.SeriesE2E} {
		list = append(list,
			quantile(series, "p50", func(s results.Series) int64 { return s.P50Ns }),
			quantile(series, "p99", func(s results.Series) int64 { return s.P99Ns }),
			quantile(series, "p99.9", func(s results.Series) int64 { return s.P999Ns }))
	}
	return append(list,
		Metric{Name: CPU, Unit: "ns/msg", of: func(r *results.Run) (float64, bool) {
			return r.Generator.CPUNsPerMessage, r.Counts.Acked > 0
		}},
		Metric{Name: "errors", Unit: "share", Count: true, of: func(r *results.Run) (float64, bool) { return part(r.Counts.Failed, r.Counts.Attempted) }},
		Metric{Name: "unknown", Unit: "share", Count: true, of: func(r *results.Run) (float64, bool) { return part(r.Counts.Unknown, r.Counts.Attempted) }},
		Metric{Name: "lost", Unit: "messages", Count: true, of: func(r *results.Run) (float64, bool) {
			return float64(r.Counts.Lost), condition.LostKnown(r)
		}},
		lag("lag.max", func(l results.Lag) int64 { return l.MaxMessages }),
		lag("lag.final", func(l results.Lag) int64 { return l.FinalMessages }))
}

// Names of the metrics that have no series.
const (
	Throughput = "throughput"
	CPU        = "cpu"
)

// Gated are the metrics that a gate judges unless told otherwise, by the kind of run: the rate,
// p50 and p99 of the headline series, and the generator's CPU a message.
func Gated(run *results.Run) []Metric {
	names := []string{Throughput}
	if series := headline(run); series != "" {
		names = append(names, series+".p50", series+".p99")
	}
	names = append(names, CPU)
	var list []Metric
	for _, m := range Metrics() {
		for _, name := range names {
			if _, has := m.Of(run); m.Name == name && has {
				list = append(list, m)
			}
		}
	}
	return list
}

// headline is the series that leads, among those that are compared.
func headline(run *results.Run) string {
	order := []string{results.SeriesService, results.SeriesE2E}
	if run.Loop == "open" {
		order = append([]string{results.SeriesResponse}, order...)
	}
	for _, name := range order {
		if run.Series[name].Count > 0 {
			return name
		}
	}
	return ""
}

func rate(r *results.Run) (float64, bool) {
	if r.Counts.Attempted == 0 && r.Counts.Received > 0 {
		return r.Rates.ReceivedPerSecond, true
	}
	return r.Rates.MessagesPerSecond, true
}

func quantile(series, name string, of func(results.Series) int64) Metric {
	return Metric{
		Name: series + "." + name, Unit: "ns", Tail: strings.HasPrefix(name, "p99"),
		of: func(r *results.Run) (float64, bool) {
			s := r.Series[series]
			return float64(of(s)), s.Count > 0
		},
	}
}

func lag(name string, of func(results.Lag) int64) Metric {
	return Metric{Name: name, Unit: "messages", Count: true, of: func(r *results.Run) (float64, bool) {
		if r.Consumption == nil || r.Consumption.Lag == nil {
			return 0, false
		}
		return float64(of(*r.Consumption.Lag)), true
	}}
}

func part(n, of int64) (float64, bool) {
	if of == 0 {
		return 0, false
	}
	return float64(n) / float64(of), true
}
