package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

func reading(lags ...PartitionLag) func([]PartitionLag) []PartitionLag {
	return func(into []PartitionLag) []PartitionLag { return append(into, lags...) }
}

func TestLagLogSums(t *testing.T) {
	for _, row := range []struct {
		says  string
		lags  []PartitionLag
		total int64
		sums  []int64
	}{
		{"nothing is known of nothing", nil, -1, []int64{}},
		{"a sum over partitions", []PartitionLag{{0, 0, 0, 3}, {0, 0, 1, 4}}, 7, []int64{7}},
		{"and over groups", []PartitionLag{{0, 0, 0, 3}, {1, 0, 0, 4}}, 7, []int64{3, 4}},
		{"one partition that is not known", []PartitionLag{{0, 0, 0, 3}, {0, 0, 1, -1}, {1, 0, 0, 4}}, -1, []int64{-1, 4}},
	} {
		var l lagLog
		require.Equal(t, row.total, l.read(1, true, reading(row.lags...)), row.says)
		require.Equal(t, row.sums, append([]int64{}, l.sums...), row.says)
	}
}

func TestLagLogWorst(t *testing.T) {
	var l lagLog
	require.Nil(t, l.worst(allGroups), "never known")
	for i, n := range []int64{5, 9, -1, 9, 2} {
		l.read(int64(i+1), true, reading(PartitionLag{Messages: n}))
	}
	l.read(6, false, reading(PartitionLag{Messages: 100}))
	require.Equal(t, &results.Lag{MaxMessages: 9, MaxAtNs: 2, FinalMessages: 2}, l.worst(allGroups), "of the measured phase, the first of equal ones")
	require.Equal(t, l.worst(allGroups), l.worst(0))
	require.Len(t, l.table(nil, nil).Rows, 6)
	l.read(6, false, reading(PartitionLag{Messages: 100}))
	require.Len(t, l.table(nil, nil).Rows, 6, "one row for a time")
}

// Partitions that appear later have a column of their own, not known before.
func TestLagLogColumns(t *testing.T) {
	var l lagLog
	l.read(1, true, reading(PartitionLag{0, 0, 0, 1}))
	l.read(2, true, reading(PartitionLag{0, 0, 0, 2}, PartitionLag{1, 1, 7, 3}))
	l.read(3, true, reading(PartitionLag{1, 1, 7, 4}))
	table := l.table([]results.Topic{{Name: "a"}, {Name: "b"}}, []results.Group{{Name: "g"}, {Name: "h"}})
	require.Equal(t, []results.LagColumn{{Group: "g", Topic: "a"}, {Group: "h", Topic: "b", Partition: 7}}, table.Columns)
	require.Equal(t, "group-2", l.table(nil, nil).Columns[1].Group, "several groups without names")
	require.Equal(t, []results.LagRow{{EndNs: 1, Messages: []int64{1, -1}}, {EndNs: 2, Messages: []int64{2, 3}}, {EndNs: 3, Messages: []int64{-1, 4}}}, table.Rows)
}

// A day of readings of a great many partitions is thinned, evenly, and stays within its bound.
func TestLagLogStaysBounded(t *testing.T) {
	require.Equal(t, maxLagCells, (&lagLog{}).bound())
	l, lags := lagLog{most: 1 << 14}, make([]PartitionLag, 400)
	if soak() {
		l, lags = lagLog{}, make([]PartitionLag, 100_000)
	}
	for i := range lags {
		lags[i] = PartitionLag{Partition: int32(i), Messages: 1}
	}
	for i := range int64(200) {
		l.read(i+1, true, reading(lags...))
		require.LessOrEqual(t, len(l.rows)*len(l.columns), l.bound())
	}
	require.Greater(t, len(l.rows), l.bound()/len(lags)/4)
	step := l.rows[1].EndNs - l.rows[0].EndNs
	for i := 1; i < len(l.rows); i++ {
		require.Equal(t, step, l.rows[i].EndNs-l.rows[i-1].EndNs)
	}
	require.EqualValues(t, 200, l.last)
}

func TestCatchUpEndsWhenEveryPartitionWasAtItsEnd(t *testing.T) {
	var c catchUp
	p := func(partition int32, n int64) PartitionLag { return PartitionLag{Partition: partition, Messages: n} }
	c.begin(1000, 50, []PartitionLag{p(0, 10), p(1, 20)})
	require.EqualValues(t, 30, c.backlog)
	for i, row := range []struct {
		says string
		lags []PartitionLag
		done bool
	}{
		{"no reading yet", nil, false},
		{"both are behind", []PartitionLag{p(0, 10), p(1, 20)}, false},
		{"one of them is there", []PartitionLag{p(0, 0), p(1, 5)}, false},
		{"one is not known", []PartitionLag{p(0, 0), p(1, -1)}, false},
		{"the other is there, while the first has fallen behind again", []PartitionLag{p(0, 7), p(1, 0)}, true},
		{"and that is that", []PartitionLag{p(0, 9), p(1, 9)}, true},
	} {
		require.Equal(t, row.done, c.saw(2000+int64(i), 80+int64(i), row.lags), row.says)
	}
	require.EqualValues(t, 2004, c.reached)
	require.EqualValues(t, 34, c.drained)
	c.begin(1000, 0, []PartitionLag{p(0, 10), p(1, -1)})
	require.EqualValues(t, -1, c.backlog, "a backlog that is not known whole is not known")
	require.Zero(t, c.reached)
}
