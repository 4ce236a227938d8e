package report

import (
	"cmp"
	"slices"
	"strconv"
)

// ranked is a point with its places by one figure.
type ranked struct {
	place       int // by the median, from 1; 0 when it is not ranked
	best, worst int // places that the runs' ends leave open
}

// text is the place, with those that it may as well have: "2 [1–3]".
func (r ranked) text() string {
	switch {
	case r.place == 0:
		return "–"
	case r.best == r.worst:
		return strconv.Itoa(r.place)
	}
	return strconv.Itoa(r.place) + " [" + strconv.Itoa(r.best) + "–" + strconv.Itoa(r.worst) + "]"
}

// rank gives points their places by a figure. Points that overlap over their runs cannot be told
// apart by these runs: the best and the worst place count only points that lie wholly on one side.
// Points without a valid run are not ranked.
func rank(points []*point, of func(*point) spread, higher bool) map[*point]ranked {
	var in []*point
	for _, p := range points {
		if of(p).n > 0 && p.invalid() < len(p.data.Runs) {
			in = append(in, p)
		}
	}
	better := func(a, b float64) bool { return a != b && (a > b) == higher }
	places := map[*point]ranked{}
	for _, p := range in {
		r, s := ranked{place: 1, best: 1, worst: len(in)}, of(p)
		for _, q := range in {
			o := of(q)
			if better(o.median, s.median) {
				r.place++
			}
			nearer, farther := o.max, o.min // of the other, seen from the better side
			if higher {
				nearer, farther = o.min, o.max
			}
			mine, mineWorst := s.min, s.max
			if higher {
				mine, mineWorst = s.max, s.min
			}
			if better(nearer, mine) {
				r.best++
			}
			if q != p && better(mineWorst, farther) {
				r.worst--
			}
		}
		places[p] = r
	}
	return places
}

// ranking orders points by Pareto's front first, then by the mean of their places by throughput,
// p99 and CPU a message; those that are not ranked come last.
func ranking(v *view) table {
	points := v.ran()
	rates := rank(points, func(p *point) spread { return p.rate }, true)
	tails := rank(points, func(p *point) spread { return p.p99 }, false)
	if len(v.headlines()) > 1 {
		tails = nil // percentiles of different series do not compare
	}
	costs := rank(points, func(p *point) spread { return p.cpu }, false)
	front := v.front()
	sum := func(p *point) int {
		if rates[p].place == 0 {
			return 1 << 30
		}
		return rates[p].place + tails[p].place + costs[p].place
	}
	slices.SortStableFunc(points, func(a, b *point) int {
		return cmp.Or(rankOf(front[b])-rankOf(front[a]), sum(a)-sum(b))
	})
	t := table{Head: []string{"point", "front", "by msg/s", "by p99", "by CPU", "msg/s", "p99", "cpu/msg", "verdict"}}
	for _, p := range points {
		t.Rows = append(t.Rows, tableRow{Swatch: p.index, Strong: front[p], Cells: []string{pointTitle(p),
			map[bool]string{true: "●"}[front[p]], rates[p].text(), tails[p].text(), costs[p].text(),
			quantity(p.rate.median), duration(p.p99.median), duration(p.cpu.median), p.verdict()}})
	}
	return t
}
