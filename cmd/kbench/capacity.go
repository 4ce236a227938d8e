package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run/capacity"
)

const capacityLong = `Find the highest rate that holds an objective, in messages a second.

The rate is doubled until a probe does not hold, then bisected until the lowest rate that did
not hold is within 2 % of the highest that did. A probe is a run of the workload at one rate,
on topics of its own; it holds when

  - every --slo holds, and the thresholds of the workload;
  - at least 99 % of the rate was achieved (validity.minRateShare);
  - the lag of its consumers, if any, grew by 1 % of the rate at most;
  - the run is valid.

A longer hold run at the rate found confirms it: its figures are the ones reported, with the
interval from what it achieved to the lowest rate that did not hold. Every probe is kept, and
drawn as a curve of throughput against latency in the report.

With --sweep each point gets a capacity of its own, with --repeat several. No rate above this
generator's ceiling is asked for; one that is not known is measured first (--ceiling).

Mostly the generator gives out before that: it was too busy, stood still, or was behind its own
schedule in the lowest run that did not hold, also when that was made again. Then the figure is a
lower bound ("at least"), and says so: nothing was seen of what the cluster does above it. More
machines make more load (kbench merge).
`

const capacityExample = `  kbench capacity quick --slo 'response.p99<20ms'
  kbench capacity mine.yaml -b 127.0.0.1:9092 --slo 'response.p99<20ms' --slo 'errors<0.1%' --slo 'lag.growth<1%'
  kbench capacity mine.yaml --slo 'response.p99<20ms' --sweep producers.count=1,2,4,8,16 --duration 5s`

const capacityCodes = `
Exit codes:
  0  found, or a lower bound of it            4  no hold run confirmed what the probes found
  1  error                                    5  the generator, not the cluster, gave out in every probe
  2  wrong usage, or an invalid workload    130  interrupted (what was probed is kept)
  3  no rate that was probed holds the objective`

// capacityOptions are the flags of `kbench capacity`.
type capacityOptions struct {
	runOptions
	slo    []string
	hold   time.Duration
	probes int
}

// newCapacityCommand makes `kbench capacity`.
func newCapacityCommand() *cobra.Command {
	var o capacityOptions
	cmd := &cobra.Command{
		Use:     "capacity WORKLOAD --slo CONDITION",
		Short:   "Find the highest rate that holds an objective",
		Long:    capacityLong + capacityCodes,
		Example: capacityExample,
		Args:    exactlyOne,
		RunE:    o.run,
	}
	o.loading.addSettings(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.slo, "slo", nil, "what has to hold, e.g. 'response.p99<20ms', 'errors<0.1%', 'lag.growth<1%' (repeatable)")
	f.StringVar(&o.overrides.Rate, "rate", "", "rate of the first probe (default the workload's, or 1k)")
	f.StringVar(&o.overrides.Duration, "duration", "", "length of a probe's measured phase (default the workload's)")
	f.DurationVar(&o.hold, "hold", 0, "length of the hold run's measured phase (default three times a probe's)")
	f.IntVar(&o.probes, "probes", 12, "most probes of a search, hold runs not counted")
	f.StringVar(&o.overrides.Repeat, "repeat", "", "searches of every point")
	o.connecting.addFlags(cmd)
	o.addOutput(cmd)
	f.StringVar(&o.ceiling, "ceiling", "", fmt.Sprintf(ceilingUsage, "else measured"))
	f.StringVar(&o.metricsAddr, "metrics-addr", "", "serve metrics for Prometheus at http://HOST:PORT/metrics while it runs, e.g. 127.0.0.1:9400 (default not at all)")
	return cmd
}

// exactlyOne wants a workload: minutes of load are not put on a cluster by default.
func exactlyOne(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(fmt.Errorf("name a workload, e.g. %s quick --slo 'response.p99<20ms' (kbench workloads lists them)", cmd.CommandPath()))
	}
	return atMostOne(cmd, args)
}

func (o *capacityOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.connecting.read(cmd, o.quiet); err != nil {
		return err
	}
	def, p, err := o.search(args)
	if err != nil {
		return err
	}
	errOut := cmd.ErrOrStderr()
	metrics, err := startExporter(o.metricsAddr, errOut, o.quiet)
	if err != nil {
		return err
	}
	defer metrics.close()
	stop := newStopper(errOut)
	defer stop.release()
	dir, discard, err := o.directory(def.Name + "-capacity")
	if err != nil {
		return err
	}
	stop.beforeExit(discard)
	defer func() { _ = dir.Release() }() // only a later run into the same directory would notice
	known, err := newCeilings(stop, o.aside(errOut), o.ceiling, p, true)
	if err != nil {
		discard()
		return stop.explain(err, false)
	}
	b, err := newBench(stop, &o.runOptions, def, p, dir, known, errOut)
	if err != nil {
		discard()
		return stop.explain(err, false)
	}
	b.metrics = metrics
	s := searching{bench: b, o: o, errOut: errOut}
	err = s.execute()
	b.close()
	if b.ran == 0 {
		discard()
		return stop.explain(err, false)
	}
	err = b.finish(cmd.OutOrStdout(), stop.explain(err, true))
	if stop.interrupted() && codeOf(err) != codeInterrupted { // while the report was drawn
		return &exitError{code: codeInterrupted, err: err}
	}
	return err
}

func (o *capacityOptions) check() error {
	switch {
	case o.hold < 0 || o.hold > 24*time.Hour:
		return usage(fmt.Errorf("--hold %s must be between 0 and a day", o.hold))
	case o.probes < 1 || o.probes > 100:
		return usage(fmt.Errorf("--probes %d must be between 1 and 100", o.probes))
	case len(o.slo) == 0:
		return usage(errors.New("say what has to hold: --slo 'response.p99<20ms' (repeatable; for the highest rate that is kept up with at all, --slo 'errors<0.1%')"))
	}
	return checkFormat(o.format)
}

// search reads the workload and the objective, and says what does not go together before anything
// runs.
func (o *capacityOptions) search(args []string) (*workloads.Definition, *plan.Plan, error) {
	var objectives []workloads.Threshold
	for _, text := range o.slo {
		t, err := workloads.ParseThreshold(text)
		if err != nil {
			return nil, nil, usage(fmt.Errorf("--slo: %w (the metrics: %s)", err, metricList()))
		}
		objectives = append(objectives, t)
	}
	def, p, err := o.load(args) // without the objective: what is wrong with that is said below
	if err != nil {
		return nil, nil, err
	}
	for i := range p.Points {
		if p.Points[i].Skipped != "" {
			continue
		}
		point := p.Points[i].Definition
		point.Sweep, point.Points = def.Sweep, def.Points
		if err := capacity.Check(&point, objectives); err != nil {
			return nil, nil, usage(err)
		}
	}
	o.overrides.Threshold = o.slo
	return o.load(args)
}

// metricList is what an objective can be on, in a line.
func metricList() string {
	var plain, series, statistics []string
	add := func(list *[]string, name string) {
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, m := range workloads.Metrics() {
		if name, statistic := (workloads.Threshold{Metric: m}).Series(); name != "" {
			add(&series, name)
			add(&statistics, statistic)
			continue
		}
		add(&plain, m)
	}
	return "SERIES.STATISTIC with " + strings.Join(series, ", ") + " and " + strings.Join(statistics, ", ") + "; " + strings.Join(plain, ", ")
}

// capacityCode is what the searches themselves say.
func capacityCode(r *results.Result) int {
	code := codeDone
	for i := range r.Capacity {
		switch r.Capacity[i].Outcome {
		case results.CapacityNothing:
			if r.Capacity[i].Generator != "" {
				code = worse(code, codeInvalid)
				continue
			}
			code = worse(code, codeThreshold)
		case results.CapacityUnconfirmed:
			code = worse(code, codeInconclusive)
		}
	}
	return code
}
