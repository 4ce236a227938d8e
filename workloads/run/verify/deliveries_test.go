package verify

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGroupFindings(t *testing.T) {
	type d struct {
		member, generation int
		partition          int32
		offset             int64 // and number
	}
	for _, tc := range []struct {
		sentence string
		expected []int64
		given    []d
		want     GroupFindings
	}{
		{"everything once", []int64{0, 1}, []d{{1, 1, 0, 0}, {1, 1, 0, 1}}, GroupFindings{Given: 2, Distinct: 2, Expected: 2}},
		{"what nobody got is missing", []int64{0, 1, 2}, []d{{1, 1, 0, 0}, {1, 1, 0, 2}}, GroupFindings{Given: 2, Distinct: 2, Expected: 3, Missing: 1}},
		{"what nobody was to get is not expected", []int64{0}, []d{{1, 1, 0, 0}, {1, 1, 0, 1}}, GroupFindings{Given: 2, Distinct: 2, Expected: 1, Unexpected: 1}},
		{"the same again in the next generation is a repetition, and in order", []int64{0, 1},
			[]d{{1, 1, 0, 0}, {1, 1, 0, 1}, {1, 2, 0, 0}, {1, 2, 0, 1}}, GroupFindings{Given: 4, Distinct: 2, Repeated: 2, Expected: 2}},
		{"and so it is with another member", []int64{0, 1},
			[]d{{1, 1, 0, 0}, {1, 1, 0, 1}, {2, 1, 0, 0}, {2, 1, 0, 1}}, GroupFindings{Given: 4, Distinct: 2, Repeated: 2, Expected: 2}},
		{"the same again in one generation is out of order", []int64{0}, []d{{1, 1, 0, 0}, {1, 1, 0, 0}}, GroupFindings{Given: 2, Distinct: 1, Repeated: 1, Reordered: 1, Expected: 1}},
		{"an earlier one after a later one is too", []int64{0, 1}, []d{{1, 1, 0, 1}, {1, 1, 0, 0}}, GroupFindings{Given: 2, Distinct: 2, Reordered: 1, Expected: 2}},
		{"partitions have orders of their own", []int64{0, 1}, []d{{1, 1, 1, 1}, {1, 1, 0, 0}}, GroupFindings{Given: 2, Distinct: 2, Expected: 2}},
		{"expected twice is expected once", []int64{0, 0}, []d{{1, 1, 0, 0}}, GroupFindings{Given: 1, Distinct: 1, Expected: 1}},
	} {
		t.Run(tc.sentence, func(t *testing.T) {
			before, after := NewDeliveries(), NewDeliveries()
			for _, n := range tc.expected {
				before.Expect(7, n)
			}
			for _, g := range tc.given {
				m := Delivered{Member: g.member, Generation: g.generation, Record: Record{Producer: 7, Number: g.offset, Partition: g.partition, Offset: g.offset}}
				before.Give(m)
				after.Give(m)
			}
			for _, n := range tc.expected {
				after.Expect(7, n)
			}
			require.Equal(t, tc.want, before.Findings())
			require.Equal(t, tc.want, after.Findings(), "told afterwards")
		})
	}
}
