package settings

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// acks is a text type like the client's: its own spelling, its own errors.
type acks int

func (a *acks) UnmarshalText(text []byte) error {
	switch string(text) {
	case "0":
		*a = 0
	case "1":
		*a = 1
	case "all", "-1":
		*a = -1
	default:
		return fmt.Errorf("%q is not one of 0, 1, all", text)
	}
	return nil
}

func (a acks) MarshalText() ([]byte, error) {
	if a == -1 {
		return []byte("all"), nil
	}
	return []byte(fmt.Sprint(int(a))), nil
}

type version struct{ major, minor int }

func (v *version) UnmarshalText(text []byte) error {
	if n, err := fmt.Sscanf(string(text), "%d.%d", &v.major, &v.minor); n != 2 || err != nil {
		return errors.New("a version like 4.0 is needed")
	}
	return nil
}

func (v version) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%d", v.major, v.minor), nil
}

type config struct {
	ClientID          string  `key:"clientID" doc:"Name told to brokers."`
	ChannelBufferSize int     `key:"channelBufferSize" unit:"messages"`
	Version           version `key:"version"`
	Hidden            func()
	Dialer            any `key:"-"`
	Producer          struct {
		RequiredAcks acks   `key:"requiredAcks" enum:"0,1,all,-1"`
		Compression  string `key:"compression" enum:"none,gzip,snappy,lz4,zstd"`
		Idempotent   bool   `key:"idempotent"`
		Flush        struct {
			Messages  int           `key:"messages" unit:"messages"`
			Bytes     int           `key:"bytes" unit:"bytes"`
			Frequency time.Duration `key:"frequency"`
		} `key:"flush"`
		Retry struct {
			Max int8 `key:"max"`
		} `key:"retry"`
	} `key:"producer"`
	Net struct {
		MaxOpenRequests int `key:"maxOpenRequests"`
		SASL            struct {
			User     string `key:"user"`
			Password string `key:"password" secret:"true"`
			Token    int    `key:"token" secret:"true"`
		} `key:"sasl"`
	} `key:"net"`
	Topics  []string          `key:"topics"`
	Shares  []float64         `key:"shares" unit:"messages/s"`
	Options map[string]string `key:"options"`
	Seed    uint64            `key:"seed"`
	Rate    float64           `key:"rate" unit:"messages/s"`
	Ratio   float64           `key:"ratio"`
}

func defaults() *config {
	c := &config{ClientID: "kbench", ChannelBufferSize: 256, Version: version{4, 0}}
	c.Producer.RequiredAcks, c.Producer.Compression = 1, "none"
	c.Producer.Flush.Messages, c.Producer.Flush.Frequency = 7, 10*time.Minute
	c.Net.MaxOpenRequests, c.Net.SASL.Password = 5, "s3cret"
	return c
}

// apply reads and applies a file; problems of both come as lines.
func apply(text string) (*config, []string) {
	c := defaults()
	as, problems := Parse("f.yaml", []byte(text))
	problems = append(problems, Apply(c, as...)...)
	if len(problems) == 0 {
		return c, nil
	}
	return c, strings.Split(problems.Error(), "\n")
}

func TestApplyGood(t *testing.T) {
	for _, row := range []struct {
		says, yaml string
		want       func(*config)
	}{
		{"an empty file changes nothing", "", func(*config) {}},
		{"a file of comments changes nothing", "# only\n---\n# comments\n", func(*config) {}},
		{"a version keeps its text: 4.10 is not 4.1", "version: 4.10", func(c *config) { c.Version = version{4, 10} }},
		{"a string takes a number's text", "clientID: 007", func(c *config) { c.ClientID = "007" }},
		{"a quoted string may be empty", `clientID: ""`, func(c *config) { c.ClientID = "" }},
		{"a literal block is a string", "clientID: |-\n  two\n  lines", func(c *config) { c.ClientID = "two\nlines" }},
		{"a section merges over the defaults", "producer:\n  flush:\n    bytes: 64KiB\n", func(c *config) { c.Producer.Flush.Bytes = 65536 }},
		{"dotted keys in a section", "producer: {flush.bytes: 1, requiredAcks: all}", func(c *config) { c.Producer.Flush.Bytes, c.Producer.RequiredAcks = 1, -1 }},
		{"a dotted key at the top", "producer.flush.frequency: 1m30s", func(c *config) { c.Producer.Flush.Frequency = 90 * time.Second }},
		{"a section without keys is empty", "producer:\nseed: 3", func(c *config) { c.Seed = 3 }},
		{"zero needs no unit", "producer.flush.frequency: 0", func(c *config) { c.Producer.Flush.Frequency = 0 }},
		{"nor does minus one, for never", "producer.flush.frequency: -1", func(c *config) { c.Producer.Flush.Frequency = -1 }},
		{"messages take k and M", "channelBufferSize: 1.5k\nrate: 1.5M", func(c *config) { c.ChannelBufferSize, c.Rate = 1500, 1.5e6 }},
		{"underscores and hex", "channelBufferSize: 1_000\nseed: 0xff", func(c *config) { c.ChannelBufferSize, c.Seed = 1000, 255 }},
		{"a leading zero is not octal", "seed: 010", func(c *config) { c.Seed = 10 }},
		{"the largest seed", "seed: 18446744073709551615", func(c *config) { c.Seed = 1<<64 - 1 }},
		{"a whole number may be written with a point", "channelBufferSize: 1e3", func(c *config) { c.ChannelBufferSize = 1000 }},
		{"lists, block and flow", "topics:\n- a\n- 1\nshares: [1, 2k]", func(c *config) { c.Topics, c.Shares = []string{"a", "1"}, []float64{1, 2000} }},
		{"a map's dotted names are names", "options:\n  retention.ms: 5\n  retention: x", func(c *config) { c.Options = map[string]string{"retention.ms": "5", "retention": "x"} }},
		{"CRLF and a byte order mark", "\ufeffclientID: a\r\nseed: 4\r\n", func(c *config) { c.ClientID, c.Seed = "a", 4 }},
		{"secrets are set", "net: {sasl: {password: hunter2}}", func(c *config) { c.Net.SASL.Password = "hunter2" }},
	} {
		t.Run(row.says, func(t *testing.T) {
			got, problems := apply(row.yaml)
			require.Empty(t, problems)
			want := defaults()
			row.want(want)
			require.Equal(t, want, got)
		})
	}
}

func TestApplyProblems(t *testing.T) {
	for _, row := range []struct {
		says, yaml string
		want       []string
	}{
		{"T10: a mistyped key, with line and nearest", "clientID: a\nproducer:\n  requiredAck: all\n",
			[]string{`f.yaml:3:3: producer.requiredAck: unknown key; did you mean producer.requiredAcks?`}},
		{"Java's name finds ours", "producer: {acks: 1}",
			[]string{`f.yaml:1:12: producer.acks: unknown key; did you mean producer.requiredAcks?`}},
		{"the right name in no section", "requiredAcks: 1",
			[]string{`f.yaml:1:15: requiredAcks: unknown key; did you mean producer.requiredAcks?`}},
		{"nothing near", "xyzzy: 1", []string{`f.yaml:1:8: xyzzy: unknown key`}},
		{"every problem at once", "seed: -1\nproducer:\n  idempotent: maybe\n  retry: {max: 300, min: 1}\nnet: 5\n", []string{
			`f.yaml:1:7: seed: "-1" is outside the range of the setting`,
			`f.yaml:3:15: producer.idempotent: true or false is needed, not "maybe"`,
			`f.yaml:4:16: producer.retry.max: "300" is outside the range of the setting`,
			`f.yaml:4:21: producer.retry.min: unknown key; did you mean producer.retry.max?`,
			`f.yaml:5:6: net: is a section and needs a mapping of its keys, e.g. {key: value}`,
		}},
		{"a duration without a unit", "producer.flush.frequency: 5",
			[]string{`f.yaml:1:27: producer.flush.frequency: "5" has no unit; write 5ms, 5s or 5m`}},
		{"no duration", "producer.flush.frequency: soon",
			[]string{`f.yaml:1:27: producer.flush.frequency: "soon" is not a duration; write it like 5ms, 10s or 1m30s`}},
		{"an enum, mistyped", "producer.compression: gzp",
			[]string{`f.yaml:1:23: producer.compression: "gzp" is not one of none, gzip, snappy, lz4, zstd; did you mean gzip?`}},
		{"a text type's own error", "version: four", []string{`f.yaml:1:10: version: a version like 4.0 is needed`}},
		{"no value", "clientID:\n", []string{`f.yaml:1:1: clientID: has no value; leave the key out for the default`}},
		{"half a message", "channelBufferSize: 1.5",
			[]string{`f.yaml:1:20: channelBufferSize: a whole number of messages, e.g. 20000 or 20k, is needed, not "1.5"`}},
		{"ambiguous bytes", "producer.flush.bytes: 64k",
			[]string{`f.yaml:1:23: producer.flush.bytes: "64k" is ambiguous; write 64kB (1000 bytes) or 64KiB (1024 bytes)`}},
		{"a number that is none", "ratio: .nan", []string{`f.yaml:1:8: ratio: a number is needed, not ".nan"`}},
		{"an element of a list", "shares: [1, x]",
			[]string{`f.yaml:1:13: shares: element 2: a number of messages/s, e.g. 20000 or 20k, is needed, not "x"`}},
		{"a list is needed", "topics: a", []string{`f.yaml:1:9: topics: a list is needed, e.g. [a, b], not "a"`}},
		{"a text in a map", "options: {a: [1]}", []string{`f.yaml:1:14: options: a: a text is needed, not a list`}},
		{"twice", "seed: 1\nseed: 2", []string{`f.yaml:2:1: seed: given twice; it is on line 1 already`}},
		{"twice inside", "producer:\n  retry: {max: 1, max: 2}", []string{`f.yaml:2:19: producer.retry.max: given twice; it is on line 2 already`}},
		{"twice, once dotted", "producer: {idempotent: true}\nproducer.idempotent: false",
			[]string{`f.yaml:2:1: producer.idempotent: belongs to producer, which is given as well (line 1); write it there`}},
		{"twice, dotted in a section", "producer:\n  flush.bytes: 1\n  flush: {messages: 2}",
			[]string{`f.yaml:2:3: producer.flush.bytes: belongs to producer.flush, which is given as well (line 3); write it there`}},
		{"anchors and aliases", "clientID: &a x\ntopics: [*a]", []string{
			`f.yaml:1:11: clientID: anchors and aliases (&name, *name) are not accepted; write the value out`,
			`f.yaml:2:10: topics: anchors and aliases (&name, *name) are not accepted; write the value out`}},
		{"two documents", "seed: 1\n---\nseed: 2\n", []string{`f.yaml:2:1: a second document begins here; one file holds one document`}},
		{"a list at the top", "- a\n", []string{`f.yaml:1:1: a mapping of keys to values is needed here, not a list`}},
		{"not UTF-8", "seed: 1\nclientID: \xff\n", []string{`f.yaml:2:1: this line is not UTF-8`}},
		{"a secret is never shown", "net: {sasl: {token: hunter2}}",
			[]string{`f.yaml:1:21: net.sasl.token: the value given cannot be used: a whole number is needed`}},
	} {
		t.Run(row.says, func(t *testing.T) {
			c, problems := apply(row.yaml)
			require.Equal(t, row.want, problems)
			if !strings.HasPrefix(row.says, "tw") {
				require.Equal(t, defaults().Producer, c.Producer, "nothing is changed when something is wrong")
			}
		})
	}
}

func TestSyntaxErrorHasItsLine(t *testing.T) {
	_, problems := Parse("f.yaml", []byte("seed: 1\nproducer: {retry\n"))
	require.Len(t, problems, 1)
	require.Equal(t, 2, problems[0].Line)
	require.Contains(t, problems[0].Text, "YAML syntax: ")
	_, problems = Parse("f.yaml", []byte("net:\n  sasl:\n    password: hunter2\n   user: [a\n"))
	require.NotEmpty(t, problems)
	require.NotContains(t, problems.Error(), "hunter2")
}

func TestBombsAreRefusedQuickly(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 8), ","))
	}
	var stairs strings.Builder
	for i := range 220 {
		stairs.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	var wide strings.Builder
	for i := range 9_000 / 3 {
		fmt.Fprintf(&wide, "k%d: 1\n", i)
	}
	for says, text := range map[string]string{
		"a billion laughs":        laughs,
		"deep brackets":           strings.Repeat("[", 30_000),
		"deep braces":             strings.Repeat("{a: ", 8_000),
		"dashes in a line":        strings.Repeat("- ", 16_000) + "x",
		"question marks":          strings.Repeat("? ", 16_000) + "x",
		"a staircase":             stairs.String(),
		"very many keys":          wide.String(),
		"too many elements":       "a: [" + strings.Repeat("1,", 15_000) + "1]",
		"too many bytes":          "a: " + strings.Repeat("x", MaxBytes),
		"anchors in a line":       "a: " + strings.Repeat("&a ", 10_000) + "x",
		"tags in a line":          "a: " + strings.Repeat("!t ", 10_000) + "x",
		"empty lines in a block":  "a: |\n  " + strings.Repeat("\n", 30_000),
		"empty lines with spaces": "a: |\n  " + strings.Repeat(" \r\n", 10_000),
		"carriage returns":        "a: |\n  " + strings.Repeat("\r", 30_000),
		"brackets in two places":  "a: " + strings.Repeat("[", 20) + strings.Repeat("{b: ", 40),
	} {
		t.Run(says, func(t *testing.T) {
			start := time.Now()
			as, problems := Parse("f.yaml", []byte(text))
			problems = append(problems, Apply(defaults(), as...)...)
			require.NotEmpty(t, problems)
			require.Less(t, time.Since(start), 20*time.Second)
			require.NotContains(t, problems.Error(), "can be read", "refused by a bound, not by the last resort")
		})
	}
}

func TestSetReplacesASection(t *testing.T) {
	file, problems := Parse("f.yaml", []byte("producer:\n  flush: {bytes: 5, messages: 6}\n  idempotent: true"))
	require.Empty(t, problems)
	set, p := ParseSet("--set", "producer.flush={frequency: 5ms}")
	require.Nil(t, p)
	c := defaults()
	require.Empty(t, Apply(c, append(file, set)...))
	require.Equal(t, 0, c.Producer.Flush.Bytes, "not listed: back to the default")
	require.Equal(t, 7, c.Producer.Flush.Messages, "not listed: back to the default")
	require.Equal(t, 5*time.Millisecond, c.Producer.Flush.Frequency)
	require.True(t, c.Producer.Idempotent, "another part of the parent section stays")

	c.Producer.Flush.Messages = 99
	require.Empty(t, ApplyOver(c, defaults(), set))
	require.Equal(t, 7, c.Producer.Flush.Messages, "ApplyOver falls back to the prototype")
}

func TestParseSet(t *testing.T) {
	for arg, want := range map[string]string{
		"producer.requiredAcks=all": "", "clientID=a=b": "", `clientID=""`: "",
		"requiredAcks=1":            "--set: requiredAcks: unknown key; did you mean producer.requiredAcks?",
		"producer.flush={bytes: 1,": "--set: producer.flush: YAML syntax:",
		"nothing":                   "--set: nothing: key=value is needed",
		"=1":                        "--set: key=value is needed",
		"net.sasl.token=hunter2":    "--set: net.sasl.token: the value given cannot be used: a whole number is needed",
		"clientID=":                 "--set: clientID: has no value; leave the key out for the default",
	} {
		t.Run(arg, func(t *testing.T) {
			a, p := ParseSet("--set", arg)
			var text string
			if p != nil {
				text = p.String()
			} else if problems := Apply(defaults(), a); len(problems) > 0 {
				text = problems.Error()
			}
			if want == "" {
				require.Empty(t, text)
				return
			}
			require.True(t, strings.HasPrefix(text, want), text)
			require.NotContains(t, text, "hunter2")
		})
	}
}

func TestParseSweep(t *testing.T) {
	for _, row := range []struct {
		arg, key string
		want     []string
		problem  string
	}{
		{"producer.requiredAcks=1,all", "producer.requiredAcks", []string{"1", "all"}, ""},
		{"producer.flush={messages: 1},{bytes: 65536, frequency: 5ms}", "producer.flush", []string{"{messages: 1}", "{bytes: 65536, frequency: 5ms}"}, ""},
		{"topics=[a, b],[c]", "topics", []string{"[a, b]", "[c]"}, ""},
		{`clientID="a,b",'c,d','it''s, e'`, "clientID", []string{`"a,b"`, `"c,d"`, `"it's, e"`}, ""},
		{`clientID="\",",x`, "clientID", []string{`"\","`, "x"}, ""},
		{"seed=1", "seed", []string{"1"}, ""},
		{"seed=1,,2", "", nil, "--sweep: seed: value 2 is empty; write v1,v2,… without a comma too many"},
		{"seed", "", nil, "--sweep: seed: key=v1,v2 is needed"},
	} {
		t.Run(row.arg, func(t *testing.T) {
			key, values, p := ParseSweep("--sweep", row.arg)
			if row.problem != "" {
				require.NotNil(t, p)
				require.Equal(t, row.problem, p.String())
				return
			}
			require.Nil(t, p)
			require.Equal(t, row.key, key)
			var got []string
			for _, v := range values {
				got = append(got, v.String())
			}
			require.Equal(t, row.want, got)
		})
	}
}

func TestFieldsAndEffectiveLeaveSecretsOut(t *testing.T) {
	fields := Fields(defaults())
	byKey := map[string]Field{}
	var keys []string
	for _, f := range fields {
		byKey[f.Key] = f
		keys = append(keys, f.Key)
	}
	require.Equal(t, []string{"clientID", "channelBufferSize", "version", "producer.requiredAcks", "producer.compression"}, keys[:5], "in order")
	require.NotContains(t, keys, "Hidden")
	require.Equal(t, "10m", byKey["producer.flush.frequency"].Default)
	require.Equal(t, "duration", byKey["producer.flush.frequency"].Type)
	require.Equal(t, "list of number", byKey["shares"].Type)
	require.True(t, byKey["net.sasl.password"].Secret)
	require.NotContains(t, fmt.Sprint(fields), "s3cret")

	effective := Effective(defaults())
	require.Equal(t, "1", effective["producer.requiredAcks"])
	require.Equal(t, "10m", effective["producer.flush.frequency"])
	require.Equal(t, "4.0", effective["version"])
	require.EqualValues(t, 5, effective["net.maxOpenRequests"])
	require.NotContains(t, effective, "net.sasl.password")
	require.NotContains(t, fmt.Sprint(effective), "s3cret")
}

func TestCheckAndLeavesWorkFromFieldsAlone(t *testing.T) {
	fields := Fields(defaults())
	as, problems := Parse("f.yaml", []byte("producer:\n  flush: {byte: 1, messages: 2}\n  requiredAcks: 7\nversion: x\n"))
	require.Empty(t, problems)
	require.Equal(t, []string{
		`f.yaml:2:11: producer.flush.byte: unknown key; did you mean producer.flush.bytes?`,
		`f.yaml:3:17: producer.requiredAcks: "7" is not one of 0, 1, all, -1`,
		`f.yaml:4:10: version: a version like 4.0 is needed`,
	}, strings.Split(Check(fields, as...).Error(), "\n"))
	leaves, _ := Leaves(fields, as[0])
	require.Len(t, leaves, 1)
	require.Equal(t, "producer.flush.messages", leaves[0].Key)
	require.Contains(t, Keys(fields), "producer.flush")

	for _, f := range fields {
		if f.Key == "producer.requiredAcks" {
			got, p := f.Canonical(Of(-1))
			require.Nil(t, p)
			require.Equal(t, "all", got)
			_, p = f.Canonical(Of(7))
			require.NotNil(t, p)
		}
	}
	byte1, found := as[0].Value.Lookup("requiredAcks")
	require.True(t, found)
	require.Equal(t, "7", byte1.Text())
}

func TestApplyRefusesWhatIsNoStruct(t *testing.T) {
	require.NotEmpty(t, Apply(config{}))
	require.NotEmpty(t, Apply(nil))
	require.NotEmpty(t, Apply((*config)(nil)))
	require.NotEmpty(t, ApplyOver(defaults(), 5))
	type odd struct {
		C chan int `key:"c"`
	}
	a, _ := ParseSet("--set", "c=1")
	require.Contains(t, Apply(&odd{}, a).Error(), "not supported")
}

func TestNearest(t *testing.T) {
	among := Keys(Fields(defaults()))
	for key, want := range map[string]string{
		"clientId": "clientID", "producer.flsuh.bytes": "producer.flush.bytes", "maxOpenRequests": "net.maxOpenRequests",
		"producer.compresion": "producer.compression", "chanelBufferSize": "channelBufferSize", "produce": "producer",
		"": "", "q": "", "completelyElse": "",
	} {
		require.Equal(t, want, Nearest(key, among), key)
	}
}
