package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
)

// loading are the flags that say what to run; run and plan share them.
type loading struct{ overrides workloads.Overrides }

func (l *loading) addFlags(cmd *cobra.Command) {
	l.addSettings(cmd)
	f := cmd.Flags()
	f.StringVar(&l.overrides.Rate, "rate", "", "messages per second over all producers (20k, 1.5M); 0: closed loop, as fast as possible")
	f.StringVar(&l.overrides.Duration, "duration", "", "length of the measured phase (30s, 5m)")
	f.StringVar(&l.overrides.Repeat, "repeat", "", "executions of every point")
	f.StringArrayVar(&l.overrides.Threshold, "threshold", nil, "condition on every run's figures, e.g. 'response.p99<20ms' (repeatable)")
}

// addSettings adds the flags that change keys.
func (l *loading) addSettings(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&l.overrides.Set, "set", nil, "set a key of the workload or the client, e.g. producer.requiredAcks=1 (repeatable)")
	f.StringArrayVar(&l.overrides.Sweep, "sweep", nil, "run once per value, e.g. net.maxOpenRequests=1,5; a value may be a section: 'producer.flush={messages: 1},{bytes: 65536}' (repeatable)")
	f.StringArrayVar(&l.overrides.Point, "point", nil, "run this point, in place of a sweep: '{producer.requiredAcks: 1, net.maxOpenRequests: 5}' (repeatable)")
}

// load reads the workload named by args ("quick" without one) and lays it out.
func (l *loading) load(args []string) (*workloads.Definition, *plan.Plan, error) {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	def, err := workloads.Load(name, client.Schema{}, l.overrides)
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.Make(def, client.Schema{})
	if err != nil {
		return nil, nil, err
	}
	return def, p, nil
}

// atMostOne refuses more than one workload as wrong usage.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage(fmt.Errorf("%s takes one workload, not %d: %q (%s --help shows how)", cmd.CommandPath(), len(args), args, cmd.CommandPath()))
	}
	return nil
}
