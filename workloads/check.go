package workloads

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/kbench/kbench/client/settings"
)

// checker collects what is wrong with a definition, at the places its keys were given.
type checker struct {
	*Definition
	given    map[string]settings.Value
	problems settings.Problems
}

// check looks at every value and at what goes with what. given is where keys were given; a
// problem with a key that was not has no place.
func check(d *Definition, given map[string]settings.Value) settings.Problems {
	c := &checker{Definition: d, given: given}
	c.names()
	c.topics()
	c.producers()
	c.schedule()
	c.form()
	c.transactions()
	c.consumers()
	c.payload()
	c.phases()
	c.named()
	c.steadyState()
	c.validity()
	c.faults()
	c.thresholds()
	return c.problems
}

func (c *checker) add(key, format string, args ...any) {
	a := settings.Assignment{Key: key, Value: c.given[key]}
	c.problems = append(c.problems, a.Problem(format, args...))
}

func (c *checker) within(key string, v, least, most float64) {
	if !(v >= least && v <= most) {
		c.add(key, "is %v, must be between %v and %v", v, least, most)
	}
}

func (c *checker) count(key string, v, least, most int64) {
	if v < least || v > most {
		c.add(key, "is %d, must be between %d and %d", v, least, most)
	}
}

func (c *checker) wait(key string, v, least time.Duration) {
	if v < least || v > 30*24*time.Hour {
		c.add(key, "is %s, must be between %s and 30 days", settings.FormatDuration(v), settings.FormatDuration(least))
	}
}

// Names become directories; topic names are Kafka's.
var (
	nameForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	topicForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)
)

func (c *checker) names() {
	if !nameForm.MatchString(c.Name) {
		c.add("name", "%q cannot be the name of a directory: use letters, digits, '-', '_' and '.', 100 at most", c.Name)
	}
	c.count("repeat", int64(c.Repeat), 1, 10_000)
}

func (c *checker) topics() {
	t := c.Topics
	if t.Name != "" && (!topicForm.MatchString(t.Name) || t.Name == "." || t.Name == "..") {
		c.add("topics.name", "%q is no name of a topic", t.Name)
	}
	if t.Name != "" && t.Count != 1 {
		c.add("topics.count", "is %d, but topics.name names one", t.Count)
	}
	c.include()
	c.count("topics.count", int64(t.Count), 1, 10_000)
	c.count("topics.partitions", int64(t.Partitions), 1, 100_000)
	c.count("topics.replicationFactor", int64(t.ReplicationFactor), 0, math.MaxInt16)
}

// include checks a pattern of topics.
func (c *checker) include() {
	t := c.Topics
	if t.Include == "" {
		return
	}
	if _, err := t.Pattern(); err != nil {
		c.add("topics.include", "is no regular expression: %v", err)
	}
	if t.Name != "" {
		c.add("topics.include", "is given beside topics.name; give one of them")
	}
	if c.Producers.Count > 0 {
		c.add("topics.include", "is for runs that only consume, and there are %d producers", c.Producers.Count)
	}
}

func (c *checker) producers() {
	p := c.Producers
	c.count("producers.count", int64(p.Count), 0, 100_000)
	c.within("producers.rate", p.Rate, 0, 1e9)
	if all := p.Rate * p.Fleet(); all > 1e9 && p.Rate <= 1e9 {
		c.add("producers.rate", "is %v for each of %d producers, which is above 1000000000 for all", p.Rate, p.Count)
	}
	c.count("producers.messages", p.Messages, 0, math.MaxInt64)
	c.count("producers.run", int64(p.Run), 1, 1_000_000)
	if p.Count == 0 && c.Consumers.Count == 0 {
		c.add("producers.count", "is 0, and so is consumers.count: there is nothing to do")
	}
	if p.Count == 0 && p.Rate > 0 {
		c.add("producers.rate", "is %v, but there are no producers", p.Rate)
	}
}

// schedule checks that each shape has what it needs, and nothing that belongs to another.
func (c *checker) schedule() {
	s, rate := c.Producers.Schedule, c.Producers.Rate
	needsRate := func() {
		if rate == 0 {
			c.add("producers.schedule.kind", "%s needs producers.rate", s.Kind)
		}
	}
	switch s.Kind {
	case "ramp":
		needsRate()
		c.within("producers.schedule.from", s.From, 0, 1e9)
	case "burst":
		needsRate()
		c.wait("producers.schedule.burstEvery", s.BurstEvery, time.Microsecond)
	case "poisson":
		needsRate()
	case "step":
		c.steps()
	case "replay":
		c.replay()
	}
	if s.Kind == "replay" && rate > 0 {
		c.add("producers.rate", "is not used by kind replay, which has its times in producers.schedule.file")
	}
	if (s.Kind == "ramp" || s.Kind == "step") && c.Phases.Duration == 0 {
		c.add("producers.schedule.kind", "%s needs phases.duration", s.Kind)
	}
	for _, key := range []struct {
		name, kind string
		used       bool
	}{{"from", "ramp", s.From != 0}, {"steps", "step", len(s.Steps) > 0}, {"burstEvery", "burst", s.BurstEvery != 0},
		{"file", "replay", s.File != ""}} {
		if key.used && s.Kind != key.kind {
			c.add("producers.schedule."+key.name, "belongs to kind %s, and the kind is %s", key.kind, s.Kind)
		}
	}
}

func (c *checker) steps() {
	highest := 0.0
	for _, rate := range c.Producers.Schedule.Steps {
		c.within("producers.schedule.steps", rate, 0, 1e9)
		highest = max(highest, rate)
	}
	if highest == 0 {
		c.add("producers.schedule.steps", "needs at least one rate above 0")
	}
	if c.Producers.Rate > 0 {
		c.add("producers.rate", "is not used by kind step, which has its rates in producers.schedule.steps")
	}
}

func (c *checker) phases() {
	p := c.Phases
	c.wait("phases.warmUp", p.WarmUp, 0)
	c.warmUpMessages()
	c.wait("phases.duration", p.Duration, 0)
	c.wait("phases.drain", p.Drain, time.Millisecond)
	c.wait("phases.interval", p.Interval, 10*time.Millisecond)
	c.wait("phases.coolDown", p.CoolDown, 0)
	if p.CoolDown > 0 && c.Consumers.Count > 0 && c.Payload.Stamp == "none" {
		c.add("phases.coolDown", "needs messages that can be told apart when consumers count them: payload.stamp is none")
	}
	if p.CoolDown > 0 && c.Producers.Messages > 0 && !c.Open() {
		c.add("phases.coolDown", "needs phases.duration: in a closed loop producers.messages are all that is sent")
	}
	if p.Length() == 0 && c.Producers.Messages == 0 && c.Producers.Schedule.Kind != "replay" {
		c.add("phases.duration", "is 0: the measured phase needs an end, here or by producers.messages")
	}
	// The default is no mistake of anybody's: a phase shorter than that has one window.
	if p.Length() > 0 && p.Interval > p.Length() && p.Interval != Default().Phases.Interval {
		c.add("phases.interval", "is %s, longer than the measured phase", settings.FormatDuration(p.Interval))
	}
	const mostWindows = 1_000_000
	if p.Interval > 0 && p.Length()/p.Interval > mostWindows {
		c.add("phases.interval", "is %s, which makes more than %d windows", settings.FormatDuration(p.Interval), mostWindows)
	}
}

// warmUpMessages checks a warm-up that ends with a number of messages. In a closed loop nobody knows
// when that is, so that nothing can be set for a time of the measured phase.
func (c *checker) warmUpMessages() {
	n := c.Phases.WarmUpMessages
	c.count("phases.warmUpMessages", n, 0, 1e12)
	switch {
	case n <= 0:
	case c.Producers.Count == 0:
		c.add("phases.warmUpMessages", "is %d, but there are no producers", n)
	case c.Phases.WarmUp > 0:
		c.add("phases.warmUpMessages", "is %d, and phases.warmUp is %s: one of them ends the warm-up; set phases.warmUp=0s", n, settings.FormatDuration(c.Phases.WarmUp))
	case c.Open():
	case len(c.Faults) > 0, len(c.Consumers.Changes) > 0, c.Consumers.StartAfter > 0:
		c.add("phases.warmUpMessages", "is %d in a closed loop, which takes nobody knows how long: faults, consumers.changes and consumers.startAfter, whose times count from its end, need phases.warmUp", n)
	}
}

func (c *checker) validity() {
	v := c.Validity
	c.within("validity.minRateShare", v.MinRateShare, 0, 1)
	c.within("validity.maxLatenessShare", v.MaxLatenessShare, 0, 1)
	c.within("validity.maxCpuShare", v.MaxCPUShare, 0, 1)
	c.within("validity.maxOwnShare", v.MaxOwnShare, 0, 1)
	c.within("validity.maxStolenShare", v.MaxStolenShare, 0, 1)
	c.within("validity.maxGcPauseShare", v.MaxGCPauseShare, 0, 1)
	c.within("validity.maxHostCpuShare", v.MaxHostCPUShare, 0, 1)
	c.within("validity.maxCeilingShare", v.MaxCeilingShare, 0, 1)
	c.within("validity.maxLittleError", v.MaxLittleError, 0, 1)
	c.wait("validity.maxLateness", v.MaxLateness, 0)
	c.wait("validity.maxPause", v.MaxPause, 0)
}

// thresholds are checked one by one, each at its own place in the list.
func (c *checker) thresholds() {
	items := c.given["thresholds"].Items()
	for i, expression := range c.Thresholds {
		a := settings.Assignment{Key: "thresholds", Value: c.given["thresholds"]}
		a.Value = settings.Of(expression).At(a.Value)
		if i < len(items) {
			a.Value = items[i]
		} else if c.given != nil {
			a.Value.File, a.Value.Line, a.Value.Column = "--threshold", 0, 0
		}
		t, err := ParseThreshold(expression)
		if err == nil {
			err = c.measurable(t)
		}
		if err != nil {
			c.problems = append(c.problems, a.Problem("%v", err))
		}
	}
}

// measurable refuses a condition on what this workload cannot tell.
func (c *checker) measurable(t Threshold) error {
	series, _ := t.Series()
	closed := !c.Open() && !c.swept("producers.rate") && !c.swept("producers") && !c.swept("phases.named")
	switch {
	case (series == "response" || series == "delay") && closed:
		return fmt.Errorf("%q needs due times, hence producers.rate; without a rate, use service", t.Expression)
	case ofConsumers(t.Metric, series) && c.Consumers.Count == 0 && !c.mayChange("consumers.count"):
		return fmt.Errorf("%q needs consumers", t.Expression)
	case strings.HasPrefix(t.Metric, "catchUp.") && c.Consumers.StartAfter == 0 && !c.mayChange("consumers.startAfter"):
		return fmt.Errorf("%q needs a backlog, hence consumers.startAfter", t.Expression)
	case (series == "rebalance" || t.Metric == "rebalances") && c.Consumers.Mode != "group" && !c.mayChange("consumers.mode"):
		return fmt.Errorf("%q needs consumers.mode=group", t.Expression)
	case t.Metric == "fault.recovery" && len(c.Faults) == 0 && !c.mayChange("faults"):
		return fmt.Errorf("%q needs faults", t.Expression)
	}
	return c.ofTransactions(t, series)
}

// ofTransactions refuses a condition on transactions where there are none.
func (c *checker) ofTransactions(t Threshold, series string) error {
	about := series == "transaction" || series == "commit" || t.Metric == "abortedReceived" || strings.HasPrefix(t.Metric, "transactions.")
	if about && !c.Producers.Transactions.On() && !c.mayChange("producers.transactions") {
		return fmt.Errorf("%q needs producers.transactions.every or producers.transactions.messages", t.Expression)
	}
	return nil
}

// ofConsumers says whether a figure is one of consumers.
func ofConsumers(metric, series string) bool {
	return series == "e2e" || series == "request.fetch" || series == "rebalance" || metric == "rebalances" ||
		metric == "abortedReceived" || strings.HasPrefix(metric, "lag.") || strings.HasPrefix(metric, "catchUp.")
}

func (c *checker) swept(key string) bool {
	for _, axis := range c.Swept() {
		if axis.Key == key {
			return true
		}
	}
	return false
}
