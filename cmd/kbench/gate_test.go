package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// writeResult makes a result directory whose runs have the given p50, in milliseconds.
func writeResult(t *testing.T, host string, p50s ...float64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r")
	dir, err := results.Create(path)
	require.NoError(t, err)
	r := &results.Result{
		Workload:   results.Workload{Name: "steady", Hash: "h", Effective: json.RawMessage(`{}`)},
		Provenance: results.Provenance{Host: results.Host{Hostname: host}},
		Points:     []results.Point{{ID: "p00", Label: "steady"}},
	}
	for i, p50 := range p50s {
		s := results.Series{Count: 1000, P50Ns: int64(p50 * 1e6), P99Ns: int64(p50 * 3e6), P999Ns: int64(p50 * 5e6)}
		run := results.Run{
			Repeat: i, Loop: "open", Verdict: results.Verdict{Valid: p50 > 0, Reasons: []string{}}, Counts: results.Counts{Attempted: 1000, Acked: 1000},
			Rates: results.Rates{MessagesPerSecond: 100}, Generator: results.Generator{CPUNsPerMessage: 1000}, Series: map[string]results.Series{results.SeriesResponse: s},
		}
		if p50 == 0 {
			run.Verdict.Reasons = []string{"the generator paused"}
		}
		r.Points[0].Runs = append(r.Points[0].Runs, run)
	}
	require.NoError(t, dir.Save(r))
	return path
}

// command runs the command line in this process.
func command(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = execute(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestGateExitCodes(t *testing.T) {
	calm := []float64{10, 10.1, 9.9, 10.05, 9.95, 10.02, 9.98, 10.01}
	slow := []float64{14, 14.1, 13.9, 14.05, 13.95, 14.02, 13.98, 14.01}
	base, same, slower := writeResult(t, "a", calm...), writeResult(t, "a", calm...), writeResult(t, "a", slow...)
	once, elsewhere := writeResult(t, "a", 10), writeResult(t, "b", slow...)
	invalid := writeResult(t, "a", 0, 0, 0, 10, 10, 10, 10, 10)
	for _, c := range []struct {
		about string
		args  []string
		code  int
		says  string
	}{
		{"nothing changed", []string{base, same}, codeDone, "PASS steady"},
		{"slower", []string{base, slower}, codeThreshold, "FAIL steady"},
		{"faster", []string{slower, base}, codeDone, "PASS steady"},
		{"one run", []string{base, once}, codeInconclusive, "too few to tell"},
		{"too many invalid runs", []string{base, invalid}, codeInvalid, "the generator paused"},
		{"unlike", []string{base, elsewhere}, codeUsage, "host: a, then b"},
		{"unlike, forced", []string{base, elsewhere, "--force"}, codeThreshold, "FORCED although unlike: host: a, then b"},
		{"a condition held", []string{base, "--threshold", "response.p99<40ms"}, codeDone, "held"},
		{"a condition broken", []string{base, "--threshold", "response.p99<20ms"}, codeThreshold, "BROKEN: 30.02 ms (median of 8 runs)"},
		{"a condition broken beside a base", []string{base, same, "--threshold", "response.p99<20ms"}, codeThreshold, "BROKEN"},
		{"no condition", []string{base}, codeUsage, "give --threshold, or a base"},
		{"nothing", nil, codeUsage, "name two results"},
		{"three", []string{base, same, slower}, codeUsage, "name two results"},
		{"no result", []string{base, t.TempDir()}, codeError, "is not a result directory"},
		{"a condition that is none", []string{base, "--threshold", "p99"}, codeUsage, "--threshold: "},
		{"a format that is none", []string{base, same, "--format", "html"}, codeUsage, "is none of text, md, json"},
		{"settings without --run", []string{base, same, "--a", "x=1"}, codeUsage, "go with --run"},
		{"--out without --run", []string{base, same, "--out", "x"}, codeUsage, "go with --run"},
		{"results with --run", []string{"--run", "quick", base}, codeUsage, "leave out"},
		{"one cluster of two", []string{"--run", "quick", "--a-brokers", "h:1"}, codeUsage, "give both"},
		{"two clusters and a third", []string{"--run", "quick", "--a-brokers", "h:1", "--b-brokers", "h:2", "-b", "h:3"}, codeUsage, "leave it out"},
		{"a cluster without an address", []string{"--run", "quick", "--a-brokers", ",", "--b-brokers", "h:2"}, codeUsage, "--a-brokers names no broker"},
		{"an unknown key on one side", []string{"--run", "quick", "--b", "producer.flsh=1"}, codeUsage, "flsh"},
		{"a sweep", []string{"--run", "acks-flush-inflight"}, codeUsage, "take the sweep out"},
		{"an unknown workload", []string{"--run", "quikc"}, codeUsage, "quick"},
	} {
		t.Run(c.about, func(t *testing.T) {
			code, out, errOut := command(append([]string{"gate"}, c.args...)...)
			require.Equal(t, c.code, code, "%s%s", out, errOut)
			require.Contains(t, out+errOut, c.says)
		})
	}
}

func TestGateFiles(t *testing.T) {
	base, slower := writeResult(t, "a", 10, 10, 10, 10, 10, 10), writeResult(t, "a", 15, 15, 15, 15, 15, 15)
	at := t.TempDir()
	file := func(name string) string { return filepath.Join(at, name) }
	code, out, errOut := command("gate", base, slower, "--format", "json", "--junit", file("j.xml"), "--markdown", file("m.md"), "--annotations", file("a.json"), "--bench", file("b.txt"))
	require.Equal(t, codeThreshold, code, errOut)
	var d struct{ Verdict string }
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Equal(t, "FAIL", d.Verdict)
	read := func(name string) []byte {
		data, err := os.ReadFile(file(name))
		require.NoError(t, err)
		return data
	}
	require.NoError(t, xml.Unmarshal(read("j.xml"), new(struct{ XMLName xml.Name })))
	require.Contains(t, string(read("m.md")), "# FAIL")
	var notes []map[string]any
	require.NoError(t, json.Unmarshal(read("a.json"), &notes))
	require.Equal(t, "failure", notes[0]["annotation_level"])
	require.Contains(t, string(read("b.txt")), "Unit response.p50-ns better=lower")
	require.Equal(t, 12, strings.Count(string(read("b.txt")), "BenchmarkKbench/"))
	code, out, _ = command("gate", base, slower, "-q")
	require.Equal(t, codeThreshold, code)
	require.Empty(t, out)
	code, _, errOut = command("gate", base, slower, "--junit", filepath.Join(at, "none", "j.xml"))
	require.Equal(t, codeError, code)
	require.Contains(t, errOut, "j.xml")
	entries, err := os.ReadDir(at)
	require.NoError(t, err)
	require.Len(t, entries, 4, "nothing half-written is left")
}

func TestCompareCommand(t *testing.T) {
	base, slower := writeResult(t, "a", 10, 10, 10, 10), writeResult(t, "a", 15, 15, 15, 15)
	for format, want := range map[string]string{"text": "response.p50", "md": "| response.p50 | 10.0 ms | 15.0 ms | 1.500 |", "json": `"name": "response.p50"`, "html": "<!doctype html>"} {
		code, out, errOut := command("compare", base, slower, "--format", format)
		require.Equal(t, codeDone, code, errOut)
		require.Contains(t, out, want)
	}
	path := filepath.Join(t.TempDir(), "c.html")
	code, out, _ := command("compare", base, slower, slower, "--format", "html", "--out", path)
	require.Equal(t, codeDone, code)
	require.Empty(t, out)
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(page), "ratios")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{base}, codeUsage, "two results or more"},
		{[]string{base, slower, "--format", "xml"}, codeUsage, "is none of text, md, json, html"},
		{[]string{base, t.TempDir()}, codeError, "is not a result directory"},
		{[]string{base, slower, "--out", filepath.Join(t.TempDir(), "none", "x")}, codeError, "cannot write"},
	} {
		code, _, errOut := command(append([]string{"compare"}, c.args...)...)
		require.Equal(t, c.code, code)
		require.Contains(t, errOut, c.says)
	}
}
