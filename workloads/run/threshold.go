package run

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kbench/kbench/results"
)

// findings says which findings about the cluster a run could make.
type findings struct {
	arrivals   bool // every message sent was looked for among the arrivals
	idempotent bool // the client promises no duplicates
}

// defaultThresholds are the conditions every run has that can tell, unless the workload names
// the figure itself.
func (f findings) defaultThresholds() []string {
	if !f.arrivals {
		return nil
	}
	list := []string{"lost=0", "corrupted=0", "reordered=0"}
	if f.idempotent {
		list = append(list, "duplicated=0")
	}
	return list
}

// evaluateAll judges the conditions given, and the default ones, on a run's figures. One that
// cannot be told from this run does not hold: silence is no pass.
func evaluateAll(given []string, run *results.Run, can findings) []results.Threshold {
	list := []results.Threshold{}
	named := map[string]bool{}
	judge := func(expression string) {
		t := results.Threshold{Expression: expression}
		c, err := parseCondition(expression)
		if err != nil {
			t.Value = err.Error()
		} else {
			named[c.metric] = true
			t.Value, t.Held = c.judge(run, can)
		}
		list = append(list, t)
	}
	for _, expression := range given {
		judge(expression)
	}
	for _, expression := range can.defaultThresholds() {
		if metric, _, _ := strings.Cut(expression, "="); !named[metric] {
			judge(expression)
		}
	}
	return list
}

// judge gives the figure as printed and whether the condition holds.
func (c condition) judge(run *results.Run, can findings) (value string, held bool) {
	v, ok := c.figure(run, can)
	if !ok {
		return "not measured", false
	}
	return c.print(v), c.holds(v)
}

// figure finds the metric's value: durations in ns, shares as fractions.
func (c condition) figure(run *results.Run, can findings) (float64, bool) {
	n := run.Counts
	arrived := func(v int64) (float64, bool) { return float64(v), can.arrivals }
	switch c.metric {
	case "lost":
		return arrived(n.Lost)
	case "corrupted":
		return arrived(n.Corrupted)
	case "reordered":
		return arrived(n.Reordered)
	case "duplicated":
		return arrived(n.Duplicated)
	case "errors", "failed":
		if c.unit == "%" {
			return share(n.Failed, n.Attempted)
		}
		return float64(n.Failed), true
	case "unknown":
		if c.unit == "%" {
			return share(n.Unknown, n.Attempted)
		}
		return float64(n.Unknown), true
	}
	if v, ok := plainFigure(c.metric, run); ok {
		return v, true
	}
	return seriesFigure(c.metric, run.Series)
}

func share(part, whole int64) (float64, bool) {
	if whole == 0 {
		return 0, false
	}
	return float64(part) / float64(whole), true
}

func plainFigure(metric string, run *results.Run) (float64, bool) {
	switch metric {
	case "attempted":
		return float64(run.Counts.Attempted), true
	case "acked":
		return float64(run.Counts.Acked), true
	case "received":
		return float64(run.Counts.Received), true
	case "rate", "rates.messagesPerSecond":
		return run.Rates.MessagesPerSecond, true
	case "throughput", "rates.bytesPerSecond":
		return run.Rates.BytesPerSecond, true
	case "rates.receivedPerSecond":
		return run.Rates.ReceivedPerSecond, true
	case "generator.cpuNsPerMessage":
		return run.Generator.CPUNsPerMessage, true
	case "generator.cpuCores":
		return run.Generator.CPUCores, true
	}
	return 0, false
}

// seriesFigure finds SERIES.STATISTIC; a series may have a dot in its name.
func seriesFigure(metric string, all map[string]results.Series) (float64, bool) {
	dot := strings.LastIndexByte(metric, '.')
	if dot < 0 {
		return 0, false
	}
	name, statistic := metric[:dot], metric[dot+1:]
	if statistic == "9" || statistic == "99" { // p99.9, p99.99
		if at := strings.LastIndex(name, ".p99"); at >= 0 && at+4 == len(name) {
			name, statistic = name[:at], "p99"+statistic
		}
	}
	s, ok := all[name]
	if !ok {
		return 0, false
	}
	v, ok := map[string]int64{
		"count": s.Count, "min": s.MinNs, "mean": s.MeanNs, "max": s.MaxNs, "p50": s.P50Ns,
		"p90": s.P90Ns, "p99": s.P99Ns, "p999": s.P999Ns, "p9999": s.P9999Ns,
	}[statistic]
	return float64(v), ok
}

// condition is a parsed threshold.
type condition struct {
	metric, operator string
	limit            float64 // in the unit
	unit             string
}

// units are what one of a unit is in the figures' own.
var units = map[string]float64{
	"": 1, "%": 0.01, "/s": 1, "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9,
	"B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30,
}

// operators, longest first.
var operators = []string{"<=", ">=", "==", "!=", "<", ">", "="}

func parseCondition(expression string) (condition, error) {
	at := strings.IndexAny(expression, "<>=!")
	if at < 1 {
		return condition{}, fmt.Errorf("%q is no condition; it wants FIGURE<LIMIT, such as response.p99<20ms", expression)
	}
	c := condition{metric: strings.TrimSpace(expression[:at])}
	rest := expression[at:]
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			c.operator, rest = op, strings.TrimSpace(rest[len(op):])
			break
		}
	}
	end := strings.LastIndexAny(rest, "0123456789.") + 1
	limit, err := strconv.ParseFloat(strings.ReplaceAll(rest[:end], "_", ""), 64)
	c.limit, c.unit = limit, strings.TrimSpace(rest[end:])
	if _, known := units[c.unit]; !known || err != nil || c.operator == "" {
		return condition{}, fmt.Errorf("%q: %q is no limit", expression, rest)
	}
	return c, nil
}

func (c condition) holds(v float64) bool {
	limit := c.limit * units[c.unit]
	switch c.operator {
	case "<":
		return v < limit
	case "<=":
		return v <= limit
	case ">":
		return v > limit
	case ">=":
		return v >= limit
	case "!=":
		return v != limit
	}
	return v == limit
}

// print gives a figure in the unit of the expression.
func (c condition) print(v float64) string {
	text := strconv.FormatFloat(v/units[c.unit], 'g', 4, 64)
	if f := v / units[c.unit]; f >= 1000 || f == float64(int64(f)) {
		text = strconv.FormatFloat(f, 'f', 0, 64)
	}
	if c.unit == "" || c.unit == "/s" {
		return text + c.unit
	}
	return text + " " + c.unit
}
