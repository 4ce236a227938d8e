// Package security reads how to connect to a cluster, TLS and SASL, from a file and from the
// environment: kbench's own YAML, or the client.properties that Kafka's own tools take.
//
// Everything is checked when it is read, certificates and keys included; every problem is
// reported at once, with file and line, in the words of the file it came from. Secrets are in no
// problem, no warning, and in nothing that a Settings prints.
//
// # Where a value comes from
//
// The file goes before the environment: KBENCH_SASL_PASSWORD stands in for net.sasl.password, and
// so on for every key of net.tls and net.sasl (see [Variables]).
package security

import (
	"crypto/tls"
	"log/slog"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/settings"
)

// Settings say how to connect. The zero value is plaintext without authentication. It is read
// only once it is made.
type Settings struct {
	// Brokers are the bootstrap addresses that the file names; none is no problem.
	Brokers []string
	// Warnings are what users should know of what was read, a line each.
	Warnings []string
	// Others are the properties of a Java file that are not about connecting, for who can Translate
	// them; Ignored is the one of Warnings that says that they are not used.
	Others  []Property
	Ignored string

	given bool
	tls   *tls.Config
	sasl  client.SASLConfig
}

// Load reads a file, unless its name is empty, and the environment (as os.Environ gives it). A
// file whose name ends in .yaml or .yml is kbench's YAML, any other is Java properties. What is
// wrong is a settings.Problems.
func Load(file string, environ []string) (*Settings, error) {
	r := newReader(file)
	if file != "" {
		r.readFile(file)
	}
	r.readEnviron(environ)
	if err := r.problems.Err(); err != nil {
		return nil, err
	}
	out := r.build()
	if err := r.problems.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// Given says whether there is a file, or the environment asks for TLS or SASL. A password in the
// environment alone asks for nothing.
func (s *Settings) Given() bool { return s.given }

// Apply puts TLS and SASL into a client's configuration.
func (s *Settings) Apply(c *client.Config) {
	c.Net.TLS, c.Net.SASL = nil, s.sasl
	if s.tls != nil {
		c.Net.TLS = s.tls.Clone()
	}
}

// Protocol is Kafka's name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
func (s *Settings) Protocol() string {
	name := "PLAINTEXT"
	if s.tls != nil {
		name = "SSL"
	}
	if s.sasl.Mechanism != "" {
		name = "SASL_" + name
	}
	return name
}

// Mechanism is the SASL mechanism; empty without one.
func (s *Settings) Mechanism() string { return s.sasl.Mechanism }

// String says how to connect, without secrets.
func (s *Settings) String() string {
	if s.sasl.Mechanism == "" {
		return s.Protocol()
	}
	return s.Protocol() + " " + s.sasl.String()
}

// GoString is String, so that %#v shows no secret either.
func (s *Settings) GoString() string { return s.String() }

// LogValue is String for logs.
func (s *Settings) LogValue() slog.Value { return slog.StringValue(s.String()) }

// reader collects what was given and everything wrong with it.
type reader struct {
	file     string // "" without one
	keys     keys
	given    map[string]place // our key → where it was given
	java     bool             // the file is in Java's words
	others   []Property       // of a Java file: what is not about connecting
	ignored  string           // the warning that these are not used
	warnings []string
	problems settings.Problems
}

// place is where a key was given, and what it is called there.
type place struct {
	file         string
	line, column int
	name         string // of the key in that file; empty for a variable
}

func newReader(file string) *reader {
	return &reader{file: file, keys: defaults(), given: map[string]place{}}
}

// problem reports something about one of our keys, at the place where it was given, or at the
// file when it was not.
func (r *reader) problem(key, text string) {
	p := settings.Problem{Text: text}
	at, ok := r.given[key]
	if !ok {
		at = place{file: r.file, name: r.nameOf(key)}
	}
	p.File, p.Line, p.Column, p.Key = at.file, at.line, at.column, at.name
	r.problems = append(r.problems, p)
}

// nameOf is what one of our keys is called in the file at hand, for users.
func (r *reader) nameOf(key string) string {
	if r.java {
		if name := javaName(key); name != "" {
			return name
		}
	}
	return key
}
