package kafka

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/payload"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/verify"
)

// Whatever messages hold arrives as it was made, by every form of the producer, and is told apart:
// nothing is lost, reordered or altered without being seen.
func TestPayloadsArriveWhole(t *testing.T) {
	dir := t.TempDir()
	lines, keys := filepath.Join(dir, "lines"), filepath.Join(dir, "keys")
	require.NoError(t, os.WriteFile(lines, []byte("a\n\na longer line, which has room for more than a stamp of 32 bytes\n"), 0o600))
	require.NoError(t, os.WriteFile(keys, []byte("red\ngreen\n"), 0o600))
	for _, row := range []struct {
		says   string
		form   string
		values bool // the stamp is in the value
		change func(*workloads.Payload)
	}{
		{"sizes that all have room for a stamp", "callback", true, func(p *workloads.Payload) {
			p.Sizes = workloads.Sizes{Kind: payload.SizesUniform, Min: 32, Max: 900}
		}},
		{"sizes that do not", "batch", false, func(p *workloads.Payload) {
			p.Sizes = workloads.Sizes{Kind: payload.SizesZipf, Min: 0, Max: 900, Skew: 1.2}
			p.Keys = workloads.Keys{Kind: payload.KeysZipf, N: 100, Skew: 0.99}
		}},
		{"lines of a file, empty ones among them, keys of another", "channels", false, func(p *workloads.Payload) {
			p.Kind, p.File, p.Order = payload.KindLines, lines, payload.OrderRandom
			p.Keys = workloads.Keys{Kind: payload.KeysUniform, File: keys}
		}},
		{"a number, with headers", "sync", false, func(p *workloads.Payload) {
			p.Kind, p.Template = payload.KindTemplate, "{{seq}}"
			p.Headers = map[string]string{"app": "orders", "trace": "{{hex 32}}"}
		}},
		{"JSON with headers and no stamp of its own", "batch", false, func(p *workloads.Payload) {
			p.Kind, p.Fields = payload.KindJSON, map[string]string{"id": "uuid", "user.age": "int 18 99", "text": "text 0 300"}
			p.Headers = map[string]string{"trace": "{{hex 32}}"}
		}},
	} {
		t.Run(row.says, func(t *testing.T) {
			c := start(t, 1)
			const messages = 300
			b := bench{d: load(messages)}
			b.d.Producers.Form, b.d.Topics.Keep = row.form, true
			row.change(&b.d.Payload)
			out := b.execute(t, c.Bootstrap())
			requireWhole(t, out, messages)
			require.Equal(t, row.values, b.d.StampsValues())
			requireAsMade(t, c.Bootstrap(), out.Run.Topics[0].Name, b.d, messages)
		})
	}
}

// requireAsMade reads a topic and holds every message against what the definition makes of its number.
func requireAsMade(t *testing.T, bootstrap []string, topic string, d workloads.Definition, least int) {
	config, err := d.PayloadConfig(d.StampsValues())
	require.NoError(t, err)
	source, err := payload.New(config)
	require.NoError(t, err)
	cl, err := client.NewClient(bootstrap, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	read, lengths := 0, map[int]bool{}
	require.NoError(t, verify.Read(within(t), cl, topic, func(m *client.Message) error {
		var stamp []byte
		if !d.StampsValues() {
			last := m.Headers[len(m.Headers)-1]
			require.Equal(t, run.HeaderName, last.Key)
			stamp = last.Value
		}
		s, found, intact := payload.Find(stamp, m.Key, m.Value)
		require.True(t, found && intact)
		number := s.Number*int64(d.Producers.Count) + int64(s.Producer)
		value, skip := source.Value(nil, number), 0
		if d.StampsValues() {
			skip = payload.StampSize
		}
		require.Equal(t, string(value[skip:]), string(m.Value[skip:]))
		require.Equal(t, string(source.Key(nil, number)), string(m.Key))
		for i, name := range source.HeaderNames() {
			require.Equal(t, name, m.Headers[i].Key)
			require.Equal(t, string(source.Header(nil, i, number)), string(m.Headers[i].Value))
		}
		read++
		lengths[len(m.Value)] = true
		return nil
	}))
	require.GreaterOrEqual(t, read, least)
	require.Greater(t, len(lengths), 1, "values of one length only")
}
