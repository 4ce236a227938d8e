package workloads

import (
	"fmt"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// points reads the section of that name: a list of mappings, each from keys to values.
func (d *decoder) points(a settings.Assignment) {
	if a.Value.IsNull() {
		return
	}
	if !a.Value.IsList() {
		d.problems = append(d.problems, a.Problem("needs a list of points, e.g. [{producer.requiredAcks: 1}, {producer.requiredAcks: all, net.maxOpenRequests: 5}]"))
		return
	}
	for i, item := range a.Value.Items() {
		d.point(item, i+1)
	}
}

// point adds one, the number-th.
func (d *decoder) point(v settings.Value, number int) {
	place := settings.Assignment{Key: fmt.Sprintf("points.%d", number), Value: v}
	if !v.IsMap() {
		d.problems = append(d.problems, place.Problem("needs a mapping of keys to values, e.g. {producer.requiredAcks: 1}"))
		return
	}
	before := len(d.problems)
	var chosen Chosen
	for _, e := range v.Entries() {
		fields, why := d.fieldsOf(e.Key)
		if why != "" {
			p := e.KeyProblem("%s", why)
			p.Key = place.Key + "." + e.Key
			d.problems = append(d.problems, p)
			continue
		}
		leaves, problems := settings.Leaves(fields, e)
		for _, p := range problems {
			p.Key = place.Key + "." + p.Key
			d.problems = append(d.problems, p)
		}
		for _, leaf := range leaves {
			d.refuseSecret(leaf)
		}
		chosen = append(chosen, e)
	}
	if len(d.problems) > before {
		return
	}
	for i, other := range d.def.Points {
		if other.String() == chosen.String() {
			d.problems = append(d.problems, place.Problem("is the same as point %d", i+1))
			return
		}
	}
	d.def.Points = append(d.def.Points, chosen)
	if len(d.def.Points) == MaxPoints+1 {
		d.problems = append(d.problems, place.Problem("is one point more than the %d that a workload may have", MaxPoints))
	}
}

// String is the point in a line.
func (c Chosen) String() string {
	parts := make([]string, len(c))
	for i, a := range c {
		parts[i] = a.Key + "=" + a.Value.String()
	}
	return strings.Join(parts, " ")
}

// pointFlag adds a point of the command line: a mapping in YAML's flow form.
func (d *decoder) pointFlag(flag, arg string) {
	d.def.Overrides = append(d.def.Overrides, flag+" "+arg)
	v, problems := settings.ParseValue(flag, arg)
	d.problems = append(d.problems, problems...)
	if len(problems) == 0 {
		d.point(v, len(d.def.Points)+1)
	}
}

// Swept are the keys that differ from point to point, by a sweep or by points that are listed, with the
// values they have there.
func (d *Definition) Swept() []Axis {
	if len(d.Points) == 0 {
		return d.Sweep
	}
	var axes []Axis
	place := map[string]int{}
	seen := map[string]bool{}
	for _, chosen := range d.Points {
		for _, a := range chosen {
			if _, known := place[a.Key]; !known {
				place[a.Key] = len(axes)
				axes = append(axes, Axis{Key: a.Key})
			}
			if text := a.Key + "=" + a.Value.String(); !seen[text] {
				seen[text] = true
				axis := &axes[place[a.Key]]
				axis.Values = append(axis.Values, a.Value)
			}
		}
	}
	return axes
}

// Plain is the definition without what makes several points of it.
func (d Definition) Plain() Definition {
	d.Sweep, d.Points, d.Design = nil, nil, Default().Design
	return d
}

// ValueOf is what a key has in the definition, as Effective shows it; false for a section, or a key that
// is not known.
func (d *Definition) ValueOf(key string) (any, bool) {
	if !IsClientKey(key) {
		v, known := settings.Effective(d)[key]
		return v, known
	}
	if v, given := d.clientInEffect()[key]; given {
		return v, true
	}
	f, known := fieldOf(d.clientFields, key)
	if !known {
		return nil, false
	}
	v, problems := settings.ParseValue("", f.Default)
	if len(problems) > 0 {
		return f.Default, true
	}
	return d.canonical(key, v), true
}
