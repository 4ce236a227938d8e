//go:build browser

package report

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// drawnPanel is a plot of a timeline as it stands in the page: its axis, and the corners of its lines by
// their names. A line that breaks off has several parts.
type drawnPanel struct {
	Name, Y string
	Lines   map[string][][][2]float64
	Across  []float64 // where lines across are, as for the rate asked for
}

// readPanels reads the panels of the picture that a selector finds.
func readPanels(b *browser, selector string) map[string]drawnPanel {
	b.t.Helper()
	list := eval[[]drawnPanel](b, `[...document.querySelector('`+selector+`').querySelectorAll(".panel")].map(g => ({
		Name: g.dataset.name, Y: g.dataset.y, Across: [...g.querySelectorAll("line.target")].map(l => +l.getAttribute("y1")),
		Lines: Object.fromEntries([...g.querySelectorAll("[data-line]")].map(path => [path.dataset.line,
			path.getAttribute("d").split("M").slice(1).map(part => {
				const n = part.match(/-?\d*\.?\d+/g).map(Number), line = [[n[0], n[1]]];
				if (!part.includes("h0")) for (let i = 2; i + 1 < n.length; i += 2) line.push([line.at(-1)[0] + n[i], line.at(-1)[1] + n[i + 1]]);
				return line;
			})]))}))`)
	panels := map[string]drawnPanel{}
	for _, p := range list {
		panels[p.Name] = p
	}
	return panels
}

// heightOf is where a line is at a place across: at its corner there, or on the straight that passes;
// not a number where the line is broken off.
func heightOf(parts [][][2]float64, x float64) float64 {
	for _, line := range parts {
		for i, corner := range line {
			if math.Abs(corner[0]-x) < 0.15 {
				return corner[1]
			}
			if i > 0 && line[i-1][0] < x && x < corner[0] {
				from := line[i-1]
				return from[1] + (corner[1]-from[1])*(x-from[0])/(corner[0]-from[0])
			}
		}
	}
	return math.NaN()
}

// timelineCells is a run's CSV by its columns, as any program reads it; what is empty is not a number.
func timelineCells(t *testing.T, f fixture, run *results.Run) map[string][]float64 {
	t.Helper()
	file, err := os.Open(filepath.Join(f.dir.Path(), run.Timeline))
	require.NoError(t, err)
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	cells := map[string][]float64{}
	for _, record := range records[1:] {
		for i, text := range record {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				v = math.NaN()
			}
			cells[records[0][i]] = append(cells[records[0][i]], v)
		}
	}
	return cells
}

// lineOf is what a line of a panel is to show: a column of the CSV, in units of it.
type lineOf struct {
	panel, line, column string
	unit                float64
}

func linesOf(run *results.Run, headline string) []lineOf {
	lines := []lineOf{
		{"msg/s", "acked", "acked_per_s", 1},
		{headline, "p50", headline + "_p50_ms", 1e6}, {headline, "p99", headline + "_p99_ms", 1e6}, {headline, "max", headline + "_max_ms", 1e6},
		{"pacer lateness, largest", "all", "lateness_ms", 1e6},
		{"generator's memory, MiB", "all", "rss_bytes", 1.0 / (1 << 20)},
	}
	if run.Counts.Received > 0 {
		lines = append(lines, lineOf{"msg/s", "received", "received_per_s", 1}, lineOf{"consumer lag, messages", "all", "lag_messages", 1})
	}
	return lines
}

// sameAsFigures says that every window of a line stands at its figure, to what a tenth of a unit of the
// picture is worth.
func (b *browser) sameAsFigures(p drawnPanel, line string, xs, want []float64) {
	b.t.Helper()
	require.Contains(b.t, p.Lines, line, p.Name)
	y := readAxis(b.t, p.Y)
	known := 0
	for i, x := range xs {
		height := heightOf(p.Lines[line], x)
		if math.IsNaN(want[i]) {
			require.True(b.t, math.IsNaN(height), "%s, %s: nothing is known in window %d, and nothing is drawn", p.Name, line, i)
			continue
		}
		known++
		low, high := y(height+0.11), y(height-0.11)
		require.GreaterOrEqual(b.t, want[i]*1.000001, low, "%s, %s in window %d", p.Name, line, i)
		require.LessOrEqual(b.t, want[i]*0.999999, high, "%s, %s in window %d", p.Name, line, i)
	}
	require.GreaterOrEqual(b.t, known, len(xs)/2)
}

// The lines of a timeline stand at the figures of the run's CSV, window by window, and those at the figures of
// result.json.
func TestBrowserTimeline(t *testing.T) {
	swept := sweep(t, 3)
	for _, row := range []struct {
		name     string
		fixture  fixture
		point    int
		headline string
		selector string
	}{
		{"an open loop with a stall", openStall(t), 0, "response", "svg.timeline.wide"},
		{"an open loop, on a phone", openStall(t), 0, "response", "svg.timeline.narrow"},
		{"a backlog, with the lag of each partition", backlogRun(t), 0, "response", "svg.timeline.wide"},
		{"a closed loop", closedLoop(t), 0, "service", "svg.timeline.wide"},
		{"one of a sweep", swept, 5, "response", `figure.over-time[data-p="5"] svg.timeline`},
	} {
		t.Run(row.name, func(t *testing.T) {
			b, path := opened(t, row.fixture)
			saved, err := row.fixture.dir.Load()
			require.NoError(t, err)
			run := &saved.Points[row.point].Runs[0]
			cells := timelineCells(t, row.fixture, run)
			x := readAxis(t, eval[string](b, `document.querySelector('`+row.selector+`').dataset.x`))
			from, to := x(0), x(1)
			var xs []float64
			for i, start := range cells["start_s"] {
				xs = append(xs, (start+cells["length_s"][i]/2-from)/(to-from))
			}
			panels := readPanels(b, row.selector)
			for _, line := range linesOf(run, row.headline) {
				want := make([]float64, len(xs))
				for i, v := range cells[line.column] {
					want[i] = v * line.unit
				}
				b.sameAsFigures(panels[line.panel], line.line, xs, want)
			}
			b.partitionsOf(row.fixture, run, panels, cells, xs)
			b.wholeOf(run, row.headline, panels, cells, xs)
			b.quiet(path)
		})
	}
}

// partitionsOf says that the lag of each partition is drawn as the file of lags has it.
func (b *browser) partitionsOf(f fixture, run *results.Run, panels map[string]drawnPanel, cells map[string][]float64, xs []float64) {
	b.t.Helper()
	lags, err := f.dir.ReadLags(run)
	require.NoError(b.t, err)
	if lags == nil {
		require.NotContains(b.t, panels, "lag by partition")
		return
	}
	p := panels["lag by partition"]
	require.Len(b.t, p.Lines, len(lags.Columns))
	for i := range lags.Columns {
		want := make([]float64, len(xs))
		for w := range xs {
			want[w] = math.NaN()
			for _, row := range lags.Rows {
				if math.Abs(float64(row.EndNs)/1e9-cells["start_s"][w]-cells["length_s"][w]) < 1e-6 && row.Messages[i] >= 0 {
					want[w] = float64(row.Messages[i])
				}
			}
		}
		b.sameAsFigures(p, partitionName(lags.Columns[i], lags.Columns), xs, want)
	}
}

// wholeOf says that what is drawn adds up to the figures of result.json.
func (b *browser) wholeOf(run *results.Run, headline string, panels map[string]drawnPanel, cells map[string][]float64, xs []float64) {
	b.t.Helper()
	rate, latency := readAxis(b.t, panels["msg/s"].Y), readAxis(b.t, panels[headline].Y)
	var acked, slowest float64
	for i, x := range xs {
		if cells["start_s"][i] < 0 {
			continue
		}
		acked += rate(heightOf(panels["msg/s"].Lines["acked"], x)) * cells["length_s"][i]
		slowest = math.Max(slowest, latency(heightOf(panels[headline].Lines["max"], x)))
	}
	require.InEpsilon(b.t, run.Rates.MessagesPerSecond, acked/(float64(run.ElapsedNs)/1e9), 0.01)
	require.InEpsilon(b.t, float64(run.Series[headline].MaxNs), slowest, 0.02)
	if target := run.Rates.TargetMessagesPerSecond; target > 0 {
		require.Len(b.t, panels["msg/s"].Across, 1)
		require.InEpsilon(b.t, target, rate(panels["msg/s"].Across[0]), 0.01)
	}
}
