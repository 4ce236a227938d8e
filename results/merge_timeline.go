package results

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kbench/kbench/results/hist"
)

// windowsOf are a run's windows, with their histograms, as its files have them.
func (d *Dir) windowsOf(run *Run) ([]Window, error) {
	rows, err := d.ReadTimeline(run)
	if err != nil {
		return nil, err
	}
	windows := make([]Window, len(rows))
	at := map[int64]int{} // by milliseconds, which is what the log has
	for i := range rows {
		windows[i] = rows[i].window()
		at[milliseconds(rows[i].StartNs)] = i
	}
	err = d.EachInterval(run, func(name string, start, length int64, h *hist.Histogram) error {
		i, known := at[milliseconds(start)]
		if !known { // an interval without a row
			i = len(windows)
			at[milliseconds(start)] = i
			windows = append(windows, Window{StartNs: start, LengthNs: length, Lag: -1, Series: map[string]*hist.Histogram{}})
		}
		if before := windows[i].Series[name]; before != nil {
			before.Merge(h)
			return nil
		}
		windows[i].Series[name] = h
		return nil
	})
	return windows, err
}

func milliseconds(ns int64) int64 { return int64(math.Round(float64(ns) / 1e6)) }

// window is a row without its histograms.
func (r *TimelineRow) window() Window {
	return Window{
		StartNs: r.StartNs, LengthNs: r.LengthNs, Attempted: r.Attempted, Acked: r.Acked, Failed: r.Failed, Unknown: r.Unknown,
		Received: r.Received, AckedBytes: r.AckedBytes, Lag: r.Lag, InFlight: r.InFlight, LatenessNs: r.LatenessNs, RSSBytes: r.RSSBytes, Faults: r.Faults,
		Series: map[string]*hist.Histogram{},
	}
}

// add adds another shard's window of the same time.
func (w *Window) add(o *Window) {
	w.LengthNs = max(w.LengthNs, o.LengthNs)
	w.Attempted += o.Attempted
	w.Acked += o.Acked
	w.Failed += o.Failed
	w.Unknown += o.Unknown
	w.Received += o.Received
	w.AckedBytes += o.AckedBytes
	w.InFlight += o.InFlight
	w.LatenessNs = max(w.LatenessNs, o.LatenessNs)
	w.RSSBytes += o.RSSBytes // as that of their generators
	if o.Lag >= 0 {
		w.Lag = max(w.Lag, 0) + o.Lag
	}
	if o.Faults != "" {
		kinds := strings.Split(w.Faults+"+"+o.Faults, "+")
		slices.Sort(kinds)
		kinds = slices.DeleteFunc(slices.Compact(kinds), func(kind string) bool { return kind == "" })
		w.Faults = strings.Join(kinds, "+")
	}
	for name, h := range o.Series {
		if w.Series[name] == nil {
			w.Series[name] = hist.New()
		}
		w.Series[name].Merge(h)
	}
}

// mergeWindows adds up windows of the same time. A shard that started later has its windows counted to
// those that they lie in for the most part, so that none is cut.
func mergeWindows(parts []runPart) ([]Window, error) {
	merged := map[int64]*Window{}
	var length int64
	for i := range parts {
		windows, err := parts[i].shard.dir.windowsOf(parts[i].Run)
		if err != nil {
			return nil, err
		}
		for j := range windows { // the same for all: the workload's interval; the last may be shorter
			length = max(length, windows[j].LengthNs)
		}
		for j := range windows {
			w := &windows[j]
			place := int64(math.Round(float64(w.StartNs+parts[i].offset) / float64(max(length, 1))))
			if w.StartNs >= 0 {
				place = max(place, 0) // what was measured stays in the measured phase
			} else {
				place = min(place, -1)
			}
			if merged[place] == nil {
				merged[place] = &Window{StartNs: place * length, Lag: -1, Series: map[string]*hist.Histogram{}}
			}
			merged[place].add(w)
		}
	}
	out := make([]Window, 0, len(merged))
	for _, place := range slices.Sorted(maps.Keys(merged)) {
		out = append(out, *merged[place])
	}
	return out, nil
}
