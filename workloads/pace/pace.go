// Package pace says when messages are due. A schedule maps the number of a message to its due
// time and back, from the number alone: nothing is accumulated, so that the millionth message
// is as exact as the first and any producer can ask for any message.
//
// Every schedule is immutable to its users and safe for concurrent use. Times are nanoseconds
// since the schedule's start; message 0 is due at 0, except where the first rate is 0.
package pace

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// Schedule is a rate over time, as due times.
type Schedule interface {
	// Due is when message i (from 0) is due, in nanoseconds since the start; it never falls
	// with i. A message that never comes is due at Never. A negative i is due at 0.
	Due(i int64) int64
	// Count is the number of messages due before d: all i with Due(i) < d.
	Count(d int64) int64
	// Rate is the rate asked for at that time, in messages per second; of bursts and of
	// random arrivals, the mean.
	Rate(at int64) float64
}

// Never is the due time of a message that a schedule does not reach.
const Never = math.MaxInt64

// usable reports whether a rate has messages at all.
func usable(rate float64) bool { return rate > 0 && !math.IsInf(rate, 1) }

// constant keeps the rate as the fraction messages/perNs, both whole.
type constant struct {
	rate float64
	// messages come every perNs nanoseconds; perNs = 10⁹ × a power of ten.
	messages, perNs uint64
}

// Constant is one message every 1/rate seconds, exactly: the due time of message i is
// i × 10⁹/rate rounded down to the nanosecond. A rate that is not a decimal fraction of up to
// nine digits is taken to nine. A rate of 0 or less, NaN or infinity has no messages.
func Constant(rate float64) Schedule {
	if !usable(rate) {
		return nothing{}
	}
	const exactBelow = 1 << 53
	scale := 1.0
	for scale < 1e9 && rate*scale != math.Trunc(rate*scale) && rate*scale*10 < exactBelow {
		scale *= 10
	}
	messages := math.Round(rate * scale)
	if messages < 1 || messages >= 1<<63 {
		return nothing{}
	}
	return constant{rate: rate, messages: uint64(messages), perNs: uint64(1e9 * scale)}
}

func (c constant) Due(i int64) int64 {
	if i <= 0 {
		return 0
	}
	return mulDiv(uint64(i), c.perNs, c.messages)
}

func (c constant) Count(d int64) int64 {
	if d <= 0 {
		return 0
	}
	return mulDivUp(uint64(d), c.messages, c.perNs)
}

func (c constant) Rate(int64) float64 { return c.rate }

// mulDiv is a×b/c rounded down, by way of 128 bits; Never when it does not fit.
func mulDiv(a, b, c uint64) int64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return Never
	}
	q, _ := bits.Div64(hi, lo, c)
	return int64(min(q, Never))
}

// mulDivUp is a×b/c rounded up.
func mulDivUp(a, b, c uint64) int64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return math.MaxInt64
	}
	q, r := bits.Div64(hi, lo, c)
	if r > 0 && q < math.MaxInt64 {
		q++
	}
	return int64(min(q, math.MaxInt64))
}

// nothing is a schedule without messages.
type nothing struct{}

func (nothing) Due(int64) int64    { return Never }
func (nothing) Count(int64) int64  { return 0 }
func (nothing) Rate(int64) float64 { return 0 }

// burst moves every message of a constant schedule to the start of its interval.
type burst struct {
	even  Schedule
	every int64
}

// Burst has the mean rate given, with all messages of each interval due at its start. The
// sizes of bursts differ by one where rate × every is not whole. An interval of 0 or less is
// Constant.
func Burst(rate float64, every time.Duration) Schedule {
	if every <= 0 || !usable(rate) {
		return Constant(rate)
	}
	return burst{even: Constant(rate), every: int64(every)}
}

func (b burst) Due(i int64) int64 {
	due := b.even.Due(i)
	if due == Never {
		return Never
	}
	return due - due%b.every
}

func (b burst) Count(d int64) int64 {
	if d <= 0 {
		return 0
	}
	if over := d % b.every; over > 0 {
		if d > math.MaxInt64-(b.every-over) {
			return b.even.Count(math.MaxInt64)
		}
		d += b.every - over
	}
	return b.even.Count(d)
}

func (b burst) Rate(at int64) float64 { return b.even.Rate(at) }

// steps is a constant schedule after another.
type steps struct {
	parts []Schedule
	// starts[k] is when part k begins, and before[k] the number of messages due before it.
	starts, before []int64
}

// Steps runs at each of the rates in turn, for the same time each, and stays at the last one.
// Every step begins with a message of its own at its first instant, so that a step's count is
// its rate × each rounded up. A rate of 0 is a pause.
func Steps(rates []float64, each time.Duration) Schedule {
	lengths := make([]time.Duration, len(rates))
	for i := range lengths {
		lengths[i] = each
	}
	return Stages(rates, lengths)
}

// Stages is Steps with a length for each rate. Lists of different lengths, an empty one, and a
// length of 0 or less have no messages.
func Stages(rates []float64, lengths []time.Duration) Schedule {
	if len(rates) == 0 || len(rates) != len(lengths) || slices.Min(lengths) <= 0 {
		return nothing{}
	}
	var s steps
	var start, sum int64
	for k, rate := range rates {
		part := Constant(rate)
		s.parts = append(s.parts, part)
		s.starts, s.before = append(s.starts, start), append(s.before, sum)
		if k < len(rates)-1 {
			sum += min(part.Count(int64(lengths[k])), math.MaxInt64-sum)
			start += min(int64(lengths[k]), math.MaxInt64-start)
		}
	}
	return s
}

func (s steps) Due(i int64) int64 {
	i = max(i, 0)
	k := len(s.parts) - 1
	for k > 0 && s.before[k] > i {
		k--
	}
	due, start := s.parts[k].Due(i-s.before[k]), s.starts[k]
	if due > Never-start {
		return Never
	}
	return start + due
}

func (s steps) Count(d int64) int64 {
	if d <= 0 {
		return 0
	}
	k := s.part(d - 1)
	n := s.parts[k].Count(d - s.starts[k])
	return s.before[k] + min(n, math.MaxInt64-s.before[k])
}

func (s steps) Rate(at int64) float64 { return s.parts[s.part(at)].Rate(0) }

// part is the last one that has begun.
func (s steps) part(at int64) int {
	k := len(s.parts) - 1
	for k > 0 && s.starts[k] > at {
		k--
	}
	return k
}

// shard is every P-th message of a schedule.
type shard struct {
	whole           Schedule
	producer, among int64
}

// Shard is the part of one producer (from 0) among several: its j-th message is message
// j×producers + producer of the whole, so that all together make exactly the whole.
func Shard(whole Schedule, producer, producers int) Schedule {
	if producers <= 1 {
		return whole
	}
	return shard{whole: whole, producer: int64(producer), among: int64(producers)}
}

func (s shard) Due(j int64) int64 {
	j = max(j, 0)
	if j > (math.MaxInt64-s.producer)/s.among {
		return Never
	}
	return s.whole.Due(j*s.among + s.producer)
}

func (s shard) Count(d int64) int64 {
	n := s.whole.Count(d)
	if n <= s.producer {
		return 0
	}
	return (n-s.producer-1)/s.among + 1
}

func (s shard) Rate(at int64) float64 { return s.whole.Rate(at) / float64(s.among) }
