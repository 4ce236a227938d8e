package report

import (
	"math"
	"strconv"
)

// axis maps values to places on paper, linearly or by their logarithm. Its ends are finite and
// apart, and on a logarithmic axis above zero, whatever it was made from.
type axis struct {
	lo, hi   float64 // values at the ends
	from, to float64 // places of the ends
	log      bool
}

// tick is one labelled place on an axis; a tick without a label is a thin line only.
type tick struct {
	value float64
	label string
}

// linearAxis spans zero to the largest value with a little room above it.
func linearAxis(values []float64, from, to float64) axis {
	hi := 0.0
	for _, v := range values {
		if usable(v) {
			hi = math.Max(hi, v)
		}
	}
	if hi <= 0 {
		hi = 1
	}
	step := niceStep(hi * 1.04 / 5)
	return axis{lo: 0, hi: math.Ceil(hi*1.04/step*4) / 4 * step, from: from, to: to}
}

// spanAxis spans the values with a little room, and starts at zero unless that would leave most of
// the axis empty.
func spanAxis(values []float64, from, to float64) axis {
	a := linearAxis(values, from, to)
	lo := a.hi
	for _, v := range values {
		if usable(v) {
			lo = math.Min(lo, v)
		}
	}
	if lo < a.hi*0.4 {
		return a
	}
	step := niceStep((a.hi - lo) / 5)
	a.lo = math.Max(0, math.Floor(lo/step-0.4)*step)
	if a.lo >= a.hi {
		a.lo = 0
	}
	return a
}

// logAxis spans the positive values with a little room at both ends, and at least a factor of
// four. Zero and below have no logarithm: they are placed at the low end.
func logAxis(values []float64, from, to float64) axis {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if usable(v) && v > 0 {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
	}
	if lo > hi {
		lo, hi = 1, 10
	}
	lo, hi = lo/1.15, hi*1.15
	if grow := 4 / (hi / lo); grow > 1 {
		lo, hi = lo/math.Sqrt(grow), hi*math.Sqrt(grow)
	}
	return axis{lo: lo, hi: hi, from: from, to: to, log: true}
}

// usable leaves out what is no number or so large that room above it would be none.
func usable(v float64) bool { return math.Abs(v) < 1e300 }

// at is the place of v. Values beyond an end are placed at that end.
func (a axis) at(v float64) float64 {
	var share float64
	if a.log {
		share = (math.Log(math.Max(v, a.lo)) - math.Log(a.lo)) / (math.Log(a.hi) - math.Log(a.lo))
	} else {
		share = (v - a.lo) / (a.hi - a.lo)
	}
	if math.IsNaN(share) {
		share = 0
	}
	return a.from + (a.to-a.from)*math.Min(1, math.Max(0, share))
}

// ticks are at most about n places with round values.
func (a axis) ticks(n int, label func(float64) string) []tick {
	if a.log {
		return a.logTicks(n, label)
	}
	var ts []tick
	step := niceStep((a.hi - a.lo) / float64(max(n, 1)))
	for i := math.Ceil(a.lo / step); i*step <= a.hi*(1+1e-9); i++ {
		v := rounded(i*step) + 0 // no -0
		ts = append(ts, tick{v, label(v)})
	}
	return ts
}

// rounded takes the error of a multiplication off a round number.
func rounded(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// logTicks labels every decade, or 1-2-5 when there are few decades, or every n-th decade when
// there are many.
func (a axis) logTicks(n int, label func(float64) string) []tick {
	first, last := int(math.Floor(math.Log10(a.lo))), int(math.Ceil(math.Log10(a.hi)))
	decades := math.Log10(a.hi) - math.Log10(a.lo)
	mantissas := []float64{1}
	switch {
	case decades*3 <= float64(n)+0.5:
		mantissas = []float64{1, 2, 5}
	case decades*2 <= float64(n)+0.5:
		mantissas = []float64{1, 3}
	}
	every := max(1, int(math.Ceil(decades/float64(max(n, 1)))))
	var ts []tick
	for d := first; d <= last; d++ {
		for _, m := range mantissas {
			v := m * math.Pow(10, float64(d))
			if v < a.lo || v > a.hi {
				continue
			}
			t := tick{value: v}
			if (d-first)%every == 0 {
				t.label = label(v)
			} else if every > 3 {
				continue // a line for every decade would be a hatching
			}
			ts = append(ts, t)
		}
	}
	return ts
}

// niceStep is the smallest of 1, 2, 2.5 and 5 times a power of ten that is not below v.
func niceStep(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*base >= v*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}
