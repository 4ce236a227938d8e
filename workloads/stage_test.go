package workloads

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNamedPhasesInEveryForm(t *testing.T) {
	want := []Stage{{"base", 4 * time.Second, 0}, {"peak", 2 * time.Second, 5000}}
	for says, row := range map[string]struct {
		yaml string
		o    Overrides
	}{
		"as mappings":         {yaml: "producers.rate: 100\nphases.named: [{name: base, for: 4s}, {name: peak, for: 2s, rate: 5k}]"},
		"in words":            {yaml: "producers.rate: 100\nphases.named: [base 4s, peak 2s 5k]"},
		"on the command line": {yaml: "producers.rate: 100", o: Overrides{Set: []string{"phases.named=[base 4s, peak 2s 5k]"}}},
	} {
		d, err := Decode("w.yaml", []byte(row.yaml), fakeClient{}, row.o)
		require.NoError(t, err, says)
		require.Equal(t, want, d.Phases.Named, says)
		require.Equal(t, []any{"base 4s", "peak 2s 5000"}, d.Effective()["phases.named"], says)
		require.Equal(t, 6*time.Second, d.Phases.Length(), "they make up the measured phase")
	}
	file := "producers.rate: 100\nphases.duration: 9s"
	d, err := Decode("w.yaml", []byte(file), fakeClient{}, Overrides{Set: []string{"phases.named=[base 4s, peak 2s 5k]"}})
	require.NoError(t, err, "on the command line they replace the duration of a file")
	require.Equal(t, "6s", d.Effective()["phases.duration"])
	_, err = Decode("w.yaml", []byte("producers.rate: 100\nphases.named: [base 4s]"), fakeClient{}, Overrides{Duration: "5s"})
	require.ErrorContains(t, err, "phases.duration: is 5s, but phases.named make up 4s; leave it out", "a duration on the command line would do nothing")
	text, err := json.Marshal(want[1])
	require.NoError(t, err)
	require.Equal(t, `"peak 2s 5000"`, string(text))
	d, err = Decode("w.yaml", []byte("phases.named: [a 1s 10, b 1s 20]\nthresholds: [response.p99<1s]"), fakeClient{}, Overrides{})
	require.NoError(t, err, "rates of their own are an open loop")
	require.True(t, d.Open())
}

func TestPhasesThatMakeNoSense(t *testing.T) {
	const form = `; write it like {name: peak, for: 10s, rate: 5k} or "peak 10s 5k"`
	for _, row := range []struct {
		says, yaml string
		want       []string
	}{
		{"no length", "phases.named: [peak]", []string{`w.yaml:1:16: phases.named: element 1: "peak" is no phase` + form}},
		{"a mapping without one", "phases.named: [{name: peak}]", []string{`w.yaml:1:16: phases.named: element 1: a phase needs a name and a length` + form}},
		{"a key that is none", "phases.named: [{name: a, for: 1s, rat: 5}]", []string{`w.yaml:1:16: phases.named: element 1: "rat" is no key of a phase` + form}},
		{"a list for a rate", "phases.named: [{name: a, for: 1s, rate: [5]}]", []string{`w.yaml:1:16: phases.named: element 1: rate needs a value` + form}},
		{"a name with a comma", "phases.named: ['a,b 1s 5']", []string{`w.yaml:1:16: phases.named: element 1: "a,b" is no name of a phase: use letters, digits, '-', '_' and '.', 40 at most`}},
		{"no unit", "phases.named: [a 1 5]", []string{`w.yaml:1:16: phases.named: element 1: "1" has no unit; write 1ms, 1s or 1m`}},
		{"no time", "phases.named: [a 0s 5]", []string{`w.yaml:1:16: phases.named: element 1: 0s: a phase is longer than 0 and 30 days at most`}},
		{"no rate", "phases.named: [a 1s fast]", []string{`w.yaml:1:16: phases.named: element 1: "fast" is no rate; write it like 20000 or 20k`}},
		{"a pause", "phases.named: [a 1s 0]", []string{`w.yaml:1:16: phases.named: element 1: rate 0 must be above 0 and 1000000000 at most`}},
		{"twice the same", "phases.named: [a 1s 5, a 1s 6]", []string{`w.yaml:1:15: phases.named: a 1s 6: the name is there twice`}},
		{"a name that is taken", "phases.named: [warm-up 1s 5]", []string{`w.yaml:1:15: phases.named: warm-up 1s 5: the name is that of a phase every run has`}},
		{"half a window", "phases.named: [a 1500ms 5]", []string{
			`w.yaml:1:15: phases.named: a 1.5s 5: must be a multiple of phases.interval (1s) long, since windows belong to one phase`}},
		{"a rate for some only", "phases.named: [a 1s 5, b 1s]", []string{`w.yaml:1:15: phases.named: b 1s: has no rate, and producers.rate has none for it`}},
		{"another length", "phases: {duration: 5s, named: [a 1s 5]}", []string{
			`w.yaml:1:20: phases.duration: is 5s, but phases.named make up 1s; leave it out`}},
		{"a ramp", "producers: {rate: 5, schedule: {kind: ramp}}\nphases.named: [a 1s]", []string{
			`w.yaml:2:15: phases.named: belongs to producers.schedule.kind=constant, and the kind is ramp`}},
		{"a number of messages", "producers: {rate: 5, messages: 7}\nphases.named: [a 1s]", []string{
			`w.yaml:2:15: phases.named: ends the measured phase, and so does producers.messages; leave one out`}},
		{"a cool-down without an end", "producers.messages: 7\nphases: {coolDown: 1s}", []string{
			`w.yaml:2:20: phases.coolDown: needs phases.duration: in a closed loop producers.messages are all that is sent`}},
		{"a cool-down of messages that look alike", "payload.stamp: none\nconsumers.count: 1\nphases: {coolDown: 1s}", []string{
			`w.yaml:3:20: phases.coolDown: needs messages that can be told apart when consumers count them: payload.stamp is none`}},
		{"steady in ten windows", "phases.steady: true", []string{
			`w.yaml:1:16: phases.steady: needs 50 intervals, and phases.duration=10s has 10 of 1s; lengthen one or shorten the other`}},
		{"steady in fifty", "phases: {steady: true, interval: 200ms}", nil},
		{"a steady ramp", "producers: {rate: 5, schedule: {kind: ramp}}\nphases: {steady: true, duration: 60s}", []string{
			`w.yaml:2:18: phases.steady: needs a rate that stays: producers.schedule.kind is ramp`}},
		{"steady in parts", "phases: {steady: true, named: [a 60s 5]}", []string{
			`w.yaml:1:18: phases.steady: looks at the measured phase as a whole, and phases.named divides it`}},
		{"steady by count", "producers.messages: 5\nphases: {steady: true, duration: 60s}", []string{
			`w.yaml:2:18: phases.steady: needs to know the length of the measured phase, which producers.messages may end`}},
		{"steady while consumers come", "consumers: {count: 1, startAfter: 1s}\nphases: {steady: true, duration: 60s}", []string{
			`w.yaml:2:18: phases.steady: is not to be had while consumers come and go: leave out consumers.startAfter and consumers.changes`}},
		{"steady without producers", "topics.name: t\nproducers.count: 0\nconsumers.count: 1\nphases: {steady: true, duration: 60s}", []string{
			`w.yaml:4:18: phases.steady: looks at what producers see, and there are none`}},
	} {
		require.Equal(t, row.want, problems(t, row.yaml, Overrides{}), row.says)
	}
}
