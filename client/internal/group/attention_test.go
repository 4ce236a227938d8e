package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAttention(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(minutes float64) time.Time { return start.Add(time.Duration(minutes * float64(time.Minute))) }
	type look struct {
		at    float64 // minutes
		asked int64
		waits bool
		away  bool
		again float64 // minutes; -1: when it has asked
	}
	for _, row := range []struct {
		says  string
		limit time.Duration
		looks []look
	}{
		{"who never asks is away when the limit has passed, and not before", 5 * time.Minute, []look{
			{0, 0, false, false, 0.5}, {4.5, 0, false, false, 5}, {4.9, 0, false, false, 5}, {5, 0, false, true, -1}, {9, 0, false, true, -1},
		}},
		{"who has asked since the last look counts from this one on", 5 * time.Minute, []look{
			{4, 17, false, false, 4.5}, {8.9, 17, false, false, 9}, {9, 17, false, true, -1},
		}},
		{"who waits is there, for however long", 5 * time.Minute, []look{
			{4, 1, true, false, 4.5}, {100, 1, true, false, 100.5}, {104.9, 1, false, false, 105}, {105, 1, false, true, -1},
		}},
		{"who asks again is back", 5 * time.Minute, []look{{5, 0, false, true, -1}, {6, 1, false, false, 6.5}, {11, 1, false, true, -1}}},
		{"who waits again is back", 5 * time.Minute, []look{{5, 0, false, true, -1}, {6, 0, true, false, 6.5}}},
		{"without a limit nobody is away", 0, []look{{0, 0, false, false, -1}, {1e6, 0, false, false, -1}}},
	} {
		a := NewAttention(row.limit, start)
		for i, l := range row.looks {
			away, again := a.Look(at(l.at), l.asked, l.waits)
			require.Equal(t, l.away, away, "%s: look %d", row.says, i)
			if l.again < 0 {
				require.Zero(t, again, "%s: look %d", row.says, i)
			} else {
				require.Equal(t, at(l.again), again, "%s: look %d", row.says, i)
			}
		}
	}
}
