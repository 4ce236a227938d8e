package results

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MaxShards bounds how many results are merged.
const MaxShards = 1000

// leastOverlap is the share of the measured phase in which all shards of a run must have measured, for
// their figures to be those of one load.
const leastOverlap = 0.95

// UnlikeError says why results are not shards of one.
type UnlikeError struct{ A, B, Why string }

func (e *UnlikeError) Error() string {
	return fmt.Sprintf("results: %s and %s are no shards of one result: %s", e.A, e.B, e.Why)
}

// shard is one of the results that are merged.
type shard struct {
	dir    *Dir
	result *Result
	name   string // what it is called in the merged result
}

// Merge joins results of one workload, which several processes or machines ran at the same time, into
// one in the directory to, which was made for it. Nothing is lost: histograms are added up value by
// value, counts too, and each shard is kept whole in a folder of its own. Rates are of the time from the
// first shard's start to the last one's end.
//
// A run is merged where every shard has it; with fewer, it is left out and the result counts as
// interrupted. Thresholds are those of the shards, still to be judged. Unlike results are refused with
// *UnlikeError.
func Merge(to *Dir, from ...*Dir) (*Result, error) {
	if len(from) < 2 || len(from) > MaxShards {
		return nil, fmt.Errorf("results: %d results cannot be merged: 2 to %d are needed", len(from), MaxShards)
	}
	shards := make([]shard, len(from))
	for i, dir := range from {
		r, err := dir.Load()
		if err != nil {
			return nil, err
		}
		shards[i] = shard{dir, r, fmt.Sprintf("shard-%d", i+1)}
		if err := shards[0].alike(&shards[i]); err != nil {
			return nil, err
		}
	}
	out := frameOf(shards)
	for i := range out.Points {
		if err := mergePoint(to, out, i, shards); err != nil {
			return nil, err
		}
	}
	for i := range shards {
		if err := shards[i].copyTo(to); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// alike says what keeps two results from being shards of one.
func (s *shard) alike(o *shard) error {
	a, b := s.result, o.result
	why := ""
	switch {
	case len(b.Shards) > 0:
		why = fmt.Sprintf("%s was merged itself; name its shards, which are folders in it", o.dir.path)
	case len(b.Capacity) > 0 || strings.HasPrefix(filepath.Base(o.dir.path), CeilingPrefix):
		why = o.dir.path + " is no result of kbench run"
	case s != o && s.dir.path == o.dir.path:
		why = "they are the same directory"
	case a.Workload.Hash != b.Workload.Hash:
		why = fmt.Sprintf("their workloads differ (%s, hash %.12s, and %s, hash %.12s); kbench compare names the keys", a.Workload.Name, a.Workload.Hash, b.Workload.Name, b.Workload.Hash)
	case a.Provenance.Cluster.ClusterID != b.Provenance.Cluster.ClusterID || a.Provenance.Cluster.Embedded != b.Provenance.Cluster.Embedded:
		why = "they were measured on different clusters"
	case len(a.Points) != len(b.Points):
		why = fmt.Sprintf("one has %d points and the other %d", len(a.Points), len(b.Points))
	}
	for i := 0; why == "" && i < len(a.Points); i++ {
		p, q := &a.Points[i], &b.Points[i]
		if p.ID != q.ID || p.Label != q.Label || p.Skipped != q.Skipped {
			why = fmt.Sprintf("point %s is %q in one and %q in the other", p.ID, p.Label, q.Label)
		}
	}
	if why == "" {
		return nil
	}
	return &UnlikeError{s.dir.path, o.dir.path, why}
}

// frameOf is the merged result without its runs.
func frameOf(shards []shard) *Result {
	first := shards[0].result
	out := &Result{
		Workload: first.Workload, Settings: first.Settings, Seed: first.Seed, StartedAt: first.StartedAt,
		Provenance: first.Provenance, Design: first.Design,
	}
	var hosts []string
	for i := range shards {
		r := shards[i].result
		if r.StartedAt.Before(out.StartedAt) {
			out.StartedAt = r.StartedAt
		}
		out.Interrupted = out.Interrupted || r.Interrupted
		out.Shards = append(out.Shards, Shard{Folder: shards[i].name, StartedAt: r.StartedAt, Seed: r.Seed, Provenance: r.Provenance})
		if !slices.Contains(hosts, r.Provenance.Host.Hostname) {
			hosts = append(hosts, r.Provenance.Host.Hostname)
		}
	}
	out.Provenance.Host.Hostname = strings.Join(hosts, ", ")
	for _, p := range first.Points {
		p.Runs = nil
		out.Points = append(out.Points, p)
	}
	return out
}

// mergePoint merges the runs of a point, those that every shard has.
func mergePoint(to *Dir, out *Result, point int, shards []shard) error {
	repeats := map[int]int{}
	for i := range shards {
		for _, run := range shards[i].result.Points[point].Runs {
			repeats[run.Repeat]++
		}
	}
	p := &out.Points[point]
	for _, repeat := range slices.Sorted(maps.Keys(repeats)) {
		if repeats[repeat] != len(shards) {
			out.Interrupted = true // not all have it
			continue
		}
		run, windows, err := mergeRuns(p, repeat, point, shards)
		if err != nil {
			return err
		}
		if err := to.WriteRun(p, run, windows); err != nil {
			return err
		}
		p.Runs = append(p.Runs, *run)
	}
	return nil
}

// runPart is a shard's part of a run.
type runPart struct {
	*Run
	shard  *shard
	offset int64 // of its start, since the first shard's
}

func partsOf(repeat, point int, shards []shard) []runPart {
	var parts []runPart
	for i := range shards {
		runs := shards[i].result.Points[point].Runs
		for j := range runs {
			if runs[j].Repeat == repeat {
				parts = append(parts, runPart{Run: &runs[j], shard: &shards[i]})
				break
			}
		}
	}
	first := parts[0].StartedAt
	for _, p := range parts {
		if p.StartedAt.Before(first) {
			first = p.StartedAt
		}
	}
	for i := range parts {
		parts[i].offset = int64(parts[i].StartedAt.Sub(first))
	}
	return parts
}

// span is from when to when, since the first shard's start, all shards measured, and any did.
func span(parts []runPart) (from, to, end int64) {
	to = parts[0].offset + parts[0].ElapsedNs
	for _, p := range parts {
		from, to, end = max(from, p.offset), min(to, p.offset+p.ElapsedNs), max(end, p.offset+p.ElapsedNs)
	}
	return from, to, end
}

// mergeRuns merges one run of every shard.
func mergeRuns(p *Point, repeat, point int, shards []shard) (*Run, []Window, error) {
	parts := partsOf(repeat, point, shards)
	from, until, end := span(parts)
	for i := range parts[1:] {
		if a, b := parts[0], parts[i+1]; a.Loop != b.Loop || a.AckMeaning != b.AckMeaning {
			return nil, nil, &UnlikeError{a.shard.dir.path, b.shard.dir.path, fmt.Sprintf("the runs of point %s differ in kind: %s and %s", p.ID, a.Loop, b.Loop)}
		}
	}
	if until <= from {
		return nil, nil, &UnlikeError{parts[0].shard.dir.path, parts[len(parts)-1].shard.dir.path,
			fmt.Sprintf("point %s, repeat %d, was not measured at the same time (the starts are %s apart); clocks must agree, and shards start together", p.ID, repeat+1, time.Duration(from))}
	}
	windows, err := mergeWindows(parts)
	if err != nil {
		return nil, nil, err
	}
	run := sumUpRuns(parts, windows, end)
	if err := run.holds(parts); err != nil {
		return nil, nil, err
	}
	run.Verdict = verdictOf(parts)
	if share := float64(until-from) / float64(end); share < leastOverlap {
		run.Verdict.Valid = false
		run.Verdict.Reasons = append(run.Verdict.Reasons, fmt.Sprintf("the shards measured together for %.1f %% of the time only, limit %.0f %%: the load was not all of theirs at once", share*100, leastOverlap*100))
	}
	return run, windows, nil
}

// holds checks that the logs held what the shards' results say.
func (r *Run) holds(parts []runPart) error {
	for name, merged := range r.Series {
		var sum int64
		for _, p := range parts {
			sum += p.Series[name].Count
		}
		if sum != merged.Count {
			return fmt.Errorf("results: the logs of the shards hold %d values of %s, and their results say %d: a file is not the run's", merged.Count, name, sum)
		}
	}
	return nil
}

// verdictOf is invalid if any shard's is, with the reasons of all.
func verdictOf(parts []runPart) Verdict {
	v := Verdict{Valid: true, Reasons: []string{}, Warnings: []string{}}
	for _, p := range parts {
		v.Valid = v.Valid && p.Verdict.Valid
		for _, text := range p.Verdict.Reasons {
			v.Reasons = append(v.Reasons, p.shard.name+": "+text)
		}
		for _, text := range p.Verdict.Warnings {
			v.Warnings = append(v.Warnings, p.shard.name+": "+text)
		}
		for _, text := range p.Verdict.Generator {
			v.Generator = append(v.Generator, p.shard.name+": "+text)
		}
	}
	return v
}

// copyTo keeps the files of a shard, but for its reports, in a folder of the merged result.
func (s *shard) copyTo(to *Dir) error {
	folder := to.join(s.name)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return &FileError{Path: folder, Err: err}
	}
	into := &Dir{path: folder}
	names := []string{FileName}
	for _, p := range s.result.Points {
		for _, run := range p.Runs {
			names = append(names, run.Log, run.Timeline, run.Lags)
			for _, parts := range run.Parts {
				names = append(names, parts.File)
			}
		}
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		if err := s.copyFile(into, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *shard) copyFile(into *Dir, name string) (err error) {
	f, err := s.dir.open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return into.WriteFile(name, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}
