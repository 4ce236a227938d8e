package settings

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// pair is a text type that may be written as a mapping: "a=b" or {key: a, value: b}.
type pair struct{ key, value string }

func (p *pair) UnmarshalText(text []byte) error {
	p.key = string(text)
	return nil
}

func (p pair) MarshalText() ([]byte, error) { return []byte(p.key + "=" + p.value), nil }

func (p *pair) UnmarshalEntries(entries []Assignment) error {
	for _, e := range entries {
		switch e.Key {
		case "key":
			p.key = e.Value.Text()
		case "value":
			p.value = e.Value.Text()
		default:
			return errors.New(e.Key + " is neither key nor value")
		}
	}
	return nil
}

func TestTextsThatMayBeMappings(t *testing.T) {
	type holder struct {
		One  pair   `key:"one"`
		Many []pair `key:"many"`
		Acks []acks `key:"acks"`
	}
	var h holder
	as, problems := Parse("w.yaml", []byte("one: {key: a, value: b}\nmany: [x, {value: y, key: z}]"))
	require.Empty(t, problems)
	require.Empty(t, Apply(&h, as...))
	require.Equal(t, holder{One: pair{"a", "b"}, Many: []pair{{"x", ""}, {"z", "y"}}}, h)
	require.Equal(t, []any{"x=", "z=y"}, Effective(&h)["many"], "shown as text")
	fields := Fields(&h)
	require.Equal(t, "text or mapping", fields[0].Type)
	require.Equal(t, "list of text or mapping", fields[1].Type)
	require.Equal(t, "list of text", fields[2].Type)

	for text, want := range map[string]string{
		"many: [x, {nope: 1}]": "w.yaml:1:11: many: element 2: nope is neither key nor value",
		"many: [[1]]":          "w.yaml:1:8: many: element 1: a text or a mapping is needed, not a list",
		"acks: [{key: a}]":     "w.yaml:1:8: acks: element 1: a text is needed, not a mapping",
		"one: [a]":             "w.yaml:1:6: one: a text or a mapping is needed, not a list",
	} {
		as, problems := Parse("w.yaml", []byte(text))
		require.Empty(t, problems)
		require.EqualError(t, Apply(&h, as...).Err(), want, text)
	}
}
