package workloads

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadTimes(t *testing.T) {
	times, err := ReadTimes("f", strings.NewReader("# of Monday\n0\n0.000000001\n\n .5 \n0.5\n1.25\n1500ms\n2s\r\n3.0000000019\n2592000"))
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1, 5e8, 5e8, 125e7, 15e8, 2e9, 3e9 + 1, int64(maxReplay)}, times)
	for _, row := range []struct{ says, text, want string }{
		{"a word", "0\n1\nsoon\n", `f:3: "soon" is no time: seconds (0.0125) or a duration with a unit (12.5ms) is needed`},
		{"a comma", "0,5\n", `f:1: "0,5" is no time`},
		{"a minus", "-1\n", `f:1: "-1" is no time`},
		{"a negative duration", "-1s\n", `f:1: "-1s" is no time`},
		{"an exponent", "1e3\n", `f:1: "1e3" is no time`},
		{"a point alone", ".\n", `f:1: "." is no time`},
		{"out of order", "# x\n5\n4.9\n", `f:3: 4.9 is before the time above it; sort the file`},
		{"a date", "1700000000.5\n", `f:1: 1700000000.5 is beyond 30 days: times count from the start of the measured phase`},
		{"a number without end", strings.Repeat("9", 100) + "\n", `is beyond 30 days`},
		{"a line without end", "1\n" + strings.Repeat("1", 1000), `f:2: a line of more than 256 bytes is no time`},
		{"nothing but remarks", "# none\n\n", `f: has no times; give one a line`},
	} {
		times, err := ReadTimes("f", strings.NewReader(row.text))
		require.ErrorContains(t, err, row.want, row.says)
		require.Nil(t, times, row.says)
		require.NotContains(t, err.Error(), "\n", row.says)
	}
	_, err = ReadTimes("f", broken{})
	require.ErrorIs(t, err, errBroken)
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

// The file is looked for beside the workload that names it, and its times are the work, not its name.
func TestReplayedSchedule(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	put("times.txt", "0\n0.5\n1\n")
	again := put("same.txt", "0s\n500ms\n1s\n")
	path := put("w.yaml", "producers.schedule: {kind: replay, file: times.txt}\nphases.duration: 0\nthresholds: [response.p99<1s]\n")
	d, err := Load(path, fakeClient{}, Overrides{})
	require.NoError(t, err)
	require.Equal(t, []int64{0, 5e8, 1e9}, d.Times)
	require.Equal(t, filepath.Join(dir, "times.txt"), d.Producers.Schedule.File)
	require.True(t, d.Open())
	require.Empty(t, d.Check(), "a point, which has no places, looks where the workload did")

	same, err := Load(path, fakeClient{}, Overrides{Set: []string{"producers.schedule.file=" + again}})
	require.NoError(t, err)
	require.Equal(t, d.Hash(), same.Hash())
	put("times.txt", "0\n0.5\n2\n")
	other, err := Load(path, fakeClient{}, Overrides{})
	require.NoError(t, err)
	require.NotEqual(t, d.Hash(), other.Hash())

	put("times.txt", "0\nx\n")
	_, err = Load(path, fakeClient{}, Overrides{})
	require.ErrorContains(t, err, `w.yaml:1:42: producers.schedule.file: `+filepath.Join(dir, "times.txt")+`:2: "x" is no time`)
	for _, row := range []struct{ says, yaml, want string }{
		{"no file", "producers.schedule.kind: replay", "replay needs producers.schedule.file"},
		{"one that is not there", "producers.schedule: {kind: replay, file: /no/such}", "there is no file /no/such"},
		{"a directory", "producers.schedule: {kind: replay, file: " + dir + "}", "is not a file"},
		{"a rate beside it", "producers.rate: 5\nproducers.schedule: {kind: replay, file: " + again + "}", "is not used by kind replay"},
		{"a file without replay", "producers.schedule: {file: " + again + "}", "belongs to kind replay"},
	} {
		_, err := Decode("w.yaml", []byte(row.yaml), fakeClient{}, Overrides{})
		require.ErrorContains(t, err, row.want, row.says)
	}
}

func TestReplayIsBounded(t *testing.T) {
	if testing.Short() || os.Getenv("KBENCH_SOAK") != "1" {
		// The bound itself takes 40 MB of zeros to reach: a part of it stands for the whole.
		times, err := ReadTimes("f", bytes.NewReader(bytes.Repeat([]byte("0\n"), 100_000)))
		require.NoError(t, err)
		require.Len(t, times, 100_000)
		return
	}
	_, err := ReadTimes("f", bytes.NewReader(bytes.Repeat([]byte("0\n"), maxReplayTimes+1)))
	require.ErrorContains(t, err, "more than 20000000 times")
}

func FuzzReadTimes(f *testing.F) {
	f.Add([]byte("0\n0.5\n1500ms\n# x\n"))
	f.Add([]byte(".5\n9999999999999999999999\n"))
	f.Add([]byte("1h2m\n-3\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		times, err := ReadTimes("f", bytes.NewReader(data))
		if (err == nil) == (len(times) == 0) {
			t.Fatal(err, len(times))
		}
		for i, at := range times {
			if at < 0 || at > int64(maxReplay) || i > 0 && at < times[i-1] {
				t.Fatal(times)
			}
		}
	})
}

func TestRateOfEach(t *testing.T) {
	d := Default()
	d.Name, d.Producers.Count, d.Producers.Rate = "w", 14_000, 1
	require.EqualValues(t, 1, d.Producers.Fleet())
	d.Producers.RateOf = "each"
	require.EqualValues(t, 14_000, d.Producers.Fleet())
	require.Empty(t, d.Check())
	d.Producers.Rate = 100_000
	require.ErrorContains(t, d.Check().Err(), "producers.rate: is 100000 for each of 14000 producers, which is above 1000000000 for all")
	require.Zero(t, d.Phases.CoolDown)
	require.Equal(t, 10*time.Second, d.Phases.Length())
}
