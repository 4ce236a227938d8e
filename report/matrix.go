package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sourceKey is the setting that several results in one report differ in.
const sourceKey = "result"

// factor is a setting that a sweep varies, with its values in their order of appearance.
type factor struct {
	key, name string // as in the result, and short
	values    []string
}

// valueOf is the value of a factor at a point. What a point leaves as it is has the value that was
// in effect before the sweep, where the result has that.
func (f factor) valueOf(p *point) string {
	if f.key == sourceKey {
		return p.source.name
	}
	v, ok := p.data.Settings[f.key]
	if !ok {
		v = p.source.result.Settings[f.key]
	}
	return levelText(v)
}

// levelText is a setting's value as it stands in a label: sections as {key: value}.
func levelText(v any) string {
	section, ok := v.(map[string]any)
	if !ok {
		return settingText(v)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(section)) {
		parts = append(parts, key+": "+levelText(section[key]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// factors are the settings that differ among points, by name; among several results the result is
// one of them. Where a report shows points without settings there are none.
func factors(points []*point) []factor {
	keys := []string{sourceKey}
	for _, p := range points {
		for key := range p.data.Settings {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys[1:])
	var all []factor
	for _, key := range keys {
		f := factor{key: key, name: shortKey(key, keys)}
		for _, p := range points {
			if v := f.valueOf(p); !slices.Contains(f.values, v) {
				f.values = append(f.values, v)
			}
		}
		if len(f.values) > 1 {
			all = append(all, f)
		}
	}
	return all
}

// matrix lays the points of a sweep out in rows and columns, every combination of settings in a
// place of its own.
type matrix struct {
	down, across []factor // nested, the first changes slowest
	cells        [][]*point
}

// newMatrix divides factors between rows and columns so that there are at most so many columns and
// the picture is no higher than need be; nil when there is nothing to lay out: a single factor, or
// points that share a place.
func newMatrix(points []*point, columns int) *matrix {
	all := factors(points)
	if len(all) < 2 {
		return nil
	}
	split := 1
	for split < len(all)-1 && (combinations(all[split:]) > columns || combinations(all[:split])*3 < combinations(all[split:])) {
		split++
	}
	m := &matrix{down: all[:split], across: all[split:]}
	rows, cols := combinations(m.down), combinations(m.across)
	const most = 2000 // a random sample of many settings leaves nearly every place empty
	if rows*cols > most || rows*cols > 4*len(points) {
		return nil
	}
	m.cells = make([][]*point, rows)
	for i := range m.cells {
		m.cells[i] = make([]*point, cols)
	}
	for _, p := range points {
		at := &m.cells[placeOf(m.down, p)][placeOf(m.across, p)]
		if *at != nil {
			return nil
		}
		*at = p
	}
	return m
}

func combinations(of []factor) int {
	n := 1
	for _, f := range of {
		n = min(n*len(f.values), 1<<20)
	}
	return n
}

// placeOf is the row or the column of a point.
func placeOf(of []factor, p *point) int {
	at := 0
	for _, f := range of {
		at = at*len(f.values) + slices.Index(f.values, f.valueOf(p))
	}
	return at
}

// levelsAt are the values of nested factors in a row or a column.
func levelsAt(of []factor, at int) []string {
	levels := make([]string, len(of))
	for i := len(of) - 1; i >= 0; i-- {
		n := len(of[i].values)
		levels[i] = of[i].values[at%n]
		at /= n
	}
	return levels
}

// levelNames are levelsAt with the names of their settings.
func levelNames(of []factor, at int) string {
	var parts []string
	for i, v := range levelsAt(of, at) {
		parts = append(parts, fmt.Sprintf("%s=%s", of[i].name, v))
	}
	return strings.Join(parts, " ")
}
