package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func source(t testing.TB, c Config) *Source {
	t.Helper()
	s, err := New(c)
	require.NoError(t, err)
	return s
}

// Sizes are spread as asked, within their bounds, and what Measure says of them is so.
func TestSizes(t *testing.T) {
	const n = 40_000
	for _, row := range []struct {
		says       string
		size       int
		sizes      Sizes
		mean       float64
		p10, p50   int
		least, top int
	}{
		{"uniform: every size as often", 0, Sizes{Kind: SizesUniform, Min: 100, Max: 199}, 149.5, 109, 149, 100, 199},
		{"normal: around the size", 1000, Sizes{Kind: SizesNormal, Min: 100, Max: 5000, Deviation: 100}, 1000, 872, 1000, 550, 1450},
		{"normal, cut off below", 100, Sizes{Kind: SizesNormal, Min: 90, Max: 1000, Deviation: 20}, 104, 90, 100, 90, 200},
		{"zipf: small ones above all", 0, Sizes{Kind: SizesZipf, Min: 50, Max: 1000, Skew: 1.5}, 72.6, 50, 51, 50, 1000},
		{"a list: as often as each is there", 0, Sizes{Kind: SizesList, List: []int32{10, 10, 10, 500}}, 132.5, 10, 10, 10, 500},
		{"one size", 70, Sizes{Kind: SizesUniform, Min: 70, Max: 70}, 70, 70, 70, 70, 70},
	} {
		t.Run(row.says, func(t *testing.T) {
			c := Config{Size: row.size, Sizes: row.sizes, Seed: 5}
			s, again := source(t, c), source(t, c)
			sum, all := 0, make([]int, 0, n)
			for i := range int64(n) {
				size := len(s.Value(nil, i))
				if size != len(again.Value(nil, i)) {
					t.Fatal("the same seed, the same size")
				}
				sum, all = sum+size, append(all, size)
			}
			slices.Sort(all)
			mean := float64(sum) / n
			values, _, err := Measure(c)
			require.NoError(t, err)
			assert.InEpsilon(t, row.mean, mean, 0.05)
			assert.InEpsilon(t, values.Mean, mean, 0.04, "what is said beforehand")
			assert.InDelta(t, row.p10, all[n/10], float64(row.p10)/50+1)
			assert.InDelta(t, row.p50, all[n/2], float64(row.p50)/50+1)
			assert.GreaterOrEqual(t, all[0], max(row.least, values.Min))
			assert.LessOrEqual(t, all[n-1], min(row.top, values.Max))
		})
	}
}

// T7: the compressibility asked for is measured with sizes that differ as well.
func TestT7CompressibilityOfSizes(t *testing.T) {
	for _, sizes := range []Sizes{
		{Kind: SizesUniform, Min: 100, Max: 2000}, {Kind: SizesNormal, Min: 256, Max: 3000, Deviation: 200},
		{Kind: SizesZipf, Min: 100, Max: 10_000, Skew: 0.7}, {Kind: SizesList, List: []int32{100, 1000, 5000}},
	} {
		for _, stamped := range []bool{false, true} {
			for _, asked := range []float64{0, 0.3, 0.6} {
				s := source(t, Config{Size: 1000, Sizes: sizes, Compressibility: asked, Stamped: stamped, Seed: 4})
				for name, codec := range codecs {
					src := batch(t, s, 64<<10, 6)
					got := 1 - float64(codec(t, src))/float64(len(src))
					within := 0.05
					if name == "snappy" {
						within = 0.08 // it codes matches in pieces of 64 bytes
					}
					assert.InDelta(t, asked, got, within, "%s: %s, stamped %t", name, sizes.Kind, stamped)
				}
			}
		}
	}
}

func TestSplit(t *testing.T) {
	for _, row := range []struct {
		says, text, by string
		want           []string
	}{
		{"a newline at the end ends the last value", "a\nbc\n", "\n", []string{"a", "bc"}},
		{"and may be missing", "a\nbc", "\n", []string{"a", "bc"}},
		{"an empty line is a value", "a\n\nb\n", "\n", []string{"a", "", "b"}},
		{"several bytes", "a||b|c||", "||", []string{"a", "b|c"}},
		{"a carriage return is the file's own", "a\r\nb", "\n", []string{"a\r", "b"}},
		{"only a delimiter", "\n", "\n", []string{""}},
	} {
		t.Run(row.says, func(t *testing.T) {
			lines, err := Split([]byte(row.text), row.by)
			require.NoError(t, err)
			var got []string
			for _, line := range lines {
				got = append(got, string(line))
			}
			require.Equal(t, row.want, got)
		})
	}
	_, err := Split(nil, "\n")
	require.ErrorContains(t, err, "is empty")
	_, err = Split([]byte("a"), "")
	require.ErrorContains(t, err, "delimiter is empty")
	_, err = Split(bytes.Repeat([]byte("\n"), MaxLines+1), "\n")
	require.ErrorContains(t, err, "more than 10000000")
}

func TestLines(t *testing.T) {
	lines, err := Split([]byte("one\ntwo\nthree\n"), "\n")
	require.NoError(t, err)
	s := source(t, Config{Kind: KindLines, Lines: lines})
	require.Equal(t, Bounds{3, 5, 11.0 / 3}, s.Bounds())
	value, _ := s.Room()
	require.Zero(t, value, "lines are not copied")
	require.Equal(t, "three", string(s.Value(nil, 2)))
	require.Equal(t, "one", string(s.Value(nil, 3)))

	s = source(t, Config{Kind: KindLines, Lines: lines, Order: OrderRandom, Seed: 1})
	again := source(t, Config{Kind: KindLines, Lines: lines, Order: OrderRandom, Seed: 1})
	counts := map[string]int{}
	for n := range int64(30_000) {
		counts[string(s.Value(nil, n))]++
		require.Equal(t, s.Value(nil, n), again.Value(nil, n))
	}
	for line, count := range counts {
		require.InDelta(t, 10_000, count, 500, line)
	}
	require.Len(t, counts, 3)

	keyed := source(t, Config{Keys: Keys{Kind: KeysSequential, Lines: lines}})
	require.Equal(t, "two", string(keyed.Key(nil, 4)))
	require.Equal(t, Bounds{3, 5, 11.0 / 3}, keyed.KeyBounds())
}

// Every generator writes what it says, no longer and no shorter than it says.
func TestGenerators(t *testing.T) {
	for _, row := range []struct{ template, form string }{
		{"{{seq}}", `^[0-9]+$`},
		{"{{millis}}", `^1767226\d{6}$`},
		{"{{int 1 6}}", `^[1-6]$`},
		{"{{int -5 5}}", `^(-[1-5]|[0-5])$`},
		{"{{int -9223372036854775808 9223372036854775807}}", `^-?\d{1,19}$`},
		{"{{float 0 100}}", `^(\d\d?\.\d\d|100\.00)$`},
		{"{{float -1 1 3}}", `^-?[01]\.\d{3}$`},
		{"{{float 2 3 0}}", `^[23]$`},
		{"{{bool}}", `^(true|false)$`},
		{"{{hex 40}}", `^[0-9a-f]{40}$`},
		{"{{uuid}}", `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`},
		{"{{text 3 30}}", `^[a-z]{3,30}$`},
		{"{{text 0}}", `^$`},
		{`{{choice red green "light blue"}}`, `^(red|green|light blue)$`},
		{"id={{seq}};{{ int 0 9 }}}", `^id=\d+;\d}$`},
		{"plain }} text {", `^plain }} text {$`},
	} {
		t.Run(row.template, func(t *testing.T) {
			c := Config{Kind: KindTemplate, Template: row.template, Seed: 3}
			s, again := source(t, c), source(t, c)
			form, sum, seen := regexp.MustCompile(row.form), 0, map[string]bool{}
			const n = 3000
			const from = 1_000_000 // what seq is taken to have on average
			for i := int64(from); i < from+n; i++ {
				value := s.Value(nil, i)
				require.Regexp(t, form, string(value))
				require.Equal(t, value, again.Value(nil, i))
				if len(value) < s.Bounds().Min || len(value) > s.Bounds().Max {
					t.Fatalf("%q is not of %d to %d bytes", value, s.Bounds().Min, s.Bounds().Max)
				}
				sum += len(value)
				seen[string(value)] = true
			}
			assert.InDelta(t, s.Bounds().Mean, float64(sum)/n, 1+s.Bounds().Mean/10)
			if strings.Contains(row.template, "{{") && row.template != "{{text 0}}" {
				require.Greater(t, len(seen), 1, "messages differ")
			}
		})
	}
	all := source(t, Config{Kind: KindTemplate, Template: `{{choice a b c d}}{{int 1 8}}`})
	seen := map[string]bool{}
	for i := range int64(2000) {
		seen[string(all.Value(nil, i))] = true
	}
	require.Len(t, seen, 32, "what generators draw does not hang together")
}

func TestGeneratorsRefuse(t *testing.T) {
	for template, says := range map[string]string{
		"{{}}": "names no generator", "{{number 1}}": `"number" is no generator; there are seq`,
		"{{int 1}}": `is written "int MIN MAX"`, "{{int a b}}": "two whole numbers", "{{int 5 1}}": "5 is above 1",
		"{{float 1}}": "is written", "{{float x y}}": "two numbers", "{{float NaN 1}}": "two numbers", "{{float 2 1}}": "2 is above 1",
		"{{float 1 2 50}}": "0 to 17 digits", "{{bool 1}}": "is written", "{{hex}}": "is written", "{{hex -1}}": "no length",
		"{{hex 2000000}}": "no length between 0 and 1048576", "{{uuid 4}}": "is written", "{{text 5 1}}": "5 is above 1",
		"{{choice}}": "is written", `{{choice "a}}`: `" is not closed`, "{{seq 1}}": "is written",
		strings.Repeat("{{text 1048576}}", 1025): "is the most", strings.Repeat("x", MaxTemplate+1): "is the most",
	} {
		require.ErrorContains(t, CheckTemplate(template), says)
	}
}

func TestJSON(t *testing.T) {
	c := Config{Kind: KindJSON, Fields: map[string]string{
		"id": "uuid", "n": "seq", "user.name": "text 4 8", "user.address.city": `choice Köln "New \York"`, "user.age": "int 18 99",
		"user-x": "bool", "price": "float 1 100", `odd "name"`: "hex 4",
	}, Seed: 2}
	s := source(t, c)
	for n := range int64(1000) {
		value := s.Value(nil, n)
		var got map[string]any
		require.NoError(t, json.Unmarshal(value, &got), "%s", value)
		require.Len(t, got, 6)
		require.EqualValues(t, n, got["n"])
		user := got["user"].(map[string]any)
		require.Contains(t, []any{"Köln", `New \York`}, user["address"].(map[string]any)["city"])
		require.Len(t, user, 3)
		require.IsType(t, true, got["user-x"])
		require.Len(t, got[`odd "name"`], 4)
		require.LessOrEqual(t, len(value), s.Bounds().Max)
		require.GreaterOrEqual(t, len(value), s.Bounds().Min)
	}
	for says, fields := range map[string]map[string]string{
		"a.b: a is a value":     {"a": "seq", "a.b": "seq", "a-b": "seq"},
		"between dots is empty": {"a..b": "seq"},
		"x: \"nope\" is no gen": {"x": "nope"},
	} {
		require.ErrorContains(t, CheckFields(fields), says)
	}
	many := map[string]string{}
	for i := range maxFields + 1 {
		many[fmt.Sprint("f", i)] = "seq"
	}
	require.ErrorContains(t, CheckFields(many), "1000 is the most")
}

// Whatever fields there are, the values are JSON and have them all.
func TestJSONProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c](\.[a-c\-]){0,3}`), 1, 8, rapid.ID[string]).Draw(t, "names")
		fields := map[string]string{}
		for _, name := range names {
			fields[name] = rapid.SampledFrom([]string{"seq", "bool", "text 0 5", "choice a \\", "float 0 1"}).Draw(t, "generator")
		}
		s, err := New(Config{Kind: KindJSON, Fields: fields})
		inside := slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(names, func(o string) bool { return strings.HasPrefix(o, name+".") })
		})
		if inside {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		var got map[string]any
		require.NoError(t, json.Unmarshal(s.Value(nil, 7), &got), "%s", s.Value(nil, 7))
		for _, name := range names {
			var at any = got
			for part := range strings.SplitSeq(name, ".") {
				object, ok := at.(map[string]any)
				require.True(t, ok, "%s of %v", name, got)
				at = object[part]
			}
			require.NotNil(t, at, "%s of %v", name, got)
		}
	})
}

func TestHeaders(t *testing.T) {
	s := source(t, Config{Headers: map[string]string{"trace": "{{hex 8}}", "app": "orders"}, Seed: 9})
	require.Equal(t, []string{"app", "trace"}, s.HeaderNames())
	require.Equal(t, "orders", string(s.Header(nil, 0, 5)))
	require.Len(t, s.Header(nil, 1, 5), 8)
	require.NotEqual(t, s.Header(nil, 1, 5), s.Header(nil, 1, 6))
	require.Equal(t, 8, s.HeaderRoom(1))
}

func FuzzTemplate(f *testing.F) {
	f.Add("{{seq}} {{int 1 5}} }}", int64(5))
	f.Add(`{{choice "a b" c}}{{text 1 9}}{{float -1 1 17}}`, int64(-1))
	f.Add("{{uuid}}{{hex 17}}{{bool}}{{millis}}", int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, text string, n int64) {
		s, err := New(Config{Kind: KindTemplate, Template: text})
		if err != nil || s.Bounds().Max > 1<<16 {
			return
		}
		value := s.Value(nil, n)
		if len(value) < s.Bounds().Min && n >= 0 || len(value) > s.Bounds().Max {
			t.Fatalf("%q has %d bytes, not %d to %d", value, len(value), s.Bounds().Min, s.Bounds().Max)
		}
	})
}

// No kind of value, key or header allocates when there is room.
func TestFormsDoNotAllocate(t *testing.T) {
	lines, err := Split([]byte("one\ntwo\nthree\n"), "\n")
	require.NoError(t, err)
	fields := map[string]string{"a": "uuid", "b": "float 0 1", "c": "choice x y", "d": "int 0 9", "e": "text 1 30", "f": "bool"}
	for name, c := range map[string]Config{
		"sizes": {Size: 100, Sizes: Sizes{Kind: SizesNormal, Max: 1000, Deviation: 50}, Keys: Keys{Kind: KeysZipf, N: 1000, Skew: 0.9}},
		"lines": {Kind: KindLines, Lines: lines, Order: OrderRandom, Keys: Keys{Kind: KeysUniform, Lines: lines}},
		"json":  {Kind: KindJSON, Fields: fields, Headers: map[string]string{"h": "{{hex 9}}"}},
	} {
		s := source(t, c)
		values, keys := s.Room()
		value, key, head := make([]byte, 0, values), make([]byte, 0, keys), make([]byte, 0, 100)
		n := int64(0)
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			value, key = s.Value(value, n), s.Key(key, n)
			if len(s.headers) > 0 {
				head = s.Header(head, 0, n)
			}
			n++
		}), name)
	}
}

func BenchmarkForms(b *testing.B) {
	lines, err := Split(bytes.Repeat([]byte("a line of a user's file\n"), 1000), "\n")
	require.NoError(b, err)
	for name, c := range map[string]Config{
		"uniform": {Sizes: Sizes{Kind: SizesUniform, Min: 100, Max: 200}},
		"lines":   {Kind: KindLines, Lines: lines, Order: OrderRandom},
		"seq":     {Kind: KindTemplate, Template: "{{seq}}"},
		"json":    {Kind: KindJSON, Fields: map[string]string{"id": "uuid", "price": "float 0 100", "user": "int 0 1000000", "state": "choice new old"}},
	} {
		s := source(b, c)
		room, _ := s.Room()
		dst, n := make([]byte, 0, room), int64(0)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				dst = s.Value(dst, n)
				n++
			}
		})
	}
}
