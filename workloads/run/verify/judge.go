package verify

import (
	"slices"
	"strconv"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// Metrics are the findings that a threshold can be on.
func Metrics() []string {
	return []string{"lost", "corrupted", "reordered", "duplicated", "misplaced", "unread", "unstamped", "removed"}
}

// defaultThresholds hold of every topic unless its figure is named in another: nothing lost, altered or
// out of order. Duplicates are for who promises none to ask for.
func defaultThresholds(placed bool) []string {
	list := []string{"lost=0", "corrupted=0", "reordered=0", "unread=0"}
	if placed {
		list = append(list, "misplaced=0")
	}
	return list
}

// ParseThreshold reads a condition on a finding: "duplicated=0", "lost<=5".
func ParseThreshold(expression string) (workloads.Threshold, error) {
	return workloads.ParseCount(expression, Metrics())
}

// Judge holds the findings against the conditions given and the default ones, and notes what came of
// it in v. What was not looked at does not hold: silence is no pass.
func Judge(v *results.Verification, given []workloads.Threshold) {
	named := map[string]bool{}
	for _, t := range given {
		named[t.Metric] = true
	}
	list := slices.Clone(given)
	for _, expression := range defaultThresholds(!v.Total.MisplacedUnchecked) {
		if t, err := ParseThreshold(expression); err == nil && !named[t.Metric] {
			list = append(list, t)
		}
	}
	for _, t := range list {
		n, known := countOf(v, t.Metric)
		judged := results.Threshold{Expression: t.Expression, Value: "not checked"}
		if known {
			judged.Value, judged.Held = strconv.FormatInt(n, 10), t.Holds(float64(n))
		}
		v.Thresholds = append(v.Thresholds, judged)
	}
}

// countOf is a finding by its name; false when it was not looked for.
func countOf(v *results.Verification, metric string) (int64, bool) {
	f := v.Total
	switch metric {
	case "lost":
		return f.Lost, v.Complete
	case "removed":
		return f.Removed, v.Complete
	case "misplaced":
		return f.Misplaced, !f.MisplacedUnchecked
	case "corrupted":
		return f.Corrupted, true
	case "reordered":
		return f.Reordered, true
	case "duplicated":
		return f.Duplicated, true
	case "unread":
		return f.Unread, v.Complete
	case "unstamped":
		return f.Unstamped, true
	}
	return 0, false
}
