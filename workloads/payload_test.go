package workloads

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads/payload"
)

// Each mistake in a payload is told at its own place.
func TestPayloadsAreChecked(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"lines": "a\nbb\n", "empty": "", "sizes": "# seen\n100\n\n2000\n", "bad": "100\nmany\n", "none": "#\n", "tpl": "{{nope}}\n"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	for _, row := range []struct {
		says, yaml string
		want       []string
	}{
		{"every kind has what it needs", "payload: {kind: lines}", []string{`w.yaml:1:17: payload.kind: lines needs payload.file, a file of values`}},
		{"a template too", "payload: {kind: template}", []string{`w.yaml:1:17: payload.kind: template needs payload.template, a text, or payload.file`}},
		{"fields", "payload: {kind: json}", []string{`payload.fields: a JSON value needs at least one field`}},
		{"a kind that is none", "payload: {kind: line}", []string{`w.yaml:1:17: payload.kind: "line" is not one of random, lines, template, json; did you mean lines?`}},
		{"what belongs to other kinds", "payload: {kind: lines, file: lines, size: 100, template: x, fields: {a: seq}}", []string{
			`w.yaml:1:43: payload.size: belongs to kind random, and payload.kind is lines`,
			`w.yaml:1:58: payload.template: belongs to kind template, and payload.kind is lines`,
			`w.yaml:1:69: payload.fields: belongs to kind json, and payload.kind is lines`}},
		{"no file", "payload: {kind: lines, file: nowhere}", []string{`w.yaml:1:30: payload.file: there is no file nowhere`}},
		{"an empty file", "payload: {kind: lines, file: empty}", []string{`w.yaml:1:30: payload.file: empty: is empty: there is nothing to send`}},
		{"no delimiter", "payload: {kind: lines, file: lines, delimiter: ''}", []string{`w.yaml:1:30: payload.file: lines: the delimiter is empty: it must be at least one byte`}},
		{"a mistyped generator", "payload:\n  kind: template\n  template: 'a {{ints 1 2}}'", []string{
			`w.yaml:3:13: payload.template: {{ints 1 2}}: "ints" is no generator; there are seq, millis, int, float, bool, hex, uuid, text and choice`}},
		{"in a file", "payload: {kind: template, file: tpl}", []string{
			`w.yaml:1:33: payload.file: tpl: {{nope}}: "nope" is no generator; there are seq, millis, int, float, bool, hex, uuid, text and choice`}},
		{"a template twice", "payload: {kind: template, file: tpl, template: x}", []string{
			`w.yaml:1:48: payload.template: is given, and so is payload.file, which holds the template in its place`}},
		{"a field, where it stands", "payload:\n  kind: json\n  fields:\n    id: uuid\n    n: int 5 1", []string{
			`w.yaml:5:8: payload.fields: n: int needs the smaller number first: 5 is above 1`}},
		{"a header, where it stands", "payload:\n  headers:\n    trace: '{{hex}}'", []string{
			`w.yaml:3:12: payload.headers: trace: {{hex}}: is written "hex N"`}},
		{"the stamp's own header", "payload:\n  headers: {kbench: x}", []string{
			`w.yaml:2:21: payload.headers: kbench: is the header that carries the stamp; choose another name`}},
		{"no stamp in what is the user's", "payload: {kind: template, template: x, stamp: value}", []string{
			`w.yaml:1:47: payload.stamp: is value, but values of kind template have no room for a stamp; use header`}},
		{"sizes from nowhere", "payload: {sizes: {kind: file}}", []string{`w.yaml:1:25: payload.sizes.kind: file needs payload.sizes.file, a file of sizes`}},
		{"sizes that are none", "payload: {sizes: {kind: file, file: bad}}", []string{`w.yaml:1:37: payload.sizes.file: bad:2: "many" is no size: bytes between 0 and 1073741824 are needed`}},
		{"no sizes", "payload: {sizes: {kind: file, file: none}}", []string{`w.yaml:1:37: payload.sizes.file: none: has no sizes; give one a line, in bytes`}},
		{"a file for another distribution", "payload: {sizes: {kind: normal, deviation: 5, max: 900, file: sizes}}", []string{
			`w.yaml:1:63: payload.sizes.file: belongs to kind file, and payload.sizes.kind is normal`}},
		{"a distribution that cannot be", "payload: {size: 50, sizes: {kind: normal, deviation: 5, min: 60, max: 900}}", []string{
			`payload.sizes: the mean size 50 is not between the smallest, 60, and the largest, 900`}},
		{"a stamp that not all have room for", "payload: {stamp: value, sizes: {kind: uniform, min: 20, max: 900}}", []string{
			`payload.size: is 20, but payload.stamp=value needs 32 bytes for the stamp`}},
		{"keys of a file without a choice", "payload: {keys: {file: lines}}", []string{`w.yaml:1:24: payload.keys.file: is not used: payload.keys.kind is none`}},
		{"keys of no file", "payload: {keys: {kind: zipf, file: nope}}", []string{`w.yaml:1:36: payload.keys.file: there is no file nope`}},
		{"a sweep decides about kinds at each point", "payload: {file: lines, size: 20}\nsweep: {payload.kind: [random, lines]}", nil},
		{"all that there is", "payload: {size: 1000, sizes: {kind: file, file: sizes}, keys: {kind: uniform, file: lines}, headers: {a: 'x{{seq}}'}}", nil},
	} {
		t.Run(row.says, func(t *testing.T) { require.Equal(t, row.want, problems(t, row.yaml, Overrides{})) })
	}
}

// A workload finds its files beside it, and what they hold is the work, not where they stand.
func TestPayloadFiles(t *testing.T) {
	write := func(dir, name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const yaml = "payload: {kind: lines, file: mine.txt, delimiter: \"||\", keys: {kind: sequential, file: keys.txt}}\nsweep: {producers.count: [1, 2]}"
	hashes := []string{}
	for _, text := range []string{"a||bc", "a||bc", "a||bd"} {
		dir := t.TempDir()
		write(dir, "mine.txt", text)
		write(dir, "keys.txt", "k1\nk2\n")
		d, err := Load(write(dir, "w.yaml", yaml), fakeClient{}, Overrides{})
		require.NoError(t, err)
		values, keys, err := d.MessageBounds()
		require.NoError(t, err)
		require.Equal(t, payload.Bounds{Min: 1, Max: 2, Mean: 1.5}, values)
		require.Equal(t, payload.Bounds{Min: 2, Max: 2, Mean: 2}, keys)
		require.False(t, d.StampsValues())
		require.True(t, d.StampsHeaders())
		point, ps := d.With(settings.Assignment{Key: "producers.count", Value: settings.Of(2)})
		require.Empty(t, ps)
		require.Empty(t, point.Check(), "a point finds them again")
		hashes = append(hashes, d.Hash())
	}
	require.Equal(t, hashes[0], hashes[1])
	require.NotEqual(t, hashes[0], hashes[2])
}
