package security

import (
	"slices"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// Variable is an environment variable that stands in for a key of the file.
type Variable struct {
	Name   string // KBENCH_SASL_PASSWORD
	Key    string // net.sasl.password
	Doc    string
	Type   string // as in settings.Field; anything but a text is written as in YAML
	Enum   []string
	Secret bool
}

// Prefixes of our variables; one that starts so and is none of them is a mistake.
const (
	prefixTLS  = "KBENCH_TLS_"
	prefixSASL = "KBENCH_SASL_"
)

// Variables are the environment variables that are looked at, in the order of the keys.
func Variables() []Variable {
	prototype := defaults()
	var out []Variable
	for _, f := range settings.Fields(&prototype) {
		name, ok := strings.CutPrefix(f.Key, "net.")
		if !ok {
			continue
		}
		out = append(out, Variable{
			Name: "KBENCH_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_")),
			Key:  f.Key, Doc: f.Doc, Type: f.Type, Enum: f.Enum, Secret: f.Secret,
		})
	}
	return out
}

// readEnviron takes what the file did not say. A variable that is set and empty counts as not
// set, as shells and containers make them.
func (r *reader) readEnviron(environ []string) {
	vars := Variables()
	names := make([]string, 0, len(vars))
	for _, v := range vars {
		names = append(names, v.Name)
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if value == "" || !strings.HasPrefix(name, prefixTLS) && !strings.HasPrefix(name, prefixSASL) {
			continue
		}
		i := slices.Index(names, name)
		if i < 0 {
			r.unknownVariable(name, names)
			continue
		}
		if !r.has(vars[i].Key) {
			r.setVariable(vars[i], value)
		}
	}
}

func (r *reader) unknownVariable(name string, known []string) {
	p := settings.Problem{File: "$" + name, Text: "unknown variable"}
	if near := settings.Nearest(name, known); near != "" {
		p.Text += "; did you mean " + near + "?"
	}
	r.problems = append(r.problems, p)
}

// setVariable takes texts as they are, anything else in YAML's flow form.
func (r *reader) setVariable(v Variable, value string) {
	at := place{file: "$" + v.Name}
	given := settings.Of(value)
	if v.Type != "string" {
		var problems settings.Problems
		if given, problems = settings.ParseValue(at.file, value); len(problems) > 0 {
			r.problems = append(r.problems, problems...)
			return
		}
	}
	r.set(v.Key, given, at)
}
