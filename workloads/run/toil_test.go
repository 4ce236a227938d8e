package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestToil(t *testing.T) {
	for _, row := range []struct {
		sentence                   string
		came, idle, from, to, held int64
		behind, own                int64
	}{
		{"making the run and handing it over is work", 100, 0, 130, 180, 0, 80, 80},
		{"a target that does not tell: all of Send is its own", 100, 0, 130, 180, HeldThroughout, 80, 30},
		{"held up until half-way", 100, 0, 130, 180, 155, 80, 55},
		{"held up before, by another run", 100, 0, 130, 180, 90, 80, 80},
		{"waiting for a message to come back, or for a transaction, is no work", 100, 20, 130, 180, 0, 80, 60},
		{"no more is waited than there was", 100, 40, 130, 180, HeldThroughout, 80, 0},
	} {
		var got toil
		got.add(row.came, row.idle, row.from, row.to, row.held)
		require.Equal(t, toil{row.behind, row.own}, got, row.sentence)
		got.add(row.came, row.idle, row.from, row.to, row.held)
		require.Equal(t, toil{2 * row.behind, 2 * row.own}, got, "it adds up")
	}
}
