package workloads

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// JSONSchema describes a workload file for editors, in JSON Schema (draft 2020-12): every key
// of the workload and of the client with type, default and meaning; nothing else is allowed.
// It describes sections written as sections; the dotted form of keys, which is accepted as
// well, is described at the top level only.
func JSONSchema(client ClientSchema) ([]byte, error) {
	fields := Fields()
	if client != nil {
		fields = append(fields, client.Fields()...)
	}
	fields = slices.DeleteFunc(fields, func(f settings.Field) bool { return f.Secret })
	root := object{}
	for _, f := range fields {
		root.insert(strings.Split(f.Key, "."), fieldSchema(f))
	}
	schema := root.schema()
	properties := schema["properties"].(map[string]any)
	swept := []string{}
	for _, key := range settings.Keys(fields) {
		if parts := strings.Split(key, "."); len(parts) > 1 {
			properties[key] = map[string]any{"$ref": "#/properties/" + strings.Join(parts, "/properties/")}
		}
		if !slices.Contains(notSwept, key) {
			swept = append(swept, key)
		}
	}
	properties["sweep"] = map[string]any{
		"type":                 []string{"object", "null"},
		"description":          "Keys, or whole sections, with the values each takes in turn; the points are all combinations, or those that design says.",
		"propertyNames":        map[string]any{"enum": swept},
		"additionalProperties": map[string]any{"type": "array", "minItems": 1, "uniqueItems": true},
	}
	properties["points"] = map[string]any{
		"type":        []string{"array", "null"},
		"description": "Points one by one, in place of a sweep: each a mapping of keys, or whole sections, to values; {} is the workload as it is.",
		"items":       map[string]any{"type": "object", "propertyNames": map[string]any{"enum": swept}},
	}
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "kbench workload"
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(schema)
	return out.Bytes(), err
}

// object is a section: names to schemas, or to further sections.
type object map[string]any

func (o object) insert(path []string, schema map[string]any) {
	if len(path) == 1 {
		o[path[0]] = schema
		return
	}
	section, ok := o[path[0]].(object)
	if !ok {
		section = object{}
		o[path[0]] = section
	}
	section.insert(path[1:], schema)
}

func (o object) schema() map[string]any {
	properties := map[string]any{}
	for name, inner := range o {
		if section, ok := inner.(object); ok {
			inner = section.schema()
			inner.(map[string]any)["type"] = []string{"object", "null"}
		}
		properties[name] = inner
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// fieldSchema describes a leaf.
func fieldSchema(f settings.Field) map[string]any {
	out := typeSchema(f.Type, f.Unit)
	doc := f.Doc
	switch {
	case f.Type == "duration":
		doc = strings.TrimSpace(doc + " A duration with its unit, e.g. 5ms, 10s or 1m30s.")
	case f.Unit != "":
		doc = strings.TrimSpace(doc + " Unit: " + f.Unit + ".")
	}
	if doc != "" {
		out["description"] = doc
	}
	if len(f.Enum) > 0 {
		delete(out, "type")
		out["enum"] = enumValues(f.Enum)
	}
	if value, problems := settings.ParseValue("", f.Default); len(problems) == 0 {
		out["default"] = value.Any()
	}
	return out
}

// enumValues are the texts and, where a text reads as a number or bool, that as well.
func enumValues(texts []string) []any {
	var out []any
	for _, text := range texts {
		out = append(out, text)
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func typeSchema(name, unit string) map[string]any {
	suffixed := unit == "bytes" || strings.HasPrefix(unit, "messages")
	switch name {
	case "bool":
		return map[string]any{"type": "boolean"}
	case "int":
		if suffixed {
			return map[string]any{"type": []string{"integer", "string"}, "pattern": "^[+-]?[0-9][0-9_.]* ?[A-Za-z]*$"}
		}
		return map[string]any{"type": "integer"}
	case "number":
		if suffixed {
			return map[string]any{"type": []string{"number", "string"}, "pattern": "^[+-]?[0-9][0-9_.]* ?[A-Za-z]*$"}
		}
		return map[string]any{"type": "number"}
	case "duration":
		return map[string]any{"anyOf": []any{
			map[string]any{"type": "string", "pattern": `^[+-]?([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+$`},
			map[string]any{"enum": []any{0, -1, "-1"}},
		}}
	case "text or mapping":
		return map[string]any{"type": []string{"string", "object"}}
	case "map":
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": []string{"string", "number", "boolean"}}}
	}
	if item, isList := strings.CutPrefix(name, "list of "); isList {
		return map[string]any{"type": "array", "items": typeSchema(item, unit)}
	}
	return map[string]any{"type": []string{"string", "number", "boolean"}}
}
