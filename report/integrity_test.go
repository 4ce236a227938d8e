package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

func TestIntegrityText(t *testing.T) {
	for _, row := range []struct {
		says string
		c    results.Counts
		want string
	}{
		{"counts", results.Counts{Lost: 1, Duplicated: 2, Reordered: 3, Corrupted: 4}, "lost 1 · duplicated 2 · reordered 3 · corrupted 4"},
		{"what others wrote stands beside", results.Counts{Unstamped: 1200}, "lost 0 · duplicated 0 · reordered 0 · corrupted 0 · unstamped 1,200 (others')"},
		{"nobody knows", results.Counts{NotReceived: 7}, "lost not known (7 not received in time) · duplicated 0 · reordered 0 · corrupted 0"},
		{"unchecked", results.Counts{Unchecked: true}, "lost, duplicated, reordered and corrupted not checked: messages carry no stamp"},
	} {
		require.Equal(t, row.want, integrityText(row.c), row.says)
	}
}
