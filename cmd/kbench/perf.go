package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/security"
	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run"
)

// perfTool is one of Kafka's own performance tools as a run looks like it.
type perfTool interface {
	// prepare sees to the topic before the run, where the tool does.
	prepare(ctx context.Context, c *cluster, cfg *client.Config) error
	// begin prints what comes before the run.
	begin()
	// watch has what is sent and received pass by.
	watch(target run.Target, clock run.Clock) run.Target
	// update is called a few times a second during the run.
	update()
	// end prints what comes after the run, of which there is one.
	end(r *results.Result, dir string) error
}

// perfCommands are those that take the flags of Kafka's tools.
var perfCommands = []string{"produce", "consume", "e2e"}

// manyValued are flags of Kafka's tools that take values as long as there are any.
var manyValued = []string{"--command-property", "--producer-props"}

// perfArgs gives every value of such a flag a flag of its own, which is how flags are read here:
// "--command-property a=1 b=2" becomes "--command-property a=1 --command-property b=2".
func perfArgs(args []string) []string {
	if len(args) == 0 || !slices.Contains(perfCommands, args[0]) {
		return args
	}
	var out []string
	flag := "" // whose further values are to come
	wants := false
	for _, arg := range args {
		name, _, within := strings.Cut(arg, "=")
		switch {
		case slices.Contains(manyValued, name):
			flag, wants = name, !within
		case strings.HasPrefix(arg, "-"):
			flag, wants = "", false
		case flag != "" && wants:
			wants = false
		case flag != "":
			out = append(out, flag)
		}
		out = append(out, arg)
	}
	return out
}

// perfOptions are the flags that produce, consume and e2e share.
type perfOptions struct {
	runOptions
	topic        string
	records      int64
	interval     int64 // ms
	properties   []string
	printMetrics bool

	oldConfig, oldConfigName string // a file by a deprecated flag, and its name
	oldProps                 []string

	out, errOut io.Writer
}

func (o *perfOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.connecting.addFlags(cmd)
	f.Lookup("command-config").Usage = "properties file of Kafka's clients: how to connect, and settings that are given nowhere else ('kbench help command-config'; default $KBENCH_COMMAND_CONFIG)"
	f.StringVar(&o.topic, "topic", "", "the topic")
	f.Int64Var(&o.records, "num-records", 0, "number of records")
	f.StringArrayVar(&o.properties, "command-property", nil, "settings of Kafka's clients, e.g. acks=all linger.ms=5, by Kafka's names; several may follow one flag; they go before those of --command-config")
	f.StringArrayVar(&o.overrides.Set, "set", nil, "set a key of the workload or the client by kbench's name, e.g. producers.count=4 (repeatable)")
	f.StringArrayVar(&o.overrides.Threshold, "threshold", nil, "condition on the run's figures, e.g. 'service.p99<20ms' (repeatable)")
	f.StringVar(&o.runOptions.out, "out", "", "result directory, new or empty (default kbench-results/"+cmd.Name()+"-TIME)")
	f.StringVar(&o.metricsAddr, "metrics-addr", "", "serve metrics for Prometheus at http://HOST:PORT/metrics while it runs, e.g. 127.0.0.1:9400 (default not at all)")
	o.format = formatText
}

// addReporting adds the flags about lines during and figures after the run.
func (o *perfOptions) addReporting(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&o.interval, "reporting-interval", 5000, "milliseconds between two lines during the run")
	cmd.Flags().BoolVar(&o.printMetrics, "print-metrics", false, "print every figure of the run, by its name in result.json, before the last line")
}

// read finds the brokers, how to connect, and the settings given by Kafka's names.
func (o *perfOptions) read(cmd *cobra.Command, roles security.Role) (*perfWorkload, error) {
	o.out, o.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if o.oldConfig != "" {
		o.deprecated(o.oldConfigName, "--command-config")
		if cmd.Flags().Changed("command-config") {
			return nil, usage(fmt.Errorf("--command-config and %s are given, which mean the same; leave out %s", o.oldConfigName, o.oldConfigName))
		}
		if err := cmd.Flags().Set("command-config", o.oldConfig); err != nil {
			return nil, err
		}
	}
	if len(o.oldProps) > 0 {
		o.deprecated("--producer-props", "--command-property")
	}
	given, servers, problems := readProperties(append(
		flagProperties("--producer-props", o.oldProps), flagProperties("--command-property", o.properties)...))
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if servers != "" && !cmd.Flags().Changed("brokers") {
		if err := cmd.Flags().Set("brokers", servers); err != nil {
			return nil, err
		}
	}
	if err := o.connecting.readFor(cmd, o.quiet, true); err != nil {
		return nil, err
	}
	properties := append(slices.Clone(o.security.Others), given...)
	as, warnings, problems := security.Translate(properties, roles)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	for _, w := range warnings {
		o.warn(w)
	}
	return newPerfWorkload(as, properties), nil
}

func (o *perfOptions) warn(text string) { _, _ = fmt.Fprintln(o.errOut, "kbench: warning:", text) } // nothing depends on it

func (o *perfOptions) deprecated(name, instead string) {
	o.warn(fmt.Sprintf("%s is deprecated in Kafka; use %s", name, instead))
}

// flagProperties are the properties given by a flag.
func flagProperties(flag string, given []string) (ps []security.Property) {
	for _, text := range given {
		name, value, whole := strings.Cut(text, "=")
		p := security.Property{Name: strings.TrimSpace(name), Value: value, File: flag}
		if !whole {
			p.Name, p.Value = "", text
		}
		ps = append(ps, p)
	}
	return ps
}

// readProperties takes out the addresses of brokers, and refuses what is no property.
func readProperties(given []security.Property) (ps []security.Property, servers string, problems settings.Problems) {
	for _, p := range given {
		switch p.Name {
		case "":
			problems = append(problems, settings.Problem{File: p.File, Text: fmt.Sprintf("%q is no property: name=value is needed, e.g. acks=all", p.Value)})
		case "bootstrap.servers":
			servers = p.Value
		default:
			ps = append(ps, p)
		}
	}
	return ps, servers, problems
}

// start runs the workload that the flags mean.
func (o *perfOptions) start(cmd *cobra.Command, w *perfWorkload, tool perfTool) error {
	def, err := w.decode(cmd.Name(), o.overrides)
	if err != nil {
		return err
	}
	p, err := plan.Make(def, client.Schema{})
	if err != nil {
		return err
	}
	if len(p.Order) != 1 {
		return usage(fmt.Errorf("%s is one run; for sweeps and repeats start from its workload, which is in result.json, and kbench run", cmd.CommandPath()))
	}
	o.tool = tool
	return o.perform(cmd, def, p, nil)
}

// need refuses what every one of the tools needs and what cannot be.
func (o *perfOptions) need(flags ...string) error {
	for _, flag := range flags {
		switch {
		case flag == "topic" && o.topic == "":
			return usage(errors.New("--topic names the topic; it is missing"))
		case flag == "num-records" && o.records <= 0:
			return usage(fmt.Errorf("--num-records is %d: the number of records must be above 0", o.records))
		case flag == "reporting-interval" && o.interval <= 0:
			return usage(fmt.Errorf("--reporting-interval is %d: milliseconds above 0 are needed", o.interval))
		}
	}
	return nil
}

func (o *perfOptions) every() time.Duration { return time.Duration(o.interval) * time.Millisecond }

// ending tells on the side where the result is, and what is wrong with the run.
func (o *perfOptions) ending(r *results.Result, dir string) *results.Run {
	_, _ = fmt.Fprintln(o.errOut, "result:", dir) // as all that follows, for people
	runs := r.Points[0].Runs
	if len(runs) == 0 {
		return nil
	}
	run := &runs[len(runs)-1]
	if n := run.Counts.Failed + run.Counts.Unknown; n > 0 {
		_, _ = fmt.Fprintf(o.errOut, "kbench: warning: %d records failed, and the outcome of %d is not known:%s\n", run.Counts.Failed, run.Counts.Unknown, kinds(run.Errors))
	}
	for _, reason := range run.Verdict.Reasons {
		_, _ = fmt.Fprintln(o.errOut, "kbench: INVALID:", reason)
	}
	for _, warning := range run.Verdict.Warnings {
		o.warn(warning)
	}
	for _, t := range run.Thresholds {
		if !t.Held {
			_, _ = fmt.Fprintf(o.errOut, "kbench: threshold %s is broken\n", t.Expression)
		}
	}
	return run
}

// kinds are errors with their numbers.
func kinds(errs map[string]int64) (text string) {
	names := make([]string, 0, len(errs))
	for name := range errs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text += fmt.Sprintf(" %s (%d)", name, errs[name])
	}
	return text
}

// topicReady makes sure that the topic is there before the run. Where it is not, the embedded broker
// gets it, and made says whether others do: then the cluster is asked to make it, which is its setting.
func topicReady(ctx context.Context, c *cluster, cfg *client.Config, topic string, missing func(*client.Client) error) error {
	cl, err := c.contact(ctx, cfg, startPatience)
	if err != nil {
		return unreached(err)
	}
	defer func() { _ = cl.Close() }() // nothing is open on it
	names, err := cl.Topics(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(names, topic) {
		return nil
	}
	return missing(cl)
}
