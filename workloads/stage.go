package workloads

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kbench/kbench/client/settings"
)

// Stage is a part of the measured phase that has figures of its own. In a file it is
// {name: peak, for: 10s, rate: 5k}, in one word "peak 10s 5k", as on the command line.
type Stage struct {
	Name string
	For  time.Duration
	Rate float64 // messages a second; 0: producers.rate
}

// MarshalText is the stage in words: "peak 10s 5000".
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is the stage in words.
func (s Stage) String() string {
	text := s.Name + " " + settings.FormatDuration(s.For)
	if s.Rate > 0 {
		text += " " + strconv.FormatFloat(s.Rate, 'f', -1, 64)
	}
	return text
}

const stageForm = `write it like {name: peak, for: 10s, rate: 5k} or "peak 10s 5k"`

// UnmarshalText reads "peak 10s 5k" or "peak 10s".
func (s *Stage) UnmarshalText(text []byte) error {
	parts := strings.Fields(string(text))
	switch len(parts) {
	case 2:
		return s.set(parts[0], parts[1], "")
	case 3:
		return s.set(parts[0], parts[1], parts[2])
	}
	return fmt.Errorf("%.60q is no phase; %s", text, stageForm)
}

// UnmarshalEntries reads {name: peak, for: 10s, rate: 5k}.
func (s *Stage) UnmarshalEntries(entries []settings.Assignment) error {
	var name, length, rate string
	for _, e := range entries {
		into, known := map[string]*string{"name": &name, "for": &length, "rate": &rate}[e.Key]
		if !known {
			return fmt.Errorf("%.40q is no key of a phase; %s", e.Key, stageForm)
		}
		if e.Value.IsList() || e.Value.IsMap() || e.Value.IsNull() {
			return fmt.Errorf("%s needs a value; %s", e.Key, stageForm)
		}
		*into = e.Value.Text()
	}
	if name == "" || length == "" {
		return fmt.Errorf("a phase needs a name and a length; %s", stageForm)
	}
	return s.set(name, length, rate)
}

// stageName is what the report and the files can show.
var stageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// maxStage bounds the length of a stage.
const maxStage = 30 * 24 * time.Hour

func (s *Stage) set(name, length, rate string) error {
	if !stageName.MatchString(name) {
		return fmt.Errorf("%.60q is no name of a phase: use letters, digits, '-', '_' and '.', 40 at most", name)
	}
	d, err := settings.ParseDuration(length)
	if err != nil {
		return err
	}
	if d <= 0 || d > maxStage {
		return fmt.Errorf("%s: a phase is longer than 0 and 30 days at most", settings.FormatDuration(d))
	}
	r := 0.0
	if rate != "" {
		if r, err = settings.ParseRate(rate); err != nil {
			return err
		}
		if !(r > 0 && r <= maxRate) {
			return fmt.Errorf("rate %.20s must be above 0 and %.0f at most", rate, maxRate)
		}
	}
	*s = Stage{Name: name, For: d, Rate: r}
	return nil
}

const maxRate = 1e9

// reserved are the names of the phases every run has.
var reserved = map[string]bool{"warm-up": true, "measure": true, "cool-down": true, "drain": true, "settling": true}

// named checks the parts of the measured phase.
func (c *checker) named() {
	p := c.Phases
	if len(p.Named) == 0 {
		return
	}
	const most = 1000
	if len(p.Named) > most {
		c.add("phases.named", "has %d phases; %d is the most", len(p.Named), most)
	}
	seen := map[string]bool{}
	for _, s := range p.Named {
		switch {
		case seen[s.Name]:
			c.add("phases.named", "%s: the name is there twice", s)
		case reserved[s.Name]:
			c.add("phases.named", "%s: the name is that of a phase every run has", s)
		case p.Interval > 0 && s.For%p.Interval != 0:
			c.add("phases.named", "%s: must be a multiple of phases.interval (%s) long, since windows belong to one phase", s, settings.FormatDuration(p.Interval))
		case s.Rate == 0 && c.Producers.Rate == 0 && c.Open():
			c.add("phases.named", "%s: has no rate, and producers.rate has none for it", s)
		}
		seen[s.Name] = true
	}
	if c.lengthTwice() && p.Duration != p.Length() {
		c.add("phases.duration", "is %s, but phases.named make up %s; leave it out", settings.FormatDuration(p.Duration), settings.FormatDuration(p.Length()))
	}
	if kind := c.Producers.Schedule.Kind; kind != "constant" {
		c.add("phases.named", "belongs to producers.schedule.kind=constant, and the kind is %s", kind)
	}
	if c.Producers.Messages > 0 {
		c.add("phases.named", "ends the measured phase, and so does producers.messages; leave one out")
	}
}

// lengthTwice says whether phases.duration was given beside phases.named. Phases named on the command
// line replace the duration in a file.
func (c *checker) lengthTwice() bool {
	duration, given := c.given["phases.duration"]
	return given && (duration.File != c.File || c.given["phases.named"].File == c.File)
}

// steadyState checks that a steady state can be looked for.
func (c *checker) steadyState() {
	p := c.Phases
	if !p.Steady {
		return
	}
	const intervals = 50
	kind := c.Producers.Schedule.Kind
	switch {
	case kind != "constant" && kind != "poisson":
		c.add("phases.steady", "needs a rate that stays: producers.schedule.kind is %s", kind)
	case len(p.Named) > 0:
		c.add("phases.steady", "looks at the measured phase as a whole, and phases.named divides it")
	case c.Producers.Count == 0:
		c.add("phases.steady", "looks at what producers see, and there are none")
	case c.Producers.Messages > 0:
		c.add("phases.steady", "needs to know the length of the measured phase, which producers.messages may end")
	case c.Consumers.StartAfter > 0 || len(c.Consumers.Changes) > 0:
		c.add("phases.steady", "is not to be had while consumers come and go: leave out consumers.startAfter and consumers.changes")
	case p.Interval > 0 && p.Duration/p.Interval < intervals && !c.mayChange("phases.duration", "phases.interval"):
		c.add("phases.steady", "needs %d intervals, and phases.duration=%s has %d of %s; lengthen one or shorten the other", intervals,
			settings.FormatDuration(p.Duration), p.Duration/p.Interval, settings.FormatDuration(p.Interval))
	}
}
