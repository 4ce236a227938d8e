package hist

import (
	"bufio"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"
)

// Lines of ours in the log. To other readers they are comments.
const (
	// headlinePrefix names the series that stands untagged.
	headlinePrefix = "#[kbench headline: "
	// exactPrefix gives what the histogram in the next line cannot say of itself.
	exactPrefix = "#[kbench exact: "
	exactFormat = exactPrefix + "min=%d max=%d sum=%s clamped=%d negative=%d]"
)

const legend = `"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"`

// LogWriter writes a histogram log in version 1.3 of the HdrHistogram project's format, which
// its HistogramLogProcessor and hdrhistogram-go read. Times have milliseconds, and the maximum
// of an interval is in milliseconds too. Before each histogram a comment line holds what the
// encoding loses: exact minimum, maximum and sum, and the values that were clamped or negative.
//
// Not safe for concurrent use.
type LogWriter struct {
	to      *bufio.Writer
	encoder encoder
}

// NewLogWriter starts a log. Intervals count from start, which is cut to the millisecond.
// Headline names the series written without a tag.
func NewLogWriter(to io.Writer, start time.Time, headline string) (*LogWriter, error) {
	if err := checkTag(headline); err != nil {
		return nil, err
	}
	if start.Unix() < 0 {
		return nil, fmt.Errorf("hist: a histogram log cannot start at %v: the format counts seconds from 1970", start)
	}
	w := &LogWriter{to: bufio.NewWriter(to)}
	seconds := fmt.Sprintf("%d.%03d", start.Unix(), start.Nanosecond()/1e6)
	_, err := fmt.Fprintf(w.to, "#[Histogram log format version 1.3]\n%s%s]\n#[StartTime: %s (seconds since epoch), %s]\n#[BaseTime: %s (seconds since epoch)]\n%s\n",
		headlinePrefix, headline, seconds, start.UTC().Format("2006-01-02T15:04:05.000Z"), seconds, legend)
	return w, err
}

// Write adds one interval of one series, from at for length, both cut to the millisecond. The
// tag is empty for the headline; it may hold no comma, blank or line break. An interval before
// the start of the log cannot be written: readers of the format know no minus sign.
func (w *LogWriter) Write(tag string, at, length time.Duration, h *Histogram) error {
	if at < 0 || length < 0 {
		return fmt.Errorf("hist: interval at %v of length %v cannot stand in a histogram log: both must not be negative", at, length)
	}
	if tag != "" {
		if err := checkTag(tag); err != nil {
			return err
		}
		tag = "Tag=" + tag + ","
	}
	text, err := w.encoder.encode(h)
	if err != nil {
		return fmt.Errorf("hist: cannot encode a histogram: %w", err)
	}
	if h.count > 0 {
		fmt.Fprintf(w.to, exactFormat+"\n", h.min, h.max, h.bigSum(), h.clamped, h.negative)
	}
	_, err = fmt.Fprintf(w.to, "%s%s,%s,%.3f,%s\n", tag, decimal(at), decimal(length), float64(max(h.Max(), 0))/1e6, text)
	return err
}

// Flush writes what is still buffered; call it at the end.
func (w *LogWriter) Flush() error { return w.to.Flush() }

func decimal(d time.Duration) string {
	return fmt.Sprintf("%d.%03d", d/time.Second, d%time.Second/time.Millisecond)
}

func checkTag(tag string) error {
	if tag == "" || strings.ContainsAny(tag, ", \t\r\n]=") {
		return fmt.Errorf("hist: %q cannot name a series in a histogram log: it must not be empty or hold a comma, blank, line break, '=' or ']'", tag)
	}
	return nil
}

// bigSum is the exact sum.
func (h *Histogram) bigSum() *big.Int {
	sum := new(big.Int).SetInt64(int64(h.sumHi))
	return sum.Lsh(sum, 64).Add(sum, new(big.Int).SetUint64(h.sumLo))
}
