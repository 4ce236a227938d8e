package results

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Ceiling is what a generator can do for one load with no cluster behind it, in messages a second.
// What consumers and TLS take of it is not in it.
type Ceiling struct {
	// Label and Settings are those of the sweep's point it was measured for.
	Label    string         `json:"label"`
	Settings map[string]any `json:"settings"`
	// Load identifies what producing a message takes: the ceiling holds for runs with the same.
	Load string `json:"load"`
	// EngineMessagesPerSecond is on the null target: the engine alone, without the client.
	EngineMessagesPerSecond float64 `json:"engineMessagesPerSecond"`
	// MessagesPerSecond is on the discarding broker, with the client, in one process beside that
	// broker's: the ceiling that runs are held against.
	MessagesPerSecond float64 `json:"messagesPerSecond"`
	// From is the result directory it was measured into; empty when in this result itself.
	From string `json:"from,omitempty"`
}

// CeilingPrefix begins the names of the directories that FindCeilings looks into.
const CeilingPrefix = "ceiling-"

// Bounds of what FindCeilings reads.
const (
	mostCeilings    = 64
	ceilingFileSize = 8 << 20
)

// FindCeilings gives the ceilings in the result directories below folder whose names begin with
// CeilingPrefix, the newest first, as far as they were measured on that host with the version of
// kbench that is given. What cannot be read is passed over: it is looked for, not asked for.
func FindCeilings(folder string, host Host, kbenchVersion string) []Ceiling {
	found, err := filepath.Glob(filepath.Join(escapeGlob(folder), CeilingPrefix+"*", FileName))
	if err != nil {
		return nil // only a pattern that is none
	}
	type dated struct {
		path string
		at   int64
	}
	var files []dated
	for _, path := range found {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() <= ceilingFileSize {
			files = append(files, dated{path, info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(files, func(a, b dated) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.path, a.path)) })
	var ceilings []Ceiling
	for _, f := range files[:min(len(files), mostCeilings)] {
		r, err := (&Dir{path: filepath.Dir(f.path)}).Load()
		if err != nil || !SameGenerator(r.Provenance.Host, host) || r.Provenance.KbenchVersion != kbenchVersion {
			continue
		}
		ceilings = append(ceilings, r.ceilingsFrom(filepath.Dir(f.path))...)
	}
	return ceilings
}

// ceilingsFrom are the result's ceilings with where they stand.
func (r *Result) ceilingsFrom(dir string) []Ceiling {
	list := slices.Clone(r.Ceilings)
	for i := range list {
		list[i].From = dir
	}
	return list
}

// LoadCeilings reads the ceilings of one result directory. A result without any is an error that
// says so.
func LoadCeilings(path string) ([]Ceiling, Host, error) {
	dir, err := OpenDir(path)
	if err != nil {
		return nil, Host{}, err
	}
	r, err := dir.Load()
	if err != nil {
		return nil, Host{}, err
	}
	if len(r.Ceilings) == 0 {
		return nil, Host{}, &FileError{Path: dir.join(FileName), Err: errNoCeiling}
	}
	return r.ceilingsFrom(dir.path), r.Provenance.Host, nil
}

// SameGenerator says whether two hosts can do the same: the same machine with the same processors
// to use.
func SameGenerator(a, b Host) bool {
	return a.Hostname == b.Hostname && a.CPUModel == b.CPUModel && a.CPUs == b.CPUs &&
		a.GOMAXPROCS == b.GOMAXPROCS && a.CgroupCPUs == b.CgroupCPUs
}

// escapeGlob keeps a folder's name from being a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
