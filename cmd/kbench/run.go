package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/report"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
)

const runLong = `Run a workload: every point of its sweep, every repeat, in a random order that the seed
decides. WORKLOAD is a file or the name of a built-in one ('kbench workloads' lists them);
"quick" when none is given.

Without --brokers (or KBENCH_BROKERS) an embedded broker is started as a process of its own,
so that everything works with nothing installed; its figures say nothing about Apache Kafka.

With a rate, messages are due by the schedule whatever the cluster does, and the headline is
response = acked − due. Without one (--rate 0) they are sent as fast as the client's bounds
allow, and the headline is service = acked − accepted.

How to connect, TLS and SASL, stands in the file of --command-config: the client.properties of
Kafka's own tools, or YAML ('kbench help command-config'). Secrets are never taken from flags.

The result directory holds result.json, an HdrHistogram log and a timeline for each run, and
the report. Ctrl-C stops cleanly and keeps what was measured; a second one stops at once.
--resume DIR goes on with a run that was interrupted, failed or killed: what was finished is kept,
and the workload is the one in DIR unless it is named again. Another workload, plan, cluster or
machine is refused.
`

const runExample = `  kbench run                                           the built-in workload "quick"
  kbench run quick --rate 50k --duration 30s
  kbench run max-throughput -b 127.0.0.1:9092
  kbench run mine.yaml --sweep producer.requiredAcks=1,all --sweep net.maxOpenRequests=1,5 --repeat 3
  kbench run --resume kbench-results/mine-20260504T030201Z
  kbench run quick --set producer.compression=zstd --threshold 'response.p99<20ms'`

// runOptions are the flags of `kbench run`.
type runOptions struct {
	loading
	connecting
	out         string
	resumeDir   string // a result to go on with; empty: none
	format      string
	quiet       bool
	metricsAddr string // where to serve /metrics; empty: not at all
	ceiling     string // where the generator's ceiling comes from

	tool perfTool // one of Kafka's tools that the run is to look like; nil for kbench's own words
}

// newRunCommand makes `kbench run`.
func newRunCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:     "run [WORKLOAD]",
		Short:   "Run a workload and report what was measured",
		Long:    runLong + exitCodesHelp,
		Example: runExample,
		Args:    atMostOne,
		RunE:    o.run,
	}
	o.loading.addFlags(cmd)
	f := cmd.Flags()
	o.connecting.addFlags(cmd)
	o.addOutput(cmd)
	f.StringVar(&o.resumeDir, "resume", "", "go on with the interrupted or failed run in this result directory: finished runs are kept, the others done")
	f.StringVar(&o.ceiling, "ceiling", "", fmt.Sprintf(ceilingUsage, "if there is one"))
	f.StringVar(&o.metricsAddr, "metrics-addr", "", "serve metrics for Prometheus at http://HOST:PORT/metrics while it runs, e.g. 127.0.0.1:9400 (default not at all)")
	return cmd
}

// addOutput adds the flags about where results go.
func (o *runOptions) addOutput(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "", "result directory, new or empty (default kbench-results/WORKLOAD-TIME)")
	f.StringVar(&o.format, "format", formatText, "what is printed in the end: text, or json (the content of result.json)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no summary, only errors (and the result with --format json)")
}

func (o *runOptions) run(cmd *cobra.Command, args []string) error {
	if err := checkFormat(o.format); err != nil {
		return err
	}
	if err := o.connecting.read(cmd, o.quiet); err != nil {
		return err
	}
	def, p, before, err := o.begun(args)
	if err != nil {
		return err
	}
	return o.perform(cmd, def, p, before)
}

// perform executes a plan and reports it; before is what was done of it earlier, nil for nothing.
func (o *runOptions) perform(cmd *cobra.Command, def *workloads.Definition, p *plan.Plan, before *resumed) error {
	metrics, err := startExporter(o.metricsAddr, cmd.ErrOrStderr(), o.quiet)
	if err != nil {
		return err
	}
	defer metrics.close()
	stop := newStopper(cmd.ErrOrStderr())
	defer stop.release()
	dir, discard, err := o.place(def.Name, before)
	if err != nil {
		return err
	}
	stop.beforeExit(discard)
	defer func() { _ = dir.Release() }() // only a later run into the same directory would notice
	known, err := newCeilings(stop, o.aside(cmd.ErrOrStderr()), o.ceiling, p, false)
	if err != nil {
		discard()
		return stop.explain(err, false)
	}
	b, err := newBench(stop, o, def, p, dir, known, cmd.ErrOrStderr())
	if err == nil && before != nil {
		if err = before.take(b); err != nil {
			b.close()
		}
	}
	if err != nil {
		discard()
		return stop.explain(err, false)
	}
	b.metrics = metrics
	if o.tool != nil {
		o.tool.begin()
	}
	err = b.execute()
	b.close()
	if b.ran == 0 && before == nil {
		discard()
		return stop.explain(err, false)
	}
	err = b.finish(cmd.OutOrStdout(), stop.explain(err, true))
	if stop.interrupted() && codeOf(err) != codeInterrupted { // while the report was drawn
		return &exitError{code: codeInterrupted, err: err}
	}
	return err
}

// begun is the workload to run and its plan, with what was done of it before if it is gone on with.
func (o *runOptions) begun(args []string) (*workloads.Definition, *plan.Plan, *resumed, error) {
	if o.resumeDir != "" {
		return o.resume(args)
	}
	def, p, err := o.load(args)
	return def, p, nil, err
}

// place is the directory for results; see directory.
func (o *runOptions) place(name string, before *resumed) (*results.Dir, func(), error) {
	if before != nil {
		return before.dir, before.discard, nil
	}
	return o.directory(name)
}

// aside is where to tell what goes on; nil when nobody wants to know.
func (o *runOptions) aside(errOut io.Writer) io.Writer {
	if o.quiet {
		return nil
	}
	return errOut
}

// resultsFolder is where result directories are made when --out does not say.
const resultsFolder = "kbench-results"

// directory makes the result directory before anything runs, so that a place that cannot be
// written to is found out first. discard takes back what was made for it, as long as nothing
// was put there.
func (o *runOptions) directory(name string) (dir *results.Dir, discard func(), err error) {
	if o.out != "" {
		return claim(o.out)
	}
	path := results.DefaultDir(resultsFolder, name, time.Now())
	var taken *results.NotEmptyError
	for n := 1; ; n++ {
		next := path
		if n > 1 { // another run began in the same second
			next = fmt.Sprintf("%s-%d", path, n)
		}
		if dir, discard, err = claim(next); !errors.As(err, &taken) {
			return dir, discard, err
		}
	}
}

// claim makes a directory and keeps it for this run.
func claim(path string) (dir *results.Dir, discard func(), err error) {
	var made []string // the deepest first
	for p := filepath.Clean(path); !exists(p); p = filepath.Dir(p) {
		made = append(made, p)
	}
	dir, err = results.Create(path)
	return dir, func() {
		if dir != nil && !exists(filepath.Join(path, results.FileName)) {
			_ = dir.Clear() // of a file that was being written
		}
		_ = dir.Release() // the removal fails then, and says as much by leaving the directory
		for _, p := range made {
			if os.Remove(p) != nil { // fails when something is in it
				return
			}
		}
	}, err
}

// exists errs on the side of yes.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// finish draws the report, prints the summary and says how it ended.
func (b *bench) finish(out io.Writer, err error) error {
	err = errors.Join(err, b.save(), report.Write(b.dir, b.result))
	if printed := b.print(out); printed != nil {
		err = errors.Join(err, printed)
	}
	code := worse(b.verdictCode(), capacityCode(b.result))
	if err != nil {
		code = worse(code, codeOf(err))
	}
	if code == codeDone {
		return nil
	}
	return &exitError{code: code, err: err}
}

func (b *bench) print(out io.Writer) error {
	if b.o.tool != nil {
		return b.o.tool.end(b.result, b.dir.Path())
	}
	if b.o.format == formatJSON {
		return report.JSON(out, b.result)
	}
	if b.o.quiet {
		return nil
	}
	return report.Terminal(out, b.result, report.TerminalOptions{
		Colour: colourful(out), Dir: b.dir.Path(), Report: filepath.Join(b.dir.Path(), report.HTMLFile),
	})
}

// verdictCode is what the runs themselves say.
func (b *bench) verdictCode() int {
	code := codeDone
	for _, p := range b.result.Points {
		for i := range p.Runs {
			if !p.Runs[i].Verdict.Valid {
				code = worse(code, codeInvalid)
			}
			for _, t := range p.Runs[i].Thresholds {
				if !t.Held {
					code = worse(code, codeThreshold)
				}
			}
		}
	}
	return code
}

// colourful says whether w is a terminal that wants colours (no-color.org).
func colourful(w io.Writer) bool { return os.Getenv("NO_COLOR") == "" && isTerminal(w) }

// isTerminal says whether w is one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// announce says what is about to run.
func announce(w io.Writer, def *workloads.Definition, p *plan.Plan, c *cluster) {
	where := "brokers " + c.list()
	if c.child != nil {
		where = "an embedded broker at " + c.list() + " (figures say nothing about Apache Kafka)"
	}
	_, _ = fmt.Fprintf(w, "%s: %s, on %s\n", def.Name, runs(len(p.Order), p.Estimate.Time), where)
}

func runs(n int, takes time.Duration) string {
	s := fmt.Sprintf("%d runs", n)
	if n == 1 {
		s = "one run"
	}
	return s + ", about " + takes.Round(time.Second).String()
}
