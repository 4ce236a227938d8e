package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/report"
	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/report/gate"
	"github.com/kbench/kbench/workloads"
)

const gateLong = `Did this become slower? PASS, FAIL or INCONCLUSIVE, never a guess.

With --run, both sides are measured now, in pairs of whole runs in random order, and judged
after 8, 14 and 20 pairs; it ends as soon as the verdict stands. The sides differ in settings
(--a, --b) or in clusters (--a-brokers, --b-brokers). This is the kind to trust.

With BASE and NEW, two stored results are judged. They were made at different times, so the
limits are twice as wide; when workload, cluster or host differ it refuses (--force judges
nevertheless and says so). With NEW and --threshold alone, the conditions are judged.

With --baseline DIR, NEW is judged beside the last ten results in DIR of the same work in the
same place, whose spread is the noise; then it is added, change points are looked for and
DIR/trend.html is drawn. What failed is in the trend but not a measure, until --accept. A host that
is another each time (a container named by its id, a hosted runner) is refused: use --run there.

Judged are throughput, p50 and p99 of response (service in a closed loop), and the generator's
CPU a message. FAIL: worse beyond chance, and by more than 5 % (p99: 10 %). PASS: worse by 10 %
(p99: 20 %) is ruled out. A chance of at most 5 % of a false FAIL is shared out over metrics and
looks. Conditions (--threshold, and the workload's own) are judged on the new side alone.
`

const gateExample = `  kbench gate before after
  kbench gate after --threshold 'response.p99<20ms' --threshold 'errors<0.1%'
  kbench gate --baseline perf-history kbench-results/quick-20260102T030405Z
  kbench gate --run quick --a producer.flush.messages=1 --b producer.flush.messages=100
  kbench gate --run mine.yaml --a-brokers old:9092 --b-brokers new:9092 --out gated
  kbench gate before after --junit junit.xml --markdown "$GITHUB_STEP_SUMMARY"`

const gateCodesHelp = `
Exit codes:
  0  PASS          3  FAIL                       5    too many runs are invalid
  1  error         4  INCONCLUSIVE               130  interrupted
  2  wrong usage, or results that are unlike`

// gateOptions are the flags of `kbench gate`.
type gateOptions struct {
	connecting
	overrides  workloads.Overrides
	workload   string // --run
	a, b       []string
	aBrokers   []string
	bBrokers   []string
	thresholds []string
	force      bool
	baseline   string
	accept     bool
	out        string
	format     string
	quiet      bool
	files      gateFiles

	conditions []workloads.Threshold // thresholds, parsed
}

// gateFiles are where else the decision goes; empty: nowhere.
type gateFiles struct{ junit, markdown, annotations, bench string }

// newGateCommand makes `kbench gate`.
func newGateCommand() *cobra.Command {
	var o gateOptions
	cmd := &cobra.Command{
		Use:     "gate BASE NEW | --baseline DIR NEW | NEW --threshold EXPR | --run WORKLOAD",
		Short:   "Judge whether something became slower: PASS, FAIL or INCONCLUSIVE",
		Long:    gateLong + gateCodesHelp,
		Example: gateExample,
		Args:    cobra.ArbitraryArgs,
		RunE:    o.run,
	}
	f := cmd.Flags()
	f.StringVar(&o.workload, "run", "", "measure both sides now: a workload file, or the name of a built-in one")
	f.StringArrayVar(&o.a, "a", nil, "--run: a setting of side A, the base, KEY=VALUE (repeatable)")
	f.StringArrayVar(&o.b, "b", nil, "--run: a setting of side B, the new one (repeatable)")
	f.StringSliceVar(&o.aBrokers, "a-brokers", nil, "--run: bootstrap addresses of side A's cluster")
	f.StringSliceVar(&o.bBrokers, "b-brokers", nil, "--run: bootstrap addresses of side B's cluster")
	f.StringArrayVar(&o.overrides.Set, "set", nil, "--run: set a key of the workload or the client on both sides (repeatable)")
	f.StringVar(&o.overrides.Rate, "rate", "", "--run: messages per second over all producers (20k); 0: closed loop")
	f.StringVar(&o.overrides.Duration, "duration", "", "--run: length of the measured phase of every run (5s)")
	f.StringArrayVar(&o.thresholds, "threshold", nil, "condition on the new side, e.g. 'response.p99<20ms': on the median over its runs, on every run for counts of what went wrong (repeatable)")
	f.BoolVar(&o.force, "force", false, "judge stored results although workload, cluster or host differ, or the host is another each time")
	f.StringVar(&o.baseline, "baseline", "", "folder that keeps a history: judge NEW beside the last ten results of the same work in the same place, add it, draw the trend")
	f.BoolVar(&o.accept, "accept", false, "--baseline: NEW is the measure from now on, whatever the verdict")
	o.connecting.addFlags(cmd)
	f.StringVar(&o.out, "out", "", "--run: directory for both results and the verdict, new or empty (default kbench-results/gate-WORKLOAD-TIME)")
	f.StringVar(&o.format, "format", formatText, "what is printed: text, md or json")
	f.StringVar(&o.files.junit, "junit", "", "file for the verdict as JUnit XML")
	f.StringVar(&o.files.markdown, "markdown", "", "file for the verdict as Markdown, for a job summary")
	f.StringVar(&o.files.annotations, "annotations", "", "file for annotations as JSON, in the form of GitHub's check runs")
	f.StringVar(&o.files.bench, "bench", "", "file for all runs as Go benchmark text, for benchstat -col /side")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no summary, only errors and the exit code")
	return cmd
}

func (o *gateOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	if o.workload != "" {
		return o.runPairs(cmd)
	}
	if o.baseline != "" {
		return o.runBaseline(cmd, args[0])
	}
	several, err := openResults(args)
	if err != nil {
		return err
	}
	var d *gate.Decision
	if len(several) == 1 {
		d = gate.Thresholds(namedOf(several[0]), o.conditions)
	} else {
		d, err = gate.Stored(namedOf(several[0]), namedOf(several[1]), gate.StoredOptions{Thresholds: o.conditions, Force: o.force})
	}
	var unlike *gate.UnlikeError
	if errors.As(err, &unlike) {
		return usage(err)
	}
	if err != nil {
		return err
	}
	return o.finish(cmd.OutOrStdout(), d, several)
}

// check refuses what cannot be meant, before anything runs.
func (o *gateOptions) check(args []string) error {
	if err := checkFormats(o.format, formatText, formatMarkdown, formatJSON); err != nil {
		return err
	}
	for _, expression := range o.thresholds {
		t, err := workloads.ParseThreshold(expression)
		if err != nil {
			return usage(fmt.Errorf("--threshold: %w", err))
		}
		o.conditions = append(o.conditions, t)
	}
	if o.workload != "" {
		return o.checkPairs(args)
	}
	if len(o.a)+len(o.b)+len(o.aBrokers)+len(o.bBrokers)+len(o.overrides.Set) > 0 || o.overrides.Rate+o.overrides.Duration+o.out != "" {
		return usage(errors.New("--a, --b, --a-brokers, --b-brokers, --set, --rate, --duration and --out go with --run WORKLOAD; stored results are judged as they are"))
	}
	switch {
	case o.accept && o.baseline == "":
		return usage(errors.New("--accept goes with --baseline DIR"))
	case o.baseline != "" && len(args) != 1:
		return usage(errors.New("with --baseline name one result, the new one"))
	case o.baseline != "":
		return nil
	case len(args) == 1 && len(o.conditions) == 0:
		return usage(errors.New("one result can be judged by conditions only: give --threshold, or a base before it"))
	case len(args) < 1 || len(args) > 2:
		return usage(errors.New("name two results, the base first, or give --run WORKLOAD (kbench gate --help shows how)"))
	}
	return nil
}

// checkPairs is check for --run.
func (o *gateOptions) checkPairs(args []string) error {
	clusters := len(o.aBrokers)+len(o.bBrokers) > 0
	switch {
	case o.baseline != "" || o.accept:
		return usage(errors.New("--baseline keeps stored results; leave it out with --run, which has its own base"))
	case len(args) > 0:
		return usage(fmt.Errorf("with --run both sides are measured now; leave out %q", args))
	case clusters && (len(o.aBrokers) == 0 || len(o.bBrokers) == 0):
		return usage(errors.New("give both --a-brokers and --b-brokers: the sides are two clusters, or two settings on one"))
	case clusters && len(o.brokers) > 0:
		return usage(errors.New("--brokers is for both sides; leave it out with --a-brokers and --b-brokers"))
	}
	return nil
}

func namedOf(n report.Named) compare.Named { return compare.Named{Name: n.Name, Result: n.Result} }

// finish writes the decision wherever it goes and returns its exit code.
func (o *gateOptions) finish(out io.Writer, d *gate.Decision, several []report.Named) error {
	noteEmbedded(d, several)
	if err := o.writeFiles(d, several); err != nil {
		return err
	}
	if err := o.print(out, d); err != nil {
		return err
	}
	if code := gateCode(d.Verdict); code != codeDone {
		return &exitError{code: code}
	}
	return nil
}

// noteEmbedded says of figures of the embedded broker what they are worth.
func noteEmbedded(d *gate.Decision, several []report.Named) {
	const note = "embedded broker: figures say nothing about Apache Kafka"
	embedded := func(n report.Named) bool { return n.Result.Provenance.Cluster.Embedded }
	if slices.ContainsFunc(several, embedded) && !slices.Contains(d.Notes, note) {
		d.Notes = append(d.Notes, note)
	}
}

func (o *gateOptions) print(out io.Writer, d *gate.Decision) error {
	switch {
	case o.format == formatJSON:
		return report.GateJSON(out, d)
	case o.quiet:
		return nil
	case o.format == formatMarkdown:
		return report.GateMarkdown(out, d)
	}
	return report.GateTerminal(out, d, report.TerminalOptions{Colour: colourful(out)})
}

func (o *gateOptions) writeFiles(d *gate.Decision, several []report.Named) error {
	about := o.workload
	if about == "" {
		about = d.Workload
	}
	var errs []error
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{o.files.junit, func(w io.Writer) error { return report.JUnit(w, d) }},
		{o.files.markdown, func(w io.Writer) error { return report.GateMarkdown(w, d) }},
		{o.files.annotations, func(w io.Writer) error { return report.Annotations(w, d, about) }},
		{o.files.bench, func(w io.Writer) error { return report.GoBenchmark(w, allNamed(several)) }},
	} {
		if f.path != "" {
			errs = append(errs, writeTo(nil, f.path, f.write))
		}
	}
	return errors.Join(errs...)
}

func allNamed(several []report.Named) []compare.Named {
	named := make([]compare.Named, len(several))
	for i := range several {
		named[i] = namedOf(several[i])
	}
	return named
}

// gateCode is the exit code of a verdict.
func gateCode(v gate.Verdict) int {
	switch v {
	case gate.Pass:
		return codeDone
	case gate.Fail:
		return codeThreshold
	case gate.Invalid:
		return codeInvalid
	}
	return codeInconclusive
}
