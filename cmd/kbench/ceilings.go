package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/broker"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/kafka"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// Words of --ceiling beside a directory.
const (
	ceilingMeasure = "measure"
	ceilingNone    = "none"
)

const ceilingUsage = "what this generator can do alone, which the verdict holds the rate against: the directory of a 'kbench ceiling' result, 'measure' (first, about 15 s a load), or 'none' (default the newest one of this host and load in " + resultsFolder + ", %s)"

// ceilings knows what this generator can do, by load. It belongs to the goroutine that runs the plan.
type ceilings struct {
	stop  *stopper
	say   io.Writer // where progress goes; nil: nowhere
	known map[string]results.Ceiling
}

// newCeilings finds what is known of the plan's loads by what --ceiling says; empty: what lies in the
// results folder. must has what is not known there measured.
func newCeilings(stop *stopper, say io.Writer, choice string, p *plan.Plan, must bool) (*ceilings, error) {
	c := &ceilings{stop: stop, say: say, known: map[string]results.Ceiling{}}
	switch choice {
	case ceilingNone:
		return c, nil
	case ceilingMeasure:
		err := c.measureAll(p)
		return c, err
	case "":
		c.learn(results.FindCeilings(resultsFolder, results.HostInfo(), version()))
		if !must {
			return c, nil
		}
		err := c.measureAll(p)
		return c, err
	}
	list, host, err := results.LoadCeilings(choice)
	if err != nil {
		return nil, usage(fmt.Errorf("--ceiling: %w", err))
	}
	if here := results.HostInfo(); !results.SameGenerator(host, here) {
		return nil, usage(fmt.Errorf("--ceiling %s was measured on %s (%d CPUs), and this is %s (%d CPUs): run kbench ceiling here", choice, host.Hostname, host.CPUs, here.Hostname, here.CPUs))
	}
	c.learn(list)
	err = c.requireAll(p, choice)
	return c, err
}

// learn takes in ceilings, of which an earlier one goes before a later.
func (c *ceilings) learn(list []results.Ceiling) {
	for _, one := range list {
		if _, known := c.known[one.Load]; !known {
			c.known[one.Load] = one
		}
	}
}

// requireAll refuses ceilings of another load than the plan's.
func (c *ceilings) requireAll(p *plan.Plan, from string) error {
	for i := range p.Points {
		q := &p.Points[i]
		if _, known := c.known[q.Definition.GeneratorHash()]; !known && q.Skipped == "" {
			return usage(fmt.Errorf("--ceiling %s has no ceiling for this load (%s): producers, payload, partitions and client settings must be the same; run kbench ceiling with them", from, q.Label))
		}
	}
	return nil
}

// of is the ceiling of a point; false when it is not known.
func (c *ceilings) of(p *plan.Point) (results.Ceiling, bool) {
	if c == nil {
		return results.Ceiling{}, false
	}
	found, known := c.known[p.Definition.GeneratorHash()]
	return found, known
}

// all are the ceilings of a plan's points, each load once.
func (c *ceilings) all(p *plan.Plan) []results.Ceiling {
	var list []results.Ceiling
	seen := map[string]bool{}
	for i := range p.Points {
		if one, known := c.of(&p.Points[i]); known && !seen[one.Load] {
			seen[one.Load] = true
			list = append(list, one)
		}
	}
	return list
}

// measureAll measures what is not known yet of a plan's loads.
func (c *ceilings) measureAll(p *plan.Plan) error {
	for i := range p.Points {
		q := &p.Points[i]
		if _, known := c.of(q); known || q.Skipped != "" {
			continue
		}
		m := ceilingRuns{stop: c.stop, begin: func(target string, _ int) func(run.Progress) {
			c.tell("measuring what this generator can do: %s, %s\n", q.Label, target)
			return nil
		}}
		one, err := m.measure(q, 0)
		if err != nil {
			return fmt.Errorf("measuring this generator's ceiling (--ceiling none leaves it out): %w", err)
		}
		c.tell("this generator can do %.0f messages/s (the engine alone %.0f)\n", one.MessagesPerSecond, one.EngineMessagesPerSecond)
		c.known[one.Load] = one
	}
	return nil
}

func (c *ceilings) tell(format string, args ...any) {
	if c.say != nil {
		_, _ = fmt.Fprintf(c.say, format, args...) // progress is not worth an error
	}
}

// Names of what a ceiling is measured on.
const (
	targetNull    = "null target"
	targetDiscard = "discarding broker"
)

// ceilingRuns makes the two runs of a ceiling.
type ceilingRuns struct {
	stop *stopper
	// begin is told which target comes next, and gives who watches that run.
	begin func(target string, order int) func(run.Progress)
	// done is given what was measured, also of a run that ended early; nil: nobody wants it.
	done  func(target string, out *run.Outcome) error
	order int
}

// measure runs the load of a point on the null target and on the discarding broker, for length or, if
// 0, a few seconds.
func (m *ceilingRuns) measure(p *plan.Point, length time.Duration) (results.Ceiling, error) {
	one := results.Ceiling{Label: p.Label, Settings: maps.Clone(p.Settings), Load: p.Definition.GeneratorHash()}
	def, err := p.Definition.ForCeiling(length)
	if err != nil {
		return one, err
	}
	clock := run.NewClock()
	one.EngineMessagesPerSecond, err = m.execute(targetNull, run.Spec{Definition: def, Clock: clock, Target: synthetic.NewNull(clock)})
	if err != nil {
		return one, err
	}
	one.MessagesPerSecond, err = m.discard(p, def)
	return one, err
}

// discard is the run on a discarding broker of its own.
func (m *ceilingRuns) discard(p *plan.Point, def workloads.Definition) (float64, error) {
	cfg, err := pointConfig(p)
	if err != nil {
		return 0, err
	}
	child, err := broker.StartChild(m.stop.soft, broker.ChildOptions{Options: broker.Options{Discard: true}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = child.Close() }() // how it ends does not matter any more
	forget := m.stop.beforeExit(child.Kill)
	defer forget()
	clock := run.NewClock()
	return m.execute(targetDiscard, run.Spec{Definition: def, Clock: clock, AckMeaning: ackMeaning(cfg),
		Target: kafka.New(kafka.Options{Bootstrap: child.Bootstrap(), Config: *cfg, Definition: def, Clock: clock})})
}

// execute makes a run and gives the rate it reached.
func (m *ceilingRuns) execute(target string, spec run.Spec) (float64, error) {
	if err := context.Cause(m.stop.soft); err != nil {
		return 0, err
	}
	spec.Order, spec.HardCtx, spec.Progress = m.order, m.stop.hard, m.begin(target, m.order)
	m.order++
	spec.Definition.Faults = nil // they happen to clusters, and there is none
	out, err := run.Execute(m.stop.soft, spec)
	if out == nil {
		return 0, err
	}
	if m.done != nil {
		err = errors.Join(err, m.done(target, out))
	}
	return out.Run.Rates.MessagesPerSecond, err
}
