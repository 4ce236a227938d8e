package settings

import (
	"reflect"
	"strings"
)

// Apply sets the keys of the struct that into points to, in order: a later assignment wins.
// A leaf is set; a section is replaced: keys it does not list take the value they had in into
// when Apply was called. Whoever applies in several calls and wants sections to fall back to
// the defaults uses ApplyOver.
//
// Every problem is reported, and into is unchanged if there is one. Values that Parse refused
// are passed over: they are among its problems.
func Apply(into any, as ...Assignment) Problems { return ApplyOver(into, into, as...) }

// ApplyOver is Apply with the prototype that sections fall back to: a struct of into's type,
// or a pointer to one.
func ApplyOver(into, prototype any, as ...Assignment) Problems {
	target := reflect.ValueOf(into)
	rv, err := structOf(into)
	if err != nil || target.Kind() != reflect.Pointer {
		return Problems{{Text: "settings can only be applied to a pointer to a struct"}}
	}
	pv, err := structOf(prototype)
	if err != nil || pv.Type() != rv.Type() {
		return Problems{{Text: "the prototype must be of the type that is set"}}
	}
	a := applier{root: schemaOf(rv.Type())}
	work, proto := reflect.New(rv.Type()).Elem(), reflect.New(rv.Type()).Elem()
	work.Set(rv)
	proto.Set(pv)
	for _, as := range as {
		place := Problem{File: as.Value.File, Line: as.Value.Line, Column: as.Value.Column, Key: as.Key}
		a.set(as.Key, as.Value, place, work, proto)
	}
	if len(a.problems) == 0 {
		rv.Set(work)
	}
	return a.problems.Sorted()
}

// Check reports what is wrong with the assignments by the fields alone: unknown keys and wrong
// values, not what goes with what. The fields come from Fields.
func Check(fields []Field, as ...Assignment) Problems {
	var problems Problems
	for _, a := range as {
		_, ps := Leaves(fields, a)
		problems = append(problems, ps...)
	}
	return problems.Sorted()
}

// Leaves takes an assignment apart into those of leaves, each checked by its field. Keys that
// a section does not list are not among them.
func Leaves(fields []Field, a Assignment) ([]Assignment, Problems) {
	l := leafer{fields: fields}
	l.add(a.Key, a.Value, Problem{File: a.Value.File, Line: a.Value.Line, Column: a.Value.Column, Key: a.Key})
	return l.out, l.problems
}

// Canonical is what v means to the field, as Effective shows it: "-1" for acks may become
// "all". A value that the field does not take is a problem.
func (f Field) Canonical(v Value) (any, *Problem) {
	into := reflect.New(f.typ).Elem()
	if p := f.decode(v, into); p != nil {
		return nil, p
	}
	return export(into), nil
}

type leafer struct {
	fields   []Field
	out      []Assignment
	problems Problems
}

func (l *leafer) add(key string, v Value, place Problem) {
	section := false
	for _, f := range l.fields {
		if f.Key == key {
			if p := f.decode(v, reflect.New(f.typ).Elem()); p != nil {
				l.problems = append(l.problems, *p)
				return
			}
			l.out = append(l.out, Assignment{Key: key, Value: v})
			return
		}
		section = section || strings.HasPrefix(f.Key, key+".")
	}
	if !section {
		l.problems = append(l.problems, unknown(place, Keys(l.fields)))
		return
	}
	entries, problems := sectionEntries(key, v)
	l.problems = append(l.problems, problems...)
	for _, e := range entries {
		sub := join(key, e.key)
		l.add(sub, e.value, Problem{File: v.File, Line: e.line, Column: e.column, Key: sub})
	}
}

// Keys are the keys of the fields and of the sections they stand in, sections first.
func Keys(fields []Field) []string {
	var out []string
	seen := map[string]bool{}
	for _, f := range fields {
		for i, r := range f.Key {
			if r == '.' && !seen[f.Key[:i]] {
				seen[f.Key[:i]] = true
				out = append(out, f.Key[:i])
			}
		}
		out = append(out, f.Key)
	}
	return out
}

type applier struct {
	root     *node
	problems Problems
}

// set gives v to key. place is where the key stands, for an unknown one.
func (a *applier) set(key string, v Value, place Problem, work, proto reflect.Value) {
	n := a.root.find(key)
	if n == nil {
		a.problems = append(a.problems, unknown(place, a.root.keys()))
		return
	}
	field := a.locate(key, work)
	if !n.section {
		if p := n.field.decode(v, field); p != nil {
			a.problems = append(a.problems, *p)
		}
		return
	}
	entries, problems := sectionEntries(key, v)
	a.problems = append(a.problems, problems...)
	resetSection(n, field, a.locate(key, proto))
	for _, e := range entries {
		sub := join(key, e.key)
		a.set(sub, e.value, Problem{File: v.File, Line: e.line, Column: e.column, Key: sub}, work, proto)
	}
}

// locate is the struct field of a key that exists.
func (a *applier) locate(key string, v reflect.Value) reflect.Value {
	n := a.root
	for n.field.Key != key {
		for _, c := range n.children {
			if c.field.Key == key || strings.HasPrefix(key, c.field.Key+".") {
				n, v = c, v.Field(c.index)
				break
			}
		}
	}
	return v
}

// resetSection takes the settings of a section from the prototype; what is no setting stays.
func resetSection(n *node, into, from reflect.Value) {
	for _, c := range n.children {
		if c.section {
			resetSection(c, into.Field(c.index), from.Field(c.index))
			continue
		}
		into.Field(c.index).Set(from.Field(c.index))
	}
}

// sectionEntries are the keys given for a section; one that is there but empty has none.
func sectionEntries(key string, v Value) ([]entry, Problems) {
	if v.IsNull() {
		return nil, nil
	}
	if !v.IsMap() {
		return nil, Problems{v.problem(key, "is a section and needs a mapping of its keys, e.g. {key: value}")}
	}
	return v.entries, overlaps(v, key)
}

func unknown(place Problem, among []string) Problem {
	place.Text = "unknown key"
	if near := Nearest(place.Key, among); near != "" {
		place.Text += "; did you mean " + near + "?"
	}
	return place
}
