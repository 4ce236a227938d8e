package gate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/report/gate"
	"github.com/kbench/kbench/workloads"
)

var firstDay = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

// night is the result of a night, four runs around a p50.
func night(day int, p50, spread float64) gate.Entry {
	n := stored(fmt.Sprintf("night-%d", day), 4, p50, spread, uint64(day))
	n.Result.StartedAt = firstDay.AddDate(0, 0, day)
	return gate.Entry{Name: n.Name, Result: n.Result}
}

// nights are results of one level a night.
func nights(spread float64, levels ...float64) []gate.Entry {
	var list []gate.Entry
	for i, p50 := range levels {
		list = append(list, night(i, p50, spread))
	}
	return list
}

func named(e gate.Entry) compare.Named { return compare.Named{Name: e.Name, Result: e.Result} }

func TestBaseline(t *testing.T) {
	calm := []float64{10, 10.2, 9.9, 10.1, 9.8, 10, 10.1}
	restless := []float64{10, 14, 8, 13, 9, 15, 7}
	with := func(list []gate.Entry, change func([]gate.Entry)) []gate.Entry {
		change(list)
		return list
	}
	for _, c := range []struct {
		about   string
		history []gate.Entry
		new     float64
		want    gate.Verdict
		says    string
	}{
		{"as ever", nights(0.01, calm...), 10.1, gate.Pass, "judged beside 7 results of 2026-03-01 to 2026-03-07"},
		{"40 % slower", nights(0.01, calm...), 14, gate.Fail, ""},
		{"40 % slower, but nights differ as much: their spread is the noise floor", nights(0.01, restless...), 14, gate.Inconclusive, ""},
		{"the first of all", nil, 10, gate.Inconclusive, "no result of the same work"},
		{"what failed is no measure", with(nights(0.01, 10, 10.1, 9.9, 15, 15.1, 14.9), func(l []gate.Entry) { l[3].Failed, l[4].Failed, l[5].Failed = true, true, true }), 15, gate.Fail, "judged beside 3 results"},
		{"what was accepted begins anew", with(nights(0.01, 10, 10.1, 9.9, 15, 15.1, 14.9), func(l []gate.Entry) { l[3].Accepted = true }), 15, gate.Pass, "judged beside 3 results of 2026-03-04"},
		{"other hosts do not count", with(nights(0.01, 5, 5.1, 10, 9.9), func(l []gate.Entry) {
			l[0].Result.Provenance.Host.Hostname, l[1].Result.Provenance.Host.Hostname = "b", "b"
		}), 10, gate.Pass, "judged beside 2 results"},
		{"nor does other work", with(nights(0.01, 10, 10), func(l []gate.Entry) { l[0].Result.Workload.Hash, l[1].Result.Workload.Hash = "x", "x" }), 10, gate.Inconclusive, "2 of other work or places"},
		{"the last ten", nights(0.01, 5, 5, 5, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10), 10, gate.Pass, "judged beside 10 results of 2026-03-04"},
	} {
		t.Run(c.about, func(t *testing.T) {
			d, err := gate.Baseline(c.history, named(night(40, c.new, 0.01)), gate.StoredOptions{})
			require.NoError(t, err)
			require.Equal(t, gate.KindBaseline, d.Kind)
			require.Equal(t, c.want, d.Verdict, "%+v", d.Metrics)
			require.Contains(t, fmt.Sprint(d.Notes), c.says)
		})
	}
}

func TestBaselineWithoutHistoryStillHasConditions(t *testing.T) {
	limit := []workloads.Threshold{threshold(t, "response.p99<1ms")}
	d, err := gate.Baseline(nil, named(night(1, 10, 0.01)), gate.StoredOptions{Thresholds: limit})
	require.NoError(t, err)
	require.Equal(t, gate.Fail, d.Verdict)
}

func TestBaselineFindsChanges(t *testing.T) {
	history := nights(0.01, 10, 10.1, 9.9, 10, 10.2, 9.8, 10, 13, 13.2, 12.9, 13.1, 13, 12.8)
	history[0], history[9] = history[9], history[0] // order on disk says nothing
	d, err := gate.Baseline(history, named(night(13, 13, 0.01)), gate.StoredOptions{})
	require.NoError(t, err)
	require.Len(t, d.Trends, 4)
	p50 := d.Trends[1]
	require.Equal(t, "response.p50", p50.Name)
	require.Len(t, p50.Values, 14)
	require.Equal(t, []int{7}, p50.Changes)
	require.InDelta(t, 10e6, p50.Level(0), 0.2e6)
	require.InDelta(t, 13e6, p50.Level(1), 0.3e6)
	require.Empty(t, d.Trends[0].Changes, "throughput did not change")
	require.Regexp(t, `response.p50 changed by \+(29|30|31)\.\d % with night-7 of 2026-03-08`, fmt.Sprint(d.Notes))
}

func TestBaselineIgnoresTheResultItself(t *testing.T) {
	history := nights(0.01, 10, 10, 10)
	d, err := gate.Baseline(history, named(history[2]), gate.StoredOptions{})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(d.Notes), "judged beside 2 results")
	require.Len(t, d.Trends[1].Values, 3)
}

// What a baseline cannot be judged by is said before anything else, with what is unlike.
func TestBaselineNamesWhatIsUnlike(t *testing.T) {
	moved := nights(0.01, 10, 10.1)
	for i := range moved {
		moved[i].Result.Provenance.Host.Hostname, moved[i].Result.Provenance.Host.CPUs = "old", 2+i
	}
	d, err := gate.Baseline(moved, named(night(40, 14, 0.01)), gate.StoredOptions{})
	require.NoError(t, err)
	require.Equal(t, gate.Inconclusive, d.Verdict)
	require.Contains(t, d.Notes[0], "unlike night-1: host: old, then ")
	require.Contains(t, d.Notes[1], "unlike night-1: CPUs: 3, then ")
	require.Contains(t, d.Notes[2], "no result of the same work in the same place")
	d, err = gate.Baseline(moved, named(night(40, 14, 0.01)), gate.StoredOptions{Force: true})
	require.NoError(t, err)
	require.Equal(t, gate.Fail, d.Verdict)
	require.NotEmpty(t, d.Forced)
	some := []gate.Entry{moved[0], night(2, 10, 0.01), night(3, 10.1, 0.01)}
	d, err = gate.Baseline(some, named(night(40, 10, 0.01)), gate.StoredOptions{})
	require.NoError(t, err)
	require.Equal(t, gate.Pass, d.Verdict)
	require.Contains(t, d.Notes, "1 of the baseline left out, of other work or places")
	require.Contains(t, fmt.Sprint(d.Notes), "unlike night-0: host: old, then ")
}

// Hosts that are others each time make no baseline.
func TestBaselineOfPassingHosts(t *testing.T) {
	e := night(40, 10, 0.01)
	e.Result.Provenance.Host.Passing = "a container named by its id"
	_, err := gate.Baseline(nights(0.01, 10, 10.1, 9.9), named(e), gate.StoredOptions{})
	var passing *gate.PassingError
	require.ErrorAs(t, err, &passing)
	require.ErrorContains(t, err, "the result is of a container named by its id")
	d, err := gate.Baseline(nights(0.01, 10, 10.1, 9.9), named(e), gate.StoredOptions{Force: true})
	require.NoError(t, err)
	require.Equal(t, gate.Pass, d.Verdict)
	require.Contains(t, d.Notes, "FORCED although the result is of a container named by its id")
}
