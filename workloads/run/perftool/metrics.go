package perftool

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kbench/kbench/results"
)

// Metrics prints the figures of a run as Kafka's tools print their client's metrics with
// --print-metrics: a name and a value a line. The names are those of result.json.
func Metrics(out io.Writer, r *results.Run) error {
	text, err := json.Marshal(map[string]any{
		"counts": r.Counts, "rates": r.Rates, "series": r.Series, "batches": r.Batches, "generator": r.Generator, "errors": r.Errors,
	})
	if err != nil {
		return err
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return err
	}
	figures := map[string]float64{}
	flatten("", tree, figures)
	names, width := []string{}, 0
	for name := range figures {
		names, width = append(names, name), max(width, len(name))
	}
	slices.Sort(names)
	_, _ = fmt.Fprintf(out, "\n%-*s   Value\n", width, "Metric Name") // as below
	for _, name := range names {
		if _, err = fmt.Fprintf(out, "%-*s : %.3f\n", width, name, figures[name]); err != nil {
			return err
		}
	}
	return nil
}

// flatten collects the numbers of a tree by their path.
func flatten(path string, v any, into map[string]float64) {
	switch v := v.(type) {
	case float64:
		into[strings.TrimPrefix(path, ".")] = v
	case map[string]any:
		for key, inner := range v {
			flatten(path+"."+key, inner, into)
		}
	}
}
