package workloads

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// Threshold is a condition on a run's figures: "response.p99<20ms".
type Threshold struct {
	Metric string // one of Metrics; quantiles as p99.9
	Op     string // "<", "<=", ">", ">=", "=" or "!="
	// Value is the limit in Unit as written; Limit is it in the unit of the figures.
	Value      float64
	Unit       string // "ms", "%", "/s", …; "" for a count
	Expression string // as written
}

// units of a kind of figure, with the size of one in the unit of the figures.
type units map[string]float64

var (
	latencyUnits = units{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9}
	countUnits   = units{"": 1}
	shareUnits   = units{"": 1, "%": 0.01}
	rateUnits    = units{"": 1, "/s": 1, "messages/s": 1, "%": 0.01}
	byteUnits    = units{
		"": 1, "B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30,
	}
)

var (
	thresholdSeries = []string{"response", "service", "delay", "e2e", "request.produce", "request.fetch", "rebalance", "transaction", "commit"}
	thresholdStats  = []string{"min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"}
	plainMetrics    = []struct {
		name  string
		units units
	}{
		{"errors", shareUnits}, {"unknown", shareUnits},
		{"lost", countUnits}, {"duplicated", countUnits}, {"reordered", countUnits}, {"corrupted", countUnits},
		{"transactions.failed", shareUnits}, {"transactions.aborted", shareUnits}, {"abortedReceived", countUnits},
		{"rate", rateUnits}, {"throughput", byteUnits}, {"lag.growth", rateUnits},
		{"lag.max", countUnits}, {"lag.final", countUnits}, {"catchUp.time", latencyUnits}, {"catchUp.rate", rateUnits}, {"rebalances", countUnits}, {"fault.recovery", latencyUnits},
		{"generator.cpuNsPerMessage", countUnits}, {"generator.cpuCores", countUnits},
	}
)

// Metrics are the figures a threshold can be on: SERIES.STATISTIC of the latency series (in
// ns), errors and unknown (messages, or with % a share of those attempted), lost, duplicated,
// reordered and corrupted (messages), rate (acked messages/s, or with % a share of the rate
// asked for), throughput (bytes/s), lag.growth (messages/s, or with % a share of the rate),
// lag.max and lag.final (messages over all groups), catchUp.time and catchUp.rate (messages/s) of
// consumers that begin on a backlog, transactions.failed and transactions.aborted (of which the load asked
// for it; or with % a share of all), abortedReceived (messages that were received although their transaction
// was aborted and consumers were to see what is committed), rebalances (over all groups), fault.recovery (the longest time from a
// fault's begin until the load was as before), and the generator's CPU.
func Metrics() []string {
	var out []string
	for _, series := range thresholdSeries {
		for _, stat := range thresholdStats {
			out = append(out, series+"."+stat)
		}
	}
	for _, m := range plainMetrics {
		out = append(out, m.name)
	}
	return out
}

// operators, the longer ones first.
var operators = []string{"<=", ">=", "==", "!=", "<", ">", "="}

// ParseThreshold reads METRIC OP NUMBER UNIT, e.g. "response.p99<20ms", "errors<0.1%",
// "rate>=20k/s" or "lost=0". Spaces around the parts are allowed.
func ParseThreshold(expression string) (Threshold, error) {
	return parseThreshold(expression, unitsOf, unknownMetric)
}

// ParseCount reads a condition on one of the counts named: "lost=0".
func ParseCount(expression string, metrics []string) (Threshold, error) {
	known := func(name string) units {
		if slices.Contains(metrics, name) {
			return countUnits
		}
		return nil
	}
	return parseThreshold(expression, known, func(name string) error {
		if near := settings.Nearest(name, metrics); near != "" {
			return fmt.Errorf("%q is no metric; did you mean %s?", name, near)
		}
		return fmt.Errorf("%q is no metric; there are %s", name, strings.Join(metrics, ", "))
	})
}

func parseThreshold(expression string, unitsOf func(string) units, unknown func(string) error) (Threshold, error) {
	const most = 200
	if len(expression) > most {
		return Threshold{}, fmt.Errorf("a threshold of %d bytes is too long", len(expression))
	}
	at := strings.IndexAny(expression, "<>=!")
	if at < 0 {
		return Threshold{}, fmt.Errorf("%q is no condition; write it like response.p99<20ms, errors<0.1%% or lost=0", expression)
	}
	t := Threshold{Metric: metricName(strings.TrimSpace(expression[:at])), Expression: expression}
	known := unitsOf(t.Metric)
	if known == nil {
		return Threshold{}, unknown(t.Metric)
	}
	rest := expression[at:]
	for _, op := range operators {
		if after, found := strings.CutPrefix(rest, op); found {
			t.Op, rest = op, strings.TrimSpace(after)
			break
		}
	}
	if t.Op == "" {
		return Threshold{}, fmt.Errorf("%q: after the metric one of <, <=, >, >=, = and != is needed", expression)
	}
	if t.Op == "==" {
		t.Op = "="
	}
	err := t.limit(rest, known)
	return t, err
}

// limit reads number and unit.
func (t *Threshold) limit(text string, known units) error {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, unit := text[:end], strings.TrimSpace(text[end:])
	scale := 1.0
	if _, ok := known[unit]; !ok && len(unit) > 0 && known["/s"] == 1 {
		if s, isScale := map[byte]float64{'k': 1e3, 'M': 1e6}[unit[0]]; isScale {
			scale, unit = s, strings.TrimSpace(unit[1:])
		}
	}
	if number == "" {
		return fmt.Errorf("%q: a number is needed after %s", t.Expression, t.Op)
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	if err != nil || math.IsInf(value, 0) || math.IsNaN(value) || value < 0 {
		return fmt.Errorf("%q: %q is not a number of 0 or more", t.Expression, number)
	}
	if _, ok := known[unit]; !ok {
		if unit == "" {
			return fmt.Errorf("%q: %s needs a unit: %s", t.Expression, t.Metric, unitList(known))
		}
		return fmt.Errorf("%q: %q is no unit of %s; use %s", t.Expression, unit, t.Metric, unitList(known))
	}
	t.Value, t.Unit = value*scale, unit
	return nil
}

// Limit is the value in the unit of the figures: nanoseconds, messages, bytes or messages a
// second; with % a fraction.
func (t Threshold) Limit() float64 {
	if scale, ok := unitsOf(t.Metric)[t.Unit]; ok {
		return t.Value * scale
	}
	return t.Value
}

// Share reports whether the limit is a fraction of something (%).
func (t Threshold) Share() bool { return t.Unit == "%" }

// Holds reports whether a figure, in the unit of the figures, meets the condition.
func (t Threshold) Holds(figure float64) bool {
	limit := t.Limit()
	switch t.Op {
	case "<":
		return figure < limit
	case "<=":
		return figure <= limit
	case ">":
		return figure > limit
	case ">=":
		return figure >= limit
	case "!=":
		return figure != limit
	}
	return figure == limit
}

// Series is the name of the latency series the threshold is on and the statistic of it; empty
// for other metrics.
func (t Threshold) Series() (series, statistic string) {
	for _, name := range thresholdSeries {
		if stat, found := strings.CutPrefix(t.Metric, name+"."); found {
			return name, stat
		}
	}
	return "", ""
}

// metricName brings the spellings p999 and p9999 into the one that is documented.
func metricName(name string) string {
	if before, found := strings.CutSuffix(name, ".p999"); found {
		return before + ".p99.9"
	}
	if before, found := strings.CutSuffix(name, ".p9999"); found {
		return before + ".p99.99"
	}
	return name
}

func unitsOf(metric string) units {
	for _, m := range plainMetrics {
		if m.name == metric {
			return m.units
		}
	}
	if slices.Contains(Metrics(), metric) {
		return latencyUnits
	}
	return nil
}

func unknownMetric(name string) error {
	if near := settings.Nearest(name, Metrics()); near != "" {
		return fmt.Errorf("%q is no metric; did you mean %s?", name, near)
	}
	return fmt.Errorf("%q is no metric; there are SERIES.STATISTIC (%s; %s), errors, unknown, lost, duplicated, reordered, corrupted, rate, throughput, lag.growth, lag.max, lag.final, catchUp.time, catchUp.rate, transactions.failed, transactions.aborted, abortedReceived, rebalances and fault.recovery",
		name, strings.Join(thresholdSeries, ", "), strings.Join(thresholdStats, ", "))
}

func unitList(u units) string {
	names := make([]string, 0, len(u))
	for name := range u {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if u[a] != u[b] {
			return int(math.Copysign(1, u[a]-u[b]))
		}
		return strings.Compare(a, b)
	})
	if len(names) == 0 {
		return "no unit"
	}
	return strings.Join(names, ", ")
}
