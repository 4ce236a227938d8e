package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run"
)

const ceilingLong = `Measure what this generator can do for a workload with no cluster behind it, in messages a
second: as fast as its bounds allow, a few seconds each

  - on the null target, which takes and acknowledges every message in the process: what the
    engine alone can do;
  - on an embedded broker that drops what it is sent, with the client and one connection's
    way between: the ceiling. That broker takes CPU of this machine too.

What consumers and TLS take of the generator is not in it.

The result is kept like any other, in ` + resultsFolder + `/` + results.CeilingPrefix + `WORKLOAD-TIME. From then on 'kbench run' and
'kbench capacity' on the same host with the same load (producers, payload, partitions and
client settings) hold their rate against it: more than 70 % of the ceiling
(validity.maxCeilingShare) carries a warning, since the figures are then the generator's as much
as the cluster's.
`

const ceilingExample = `  kbench ceiling                                 for the workload "quick"
  kbench ceiling mine.yaml --sweep payload.size=100,1000
  kbench run mine.yaml --ceiling measure         measure it first and use it at once`

// ceilingOptions are the flags of `kbench ceiling`.
type ceilingOptions struct {
	runOptions
	length time.Duration
}

// newCeilingCommand makes `kbench ceiling`.
func newCeilingCommand() *cobra.Command {
	var o ceilingOptions
	cmd := &cobra.Command{
		Use:     "ceiling [WORKLOAD]",
		Short:   "Measure what this generator can do with no cluster behind it",
		Long:    ceilingLong + exitCodesHelp,
		Example: ceilingExample,
		Args:    atMostOne,
		RunE:    o.run,
	}
	o.loading.addSettings(cmd)
	f := cmd.Flags()
	f.DurationVar(&o.length, "duration", 0, "length of each measurement (default 5s, or the workload's if that is shorter)")
	o.addOutput(cmd)
	return cmd
}

func (o *ceilingOptions) run(cmd *cobra.Command, args []string) error {
	if err := checkFormat(o.format); err != nil {
		return err
	}
	if o.length < 0 || o.length > 24*time.Hour {
		return usage(fmt.Errorf("--duration %s must be between 0 and a day", o.length))
	}
	def, p, err := o.load(args)
	if err != nil {
		return err
	}
	if _, err := p.Points[p.Order[0].Point].Definition.ForCeiling(o.length); err != nil {
		return usage(fmt.Errorf("%s: %w", def.Name, err))
	}
	stop := newStopper(cmd.ErrOrStderr())
	defer stop.release()
	dir, discard, err := o.directory(results.CeilingPrefix + def.Name)
	if err != nil {
		return err
	}
	stop.beforeExit(discard)
	defer func() { _ = dir.Release() }() // only a later run into the same directory would notice
	b, err := o.bench(stop, def, p, dir, newProgress(cmd.ErrOrStderr(), o.quiet, 2*len(p.Points)))
	if err != nil {
		discard()
		return err
	}
	err = b.executeCeilings(o.length)
	if b.ran == 0 {
		discard()
		return stop.explain(err, false)
	}
	return b.finish(cmd.OutOrStdout(), stop.explain(err, true))
}

// bench is one without a cluster.
func (o *ceilingOptions) bench(stop *stopper, def *workloads.Definition, p *plan.Plan, dir *results.Dir, show progress) (*bench, error) {
	cfg, err := configOf(def)
	if err != nil {
		return nil, err
	}
	b := &bench{o: &o.runOptions, plan: p, stop: stop, dir: dir, show: show}
	b.result, err = newResult(def, p, cfg, results.Cluster{Embedded: true, Bootstrap: []string{}})
	if err == nil {
		b.result.Points = nil
	}
	return b, err
}

// executeCeilings measures the ceiling of every point, in the order of the sweep.
func (b *bench) executeCeilings(length time.Duration) error {
	defer b.show.end()
	m := ceilingRuns{stop: b.stop}
	for i := range b.plan.Points {
		p := &b.plan.Points[i]
		if p.Skipped != "" {
			b.result.Points = append(b.result.Points, results.Point{ID: p.ID, Label: p.Label, Settings: p.Settings, Skipped: p.Skipped, Runs: []results.Run{}})
			continue
		}
		m.begin = func(target string, order int) func(run.Progress) {
			b.show.begin(order, &plan.Point{Label: ceilingLabel(p, target)})
			return b.show.update
		}
		m.done = func(target string, out *run.Outcome) error { return b.keepCeiling(p, target, out) }
		one, err := m.measure(p, length)
		if err != nil {
			b.result.Interrupted = true
			return pointError(len(b.plan.Points) > 1, p, err)
		}
		b.result.Ceilings = append(b.result.Ceilings, one)
	}
	return context.Cause(b.stop.soft)
}

// ceilingLabel names a run of a ceiling.
func ceilingLabel(p *plan.Point, target string) string {
	if len(p.Settings) == 0 {
		return target
	}
	return p.Label + " " + target
}

// keepCeiling keeps a run as the point it is of its own.
func (b *bench) keepCeiling(p *plan.Point, target string, out *run.Outcome) error {
	settings := maps.Clone(p.Settings)
	settings["target"] = target
	b.result.Points = append(b.result.Points, results.Point{
		ID: fmt.Sprintf("p%02d", len(b.result.Points)), Label: ceilingLabel(p, target), Settings: settings, Runs: []results.Run{},
	})
	return b.keep(plan.Execution{Point: len(b.result.Points) - 1}, out)
}

// ackMeaning is what the producer-side series of a configuration end with.
func ackMeaning(cfg *client.Config) string {
	if cfg.Producer.RequiredAcks == client.AcksNone {
		return run.AckMeaningWritten
	}
	return run.AckMeaningAcked
}
