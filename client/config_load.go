package client

import (
	"errors"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// Apply sets the keys given, as they stand in a YAML file or after --set, over c. It is strict:
// unknown keys, wrong types and values out of their enumeration are all reported at once, with
// their places; c is unchanged then.
func (c *Config) Apply(as ...settings.Assignment) error {
	trial := *c
	if ps := settings.Apply(&trial, as...); len(ps) > 0 {
		return ps
	}
	*c = trial
	return nil
}

// Load reads a YAML file's text over the defaults. name is used in errors.
func Load(name string, text []byte) (*Config, error) {
	as, ps := settings.Parse(name, text)
	if len(ps) > 0 {
		return nil, ps
	}
	c := NewConfig()
	if err := c.Apply(as...); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// Settings are the values in effect by key ("producer.requiredAcks"), secrets left out.
func (c *Config) Settings() map[string]any { return settings.Effective(c) }

// Schema describes every key of a Config, and checks assignments against it; it is how a
// workload file's client settings are known without the workload knowing the client.
type Schema struct{}

// Fields lists every key with its type, unit, default and documentation.
func (Schema) Fields() []settings.Field { return settings.Fields(NewConfig()) }

// Check applies the assignments over the defaults and validates the whole.
func (Schema) Check(as []settings.Assignment) settings.Problems {
	c := NewConfig()
	if ps := settings.Apply(c, as...); len(ps) > 0 {
		return ps
	}
	var bad *ConfigError
	if !errors.As(c.Validate(), &bad) {
		return nil
	}
	return locate(bad.Problems, as)
}

// locate gives each problem the place of the last assignment to its key, or to a section that
// holds it; a problem of defaults alone has none.
func locate(ps []ConfigProblem, as []settings.Assignment) settings.Problems {
	out := make(settings.Problems, 0, len(ps))
	for _, p := range ps {
		at := settings.Problem{Key: p.Key, Text: p.Text}
		for _, a := range as {
			if a.Key == p.Key || strings.HasPrefix(p.Key, a.Key+".") {
				at.File, at.Line, at.Column = a.Value.File, a.Value.Line, a.Value.Column
			}
		}
		out = append(out, at)
	}
	return out
}
