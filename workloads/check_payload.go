package workloads

import (
	"errors"
	"strings"

	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads/payload"
)

// payload checks what messages hold, and reads the files that it is made from.
func (c *checker) payload() {
	p := &c.Payload
	c.count("payload.size", int64(p.Size), 0, payload.MaxSize)
	if !(p.Compressibility >= 0 && p.Compressibility <= 0.95) {
		c.add("payload.compressibility", "is %v, must be between 0 and 0.95", p.Compressibility)
	}
	for key, path := range map[string]*string{"payload.file": &p.File, "payload.keys.file": &p.Keys.File, "payload.sizes.file": &p.Sizes.File} {
		if *path != "" {
			*path = c.pathOf(key, *path)
		}
	}
	before := len(c.problems)
	c.needless()
	c.missing()
	c.textsOfPayload()
	if len(c.problems) > before {
		return
	}
	config, err := c.PayloadConfig(false)
	if err == nil {
		c.payloadConfig(config)
		return
	}
	var keyed *keyedError
	if errors.As(err, &keyed) {
		c.add(keyed.key, "%v", keyed.err)
	}
}

// textsOfPayload checks templates and generators, each at its own place.
func (c *checker) textsOfPayload() {
	p := c.Payload
	switch p.Kind {
	case payload.KindTemplate:
		if err := payload.CheckTemplate(p.Template); err != nil {
			c.add("payload.template", "%v", err)
		}
	case payload.KindJSON:
		c.entry("payload.fields", payload.CheckFields(p.Fields))
	}
	c.entry("payload.headers", payload.CheckHeaders(p.Headers))
	if _, taken := p.Headers[stampHeader]; taken {
		c.entry("payload.headers", &payload.FieldError{Name: stampHeader, Err: errors.New("is the header that carries the stamp; choose another name")})
	}
}

// stampHeader is the name of the header that stamps are in.
const stampHeader = "kbench"

// entry is a problem with a mapping, at the entry that is to blame.
func (c *checker) entry(key string, err error) {
	if err == nil {
		return
	}
	a := settings.Assignment{Key: key, Value: c.given[key]}
	var field *payload.FieldError
	if errors.As(err, &field) {
		for _, e := range a.Value.Entries() {
			if e.Key == field.Name {
				a.Value = e.Value
			}
		}
	}
	c.problems = append(c.problems, a.Problem("%v", err))
}

// needless refuses what belongs to another kind of payload, where it was given.
func (c *checker) needless() {
	p, plain := c.Payload, Default().Payload
	for _, key := range []struct {
		name, kinds string
		changed     bool
	}{
		{"size", "random", p.Size != plain.Size},
		{"sizes.kind", "random", p.Sizes.Kind != plain.Sizes.Kind},
		{"compressibility", "random", p.Compressibility != plain.Compressibility},
		{"file", "lines template", p.File != ""},
		{"delimiter", "lines", p.Delimiter != plain.Delimiter},
		{"order", "lines", p.Order != plain.Order},
		{"template", "template", p.Template != ""},
		{"fields", "json", len(p.Fields) > 0},
	} {
		_, given := c.given["payload."+key.name]
		if (given || key.changed) && !strings.Contains(key.kinds, p.Kind) && !c.mayChange("payload.kind") {
			c.add("payload."+key.name, "belongs to kind %s, and payload.kind is %s", strings.ReplaceAll(key.kinds, " ", " or "), p.Kind)
		}
	}
	if s := p.Sizes; s.Kind != "file" && s.File != "" {
		c.add("payload.sizes.file", "belongs to kind file, and payload.sizes.kind is %s", s.Kind)
	}
	if p.Keys.File != "" && p.Keys.Kind == payload.KeysNone && !c.mayChange("payload.keys.kind") {
		c.add("payload.keys.file", "is not used: payload.keys.kind is none")
	}
}

// missing asks for what a kind of payload needs.
func (c *checker) missing() {
	p := c.Payload
	switch {
	case p.Kind == payload.KindLines && p.File == "":
		c.add("payload.kind", "lines needs payload.file, a file of values")
	case p.Kind == payload.KindTemplate && p.File == "" && p.Template == "":
		c.add("payload.kind", "template needs payload.template, a text, or payload.file")
	case p.Kind == payload.KindTemplate && p.File != "" && p.Template != "":
		c.add("payload.template", "is given, and so is payload.file, which holds the template in its place")
	}
	if p.Stamp == "value" && p.Kind != payload.KindRandom {
		c.add("payload.stamp", "is value, but values of kind %s have no room for a stamp; use header", p.Kind)
	}
}

// payloadConfig checks sizes and keys, and what values have room for.
func (c *checker) payloadConfig(config payload.Config) {
	p := c.Payload
	wrong := false
	if err := payload.CheckKeys(config.Keys); err != nil {
		c.add("payload.keys", "%v", err)
		wrong = true
	}
	if err := payload.CheckSizes(config.Sizes, p.Size); err != nil {
		c.add("payload.sizes", "%v", err)
		wrong = true
	}
	values, _, err := payload.Measure(config)
	if err != nil {
		key, text := "payload", strings.TrimPrefix(err.Error(), "payload: ")
		if p.File != "" {
			key, text = "payload.file", p.File+": "+text
		}
		if !wrong && !c.sizeIsWrong() {
			c.add(key, "%s", text)
		}
		return
	}
	if p.Kind != payload.KindRandom {
		return
	}
	if p.Stamp == "value" && values.Min < payload.StampSize {
		c.add("payload.size", "is %d, but payload.stamp=value needs %d bytes for the stamp", values.Min, payload.StampSize)
	}
	stamped := p.Stamp == "value" || p.Stamp == "auto" && values.Min >= payload.StampSize
	if most := payload.MaxCompressibility(int(values.Mean), stamped); p.Compressibility > most && c.explicit("payload.compressibility") {
		c.add("payload.compressibility", "is %v, but values of %d bytes compress by %.2f at most, as each must differ; use larger values%s",
			p.Compressibility, int(values.Mean), most, map[bool]string{true: " or payload.stamp=header"}[stamped])
	}
}

// sizeIsWrong says that what is wrong with size or compressibility was said already.
func (c *checker) sizeIsWrong() bool {
	p := c.Payload
	return p.Size < 0 || p.Size > payload.MaxSize || !(p.Compressibility >= 0 && p.Compressibility <= 0.95)
}

// explicit reports whether a key of the payload was given; without places to look at, whether
// it differs from the default. The default asks for what the size allows, no more.
func (c *checker) explicit(key string) bool {
	if c.given == nil {
		return c.Payload.Compressibility != Default().Payload.Compressibility
	}
	_, given := c.given[key]
	return given
}
