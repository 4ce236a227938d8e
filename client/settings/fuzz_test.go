package settings

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzParseApply: nothing a file holds may panic, and what was accepted says so consistently.
func FuzzParseApply(f *testing.F) {
	for _, seed := range []string{
		"", "clientID: a\n", "producer:\n  flush: {bytes: 64KiB, frequency: 5ms}\n", "a: &a [*a]\n", "--- \n...\n---\n",
		"? x\n: y\n", "options: {a.b: 1, <<: {c: 2}}", "clientID: |\n  x\n", "{a: b, c: [d, {e: f}]}", "%YAML 1.2\n---\nseed: 1",
		"seed: 1e99999999", "a:\n- b\n-  - c\n", "\"a\\u0000\": 1", "a: !!str 5", "topics:\n  - 'it''s'\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		as, problems := Parse("f.yaml", data)
		for _, p := range problems {
			if p.File != "f.yaml" || p.Text == "" {
				t.Fatalf("a problem without its place: %#v", p)
			}
		}
		c := defaults()
		if applied := Apply(c, as...); len(applied) == 0 && len(problems) == 0 {
			if _, err := json.Marshal(Effective(c)); err != nil {
				t.Fatal(err)
			}
		}
		if checked := Check(Fields(defaults()), as...); (len(checked) == 0) != (len(Apply(defaults(), as...)) == 0) {
			t.Fatalf("Check and Apply disagree: %v", checked)
		}
		for _, a := range as {
			if _, err := json.Marshal(a.Value); err != nil {
				t.Fatal(err)
			}
			_ = a.Value.String()
		}
	})
}

func FuzzParseSweep(f *testing.F) {
	f.Add("a={b: 1},{c: 2}")
	f.Add(`a="x,y",'z'`)
	f.Add("a=]],[[,\"")
	f.Fuzz(func(t *testing.T, arg string) {
		key, values, p := ParseSweep("--sweep", arg)
		if p == nil && (key == "" || len(values) == 0) {
			t.Fatal("neither values nor a problem")
		}
		_, _ = ParseSet("--set", arg)
	})
}

// TestStringReadsBack: what String writes is the same value when read again, so that a sweep
// can be given back to --sweep as printed.
func TestStringReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genValue(3).Draw(t, "value")
		v := Of(want)
		back, problems := ParseValue("x", v.String())
		if len(problems) > 0 {
			t.Fatalf("%s: %v", v, problems)
		}
		if !reflect.DeepEqual(back.Any(), v.Any()) {
			t.Fatalf("%s became %#v, was %#v", v, back.Any(), v.Any())
		}
	})
}

func genValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 5+min(depth, 1)*2).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.Int64().Draw(t, "int")
		case 3:
			return rapid.Float64Range(-1e9, 1e9).Draw(t, "float")
		case 4:
			return strings.ReplaceAll(rapid.String().Draw(t, "string"), "\x00", "")
		case 5:
			return rapid.SampledFrom([]string{"true", "null", "~", "5", "1e3", ".5", "-", "a: b", "#x", " x", "é", "<<", "=", "0x1f", "---", "it's", "a\tb", "%a", "yes", "?", "\u2028", "2001-01-01", "1_0", "+.inf"}).Draw(t, "odd")
		case 6:
			return rapid.SliceOfN(genValue(depth-1), 0, 3).Draw(t, "list")
		}
		return rapid.MapOfN(rapid.StringMatching(`[a-z][a-zA-Z.]{0,5}`), genValue(depth-1), 0, 3).Draw(t, "map")
	})
}
