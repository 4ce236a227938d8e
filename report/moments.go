package report

import (
	"math"
	"slices"
)

// moment is one drawn step of a timeline. What is not known there is not a number.
type moment struct {
	at, length     float64   // seconds since the start of the measured phase
	rate, received float64   // messages a second
	failed         float64   // messages that failed or are unknown
	p50, p99, max  float64   // nanoseconds, of the headline series
	lag            float64   // messages, summed over the consumers
	inFlight       float64   // messages
	lateness       float64   // nanoseconds
	rss            float64   // bytes of the generator's memory
	lags           []float64 // messages, by partition; nil when they are not shown
}

// thin puts neighbouring windows together so that at most n moments are left. Quantiles cannot be
// merged without their histograms, so a moment of several windows has the median of their p50 and
// the worst of everything else: a spike is never thinned away.
func thin(all []moment, n int) (moments []moment, each int) {
	each = 1
	if n > 0 {
		each = (len(all) + n - 1) / n
	}
	if each <= 1 {
		return all, 1
	}
	for group := range slices.Chunk(all, each) {
		moments = append(moments, together(group))
	}
	return moments, each
}

// together makes one moment of several that follow each other.
func together(group []moment) moment {
	m := moment{at: group[0].at, lag: math.NaN(), inFlight: math.NaN(), lateness: math.NaN(), rss: math.NaN(), p99: math.NaN(), max: math.NaN()}
	var messages, received float64
	var p50s []float64
	for _, g := range group {
		m.length += g.length
		messages += g.rate * g.length
		received += g.received * g.length
		m.failed += g.failed
		m.p99, m.max = worse(m.p99, g.p99), worse(m.max, g.max)
		m.lags = worseEach(m.lags, g.lags)
		m.lag, m.inFlight, m.lateness = worse(m.lag, g.lag), worse(m.inFlight, g.inFlight), worse(m.lateness, g.lateness)
		m.rss = worse(m.rss, g.rss)
		if !math.IsNaN(g.p50) {
			p50s = append(p50s, g.p50)
		}
	}
	m.p50 = math.NaN()
	if len(p50s) > 0 {
		m.p50 = spreadOf(p50s).median
	}
	if m.length > 0 {
		m.rate, m.received = messages/m.length, received/m.length
	}
	return m
}

// worseEach is worse for each partition.
func worseEach(a, b []float64) []float64 {
	if a == nil {
		return slices.Clone(b)
	}
	for i := range min(len(a), len(b)) {
		a[i] = worse(a[i], b[i])
	}
	return a
}

// worse is the larger of two figures, of which either may be not known.
func worse(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}
