package capacity

import (
	"math"
	"strconv"
)

// Options say how to search.
type Options struct {
	// Start is the rate of the first probe, messages a second; 0: 1 000.
	Start float64
	// Most is the highest rate asked for, as what the generator itself can do; 0: any.
	Most float64
	// Probes bounds their number, hold runs not counted; 0: 12.
	Probes int
	// Resolution is how near, as a share, the lowest rate that does not hold must be to the highest
	// that does; 0: 0.02.
	Resolution float64
}

// Stage says what a run of the search is for.
type Stage string

// The stages of a search.
const (
	Probe Stage = "probe"
	Hold  Stage = "hold"
)

// Step is one run to make.
type Step struct {
	Stage  Stage
	Number int     // from 1, in its stage
	Rate   float64 // messages a second, over all producers
}

// Answer is what came of a step.
type Answer struct {
	// Achieved is the rate of messages acked.
	Achieved float64
	// RateMet says that enough of the rate asked for was achieved, whatever else broke.
	RateMet bool
	// Held says that everything that was asked for held.
	Held bool
	// Disturbed says that the rate was met and that the run is invalid nevertheless: what did not
	// hold may be the generator's doing, or the machine's.
	Disturbed bool
	// Generator is what the generator, or its machine, had come to in a run that did not hold; empty when it
	// had not: only then did the cluster not hold.
	Generator string
}

// Outcome says how a search ended.
type Outcome string

// The outcomes of a search.
const (
	Searching   Outcome = ""            // it has not ended
	Found       Outcome = "found"       // a rate held, and a higher one did not
	AtMost      Outcome = "ceiling"     // the highest rate that may be asked for held
	Generator   Outcome = "generator"   // a rate held, and at the next the generator or its machine gave out
	OutOfProbes Outcome = "probes"      // the highest rate probed held, and there are no probes left
	Nothing     Outcome = "nothing"     // no probe held
	Unconfirmed Outcome = "unconfirmed" // probes held, but no hold run
)

// Conclusion is what a search has found.
type Conclusion struct {
	Outcome Outcome
	// Asked and Achieved are those of the hold run that held; 0 without one.
	Asked, Achieved float64
	// Upper is the lowest rate above Asked that did not hold; 0 when none was seen.
	Upper float64
	// Reason is what the generator had come to at Upper, when the outcome is Generator; of Nothing and
	// Unconfirmed, in the last of the runs that did not hold, when it was the generator's in all of them.
	Reason string
}

// Bounds of a search beside those of Options.
const (
	defaultStart      = 1000
	defaultProbes     = 12
	defaultResolution = 0.02
	leastRate         = 1  // messages a second
	farthestDown      = 16 // by at once: a system that breaks down under load achieves next to nothing
	mostDown          = 4  // probes further down, one after the other, that do not hold
	mostUp            = 4  // and then further up
	mostHolds         = 6  // each lower than the one before by twice as much: the last by 43 % in all
	// chance is the number of probes that held since one did not, all of them, that make it worth
	// asking again: one in eight searches by pure chance.
	chance = 3
)

// Search looks for the highest rate that holds. Use New; it is not safe for concurrent use.
type Search struct {
	o       Options
	answers []answered
	// void are the rates that were asked for once more, so that it happens once.
	void    map[float64]bool
	next    Step
	probes  int
	holds   int
	first   Answer
	bounded Outcome    // how it ends when a hold run holds
	unheld  []answered // hold runs that did not hold
	end     Conclusion
}

type answered struct {
	rate float64
	held bool
	own  string // see Answer.Generator
}

// New begins a search.
func New(o Options) *Search {
	if !(o.Start > 0) {
		o.Start = defaultStart
	}
	if o.Probes <= 0 {
		o.Probes = defaultProbes
	}
	if !(o.Resolution > 0) {
		o.Resolution = defaultResolution
	}
	if !(o.Most > 0) {
		o.Most = math.Inf(1)
	}
	s := &Search{o: o, void: map[float64]bool{}}
	s.probe(min(o.Start, o.Most))
	return s
}

// Next is the run to make now; false when the search has ended. It does not change anything.
func (s *Search) Next() (Step, bool) { return s.next, s.end.Outcome == Searching }

// Conclusion is what was found; its Outcome is Searching until the search has ended.
func (s *Search) Conclusion() Conclusion { return s.end }

// Bounds are the highest rate that held so far and the lowest above it that did not; 0 and +Inf when
// there is none.
func (s *Search) Bounds() (held, failed float64) {
	last := s.verdicts()
	for rate, a := range last {
		if a.held {
			held = max(held, rate)
		}
	}
	return held, lowestFailed(last, held).rate
}

// lowestFailed is what came of the lowest rate above one that did not hold; its rate is +Inf without one.
func lowestFailed(last map[float64]answered, above float64) answered {
	lowest := answered{rate: math.Inf(1)}
	for rate, a := range last {
		if !a.held && rate > above && rate < lowest.rate {
			lowest = a
		}
	}
	return lowest
}

// verdicts are what came of each rate; of several at one rate the last counts.
func (s *Search) verdicts() map[float64]answered {
	last := map[float64]answered{}
	for _, a := range s.answers {
		last[a.rate] = a
	}
	return last
}

// Took takes in what came of the step that Next gave. After the end it does nothing.
func (s *Search) Took(a Answer) {
	if s.end.Outcome != Searching {
		return
	}
	if s.next.Stage == Hold {
		s.tookHold(a)
		return
	}
	if s.probes == 1 {
		s.first = a
	}
	rate := s.next.Rate
	if !a.Held && a.Disturbed && !s.void[rate] && s.probes < s.o.Probes {
		s.void[rate] = true
		s.probe(rate)
		return
	}
	s.answers = append(s.answers, answered{rate, a.Held, a.Generator})
	s.decide(a)
}

// decide says what follows a probe.
func (s *Search) decide(last Answer) {
	held, failed := s.Bounds()
	switch {
	case held == 0 && s.probes >= s.o.Probes:
		s.fail(Nothing, s.answers)
	case held == 0:
		s.feel(last)
	case math.IsInf(failed, 1) && held*(1+s.o.Resolution) >= s.o.Most:
		s.hold(AtMost, held)
	case math.IsInf(failed, 1) && s.probes >= s.o.Probes:
		s.hold(OutOfProbes, held)
	case math.IsInf(failed, 1):
		s.probe(min(2*held, s.o.Most))
	case s.probes >= s.o.Probes:
		s.hold(Found, held)
	case failed > held*(1+s.o.Resolution):
		s.bisect(held, failed)
	case s.byChance(failed):
		s.void[failed] = true
		s.probe(failed)
	default:
		s.hold(Found, held)
	}
}

// bisect asks for the middle between two rates on a logarithmic scale.
func (s *Search) bisect(held, failed float64) {
	middle := round(math.Sqrt(held * failed))
	if middle <= held || middle >= failed { // nothing lies between: rates are rounded
		s.hold(Found, held)
		return
	}
	s.probe(middle)
}

// byChance says whether the probe at a rate may have failed by chance: it failed once, and the ones
// since have all held.
func (s *Search) byChance(failed float64) bool {
	if s.void[failed] {
		return false
	}
	since := 0
	for i := len(s.answers) - 1; i >= 0 && s.answers[i].held; i-- {
		since++
	}
	at := len(s.answers) - 1 - since
	return since >= chance && at >= 0 && s.answers[at].rate == failed
}

// feel looks for a first rate that holds: down from where it started, then up from there when the
// rate itself was no trouble.
func (s *Search) feel(last Answer) {
	n := len(s.answers) // that did not hold, the first one included
	if n <= mostDown {
		low := s.next.Rate
		next := low / math.Pow(2, float64(n))
		if !last.RateMet {
			next = min(low/2, max(0.9*last.Achieved, low/farthestDown))
		}
		if next >= leastRate {
			s.probe(round(next))
			return
		}
	}
	up := s.answers[0].rate * 2
	for _, a := range s.answers {
		up = max(up, 2*a.rate)
	}
	highest := s.answers[0].rate * math.Pow(2, mostUp)
	if s.first.RateMet && up <= min(highest, s.o.Most) {
		s.probe(up)
		return
	}
	s.fail(Nothing, s.answers)
}

// fail ends the search without a figure, after runs of which none held.
func (s *Search) fail(how Outcome, runs []answered) {
	s.end.Outcome, s.end.Reason = how, ""
	for _, a := range runs {
		if s.end.Reason = a.own; a.own == "" {
			return
		}
	}
}

// probe asks for a probe.
func (s *Search) probe(rate float64) {
	s.probes++
	s.next = Step{Stage: Probe, Number: s.probes, Rate: rate}
}

// hold asks for a hold run; how is how the search ends when it holds.
func (s *Search) hold(how Outcome, rate float64) {
	s.bounded = how
	s.holds++
	s.next = Step{Stage: Hold, Number: s.holds, Rate: rate}
}

// tookHold takes in what came of a hold run.
func (s *Search) tookHold(a Answer) {
	rate := s.next.Rate
	if a.Held {
		s.answers = append(s.answers, answered{rate: rate, held: true})
		s.confirm(rate, a.Achieved)
		return
	}
	s.unheld = append(s.unheld, answered{rate, false, a.Generator})
	again := a.Disturbed && s.holds == 1
	if !again {
		s.answers = append(s.answers, answered{rate, false, a.Generator})
		rate = round(rate / (1 + s.o.Resolution*math.Pow(2, float64(s.holds-1))))
	}
	if s.holds >= mostHolds || rate < leastRate {
		s.fail(Unconfirmed, s.unheld)
		return
	}
	if again {
		s.hold(s.bounded, rate)
		return
	}
	s.hold(Found, rate)
}

// confirm ends the search with the figure of a hold run that held. What bounds it from above is the lowest
// rate that did not hold: if that was the generator's doing, nothing was seen of what the cluster does there.
func (s *Search) confirm(rate, achieved float64) {
	s.end = Conclusion{Outcome: s.bounded, Asked: rate, Achieved: achieved}
	lowest := lowestFailed(s.verdicts(), rate)
	if math.IsInf(lowest.rate, 1) {
		return
	}
	s.end.Upper = lowest.rate
	if s.bounded == Found && lowest.own != "" {
		s.end.Outcome, s.end.Reason = Generator, lowest.own
	}
}

// round keeps four digits of a rate: far finer than the resolution, and short enough to be read.
func round(rate float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 4, 64), 64)
	if err != nil {
		return rate // there is none for what was just formatted
	}
	return short
}
