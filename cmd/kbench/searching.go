package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/capacity"
)

// searching is the execution of a plan in which every execution is a search.
type searching struct {
	*bench
	o      *capacityOptions
	errOut io.Writer
	order  int // runs so far, over all searches
}

// execute makes the searches. What was probed of one that ended early is kept; the plan ends with
// the first error.
func (s *searching) execute() error {
	s.show.end() // the one of a plan whose runs can be counted
	s.show = newProgress(s.errOut, s.o.quiet, unknownRuns)
	defer s.show.end()
	if w, ok := s.show.(io.Writer); ok {
		s.stop.tellOn(w)
	}
	for _, x := range s.plan.Order {
		if s.stop.soft.Err() != nil {
			s.result.Interrupted = true
			return context.Cause(s.stop.soft)
		}
		if err := s.search(x); err != nil {
			s.result.Interrupted = true
			return pointError(len(s.plan.Order) > 1, &s.plan.Points[x.Point], err)
		}
	}
	return nil
}

// search makes one search. Its record stands in the result from the first probe on.
func (s *searching) search(x plan.Execution) error {
	point := &s.plan.Points[x.Point]
	ceiling, _ := s.ceilings.of(point)
	s.result.Capacity = append(s.result.Capacity, results.Capacity{
		Point: point.ID, Repeat: x.Repeat, Objectives: s.o.slo, Outcome: results.CapacityUnfinished,
		CeilingPerSecond: ceiling.MessagesPerSecond, Probes: []results.Probe{},
	})
	record := len(s.result.Capacity) - 1
	search := capacity.New(capacity.Options{
		Start: point.Definition.Producers.Rate * point.Definition.Producers.Fleet(), Most: ceiling.MessagesPerSecond, Probes: s.o.probes,
	})
	for step, more := search.Next(); more; step, more = search.Next() {
		answer, err := s.step(x, record, step)
		if err != nil {
			return err
		}
		search.Took(answer)
	}
	end, c := search.Conclusion(), &s.result.Capacity[record]
	c.Outcome, c.MessagesPerSecond, c.AskedPerSecond, c.UpperPerSecond = string(end.Outcome), end.Achieved, end.Asked, end.Upper
	c.Generator = end.Reason
	return s.save()
}

// step makes one run of a search and keeps it. A run that fails because no message went through is
// an answer, every other failure ends the search.
func (s *searching) step(x plan.Execution, record int, step capacity.Step) (capacity.Answer, error) {
	point := s.at(&s.plan.Points[x.Point], step)
	s.show.begin(s.order, &point)
	out, err := s.runOne(&point, plan.Execution{Point: x.Point, Repeat: x.Repeat, Order: s.order})
	s.order++
	if out == nil {
		return capacity.Answer{}, err
	}
	answer, reasons := capacity.Judge(out, point.Definition.Validity)
	if err != nil {
		answer.Held, reasons = false, append([]string{err.Error()}, reasons...)
	}
	if kept := s.keepProbe(x, record, step, out, answer, reasons); kept != nil {
		return answer, errors.Join(err, kept)
	}
	s.said(point.Label, answer, reasons)
	if errors.Is(err, run.ErrAllFailed) {
		err = s.still(&point)
	}
	return answer, err
}

// still says why the cluster of a point cannot be reached any more, nil when it can.
func (s *searching) still(p *plan.Point) error {
	cfg, err := pointConfig(p)
	if err != nil {
		return err
	}
	s.o.security.Apply(cfg)
	return s.cluster.gone(s.stop.soft, cfg)
}

// at is a point at the rate of a step.
func (s *searching) at(p *plan.Point, step capacity.Step) plan.Point {
	point := *p
	d := &point.Definition
	d.Producers.Rate, d.Producers.RateOf = step.Rate, workloads.OfAll
	if step.Stage == capacity.Hold {
		d.Phases.Duration *= 3
		if s.o.hold > 0 {
			d.Phases.Duration = s.o.hold
		}
	}
	point.Label = fmt.Sprintf("%s %d at %s/s", step.Stage, step.Number, strconv.FormatFloat(step.Rate, 'f', -1, 64))
	if len(s.plan.Order) > 1 {
		point.Label = p.Label + ": " + point.Label
	}
	return point
}

// keepProbe writes the files of a run and the result with it. The hold run that held is the point's
// run; the others stand in the record of the search alone.
func (s *searching) keepProbe(x plan.Execution, record int, step capacity.Step, out *run.Outcome, a capacity.Answer, reasons []string) error {
	probe := results.Probe{
		Stage: string(step.Stage), Number: step.Number, AskedPerSecond: step.Rate, Held: a.Held, Reasons: append([]string{}, reasons...),
	}
	add := func() {
		probe.Run = out.Run
		c := &s.result.Capacity[record]
		c.Probes = append(c.Probes, probe)
	}
	if step.Stage == capacity.Hold && a.Held {
		point := &s.result.Points[x.Point]
		if err := s.write(point, out); err != nil {
			return err
		}
		add()
		point.Runs = append(point.Runs, out.Run)
	} else {
		// The files of a probe are named after the point and the step.
		id := fmt.Sprintf("%s-%s%02d", s.result.Points[x.Point].ID, step.Stage, step.Number)
		if err := s.write(&results.Point{ID: id}, out); err != nil {
			return err
		}
		add()
	}
	s.ran++
	s.show.done(&out.Run)
	return s.save()
}

// said tells what came of a step.
func (s *searching) said(label string, a capacity.Answer, reasons []string) {
	if s.o.quiet {
		return
	}
	text := "holds"
	if !a.Held {
		text = "does not hold: " + strings.Join(reasons, "; ")
	}
	_, _ = fmt.Fprintf(s.errOut, "%s %s\n", label, text) // progress is not worth an error
}
