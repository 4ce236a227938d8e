package workloads

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// ClientSchema is what the client's configuration tells about itself. It is injected, so that
// workloads do not depend on the client.
type ClientSchema interface {
	// Fields are the client's keys.
	Fields() []settings.Field
	// Check applies the assignments to a default configuration and validates it whole.
	Check(as []settings.Assignment) settings.Problems
}

// Overrides are the changes of the command line, as written there. Empty ones are not given.
// They apply in the order of the fields, Set first in its own order.
type Overrides struct {
	Set      []string // --set key=value
	Sweep    []string // --sweep key=v1,v2
	Point    []string // --point {key: value, …}: points beside those of the workload
	Rate     string   // --rate 20k: producers.rate
	Duration string   // --duration 30s: phases.duration
	Repeat   string   // --repeat 5
	// Threshold are conditions beside those of the workload: --threshold 'response.p99<20ms'.
	Threshold []string
}

// Any says whether anything is changed.
func (o Overrides) Any() bool {
	return len(o.Set)+len(o.Sweep)+len(o.Point)+len(o.Threshold) > 0 || o.Rate != "" || o.Duration != "" || o.Repeat != ""
}

// ParseOverrides reads overrides as Definition.Overrides has them: "--set payload.size=100".
func ParseOverrides(list []string) (Overrides, error) {
	var o Overrides
	for _, text := range list {
		flag, value, _ := strings.Cut(text, " ")
		switch flag {
		case "--set":
			o.Set = append(o.Set, value)
		case "--sweep":
			o.Sweep = append(o.Sweep, value)
		case "--point":
			o.Point = append(o.Point, value)
		case "--threshold":
			o.Threshold = append(o.Threshold, value)
		case "--rate":
			o.Rate = value
		case "--duration":
			o.Duration = value
		case "--repeat":
			o.Repeat = value
		default:
			return o, fmt.Errorf("%.40q is no change of a workload", text)
		}
	}
	return o, nil
}

// UnknownError says that a name is neither a file nor a built-in workload.
type UnknownError struct {
	Name    string
	Nearest string // the built-in workload most likely meant; empty when none is near
	BuiltIn []string
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%q is neither a file nor a built-in workload", e.Name)
	if e.Nearest != "" {
		text += "; did you mean " + e.Nearest + "?"
	}
	return text + " (built in: " + strings.Join(e.BuiltIn, ", ") + ")"
}

// Load reads a workload and applies the overrides. name is that of a built-in one or the path
// of a file; a file called like a built-in one is meant by a path (./quick). An empty name is
// "quick".
//
// The error is settings.Problems with everything that is wrong, an *UnknownError, or that of
// reading the file.
func Load(name string, client ClientSchema, o Overrides) (*Definition, error) {
	if name == "" {
		name = "quick"
	}
	if source, err := Source(name); err == nil {
		return Decode(name, []byte(source), client, o)
	}
	data, err := readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		names := builtInNames()
		return nil, &UnknownError{Name: name, Nearest: settings.Nearest(name, names), BuiltIn: names}
	}
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", name, err)
	}
	return Decode(name, data, client, o)
}

// openRegular opens what can be read to an end.
func openRegular(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0 {
		err = errors.New("is not a file")
	}
	if err != nil {
		_ = file.Close() // nothing was read
		return nil, err
	}
	return file, nil
}

func readFile(path string) ([]byte, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(file, settings.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	return data, nil // one byte too many is refused by the parser, with the bound
}

// Decode is Load of a text; file names it in problems and, without a name in it, the workload.
func Decode(file string, data []byte, client ClientSchema, o Overrides) (*Definition, error) {
	d := newDecoder(file, client)
	d.def.Source = string(data)
	as, problems := settings.Parse(file, data)
	d.problems = append(d.problems, problems...)
	for _, a := range as {
		switch a.Key {
		case "sweep":
			d.sweep(a)
		case "points":
			d.points(a)
		default:
			d.route(a)
		}
	}
	d.override(o)
	d.finish()
	if err := d.problems.Err(); err != nil {
		return nil, err
	}
	return &d.def, nil
}

// decoder collects a definition and everything wrong with it.
type decoder struct {
	def      Definition
	client   ClientSchema
	own      []settings.Field // the workload's
	theirs   []settings.Field // the client's
	problems settings.Problems
	// given is where each key of the workload was given last.
	given map[string]settings.Value
}

func newDecoder(file string, client ClientSchema) *decoder {
	d := &decoder{def: Default(), client: client, own: Fields(), given: map[string]settings.Value{}}
	if client != nil {
		d.theirs = client.Fields()
	}
	d.def.File, d.def.clientFields = file, d.theirs
	return d
}

// Fields are the workload's own keys, with the defaults. The key sweep is not among them.
func Fields() []settings.Field {
	def := Default()
	return settings.Fields(&def)
}

// route gives an assignment to the workload or to the client, by the first part of its key.
func (d *decoder) route(a settings.Assignment) {
	switch root, _, _ := strings.Cut(a.Key, "."); {
	case hasRoot(d.own, root):
		d.setOwn(a)
	case hasRoot(d.theirs, root):
		d.setClient(a)
	default:
		d.problems = append(d.problems, a.KeyProblem("unknown key%s", d.hint(a.Key)))
	}
}

// hint suggests the nearest key of workload and client together.
func (d *decoder) hint(key string) string {
	keys := append(settings.Keys(d.own), settings.Keys(d.theirs)...)
	if near := settings.Nearest(key, append(keys, "sweep", "points")); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

func hasRoot(fields []settings.Field, root string) bool {
	return slices.ContainsFunc(fields, func(f settings.Field) bool {
		first, _, _ := strings.Cut(f.Key, ".")
		return first == root
	})
}

// setOwn applies what is right in an assignment and reports the rest, so that one wrong key
// does not hide what else is wrong.
func (d *decoder) setOwn(a settings.Assignment) {
	leaves, problems := settings.Leaves(d.own, a)
	d.problems = append(d.problems, problems...)
	prototype := Default()
	if _, isLeaf := fieldOf(d.own, a.Key); !isLeaf {
		// A section replaces what was set in it before; on a fresh definition that is nothing.
		_ = settings.ApplyOver(&d.def, &prototype, settings.Assignment{Key: a.Key, Value: settings.Of(map[string]any{})})
		for key := range d.given {
			if strings.HasPrefix(key, a.Key+".") {
				delete(d.given, key)
			}
		}
	}
	for _, leaf := range leaves {
		d.problems = append(d.problems, settings.ApplyOver(&d.def, &prototype, leaf)...)
		d.given[leaf.Key] = leaf.Value
	}
}

// setClient keeps what is right in an assignment: a section as itself, empty, which takes back
// what was set in it before, then its leaves, each with its own place.
func (d *decoder) setClient(a settings.Assignment) {
	leaves, problems := settings.Leaves(d.theirs, a)
	for _, p := range problems {
		d.problems = append(d.problems, aboutConnecting(p))
	}
	if slices.Contains(settings.Keys(d.theirs), a.Key) {
		if _, isLeaf := fieldOf(d.theirs, a.Key); !isLeaf {
			empty := settings.Of(map[string]any{}).At(a.Value)
			d.def.Client = append(d.def.Client, settings.Assignment{Key: a.Key, Value: empty})
		}
	}
	for _, leaf := range leaves {
		d.refuseSecret(leaf)
		d.def.Client = append(d.def.Client, leaf)
	}
}

// aboutConnecting: how to connect is the machine's to know, not the workload's, and holds secrets.
func aboutConnecting(p settings.Problem) settings.Problem {
	for _, section := range []string{"net.tls", "net.sasl"} {
		if p.Key == section || strings.HasPrefix(p.Key, section+".") {
			p.Text = "is no key of a workload: how to connect stands in the file of --command-config (kbench help command-config)"
		}
	}
	return p
}

// refuseSecret: workloads are kept in results, and the command line shows in ps.
func (d *decoder) refuseSecret(a settings.Assignment) {
	for _, f := range d.theirs {
		if f.Key == a.Key && f.Secret {
			d.problems = append(d.problems, a.Problem("is a secret and would be kept with the results; give it by --command-config or the environment"))
		}
	}
}

// override applies the command line.
func (d *decoder) override(o Overrides) {
	for _, arg := range o.Set {
		d.set("--set", arg)
	}
	d.short("--rate", "producers.rate", o.Rate)
	d.short("--duration", "phases.duration", o.Duration)
	d.short("--repeat", "repeat", o.Repeat)
	for _, arg := range o.Sweep {
		d.def.Overrides = append(d.def.Overrides, "--sweep "+arg)
		key, values, p := settings.ParseSweep("--sweep", arg)
		if p != nil {
			d.problems = append(d.problems, *p)
			continue
		}
		d.axis(settings.Assignment{Key: key, Value: settings.Of(nil)}, "--sweep", values)
	}
	for _, arg := range o.Point {
		d.pointFlag("--point", arg)
	}
	for _, arg := range o.Threshold {
		d.def.Overrides = append(d.def.Overrides, "--threshold "+arg)
		d.def.Thresholds = append(slices.Clone(d.def.Thresholds), arg)
	}
}

// short is a flag of its own for a key.
func (d *decoder) short(flag, key, value string) {
	if value == "" {
		return
	}
	d.def.Overrides = append(d.def.Overrides, flag+" "+value)
	v, problems := settings.ParseValue(flag, value)
	d.problems = append(d.problems, problems...)
	if len(problems) == 0 {
		d.setOver(settings.Assignment{Key: key, Value: v})
	}
}

func (d *decoder) set(flag, arg string) {
	d.def.Overrides = append(d.def.Overrides, flag+" "+arg)
	a, p := settings.ParseSet(flag, arg)
	if p != nil {
		d.problems = append(d.problems, *p)
		return
	}
	if a.Key == "sweep" || strings.HasPrefix(a.Key, "sweep.") {
		d.problems = append(d.problems, a.Problem("is set by --sweep key=v1,v2"))
		return
	}
	if a.Key == "points" {
		d.problems = append(d.problems, a.Problem("are added by --point '{key: value}'"))
		return
	}
	d.setOver(a)
}

// setOver sets a key on the command line: an axis of that key, or inside of it, goes.
func (d *decoder) setOver(a settings.Assignment) {
	d.def.Sweep = slices.DeleteFunc(d.def.Sweep, func(axis Axis) bool {
		return axis.Key == a.Key || strings.HasPrefix(axis.Key, a.Key+".")
	})
	for _, axis := range d.def.Sweep {
		if strings.HasPrefix(a.Key, axis.Key+".") {
			d.problems = append(d.problems, a.Problem("would be undone, as the sweep replaces the whole of %s", axis.Key))
		}
	}
	for i, chosen := range d.def.Points {
		for _, set := range chosen {
			if set.Key == a.Key || strings.HasPrefix(set.Key, a.Key+".") || strings.HasPrefix(a.Key, set.Key+".") {
				d.problems = append(d.problems, a.Problem("would be undone, as point %d sets %s", i+1, set.Key))
			}
		}
	}
	d.route(a)
}

// finish checks the whole.
func (d *decoder) finish() {
	if d.def.Name == "" {
		base := filepath.Base(d.def.File)
		d.def.Name = strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml")
	}
	wrong := map[string]bool{}
	for _, p := range d.problems {
		wrong[p.Key] = true
	}
	for _, p := range check(&d.def, d.given) {
		if !wrong[p.Key] {
			d.problems = append(d.problems, p)
		}
	}
	d.checkAxes()
	if d.client == nil || d.sweepsClient() {
		return // what goes with what is each point's to say
	}
	for _, p := range d.client.Check(d.def.Client) {
		if !wrong[p.Key] {
			d.problems = append(d.problems, p)
		}
	}
}

func (d *decoder) sweepsClient() bool {
	return slices.ContainsFunc(d.def.Swept(), func(axis Axis) bool {
		root, _, _ := strings.Cut(axis.Key, ".")
		return hasRoot(d.theirs, root)
	})
}
