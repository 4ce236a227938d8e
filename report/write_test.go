package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// names are the files of a folder.
func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWrite(t *testing.T) {
	f := openStall(t)
	for range 2 { // the second replaces the first
		require.NoError(t, Write(f.dir, f.result))
		require.Equal(t, []string{"p00-r0.csv", "p00-r0.hlog", "plots", "report.html", "report.md", "result.json"}, names(t, f.dir.Path()))
		require.Equal(t, []string{"heat-p00.png", "heat-p00.svg", "percentiles.png", "percentiles.svg", "timeline-p00.png", "timeline-p00.svg"}, names(t, filepath.Join(f.dir.Path(), PlotsFolder)))
	}
	picture, err := os.Open(filepath.Join(f.dir.Path(), PlotsFolder, "timeline-p00.png"))
	require.NoError(t, err)
	defer picture.Close()
	_, err = png.Decode(picture)
	require.NoError(t, err)
}

func TestWriteSeveral(t *testing.T) {
	a, b, out := openStall(t), closedLoop(t), filepath.Join(t.TempDir(), "both")
	require.NoError(t, WriteSeveral(out, []Named{{"before", a.dir, a.result}, {"after", b.dir, b.result}}))
	page, err := os.ReadFile(filepath.Join(out, HTMLFile))
	require.NoError(t, err)
	for _, want := range []string{"before/p00", "after/p00", "<h1>before, after</h1>", noteClosed, "series (response, service), which do not compare"} {
		require.Contains(t, string(page), want)
	}
	require.Contains(t, names(t, filepath.Join(out, PlotsFolder)), "timeline-before-p00.png")
	require.Error(t, WriteSeveral(out, nil))
	require.ErrorContains(t, WriteSeveral(out, []Named{{"x", a.dir, a.result}, {"x", b.dir, b.result}}), `"x"`)
}

var errBroken = errors.New("the disk is full")

func TestNeverHalf(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "report.html")
	require.NoError(t, os.WriteFile(path, []byte("earlier"), 0o644))
	err := replaceFile(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half of it")
		return errBroken
	})
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, path)
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "earlier", string(kept))

	plots := filepath.Join(folder, "plots")
	require.NoError(t, os.Mkdir(plots, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(plots, "old.svg"), nil, 0o644))
	err = replaceFolder(plots, func(into string) error {
		require.NoError(t, os.WriteFile(filepath.Join(into, "new.svg"), nil, 0o644))
		return errBroken
	})
	require.ErrorIs(t, err, errBroken)
	require.Equal(t, []string{"old.svg"}, names(t, plots))
	require.Equal(t, []string{"plots", "report.html"}, names(t, folder), "nothing is left lying about")
}

func TestMarkdownAndJSON(t *testing.T) {
	for name, f := range map[string]fixture{"open-stall": openStall(t), "invalid": invalidRun(t), "sweep": sweep(t, 3)} {
		var b bytes.Buffer
		require.NoError(t, Markdown(&b, f.result))
		golden(t, "report-"+name+".md", b.Bytes())
		b.Reset()
		require.NoError(t, JSON(&b, f.result))
		saved, err := os.ReadFile(filepath.Join(f.dir.Path(), results.FileName))
		require.NoError(t, err)
		require.Equal(t, string(saved), b.String())
	}
}

var (
	pictures = regexp.MustCompile(`(?s)<svg.*?</svg>|<style>.*?</style>|<script>.*?</script>|content="default-src[^"]*"`)
	numbers  = regexp.MustCompile(`(?s)<details class="numbers">.*?</details>`)
	scripts  = regexp.MustCompile(`(?s)<script>.*?</script>`)
	blank    = regexp.MustCompile(`\n\s*\n+`)
)

// structure is a page without pictures, styles, script and the tables of numbers.
func structure(page []byte) []byte {
	page = numbers.ReplaceAll(pictures.ReplaceAll(page, nil), []byte("<details>…</details>"))
	return blank.ReplaceAll(page, []byte("\n"))
}

func TestHTMLStructure(t *testing.T) {
	for name, f := range map[string]fixture{"open-stall": openStall(t), "invalid": invalidRun(t), "sweep": sweep(t, 3), "acks-0": acksNone(t)} {
		var b bytes.Buffer
		require.NoError(t, HTML(&b, f.result, f.dir))
		golden(t, "report-"+name+".html", structure(b.Bytes()))
		for _, picture := range regexp.MustCompile(`(?s)<svg class="chart.*?</svg>`).FindAll(b.Bytes(), -1) {
			require.NoError(t, xml.Unmarshal(picture, new(struct{})), "every picture is well formed")
		}
		page := scripts.ReplaceAll(b.Bytes(), nil)
		require.Empty(t, regexp.MustCompile(`NaN|\bInf\b|src=|https?://|<no value>|ZgotmplZ`).FindAllString(string(page), 3))
	}
}

// Figures of an invalid run have the reason beside them in every form.
func TestReasonsEverywhere(t *testing.T) {
	f := invalidRun(t)
	for name, write := range map[string]func(io.Writer) error{
		"terminal": func(w io.Writer) error { return Terminal(w, f.result, TerminalOptions{Width: 200}) },
		"markdown": func(w io.Writer) error { return Markdown(w, f.result) },
		"html":     func(w io.Writer) error { return HTML(w, f.result, f.dir) },
	} {
		var b bytes.Buffer
		require.NoError(t, write(&b))
		for _, reason := range f.result.Points[0].Runs[0].Verdict.Reasons {
			require.Contains(t, b.String(), reason, name)
		}
		require.Contains(t, b.String(), noteEmbedded, name)
	}
}

func TestForeignText(t *testing.T) {
	f := hostile(openStall(t))
	f.result.Workload.Description = "\x1b[2Jgone\r\n\u202eturned"
	var b bytes.Buffer
	require.NoError(t, Terminal(&b, f.result, TerminalOptions{}))
	require.NotRegexp(t, "[\x1b\r\u202e]", b.String(), "text from a result steers no terminal")
	b.Reset()
	require.NoError(t, Markdown(&b, f.result))
	require.NotContains(t, b.String(), "<img")
	require.NotContains(t, b.String(), "<script")
	b.Reset()
	require.NoError(t, HTML(&b, f.result, f.dir))
	require.NotContains(t, b.String(), "<img")
	require.Equal(t, 1, strings.Count(b.String(), "<script"))
}

// A report is drawn from what can be read, and says what could not.
func TestUnreadableFiles(t *testing.T) {
	f := openStall(t)
	require.NoError(t, os.Remove(filepath.Join(f.dir.Path(), "p00-r0.hlog")))
	require.NoError(t, os.WriteFile(filepath.Join(f.dir.Path(), "p00-r0.csv"), []byte("no,timeline\n"), 0o644))
	require.NoError(t, Write(f.dir, f.result))
	page, err := os.ReadFile(filepath.Join(f.dir.Path(), HTMLFile))
	require.NoError(t, err)
	require.Contains(t, string(page), "Could not be read: percentiles of p00 run 1")
	require.Contains(t, string(page), "Could not be read: timeline of p00 run 1")
	require.Contains(t, string(page), "chart wide percentiles", "drawn from the quantiles of the result")
	require.NotContains(t, string(page), "chart wide timeline")
}

func TestEmptyResults(t *testing.T) {
	for about, r := range map[string]*results.Result{
		"nothing at all": {}, "no points": newResult("empty", ""),
		"a point without runs":  {Points: []results.Point{{ID: "p00"}}},
		"a run without figures": {Points: []results.Point{{ID: "p00", Runs: []results.Run{{}}}}},
	} {
		t.Run(about, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, Terminal(&b, r, TerminalOptions{Colour: true}))
			require.NoError(t, Markdown(&b, r))
			require.NoError(t, HTML(&b, r, nil))
			require.NoError(t, Plots(t.TempDir(), r, nil))
			require.Empty(t, regexp.MustCompile(`NaN|\bInf\b|are of \.`).FindAllString(string(scripts.ReplaceAll(b.Bytes(), nil)), 3))
		})
	}
}

// hundred is a sweep of a hundred points, each run three times, with every kind of
// line a timeline can have. Points share the files of their repeats.
func hundred(t testing.TB) fixture {
	repeat := scenario{loop: "closed", ack: "acked", rate: 60, base: 2e6, tail: 0.4, seconds: 22, warmUp: 2, consumers: true, stallAt: 5e9, stall: 1e9}
	f := keep(t, newResult("large", ""), 3, []results.Point{{ID: "p00"}}, []scenario{repeat})
	made := f.result.Points[0].Runs
	f.result.Points = nil
	for i := range 100 {
		acks, open, buffer := []any{0.0, 1.0, "all", "none"}[i/25], float64(1+i/5%5), float64(int(1)<<(i%5))
		p := results.Point{ID: fmt.Sprintf("p%02d", i), Label: fmt.Sprintf("requiredAcks=%v maxOpenRequests=%v channelBufferSize=%v", acks, open, buffer),
			Settings: map[string]any{"producer.requiredAcks": acks, "net.maxOpenRequests": open, "channelBufferSize": buffer}}
		for j, run := range made {
			worse := 1 + 0.05*open + 0.01*float64(j)
			run.Order, run.Rates.MessagesPerSecond = i+100*j, run.Rates.MessagesPerSecond*worse
			run.Series = maps.Clone(run.Series)
			lead := run.Series[results.SeriesService]
			lead.P99Ns = int64(float64(lead.P99Ns) * worse * (1 + buffer/50))
			run.Series[results.SeriesService] = lead
			p.Runs = append(p.Runs, run)
		}
		f.result.Points = append(f.result.Points, p)
	}
	for i := range 120 {
		f.result.Settings[fmt.Sprintf("producer.some.setting%d", i)] = "a value"
	}
	require.NoError(t, f.dir.Save(f.result))
	return f
}

var pageOfHundred []byte

// hundredPage is the page of a hundred points, made once: three hundred logs take a while to read.
func hundredPage(t testing.TB) []byte {
	t.Helper()
	if pageOfHundred == nil {
		f := hundred(t)
		var b bytes.Buffer
		began := time.Now()
		require.NoError(t, HTML(&b, f.result, f.dir))
		t.Logf("%d bytes, drawn in %v", b.Len(), time.Since(began).Round(time.Millisecond))
		pageOfHundred = b.Bytes()
	}
	return pageOfHundred
}

// A hundred points with three runs each stay under a megabyte, and none is left out.
func TestHundredPoints(t *testing.T) {
	page := hundredPage(t)
	require.Less(t, len(page), 1_000_000)
	require.Equal(t, 100, bytes.Count(page, []byte("chart small timeline")), "a run of every point is drawn")
	require.Equal(t, 2*100, bytes.Count(page, []byte(`<g class="cell"`)), "every point has its place in the heat maps of the sweep")
	require.Equal(t, heatLimit, bytes.Count(page, []byte("chart small heat")))
}
