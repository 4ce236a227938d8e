package results

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/kbench/kbench/results/hist"
)

var pointID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// WriteRun writes the files of a finished run beside result.json and sets run.Log and
// run.Timeline to their names, "<point>-r<repeat>.hlog" and ".csv".
//
// The log holds the measured phase and the drain: windows that start before the run's
// StartedAt (warm-up) stand in the timeline only, so that the intervals of the log sum to the
// run's figures. Its untagged series is the Headline; it has an interval in every window, the
// other series in those where they are not empty.
func (d *Dir) WriteRun(point *Point, run *Run, windows []Window) error {
	base, err := fileBase(point, run)
	if err != nil {
		return err
	}
	err = d.WriteFile(base+".hlog", func(w io.Writer) error { return writeLog(w, run, windows) })
	if err != nil {
		return err
	}
	err = d.WriteFile(base+".csv", func(w io.Writer) error { return writeTimeline(w, windows) })
	if err != nil {
		return err
	}
	run.Log, run.Timeline = base+".hlog", base+".csv"
	return nil
}

// fileBase is what the names of a run's files begin with.
func fileBase(point *Point, run *Run) (string, error) {
	if !pointID.MatchString(point.ID) || run.Repeat < 0 {
		return "", fmt.Errorf("results: point %q, repeat %d cannot name files", point.ID, run.Repeat)
	}
	return fmt.Sprintf("%s-r%d", point.ID, run.Repeat), nil
}

// seriesOf are the names of all series that have values, sorted.
func seriesOf(windows []Window) []string {
	names := map[string]bool{}
	for _, w := range windows {
		for name, h := range w.Series {
			if h != nil && h.Count() > 0 {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func writeLog(to io.Writer, run *Run, windows []Window) error {
	names := map[string]bool{}
	for _, name := range seriesOf(windows) {
		names[name] = true
	}
	headline := Headline(names)
	log, err := hist.NewLogWriter(to, run.StartedAt, headline)
	if err != nil {
		return err
	}
	delete(names, headline)
	tagged := slices.Sorted(maps.Keys(names))
	for i := range windows {
		if windows[i].StartNs < 0 {
			continue
		}
		if err := writeWindow(log, &windows[i], headline, tagged); err != nil {
			return err
		}
	}
	return log.Flush()
}

func writeWindow(log *hist.LogWriter, w *Window, headline string, tagged []string) error {
	at, length := time.Duration(w.StartNs), time.Duration(w.LengthNs)
	first := w.Series[headline]
	if first == nil {
		first = hist.New()
	}
	if err := log.Write("", at, length, first); err != nil {
		return err
	}
	for _, name := range tagged {
		if h := w.Series[name]; h != nil && h.Count() > 0 {
			if err := log.Write(name, at, length, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadSeries reads the run's log and merges its intervals: the histograms of the whole run by
// series, of all series or of those named.
func (d *Dir) ReadSeries(run *Run, series ...string) (map[string]*hist.Histogram, error) {
	whole := map[string]*hist.Histogram{}
	err := d.EachInterval(run, func(name string, _, _ int64, h *hist.Histogram) error {
		if whole[name] == nil {
			whole[name] = hist.New()
		}
		whole[name].Merge(h)
		return nil
	}, series...)
	if err != nil {
		return nil, err
	}
	return whole, nil
}

// EachInterval reads the run's log and hands over each interval of each series, in the order
// of the log: its start since the run's StartedAt and its length in nanoseconds (the log has
// milliseconds), and its values, which the callee may keep. It stops with the callee's first
// error. Empty intervals are left out. With names of series only those are read, which is that
// much faster.
func (d *Dir) EachInterval(run *Run, each func(series string, startNs, lengthNs int64, h *hist.Histogram) error, series ...string) error {
	f, err := d.open(run.Log)
	if err != nil {
		return err
	}
	defer f.Close()
	log := hist.NewLogReader(f)
	if len(series) > 0 {
		log.Only(func(tag string) bool { return slices.Contains(series, seriesName(tag, log.Headline())) })
	}
	for {
		entry, err := log.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &FileError{Path: d.join(run.Log), Err: err}
		}
		if entry.Histogram.Count() == 0 {
			continue
		}
		if err := each(seriesName(entry.Tag, log.Headline()), int64(entry.Start.Sub(log.Start())), int64(entry.Length), entry.Histogram); err != nil {
			return err
		}
	}
}

// seriesName is the series of an interval: its tag, or the headline of the log when it has none.
func seriesName(tag, headline string) string {
	switch {
	case tag != "":
		return tag
	case headline != "":
		return headline
	}
	return SeriesResponse
}
