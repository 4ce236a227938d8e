package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/report"
	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/report/gate"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/stat"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/pairs"
)

// Files of a gate's directory, beside the results of the sides in a and b.
const (
	gateJSONFile        = "gate.json"
	gateMarkdownFile    = "gate.md"
	gateJUnitFile       = "junit.xml"
	gateAnnotationsFile = "annotations.json"
	gateBenchFile       = "benchmark.txt"
	gateHTMLFile        = "compare.html"
)

// gateSide is one side of a gate that is measured now.
type gateSide struct {
	name    string // what it differs in
	bench   *bench
	discard func() // takes its directory back as long as nothing was put there
}

// paired is a gate being measured.
type paired struct {
	o        *gateOptions
	stop     *stopper
	sides    [2]gateSide
	judge    gate.Pairs
	errOut   io.Writer
	workload string
	seed     uint64
	began    time.Time

	pair, inPair int // the pair under way, and its runs so far
}

// runPairs measures both sides and judges them.
func (o *gateOptions) runPairs(cmd *cobra.Command) error {
	if err := o.readConnecting(cmd); err != nil {
		return err
	}
	defs, plans, err := o.loadSides()
	if err != nil {
		return err
	}
	stop := newStopper(cmd.ErrOrStderr())
	defer stop.release()
	dir, discard, err := (&runOptions{out: o.out}).directory("gate-" + defs[pairs.A].Name)
	if err != nil {
		return err
	}
	stop.beforeExit(discard)
	defer func() { _ = dir.Release() }() // only a later run into the same directory would notice
	p := &paired{o: o, stop: stop, errOut: cmd.ErrOrStderr(), workload: defs[pairs.A].Name, seed: defs[pairs.A].Seed, began: time.Now()}
	p.judge.Thresholds = o.conditions
	closeAll, err := p.open(dir, defs, plans)
	defer closeAll()
	if err != nil {
		p.discard()
		discard()
		return stop.explain(err, false)
	}
	outcome, err := p.measure()
	if p.sides[pairs.A].bench.ran+p.sides[pairs.B].bench.ran == 0 {
		p.discard()
		discard()
		return stop.explain(err, false)
	}
	return p.finish(cmd.OutOrStdout(), dir, outcome, err)
}

// readConnecting finds out how to connect; with two clusters there are no --brokers.
func (o *gateOptions) readConnecting(cmd *cobra.Command) error {
	if len(o.aBrokers) == 0 {
		return o.connecting.read(cmd, o.quiet)
	}
	var err error
	if o.aBrokers, err = addresses(o.aBrokers, true); err != nil {
		return usage(errors.New("--a-brokers names no broker; give host:port"))
	}
	if o.bBrokers, err = addresses(o.bBrokers, true); err != nil {
		return usage(errors.New("--b-brokers names no broker; give host:port"))
	}
	if o.security, err = readSecurity(o.commandConfig, cmd.Flags().Changed("command-config")); err != nil {
		return err
	}
	for _, w := range o.security.Warnings {
		if !o.quiet {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "kbench: warning:", w) // nothing depends on it
		}
	}
	return nil
}

// loadSides reads the workload once for each side, with that side's settings.
func (o *gateOptions) loadSides() (defs [2]*workloads.Definition, plans [2]*plan.Plan, err error) {
	for side, own := range [2][]string{o.a, o.b} {
		l := loading{overrides: o.overrides}
		l.overrides.Repeat = "1"
		l.overrides.Set = append(append([]string{}, o.overrides.Set...), own...)
		if defs[side], plans[side], err = l.load([]string{o.workload}); err != nil {
			return defs, plans, err
		}
		if n := len(plans[side].Points); n != 1 {
			return defs, plans, usage(fmt.Errorf("%s sweeps %d points, a gate judges one: take the sweep out and name the two settings by --a and --b", o.workload, n))
		}
	}
	return defs, plans, nil
}

// open finds the clusters and makes both results.
func (p *paired) open(dir *results.Dir, defs [2]*workloads.Definition, plans [2]*plan.Plan) (closeAll func(), err error) {
	var clusters []*cluster
	closeAll = func() {
		for _, c := range clusters {
			c.close()
		}
	}
	show := newProgress(p.errOut, p.o.quiet, 2*p.most())
	if w, ok := show.(io.Writer); ok {
		p.stop.tellOn(w)
	}
	for side := range p.sides {
		brokers := [2][]string{p.o.aBrokers, p.o.bBrokers}[side]
		if len(brokers) == 0 {
			brokers = p.o.brokers
		}
		if side == 0 || len(p.o.bBrokers) > 0 {
			c, err := findCluster(p.stop.soft, brokers, p.stop)
			if err != nil {
				return closeAll, err
			}
			clusters = append(clusters, c)
		}
		own, discard, err := claim(filepath.Join(dir.Path(), strings.ToLower(pairs.Side(side).String())))
		if err != nil {
			return closeAll, err
		}
		p.stop.beforeExit(discard)
		b := &bench{o: &runOptions{connecting: p.o.connecting, quiet: p.o.quiet}, plan: plans[side], stop: p.stop, cluster: clusters[len(clusters)-1], dir: own, show: show}
		p.sides[side] = gateSide{name: p.sideName(pairs.Side(side)), bench: b, discard: discard}
		if err := b.begin(defs[side]); err != nil {
			return closeAll, err
		}
		plans[side].Points[0].Label = p.sides[side].name
		if side == 0 || len(clusters) > 1 {
			b.ownTopics(defs[side], p.errOut)
		}
	}
	p.announce(defs[0], plans, clusters[0])
	return closeAll, nil
}

// sideName says what makes the side what it is.
func (p *paired) sideName(side pairs.Side) string {
	own, brokers := p.o.a, p.o.aBrokers
	if side == pairs.B {
		own, brokers = p.o.b, p.o.bBrokers
	}
	parts := append([]string{side.String()}, own...)
	if len(brokers) > 0 {
		parts = append(parts, "on "+strings.Join(brokers, ","))
	}
	return strings.Join(parts, " ")
}

func (p *paired) most() int {
	looks := stat.DefaultLooks()
	return looks[len(looks)-1]
}

func (p *paired) announce(def *workloads.Definition, plans [2]*plan.Plan, c *cluster) {
	if p.o.quiet {
		return
	}
	looks := stat.DefaultLooks()
	one := plans[0].Estimate.Time + plans[1].Estimate.Time
	where := "brokers " + c.list()
	if c.child != nil {
		where = "an embedded broker (figures say nothing about Apache Kafka)"
	}
	if len(p.o.aBrokers) > 0 {
		where = "two clusters"
	}
	_, _ = fmt.Fprintf(p.errOut, "gate of %s on %s: %d to %d pairs of runs, about %s to %s\n", def.Name, where,
		looks[0], p.most(), (one * time.Duration(looks[0])).Round(time.Second), (one * time.Duration(p.most())).Round(time.Second))
}

// measure runs the pairs.
func (p *paired) measure() (pairs.Outcome, error) {
	defer p.sides[0].bench.show.end()
	return pairs.Run(p.stop.soft, pairs.Spec{
		Seed: p.seed, Most: p.most(), Spare: int(gate.MostInvalid * float64(p.most())),
		Execute: p.execute,
		Judge: func(a, b *results.Run) (bool, error) {
			before := p.judge.Standing().Next
			enough, err := p.judge.Add(a, b)
			if s := p.judge.Standing(); err == nil && s.Pairs == before && !p.o.quiet {
				p.tell(s)
			}
			return enough, err
		},
	})
}

func (p *paired) execute(_ context.Context, side pairs.Side, pair, order int) (*results.Run, error) {
	b := p.sides[side].bench
	x := plan.Execution{Point: 0, Repeat: pair, Order: order}
	b.show.begin(order, &b.plan.Points[0])
	out, err := b.runOne(&b.plan.Points[0], x)
	if err != nil && !errors.Is(err, run.ErrAllFailed) {
		return nil, err
	}
	if out == nil {
		return nil, err
	}
	if kept := b.keep(x, out); kept != nil {
		return nil, errors.Join(err, kept)
	}
	if pair != p.pair {
		p.pair, p.inPair = pair, 0
	}
	if p.inPair++; !out.Run.Verdict.Valid {
		b.show.grow(p.inPair) // the pair is run again
	}
	return &out.Run, err
}

// tell says what a look has shown.
func (p *paired) tell(s stat.GateState) {
	var open []string
	for _, f := range s.Findings {
		if f.Verdict == stat.GateOpen || f.Verdict == stat.GateFail || f.Verdict == stat.GateInconclusive {
			open = append(open, f.Name+" "+strings.ToLower(f.Verdict.String()))
		}
	}
	text := strings.Join(open, ", ")
	if text == "" {
		text = "all pass"
	}
	_, _ = fmt.Fprintf(p.errOut, "look after %d pairs: %s: %s\n", s.Pairs, s.Verdict, text) // progress is not worth an error
}

// discard takes back the sides' directories as long as nothing was put there.
func (p *paired) discard() {
	for _, s := range p.sides {
		if s.discard != nil {
			s.discard()
		}
	}
}

// finish writes everything about the verdict into the directory and says how it ended.
func (p *paired) finish(out io.Writer, dir *results.Dir, outcome pairs.Outcome, err error) error {
	d := p.judge.Decide()
	d.Workload, d.Base, d.New = p.workload, p.sides[0].name, p.sides[1].name
	d.Lost = len(outcome.Lost)
	for _, l := range outcome.Lost {
		d.Invalid = append(d.Invalid, fmt.Sprintf("pair %d, side %s: %s", l.Pair+1, l.Side, strings.Join(l.Reasons, "; ")))
	}
	if outcome.TooMany {
		d.Verdict, d.Lost = gate.Invalid, 0
	}
	p.compareSides(d)
	d.Notes = append(d.Notes, "took "+time.Since(p.began).Round(time.Second).String())
	interrupted := p.stop.interrupted()
	if err != nil {
		d.Notes = append(d.Notes, "broken off: "+err.Error())
		if d.Verdict == gate.Pass {
			d.Verdict = gate.Inconclusive
		}
	}
	several := []report.Named{}
	for _, s := range p.sides {
		s.bench.result.Interrupted = err != nil
		err = errors.Join(err, s.bench.save(), report.Write(s.bench.dir, s.bench.result))
		several = append(several, report.Named{Name: s.name, Dir: s.bench.dir, Result: s.bench.result})
	}
	noteEmbedded(d, several)
	err = errors.Join(err, p.write(dir, d, several))
	if interrupted {
		err = p.stop.explain(err, true)
	}
	printed := p.o.finish(out, d, several)
	if !p.o.quiet && p.o.format == formatText {
		_, _ = fmt.Fprintln(out, "  result     "+dir.Path())
	}
	if err != nil {
		return err
	}
	return printed
}

// compareSides says what tells the sides apart, and when two clusters turn out to be one.
func (p *paired) compareSides(d *gate.Decision) {
	a, b := p.sides[pairs.A].bench.result, p.sides[pairs.B].bench.result
	d.Differs = compare.Unlike(a, b)
	nodes := a.Provenance.Cluster.Brokers
	if len(p.o.aBrokers) > 0 && len(nodes) > 0 && slices.EqualFunc(nodes, b.Provenance.Cluster.Brokers, sameBroker) {
		d.Notes = append(d.Notes, "both sides are the same cluster: its brokers call themselves "+addressList(nodes)+" on either")
	}
}

func addressList(brokers []results.Broker) string {
	list := make([]string, len(brokers))
	for i, b := range brokers {
		list[i] = b.Addr
	}
	return strings.Join(list, ",")
}

// write puts every form of the verdict into the gate's directory.
func (p *paired) write(dir *results.Dir, d *gate.Decision, several []report.Named) error {
	c := compareNamed(several, compare.Options{Paired: true})
	return errors.Join(
		dir.WriteFile(gateJSONFile, func(w io.Writer) error { return report.GateJSON(w, d) }),
		dir.WriteFile(gateMarkdownFile, func(w io.Writer) error { return report.GateMarkdown(w, d) }),
		dir.WriteFile(gateJUnitFile, func(w io.Writer) error { return report.JUnit(w, d) }),
		dir.WriteFile(gateAnnotationsFile, func(w io.Writer) error { return report.Annotations(w, d, p.o.workload) }),
		dir.WriteFile(gateBenchFile, func(w io.Writer) error { return report.GoBenchmark(w, allNamed(several)) }),
		dir.WriteFile(gateHTMLFile, func(w io.Writer) error { return report.CompareHTML(w, c, several) }),
	)
}

// sameBroker says whether two are the same node at the same place, however it is set up.
func sameBroker(a, b results.Broker) bool {
	return a.ID == b.ID && a.Addr == b.Addr && a.Rack == b.Rack
}
