package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/report"
	"github.com/kbench/kbench/report/gate"
	"github.com/kbench/kbench/results"
)

// A baseline is a folder of result directories, which kbench report and compare read as well.
// How their names end says what became of them.
const (
	failedSuffix   = "-failed"
	acceptedSuffix = "-accepted"
	trendFile      = "trend.html"
)

// runBaseline judges a result beside a history, adds it to that, and draws the trend.
func (o *gateOptions) runBaseline(cmd *cobra.Command, path string) error {
	several, err := openResults([]string{path})
	if err != nil {
		return err
	}
	judged := several[0]
	history, err := readHistory(o.baseline)
	if err != nil {
		return err
	}
	d, err := gate.Baseline(history, namedOf(judged), gate.StoredOptions{Thresholds: o.conditions, Force: o.force})
	var passing *gate.PassingError
	if errors.As(err, &passing) {
		return usage(err)
	}
	if err != nil {
		return err
	}
	d.Base = "baseline"
	if err := o.record(d, judged, history); err != nil {
		return err
	}
	if len(d.Trends) > 0 {
		if err := writeTo(nil, filepath.Join(o.baseline, trendFile), func(w io.Writer) error { return report.TrendHTML(w, d, judged) }); err != nil {
			return err
		}
	}
	return o.finish(cmd.OutOrStdout(), d, several)
}

// readHistory reads the results of a baseline; without a folder there are none. A folder in it
// that is no result is an error: a history must not lose entries silently.
func readHistory(path string) ([]gate.Entry, error) {
	folders, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the baseline: %w", err)
	}
	var history []gate.Entry
	for _, f := range folders {
		if !f.IsDir() || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		dir, err := results.OpenDir(filepath.Join(path, f.Name()))
		if err != nil {
			return nil, err
		}
		r, err := dir.Load()
		if err != nil {
			return nil, fmt.Errorf("the baseline %s holds what is no result: %w", path, err)
		}
		history = append(history, gate.Entry{Name: f.Name(), Result: r, Failed: strings.HasSuffix(f.Name(), failedSuffix), Accepted: strings.HasSuffix(f.Name(), acceptedSuffix)})
	}
	return history, nil
}

// record adds the result to the history, its figures alone: logs and timelines stay where they
// are. One that is there already, or that cannot be trusted, is not added.
func (o *gateOptions) record(d *gate.Decision, judged report.Named, history []gate.Entry) error {
	for _, e := range history {
		if gate.Same(e.Result, judged.Result) {
			return o.again(d, e)
		}
	}
	if d.Verdict == gate.Invalid {
		d.Notes = append(d.Notes, "not added to the baseline, since it cannot be trusted")
		return nil
	}
	suffix := ""
	switch {
	case o.accept:
		suffix = acceptedSuffix
	case d.Verdict == gate.Fail:
		suffix = failedSuffix
		d.Notes = append(d.Notes, "kept in the baseline's trend, but not as its measure; --accept makes it the new one")
	}
	dir, err := results.Create(results.DefaultDir(o.baseline, judged.Result.Workload.Name, judged.Result.StartedAt) + suffix)
	if err != nil {
		return err
	}
	return dir.Save(withoutFiles(judged.Result))
}

// again is record for a result that is there already: with --accept it becomes the measure.
func (o *gateOptions) again(d *gate.Decision, e gate.Entry) error {
	if !o.accept || e.Accepted {
		d.Notes = append(d.Notes, "already in the baseline as "+e.Name)
		return nil
	}
	name := strings.TrimSuffix(e.Name, failedSuffix) + acceptedSuffix
	if err := os.Rename(filepath.Join(o.baseline, e.Name), filepath.Join(o.baseline, name)); err != nil {
		return fmt.Errorf("cannot accept %s: %w", e.Name, err)
	}
	d.Notes = append(d.Notes, "accepted as the baseline's new measure: "+name)
	return nil
}

// withoutFiles is a copy whose runs name no files. The runs that searches were made of are left out:
// what they found stands in the runs of the points.
func withoutFiles(r *results.Result) *results.Result {
	c := *r
	c.Points, c.Capacity = append([]results.Point(nil), r.Points...), nil
	for i := range c.Points {
		c.Points[i].Runs = append([]results.Run(nil), c.Points[i].Runs...)
		for j := range c.Points[i].Runs {
			c.Points[i].Runs[j] = c.Points[i].Runs[j].WithoutFiles()
		}
	}
	return &c
}
