package settings

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is the shape of a Value.
type kind int

const (
	kindNull  kind = iota
	kindPlain      // a scalar without quotes: its type is decided by who reads it
	kindQuoted
	kindList
	kindMap
	kindRefused // already reported by Parse; says nothing more when it is applied
)

// Value is a YAML value and where it stood. A scalar keeps its text as written, so that
// "4.10" stays a version and "0x10" a number only where a number is asked for. The zero Value
// is null.
type Value struct {
	File         string
	Line, Column int // from 1; 0 when not from a file

	kind    kind
	text    string
	items   []Value
	entries []entry
}

// entry is one key of a mapping, in the order of the file.
type entry struct {
	key          string
	line, column int
	value        Value
}

// Of makes a Value from a Go one: nil, string, bool, integer, float, time.Duration, []any,
// []string, map[string]any (keys sorted) or Value. Anything else becomes its fmt text.
func Of(v any) Value {
	switch v := v.(type) {
	case nil:
		return Value{}
	case Value:
		return v
	case string:
		return Value{kind: kindQuoted, text: v}
	case time.Duration:
		return Value{kind: kindPlain, text: FormatDuration(v)}
	case float64:
		return Value{kind: kindPlain, text: strconv.FormatFloat(v, 'g', -1, 64)}
	case []string:
		out := Value{kind: kindList}
		for _, item := range v {
			out.items = append(out.items, Of(item))
		}
		return out
	case []any:
		out := Value{kind: kindList}
		for _, item := range v {
			out.items = append(out.items, Of(item))
		}
		return out
	case map[string]any:
		out := Value{kind: kindMap}
		for _, key := range sortedKeys(v) {
			out.entries = append(out.entries, entry{key: key, value: Of(v[key])})
		}
		return out
	}
	return Value{kind: kindPlain, text: fmt.Sprint(v)}
}

// At is v as if it stood at the place of other.
func (v Value) At(other Value) Value {
	v.File, v.Line, v.Column = other.File, other.Line, other.Column
	return v
}

// IsNull reports whether v is null. A value that is neither null, nor a list, nor a mapping is a
// scalar.
func (v Value) IsNull() bool { return v.kind == kindNull || v.kind == kindRefused }

// IsList reports whether v is a list.
func (v Value) IsList() bool { return v.kind == kindList }

// IsMap reports whether v is a mapping.
func (v Value) IsMap() bool { return v.kind == kindMap }

// Text is the text of a scalar as written, without quotes; empty for anything else.
func (v Value) Text() string { return v.text }

// Items are the elements of a list; nil for anything else.
func (v Value) Items() []Value { return slices.Clone(v.items) }

// Entries are the keys of a mapping with their values, in the order of the file; nil for
// anything else. Keys are relative to the mapping.
func (v Value) Entries() []Assignment {
	out := make([]Assignment, 0, len(v.entries))
	for _, e := range v.entries {
		out = append(out, Assignment{Key: e.key, Value: e.value, line: e.line, column: e.column})
	}
	return out
}

// Lookup is the value of a key of a mapping.
func (v Value) Lookup(key string) (Value, bool) {
	for _, e := range v.entries {
		if e.key == key {
			return e.value, true
		}
	}
	return Value{}, false
}

// Any is the value as Go data by the YAML 1.2 core schema: nil, bool, int64, uint64, float64
// (finite), string, []any or map[string]any.
func (v Value) Any() any {
	switch v.kind {
	case kindNull, kindRefused:
		return nil
	case kindQuoted:
		return v.text
	case kindList:
		out := make([]any, 0, len(v.items))
		for _, item := range v.items {
			out = append(out, item.Any())
		}
		return out
	case kindMap:
		out := make(map[string]any, len(v.entries))
		for _, e := range v.entries {
			out[e.key] = e.value.Any()
		}
		return out
	}
	return resolve(v.text)
}

// MarshalJSON is Any as JSON.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.Any()) }

// String is the value in YAML's flow form on one line, quotes only where they are needed.
func (v Value) String() string {
	switch v.kind {
	case kindNull, kindRefused:
		return "null"
	case kindPlain:
		return quoteIfNeeded(v.text, false)
	case kindQuoted:
		return quoteIfNeeded(v.text, true)
	case kindList:
		parts := make([]string, 0, len(v.items))
		for _, item := range v.items {
			parts = append(parts, item.String())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	parts := make([]string, 0, len(v.entries))
	for _, e := range v.entries {
		parts = append(parts, quoteIfNeeded(e.key, false)+": "+e.value.String())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// refused reports whether v, or something in it, was refused when it was parsed.
func (v Value) refused() bool {
	return v.kind == kindRefused || slices.ContainsFunc(v.items, Value.refused) ||
		slices.ContainsFunc(v.entries, func(e entry) bool { return e.value.refused() })
}

// shape names what v is, for messages.
func (v Value) shape() string {
	switch v.kind {
	case kindNull:
		return "nothing"
	case kindList:
		return "a list"
	case kindMap:
		return "a mapping"
	}
	return strconv.Quote(clip(v.text))
}

// clip keeps what is quoted in a message short.
func clip(s string) string {
	const most = 80
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

func (v Value) problem(key, format string, args ...any) Problem {
	return Problem{File: v.File, Line: v.Line, Column: v.Column, Key: key, Text: fmt.Sprintf(format, args...)}
}

// resolve gives a plain scalar its type by the YAML 1.2 core schema.
func resolve(text string) any {
	switch text {
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	if !startsLikeNumber(text) {
		return text
	}
	if n, err := parseInt(text); err == nil {
		return n
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u
	}
	f, err := parseFloat(text)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return text
	}
	return f
}

// startsLikeNumber keeps "nan", "inf" and "_1" strings.
func startsLikeNumber(text string) bool {
	rest := strings.TrimLeft(text, "+-")
	return len(text)-len(rest) <= 1 && rest != "" && (rest[0] == '.' || rest[0] >= '0' && rest[0] <= '9')
}

// quoteIfNeeded quotes text that YAML's flow form would read as something else.
func quoteIfNeeded(text string, isString bool) string {
	needs := text == "" || strings.TrimSpace(text) != text ||
		strings.ContainsAny(text, "{}[],\"'`#&*!|>%@\n\r\t\\") ||
		strings.Contains(text, ": ") || strings.HasSuffix(text, ":") ||
		strings.HasPrefix(text, "? ") || strings.HasPrefix(text, "- ") || text == "-" || text == "?" ||
		strings.HasPrefix(text, ":") || strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") ||
		!printable(text)
	if isString && !needs {
		_, stays := resolve(text).(string)
		needs = !stays || isNullText(text) || text == "<<"
	}
	if needs {
		return strconv.Quote(text)
	}
	return text
}

func printable(text string) bool {
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}

func isNullText(text string) bool {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}
