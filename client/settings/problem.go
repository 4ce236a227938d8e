// Package settings turns YAML and key=value arguments into tagged Go structs, strictly: every
// problem is reported at once, with its place, and a mistyped key with the nearest valid one.
//
// A struct describes its keys by tags: key:"requiredAcks" names a field, unit:"bytes" and
// enum:"a,b" restrict its value, doc:"…" explains it and secret:"true" keeps it out of every
// output. A nested struct is a section; fields without a key, with key:"-" and embedded ones
// are not settings. A leaf is a string, bool, integer, float, time.Duration, a list of those,
// a map[string]string, or a type that implements encoding.TextUnmarshaler and TextMarshaler.
//
// The package knows nothing of Kafka and of kbench; client configuration and workload
// definitions share it.
package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong with what was given. Line and Column count from 1; 0 when the
// place is not a file (File is then the flag). Text never holds the value of a secret.
type Problem struct {
	File         string
	Line, Column int
	Key          string
	Text         string
}

// String is "file:line:column: key: text", without the parts that are unknown.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
	}
	if p.Line > 0 {
		if p.File != "" {
			b.WriteByte(':')
		}
		fmt.Fprintf(&b, "%d:%d", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Error is String: a single problem is an error too.
func (p Problem) Error() string { return p.String() }

// Problems is everything wrong with what was given. A nil or empty one means nothing is; use
// Err to get a nil error then.
type Problems []Problem

// Error lists the problems, one per line, by file and place.
func (ps Problems) Error() string {
	lines := make([]string, 0, len(ps))
	for _, p := range ps.Sorted() {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// Err is the problems as an error: nil when there are none.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps.Sorted()
}

// Sorted is a copy in order of file, line and column, without repetitions. Problems at the
// same place keep their order.
func (ps Problems) Sorted() Problems {
	out := slices.Clone(ps)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(out)
}

// Assignment gives a value to a key: the dotted name of a leaf ("producer.requiredAcks") or of
// a whole section ("producer.flush").
type Assignment struct {
	Key   string
	Value Value

	line, column int // where the key stood; 0 when not in a file
}

// KeyProblem is a problem with the key of this assignment, at its place.
func (a Assignment) KeyProblem(format string, args ...any) Problem {
	at := a.Value
	if a.line > 0 {
		at.Line, at.Column = a.line, a.column
	}
	return at.problem(a.Key, format, args...)
}

// Problem is a problem with this assignment, at the place of its value.
func (a Assignment) Problem(format string, args ...any) Problem {
	return a.Value.problem(a.Key, format, args...)
}
