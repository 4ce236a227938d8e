package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

func TestNamesTellResultsApart(t *testing.T) {
	for about, row := range map[string]struct{ paths, want []string }{
		"the last part":                      {[]string{"a/before", "./after/"}, []string{"before", "after"}},
		"as many parts as it takes":          {[]string{"a/b/run", "c/b/run", "x/other"}, []string{"a/b/run", "c/b/run", "other"}},
		"one is the end of the other":        {[]string{"run", "x/run"}, []string{"run", "x/run"}},
		"a file names its directory":         {[]string{"a/result.json", "b/result.json"}, []string{"a", "b"}},
		"the same twice is refused":          {[]string{"a/run", "a/run/"}, nil},
		"the same by its file is refused":    {[]string{"a/run", "a/run/result.json"}, nil},
		"three alike, told apart at the top": {[]string{"1/r", "2/r", "3/r"}, []string{"1/r", "2/r", "3/r"}},
	} {
		got, err := namesOf(row.paths)
		if row.want == nil {
			require.ErrorContains(t, err, "is given twice", about)
			continue
		}
		require.NoError(t, err, about)
		require.Equal(t, row.want, got, about)
	}
}

// What a run writes is as the published schema says, and as the readers of each format expect it.
func TestReportInEveryFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, out := range []string{"a/r", "b/r"} {
		kbenchIn(t, dir, args("run", "quick", brief, "--duration", "300ms", "--out", out)...).requireCode(t, codeDone)
	}
	printed := kbenchIn(t, dir, "report", "--schema")
	printed.requireCode(t, codeDone)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(printed.out))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("schema.json", document))
	schema, err := compiler.Compile("schema.json")
	require.NoError(t, err)
	saved, err := os.ReadFile(filepath.Join(dir, "a", "r", "result.json"))
	require.NoError(t, err)
	result, err := jsonschema.UnmarshalJSON(bytes.NewReader(saved))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(result))

	asJSON := kbenchIn(t, dir, "report", "a/r", "--format", "json")
	require.Equal(t, string(saved), asJSON.out)
	require.Contains(t, kbenchIn(t, dir, "report", "a/r", "--format", "md").out, "# quick")
	require.Contains(t, kbenchIn(t, dir, "report", "a/r", "--format", "text").out, "attempted")

	bench := kbenchIn(t, dir, "report", "a/r", "b/r", "--format", "bench")
	bench.requireCode(t, codeDone)
	require.Contains(t, bench.out, "Unit msg/s better=higher\n")

	kbenchIn(t, dir, "report", "a/r", "b/r", "--out", "both").requireCode(t, codeDone)
	page, err := os.ReadFile(filepath.Join(dir, "both", "report.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "a/r/p00")
	require.Contains(t, string(page), "b/r/p00")
	for _, wrong := range [][]string{{"a/r", "--format", "yaml"}, {"a/r", "b/r", "--format", "md"}, {"a/r", "--format", "md", "--out", "x"}, {"a/r", "a/r", "--out", "x"}} {
		e := kbenchIn(t, dir, append([]string{"report"}, wrong...)...)
		e.requireCode(t, codeUsage)
	}
}
