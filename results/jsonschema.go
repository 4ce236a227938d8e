package results

import (
	_ "embed"
	"slices"
)

//go:embed result.schema.json
var jsonSchema []byte

// JSONSchema is the JSON Schema (draft 2020-12) of result.json as this version writes it. It is generated
// from the types of this package and their comments. Fields may come to be without a new version
// of the model, so that what is not named is allowed.
func JSONSchema() []byte { return slices.Clone(jsonSchema) }
