package settings

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decode sets a leaf from v. into is of the field's type.
func (f Field) decode(v Value, into reflect.Value) *Problem {
	if v.refused() {
		return nil
	}
	if err := f.decodeType(v, into); err != nil {
		p := v.problem(f.Key, "%s", f.explain(v, err))
		var at *elementError
		if errors.As(err, &at) {
			p.Line, p.Column = at.value.Line, at.value.Column
		}
		return &p
	}
	return nil
}

// elementError puts an error at the element of a list or map it belongs to.
type elementError struct {
	value Value
	err   error
}

func (e *elementError) Error() string { return e.err.Error() }
func (e *elementError) Unwrap() error { return e.err }

// explain is the message for a user; of a secret it says what is needed, never what was given.
func (f Field) explain(v Value, err error) string {
	if f.Secret {
		return "the value given cannot be used: " + needed(f.typ, f.Unit) + " is needed"
	}
	if v.IsNull() {
		return "has no value; leave the key out for the default"
	}
	return err.Error()
}

// needed says what a type takes.
func needed(t reflect.Type, unit string) string {
	switch name := typeName(t); name {
	case "duration":
		return "a duration with a unit, e.g. 5ms, 10s or 1m30s,"
	case "int":
		return "a whole number" + unitExample(unit)
	case "number":
		return "a number" + unitExample(unit)
	case "bool":
		return "true or false"
	case "map":
		return "a mapping of names to values, e.g. {name: value},"
	case "string", "text":
		return "a text"
	case "text or mapping":
		return "a text or a mapping"
	default:
		return "a " + name
	}
}

func unitExample(unit string) string {
	switch {
	case unit == "bytes":
		return " of bytes, e.g. 65536 or 64KiB,"
	case strings.HasPrefix(unit, "messages"):
		return " of " + unit + ", e.g. 20000 or 20k,"
	case unit == "share":
		return " as a share, e.g. 0.05,"
	case unit != "":
		return " of " + unit
	}
	return ""
}

// mismatch is the plain "this is not what is needed".
func (f Field) mismatch(v Value, t reflect.Type) error {
	return fmt.Errorf("%s is needed, not %s", needed(t, f.Unit), v.shape())
}

func (f Field) decodeType(v Value, into reflect.Value) error {
	t := into.Type()
	switch {
	case t == stringMapType:
		return f.decodeMap(v, into)
	case t.Kind() == reflect.Slice && !isText(t):
		return f.decodeList(v, into)
	case v.kind == kindMap && isEntries(t):
		return into.Addr().Interface().(EntriesUnmarshaler).UnmarshalEntries(v.Entries())
	case v.kind != kindPlain && v.kind != kindQuoted:
		return f.mismatch(v, t)
	}
	if err := f.checkEnum(v.text); err != nil {
		return err
	}
	switch {
	case t == durationType:
		d, err := ParseDuration(v.text)
		into.SetInt(int64(d))
		return err
	case isText(t):
		return into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(v.text))
	case t.Kind() == reflect.String:
		into.SetString(v.text)
		return nil
	case t.Kind() == reflect.Bool:
		b, isBool := resolve(v.text).(bool)
		if !isBool || v.kind == kindQuoted {
			return f.mismatch(v, t)
		}
		into.SetBool(b)
		return nil
	}
	return f.decodeNumber(v, into)
}

func (f Field) decodeNumber(v Value, into reflect.Value) error {
	t := into.Type()
	number, scale, err := f.split(v.text)
	if err != nil {
		return err
	}
	switch {
	case into.CanInt():
		n, err := scaledInt(number, scale)
		if err != nil || into.OverflowInt(n) {
			return f.badNumber(v, t, err)
		}
		into.SetInt(n)
	case into.CanUint():
		n, err := scaledUint(number, scale)
		if err != nil || into.OverflowUint(n) {
			return f.badNumber(v, t, err)
		}
		into.SetUint(n)
	case into.CanFloat():
		x, err := parseFloat(number)
		x *= float64(scale)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			return f.badNumber(v, t, err)
		}
		into.SetFloat(x)
	default:
		return fmt.Errorf("cannot be set: type %s is not supported", t)
	}
	return nil
}

// badNumber tells a number that does not fit from what is no number.
func (f Field) badNumber(v Value, t reflect.Type, err error) error {
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s is outside the range of the setting", v.shape())
	}
	return f.mismatch(v, t)
}

func (f Field) checkEnum(text string) error {
	if len(f.Enum) == 0 || slices.Contains(f.Enum, text) {
		return nil
	}
	list := strings.Join(f.Enum, ", ")
	if near := Nearest(text, f.Enum); near != "" {
		return fmt.Errorf("%q is not one of %s; did you mean %s?", clip(text), list, near)
	}
	return fmt.Errorf("%q is not one of %s", clip(text), list)
}

func (f Field) decodeList(v Value, into reflect.Value) error {
	if v.kind != kindList {
		return fmt.Errorf("a list is needed, e.g. [a, b], not %s", v.shape())
	}
	out := reflect.MakeSlice(into.Type(), len(v.items), len(v.items))
	for i, item := range v.items {
		if err := f.decodeType(item, out.Index(i)); err != nil {
			return &elementError{value: item, err: fmt.Errorf("element %d: %w", i+1, err)}
		}
	}
	into.Set(out)
	return nil
}

func (f Field) decodeMap(v Value, into reflect.Value) error {
	if v.kind != kindMap {
		return f.mismatch(v, into.Type())
	}
	out := make(map[string]string, len(v.entries))
	for _, e := range v.entries {
		if e.value.kind != kindPlain && e.value.kind != kindQuoted {
			return &elementError{value: e.value, err: fmt.Errorf("%s: a text is needed, not %s", e.key, e.value.shape())}
		}
		out[e.key] = e.value.text
	}
	into.Set(reflect.ValueOf(out))
	return nil
}

// ParseDuration reads a duration in Go's form. Only 0 goes without a unit, and -1, Kafka's word for
// "never" where a setting has one: it is read as -1ns.
func ParseDuration(text string) (time.Duration, error) {
	if text == "-1" {
		return -1, nil
	}
	if text != "0" {
		if _, err := parseFloat(text); err == nil {
			return 0, fmt.Errorf("%q has no unit; write %sms, %ss or %sm", text, text, text, text)
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; write it like 5ms, 10s or 1m30s", clip(text))
	}
	return d, nil
}
