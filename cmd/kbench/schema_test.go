package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
)

// published compares with a file that is published beside the package it describes.
func published(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("..", "..", filepath.FromSlash(name))
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(text), got, "run the test with -update")
}

// The schema that lies in the repository for editors is that of the code, and what kbench prints.
func TestPublishedSchemaIsThatOfTheCode(t *testing.T) {
	t.Parallel()
	schema, err := workloads.JSONSchema(client.Schema{})
	require.NoError(t, err)
	published(t, "workloads/workload.schema.json", string(schema))
	e := kbench(t, "workloads", "--schema")
	e.requireCode(t, codeDone)
	require.Equal(t, string(schema), e.out)
}

// So is the table of keys for people.
func TestPublishedKeysAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	published(t, "workloads/KEYS.md", keyTable(t))
}

// bare are the numbers that count or measure nothing: what they are is their meaning alone.
var bare = []string{"seed", "payload.keys.skew", "payload.sizes.skew", "producer.compressionLevel"}

// Whoever looks a key up finds what it means, its default, and the unit of a number.
func TestEveryKeyIsExplained(t *testing.T) {
	schema := schemaDocument(t)
	for _, f := range workloadKeys() {
		about := schemaOfKey(t, schema, f.Key)
		require.True(t, strings.HasSuffix(strings.TrimRight(f.Doc, ")'\""), "."), "%s has a sentence for its meaning: %q", f.Key, f.Doc)
		require.Contains(t, about["description"], f.Doc, f.Key)
		require.Contains(t, about, "default", "%s, which is %s", f.Key, f.Default)
		require.NotEmpty(t, f.Default, f.Key)
		isNumber := f.Type == "int" || f.Type == "number" || strings.HasSuffix(f.Type, "list of number")
		require.Equal(t, isNumber && !slices.Contains(bare, f.Key), f.Unit != "", "%s, a %s, has the unit %q", f.Key, f.Type, f.Unit)
		if isNumber && f.Unit != "" {
			require.Contains(t, about["description"], " Unit: "+f.Unit+".", f.Key)
		}
		if f.Type == "duration" {
			require.Contains(t, about["description"], " A duration with its unit", f.Key)
		}
	}
	for _, section := range []string{"sweep", "points"} {
		require.NotEmpty(t, schemaOfKey(t, schema, section)["description"], section)
	}
}

// workloadKeys are the keys of a workload file, the workload's own and then the client's.
func workloadKeys() []settings.Field {
	fields := append(workloads.Fields(), client.Schema{}.Fields()...)
	return slices.DeleteFunc(fields, func(f settings.Field) bool { return f.Secret })
}

func schemaDocument(t *testing.T) (document map[string]any) {
	t.Helper()
	text, err := workloads.JSONSchema(client.Schema{})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &document))
	return document
}

// schemaOfKey is what the schema says of a key, by the sections that it is in.
func schemaOfKey(t *testing.T, schema map[string]any, key string) map[string]any {
	t.Helper()
	at := schema
	for _, part := range strings.Split(key, ".") {
		properties, ok := at["properties"].(map[string]any)
		require.True(t, ok, key)
		at, ok = properties[part].(map[string]any)
		require.True(t, ok, "%s is in the schema", key)
	}
	return at
}

const keysHead = `# Keys of a workload file

Every key, in the order of the sections; ` + "`kbench workloads --schema`" + ` prints the same for editors. In a file
a key stands in its section (` + "`producers: {rate: 20k}`" + `) or by its whole name (` + "`producers.rate: 20k`" + `); on the
command line it is ` + "`--set producers.rate=20k`" + `. Numbers of bytes may have ` + "`kB`, `MB`, `GB`, `KiB`, `MiB` or `GiB`" + `, those of
messages ` + "`k`, `M` or `G`" + `. A duration has its unit with it: ` + "`5ms`, `10s`, `1m30s`" + `. A share of 1 is all.
How to connect stands in another file: ` + "`kbench help command-config`" + `.

This page is generated from the code (` + "`go test ./cmd/kbench -run Published -update`" + `).
`

// keyTable is the page of all keys.
func keyTable(t *testing.T) string {
	t.Helper()
	var page strings.Builder
	page.WriteString(keysHead)
	schema := schemaDocument(t)
	titled, section := "", ""
	for _, f := range workloadKeys() {
		title := map[bool]string{false: "The workload", true: "The client's settings"}[workloads.IsClientKey(f.Key)]
		if title != titled {
			fmt.Fprintf(&page, "\n## %s\n", title)
			titled, section = title, "none yet"
		}
		root, _, nested := strings.Cut(f.Key, ".")
		if !nested {
			root = ""
		}
		if root != section {
			if section = root; root != "" {
				fmt.Fprintf(&page, "\n### %s\n", root)
			}
			page.WriteString("\n| key | type | unit | default | meaning |\n|---|---|---|---|---|\n")
		}
		keyRow(&page, f)
	}
	page.WriteString("\n## Several points\n\n| key | meaning |\n|---|---|\n")
	for _, key := range []string{"sweep", "points"} {
		fmt.Fprintf(&page, "| `%s` | %s |\n", key, cell(schemaOfKey(t, schema, key)["description"].(string)))
	}
	return page.String()
}

func keyRow(page *strings.Builder, f settings.Field) {
	kind := f.Type
	if len(f.Enum) > 0 {
		kind = "`" + strings.Join(f.Enum, "`, `") + "`"
	}
	unit := f.Unit
	if f.Type == "duration" {
		unit = "ns, us, ms, s, m, h"
	}
	fmt.Fprintf(page, "| `%s` | %s | %s | `%s` | %s |\n", f.Key, kind, unit, f.Default, cell(f.Doc))
}

// cell is text as a table of Markdown takes it.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;", "{{", "`{{`", "}}", "`}}`").Replace(text)
}
