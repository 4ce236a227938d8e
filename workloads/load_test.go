package workloads

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/settings"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// problems are the lines of what is wrong with a text and overrides.
func problems(t *testing.T, text string, o Overrides) []string {
	t.Helper()
	_, err := Decode("w.yaml", []byte(text), fakeClient{}, o)
	if err == nil {
		return nil
	}
	var ps settings.Problems
	require.ErrorAs(t, err, &ps)
	return strings.Split(err.Error(), "\n")
}

func TestDecodeProblems(t *testing.T) {
	for _, row := range []struct {
		says, yaml string
		o          Overrides
		want       []string
	}{
		{says: "T10: a mistyped workload key", yaml: "producers:\n  cuont: 2\n",
			want: []string{`w.yaml:2:3: producers.cuont: unknown key; did you mean producers.count?`}},
		{says: "T10: a mistyped client key", yaml: "producer:\n  requiredAck: all\n",
			want: []string{`w.yaml:2:3: producer.requiredAck: unknown key; did you mean producer.requiredAcks?`}},
		{says: "a mistyped section finds the nearest of both", yaml: "produucers: {count: 1}\nchanelBufferSize: 5",
			want: []string{
				`w.yaml:1:1: produucers: unknown key; did you mean producers?`,
				`w.yaml:2:1: chanelBufferSize: unknown key; did you mean channelBufferSize?`}},
		{says: "everything at once: keys, values, rules, sweep, thresholds", yaml: strings.Join([]string{
			"producers: {count: -1, rate: fast}", "payload: {size: 20, stamp: value}", "phases:", "  duration: 10",
			"producer.requiredAcks: most", "thresholds: [lost=0, response.p98<1ms]", "sweep:", "  producer.requiredAck: [1]",
			"  producer.flush: [{byte: 1}, {bytes: 5}]", "  channelBufferSize: 5", "  net.maxOpenRequests: []"}, "\n"),
			want: []string{
				`w.yaml:1:20: producers.count: is -1, must be between 0 and 100000`,
				`w.yaml:1:30: producers.rate: a number of messages/s, e.g. 20000 or 20k, is needed, not "fast"`,
				`w.yaml:2:17: payload.size: is 20, but payload.stamp=value needs 32 bytes for the stamp`,
				`w.yaml:4:13: phases.duration: "10" has no unit; write 10ms, 10s or 10m`,
				`w.yaml:5:24: producer.requiredAcks: "most" is not one of 0, 1, all`,
				`w.yaml:6:22: thresholds: "response.p98" is no metric; did you mean response.p90?`,
				`w.yaml:8:25: sweep.producer.requiredAck: unknown key; did you mean producer.requiredAcks?`,
				`w.yaml:9:21: sweep.producer.flush.byte: unknown key; did you mean producer.flush.bytes?`,
				`w.yaml:10:22: sweep.channelBufferSize: needs a list of values, e.g. [1, all]`,
				`w.yaml:11:24: sweep.net.maxOpenRequests: needs at least one value`,
			}},
		{says: "what the client says of its own", yaml: "producer: {idempotent: true, requiredAcks: 1}",
			want: []string{`producer.idempotent: needs producer.requiredAcks=all`}},
		{says: "what goes with what is told beside what is wrong", yaml: "producer:\n  idempotent: true\n  requiredAcks: 1\n  flush: {frequency: 5}", want: []string{
			`producer.idempotent: needs producer.requiredAcks=all`,
			`w.yaml:4:22: producer.flush.frequency: "5" has no unit; write 5ms, 5s or 5m`}},
		{says: "unless a sweep decides it at each point", yaml: "producer: {idempotent: true, requiredAcks: 1}\nsweep: {producer.requiredAcks: [1, all]}"},
		{says: "forms that make no sense with the client's settings", yaml: "producers.form: batch\nproducer.idempotent: true", want: []string{
			`w.yaml:1:17: producers.form: is batch, which cannot be idempotent, and producer.idempotent is true`}},
		{says: "a mode of another form", yaml: "producers.form: channels\nproducer.batch: {async: true}", want: []string{
			`w.yaml:1:17: producers.form: is channels, and producer.batch.async=true is a mode of batch`}},
		{says: "a trigger that one message at a time never fires", yaml: "producers.form: sync\nproducer.flush: {messages: 100, bytes: 64KiB}", want: []string{
			`w.yaml:1:17: producers.form: is sync, and one message at a time never fires producer.flush.messages=100; set producer.flush.frequency, which ends the wait`}},
		{says: "nor of bytes", yaml: "producers.form: sync\nproducer.flush: {bytes: 101}\npayload.size: 100", want: []string{
			`w.yaml:1:17: producers.form: is sync, and one message at a time never fires producer.flush.bytes=101; set producer.flush.frequency, which ends the wait`}},
		{says: "triggers that it fires, or that time ends", yaml: "producers.form: sync\nproducer.flush: {messages: 1, bytes: 64KiB}"},
		{says: "time ends the wait", yaml: "producers.form: sync\nproducer.flush: {messages: 100, frequency: 5ms}"},
		{says: "a sweep decides about forms at each point", yaml: "producers.form: batch\nproducer.idempotent: true\nsweep: {producers.form: [callback, batch]}"},
		{says: "schedules have what they need", yaml: "producers: {schedule: {kind: ramp, burstEvery: 1s}}",
			want: []string{
				`w.yaml:1:30: producers.schedule.kind: ramp needs producers.rate`,
				`w.yaml:1:48: producers.schedule.burstEvery: belongs to kind burst, and the kind is ramp`}},
		{says: "steps have rates of their own", yaml: "producers: {rate: 5, schedule: {kind: step}}",
			want: []string{
				`producers.schedule.steps: needs at least one rate above 0`,
				`w.yaml:1:19: producers.rate: is not used by kind step, which has its rates in producers.schedule.steps`}},
		{says: "nothing to do", yaml: "producers.count: 0", want: []string{`w.yaml:1:18: producers.count: is 0, and so is consumers.count: there is nothing to do`}},
		{says: "consumers of an empty topic", yaml: "producers.count: 0\nconsumers: {count: 1, from: start}", want: []string{
			`topics.name: is needed for a run that only consumes: a topic made for it would be empty`,
			`w.yaml:2:29: consumers.from: "start" is not one of run, earliest`}},
		{says: "idle consumers", yaml: "consumers.count: 7", want: []string{`w.yaml:1:18: consumers.count: is 7, but there are 6 partitions: the others would have nothing to read`}},
		{says: "keys that do not fit", yaml: "payload.keys: {kind: uniform, size: 2, n: 1000}", want: []string{`payload.keys: 1000 keys need 3 bytes each, not 2`}},
		{says: "more compressibility than there is room for", yaml: "payload: {size: 40, compressibility: 0.9}", want: []string{
			`w.yaml:1:38: payload.compressibility: is 0.9, but values of 40 bytes compress by 0.14 at most, as each must differ; use larger values or payload.stamp=header`}},
		{says: "a condition on what is not measured", yaml: "thresholds: ['response.p99<20ms', 'e2e.p99<1s']", want: []string{
			`w.yaml:1:14: thresholds: "response.p99<20ms" needs due times, hence producers.rate; without a rate, use service`,
			`w.yaml:1:35: thresholds: "e2e.p99<1s" needs consumers`}},
		{says: "axes inside each other", yaml: "sweep: {producer.flush: [{}], producer.flush.bytes: [1]}", want: []string{
			`w.yaml:1:54: sweep.producer.flush.bytes: is part of producer.flush, which is swept as well`}},
		{says: "a value twice, and what cannot be swept", yaml: "sweep: {channelBufferSize: [1, 1], repeat: [1]}", want: []string{
			`w.yaml:1:32: sweep.channelBufferSize: the value 1 is there twice`,
			`w.yaml:1:44: sweep.repeat: cannot be swept: it does not change the load`}},
		{says: "points that are none", yaml: "points:\n- {producer.requiredAck: 1}\n- {payload: {size: big}}\n- 5\n- {repeat: 2}\n- {net.sasl.password: x}\n- {seed: 1}", want: []string{
			`w.yaml:2:4: points.1.producer.requiredAck: unknown key; did you mean producer.requiredAcks?`,
			`w.yaml:3:20: points.2.payload.size: a whole number of bytes, e.g. 65536 or 64KiB, is needed, not "big"`,
			`w.yaml:4:3: points.3: needs a mapping of keys to values, e.g. {producer.requiredAcks: 1}`,
			`w.yaml:5:4: points.4.repeat: cannot be swept: it does not change the load`,
			`w.yaml:6:23: net.sasl.password: is a secret and would be kept with the results; give it by --command-config or the environment`,
			`w.yaml:7:4: points.6.seed: cannot be swept: it does not change the load`}},
		{says: "points twice", yaml: "points: [{payload.size: 5}, {payload.size: 5}]", want: []string{`w.yaml:1:29: points.2: is the same as point 1`}},
		{says: "points that are no list", yaml: "points: {payload.size: 5}", want: []string{
			`w.yaml:1:9: points: needs a list of points, e.g. [{producer.requiredAcks: 1}, {producer.requiredAcks: all, net.maxOpenRequests: 5}]`}},
		{says: "points and a sweep", yaml: "points: [{payload.size: 5}]\nsweep: {channelBufferSize: [1]}", want: []string{
			`w.yaml:2:29: sweep.channelBufferSize: is swept, and the points are listed; give one of sweep and points`}},
		{says: "designs of nothing", yaml: "design: {kind: oneFactor}", want: []string{`w.yaml:1:16: design.kind: is oneFactor, and there is no sweep`}},
		{says: "a design of points", yaml: "design: {kind: oneFactor}\npoints: [{payload.size: 5}]", want: []string{
			`w.yaml:1:16: design.kind: is oneFactor, which is of a sweep, and the points are listed`}},
		{says: "a sample of how many", yaml: "design: {kind: sample}\nsweep: {channelBufferSize: [1]}", want: []string{`design.points: is 0, must be between 1 and 10000`}},
		{says: "points of no sample", yaml: "design: {points: 5}\nsweep: {channelBufferSize: [1]}", want: []string{`w.yaml:1:18: design.points: belongs to kind sample, and design.kind is matrix`}},
		{says: "a key that a point sets", yaml: "points: [{producer.flush: {messages: 5}}]", o: Overrides{Set: []string{"producer.flush.bytes=1"}, Point: []string{"{payload.size: 5}", "{", "5"}},
			want: []string{
				`--point: YAML syntax: could not find flow mapping end token '}'`,
				`--point: points.3: needs a mapping of keys to values, e.g. {producer.requiredAcks: 1}`,
				`--set: producer.flush.bytes: would be undone, as point 1 sets producer.flush`}},
		{says: "a name for no directory", yaml: "name: ../up", want: []string{`w.yaml:1:7: name: "../up" cannot be the name of a directory: use letters, digits, '-', '_' and '.', 100 at most`}},
		{says: "a topic and a number of topics", yaml: "topics: {name: a/b, count: 2}", want: []string{
			`w.yaml:1:16: topics.name: "a/b" is no name of a topic`, `w.yaml:1:28: topics.count: is 2, but topics.name names one`}},
		{says: "phases", yaml: "phases: {duration: 1s, interval: 5s, drain: 0, warmUp: -1s}", want: []string{
			`w.yaml:1:34: phases.interval: is 5s, longer than the measured phase`,
			`w.yaml:1:45: phases.drain: is 0s, must be between 1ms and 30 days`,
			`w.yaml:1:56: phases.warmUp: is -1s, must be between 0s and 30 days`}},
		{says: "a phase shorter than the default interval", yaml: "phases: {duration: 300ms}", want: nil},
		{says: "secrets do not go into workloads", yaml: "net: {sasl: {password: hunter2}}", o: Overrides{Set: []string{"net.sasl.password=hunter3"}, Sweep: []string{"net.sasl.password=hunter4"}},
			want: []string{
				`--set: net.sasl.password: is a secret and would be kept with the results; give it by --command-config or the environment`,
				`--sweep: net.sasl.password: is a secret and would be kept with the results; give it by --command-config or the environment`,
				`w.yaml:1:24: net.sasl.password: is a secret and would be kept with the results; give it by --command-config or the environment`}},
		{says: "the command line's mistakes", yaml: "", o: Overrides{Set: []string{"producers.cuont=1", "x", "sweep.a=1"}, Sweep: []string{"producer.requiredAcks=1,most"},
			Rate: "fast", Duration: "10", Repeat: "0", Threshold: []string{"lost"}}, want: []string{
			`--duration: phases.duration: "10" has no unit; write 10ms, 10s or 10m`,
			`--rate: producers.rate: a number of messages/s, e.g. 20000 or 20k, is needed, not "fast"`,
			`--repeat: repeat: is 0, must be between 1 and 10000`,
			`--set: producers.cuont: unknown key; did you mean producers.count?`,
			`--set: x: key=value is needed`,
			`--set: sweep.a: is set by --sweep key=v1,v2`,
			`--sweep: sweep.producer.requiredAcks: "most" is not one of 0, 1, all`,
			`--threshold: thresholds: "lost" is no condition; write it like response.p99<20ms, errors<0.1% or lost=0`}},
		{says: "a key inside a swept section", yaml: "sweep: {producer.flush: [{}, {messages: 5}]}", o: Overrides{Set: []string{"producer.flush.bytes=1"}},
			want: []string{`--set: producer.flush.bytes: would be undone, as the sweep replaces the whole of producer.flush`}},
	} {
		t.Run(row.says, func(t *testing.T) { require.Equal(t, row.want, problems(t, row.yaml, row.o)) })
	}
}

func TestOverrides(t *testing.T) {
	text := "name: mine\nproducers: {rate: 1k}\npayload: {keys: {kind: uniform, n: 50}}\nproducer.flush: {messages: 9}\n" +
		"sweep:\n  producer.requiredAcks: [1, all]\n  channelBufferSize: [1, 2]\n"
	d, err := Decode("w.yaml", []byte(text), fakeClient{}, Overrides{
		Set:   []string{"channelBufferSize=7", "payload.keys={kind: zipf}", "producer.flush={bytes: 1}"},
		Sweep: []string{"producer.requiredAcks=0", "producer.flush.messages=1,2"}, Rate: "1.5M", Duration: "1m", Repeat: "3", Threshold: []string{"lost=0"},
	})
	require.NoError(t, err)
	require.Equal(t, 1.5e6, d.Producers.Rate)
	require.Equal(t, time.Minute, d.Phases.Duration)
	require.Equal(t, 3, d.Repeat)
	require.Equal(t, []string{"lost=0"}, d.Thresholds)
	require.Equal(t, Keys{Kind: "zipf", Size: 16, N: 10_000, Skew: 1.1}, d.Payload.Keys, "a section set is a section replaced")
	require.Equal(t, []string{"--set channelBufferSize=7", "--set payload.keys={kind: zipf}", "--set producer.flush={bytes: 1}", "--rate 1.5M",
		"--duration 1m", "--repeat 3", "--sweep producer.requiredAcks=0", "--sweep producer.flush.messages=1,2", "--threshold lost=0"}, d.Overrides)
	var axes []string
	for _, axis := range d.Sweep {
		axes = append(axes, axis.Key)
	}
	require.Equal(t, []string{"producer.requiredAcks", "producer.flush.messages"}, axes, "--set takes an axis away, --sweep replaces or appends")
	require.Len(t, d.Sweep[0].Values, 1)
	effective := d.Effective()
	require.Equal(t, map[string]any{"channelBufferSize": int64(7), "producer.flush.bytes": int64(1)}, effective["client"])
	require.Equal(t, text, d.Source)
}

func TestLoadFindsFilesAndBuiltIns(t *testing.T) {
	d, err := Load("", fakeClient{}, Overrides{})
	require.NoError(t, err)
	require.Equal(t, "quick", d.Name)

	_, err = Load("qiuck", fakeClient{}, Overrides{})
	var unknown *UnknownError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "quick", unknown.Nearest)
	require.ErrorContains(t, err, "did you mean quick? (built in: "+strings.Join(builtInNames(), ", ")+")")

	dir := t.TempDir()
	path := filepath.Join(dir, "My-Load.yaml")
	require.NoError(t, os.WriteFile(path, []byte("producers: {rate: 20k}"), 0o600))
	d, err = Load(path, fakeClient{}, Overrides{})
	require.NoError(t, err)
	require.Equal(t, "My-Load", d.Name)
	require.Equal(t, 20_000.0, d.Producers.Rate)

	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("#", settings.MaxBytes+1)), 0o600))
	_, err = Load(path, fakeClient{}, Overrides{})
	require.ErrorContains(t, err, "more than")
	_, err = Load(dir, fakeClient{}, Overrides{})
	require.ErrorContains(t, err, "is not a file")
	_, err = Source("../load")
	require.Error(t, err)
}

func TestBuiltInsAreRight(t *testing.T) {
	for _, info := range BuiltIn() {
		t.Run(info.Name, func(t *testing.T) {
			d, err := Load(info.Name, fakeClient{}, Overrides{})
			require.NoError(t, err)
			require.Equal(t, info.Name, d.Name)
			require.True(t, strings.HasSuffix(info.Question, "?"), "it says which question it answers: %s", info.Question)
			require.True(t, strings.HasPrefix(info.Description, info.Question))
			require.Greater(t, len(info.Description), len(info.Question)+40, "and how its figures answer it")
			require.NotEmpty(t, d.Hash())
		})
	}
	quick, err := Load("quick", nil, Overrides{})
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, quick.Phases.WarmUp+quick.Phases.Duration)
}

func TestDefaultIsRight(t *testing.T) {
	d := Default()
	d.Name = "default"
	require.Empty(t, d.Check())
}

func TestHash(t *testing.T) {
	hash := func(text string, set ...string) string {
		d, err := Decode("w.yaml", []byte(text), fakeClient{}, Overrides{Set: set})
		require.NoError(t, err)
		return d.Hash()
	}
	base := hash("producer.flush.bytes: 64KiB\nproducers: {rate: 20k}\nsweep: {producer.requiredAcks: [1, all]}")
	for says, same := range map[string]string{
		"name, comments, order and spelling": "name: other\ndescription: x\n# comment\nsweep:\n  producer.requiredAcks:\n  - 1\n  - 'all'\nproducers:\n  rate: 20000\nproducer: {flush: {bytes: 65536}}",
		"a default written out":              "producer.flush.bytes: 64KiB\nproducers: {rate: 20k, count: 1}\nclientID: kbench\nsweep: {producer.requiredAcks: [1, all]}",
		"what does not change the load":      "producer.flush.bytes: 64KiB\nproducers: {rate: 20k}\nseed: 9\nrepeat: 5\nthresholds: [lost=0]\nvalidity: {maxPause: 1s}\nsweep: {producer.requiredAcks: [1, all]}",
	} {
		require.Equal(t, base, hash(same), says)
	}
	for says, other := range map[string]string{
		"a rate":   "producer.flush.bytes: 64KiB\nproducers: {rate: 21k}\nsweep: {producer.requiredAcks: [1, all]}",
		"a client": "producer.flush.bytes: 64kB\nproducers: {rate: 20k}\nsweep: {producer.requiredAcks: [1, all]}",
		"a sweep":  "producer.flush.bytes: 64KiB\nproducers: {rate: 20k}\nsweep: {producer.requiredAcks: [all, 1]}",
	} {
		require.NotEqual(t, base, hash(other), says)
	}
	require.NotEqual(t, base, hash("producer.flush.bytes: 64KiB\nproducers: {rate: 20k}\nsweep: {producer.requiredAcks: [1, all]}", "payload.size=7"))
}

func TestWithDoesNotChangeTheOriginal(t *testing.T) {
	d, err := Decode("w.yaml", []byte("clientID: a"), fakeClient{}, Overrides{})
	require.NoError(t, err)
	one, ps := d.With(settings.Assignment{Key: "payload.size", Value: settings.Of(5)}, settings.Assignment{Key: "clientID", Value: settings.Of("b")})
	require.Empty(t, ps)
	two, _ := d.With(settings.Assignment{Key: "clientID", Value: settings.Of("c")})
	require.Equal(t, 5, one.Payload.Size)
	require.Equal(t, 100, d.Payload.Size)
	require.Len(t, d.Client, 1)
	require.Equal(t, "b", one.Client[1].Value.Text())
	require.Equal(t, "c", two.Client[1].Value.Text())
	_, ps = d.With(settings.Assignment{Key: "payload.size", Value: settings.Of("x")})
	require.NotEmpty(t, ps)
}

func TestJSONSchema(t *testing.T) {
	got, err := JSONSchema(fakeClient{})
	require.NoError(t, err)
	require.NotContains(t, string(got), "password", "a secret is not a workload's key")
	golden(t, "schema.json", got)
}

func FuzzDecode(f *testing.F) {
	for _, name := range builtInNames() {
		source, _ := Source(name)
		f.Add([]byte(source), "producers.rate=5", "net.maxOpenRequests=1,2")
	}
	f.Add([]byte("sweep: {a: [1]}"), "a", "=")
	f.Add([]byte("payload: {size: 1e9, keys: {kind: zipf, n: 9223372036854775807, size: 65536}}"), "payload={}", "payload.keys={},{}")
	f.Add([]byte("topics: {count: 10000, partitions: 100000}\nphases: {interval: 0}"), "phases={duration: 0}", "producers={},{rate: 1}")
	f.Fuzz(func(t *testing.T, text []byte, set, sweep string) {
		d, err := Decode("w.yaml", text, fakeClient{}, Overrides{Set: []string{set}, Sweep: []string{sweep}})
		var ps settings.Problems
		switch {
		case err == nil:
			if len(d.Check()) > 0 && len(d.Sweep) == 0 {
				t.Fatalf("accepted, but: %v", d.Check())
			}
			if d.Hash() == "" {
				t.Fatal("no hash")
			}
		case !errors.As(err, &ps) || len(ps) == 0:
			t.Fatalf("not a list of problems: %v", err)
		}
	})
}
