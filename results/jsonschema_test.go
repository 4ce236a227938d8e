package results_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

// schemaNode is a JSON Schema, as far as the model needs it.
type schemaNode struct {
	Schema      string                 `json:"$schema,omitempty"`
	ID          string                 `json:"$id,omitempty"`
	Title       string                 `json:"title,omitempty"`
	Description string                 `json:"description,omitempty"`
	Ref         string                 `json:"$ref,omitempty"`
	Type        any                    `json:"type,omitempty"`
	Const       any                    `json:"const,omitempty"`
	Format      string                 `json:"format,omitempty"`
	Minimum     *int                   `json:"minimum,omitempty"`
	Items       *schemaNode            `json:"items,omitempty"`
	Properties  map[string]*schemaNode `json:"properties,omitempty"`
	Additional  *schemaNode            `json:"additionalProperties,omitempty"`
	Required    []string               `json:"required,omitempty"`
	Defs        map[string]*schemaNode `json:"$defs,omitempty"`
}

// schemaMaker writes a schema of Go types with the comments of their source.
type schemaMaker struct {
	t    *testing.T
	docs map[string]string // of "Type" and "Type.Field"
	defs map[string]*schemaNode
}

// sourceDocs reads the comments of the package's types.
func sourceDocs(t *testing.T) map[string]string {
	docs := map[string]string{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			general, ok := d.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				one := spec.(*ast.TypeSpec)
				docs[one.Name.Name] = oneLine(general.Doc)
				if structure, ok := one.Type.(*ast.StructType); ok {
					fieldDocs(docs, one.Name.Name, structure)
				}
			}
		}
	}
	return docs
}

func fieldDocs(docs map[string]string, of string, structure *ast.StructType) {
	for _, field := range structure.Fields.List {
		text := oneLine(field.Doc)
		if text == "" {
			text = oneLine(field.Comment)
		}
		for _, name := range field.Names {
			docs[of+"."+name.Name] = text
		}
	}
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// of is the schema of a type; structures are defined once and referred to.
func (m *schemaMaker) of(t reflect.Type) *schemaNode {
	zero := 0
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &schemaNode{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return &schemaNode{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return m.of(t.Elem())
	case reflect.Bool:
		return &schemaNode{Type: "boolean"}
	case reflect.String:
		return &schemaNode{Type: "string"}
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		return &schemaNode{Type: "integer"}
	case reflect.Uint64:
		return &schemaNode{Type: "integer", Minimum: &zero}
	case reflect.Float64:
		return &schemaNode{Type: "number"}
	case reflect.Slice:
		return &schemaNode{Type: []string{"array", "null"}, Items: m.of(t.Elem())}
	case reflect.Map:
		return &schemaNode{Type: []string{"object", "null"}, Additional: m.of(t.Elem())}
	case reflect.Struct:
		if m.defs[t.Name()] == nil {
			m.defs[t.Name()] = &schemaNode{} // a type may hold itself
			*m.defs[t.Name()] = *m.structure(t)
		}
		return &schemaNode{Ref: "#/$defs/" + t.Name()}
	}
	require.Failf(m.t, "no schema", "for %s: say here how it is written", t)
	return nil
}

func (m *schemaMaker) structure(t reflect.Type) *schemaNode {
	node := &schemaNode{Type: "object", Description: m.docs[t.Name()], Properties: map[string]*schemaNode{}}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		require.NotEmpty(m.t, name, "%s.%s has a name in JSON", t, field.Name)
		if name == "-" {
			continue
		}
		one := m.of(field.Type)
		one.Description = m.docs[t.Name()+"."+field.Name]
		node.Properties[name] = one
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			node.Required = append(node.Required, name)
		}
	}
	return node
}

func (m *schemaMaker) result() []byte {
	root := m.structure(reflect.TypeFor[results.Result]())
	root.Schema, root.ID = "https://json-schema.org/draft/2020-12/schema", fmt.Sprintf("urn:kbench:result:%d", results.Schema)
	root.Title = fmt.Sprintf("result.json of kbench, version %d", results.Schema)
	root.Properties["schema"].Const, root.Properties["schema"].Description = results.Schema, "The version of the model."
	root.Defs = m.defs
	data, err := json.MarshalIndent(root, "", " ")
	require.NoError(m.t, err)
	return append(data, '\n')
}

// The published schema is that of the code: -update writes it anew.
func TestJSONSchemaIsThatOfTheCode(t *testing.T) {
	got := (&schemaMaker{t: t, docs: sourceDocs(t), defs: map[string]*schemaNode{}}).result()
	if *update {
		require.NoError(t, os.WriteFile("result.schema.json", got, 0o644))
	}
	published, err := os.ReadFile("result.schema.json")
	require.NoError(t, err)
	require.Equal(t, string(got), string(published), "run the test with -update")
	require.Contains(t, string(published), "median of a few empty requests", "comments are in it")
}

// compiledSchema is the published schema, ready to be held against documents.
func compiledSchema(t *testing.T) *jsonschema.Schema {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(results.JSONSchema()))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("result.schema.json", document))
	schema, err := compiler.Compile("result.schema.json")
	require.NoError(t, err)
	return schema
}

func TestResultsAreAsTheSchemaSays(t *testing.T) {
	schema := compiledSchema(t)
	whole, err := results.Encode(full())
	require.NoError(t, err)
	empty, err := results.Encode(&results.Result{})
	require.NoError(t, err)
	for about, row := range map[string]struct {
		document string
		holds    bool
	}{
		"something in every field":            {string(whole), true},
		"nothing at all":                      {strings.Replace(string(empty), `"effective": null`, `"effective": {}`, 1), true},
		"a field that came later":             {strings.Replace(string(whole), `"seed":`, `"later": 1, "seed":`, 1), true},
		"another version":                     {strings.Replace(string(whole), fmt.Sprintf(`"schema": %d`, results.Schema), `"schema": 99`, 1), false},
		"a count that is no whole number":     {strings.Replace(string(whole), `"attempted": 600000`, `"attempted": 1.5`, 1), false},
		"an instant that is none":             {strings.Replace(string(whole), `"startedAt": "2026`, `"startedAt": "in 2026`, 1), false},
		"no verdict":                          {strings.Replace(string(whole), `"verdict"`, `"judgement"`, 1), false},
		"a duration with a unit as in a text": {strings.Replace(string(whole), `"p99Ns": 400000000`, `"p99Ns": "400ms"`, 1), false},
	} {
		t.Run(about, func(t *testing.T) {
			document, err := jsonschema.UnmarshalJSON(strings.NewReader(row.document))
			require.NoError(t, err)
			if row.holds {
				require.NoError(t, schema.Validate(document))
				return
			}
			require.NotEqual(t, string(whole), row.document)
			require.Error(t, schema.Validate(document))
		})
	}
}
