package workloads

import (
	"slices"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// MaxPoints bounds the matrix of a sweep.
const MaxPoints = 10_000

// notSwept are the keys that say nothing about the load.
var notSwept = []string{"name", "description", "repeat", "thresholds", "seed", "sweep"}

// sweep reads the section of that name: a mapping of keys to lists of values.
func (d *decoder) sweep(a settings.Assignment) {
	if a.Value.IsNull() {
		return
	}
	if !a.Value.IsMap() {
		d.problems = append(d.problems, a.Problem("needs a mapping of keys to lists of values, e.g. {producer.requiredAcks: [1, all]}"))
		return
	}
	for _, e := range a.Value.Entries() {
		if !e.Value.IsList() {
			p := e.Problem("needs a list of values, e.g. [1, all]")
			p.Key = "sweep." + e.Key
			d.problems = append(d.problems, p)
			continue
		}
		d.axis(e, "", e.Value.Items())
	}
}

// axis adds a swept key, in the place of one with the same key. Without a value list of its
// own (from a flag) the problems' place is the flag.
func (d *decoder) axis(a settings.Assignment, flag string, values []settings.Value) {
	if flag != "" {
		a.Value.File = flag
	}
	problem := func(format string, args ...any) {
		p := a.Problem(format, args...)
		p.Key = "sweep." + a.Key
		d.problems = append(d.problems, p)
	}
	root, _, _ := strings.Cut(a.Key, ".")
	fields := d.own
	switch {
	case slices.Contains(notSwept, a.Key):
		problem("cannot be swept: it does not change the load")
		return
	case hasRoot(d.own, root):
	case hasRoot(d.theirs, root):
		fields = d.theirs
	default:
		problem("unknown key%s", d.hint(a.Key))
		return
	}
	if !slices.Contains(settings.Keys(fields), a.Key) {
		problem("unknown key%s", d.hint(a.Key))
		return
	}
	if len(values) == 0 {
		problem("needs at least one value")
		return
	}
	d.values(a.Key, fields, values)
	next := Axis{Key: a.Key, Values: values}
	for i, axis := range d.def.Sweep {
		if axis.Key == a.Key {
			d.def.Sweep[i] = next
			return
		}
	}
	d.def.Sweep = append(d.def.Sweep, next)
}

// values checks each value of an axis at its own place.
func (d *decoder) values(key string, fields []settings.Field, values []settings.Value) {
	seen := map[string]bool{}
	for _, v := range values {
		a := settings.Assignment{Key: key, Value: v}
		leaves, problems := settings.Leaves(fields, a)
		for _, p := range problems {
			p.Key = "sweep." + p.Key
			d.problems = append(d.problems, p)
		}
		for _, leaf := range leaves {
			d.refuseSecret(leaf)
		}
		if text := v.String(); seen[text] {
			p := a.Problem("the value %s is there twice", text)
			p.Key = "sweep." + key
			d.problems = append(d.problems, p)
		} else {
			seen[text] = true
		}
	}
}

// checkAxes refuses axes inside each other, and too many points.
func (d *decoder) checkAxes() {
	points := 1
	for _, axis := range d.def.Sweep {
		at := settings.Assignment{Key: "sweep." + axis.Key, Value: axis.Values[0]}
		for _, other := range d.def.Sweep {
			if strings.HasPrefix(axis.Key, other.Key+".") {
				d.problems = append(d.problems, at.Problem("is part of %s, which is swept as well", other.Key))
			}
		}
		if points > MaxPoints {
			continue
		}
		if points *= len(axis.Values); points > MaxPoints {
			d.problems = append(d.problems, at.Problem("the sweep has more than %d points", MaxPoints))
		}
	}
}

// IsClientKey reports whether a key is the client's rather than the workload's.
func IsClientKey(key string) bool {
	root, _, _ := strings.Cut(key, ".")
	return !hasRoot(ownFields, root)
}

var ownFields = Fields()

// With is the definition with further assignments, as a point of a sweep has them: those of the
// workload's keys applied, those of the client's appended to Client. d is not changed.
func (d Definition) With(as ...settings.Assignment) (Definition, settings.Problems) {
	prototype := Default()
	d.Client = slices.Clip(d.Client)
	var problems settings.Problems
	for _, a := range as {
		if IsClientKey(a.Key) {
			d.Client = append(d.Client, a)
			continue
		}
		problems = append(problems, settings.ApplyOver(&d, &prototype, a)...)
	}
	return d, problems
}

// Check reports what is wrong with the workload's values taken together. Load has done it.
func (d *Definition) Check() settings.Problems { return check(d, nil).Sorted() }
