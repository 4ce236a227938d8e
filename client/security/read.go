package security

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/settings"
)

// maxFile bounds every file that is read; the largest bundles of authorities have some 300 kB.
const maxFile = 4 << 20

// readFile reads the file by its kind.
func (r *reader) readFile(name string) {
	data, err := readBounded(name)
	if err != nil {
		r.problems = append(r.problems, settings.Problem{File: name, Text: fileError(err)})
		return
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		r.readYAML(name, data)
	default:
		r.readJava(name, data)
	}
}

var errTooLarge = fmt.Errorf("is larger than %d MiB", maxFile>>20)

// readBounded reads a file, or a pipe: `--command-config <(…)` keeps secrets off the disk.
func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = errTooLarge
	}
	return data, err
}

// fileError is why a file cannot be read, without its name, which stands beside.
func fileError(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return "cannot be read: " + err.Error()
}

// readYAML takes brokers, net.tls and net.sasl.
func (r *reader) readYAML(name string, data []byte) {
	as, problems := settings.Parse(name, data)
	for _, p := range problems {
		r.problems = append(r.problems, withoutText(p))
	}
	fields := settings.Fields(&r.keys)
	for _, a := range as {
		leaves, problems := settings.Leaves(fields, a)
		for _, p := range problems {
			if p.Key == a.Key && !slices.Contains(settings.Keys(fields), p.Key) {
				p = a.KeyProblem("%s", p.Text)
			}
			r.problems = append(r.problems, elsewhere(p))
		}
		for _, leaf := range leaves {
			v := leaf.Value
			r.set(leaf.Key, v, place{file: v.File, line: v.Line, column: v.Column, name: leaf.Key})
		}
	}
}

// withoutText takes out what a problem without a key may quote: in a file that is not YAML it may be
// a secret.
func withoutText(p settings.Problem) settings.Problem {
	if p.Key == "" {
		p.Text = "this cannot be read as YAML: keys with their values are needed, indented by spaces"
	}
	return p
}

// elsewhere says of a key that the client has, but not here, where it belongs.
func elsewhere(p settings.Problem) settings.Problem {
	if slices.Contains(settings.Keys(client.Schema{}.Fields()), p.Key) {
		p.Text = "is not about how to connect; it belongs in the workload, or after --set"
	}
	return p
}

// set applies one value to one of our keys.
func (r *reader) set(key string, v settings.Value, at place) {
	for _, p := range settings.Apply(&r.keys, settings.Assignment{Key: key, Value: v}) {
		p.File, p.Line, p.Column, p.Key = at.file, at.line, at.column, at.name
		r.problems = append(r.problems, p)
	}
	r.given[key] = at
}

// has says whether a key was given.
func (r *reader) has(key string) bool {
	_, ok := r.given[key]
	return ok
}

// hasWithin says whether a key of a section was given, in the file if inFile.
func (r *reader) hasWithin(section string, inFile bool) bool {
	for key, at := range r.given {
		if strings.HasPrefix(key, section+".") && (!inFile || at.file == r.file) {
			return true
		}
	}
	return false
}
