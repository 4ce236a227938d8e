package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/settings"
)

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		says  string
		args  []string
		words []string
	}{
		{"a mistyped command", []string{"rnu"}, []string{`"rnu"`, `did you mean "run"?`}},
		{"a command that is nothing like one", []string{"xyzzy"}, []string{`"xyzzy"`, "kbench --help"}},
		{"help about no command", []string{"help", "rnu"}, []string{`"rnu"`, `did you mean "run"?`}},
		{"an unknown flag", []string{"run", "--nope"}, []string{"--nope", "kbench run --help"}},
		{"a flag without its value", []string{"run", "--set"}, []string{"--set", "needs an argument"}},
		{"a format that is none", []string{"run", "--format", "xml"}, []string{"xml", "text", "json"}},
		{"a format of a plan that is none", []string{"plan", "--format", "xml"}, []string{"xml", "text", "json"}},
		{"two workloads", []string{"run", "quick", "end-to-end"}, []string{"one workload, not 2", "end-to-end"}},
		{"two workloads to plan", []string{"plan", "quick", "end-to-end"}, []string{"one workload, not 2"}},
		{"a mistyped workload", []string{"run", "quik"}, []string{`"quik"`, "did you mean quick?"}},
		{"a workload file that is not there", []string{"plan", "mine.yaml"}, []string{`"mine.yaml"`, "built in: "}},
		{"a mistyped workload to print", []string{"workloads", "end-to-ende"}, []string{"did you mean end-to-end?"}},
		{"a workload to print that is nothing like one", []string{"workloads", "xyzzy"}, []string{"built in: ", "max-throughput"}},
		{"a name and the schema", []string{"workloads", "quick", "--schema"}, []string{"--schema"}},
		{"no result to report", []string{"report"}, []string{"name the directory"}},
		{"an argument for the broker", []string{"broker", "x"}, []string{`"x"`, "kbench broker --help"}},
		{"a mistyped key", []string{"run", "--set", "producer.requiredAck=1"}, []string{"--set", "did you mean producer.requiredAcks?"}},
		{"no key at all", []string{"run", "--set", "foo"}, []string{"--set", "key=value"}},
		{"a rate that is none", []string{"run", "--rate", "fast"}, []string{"--rate", `"fast"`}},
		{"a duration without a unit", []string{"run", "--duration", "5"}, []string{"--duration", "5s"}},
		{"no repeats", []string{"run", "--repeat", "0"}, []string{"--repeat", "between 1"}},
		{"a threshold of no metric", []string{"run", "--threshold", "speed>9"}, []string{"--threshold", `"speed"`, "response"}},
		{"a sweep of no key", []string{"run", "--sweep", "producers.cuont=1,2"}, []string{"--sweep", "producers.count"}},
	}
	for _, tt := range tests {
		t.Run(tt.says, func(t *testing.T) {
			dir := t.TempDir()
			e := kbenchIn(t, dir, tt.args...)
			e.requireCode(t, codeUsage)
			e.requireOneLine(t, tt.words...)
			require.Empty(t, e.out)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left, "nothing was begun")
		})
	}
}

const wrongWorkload = `name: wrong
prodcers:
  count: 2
producers:
  cuont: 3
  rate: fast
consumers:
  from: nowhere
payload:
  size: -3
phases:
  duration: 5
net:
  maxOpenRequest: 3
`

func TestEveryProblemOfAWorkloadIsListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "wrong.yaml"), []byte(wrongWorkload), 0o644))
	for _, command := range []string{"run", "plan"} {
		e := kbenchIn(t, dir, command, "wrong.yaml", "--rate", "slow")
		e.requireCode(t, codeUsage)
		e.requireWords(t,
			"wrong.yaml:2:", "prodcers: unknown key; did you mean producers?",
			"wrong.yaml:5:", "producers.cuont: unknown key; did you mean producers.count?",
			"wrong.yaml:6:", `"fast"`,
			"wrong.yaml:8:", `consumers.from: "nowhere" is not one of run, earliest`,
			"wrong.yaml:10:", "payload.size: is -3",
			"wrong.yaml:12:", "write 5ms, 5s or 5m",
			"wrong.yaml:14:", "did you mean net.maxOpenRequests?",
			"--rate: ", `"slow"`)
		require.Equal(t, 8, strings.Count(e.err, "\n"), "a line for each\n%s", e.err)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing was begun")
}

func TestBrokenThresholdsAndInvalidRuns(t *testing.T) {
	t.Parallel()
	// Whoever uses the CPU at all is over the limit.
	invalid := []string{"--set", "validity.maxCpuShare=0.0001"}
	broken := []string{"--threshold", "response.p99<1us"}
	tests := []struct {
		says  string
		flags []string
		code  int
		words []string
	}{
		{"a threshold is held", []string{"--threshold", "response.p99<100s", "--threshold", "errors<0.1%"}, codeDone, []string{"response.p99<100s held"}},
		{"a threshold is broken", broken, codeThreshold, []string{"response.p99<1us", "VALID"}},
		{"the run is invalid", invalid, codeInvalid, []string{"INVALID", "the generator was too busy"}},
		{"both: the figure that broke the threshold cannot be trusted", args(invalid, broken), codeInvalid, []string{"INVALID", "response.p99<1us"}},
	}
	for _, tt := range tests {
		t.Run(tt.says, func(t *testing.T) {
			dir := t.TempDir()
			e := kbenchIn(t, dir, args("run", "quick", light, tt.flags, "--out", "r")...)
			e.requireCode(t, tt.code)
			for _, word := range tt.words {
				require.Contains(t, e.out, word)
			}
			require.NotContains(t, e.err, "kbench:", "the summary says it")
			require.FileExists(t, filepath.Join(dir, "r", "report.html"), "a result is kept whatever it says")
		})
	}
}

// A broken threshold in the middle does not end the plan.
func TestBrokenThresholdsDoNotEndASweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := kbenchIn(t, dir, args("run", "quick", light, "--duration", "200ms", "--threshold", "response.p50<1us",
		"--sweep", "payload.size=50,60", "--out", "r")...)
	e.requireCode(t, codeThreshold)
	for _, p := range loadResult(t, filepath.Join(dir, "r")).Points {
		require.Len(t, p.Runs, 1)
		require.Contains(t, expressions(p.Runs[0].Thresholds), "response.p50<1us")
	}
}

func TestExitCodePrecedence(t *testing.T) {
	order := []int{codeInterrupted, codeError, codeUsage, codeInvalid, codeThreshold, codeInconclusive, codeDone}
	for i, first := range order {
		for _, second := range order[i:] {
			require.Equal(t, first, worse(first, second))
			require.Equal(t, first, worse(second, first))
		}
	}
	tests := []struct {
		says string
		err  error
		code int
	}{
		{"nothing", nil, codeDone},
		{"any error", errors.New("x"), codeError},
		{"wrong usage, wrapped", errors.Join(usage(errors.New("x"))), codeUsage},
		{"problems of a workload", settings.Problems{{Key: "a", Text: "b"}}, codeUsage},
		{"an interrupt", &exitError{code: codeInterrupted}, codeInterrupted},
	}
	for _, tt := range tests {
		require.Equal(t, tt.code, codeOf(tt.err), tt.says)
	}
}
