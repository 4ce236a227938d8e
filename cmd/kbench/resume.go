package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
)

// resumed is a result that is gone on with; nil when a run begins anew.
type resumed struct {
	dir    *results.Dir
	result *results.Result
	kept   int // runs that were finished
}

// resume opens the directory of --resume, finds out what was to be run there, and refuses what does
// not go with it. Runs that ended early are done again, so they are not kept.
func (o *runOptions) resume(args []string) (*workloads.Definition, *plan.Plan, *resumed, error) {
	if o.out != "" {
		return nil, nil, nil, usage(errors.New("--out and --resume: results go where those are that are gone on with; leave --out away"))
	}
	dir, r, err := results.Resume(o.resumeDir)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("--resume: %w", err)
	}
	def, p, err := o.plannedBefore(args, r)
	if err == nil {
		err = o.goesOn(def, p, r)
	}
	if err != nil {
		_ = dir.Release() // nothing was written
		return nil, nil, nil, err
	}
	out := &resumed{dir: dir, result: r}
	for i := range r.Points {
		q := &r.Points[i]
		q.Runs = slices.DeleteFunc(q.Runs, func(one results.Run) bool { return one.Incomplete })
		out.kept += len(q.Runs)
	}
	r.Interrupted = true // until the last is done
	r.Resumed = append(r.Resumed, results.Resumption{At: time.Now().UTC(), KbenchVersion: version(), Kept: out.kept})
	return def, p, out, nil
}

// plannedBefore is the workload to go on with: the one on the command line or, without any there, as
// the result has it.
func (o *runOptions) plannedBefore(args []string, r *results.Result) (*workloads.Definition, *plan.Plan, error) {
	if r.Schema != results.Schema {
		return nil, nil, usage(fmt.Errorf("--resume %s: the result has schema version %d, and this kbench writes %d: go on with the kbench that began it, or begin anew", o.resumeDir, r.Schema, results.Schema))
	}
	if len(r.Capacity) > 0 || len(r.Shards) > 0 {
		return nil, nil, usage(fmt.Errorf("--resume %s: it is not the result of one kbench run", o.resumeDir))
	}
	if len(args) > 0 || o.overrides.Any() {
		return o.load(args)
	}
	overrides, err := workloads.ParseOverrides(r.Workload.Overrides)
	if err != nil {
		return nil, nil, fmt.Errorf("--resume %s: %w", o.resumeDir, err)
	}
	def, err := workloads.Decode(r.Workload.Name, []byte(r.Workload.Given), client.Schema{}, overrides)
	if err != nil {
		return nil, nil, fmt.Errorf("--resume %s: the workload cannot be read from the result (%w); name its file as when it began: kbench run FILE … --resume %[1]s", o.resumeDir, err)
	}
	p, err := plan.Make(def, client.Schema{})
	return def, p, err
}

// goesOn refuses a workload or plan that is not the one that was begun.
func (o *runOptions) goesOn(def *workloads.Definition, p *plan.Plan, r *results.Result) error {
	refuse := func(format string, args ...any) error {
		return usage(fmt.Errorf("--resume %s: %s", o.resumeDir, fmt.Sprintf(format, args...)))
	}
	now, err := json.Marshal(def.Effective())
	if err != nil {
		return err
	}
	if what := firstDifference(r.Workload.Effective, now); what != "" {
		return refuse("the workload is another one: %s; begin anew, or give what was given then", what)
	}
	if def.Hash() != r.Workload.Hash {
		return refuse("the files that the workload names hold something else than when it began; begin anew")
	}
	if len(p.Points) != len(r.Points) {
		return refuse("the plan has %d points, and the result %d: this kbench lays the workload out in another way; begin anew", len(p.Points), len(r.Points))
	}
	for i := range p.Points {
		a, b := &p.Points[i], &r.Points[i]
		if a.ID != b.ID || a.Label != b.Label || a.Skipped != b.Skipped {
			return refuse("point %s is %q here and %q in the result, or is left out in one of them: this kbench lays the workload out in another way; begin anew", a.ID, a.Label, b.Label)
		}
	}
	if here := results.HostInfo(); !results.SameGenerator(r.Provenance.Host, here) {
		was := r.Provenance.Host
		return refuse("it was begun on %s (%d of %d CPUs), and this is %s (%d of %d CPUs): points would differ by the machine; go on there, or begin anew",
			was.Hostname, was.GOMAXPROCS, was.CPUs, here.Hostname, here.GOMAXPROCS, here.CPUs)
	}
	return nil
}

// firstDifference names a key that two workloads in effect differ in; empty when they are the same.
func firstDifference(a, b json.RawMessage) string {
	var x, y map[string]any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return "it cannot be read"
	}
	var keys []string
	for _, m := range []map[string]any{x, y} {
		for key := range m {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		was, is := jsonText(x[key]), jsonText(y[key])
		if was != is {
			return fmt.Sprintf("%s was %s and is %s", key, was, is)
		}
	}
	return ""
}

func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if v == nil || e.Encode(v) != nil {
		return "not there"
	}
	return strings.TrimSpace(b.String())
}

// take makes a bench go on with a result on its cluster, which must be the one that it was begun on.
func (r *resumed) take(b *bench) error {
	was, is := r.result.Provenance.Cluster, b.result.Provenance.Cluster
	if was.Embedded != is.Embedded || was.ClusterID != is.ClusterID {
		return usage(fmt.Errorf("--resume %s: it was begun on %s, and this is %s: points would differ by the cluster; go on there, or begin anew",
			r.dir.Path(), clusterText(was), clusterText(is)))
	}
	b.result = r.result
	for i := range b.result.Points {
		for _, one := range b.result.Points[i].Runs {
			b.have[plan.Execution{Point: i, Repeat: one.Repeat, Order: one.Order}] = true
		}
	}
	return b.save() // without the runs that are done again, whose files are about to change
}

func clusterText(c results.Cluster) string {
	if c.Embedded {
		return "the embedded broker"
	}
	return "cluster " + c.ClusterID + " (" + strings.Join(c.Bootstrap, ",") + ")"
}

// discard gives the directory back as it is.
func (r *resumed) discard() { _ = r.dir.Release() }
