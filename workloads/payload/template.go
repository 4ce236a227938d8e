package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxTemplate bounds the text of a template, and the number of fields and of headers is bounded by
// maxFields.
const (
	MaxTemplate = 1 << 20
	maxFields   = 1000
)

// program writes values: texts, and between them what generators make of the message's number.
type program struct {
	pieces []piece
	seed   uint64
	bounds Bounds
}

// piece is a text and what comes after it, if anything.
type piece struct {
	text  []byte
	write writer
}

// CheckTemplate reports what is wrong with a template, as New does.
func CheckTemplate(text string) error {
	_, err := compile(text)
	return err
}

// compile reads a template: text with generators in {{ }}.
func compile(text string) (*program, error) {
	if len(text) > MaxTemplate {
		return nil, fmt.Errorf("a template of %d bytes; %d is the most", len(text), MaxTemplate)
	}
	p := &program{}
	for {
		before, rest, found := strings.Cut(text, "{{")
		if !found {
			p.add(text, generator{})
			err := p.tooLong()
			return p, err
		}
		inner, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, fmt.Errorf("{{%.40s has no }}", rest)
		}
		g, err := parseGenerator(inner)
		if err != nil {
			return nil, fmt.Errorf("{{%.40s}}: %w", inner, err)
		}
		p.add(before, g)
		text = after
	}
}

func (p *program) add(text string, g generator) {
	p.bounds = p.bounds.plus(exactly(len(text))).plus(g.bounds)
	p.pieces = append(p.pieces, piece{text: []byte(text), write: g.write})
}

func (p *program) tooLong() error {
	if p.bounds.Max > MaxSize {
		return fmt.Errorf("values of up to %d bytes; %d is the most", p.bounds.Max, MaxSize)
	}
	return nil
}

// append writes the value of message n behind dst.
func (p *program) append(dst []byte, n int64) []byte {
	word := mix(uint64(n) ^ p.seed)
	for i := range p.pieces {
		q := &p.pieces[i]
		dst = append(dst, q.text...)
		if q.write != nil {
			dst = q.write(dst, n, word)
			word = mix(word)
		}
	}
	return dst
}

// FieldError is a field of a JSON value, or a header, that cannot be made.
type FieldError struct {
	Name string
	Err  error
}

func (e *FieldError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap gives what is wrong with it.
func (e *FieldError) Unwrap() error { return e.Err }

// CheckFields reports what is wrong with the fields of a JSON value, as New does; the error is a
// *FieldError where one field is to blame.
func CheckFields(fields map[string]string) error {
	_, err := compileJSON(fields)
	return err
}

// compileJSON makes the program of an object. Fields are in the order of their names; a dot in a name
// leads into an object.
func compileJSON(fields map[string]string) (*program, error) {
	if len(fields) == 0 {
		return nil, errors.New("a JSON value needs at least one field")
	}
	if len(fields) > maxFields {
		return nil, fmt.Errorf("%d fields; %d is the most", len(fields), maxFields)
	}
	p := &program{}
	text, open := "{", []string(nil)
	// A name's last byte counts as if a dot followed, so that what is inside an object lies together.
	names := slices.SortedFunc(maps.Keys(fields), func(a, b string) int { return strings.Compare(a+".", b+".") })
	for i, name := range names {
		path := strings.Split(name, ".")
		if slices.Contains(path, "") {
			return nil, &FieldError{name, errors.New("a name between dots is empty")}
		}
		if i > 0 && strings.HasPrefix(name, names[i-1]+".") {
			return nil, &FieldError{name, fmt.Errorf("%s is a value, so that nothing can be inside it", names[i-1])}
		}
		same := 0
		for same < len(open) && same < len(path)-1 && open[same] == path[same] {
			same++
		}
		text += strings.Repeat("}", len(open)-same)
		if i > 0 {
			text += ","
		}
		open = path[: len(path)-1 : len(path)-1]
		for _, outer := range open[same:] {
			text += quoted(outer) + ":{"
		}
		g, err := parseGenerator(fields[name])
		if err != nil {
			return nil, &FieldError{name, err}
		}
		text += quoted(path[len(path)-1]) + ":"
		p.add(text, g.inJSON())
		text = ""
	}
	p.add(text+strings.Repeat("}", len(open)+1), generator{})
	err := p.tooLong()
	return p, err
}

// quoted is a text as JSON has it.
func quoted(text string) string {
	out, _ := json.Marshal(text) // a string always can
	return string(out)
}
