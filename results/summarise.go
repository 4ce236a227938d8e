package results

import (
	"math"

	"github.com/kbench/kbench/results/hist"
)

// Summarise sums up a histogram; nil is empty. Quantiles are HdrHistogram's, which name the
// upper end of a bucket, but never lie above the exact maximum.
func Summarise(h *hist.Histogram) Series {
	if h == nil || h.Count() == 0 {
		return Series{}
	}
	quantile := func(q float64) int64 { return min(h.Quantile(q), h.Max()) }
	return Series{
		Count:   h.Count(),
		MinNs:   h.Min(),
		MeanNs:  int64(math.Round(h.Mean())),
		P50Ns:   quantile(0.5),
		P90Ns:   quantile(0.9),
		P99Ns:   quantile(0.99),
		P999Ns:  quantile(0.999),
		P9999Ns: quantile(0.9999),
		MaxNs:   h.Max(),
		Clamped: h.Clamped(),
	}
}

// headlines are the series a log can have untagged, the first one that the run has.
var headlines = []string{SeriesResponse, SeriesService, SeriesE2E, SeriesProduce, SeriesFetch}

// Headline is the series of a run to show first: response in an open loop, service in a
// closed one, e2e or request.fetch when it only consumed; response when there is none.
func Headline[T any](series map[string]T) string {
	for _, name := range headlines {
		if _, ok := series[name]; ok {
			return name
		}
	}
	return SeriesResponse
}
