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
	own    []float64 // numbers of producers of which a figure is left out, since it is the generator's
}

// scalability says, for every set of points that differ in the number of producers alone and where
// there are enough of them, where adding producers stops helping.
func (v *view) scalability() []string {
	var lines []string
	for _, set := range v.scaledSets() {
		text := set.text()
		if text == "" {
			continue
		}
		if set.others != "" {
			text = set.others + ": " + text
		}
		lines = append(lines, text)
	}
	return lines
}

// text says what the law is, or why none is told; empty when there never were points enough for one.
func (b *byCount) text() string {
	left := distinct(b.own)
	out := ""
	if len(left) > 0 {
		out = fmt.Sprintf("with %s producers the figure is the generator's as much as the cluster's, and is left out", numbersText(left))
	}
	if len(distinct(b.n)) < stat.LeastUSL {
		if len(distinct(slices.Concat(b.own, b.n))) < stat.LeastUSL {
			return ""
		}
		return fmt.Sprintf("where adding producers stops helping is not told: %s, and the law needs %d numbers of them", out, stat.LeastUSL)
	}
	law, err := stat.FitUSL(b.n, b.x)
	if err != nil {
		return err.Error()
	}
	if out != "" {
		out = "; " + out
	}
	return lawText(law, slices.Max(b.n)) + out
}

// numbersText lists numbers: "1, 2 and 4".
func numbersText(list []float64) string {
	text := ""
	for i, n := range list {
		switch {
		case i == 0:
		case i == len(list)-1:
			text += " and "
		default:
			text += ", "
		}
		text += quantity(n)
	}
	return text
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
		x, own := p.throughputs()
		if !swept || len(x)+own == 0 {
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
		if own > 0 {
			set.own = append(set.own, n)
		}
	}
	return order
}

// throughputs are what a point's system did at most, one a search or run, and how many there are beside
// them in which the generator was the limit.
func (p *point) throughputs() (all []float64, own int) {
	if r := p.source.result; len(r.Capacity) > 0 {
		for i := range r.Capacity {
			c := &r.Capacity[i]
			switch {
			case c.Point != p.data.ID:
			case c.Outcome == results.CapacityFound:
				all = append(all, c.MessagesPerSecond)
			case c.Outcome == results.CapacityGenerator || c.Outcome == results.CapacityCeiling:
				own++
			}
		}
		return all, own
	}
	for i := range p.data.Runs {
		run := &p.data.Runs[i]
		switch {
		case run.Loop != "closed" || !run.Verdict.Valid || consumesOnly(run):
		case run.Verdict.GeneratorBound():
			own++
		default:
			all = append(all, run.Rates.MessagesPerSecond)
		}
	}
	return all, own
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
