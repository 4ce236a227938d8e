package workloads

import (
	"slices"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// MaxPoints bounds the points of a workload.
const MaxPoints = 10_000

// notSwept are the keys that say nothing about the load.
var notSwept = []string{"name", "description", "repeat", "thresholds", "seed", "sweep", "points", "design", "design.kind", "design.points"}

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
	fields, why := d.fieldsOf(a.Key)
	if why != "" {
		problem("%s", why)
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

// fieldsOf are the fields among which a swept key is, or why it cannot be swept.
func (d *decoder) fieldsOf(key string) (fields []settings.Field, why string) {
	root, _, _ := strings.Cut(key, ".")
	if slices.Contains(notSwept, key) {
		return nil, "cannot be swept: it does not change the load"
	}
	for _, fields := range [][]settings.Field{d.own, d.theirs} {
		if hasRoot(fields, root) && slices.Contains(settings.Keys(fields), key) {
			return fields, ""
		}
	}
	return nil, "unknown key" + d.hint(key)
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
	d.checkDesign()
	points, one := 1, 1 // of the matrix, and with one factor at a time
	for _, axis := range d.def.Sweep {
		at := settings.Assignment{Key: "sweep." + axis.Key, Value: axis.Values[0]}
		for _, other := range d.def.Sweep {
			if strings.HasPrefix(axis.Key, other.Key+".") {
				d.problems = append(d.problems, at.Problem("is part of %s, which is swept as well", other.Key))
			}
		}
		before := d.counted(points, one)
		points = min(points*len(axis.Values), 1<<40) // a list's length is bounded by the file's
		one += len(axis.Values) - 1
		if before <= MaxPoints && d.counted(points, one) > MaxPoints {
			d.problems = append(d.problems, at.Problem("the sweep has more than %d points%s", MaxPoints, map[bool]string{
				true: "; draw some of them: design: {kind: sample, points: 100}"}[d.def.Design.Kind == DesignMatrix]))
		}
	}
}

// counted is how many points the design has that are all run.
func (d *decoder) counted(matrix, oneFactor int) int {
	switch d.def.Design.Kind {
	case DesignOneFactor:
		return oneFactor
	case DesignSample:
		return d.def.Design.Points
	}
	return matrix
}

// checkDesign refuses a design that does not go with what it is of.
func (d *decoder) checkDesign() {
	design := d.def.Design
	add := func(key, format string, args ...any) {
		a := settings.Assignment{Key: key, Value: d.given[key]}
		d.problems = append(d.problems, a.Problem(format, args...))
	}
	switch {
	case design.Kind != DesignMatrix && len(d.def.Points) > 0:
		add("design.kind", "is %s, which is of a sweep, and the points are listed", design.Kind)
	case design.Kind != DesignMatrix && len(d.def.Sweep) == 0:
		add("design.kind", "is %s, and there is no sweep", design.Kind)
	case design.Kind == DesignSample && (design.Points < 1 || design.Points > MaxPoints):
		add("design.points", "is %d, must be between 1 and %d", design.Points, MaxPoints)
	case design.Kind != DesignSample && design.Points != 0:
		add("design.points", "belongs to kind sample, and design.kind is %s", design.Kind)
	}
	if len(d.def.Points) > 0 && len(d.def.Sweep) > 0 {
		axis := d.def.Sweep[0]
		at := settings.Assignment{Key: "sweep." + axis.Key, Value: axis.Values[0]}
		d.problems = append(d.problems, at.Problem("is swept, and the points are listed; give one of sweep and points"))
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
