package pairs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run/pairs"
)

// executed is one call of Execute.
type executed struct {
	side        pairs.Side
	pair, order int
}

// spec records what is executed; runs of which bad says so are invalid.
func spec(calls *[]executed, bad func(executed) bool, enoughAt int) pairs.Spec {
	judged := 0
	return pairs.Spec{
		Seed: 42, Most: 20, Spare: 2,
		Execute: func(_ context.Context, side pairs.Side, pair, order int) (*results.Run, error) {
			e := executed{side, pair, order}
			*calls = append(*calls, e)
			if bad != nil && bad(e) {
				return &results.Run{Repeat: pair, Verdict: results.Verdict{Reasons: []string{"paused"}}}, nil
			}
			return &results.Run{Repeat: pair, Order: order, Loop: side.String(), Verdict: results.Verdict{Valid: true}}, nil
		},
		Judge: func(a, b *results.Run) (bool, error) {
			judged++
			if a.Loop != "A" || b.Loop != "B" || a.Repeat != b.Repeat {
				return false, errors.New("sides or pairs are mixed up")
			}
			return judged == enoughAt, nil
		},
	}
}

func TestRunsPairsInRandomOrder(t *testing.T) {
	var calls []executed
	out, err := pairs.Run(t.Context(), spec(&calls, nil, 0))
	require.NoError(t, err)
	require.Equal(t, pairs.Outcome{Valid: 20}, out)
	require.Len(t, calls, 40)
	firstA := 0
	for i, c := range calls {
		require.Equal(t, i, c.order)
		require.Equal(t, i/2, c.pair, "both runs of a pair are next to each other")
		if i%2 == 0 && c.side == pairs.A {
			firstA++
		}
		if i%2 == 1 {
			require.NotEqual(t, calls[i-1].side, c.side)
		}
	}
	require.InDelta(t, 10, firstA, 5, "either side goes first about as often")
	var again []executed
	_, err = pairs.Run(t.Context(), spec(&again, nil, 0))
	require.NoError(t, err)
	require.Equal(t, calls, again, "the seed decides")
}

func TestEndsWhenTheJudgeHasEnough(t *testing.T) {
	var calls []executed
	out, err := pairs.Run(t.Context(), spec(&calls, nil, 8))
	require.NoError(t, err)
	require.True(t, out.Enough)
	require.Len(t, calls, 16)
}

func TestInvalidPairsAreRunAgain(t *testing.T) {
	var calls []executed
	out, err := pairs.Run(t.Context(), spec(&calls, func(e executed) bool { return e.order == 4 || e.order == 9 }, 8))
	require.NoError(t, err)
	require.True(t, out.Enough)
	require.Equal(t, 8, out.Valid)
	require.Len(t, out.Lost, 2)
	require.Equal(t, []string{"paused"}, out.Lost[0].Reasons)
	require.Equal(t, 2, out.Lost[0].Pair)
	require.NotEqual(t, calls[4].pair, calls[5].pair, "the second run of a lost pair is saved")
}

func TestTooManyInvalidPairsEndIt(t *testing.T) {
	var calls []executed
	out, err := pairs.Run(t.Context(), spec(&calls, func(e executed) bool { return e.side == pairs.B }, 8))
	require.NoError(t, err)
	require.True(t, out.TooMany)
	require.Zero(t, out.Valid)
	require.Len(t, out.Lost, 3)
	require.Equal(t, pairs.B, out.Lost[2].Side)
}

func TestErrorsEndIt(t *testing.T) {
	var calls []executed
	s := spec(&calls, nil, 0)
	inner := s.Execute
	broken := errors.New("no broker")
	s.Execute = func(ctx context.Context, side pairs.Side, pair, order int) (*results.Run, error) {
		if order == 5 {
			return nil, broken
		}
		return inner(ctx, side, pair, order)
	}
	out, err := pairs.Run(t.Context(), s)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "pair 3, side ")
	require.Equal(t, 2, out.Valid)
	s = spec(&calls, nil, 0)
	s.Judge = func(_, _ *results.Run) (bool, error) { return false, broken }
	_, err = pairs.Run(t.Context(), s)
	require.ErrorIs(t, err, broken)
}

func TestContextEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	var calls []executed
	s := spec(&calls, func(e executed) bool {
		if e.order == 6 {
			cancel(why)
		}
		return false
	}, 0)
	out, err := pairs.Run(ctx, s)
	require.ErrorIs(t, err, why)
	require.Equal(t, 3, out.Valid)
	require.Len(t, calls, 7)
}
