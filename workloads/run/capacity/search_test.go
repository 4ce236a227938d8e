package capacity_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/results/stat"
	"github.com/kbench/kbench/workloads/run/capacity"
)

// system answers a step.
type system func(capacity.Step) capacity.Answer

// queue holds up to mu and achieves mu beyond.
func queue(mu float64) system {
	return func(s capacity.Step) capacity.Answer {
		met := s.Rate <= mu/0.99
		return capacity.Answer{Achieved: min(s.Rate, mu), RateMet: met, Held: met}
	}
}

// taken is a search that has ended.
type taken struct {
	capacity.Conclusion
	steps  []capacity.Step
	probes int
	holds  int
}

// follow makes every step on a system.
func follow(t require.TestingT, s *capacity.Search, on system) taken {
	var all taken
	for step, more := s.Next(); more; step, more = s.Next() {
		all.steps = append(all.steps, step)
		require.Less(t, len(all.steps), 100, "it ends")
		require.Positive(t, step.Rate)
		if step.Stage == capacity.Hold {
			all.holds++
			require.Equal(t, all.holds, step.Number)
		} else {
			require.Zero(t, all.holds, "hold runs come last")
			all.probes++
			require.Equal(t, all.probes, step.Number)
		}
		s.Took(on(step))
	}
	all.Conclusion = s.Conclusion()
	return all
}

func rates(steps []capacity.Step) (all []float64) {
	for _, s := range steps {
		all = append(all, s.Rate)
	}
	return all
}

func TestCheck16SearchSteps(t *testing.T) {
	all := follow(t, capacity.New(capacity.Options{Start: 1000}), queue(20_000))
	require.Equal(t, capacity.Found, all.Outcome)
	require.Equal(t, []float64{1000, 2000, 4000, 8000, 16_000, 32_000}, rates(all.steps[:6]), "it doubles")
	require.InDelta(t, math.Sqrt(16_000*32_000), all.steps[6].Rate, 5, "and then halves on a logarithmic scale")
	require.LessOrEqual(t, all.probes, 12)
	require.Equal(t, 1, all.holds)
	require.GreaterOrEqual(t, all.Achieved, 19_600.0)
	require.LessOrEqual(t, all.Achieved, 20_000.0)
	require.LessOrEqual(t, all.Upper/all.Asked, 1.02)
	require.Greater(t, all.Upper, 20_000.0)
}

func TestSearchFromAnywhere(t *testing.T) {
	tests := []struct {
		says     string
		o        capacity.Options
		on       system
		outcome  capacity.Outcome
		from, to float64 // of what was achieved in the hold run
		probes   int     // at most; 0: 12
	}{
		{"from above: down to what was achieved", capacity.Options{Start: 1e6}, queue(20_000), capacity.Found, 19_600, 20_000, 0},
		{"from just above", capacity.Options{Start: 21_000}, queue(20_000), capacity.Found, 19_600, 20_000, 0},
		{"from far above a small one: never stuck near 0", capacity.Options{Start: 1e6}, queue(37), capacity.Found, 35.5, 37, 14},
		{"from close below", capacity.Options{Start: 19_000}, queue(20_000), capacity.Found, 19_600, 20_000, 0},
		{"everything holds: bounded by the ceiling", capacity.Options{Start: 1000, Most: 70_000}, queue(1e9), capacity.AtMost, 70_000, 70_000, 0},
		{"a start above the ceiling", capacity.Options{Start: 1e6, Most: 70_000}, queue(1e9), capacity.AtMost, 70_000, 70_000, 1},
		{"a ceiling in the way of the last doubling", capacity.Options{Start: 1000, Most: 19_700}, queue(20_000), capacity.AtMost, 19_700, 19_700, 0},
		{"a ceiling that is not in the way", capacity.Options{Start: 1000, Most: 25_000}, queue(20_000), capacity.Found, 19_600, 20_000, 0},
		{"probes run out while it still rises", capacity.Options{Start: 1000, Probes: 4}, queue(20_000), capacity.OutOfProbes, 8000, 8000, 4},
		{"probes run out while it narrows down", capacity.Options{Start: 1000, Probes: 7}, queue(20_000), capacity.Found, 16_000, 16_000, 7},
		{"collapse under overload: nothing is achieved above", capacity.Options{Start: 1e6}, func(s capacity.Step) capacity.Answer {
			if s.Rate > 20_000 {
				return capacity.Answer{Achieved: 3}
			}
			return capacity.Answer{Achieved: s.Rate, RateMet: true, Held: true}
		}, capacity.Found, 19_000, 20_000, 0},
		{"low rates do not hold: looked for further up", capacity.Options{Start: 1000}, func(s capacity.Step) capacity.Answer {
			return capacity.Answer{Achieved: min(s.Rate, 20_000), RateMet: s.Rate <= 20_200, Held: s.Rate > 3000 && s.Rate <= 20_200}
		}, capacity.Found, 14_000, 20_000, 0},
		{"a gap on the way up is believed", capacity.Options{Start: 1000, Probes: 20}, func(s capacity.Step) capacity.Answer {
			gap := s.Rate > 6000 && s.Rate < 9000
			return capacity.Answer{Achieved: min(s.Rate, 20_000), RateMet: s.Rate <= 20_200, Held: !gap && s.Rate <= 20_200}
		}, capacity.Found, 5880, 6000, 20},
	}
	for _, tt := range tests {
		t.Run(tt.says, func(t *testing.T) {
			all := follow(t, capacity.New(tt.o), tt.on)
			require.Equal(t, tt.outcome, all.Outcome, "%v", rates(all.steps))
			require.GreaterOrEqual(t, all.Achieved, tt.from, "%v", rates(all.steps))
			require.LessOrEqual(t, all.Achieved, tt.to, "%v", rates(all.steps))
			if tt.probes == 0 {
				tt.probes = 12
			}
			require.LessOrEqual(t, all.probes, tt.probes)
			if tt.outcome != capacity.Found {
				require.Zero(t, all.Upper, "nothing above was seen to fail")
			} else {
				require.Greater(t, all.Upper, all.Asked)
			}
		})
	}
}

func TestSearchWhenNothingHolds(t *testing.T) {
	tests := []struct {
		says   string
		answer capacity.Answer
		lowest float64
	}{
		{"every rate is reached and the objective never met: looked for up and down", capacity.Answer{RateMet: true}, 20},
		{"nothing at all comes through", capacity.Answer{}, 4},
	}
	for _, tt := range tests {
		all := follow(t, capacity.New(capacity.Options{Start: 1000}), func(capacity.Step) capacity.Answer { return tt.answer })
		require.Equal(t, capacity.Conclusion{Outcome: capacity.Nothing}, all.Conclusion, tt.says)
		require.LessOrEqual(t, all.probes, 12, tt.says)
		require.Zero(t, all.holds, tt.says)
		lowest, highest := math.Inf(1), 0.0
		for _, r := range rates(all.steps) {
			lowest, highest = min(lowest, r), max(highest, r)
		}
		require.LessOrEqual(t, lowest, tt.lowest, tt.says)
		require.Equal(t, tt.answer.RateMet, highest > 1000, tt.says)
	}
}

// A probe whose rate was met and whose run is invalid says nothing: it is made once more. When that
// is no better the rate is taken not to hold.
func TestSearchRepeatsWhatWasDisturbed(t *testing.T) {
	const why = "the generator was too busy"
	for _, always := range []bool{false, true} {
		times := map[float64]int{}
		mu := queue(20_000)
		all := follow(t, capacity.New(capacity.Options{Start: 1000, Probes: 20}), func(s capacity.Step) capacity.Answer {
			times[s.Rate]++
			if s.Rate == 4000 && s.Stage == capacity.Probe && (always || times[s.Rate] == 1) {
				return capacity.Answer{Achieved: s.Rate, RateMet: true, Disturbed: true, Generator: why}
			}
			return mu(s)
		})
		require.GreaterOrEqual(t, times[4000], 2)
		if always {
			require.Equal(t, capacity.Generator, all.Outcome, "the cluster was never seen not to hold")
			require.Equal(t, why, all.Reason)
			require.InDelta(t, 4000, all.Upper, 0)
			require.Less(t, all.Achieved, 4000.0)
			require.Greater(t, all.Achieved, 3900.0)
		} else {
			require.Equal(t, capacity.Found, all.Outcome)
			require.Empty(t, all.Reason)
			require.GreaterOrEqual(t, all.Achieved, 19_600.0)
		}
	}
}

// What bounds the figure from above says whose it is: the lowest rate that did not hold.
func TestSearchSaysWhoseLimitItIs(t *testing.T) {
	const why = "the generator was too busy"
	cluster := func(met bool) capacity.Answer { return capacity.Answer{RateMet: met} }
	own := func(met bool) capacity.Answer {
		return capacity.Answer{RateMet: met, Disturbed: met, Generator: why}
	}
	for _, tt := range []struct {
		says    string
		above   func(s capacity.Step) capacity.Answer // what came of a rate above 20 000
		outcome capacity.Outcome
		reason  string
	}{
		{"the cluster's", func(capacity.Step) capacity.Answer { return cluster(false) }, capacity.Found, ""},
		{"the generator's, which did not reach the rate", func(capacity.Step) capacity.Answer { return own(false) }, capacity.Generator, why},
		{"the generator's, which reached the rate and was too busy", func(capacity.Step) capacity.Answer { return own(true) }, capacity.Generator, why},
		{"the generator's far above, and the cluster's below", func(s capacity.Step) capacity.Answer {
			if s.Rate > 25_000 {
				return own(false)
			}
			return cluster(true)
		}, capacity.Found, ""},
		{"the cluster's far above, and the generator's below", func(s capacity.Step) capacity.Answer {
			if s.Rate > 25_000 {
				return cluster(true)
			}
			return own(true)
		}, capacity.Generator, why},
	} {
		all := follow(t, capacity.New(capacity.Options{Start: 1000, Probes: 20}), func(s capacity.Step) capacity.Answer {
			if s.Rate <= 20_000 {
				return capacity.Answer{Achieved: s.Rate, RateMet: true, Held: true}
			}
			a := tt.above(s)
			a.Achieved = 20_000
			return a
		})
		require.Equal(t, tt.outcome, all.Outcome, tt.says)
		require.Equal(t, tt.reason, all.Reason, tt.says)
		require.Greater(t, all.Upper, 20_000.0, tt.says)
		require.GreaterOrEqual(t, all.Achieved, 19_000.0, tt.says)
	}
}

// Without a figure, too, it is told when that was the generator's doing alone.
func TestSearchThatTheGeneratorLeavesWithoutAFigure(t *testing.T) {
	const why = "the generator was too busy"
	for _, cluster := range []bool{false, true} {
		all := follow(t, capacity.New(capacity.Options{Start: 1000}), func(s capacity.Step) capacity.Answer {
			if cluster && s.Rate < 500 {
				return capacity.Answer{RateMet: true}
			}
			return capacity.Answer{Generator: why}
		})
		require.Equal(t, capacity.Nothing, all.Outcome)
		require.Equal(t, !cluster, all.Reason == why)

		all = follow(t, capacity.New(capacity.Options{Start: 1000}), func(s capacity.Step) capacity.Answer {
			if s.Stage == capacity.Probe {
				return queue(20_000)(s)
			}
			if cluster && s.Number == 2 {
				return capacity.Answer{RateMet: true}
			}
			return capacity.Answer{Generator: why}
		})
		require.Equal(t, capacity.Unconfirmed, all.Outcome)
		require.Equal(t, !cluster, all.Reason == why)
	}
}

// One probe fails by chance, far below what the system can do: the ones since have come up to it and
// held, so it is made once more, and the search goes on.
func TestSearchDoesNotBelieveALoneFailure(t *testing.T) {
	failed := false
	mu := queue(20_000)
	all := follow(t, capacity.New(capacity.Options{Start: 1000, Probes: 25}), func(s capacity.Step) capacity.Answer {
		if s.Rate == 4000 && !failed {
			failed = true
			return capacity.Answer{Achieved: 4000, RateMet: true}
		}
		return mu(s)
	})
	require.Equal(t, capacity.Found, all.Outcome)
	require.GreaterOrEqual(t, all.Achieved, 19_600.0)
}

// A probe held by chance: the hold run does not, and is made again lower, each time by more; what
// is reported is the hold run that held.
func TestSearchConfirmsByAHoldRun(t *testing.T) {
	soft := queue(20_000)
	hard := queue(19_000)
	all := follow(t, capacity.New(capacity.Options{Start: 1000}), func(s capacity.Step) capacity.Answer {
		if s.Stage == capacity.Hold {
			return hard(s)
		}
		return soft(s)
	})
	require.Equal(t, capacity.Found, all.Outcome)
	require.Greater(t, all.holds, 1)
	require.LessOrEqual(t, all.Achieved, 19_000.0)
	require.GreaterOrEqual(t, all.Achieved, 18_000.0)
	require.Less(t, all.Upper, 20_200.0, "the hold runs that did not hold bound it too")

	all = follow(t, capacity.New(capacity.Options{Start: 1000}), func(s capacity.Step) capacity.Answer {
		if s.Stage == capacity.Hold {
			return capacity.Answer{Achieved: s.Rate, RateMet: true}
		}
		return soft(s)
	})
	require.Equal(t, capacity.Conclusion{Outcome: capacity.Unconfirmed}, all.Conclusion, "no figure without a hold run")
	require.Equal(t, 6, all.holds)

	disturbed := 0
	all = follow(t, capacity.New(capacity.Options{Start: 1000}), func(s capacity.Step) capacity.Answer {
		if s.Stage == capacity.Hold && disturbed == 0 {
			disturbed++
			return capacity.Answer{Achieved: s.Rate, RateMet: true, Disturbed: true}
		}
		return soft(s)
	})
	require.GreaterOrEqual(t, all.Achieved, 19_600.0, "a disturbed hold run is made again at the same rate")
}

// Probes near the capacity hold or not by chance: 4 % of noise on a capacity of 20 000. The figure
// stays near it, and none of a thousand searches ends near 0.
func TestSearchUnderNoise(t *testing.T) {
	var found []float64
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 4))
		all := follow(t, capacity.New(capacity.Options{Start: 1000}), func(s capacity.Step) capacity.Answer {
			mu := 20_000 * (1 + 0.04*r.NormFloat64())
			return queue(mu)(s)
		})
		if all.Outcome == capacity.Unconfirmed {
			continue
		}
		require.Equal(t, capacity.Found, all.Outcome)
		require.Greater(t, all.Achieved, 14_000.0, "seed %d: %v", seed, rates(all.steps))
		require.Less(t, all.Achieved, 22_500.0)
		found = append(found, all.Achieved)
	}
	require.Greater(t, len(found), 970, "hardly any stays unconfirmed")
	require.InEpsilon(t, 20_000, stat.Median(found), 0.05)
}

// Whatever the system answers, a search ends within its bounds, asks for no rate above the most, and
// reports nothing but a hold run that held.
func TestSearchProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := capacity.Options{
			Start:  rapid.Float64Range(0, 1e6).Draw(t, "start"),
			Most:   rapid.Float64Range(0, 1e6).Draw(t, "most"),
			Probes: rapid.IntRange(0, 20).Draw(t, "probes"),
		}
		held := map[string]bool{}
		all := follow(t, capacity.New(o), func(s capacity.Step) capacity.Answer {
			a := capacity.Answer{
				Achieved: s.Rate * rapid.Float64Range(0, 1).Draw(t, "achieved"),
				RateMet:  rapid.Bool().Draw(t, "met"), Disturbed: rapid.Bool().Draw(t, "disturbed"),
			}
			a.Held = a.RateMet && !a.Disturbed && rapid.Bool().Draw(t, "held")
			if s.Stage == capacity.Hold && a.Held {
				held[fmt.Sprint(s.Rate, a.Achieved)] = true
			}
			return a
		})
		most := o.Probes
		if most == 0 {
			most = 12
		}
		require.LessOrEqual(t, all.probes, most)
		require.LessOrEqual(t, all.holds, 6)
		for _, s := range all.steps {
			require.False(t, o.Most > 0 && s.Rate > o.Most*(1+1e-3), "%v above %v", s.Rate, o.Most)
		}
		if all.Asked > 0 {
			require.True(t, held[fmt.Sprint(all.Asked, all.Achieved)])
			require.True(t, all.Upper == 0 || all.Upper > all.Asked)
		}
	})
}
