package workloads

import (
	"errors"
	"strings"

	"github.com/kbench/kbench/workloads/payload"
)

// PayloadConfig is what the payload's source is made with; stamped says that values have room for a
// stamp. Files that Check has not read are read.
func (d *Definition) PayloadConfig(stamped bool) (payload.Config, error) {
	p := d.Payload
	c := payload.Config{
		Kind: p.Kind, Size: p.Size, Compressibility: p.Compressibility, Stamped: stamped, Order: p.Order,
		Sizes:    payload.Sizes{Kind: p.Sizes.Kind, Min: p.Sizes.Min, Max: p.Sizes.Max, Deviation: p.Sizes.Deviation, Skew: p.Sizes.Skew},
		Template: p.Template, Fields: p.Fields, Headers: p.Headers, Seed: d.Seed,
		Keys: payload.Keys{Kind: p.Keys.Kind, Size: p.Keys.Size, N: p.Keys.N, Skew: p.Keys.Skew},
	}
	for _, load := range []func(*payload.Config) error{d.loadValues, d.loadSizes, d.loadKeys} {
		if err := load(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// MessageBounds are the lengths of values and keys.
func (d *Definition) MessageBounds() (values, keys payload.Bounds, err error) {
	c, err := d.PayloadConfig(false)
	if err != nil {
		return values, keys, err
	}
	return payload.Measure(c)
}

// StampsValues says whether messages carry their stamp in the value, and StampsHeaders whether in a
// header; neither with payload.stamp none.
func (d *Definition) StampsValues() bool {
	p := d.Payload
	if p.Stamp != "auto" || p.Kind != payload.KindRandom && p.Kind != "" {
		return p.Stamp == "value"
	}
	values, _, err := d.MessageBounds()
	return err == nil && values.Min >= payload.StampSize
}

// StampsHeaders says whether messages carry their stamp in a header.
func (d *Definition) StampsHeaders() bool {
	return d.Payload.Stamp != "none" && !d.StampsValues()
}

func (d *Definition) loadValues(c *payload.Config) error {
	p := d.Payload
	if p.File == "" || p.Kind != payload.KindLines && p.Kind != payload.KindTemplate {
		return nil
	}
	file, err := d.file(p.File)
	if err != nil {
		return at("payload.file", err)
	}
	if p.Kind == payload.KindTemplate {
		c.Template = strings.TrimSuffix(string(file.data), "\n")
		return nil
	}
	c.Lines, err = file.split(p.Delimiter)
	return at("payload.file", ofFile(p.File, err))
}

func (d *Definition) loadKeys(c *payload.Config) error {
	k := d.Payload.Keys
	if k.File == "" || k.Kind == payload.KeysNone {
		return nil
	}
	file, err := d.file(k.File)
	if err != nil {
		return at("payload.keys.file", err)
	}
	c.Keys.Lines, err = file.split("\n")
	return at("payload.keys.file", ofFile(k.File, err))
}

func (d *Definition) loadSizes(c *payload.Config) error {
	s := d.Payload.Sizes
	if s.Kind != "file" {
		return nil
	}
	c.Sizes.Kind = payload.SizesList
	if s.File == "" {
		return at("payload.sizes.kind", errors.New("file needs payload.sizes.file, a file of sizes"))
	}
	file, err := d.file(s.File)
	if err != nil {
		return at("payload.sizes.file", err)
	}
	if file.sizes == nil {
		file.sizes, err = readSizes(s.File, file.data)
	}
	c.Sizes.List = file.sizes
	return at("payload.sizes.file", err)
}
