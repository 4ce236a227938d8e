package run

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads"
)

func TestExplain(t *testing.T) {
	of1 := excuse{partition: 1, from: 100, until: 200}
	all := excuse{partition: workloads.All, from: 100, until: 200}
	for _, row := range []struct {
		sentence string
		by       []excuse
		moves    []Move
		leaders  []int32 // of topic 0 that are excused
		isr      []int32
	}{
		{"without a fault nothing is", nil, []Move{{Partition: 1, After: 110, At: 120}}, nil, nil},
		{"its partition, while it lasts", []excuse{of1}, []Move{{Partition: 1, After: 110, At: 120}}, []int32{1}, nil},
		{"another partition is not", []excuse{of1}, []Move{{Partition: 1, After: 110, At: 120}, {Partition: 2, After: 110, At: 120}}, []int32{1}, nil},
		{"every partition", []excuse{all}, []Move{{Partition: 1, After: 110, At: 120}, {Partition: 2, After: 110, At: 120}}, []int32{1, 2}, nil},
		{"what was seen before it began is not", []excuse{of1}, []Move{{Partition: 1, After: 80, At: 99}}, nil, nil},
		{"what may have happened before it ended, and was seen later", []excuse{of1}, []Move{{Partition: 1, After: 200, At: 300}}, []int32{1}, nil},
		{"what happened after it is not", []excuse{of1}, []Move{{Partition: 1, After: 201, At: 300}}, nil, nil},
		{"one move of several that is not explained", []excuse{of1}, []Move{{Partition: 1, After: 110, At: 120}, {Partition: 1, After: 210, At: 220}}, nil, nil},
		{"whichever came first", []excuse{of1}, []Move{{Partition: 1, After: 50, At: 60}, {Partition: 1, After: 110, At: 120}}, nil, nil},
		{"each by a fault of its own", []excuse{of1, {partition: 1, from: 210, until: AnyTime}}, []Move{{Partition: 1, After: 110, At: 120}, {Partition: 1, After: 205, At: 900}}, []int32{1}, nil},
		{"nobody knows when", []excuse{{partition: 1, from: 0, until: AnyTime}}, []Move{{Partition: 1, After: AnyTime, At: AnyTime}}, nil, nil},
		{"replicas apart from leaders", []excuse{of1}, []Move{{Partition: 1, After: 210, At: 220}, {Partition: 1, ISR: true, After: 110, At: 120}}, nil, []int32{1}},
		{"a topic that is not there", []excuse{all}, []Move{{Topic: 3, After: 110, At: 120}, {Topic: -1, After: 110, At: 120}}, nil, nil},
	} {
		got := explain(2, row.moves, row.by)
		require.Len(t, got, 2)
		require.Equal(t, row.leaders, slices.Sorted(maps.Keys(got[0].Leaders)), row.sentence)
		require.Equal(t, row.isr, slices.Sorted(maps.Keys(got[0].ISR)), row.sentence)
		require.Empty(t, got[1].Leaders, row.sentence)
	}
}
