package results

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// TimelineRow is one window of a run's timeline CSV. The file has one row per window under a
// header whose names carry the units:
//
//	start_s, length_s                 the window, since the run's start; negative in the warm-up
//	attempted, acked, failed, unknown, received         messages
//	acked_bytes                       key and value bytes of acked messages
//	acked_per_s, acked_bytes_per_s, received_per_s      the same, by the window's length
//	lag_messages                      consumers' lag at the end; empty when unknown
//	in_flight_messages                accepted and not decided at the end
//	lateness_ms                       largest lateness of a pacer in the window
//	rss_bytes                         resident size of the generator's process at the end; empty when unknown
//	faults                            kinds of the faults in force in the window, joined by +
//	NAME_count, NAME_p50_ms, NAME_p99_ms, NAME_max_ms   one group for each series of the run;
//	                                  the latencies are empty when the count is 0
//
// Seconds and milliseconds have as many decimals as nanoseconds need.
type TimelineRow struct {
	StartNs, LengthNs                           int64
	Attempted, Acked, Failed, Unknown, Received int64
	AckedBytes                                  int64
	// The rates are per second of the window; 0 for a window without length.
	AckedPerSecond, AckedBytesPerSecond, ReceivedPerSecond float64
	Lag                                                    int64 // -1 when unknown
	InFlight                                               int64
	LatenessNs                                             int64
	RSSBytes                                               int64  // 0 when unknown
	Faults                                                 string // "stall", "cut+delay"; empty: none
	// Series has an entry for every series with values in the window.
	Series map[string]TimelineSeries
}

// TimelineSeries sums up one series in one window.
type TimelineSeries struct {
	Count, P50Ns, P99Ns, MaxNs int64
}

// Row is the window as the timeline has it.
func (w *Window) Row() TimelineRow {
	row := TimelineRow{
		StartNs: w.StartNs, LengthNs: w.LengthNs,
		Attempted: w.Attempted, Acked: w.Acked, Failed: w.Failed, Unknown: w.Unknown, Received: w.Received,
		AckedBytes: w.AckedBytes, Lag: w.Lag, InFlight: w.InFlight, LatenessNs: w.LatenessNs, RSSBytes: w.RSSBytes, Faults: w.Faults,
		Series: map[string]TimelineSeries{},
	}
	if w.LengthNs > 0 {
		seconds := float64(w.LengthNs) / 1e9
		row.AckedPerSecond = float64(w.Acked) / seconds
		row.AckedBytesPerSecond = float64(w.AckedBytes) / seconds
		row.ReceivedPerSecond = float64(w.Received) / seconds
	}
	for name, h := range w.Series {
		if s := Summarise(h); s.Count > 0 {
			row.Series[name] = TimelineSeries{s.Count, s.P50Ns, s.P99Ns, s.MaxNs}
		}
	}
	return row
}

// column is one column of the CSV that is there in every run: how to write and to read it.
type column struct {
	name string
	text func(*TimelineRow) string
	take func(*TimelineRow, string) error
}

var columns = []column{
	scaled("start_s", 1e9, func(r *TimelineRow) *int64 { return &r.StartNs }),
	scaled("length_s", 1e9, func(r *TimelineRow) *int64 { return &r.LengthNs }),
	scaled("attempted", 1, func(r *TimelineRow) *int64 { return &r.Attempted }),
	scaled("acked", 1, func(r *TimelineRow) *int64 { return &r.Acked }),
	scaled("failed", 1, func(r *TimelineRow) *int64 { return &r.Failed }),
	scaled("unknown", 1, func(r *TimelineRow) *int64 { return &r.Unknown }),
	scaled("received", 1, func(r *TimelineRow) *int64 { return &r.Received }),
	scaled("acked_bytes", 1, func(r *TimelineRow) *int64 { return &r.AckedBytes }),
	rate("acked_per_s", func(r *TimelineRow) *float64 { return &r.AckedPerSecond }),
	rate("acked_bytes_per_s", func(r *TimelineRow) *float64 { return &r.AckedBytesPerSecond }),
	rate("received_per_s", func(r *TimelineRow) *float64 { return &r.ReceivedPerSecond }),
	perhaps("lag_messages", -1, func(r *TimelineRow) *int64 { return &r.Lag }),
	scaled("in_flight_messages", 1, func(r *TimelineRow) *int64 { return &r.InFlight }),
	scaled("lateness_ms", 1e6, func(r *TimelineRow) *int64 { return &r.LatenessNs }),
	perhaps("rss_bytes", 0, func(r *TimelineRow) *int64 { return &r.RSSBytes }),
	{
		name: "faults",
		text: func(r *TimelineRow) string { return r.Faults },
		take: func(r *TimelineRow, text string) error { r.Faults = text; return nil },
	},
}

// scaled is a column of an integer, shown in units of so many of it.
func scaled(name string, unit int64, field func(*TimelineRow) *int64) column {
	return column{
		name: name,
		text: func(r *TimelineRow) string { return formatScaled(*field(r), unit) },
		take: func(r *TimelineRow, text string) (err error) {
			*field(r), err = parseScaled(text, unit)
			return err
		},
	}
}

func rate(name string, field func(*TimelineRow) *float64) column {
	return column{
		name: name,
		text: func(r *TimelineRow) string { return strconv.FormatFloat(*field(r), 'f', -1, 64) },
		take: func(r *TimelineRow, text string) (err error) {
			*field(r), err = strconv.ParseFloat(text, 64)
			if err == nil && (math.IsNaN(*field(r)) || math.IsInf(*field(r), 0)) {
				err = errors.New("not a finite number")
			}
			return err
		},
	}
}

// perhaps is a column of an integer that is empty where it is not known, which unknown stands for: what a
// row holds until it is told otherwise.
func perhaps(name string, unknown int64, field func(*TimelineRow) *int64) column {
	c := scaled(name, 1, field)
	text, take := c.text, c.take
	c.text = func(r *TimelineRow) string {
		if *field(r) <= unknown {
			return ""
		}
		return text(r)
	}
	c.take = func(r *TimelineRow, cell string) error {
		if cell == "" {
			return nil
		}
		return take(r, cell)
	}
	return c
}

// formatScaled divides by 1, 10^6 or 10^9 without losing a digit.
func formatScaled(n, unit int64) string {
	if unit == 1 {
		return strconv.FormatInt(n, 10)
	}
	sign := ""
	if n < 0 {
		sign = "-"
	}
	abs := max(n, -n)
	whole, part := abs/unit, abs%unit
	digits := len(strconv.FormatInt(unit, 10)) - 1
	text := strings.TrimRight(fmt.Sprintf("%s%d.%0*d", sign, whole, digits, part), "0")
	return strings.TrimSuffix(text, ".")
}

func parseScaled(text string, unit int64) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n <= math.MaxInt64/unit && n >= -math.MaxInt64/unit {
		return n * unit, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || unit == 1 || !(math.Abs(f) < 9e18/float64(unit)) {
		return 0, fmt.Errorf("%.40q is no number that can stand here", text)
	}
	return int64(math.Round(f * float64(unit))), nil
}

// Suffixes of the columns of a series.
const (
	countSuffix = "_count"
	p50Suffix   = "_p50_ms"
	p99Suffix   = "_p99_ms"
	maxSuffix   = "_max_ms"
)

func writeTimeline(to io.Writer, windows []Window) error {
	buffered := bufio.NewWriter(to)
	w := csv.NewWriter(buffered)
	names := seriesOf(windows)
	header := make([]string, 0, len(columns)+4*len(names))
	for _, c := range columns {
		header = append(header, c.name)
	}
	for _, name := range names {
		header = append(header, name+countSuffix, name+p50Suffix, name+p99Suffix, name+maxSuffix)
	}
	if err := w.Write(header); err != nil {
		return err
	}
	for i := range windows {
		row := windows[i].Row()
		cells := header[:0:0]
		for _, c := range columns {
			cells = append(cells, c.text(&row))
		}
		for _, name := range names {
			cells = append(cells, seriesCells(row.Series[name])...)
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return errors.Join(w.Error(), buffered.Flush())
}

func seriesCells(s TimelineSeries) []string {
	if s.Count == 0 {
		return []string{"0", "", "", ""}
	}
	return []string{strconv.FormatInt(s.Count, 10), formatScaled(s.P50Ns, 1e6), formatScaled(s.P99Ns, 1e6), formatScaled(s.MaxNs, 1e6)}
}

// ReadTimeline reads the run's timeline CSV.
func (d *Dir) ReadTimeline(run *Run) ([]TimelineRow, error) {
	f, err := d.open(run.Timeline)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseTimeline(d.join(run.Timeline), f)
}

// Bounds of a timeline file: a day of windows of 100 ms.
const (
	maxTimeline     = 256 << 20
	maxTimelineRows = 1_000_000
)

// ParseTimeline reads a timeline CSV; path is for errors, which are *FileError. Columns are
// found by name: unknown ones are passed over, and those that are not there stay 0, lag -1.
func ParseTimeline(path string, from io.Reader) ([]TimelineRow, error) {
	limited := &io.LimitedReader{R: from, N: maxTimeline}
	r := csv.NewReader(limited)
	r.ReuseRecord = true
	first, err := r.Read()
	if err != nil {
		return nil, timelineError(path, err)
	}
	if !slices.Contains(first, columns[0].name) {
		return nil, &FileError{path, 1, fmt.Errorf("no column %s: not a timeline of kbench", columns[0].name)}
	}
	header := slices.Clone(first)
	takers := takersOf(header)
	var rows []TimelineRow
	for {
		cells, err := r.Read()
		if limited.N <= 0 || len(rows) == maxTimelineRows {
			return nil, &FileError{Path: path, Err: fmt.Errorf("larger than %d bytes or %d rows", maxTimeline, maxTimelineRows)}
		}
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, timelineError(path, err)
		}
		row := TimelineRow{Lag: -1, Series: map[string]TimelineSeries{}}
		for i, cell := range cells {
			if err := takers[i](&row, cell); err != nil {
				line, _ := r.FieldPos(i)
				return nil, &FileError{path, line, fmt.Errorf("column %s: %w", header[i], err)}
			}
		}
		rows = append(rows, row)
	}
}

// timelineError keeps the line of a CSV error and drops its own way of saying it.
func timelineError(path string, err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return &FileError{path, parse.Line, parse.Err}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &FileError{Path: path, Err: err}
}

// takersOf finds who takes the cells of each column.
func takersOf(header []string) []func(*TimelineRow, string) error {
	takers := make([]func(*TimelineRow, string) error, len(header))
	for i, name := range header {
		takers[i] = seriesTaker(name)
		for _, c := range columns {
			if c.name == name {
				takers[i] = c.take
			}
		}
	}
	return takers
}

// seriesTaker takes a column of a series. A series stays without an entry while its cells are
// empty or 0, which is how an empty window is written.
func seriesTaker(column string) func(*TimelineRow, string) error {
	field, unit, name := (*TimelineSeries).count, int64(1e6), ""
	switch {
	case strings.HasSuffix(column, countSuffix):
		unit, name = 1, strings.TrimSuffix(column, countSuffix)
	case strings.HasSuffix(column, p50Suffix):
		field, name = (*TimelineSeries).p50, strings.TrimSuffix(column, p50Suffix)
	case strings.HasSuffix(column, p99Suffix):
		field, name = (*TimelineSeries).p99, strings.TrimSuffix(column, p99Suffix)
	case strings.HasSuffix(column, maxSuffix):
		field, name = (*TimelineSeries).max, strings.TrimSuffix(column, maxSuffix)
	default:
		return func(*TimelineRow, string) error { return nil }
	}
	return func(r *TimelineRow, text string) error {
		if text == "" || text == "0" && unit == 1 {
			return nil
		}
		n, err := parseScaled(text, unit)
		s := r.Series[name]
		*field(&s) = n
		r.Series[name] = s
		return err
	}
}

func (s *TimelineSeries) count() *int64 { return &s.Count }
func (s *TimelineSeries) p50() *int64   { return &s.P50Ns }
func (s *TimelineSeries) p99() *int64   { return &s.P99Ns }
func (s *TimelineSeries) max() *int64   { return &s.MaxNs }
