package hist_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/results/hist"
)

var started = time.Date(2026, 5, 4, 3, 2, 1, 987_654_321, time.UTC)

// sample is a log of three windows with two series, and the whole of each.
func sample(t testing.TB) (log []byte, whole map[string]*hist.Histogram) {
	t.Helper()
	var to bytes.Buffer
	w, err := hist.NewLogWriter(&to, started, "response")
	require.NoError(t, err)
	whole = map[string]*hist.Histogram{"": hist.New(), "request.produce": hist.New()}
	values := latencies(3000)
	for i := range 3 {
		for tag, total := range whole {
			h := hist.New()
			for _, v := range values[i*1000 : i*1000+1000] {
				h.Record(v + int64(len(tag)))
			}
			total.Merge(h)
			require.NoError(t, w.Write(tag, time.Duration(i)*1500*time.Millisecond, 1500*time.Millisecond, h))
		}
	}
	require.NoError(t, w.Flush())
	return to.Bytes(), whole
}

func readAll(from io.Reader) (r *hist.LogReader, entries []*hist.Entry, err error) {
	r = hist.NewLogReader(from)
	for {
		entry, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r, entries, nil
		}
		if err != nil {
			return r, entries, err
		}
		entries = append(entries, entry)
	}
}

func TestLogRoundTrip(t *testing.T) {
	log, whole := sample(t)
	r, entries, err := readAll(bytes.NewReader(log))
	require.NoError(t, err)
	require.Equal(t, "response", r.Headline())
	require.Equal(t, started.Truncate(time.Millisecond), r.Start())
	require.Len(t, entries, 6)
	sum := map[string]*hist.Histogram{"": hist.New(), "request.produce": hist.New()}
	for i, entry := range entries {
		require.Equal(t, started.Truncate(time.Millisecond).Add(time.Duration(i/2)*1500*time.Millisecond), entry.Start)
		require.Equal(t, 1500*time.Millisecond, entry.Length)
		sum[entry.Tag].Merge(entry.Histogram)
	}
	for tag := range whole {
		requireSame(t, whole[tag], sum[tag])
	}
}

func TestLogLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := hist.New()
		for _, v := range rapid.SliceOfN(rapid.OneOf(value(), rapid.Int64()), 0, 200).Draw(t, "values") {
			h.RecordN(v, rapid.Int64Range(1, 1<<40).Draw(t, "n"))
		}
		var to bytes.Buffer
		w, err := hist.NewLogWriter(&to, started, "e2e")
		require.NoError(t, err)
		at := time.Duration(rapid.Int64Range(0, 1e7).Draw(t, "at")) * time.Millisecond
		require.NoError(t, w.Write("x", at, time.Second, h))
		require.NoError(t, w.Flush())
		_, entries, err := readAll(&to)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, started.Truncate(time.Millisecond).Add(at), entries[0].Start)
		requireSame(t, h, entries[0].Histogram)
	})
}

func TestLogOfHugeCounts(t *testing.T) {
	h := hist.New()
	h.RecordN(ms(1), 1<<62+1) // takes the whole of the ninth byte
	h.RecordN(ms(2), 1<<57+3)
	var to bytes.Buffer
	w, err := hist.NewLogWriter(&to, started, "response")
	require.NoError(t, err)
	require.NoError(t, w.Write("", 0, time.Second, h))
	require.NoError(t, w.Flush())
	theirs, err := hdrhistogram.NewHistogramLogReader(&to).NextIntervalHistogram()
	require.NoError(t, err)
	require.True(t, h.Export().Equals(theirs))
}

func TestExactFiguresAreOfOneInterval(t *testing.T) {
	log, _ := sample(t)
	lines := strings.SplitAfter(string(log), "\n")
	_, entries, err := readAll(strings.NewReader(lines[5] + lines[6] + lines[6]))
	require.NoError(t, err)
	require.Len(t, entries, 2)
	ours, bare := entries[0].Histogram, entries[1].Histogram
	require.True(t, ours.Export().Equals(bare.Export()))
	require.NotEqual(t, ours.Max(), bare.Max(), "without the line before it only the bucket is known")
	within(t, ours.Max(), bare.Max())
}

// TestCheck17Interop reads our log with the HdrHistogram project's HistogramLogProcessor when
// KBENCH_HDR_JAR names its jar (Maven: org.hdrhistogram:HdrHistogram), and with hdrhistogram-go's
// reader otherwise.
func TestCheck17Interop(t *testing.T) {
	log, whole := sample(t)
	jar := os.Getenv("KBENCH_HDR_JAR")
	for tag, want := range whole {
		count, p99, maximum := int64(0), float64(0), float64(0)
		if jar != "" {
			count, p99, maximum = readWithJava(t, jar, log, tag)
		} else {
			count, p99, maximum = readWithGo(t, log, tag)
		}
		require.Equal(t, want.Count(), count, "tag %q", tag)
		require.InEpsilon(t, float64(want.Quantile(0.99))/1e6, p99, 0.002, "tag %q", tag)
		require.InEpsilon(t, float64(want.Max())/1e6, maximum, 0.002, "tag %q", tag)
	}
}

func readWithGo(t *testing.T, log []byte, tag string) (count int64, p99, maximum float64) {
	r := hdrhistogram.NewHistogramLogReader(bytes.NewReader(log))
	total := hdrhistogram.New(hist.Lowest, hist.Highest, hist.Digits)
	for seen := 0; ; {
		h, err := r.NextIntervalHistogram()
		require.NoError(t, err)
		if h == nil {
			return total.TotalCount(), float64(total.ValueAtQuantile(99)) / 1e6, float64(total.Max()) / 1e6
		}
		if h.Tag() != tag {
			continue
		}
		require.InDelta(t, started.UnixMilli()+int64(seen)*1500, h.StartTimeMs(), 1)
		require.InDelta(t, 1500, h.EndTimeMs()-h.StartTimeMs(), 1)
		require.Zero(t, total.Merge(h))
		seen++
	}
}

var (
	javaTotal = regexp.MustCompile(`Max\s*=\s*([\d.]+), Total count\s*=\s*(\d+)`)
	javaRow   = regexp.MustCompile(`(?m)^\s*([\d.]+)\s+([\d.]+)\s+(\d+)\s`)
)

func readWithJava(t *testing.T, jar string, log []byte, tag string) (count int64, p99, maximum float64) {
	file, out := filepath.Join(t.TempDir(), "run.hlog"), filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.WriteFile(file, log, 0o600))
	args := []string{"-cp", jar, "org.HdrHistogram.HistogramLogProcessor", "-v", "-i", file, "-o", out}
	if tag != "" {
		args = append(args, "-tag", tag)
	}
	said, err := exec.CommandContext(t.Context(), "java", args...).CombinedOutput()
	require.NoError(t, err, "KBENCH_HDR_JAR=%s: %s", jar, said)
	hgrm, err := os.ReadFile(out + ".hgrm")
	require.NoError(t, err, "HistogramLogProcessor said: %s", said)
	total := javaTotal.FindStringSubmatch(string(hgrm))
	require.NotNil(t, total, "%s", hgrm)
	maximum, err = strconv.ParseFloat(total[1], 64)
	require.NoError(t, err)
	count, err = strconv.ParseInt(total[2], 10, 64)
	require.NoError(t, err)
	require.Equal(t, 3, intervals(t, out), "one line an interval")
	for _, row := range javaRow.FindAllStringSubmatch(string(hgrm), -1) {
		// The first row whose cumulative count reaches 99 % has the value of p99.
		if n, _ := strconv.ParseInt(row[3], 10, 64); n*100 >= count*99 && p99 == 0 {
			p99, err = strconv.ParseFloat(row[1], 64)
			require.NoError(t, err)
		}
	}
	return count, p99, maximum
}

func intervals(t *testing.T, file string) (n int) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if regexp.MustCompile(`^\s*\d+\.\d+:`).MatchString(line) {
			n++
		}
	}
	return n
}

func TestReadsForeignLogs(t *testing.T) {
	theirs := hdrhistogram.New(1, 3_600_000_000, 3)
	require.NoError(t, theirs.RecordValues(2_500_000, 7))
	theirs.SetTag("A")
	theirs.SetStartTimeMs(2_000)
	theirs.SetEndTimeMs(3_000)
	var to bytes.Buffer
	w := hdrhistogram.NewHistogramLogWriter(&to)
	require.NoError(t, w.OutputComment("[Logged with some other program]"))
	require.NoError(t, w.OutputLogFormatVersion())
	require.NoError(t, w.OutputStartTime(1_700_000_000_000))
	require.NoError(t, w.OutputLegend())
	require.NoError(t, w.OutputIntervalHistogram(theirs))
	log := strings.TrimSuffix(to.String(), "\n")
	_, entries, err := readAll(strings.NewReader(log))
	require.NoError(t, err, "the last line needs no line break")
	require.Len(t, entries, 1)
	require.Equal(t, "A", entries[0].Tag)
	require.Equal(t, time.Unix(1_700_000_002, 0).UTC(), entries[0].Start, "stamps are relative to the start time")
	require.EqualValues(t, 7, entries[0].Histogram.Count())
	within(t, 2_500_000, entries[0].Histogram.Quantile(0.5))
	require.Equal(t, 4+1, entries[0].Line)
}

func TestBadLogs(t *testing.T) {
	log, _ := sample(t)
	lines := strings.SplitAfter(string(log), "\n")
	interval := lines[6]
	payload := interval[strings.LastIndex(interval, ",")+1:]
	wide, err := hdrhistogram.New(1, 1<<62, 5).Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	require.NoError(t, err)
	for _, c := range []struct{ about, line, says string }{
		{"too few fields", "1,2,3\n", "3 fields"},
		{"a stamp that is no number", "x,1.0,1.0," + payload, "no time"},
		{"a length that is not finite", "1.0,NaN,1.0," + payload, "no time"},
		{"a stamp beyond any calendar", "1e300,1.0,1.0," + payload, "no time"},
		{"a payload that is not base64", "1.0,1.0,1.0,???\n", "base64"},
		{"a payload that is too short", "1.0,1.0,1.0,HIST\n", "ends after"},
		{"a payload that is cut off", "1.0,1.0,1.0," + payload[:len(payload)/8*4] + "\n", "smaller than"},
		{"a layout of millions of counters", "1.0,1.0,1.0," + string(wide) + "\n", "counters"},
		{"a tag and nothing else", "Tag=x\n", "follows the tag"},
		{"exact figures of another histogram", "#[kbench exact: min=1 max=2 sum=3 clamped=5000 negative=0]\n1.0,1.0,1.0," + payload, "do not belong"},
		{"exact figures that are none", "#[kbench exact: min=]\n", "exact figures"},
		{"a start time that is none", "#[StartTime: soon]\n", "no time"},
		{"an endless line", strings.Repeat("x", 5<<20), "longer than"},
	} {
		t.Run(c.about, func(t *testing.T) {
			_, _, err := readAll(strings.NewReader("# remark\n" + c.line))
			var bad *hist.LogError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, 1+strings.Count(strings.TrimSuffix(c.line, "\n"), "\n")+1, bad.Line)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestWriterRefuses(t *testing.T) {
	for _, tag := range []string{"", "a,b", "a b", "a\nb", "a]"} {
		_, err := hist.NewLogWriter(io.Discard, started, tag)
		require.Error(t, err, "%q", tag)
	}
	_, err := hist.NewLogWriter(io.Discard, time.Time{}, "response")
	require.ErrorContains(t, err, "1970")
	w, err := hist.NewLogWriter(io.Discard, started, "response")
	require.NoError(t, err)
	require.Error(t, w.Write("a,b", 0, 1, hist.New()))
	require.Error(t, w.Write("", -1, 1, hist.New()))
}

func TestWriterReportsAFullDisk(t *testing.T) {
	w, err := hist.NewLogWriter(full{}, started, "response")
	require.NoError(t, err)
	require.NoError(t, w.Write("", 0, 1, hist.New()))
	require.ErrorIs(t, w.Flush(), io.ErrShortWrite)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func FuzzLogReader(f *testing.F) {
	log, _ := sample(f)
	f.Add(log)
	f.Add([]byte("#[StartTime: 1.5 (seconds since epoch), x]\nTag=A,0.127,1.007,2.769,HISTFAAAAEV42pNpmSz\n"))
	f.Add([]byte("#[kbench headline: e2e]\n#[kbench exact: min=-1 max=2 sum=-3 clamped=0 negative=1]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, entries, err := readAll(bytes.NewReader(data))
		var bad *hist.LogError
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("untyped error %v", err)
		}
		for _, entry := range entries {
			h := entry.Histogram
			if h.Count() < 0 || h.Quantile(0.5) < 0 || h.Min() > h.Max() {
				t.Fatal(fmt.Sprint(h.Count(), h.Quantile(0.5), h.Min(), h.Max()))
			}
		}
	})
}

func BenchmarkLogWrite(b *testing.B) {
	h := hist.New()
	for _, v := range latencies(10_000) {
		h.Record(v)
	}
	w, err := hist.NewLogWriter(io.Discard, started, "response")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write("", 0, time.Second, h); err != nil {
			b.Fatal(err)
		}
	}
}
