package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kbench/kbench/results"
)

// report is the JSON file.
type report struct {
	StartedAt time.Time    `json:"startedAt"`
	Host      results.Host `json:"host"`
	Rounds    int          `json:"rounds"`
	Scale     float64      `json:"scale"` // of the messages: 1 is full length
	// Load is the system's load average of the last minute before; 0 where it is not told.
	Load    float64   `json:"loadAverage,omitempty"`
	Figures []summary `json:"figures"`
}

// load reads the load average, where the system tells it.
func load() float64 {
	data, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(data), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

// busy says that the machine had other things to do.
func busy(load float64) string {
	if load <= float64(runtime.NumCPU()) {
		return ""
	}
	return fmt.Sprintf("the machine was busy before this began: load average %.1f on %d processors; no figure is worth quoting", load, runtime.NumCPU())
}

// save writes a report as a JSON file.
func save(path string, report any) error {
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// write is the table of one figure.
func (s *summary) write(to io.Writer, rounds int) {
	fmt.Fprintf(to, "\n%s: %s\n", s.ID, s.Title)
	set := s.Settings
	fmt.Fprintf(to, "  n=%d size=%d acks=%s c=%s idem=%t inflight=%d batch=%d request=%d linger=%s, %d rounds\n",
		set.N, set.Size, set.Acks, set.Codec, set.Idempotent, set.InFlight, set.Batch, set.Request, set.Linger, rounds)
	for i := range s.Metrics {
		s.Metrics[i].write(to)
	}
	for _, n := range s.Notes {
		fmt.Fprintf(to, "  note: %s\n", n)
	}
	for _, f := range s.Failed {
		fmt.Fprintf(to, "  FAILED: %s\n", f)
	}
}

func (s *metricSummary) write(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  %s\tmedian\tmin–max\t÷ %s", s.Title, s.Over)
	for _, x := range s.extra {
		fmt.Fprintf(w, "\t%s", x.title)
	}
	fmt.Fprintln(w)
	for i := range s.Rows {
		r := &s.Rows[i]
		fmt.Fprintf(w, "  %s\t%s\t%s – %s\t%s", r.Client, s.unit.format(r.Median), s.unit.format(r.Min), s.unit.format(r.Max), r.Ratio)
		for _, x := range s.extra {
			fmt.Fprintf(w, "\t%s", x.of(r))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
	if s.Verdict != "" {
		fmt.Fprintf(to, "  %s\n", s.Verdict)
	}
}

func (x extraKey) of(r *row) string {
	v, ok := r.Extra[x.key]
	switch {
	case !ok:
		return "–"
	case x.verb == "":
		return x.unit.format(v)
	}
	return fmt.Sprintf(x.verb, v)
}

func (r *ratio) String() string {
	switch {
	case r == nil:
		return "–"
	case r.Level == 1:
		return fmt.Sprintf("%.3f (one round)", r.Estimate)
	}
	return fmt.Sprintf("%.3f (%.3f–%.3f, %s)", r.Estimate, r.Lower, r.Upper, strings.TrimSuffix(fmt.Sprintf("%.1f", 100*r.Level), ".0")+" %")
}
