package settings

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// Field describes one leaf: what a user may set.
type Field struct {
	Key     string // dotted: "producer.flush.messages"
	Type    string // "string", "bool", "int", "number", "duration", "text", "text or mapping", "list of …" or "map"
	Unit    string // of numbers: "bytes", "messages/s", "share" (1 is all), …; decides which suffixes are accepted
	Doc     string
	Default string // the prototype's value in YAML's flow form; empty for a secret
	Enum    []string
	Secret  bool

	typ reflect.Type
}

// node is one field of the schema: a leaf or a section.
type node struct {
	field    Field
	index    int     // of the field in its struct
	children []*node // of a section
	section  bool
}

// schemas holds the tree of every struct type asked for: map[reflect.Type]*node.
var schemas sync.Map

var (
	durationType  = reflect.TypeFor[time.Duration]()
	unmarshalType = reflect.TypeFor[encoding.TextUnmarshaler]()
	stringMapType = reflect.TypeFor[map[string]string]()
)

// schemaOf is the tree of a struct type.
func schemaOf(t reflect.Type) *node {
	if known, ok := schemas.Load(t); ok {
		return known.(*node)
	}
	root := &node{section: true}
	root.children = children(t, "")
	known, _ := schemas.LoadOrStore(t, root)
	return known.(*node)
}

func children(t reflect.Type, prefix string) []*node {
	var out []*node
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("key")
		if key == "" || key == "-" || f.Anonymous || !f.IsExported() {
			continue
		}
		n := &node{index: i, field: Field{
			Key: join(prefix, key), Unit: f.Tag.Get("unit"), Doc: f.Tag.Get("doc"),
			Secret: f.Tag.Get("secret") == "true", typ: f.Type,
		}}
		if enum := f.Tag.Get("enum"); enum != "" {
			n.field.Enum = strings.Split(enum, ",")
		}
		if isSection(f.Type) {
			n.section = true
			n.children = children(f.Type, n.field.Key)
		} else {
			n.field.Type = typeName(f.Type)
		}
		out = append(out, n)
	}
	return out
}

func isText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshalType) }

// EntriesUnmarshaler is a text type that may be written as a mapping as well, whose values are
// scalars, lists or mappings. What it returns says what is wrong; the place is added.
type EntriesUnmarshaler interface {
	UnmarshalEntries(entries []Assignment) error
}

func isEntries(t reflect.Type) bool {
	return isText(t) && reflect.PointerTo(t).Implements(reflect.TypeFor[EntriesUnmarshaler]())
}

func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct && !isText(t) }

func typeName(t reflect.Type) string {
	switch {
	case t == durationType:
		return "duration"
	case isEntries(t):
		return "text or mapping"
	case isText(t):
		return "text"
	case t == stringMapType:
		return "map"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "int"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	}
	return "unsupported " + t.String()
}

// find is the node of a dotted key; nil when there is none.
func (n *node) find(key string) *node {
	for _, c := range n.children {
		if c.field.Key == key {
			return c
		}
		if c.section && strings.HasPrefix(key, c.field.Key+".") {
			return c.find(key)
		}
	}
	return nil
}

// keys are the keys of every section and leaf below n.
func (n *node) keys() []string {
	var out []string
	for _, c := range n.children {
		out = append(out, c.field.Key)
		out = append(out, c.keys()...)
	}
	return out
}

// structOf is the struct behind v, which is a struct or a pointer to one.
func structOf(v any) (reflect.Value, error) {
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer && !rv.IsNil() {
		rv = rv.Elem()
	}
	if rv.Kind() != reflect.Struct {
		return rv, fmt.Errorf("settings: a struct or a pointer to one is needed, not %T", v)
	}
	return rv, nil
}

// Fields are the leaves of the struct of (or the one it points to), in order. Their defaults
// are the values in of, the prototype. Anything that is not a struct has none.
func Fields(of any) []Field {
	rv, err := structOf(of)
	if err != nil {
		return nil
	}
	var out []Field
	walk(schemaOf(rv.Type()), rv, func(n *node, v reflect.Value) {
		f := n.field
		f.Enum = slices.Clone(f.Enum)
		if !f.Secret {
			f.Default = Of(export(v)).String()
		}
		out = append(out, f)
	})
	return out
}

// Effective maps the key of every leaf of the struct of to its value, as JSON can show it:
// durations and text types as their text. Secrets are left out.
func Effective(of any) map[string]any {
	out := map[string]any{}
	rv, err := structOf(of)
	if err != nil {
		return out
	}
	walk(schemaOf(rv.Type()), rv, func(n *node, v reflect.Value) {
		if !n.field.Secret {
			out[n.field.Key] = export(v)
		}
	})
	return out
}

func walk(n *node, v reflect.Value, leaf func(*node, reflect.Value)) {
	for _, c := range n.children {
		if c.section {
			walk(c, v.Field(c.index), leaf)
			continue
		}
		leaf(c, v.Field(c.index))
	}
}

// export is a leaf's value as plain data.
func export(v reflect.Value) any {
	if v.Type() == durationType {
		return FormatDuration(time.Duration(v.Int()))
	}
	if text, ok := marshalText(v); ok {
		return text
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float32, reflect.Float64:
		return v.Float()
	case reflect.Slice:
		out := make([]any, 0, v.Len())
		for i := range v.Len() {
			out = append(out, export(v.Index(i)))
		}
		return out
	case reflect.Map:
		out := make(map[string]any, v.Len())
		for _, key := range v.MapKeys() {
			out[key.String()] = export(v.MapIndex(key))
		}
		return out
	}
	if v.CanInt() {
		return v.Int()
	}
	if v.CanUint() {
		return v.Uint()
	}
	return fmt.Sprint(v)
}

// marshalText is the text of a type that has one, whether on the value or its pointer.
func marshalText(v reflect.Value) (string, bool) {
	if !isText(v.Type()) {
		return "", false
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	m, ok := p.Interface().(encoding.TextMarshaler)
	if !ok {
		return fmt.Sprint(v), true
	}
	text, err := m.MarshalText()
	if err != nil {
		return fmt.Sprint(v), true
	}
	return string(text), true
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// FormatDuration is d in Go's form without zero parts at the end: "10m", not "10m0s"; -1ns is "-1",
// see ParseDuration.
func FormatDuration(d time.Duration) string {
	if d == -1 {
		return "-1"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
