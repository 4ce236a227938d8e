package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/kafka"
)

// bench is the execution of one plan, run after run, into one result directory.
type bench struct {
	o       *runOptions
	plan    *plan.Plan
	stop    *stopper
	cluster *cluster
	dir     *results.Dir
	result  *results.Result
	show    progress
	metrics *exporter // nil without --metrics-addr
	// ceilings are what this generator can do; nil when nobody asked.
	ceilings *ceilings
	ran      int // runs kept
	// have are the executions of the plan whose runs are there already, of a result that is gone on with.
	have map[plan.Execution]bool
}

// newBench finds the cluster and makes the result.
func newBench(stop *stopper, o *runOptions, def *workloads.Definition, p *plan.Plan, dir *results.Dir, known *ceilings, errOut io.Writer) (*bench, error) {
	c, err := findCluster(stop.soft, o.brokers, stop)
	if err != nil {
		return nil, err
	}
	b := &bench{o: o, plan: p, stop: stop, cluster: c, dir: dir, show: newProgress(errOut, o.quiet || o.tool != nil, len(p.Order)), have: map[plan.Execution]bool{}}
	if w, ok := b.show.(io.Writer); ok {
		stop.tellOn(w)
	}
	if err := b.begin(def); err != nil {
		c.close()
		return nil, err
	}
	if known != nil {
		b.ceilings, b.result.Ceilings = known, known.all(p)
	}
	if !o.quiet {
		announce(errOut, def, p, c)
	}
	b.ownTopics(def, errOut)
	return b, nil
}

// ownTopics has somebody who ends kbench at once told that topics may be left.
func (b *bench) ownTopics(def *workloads.Definition, errOut io.Writer) {
	if b.cluster.child != nil || def.Topics.Existing() {
		return
	}
	b.stop.beforeExit(func() {
		_, _ = fmt.Fprintf(errOut, "kbench: stopped at once: topics of this run, named kbench-…, may be left on %s\n", b.cluster.list())
	})
}

// begin asks the cluster what it is and fills in everything of the result that is known before.
func (b *bench) begin(def *workloads.Definition) error {
	cfg, err := configOf(def)
	if err != nil {
		return err
	}
	b.o.security.Apply(cfg)
	described, err := b.cluster.describe(b.stop.soft, cfg)
	if err != nil {
		return err
	}
	if err := requireFiles(b.plan, len(described.Brokers), fileLimit()); err != nil {
		return err
	}
	if b.o.tool != nil {
		if err := b.o.tool.prepare(b.stop.soft, b.cluster, cfg); err != nil {
			return err
		}
	}
	described.SecurityProtocol, described.SASLMechanism = b.o.security.Protocol(), b.o.security.Mechanism()
	b.result, err = newResult(def, b.plan, cfg, described)
	return err
}

// configOf is the client's configuration before any sweep.
func configOf(def *workloads.Definition) (*client.Config, error) {
	cfg := client.NewConfig()
	if err := cfg.Apply(def.Client...); err != nil {
		return nil, err
	}
	return cfg, nil
}

func newResult(def *workloads.Definition, p *plan.Plan, cfg *client.Config, c results.Cluster) (*results.Result, error) {
	effective, err := json.Marshal(def.Effective())
	if err != nil {
		return nil, fmt.Errorf("the workload in effect: %w", err)
	}
	r := &results.Result{
		Schema: results.Schema,
		Workload: results.Workload{
			Name: def.Name, Description: def.Description, Given: def.Source, Overrides: def.Overrides,
			Effective: effective, Hash: def.Hash(),
		},
		Settings: cfg.Settings(), Seed: p.Seed, StartedAt: time.Now().UTC(),
		Provenance: results.Provenance{KbenchVersion: version(), Host: results.HostInfo(), Cluster: c},
	}
	if p.Design.Kind != workloads.DesignMatrix {
		r.Design = &results.Design{Kind: p.Design.Kind, Of: p.Design.Of, Base: p.Design.Base, Text: p.Design.String()}
	}
	for i := range p.Points {
		q := &p.Points[i]
		r.Points = append(r.Points, results.Point{
			ID: q.ID, Label: q.Label, Settings: q.Settings, Skipped: q.Skipped, Runs: []results.Run{},
		})
	}
	return r, nil
}

// execute runs the plan. What was measured of a run that ended early is kept; the plan ends with
// the first error.
func (b *bench) execute() error {
	defer b.show.end()
	left := len(b.plan.Order) - len(b.have)
	b.result.Interrupted = left > 0
	b.show.expect(left, b.plan.Estimate.Time*time.Duration(left)/time.Duration(max(len(b.plan.Order), 1)))
	for _, x := range b.plan.Order {
		if b.have[x] {
			continue
		}
		if b.stop.soft.Err() != nil {
			b.result.Interrupted = true
			return context.Cause(b.stop.soft)
		}
		point := &b.plan.Points[x.Point]
		b.show.begin(x.Order, point)
		out, err := b.runOne(point, x)
		left--
		b.result.Interrupted = left > 0 || err != nil // a process that is killed leaves what is true
		if out != nil {
			out.Run.Incomplete = err != nil
			if kept := b.keep(x, out); kept != nil {
				return errors.Join(err, kept)
			}
		}
		if err != nil {
			return pointError(len(b.plan.Order) > 1, point, err)
		}
	}
	return nil
}

func pointError(several bool, p *plan.Point, err error) error {
	if !several {
		return err
	}
	return fmt.Errorf("point %s (%s): %w", p.ID, p.Label, err)
}

func (b *bench) runOne(p *plan.Point, x plan.Execution) (*run.Outcome, error) {
	cfg, err := pointConfig(p)
	if err != nil {
		return nil, err
	}
	b.o.security.Apply(cfg)
	clock := run.NewClock()
	ceiling, _ := b.ceilings.of(p)
	var target *kafka.Target
	faults, err := b.newScript(b.stop.hard, &p.Definition, cfg, func() []string { return target.Topics() })
	if err != nil {
		return nil, err
	}
	target = kafka.New(kafka.Options{
		Bootstrap: faults.Bootstrap(), Config: *cfg, Definition: p.Definition, Clock: clock,
	})
	b.metrics.begin(p.ID, x.Repeat, target.Metrics)
	var watched run.Target = target
	if b.o.tool != nil {
		watched = b.o.tool.watch(target, clock)
	}
	out, err := run.Execute(b.stop.soft, run.Spec{
		Definition: p.Definition, Clock: clock, Repeat: x.Repeat, Order: x.Order,
		Target: watched, Disturber: faults,
		AckMeaning: ackMeaning(cfg), Idempotent: cfg.Producer.Idempotent, ReadCommitted: cfg.Consumer.IsolationLevel == client.ReadCommitted, Ceiling: ceiling.MessagesPerSecond,
		Progress: b.progress, HardCtx: b.stop.hard,
	})
	err = closeScript(faults, out, err)
	if err == nil && out.Run.Counts.Failed+out.Run.Counts.Unknown > 0 {
		// A run goes on without brokers, since they may come back; what follows it need not.
		err = b.cluster.gone(b.stop.soft, cfg)
	}
	return out, err
}

// progress tells all who watch how the run stands.
func (b *bench) progress(p run.Progress) {
	b.metrics.update(p)
	b.show.update(p)
	if b.o.tool != nil {
		b.o.tool.update()
	}
}

func pointConfig(p *plan.Point) (*client.Config, error) {
	cfg := client.NewConfig()
	if err := cfg.Apply(p.Client...); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// keep writes a run's files and the result with it, so that what is on disk is always whole.
func (b *bench) keep(x plan.Execution, out *run.Outcome) error {
	point := &b.result.Points[x.Point]
	if err := b.write(point, out); err != nil {
		return err
	}
	point.Runs = append(point.Runs, out.Run)
	b.ran++
	b.show.done(&out.Run)
	return b.save()
}

// write writes the files of a run beside the result.
func (b *bench) write(point *results.Point, out *run.Outcome) error {
	return errors.Join(b.dir.WriteRun(point, &out.Run, out.Windows), b.dir.WriteLags(point, &out.Run, out.Lags),
		b.dir.WriteParts(point, &out.Run, results.ByProducer, out.Parts.Producers),
		b.dir.WriteParts(point, &out.Run, results.ByPartition, out.Parts.Partitions))
}

func (b *bench) save() error { return b.dir.Save(b.result) }

func (b *bench) close() { b.cluster.close() }
