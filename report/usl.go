package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
)

// producersKey is what the scalability law is fitted over.
const producersKey = "producers.count"

// byCount are the points that differ in the number of producers alone.
type byCount struct {
	others string // the other swept settings, for people; empty without any
	n, x   []float64
}

// scalability says, for every set of points that differ in the number of producers alone and where
// there are enough of them, where adding producers stops helping.
func (v *view) scalability() []string {
	var lines []string
	for _, set := range v.scaledSets() {
		if len(distinct(set.n)) < stat.LeastUSL {
			continue
		}
		text := ""
		if law, err := stat.FitUSL(set.n, set.x); err != nil {
			text = err.Error()
		} else {
			text = lawText(law, slices.Max(set.n))
		}
		if set.others != "" {
			text = set.others + ": " + text
		}
		lines = append(lines, text)
	}
	return lines
}

// lawText says what a law means, and whether to believe it; most is the largest number measured.
func lawText(law stat.USL, most float64) string {
	const (
		poor    = 0.1  // relative error above which the law does not describe the system
		nothing = 1e-6 // Sigma and Kappa below which rounding is all there is
		useful  = 100  // times the largest number: as good as no peak
	)
	text := ""
	peak := law.Peak()
	switch {
	case law.Kappa < nothing || peak > useful*most:
		text = "adding producers does not do harm in what was measured (no peak)"
		switch {
		case law.Sigma >= nothing:
			text += fmt.Sprintf(", but throughput approaches %s msg/s", quantity(law.Gamma/law.Sigma))
		default:
			text += "; throughput grows with their number"
		}
	case peak <= 1:
		text = "adding producers never helps: one alone does the most, " + quantity(law.At(1)) + " msg/s"
	default:
		text = fmt.Sprintf("adding producers stops helping at %.0f of them, with %s msg/s", math.Round(peak), quantity(law.Limit()))
		if peak > most {
			text += fmt.Sprintf(" (beyond the %.0f measured: an extrapolation)", most)
		}
	}
	text += fmt.Sprintf("; Universal Scalability Law: %s msg/s of one, contention %s, coherency %.3g, off by %s",
		quantity(law.Gamma), share(law.Sigma), law.Kappa, share(law.Error))
	if law.Error > poor {
		text += " – the law does not describe these points well"
	}
	return text
}

func distinct(values []float64) []float64 {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// scaledSets are the throughputs by number of producers: capacities where there are, else those of
// valid closed loops, whose rate is what the system does.
func (v *view) scaledSets() []*byCount {
	var order []*byCount
	byOthers := map[string]*byCount{}
	for _, p := range v.points {
		n, swept := numberOf(p.data.Settings[producersKey])
		x := p.throughputs()
		if !swept || len(x) == 0 {
			continue
		}
		others := othersText(p.data.Settings)
		if len(v.sources) > 1 {
			others = p.source.name + " " + others
		}
		set := byOthers[others]
		if set == nil {
			set = &byCount{others: others}
			byOthers[others], order = set, append(order, set)
		}
		for _, one := range x {
			set.n, set.x = append(set.n, n), append(set.x, one)
		}
	}
	return order
}

// throughputs are what a point's system did at most, one a search or run.
func (p *point) throughputs() (all []float64) {
	if r := p.source.result; len(r.Capacity) > 0 {
		for i := range r.Capacity {
			if c := &r.Capacity[i]; c.Point == p.data.ID && c.Outcome == results.CapacityFound {
				all = append(all, c.MessagesPerSecond)
			}
		}
		return all
	}
	for i := range p.data.Runs {
		if run := &p.data.Runs[i]; run.Loop == "closed" && run.Verdict.Valid && !consumesOnly(run) {
			all = append(all, run.Rates.MessagesPerSecond)
		}
	}
	return all
}

// othersText are the other settings of a point.
func othersText(settings map[string]any) string {
	others := maps.Clone(settings)
	delete(others, producersKey)
	if len(others) == 0 {
		return ""
	}
	return jsonText(others)
}

// numberOf is a setting as a number; results that were read have json's or plain ones.
func numberOf(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}
