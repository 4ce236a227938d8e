package results_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

func someLags() *results.Lags {
	return &results.Lags{
		Columns: []results.LagColumn{{Topic: "orders", Partition: 0}, {Group: "kbench-g-1", Topic: "orders.v2_x-y", Partition: 11}},
		Rows:    []results.LagRow{{EndNs: 1e9, Messages: []int64{5, -1}}, {EndNs: 2_500_000_000, Messages: []int64{0, 1 << 40}}},
	}
}

func TestLagsAreKept(t *testing.T) {
	dir, err := results.Create(t.TempDir() + "/r")
	require.NoError(t, err)
	run := &results.Run{Repeat: 2}
	require.NoError(t, dir.WriteLags(&results.Point{ID: "p00"}, run, nil))
	none, err := dir.ReadLags(run)
	require.NoError(t, err)
	require.Nil(t, none, "a run without lags, as of the first version, has none")
	require.NoError(t, dir.WriteLags(&results.Point{ID: "p00"}, run, someLags()))
	require.Equal(t, "p00-r2-lag.csv", run.Lags)
	back, err := dir.ReadLags(run)
	require.NoError(t, err)
	require.Equal(t, someLags(), back)
	run.Lags = "../elsewhere.csv"
	_, err = dir.ReadLags(run)
	require.Error(t, err, "a result names no files elsewhere")
	require.Error(t, dir.WriteLags(&results.Point{ID: "../p"}, run, someLags()))
}

func TestLagsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "unexpected EOF",
		"start_s,acked\n":                     "x:1: no column end_s: no file of lags of kbench",
		"end_s,orders\n":                      `x:1: "orders" names no partition`,
		"end_s,orders/x\n":                    `x:1: "orders/x" names no partition`,
		"end_s,orders/-1\n":                   `x:1: "orders/-1" names no partition`,
		"end_s,a/b/c/1\n":                     `x:1: "a/b/c/1" names no partition`,
		"end_s,o/0\n1,2\nx,2\n":               `x:3: "x" is no number that can stand here`,
		"end_s,o/0\n1,-2\n":                   `x:2: "-2" is no number of messages`,
		"end_s,o/0\n1,99999999999999999999\n": `x:2: "99999999999999999999" is no number of messages`,
		"end_s,o/0\n1,2,3\n":                  "x:2: wrong number of fields",
	} {
		_, err := results.ParseLags("x", strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzParseLags(f *testing.F) {
	for _, seed := range []string{"end_s,o/0,g/o/1\n1,2,\n2.5,,3\n", "end_s\n1\n", "end_s,o/0\n\"1\n", "start_s\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lags, err := results.ParseLags("x", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, row := range lags.Rows {
			if len(row.Messages) != len(lags.Columns) {
				t.Fatalf("%d cells of %d", len(row.Messages), len(lags.Columns))
			}
		}
	})
}

// What the version before wrote is read, and means what it meant.
func TestReadsTheFirstVersion(t *testing.T) {
	first, err := os.ReadFile(filepath.Join("testdata", "result-1.json"))
	require.NoError(t, err)
	r, err := results.Decode("result-1.json", first)
	require.NoError(t, err)
	require.Equal(t, 1, r.Schema)
	run := r.Points[0].Runs[0]
	require.EqualValues(t, 599_997, run.Counts.Acked)
	require.Nil(t, run.Consumption)
	require.Empty(t, run.Lags)
	again, err := results.Encode(r)
	require.NoError(t, err)
	require.Contains(t, string(again), `"schema": 3`, "what is written is of this version")
	_, err = results.Decode("x", []byte(`{"schema": 99}`))
	var newer *results.SchemaError
	require.ErrorAs(t, err, &newer)
}
