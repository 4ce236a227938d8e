package hist

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// maxLine bounds a line of a log; a full histogram of our layout takes 240 KB.
const maxLine = 4 << 20

// Entry is one interval of one series in a log.
type Entry struct {
	// Tag is the series; empty for the untagged one.
	Tag string
	// Start is the beginning of the interval and Length its length, to the microsecond.
	Start  time.Time
	Length time.Duration
	// Histogram holds the values, in the unit of the log: nanoseconds in ours.
	Histogram *Histogram
	// Line is where it stood, from 1.
	Line int
}

// LogError says which line of a log cannot be read, and why.
type LogError struct {
	Line int // from 1
	Err  error
}

func (e *LogError) Error() string { return fmt.Sprintf("histogram log, line %d: %v", e.Line, e.Err) }

// Unwrap is the reason.
func (e *LogError) Unwrap() error { return e.Err }

// LogReader reads histogram logs in the HdrHistogram project's format up to version 1.3, our
// own and others', with histograms of any layout (of up to a million counters) in the compressed
// V2 encoding. Memory is bounded by the longest line allowed, not by the log. Not safe for
// concurrent use.
type LogReader struct {
	from     *bufio.Scanner
	line     int
	headline string
	start    float64 // seconds; NaN until known
	base     float64
	exact    *exact // of the next interval; nil without
	want     func(tag string) bool
}

// NewLogReader reads a log from its beginning.
func NewLogReader(from io.Reader) *LogReader {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &LogReader{from: scanner, start: math.NaN(), base: math.NaN()}
}

// Headline is the name of the untagged series, if the log is ours and Next was called once.
func (r *LogReader) Headline() string { return r.headline }

// Start is the start time of the log as known so far: the one it states, else that of its
// first interval; zero before either.
func (r *LogReader) Start() time.Time {
	if math.IsNaN(r.start) {
		return time.Time{}
	}
	return instant(r.start)
}

// Next is the next interval; io.EOF after the last one and *LogError for a line that cannot
// be read.
func (r *LogReader) Next() (*Entry, error) {
	for r.from.Scan() {
		r.line++
		text := strings.TrimSpace(r.from.Text())
		var err error
		switch {
		case text == "" || text[0] == '"':
			continue
		case text[0] == '#':
			err = r.comment(text)
		default:
			var entry *Entry
			if entry, err = r.interval(text); entry != nil {
				return entry, nil
			}
		}
		if err != nil {
			return nil, &LogError{r.line, err}
		}
	}
	if err := r.from.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("longer than %d bytes", maxLine)
		}
		return nil, &LogError{r.line + 1, err}
	}
	return nil, io.EOF
}

// comment takes what is meant for us; all else is somebody's remark.
func (r *LogReader) comment(text string) (err error) {
	if rest, ok := strings.CutPrefix(text, "#[StartTime:"); ok {
		r.start, err = leadingSeconds(rest)
	} else if rest, ok := strings.CutPrefix(text, "#[BaseTime:"); ok {
		r.base, err = leadingSeconds(rest)
	} else if rest, ok := strings.CutPrefix(text, headlinePrefix); ok {
		r.headline, _, _ = strings.Cut(rest, "]")
	} else if strings.HasPrefix(text, exactPrefix) {
		r.exact, err = parseExact(text)
	}
	return err
}

// Only has Next pass over the intervals whose tag is not wanted, without decoding them, which is most
// of the work; what they hold is then not checked.
func (r *LogReader) Only(want func(tag string) bool) { r.want = want }

// interval is nil for one that is not wanted.
func (r *LogReader) interval(text string) (*Entry, error) {
	tag := ""
	if rest, ok := strings.CutPrefix(text, "Tag="); ok {
		if tag, text, ok = strings.Cut(rest, ","); !ok {
			return nil, errors.New("nothing follows the tag")
		}
	}
	fields := strings.Split(text, ",")
	if len(fields) != 4 {
		return nil, fmt.Errorf("%d fields instead of start, length, maximum and histogram", len(fields))
	}
	at, err := seconds(fields[0])
	if err != nil {
		return nil, err
	}
	length, err := seconds(fields[1])
	if err != nil {
		return nil, err
	}
	start := instant(r.absolute(at))
	if r.want != nil && !r.want(tag) {
		r.exact = nil
		return nil, nil
	}
	h, err := decode(fields[3])
	if err != nil {
		return nil, err
	}
	if r.exact != nil {
		err = r.exact.apply(h)
		if r.exact = nil; err != nil {
			return nil, err
		}
	}
	return &Entry{Tag: tag, Start: start, Length: micro(length), Histogram: h, Line: r.line}, nil
}

// absolute is an interval's start since 1970. A log that states no base time is understood
// like the HdrHistogram project's HistogramLogReader does: stamps more than a year before the
// start time are relative to it.
func (r *LogReader) absolute(at float64) float64 {
	const year = 365 * 24 * 3600
	if math.IsNaN(r.start) {
		r.start = at
	}
	if math.IsNaN(r.base) {
		r.base = 0
		if at < r.start-year {
			r.base = r.start
		}
	}
	return r.base + at
}

// exact is what the line of ours before an interval says of it.
type exact struct {
	min, max, clamped, negative int64
	sum                         *big.Int
}

func parseExact(text string) (*exact, error) {
	e := &exact{sum: new(big.Int)}
	var sum string
	if len(text) > 256 {
		return nil, errors.New("line of exact figures too long")
	}
	if _, err := fmt.Sscanf(text, exactFormat, &e.min, &e.max, &sum, &e.clamped, &e.negative); err != nil {
		return nil, fmt.Errorf("line of exact figures: %w", err)
	}
	if _, ok := e.sum.SetString(sum, 10); !ok || e.sum.BitLen() > 126 {
		return nil, fmt.Errorf("line of exact figures: %q is no sum", sum)
	}
	if e.min > e.max || e.clamped < 0 || e.negative < 0 {
		return nil, errors.New("line of exact figures contradicts itself")
	}
	return e, nil
}

// apply refuses figures that belong to another histogram.
func (e *exact) apply(h *Histogram) error {
	if h.count == 0 || e.clamped > h.count-e.negative || e.negative > h.count {
		return errors.New("the exact figures before it do not belong to this histogram")
	}
	h.min, h.max, h.clamped, h.negative = e.min, e.max, e.clamped, e.negative
	mask := new(big.Int).SetUint64(math.MaxUint64)
	h.sumLo = new(big.Int).And(e.sum, mask).Uint64()
	h.sumHi = new(big.Int).And(new(big.Int).Rsh(e.sum, 64), mask).Uint64()
	return nil
}

// leadingSeconds reads the number at the beginning of the rest of a comment.
func leadingSeconds(text string) (float64, error) {
	text, _, _ = strings.Cut(strings.TrimSpace(text), " ")
	return seconds(strings.TrimRight(text, "],"))
}

// maxSeconds is in the year 5138.
const maxSeconds = 100_000_000_000

func seconds(text string) (float64, error) {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s >= 0 && s <= maxSeconds) {
		return 0, fmt.Errorf("%.40q is no time in seconds", text)
	}
	return s, nil
}

func instant(seconds float64) time.Time {
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(micro(part))).UTC()
}

// micro rounds to what a float64 of seconds since 1970 can hold. Lengths of centuries are cut.
func micro(seconds float64) time.Duration {
	return time.Duration(math.Round(min(seconds, 9e9)*1e6)) * time.Microsecond
}
