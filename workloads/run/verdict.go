package run

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// Facts are the numbers a verdict is made from.
type Facts struct {
	Open bool // a rate was asked for
	// RateAsked and RateAchieved are messages a second.
	RateAsked, RateAchieved float64
	// Missing is how long the first answer took where there was no warm-up: answers that were
	// still on their way at the end for that reason are not held against the rate.
	Missing, Elapsed time.Duration

	Attempted, Failed, Unknown int64
	Received, NotReceived      int64 // of the consumers; see results.Counts
	// Withheld is the part of Unknown that the target never took.
	Withheld int64
	Drain    time.Duration

	LatenessP99, ResponseP99 time.Duration
	CPUCores, CPUAvailable   float64
	StolenShare              float64
	PauseMax                 time.Duration
	HostShare                float64 // of all the machine's CPU, in use
	// Behind is for how long a producer was behind its schedule, and BehindOwn for how long of that it was at
	// work itself and not held up.
	Behind, BehindOwn time.Duration
	// GCPauseMax is held against ResponseP99, or ServiceP99 in a closed loop.
	GCPauseMax, ServiceP99 time.Duration
	// Ceiling is what this generator can do with no cluster behind it, messages a second; 0
	// when that is not known.
	Ceiling float64

	Clamped     map[string]int64 // by series
	NegativeE2E int64
	WorstE2E    time.Duration // the lowest value

	// Steady is nil when no steady state was asked for.
	Steady *results.Steady
	// LittlesLaw is nil where it says nothing.
	LittlesLaw *results.LittlesLaw

	Topics []results.Topic
	// Excused are the partitions, by topic, whose moves the workload's faults explain; shorter than Topics, or
	// nil: none of the others.
	Excused []Excused
	// EndedEarly says why the measured phase was not gone through to its end, "" when it was.
	EndedEarly string
	// PoolMax is the engine's own bound on open messages when it held the load back, else 0.
	PoolMax int64
	// Transactions is nil when there were none.
	Transactions *results.Transactions
	// Foreign counts arrivals that no producer of this run sent.
	Foreign int64
	// ForeignE2E counts e2e values of a run that only consumes: their due times are another process's.
	ForeignE2E int64
	// Unstamped counts arrivals without a stamp, in topics that others may write to.
	Unstamped int64
}

// Judge says whether the measurement can be trusted, by the limits given; a limit of zero or
// less is not applied. It never judges the cluster.
func Judge(f Facts, limits workloads.Validity) results.Verdict {
	j := judge{f: f, lim: limits}
	j.course()
	j.rate()
	j.generator()
	j.counts()
	j.cluster()
	j.warn()
	return results.Verdict{Valid: len(j.reasons) == 0, Reasons: nonNil(j.reasons), Warnings: nonNil(j.warnings), Generator: j.own}
}

type judge struct {
	f                 Facts
	lim               workloads.Validity
	reasons, warnings []string
	missed            bool     // the rate was
	own               []string // of both, those that are about the generator or its machine
}

func (j *judge) invalid(format string, args ...any) {
	j.reasons = append(j.reasons, fmt.Sprintf(format, args...))
}

// blames is invalid for what is the generator's doing or its machine's.
func (j *judge) blames(format string, args ...any) {
	j.invalid(format, args...)
	j.own = append(j.own, j.reasons[len(j.reasons)-1])
}

func (j *judge) course() {
	if j.f.EndedEarly != "" {
		j.invalid("the measured phase ended after %s: %s", span(j.f.Elapsed), j.f.EndedEarly)
	}
	if j.f.Elapsed <= 0 {
		j.invalid("nothing was measured")
	}
	if s := j.f.Steady; s != nil && !s.Found {
		j.invalid("%s (%s, from beginning to end %+.1f %%): the figures are of the whole measured phase", s.Reason, s.Figure, s.Drift*100)
	}
}

func (j *judge) rate() {
	f := j.f
	if !f.Open || f.RateAsked <= 0 || f.Elapsed <= 0 {
		return
	}
	share := f.RateAchieved / f.RateAsked
	if left := f.Elapsed - f.Missing; left > 0 {
		share *= float64(f.Elapsed) / float64(left)
	}
	if share >= j.lim.MinRateShare {
		return
	}
	j.missed = true
	why := ""
	if f.Failed > 0 && f.Attempted > 0 {
		why = fmt.Sprintf("; %s of the messages failed", percent(float64(f.Failed)/float64(f.Attempted)))
	}
	j.invalid("rate not met (not sustained): %s messages/s of %s asked, %s, limit %s%s",
		number(f.RateAchieved), number(f.RateAsked), percent(share), percent(j.lim.MinRateShare), why)
}

func (j *judge) generator() {
	f := j.f
	limit := max(j.lim.MaxLateness, time.Duration(float64(f.ResponseP99)*j.lim.MaxLatenessShare))
	if f.Open && limit > 0 && f.LatenessP99 > limit {
		j.blames("the generator woke up late: lateness p99 %s, limit %s (%s or %s of response p99)",
			span(f.LatenessP99), span(limit), span(j.lim.MaxLateness), percent(j.lim.MaxLatenessShare))
	}
	j.cpu()
	j.toil()
	j.collector()
	if l := j.lim.MaxStolenShare; l > 0 && f.StolenShare > l {
		j.blames("the hypervisor took CPU away: %s stolen, limit %s", percent(f.StolenShare), percent(l))
	}
	if l := j.lim.MaxPause; l > 0 && f.PauseMax > l {
		j.blames("the generator itself stood still for %s, limit %s: latency of that time is its own",
			span(f.PauseMax), span(l))
	}
}

// toil judges what the producers did while they were behind, when the rate was missed: the machine may have
// cores to spare, and one goroutine not be able to do more. They have to have been behind for most of the
// time: what is not acked in time when they were not is none of theirs.
func (j *judge) toil() {
	f, l := j.f, j.lim.MaxOwnShare
	if !j.missed || l <= 0 || f.Behind < f.Elapsed/2 || float64(f.BehindOwn) <= l*float64(f.Behind) {
		return
	}
	j.blames(results.GeneratorBound+": each producer was behind its schedule for %s, and for %s of that at work itself, not held up by the cluster, limit %s; more producers, or more machines, send more",
		span(f.Behind), percent(float64(f.BehindOwn)/float64(f.Behind)), percent(l))
}

// collector judges the pauses of the garbage collector, which are in the tail of every series.
func (j *judge) collector() {
	p99, of := j.f.ServiceP99, results.SeriesService
	if j.f.Open {
		p99, of = j.f.ResponseP99, results.SeriesResponse
	}
	share := j.lim.MaxGCPauseShare
	limit := max(j.lim.MaxLateness, time.Duration(float64(p99)*share))
	if share > 0 && p99 > 0 && j.f.GCPauseMax > limit {
		j.blames("the generator's garbage collector stopped it for %s, limit %s (%s or %s of %s p99)",
			span(j.f.GCPauseMax), span(limit), span(j.lim.MaxLateness), percent(share), of)
	}
}

// cpu judges how busy the generator was. In a closed loop a busy generator is no error, but its
// figure is then the generator's as much as the cluster's.
func (j *judge) cpu() {
	f := j.f
	l := j.lim.MaxCPUShare
	if l <= 0 || f.CPUAvailable <= 0 || f.CPUCores/f.CPUAvailable <= l {
		return
	}
	used := fmt.Sprintf("%.2f of %.2f cores busy, %s, limit %s",
		f.CPUCores, f.CPUAvailable, percent(f.CPUCores/f.CPUAvailable), percent(l))
	if f.Open {
		j.blames("the generator was too busy: %s", used)
		return
	}
	ceiling := "`kbench ceiling` shows what the generator can do"
	if f.Ceiling > 0 {
		ceiling = fmt.Sprintf("with no cluster behind it it does %s messages/s", number(f.Ceiling))
	}
	j.warnings = append(j.warnings, fmt.Sprintf(
		results.GeneratorBound+": %s; the rate is the generator's as much as the cluster's (%s)", used, ceiling))
	j.own = append(j.own, j.warnings[len(j.warnings)-1])
}

func (j *judge) counts() {
	f := j.f
	if f.Attempted == 0 && f.Received == 0 {
		j.invalid("nothing was measured: no message was sent or received in the measured phase")
	}
	if f.Unknown > 0 {
		held := ""
		if f.Withheld > 0 {
			held = fmt.Sprintf(" (%d of them were never taken by the client)", f.Withheld)
		}
		j.invalid("%d messages have no known outcome (drain %s), limit 0%s", f.Unknown, span(f.Drain), held)
	}
	if t := f.Transactions; t != nil && t.Unknown > 0 {
		j.invalid("%d of %d transactions without a known end (drain %s), limit 0: nobody knows whether %d acked messages in them were committed",
			t.Unknown, t.All(), span(f.Drain), t.UnknownMessages)
	}
	if f.NotReceived > 0 {
		j.invalid("%d acked messages had not been received when the drain of %s ended, limit 0: whether they are lost is not known", f.NotReceived, span(f.Drain))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Clamped)) {
		if n := f.Clamped[name]; n > 0 {
			j.invalid("%d values of %s were above the histograms' range of 120 s, limit 0", n, name)
		}
	}
	if f.NegativeE2E > 0 {
		j.invalid("clocks disagree: %d messages were received before they were due, the worst %s before, limit 0",
			f.NegativeE2E, span(-f.WorstE2E))
	}
}

func (j *judge) cluster() {
	for i, t := range j.f.Topics {
		var by Excused
		if i < len(j.f.Excused) {
			by = j.f.Excused[i]
		}
		moved, shrunk := 0, 0
		for p := range min(len(t.LeadersBefore), len(t.LeadersAfter)) {
			if t.LeadersBefore[p] != t.LeadersAfter[p] && !by.Leaders[int32(p)] {
				moved++
			}
		}
		for p := range min(len(t.ISRBefore), len(t.ISRAfter)) {
			if t.ISRAfter[p] < t.ISRBefore[p] && !by.ISR[int32(p)] {
				shrunk++
			}
		}
		moved, shrunk = max(moved, t.LeadersMoved-len(by.Leaders)), max(shrunk, t.ISRShrunk-len(by.ISR))
		if moved > 0 {
			j.invalid("leaders moved during the run: %d of %d partitions of %s, limit 0", moved, t.Partitions, t.Name)
		}
		if shrunk > 0 {
			j.invalid("in-sync replicas were lost during the run: in %d of %d partitions of %s, limit 0", shrunk, t.Partitions, t.Name)
		}
	}
}

func (j *judge) warn() {
	f := j.f
	if l := j.lim.MaxHostCPUShare; l > 0 && f.HostShare > l {
		j.warnings = append(j.warnings, fmt.Sprintf(
			"the machine was %s busy, limit %s: generator and brokers on it waited for processors, which is in every latency", percent(f.HostShare), percent(l)))
	}
	if l := f.LittlesLaw; l != nil && !l.Holds {
		j.warnings = append(j.warnings, fmt.Sprintf(
			"the figures contradict each other: by rate × service time %s messages were in flight on average, counted were %s to %s (Little's law)",
			number(l.RateTimesService), number(l.InFlight), number(l.InFlightMost)))
	}
	rate, which := f.RateAsked, "asked for"
	if !f.Open || f.RateAchieved > f.RateAsked {
		rate, which = f.RateAchieved, "reached"
	}
	if share := j.lim.MaxCeilingShare; share > 0 && f.Ceiling > 0 && rate > share*f.Ceiling {
		j.warnings = append(j.warnings, fmt.Sprintf("the rate %s, %s/s, is %s of this generator's ceiling of %s/s, limit %s",
			which, number(rate), percent(rate/f.Ceiling), number(f.Ceiling), percent(share)))
	}
	if t := f.Transactions; t != nil && t.Failed > 0 {
		j.warnings = append(j.warnings, fmt.Sprintf("%d of %d transactions failed and were aborted: the acked messages in aborted ones, %d, count as acked, and no reader of committed messages sees them",
			t.Failed, t.All(), t.AbortedMessages))
	}
	if f.PoolMax > 0 {
		j.warnings = append(j.warnings, fmt.Sprintf(
			"%d messages were open at once, the most this engine keeps; later ones had to wait, which is in delay and response", f.PoolMax))
	}
	if f.Foreign > 0 {
		j.warnings = append(j.warnings, fmt.Sprintf("%d messages arrived that this run did not send; they are in no figure", f.Foreign))
	}
	if f.ForeignE2E > 0 {
		j.warnings = append(j.warnings, "e2e spans two clocks: due times were stamped by the run that sent the messages, which may have been on another machine, and are held against this machine's clock; e2e is off by as much as the two differ")
	}
	if f.Unstamped > 0 {
		j.warnings = append(j.warnings, fmt.Sprintf("%d messages arrived without a stamp of kbench's: others write to these topics; they are in no figure", f.Unstamped))
	}
}

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// span prints a duration with three significant digits.
func span(d time.Duration) string {
	if d <= 0 {
		return d.String()
	}
	step := time.Duration(math.Pow10(max(0, int(math.Log10(float64(d)))-2)))
	return d.Round(step).String()
}

// percent prints a share; two digits after the point close to the whole, one elsewhere.
func percent(share float64) string {
	digits := 1
	if share > 0.98 && share < 1 {
		digits = 2
	}
	s := fmt.Sprintf("%.*f", digits, share*100)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + " %"
}

// number prints a rate without needless digits.
func number(v float64) string {
	if v >= 1000 || v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
