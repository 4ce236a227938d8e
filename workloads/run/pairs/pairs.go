// Package pairs runs two sides alternately, in pairs of whole runs whose order within the pair is
// random, so that what drifts in the environment is in both. It decides nothing: a judge does.
package pairs

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/kbench/kbench/results"
)

// Side is one of the two that are compared.
type Side int

// The sides: A is the base, B the one that may have become worse.
const (
	A Side = iota
	B
)

// String is the side's letter.
func (s Side) String() string { return [...]string{"A", "B"}[s] }

// Spec is what to run, and how long.
type Spec struct {
	// Seed decides the order within every pair.
	Seed uint64
	// Most is the number of valid pairs at which it ends at the latest.
	Most int
	// Spare is how many pairs may be lost to invalid runs, and are run again.
	Spare int
	// Execute runs a side once. pair counts from 0 and includes lost ones; order counts the
	// runs. What was measured of a run that ended with an error is not used.
	Execute func(ctx context.Context, side Side, pair, order int) (*results.Run, error)
	// Judge takes each valid pair and says whether that was enough.
	Judge func(a, b *results.Run) (enough bool, err error)
}

// Outcome is how it ended.
type Outcome struct {
	Valid int
	// Lost are the reasons of the pairs that were lost, by side.
	Lost []Lost
	// Enough is true when the judge said so; TooMany when more than Spare pairs were lost.
	Enough, TooMany bool
}

// Lost is a pair that could not be used.
type Lost struct {
	Pair    int
	Side    Side
	Reasons []string
}

// Run executes pairs one after the other until the judge has enough, Most is reached, too many
// were lost, ctx ends or there is an error. The outcome stands with an error as well. After a
// first run that is invalid the second of the pair is not run.
func Run(ctx context.Context, s Spec) (Outcome, error) {
	var out Outcome
	order := 0
	for pair := 0; out.Valid < s.Most; pair++ {
		sides := orderOf(s.Seed, pair)
		var runs [2]*results.Run
		lost := false
		for _, side := range sides {
			if err := ctx.Err(); err != nil {
				return out, context.Cause(ctx)
			}
			run, err := s.Execute(ctx, side, pair, order)
			order++
			if err != nil {
				return out, fmt.Errorf("pair %d, side %s: %w", pair+1, side, err)
			}
			if runs[side] = run; !run.Verdict.Valid {
				out.Lost = append(out.Lost, Lost{pair, side, run.Verdict.Reasons})
				lost = true
				break
			}
		}
		if lost {
			if len(out.Lost) > s.Spare {
				out.TooMany = true
				return out, nil
			}
			continue
		}
		out.Valid++
		enough, err := s.Judge(runs[A], runs[B])
		if err != nil || enough {
			out.Enough = enough
			return out, err
		}
	}
	return out, nil
}

// orderOf is the order of the sides in a pair.
func orderOf(seed uint64, pair int) [2]Side {
	if rand.New(rand.NewPCG(seed, uint64(pair))).IntN(2) == 1 {
		return [2]Side{B, A}
	}
	return [2]Side{A, B}
}
