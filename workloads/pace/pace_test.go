package pace

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCheck07ExactDueTimes(t *testing.T) {
	for _, row := range []struct {
		says   string
		rate   float64
		i, due int64
	}{
		{"message 3 000 000 at 3M/s is due at exactly a second", 3e6, 3_000_000, 1e9},
		{"700k/s is not 700 280/s", 700e3, 700_000 * 3600, 3600e9},
		{"7/s", 7, 1, 142_857_142},
		{"a day at 100k/s", 100e3, 100_000 * 86_400, 86_400e9},
		{"one in a minute and a half: 1/90 to nine digits", 1.0 / 90, 1, 90_000_000_900},
		{"a decimal fraction is exact", 0.1, 3, 30e9},
		{"2.5/s", 2.5, 5, 2e9},
		{"message 0", 12345, 0, 0},
		{"beyond all time", 1e-6, math.MaxInt64, Never},
	} {
		t.Run(row.says, func(t *testing.T) { require.Equal(t, row.due, Constant(row.rate).Due(row.i)) })
	}
}

func TestCheck07MeanRate(t *testing.T) {
	for _, rate := range []float64{1, 7, 1_000, 14_000, 100_000} {
		for _, over := range []time.Duration{time.Second * 10, time.Minute, time.Hour} {
			got := float64(Constant(rate).Count(int64(over))) / over.Seconds()
			require.InEpsilon(t, rate, got, 0.001, "%v/s over %s", rate, over)
		}
	}
}

func TestCheck07ManyProducersAreEven(t *testing.T) {
	const producers = 14_000
	whole := Constant(producers * 1)
	per10ms := make([]int, 300)
	for p := range producers {
		mine := Shard(whole, p, producers)
		require.InDelta(t, 1, mine.Rate(0), 1e-9)
		for j := int64(0); mine.Due(j) < 3e9; j++ {
			per10ms[mine.Due(j)/10e6]++
		}
	}
	for k, n := range per10ms {
		require.Equal(t, 140, n, "10 ms number %d", k)
	}
}

func TestRampAgainstTheIntegral(t *testing.T) {
	for _, row := range []struct{ from, to float64 }{{0, 1e5}, {1e5, 0}, {1000, 1e6}, {1e6, 1e6 + 0.001}, {50, 20}} {
		r := Ramp(row.from, row.to, time.Minute)
		total := int64((row.from + row.to) / 2 * 60)
		for _, i := range []int64{0, 1, 2, total / 1000, total / 3, total / 2, total - 1} {
			require.InDelta(t, exactRamp(row.from, row.to, 60, i), float64(r.Due(i)), 2, "%v, message %d", row, i)
		}
		require.Equal(t, row.from, r.Rate(0))
		require.InDelta(t, (row.from+row.to)/2, r.Rate(30e9), 1e-6)
		require.Equal(t, row.to, r.Rate(90e9))
		if row.to == 0 {
			require.EqualValues(t, Never, r.Due(total+1), "a ramp to 0 ends")
			continue
		}
		require.InDelta(t, 60e9+10e9, float64(r.Due(total+int64(10*row.to))), 1e9/row.to+2, "it stays at the last rate")
	}
}

// exactRamp solves the quadratic with 200 bits, in nanoseconds.
func exactRamp(from, to, over float64, i int64) float64 {
	if i == 0 {
		return 0
	}
	f := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	slope := new(big.Float).Quo(new(big.Float).Sub(f(to), f(from)), f(over))
	root := new(big.Float).Mul(f(from), f(from))
	root.Add(root, new(big.Float).Mul(f(2*float64(i)), slope))
	root.Sqrt(root)
	t := new(big.Float).Quo(f(2*float64(i)), root.Add(root, f(from)))
	ns, _ := t.Mul(t, f(1e9)).Float64()
	return ns
}

func TestStepsAndBursts(t *testing.T) {
	s := Steps([]float64{100, 0, 1000}, 10*time.Second)
	require.EqualValues(t, 1000, s.Count(10e9))
	require.EqualValues(t, 1000, s.Count(20e9), "a rate of 0 is a pause")
	require.EqualValues(t, 20e9, s.Due(1000))
	require.EqualValues(t, 1000+10_000, s.Count(30e9))
	require.EqualValues(t, 1000+20_000, s.Count(40e9), "the last rate stays")
	require.Equal(t, []float64{100, 0, 1000, 1000}, []float64{s.Rate(-5), s.Rate(15e9), s.Rate(25e9), s.Rate(99e9)})

	b := Burst(1000, 250*time.Millisecond)
	for i := range int64(2000) {
		require.Equal(t, i/250*250e6, b.Due(i))
	}
	require.EqualValues(t, 250, b.Count(1))
	require.EqualValues(t, 250, b.Count(250e6))
	require.EqualValues(t, 500, b.Count(250e6+1))
}

func TestSchedulesWithoutMessages(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-12, 1e19} {
		for _, s := range []Schedule{Constant(rate), Ramp(-1, rate, 0), Poisson(min(rate, 0), 1), Burst(rate, time.Second), Steps(nil, 1)} {
			require.EqualValues(t, 0, s.Count(math.MaxInt64), "%T at %v", s, rate)
			require.EqualValues(t, Never, s.Due(0))
			require.Zero(t, s.Rate(0))
		}
	}
}

// TestPropertyInverse: Due never falls, and Count is its inverse, for every schedule and shard.
func TestPropertyInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genSchedule(t)
		if among := rapid.IntRange(1, 50).Draw(t, "producers"); among > 1 {
			s = Shard(s, rapid.IntRange(0, among-1).Draw(t, "producer"), among)
		}
		i := rapid.Int64Range(0, 1e7).Draw(t, "i")
		due, next := s.Due(i), s.Due(i+1)
		if due < 0 || next < due {
			t.Fatalf("message %d is due at %d, the next at %d", i, due, next)
		}
		if n := s.Count(due); n > i {
			t.Fatalf("%d messages are due before %d, when message %d is", n, due, i)
		}
		if due < Never {
			if n := s.Count(due + 1); n <= i {
				t.Fatalf("only %d messages are due by %d, message %d is", n, due, i)
			}
		}
		d := rapid.Int64Range(0, 1e11).Draw(t, "d")
		n := s.Count(d)
		if n > 0 && s.Due(n-1) >= d || s.Due(n) < d {
			t.Fatalf("Count(%d) = %d, but Due(%d) = %d and Due(%d) = %d", d, n, n-1, s.Due(n-1), n, s.Due(n))
		}
	})
}

func genSchedule(t *rapid.T) Schedule {
	rate := rapid.OneOf(rapid.Float64Range(0.001, 1e7), rapid.Map(rapid.IntRange(1, 5_000_000), func(n int) float64 { return float64(n) }))
	span := rapid.Map(rapid.Int64Range(1, 1e11), func(n int64) time.Duration { return time.Duration(n) })
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return Constant(rate.Draw(t, "rate"))
	case 1:
		return Ramp(rapid.OneOf(rate, rapid.Just(0.0)).Draw(t, "from"), rapid.OneOf(rate, rapid.Just(0.0)).Draw(t, "to"), span.Draw(t, "over"))
	case 2:
		return Steps(rapid.SliceOfN(rapid.OneOf(rate, rapid.Just(0.0)), 1, 5).Draw(t, "rates"), span.Draw(t, "each"))
	case 3:
		return Burst(rate.Draw(t, "rate"), span.Draw(t, "every"))
	}
	return Poisson(min(rate.Draw(t, "rate"), 1e6), rapid.Uint64().Draw(t, "seed"))
}

// gaps are the first n gaps of a schedule, in seconds.
func gaps(s Schedule, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(s.Due(int64(i)+1)-s.Due(int64(i))) / 1e9
	}
	return out
}

func TestPoissonIsExponential(t *testing.T) {
	const rate, n = 800, 400_000
	g := gaps(Poisson(rate, 7), n)
	sum, squares, lag := 0.0, 0.0, 0.0
	for i, x := range g {
		sum += x
		squares += x * x
		if i > 0 {
			lag += (x - 1.0/rate) * (g[i-1] - 1.0/rate)
		}
	}
	mean := sum / n
	require.InEpsilon(t, 1.0/rate, mean, 0.01)
	require.InEpsilon(t, 2.0/(rate*rate), squares/n, 0.02, "second moment of an exponential")
	require.InDelta(t, 0, lag/n*rate*rate, 0.01, "gaps do not depend on each other")

	// Kolmogorov–Smirnov against 1 − e^(−rate·x): 1.95/√n is the 0.1 % critical value.
	slices.Sort(g)
	worst := 0.0
	for i, x := range g {
		worst = max(worst, math.Abs(1-math.Exp(-rate*x)-float64(i)/n))
	}
	require.Less(t, worst, 1.95/math.Sqrt(n))
}

func TestPoissonCountsAreDispersed(t *testing.T) {
	// Over windows longer than a block too, a count's variance equals its mean.
	s := Poisson(10_000, 3)
	for _, window := range []int64{10e6, 1e9} {
		sum, squares, n := 0.0, 0.0, 0.0
		for at := int64(0); at < 400*window; at += window {
			c := float64(s.Count(at+window) - s.Count(at))
			sum, squares, n = sum+c, squares+c*c, n+1
		}
		mean := sum / n
		require.InEpsilon(t, 1, (squares/n-mean*mean)/mean, 0.25, "window %v", time.Duration(window))
	}
}

// TestCheck06MM1 runs the arrivals through one exponential server (Lindley's recursion) and
// compares with the closed form −ln(1−q)/(μ−λ).
func TestCheck06MM1(t *testing.T) {
	const n = 1_000_000
	s, service := Poisson(800, 11), rand.New(rand.NewPCG(5, 6))
	times := make([]float64, n)
	free, sum := 0.0, 0.0
	for i := range times {
		at := float64(s.Due(int64(i))) / 1e9
		free = max(free, at) + service.ExpFloat64()/1000
		times[i] = free - at
		sum += times[i]
	}
	slices.Sort(times)
	require.InEpsilon(t, 5.00e-3, sum/n, 0.05)
	for q, want := range map[float64]float64{0.5: 3.466e-3, 0.99: 23.03e-3, 0.999: 34.54e-3} {
		require.InEpsilon(t, want, times[int(q*n)], 0.08, "quantile %v", q)
	}
}

func TestPoissonIsTheSameFromEverySide(t *testing.T) {
	s, again, other := Poisson(5000, 1), Poisson(5000, 1), Poisson(5000, 2)
	const n = 100_000
	want := make([]int64, n)
	for i := range want {
		want[i] = s.Due(int64(i))
	}
	require.NotEqual(t, want[n-1], other.Due(n-1))
	var wg sync.WaitGroup
	for w := range 4 {
		// Owned by this test; ends by itself; waited for below.
		wg.Go(func() {
			for i := n - 1 - w; i >= 0; i -= 4 {
				if again.Due(int64(i)) != want[i] {
					t.Errorf("message %d differs when asked for in another order", i)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestPoissonFarAway(t *testing.T) {
	const most = 1 << 14
	p := &poisson{rate: 1e6, blockNs: poissonBlock * 1e3, seed: 1, most: most}
	p.starts.Store(&[]float64{0})
	far := p.start(most + 1000)
	require.InEpsilon(t, float64(most+1000)*p.blockNs, far, 0.001, "beyond the table blocks last their mean")
	require.LessOrEqual(t, len(*p.starts.Load()), most+1, "and the table does not grow further")
	require.EqualValues(t, most+999, p.blockBefore(far))
}

func BenchmarkDue(b *testing.B) {
	for name, s := range map[string]Schedule{
		"constant": Constant(123_456.7), "ramp": Ramp(0, 1e6, time.Minute), "poisson": Poisson(1e5, 1),
		"steps": Steps([]float64{1, 2, 3}, time.Second), "burst": Burst(1e5, time.Millisecond), "shard": Shard(Constant(1e6), 3, 7),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := int64(0)
			for b.Loop() {
				s.Due(i)
				i++
			}
		})
	}
}

func TestStages(t *testing.T) {
	s := Stages([]float64{10, 1000, 1}, []time.Duration{time.Second, 2 * time.Second, time.Second})
	require.EqualValues(t, 10+2000+1, s.Count(4e9))
	require.EqualValues(t, 10, s.Count(1e9))
	require.EqualValues(t, 1e9, s.Due(10), "every stage begins with a message of its own")
	require.EqualValues(t, 3e9, s.Due(2010))
	require.EqualValues(t, 4e9, s.Due(2011), "the last rate stays")
	for at, rate := range map[int64]float64{-1: 10, 0: 10, 1e9 - 1: 10, 1e9: 1000, 3e9: 1, 1e12: 1} {
		require.Equal(t, rate, s.Rate(at), at)
	}
	require.Zero(t, Stages([]float64{1, 2}, []time.Duration{1}).Count(1e9))
	require.Zero(t, Stages([]float64{1, 2}, []time.Duration{1, 0}).Count(1e9))
	require.Zero(t, Stages(nil, nil).Count(1e9))
}

func TestReplay(t *testing.T) {
	s := Replay([]int64{0, 5, 5, 20})
	require.EqualValues(t, []int64{0, 0, 5, 5, 20, Never}, []int64{s.Due(-1), s.Due(0), s.Due(1), s.Due(2), s.Due(3), s.Due(4)})
	require.EqualValues(t, []int64{0, 1, 1, 3, 3, 4}, []int64{s.Count(0), s.Count(1), s.Count(5), s.Count(6), s.Count(20), s.Count(21)})
	require.InEpsilon(t, 4/20e-9, s.Rate(0), 1e-9)
	require.Zero(t, s.Rate(21))
	require.Zero(t, Replay(nil).Count(Never))
	require.Positive(t, Replay([]int64{0}).Rate(0))

	three := Each(s, 3)
	require.EqualValues(t, []int64{0, 0, 0, 5, 20, Never}, []int64{three.Due(-5), three.Due(0), three.Due(2), three.Due(3), three.Due(11), three.Due(12)})
	require.EqualValues(t, []int64{3, 9, 12}, []int64{three.Count(1), three.Count(6), three.Count(21)})
	require.InEpsilon(t, 3*s.Rate(0), three.Rate(0), 1e-9)
	require.EqualValues(t, math.MaxInt64, Each(Constant(1e9), 1000).Count(math.MaxInt64))
	require.Equal(t, s, Each(s, 1))
	for p := range 3 {
		mine := Shard(three, p, 3)
		require.EqualValues(t, []int64{0, 5, 5, 20, Never}, []int64{mine.Due(0), mine.Due(1), mine.Due(2), mine.Due(3), mine.Due(4)}, "every producer follows it whole")
	}
}
