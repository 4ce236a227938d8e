package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

var update = flag.Bool("update", false, "write the golden files anew")

func expressions(ts []results.Threshold) (all []string) {
	for _, t := range ts {
		all = append(all, t.Expression)
	}
	return all
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// planned has a sweep of sections and values, repeats, and a point that is left out.
const planned = `name: planned
producers: {count: 2, rate: 20k}
phases: {warmUp: 1s, duration: 4s, drain: 10s}
payload: {size: 100}
repeat: 2
seed: 5
sweep:
  producer.requiredAcks: [1, all]
  producer.flush: [{}, {messages: 100, frequency: 5ms}]
`

func TestPlanShowsWhatARunWouldDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "planned.yaml"), []byte(planned), 0o644))
	e := kbenchIn(t, dir, "plan", "planned.yaml")
	e.requireCode(t, codeDone)
	require.Empty(t, e.err)
	golden(t, "plan.txt", e.out)
	e = kbenchIn(t, dir, "plan", "planned.yaml", "--format", "json")
	e.requireCode(t, codeDone)
	golden(t, "plan.json", e.out)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "a plan runs nothing")
}

func TestPlanOfTheBuiltInSweep(t *testing.T) {
	t.Parallel()
	e := kbench(t, "plan", "acks-flush-inflight", "--repeat", "3", "--format", "json")
	e.requireCode(t, codeDone)
	var p planForm
	requireJSON(t, e.out, &p)
	require.Len(t, p.Points, 36, "3 acknowledgements × 3 ways to flush × 2 in flight × 2 buffers")
	require.Len(t, p.Order, 108)
	require.Equal(t, 108, p.Estimate.Executions)
}

func TestWorkloadsLists(t *testing.T) {
	t.Parallel()
	e := kbench(t, "workloads")
	e.requireCode(t, codeDone)
	require.Empty(t, e.err)
	for _, i := range workloads.BuiltIn() {
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(i.Name)+` +\S`, e.out)
	}
	for line := range strings.Lines(e.out) {
		require.LessOrEqual(t, len([]rune(line)), 101, line)
	}
}

func TestWorkloadsPrintsOneToStartFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, i := range workloads.BuiltIn() {
		e := kbench(t, "workloads", i.Name)
		e.requireCode(t, codeDone)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(e.out), 0o644))
		file := kbenchIn(t, dir, "plan", "mine.yaml", "--format", "json")
		file.requireCode(t, codeDone)
		require.Equal(t, kbench(t, "plan", i.Name, "--format", "json").out, file.out, "a copy is the same workload")
	}
}

func TestSchemaAcceptsTheBuiltInsAndRefusesMistakes(t *testing.T) {
	t.Parallel()
	e := kbench(t, "workloads", "--schema")
	e.requireCode(t, codeDone)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(e.out))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("kbench.json", document))
	schema, err := compiler.Compile("kbench.json")
	require.NoError(t, err)
	validate := func(text string) error {
		data, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
		require.NoError(t, err)
		return schema.Validate(value)
	}
	for _, i := range workloads.BuiltIn() {
		text, err := workloads.Source(i.Name)
		require.NoError(t, err)
		require.NoError(t, validate(text), i.Name)
	}
	require.NoError(t, validate(planned))
	for _, wrong := range []string{"prodcers: {}", "producers: {cuont: 1}", "consumers: {from: nowhere}", "payload: {size: [1]}"} {
		require.Error(t, validate("name: x\n"+wrong), wrong)
	}
}

func TestEveryHelpTeaches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		command []string
		parts   []string
	}{
		{nil, []string{"run", "plan", "workloads", "report", "broker", "Exit codes:", "130", "embedded broker"}},
		{[]string{"run"}, []string{"--brokers", "-b,", "--bootstrap-server", "KBENCH_BROKERS", "--set", "--sweep", "--rate", "--duration",
			"--repeat", "--threshold", "--out", "--format", "-q, --quiet", "Examples:", "Exit codes:", "Ctrl-C", "kbench run quick --rate"}},
		{[]string{"plan"}, []string{"--set", "--sweep", "--rate", "--duration", "--repeat", "--threshold", "--format", "Examples:", "kbench plan"}},
		{[]string{"workloads"}, []string{"--schema", "Examples:", "kbench workloads quick > mine.yaml"}},
		{[]string{"report"}, []string{"--out", "Examples:", "kbench report"}},
		{[]string{"broker"}, []string{"--port", "--nodes", "--discard", "--topics", "Examples:", "kbench broker --port"}},
	}
	for _, tt := range tests {
		direct := kbench(t, append(tt.command, "--help")...)
		direct.requireCode(t, codeDone)
		require.Empty(t, direct.err)
		for _, part := range tt.parts {
			require.Contains(t, direct.out, part, "kbench %v --help", tt.command)
		}
		require.Equal(t, direct.out, kbench(t, append([]string{"help"}, tt.command...)...).out)
	}
	require.Equal(t, kbench(t).out, kbench(t, "--help").out, "kbench alone tells what there is")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	e := kbench(t, "--version")
	e.requireCode(t, codeDone)
	require.Regexp(t, `^kbench version \S+\n$`, e.out)
}
