package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxResult bounds a result.json: a sweep of thousands of runs takes some megabytes.
const maxResult = 256 << 20

// Save writes result.json, replacing an earlier one atomically. It sets the schema version;
// lists that are nil are written as empty ones. The result itself is not changed.
func (d *Dir) Save(r *Result) error {
	data, err := Encode(r)
	if err != nil {
		return &FileError{Path: d.join(FileName), Err: err}
	}
	return d.WriteFile(FileName, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Encode is the content of result.json for a result. It fails for figures that JSON has no
// words for: infinities and NaN.
func Encode(r *Result) ([]byte, error) {
	c := *r
	c.Schema = Schema
	c.StartedAt = c.StartedAt.UTC()
	c.Settings = orEmptyMap(c.Settings)
	c.Points = orEmpty(slices.Clone(c.Points))
	for i := range c.Points {
		p := &c.Points[i]
		p.Settings = orEmptyMap(p.Settings)
		p.Runs = orEmpty(slices.Clone(p.Runs))
		for j := range p.Runs {
			run := &p.Runs[j]
			run.StartedAt = run.StartedAt.UTC()
			run.Series = orEmptyMap(run.Series)
			run.Thresholds = orEmpty(run.Thresholds)
			run.Verdict.Reasons = orEmpty(run.Verdict.Reasons)
			run.Verdict.Warnings = orEmpty(run.Verdict.Warnings)
		}
	}
	c.Provenance.Cluster.Bootstrap = orEmpty(c.Provenance.Cluster.Bootstrap)
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(&c); err != nil {
		return nil, fmt.Errorf("cannot encode the result: %w", err)
	}
	return to.Bytes(), nil
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func orEmptyMap[T any](m map[string]T) map[string]T {
	if m == nil {
		return map[string]T{}
	}
	return m
}

// Load reads result.json, of this schema version or an earlier one. Fields it does not know are
// passed over; values of the wrong type are refused, with the line. A newer version yields a
// *SchemaError, anything else wrong a *FileError. In settings whole numbers are int64, others
// float64.
func (d *Dir) Load() (*Result, error) {
	path := d.join(FileName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("results: %s is not a result directory, or its first run was not finished: %w", d.path, err)
	}
	if err != nil {
		return nil, &FileError{Path: path, Err: err}
	}
	defer f.Close()
	data, err := readBounded(f, maxResult)
	if err != nil {
		return nil, &FileError{Path: path, Err: err}
	}
	return Decode(path, data)
}

func readBounded(from io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	return data, err
}

// Decode reads the content of a result.json; path is for errors. See Dir.Load.
func Decode(path string, data []byte) (*Result, error) {
	// The version comes first: what a newer one means by a field is not for this one to judge.
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, jsonError(path, data, err)
	}
	if head.Schema < 1 || head.Schema > Schema {
		return nil, &SchemaError{path, head.Schema}
	}
	var r Result
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&r); err != nil {
		return nil, jsonError(path, data, err)
	}
	plainNumbers(r.Settings)
	for i := range r.Points {
		plainNumbers(r.Points[i].Settings)
	}
	return &r, nil
}

// plainNumbers replaces the decoder's numbers, which are text, all the way down.
func plainNumbers(m map[string]any) {
	for _, k := range slices.Collect(maps.Keys(m)) {
		m[k] = plainNumber(m[k])
	}
}

func plainNumber(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64() // out of range: the nearest, an infinity
		return f
	case map[string]any:
		plainNumbers(v)
	case []any:
		for i := range v {
			v[i] = plainNumber(v[i])
		}
	}
	return v
}

// jsonError turns the offset of a JSON error into a line and drops Go's words for types.
func jsonError(path string, data []byte, err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return &FileError{path, lineOf(data, syntax.Offset), fmt.Errorf("not valid JSON: %w", err)}
	case errors.As(err, &mismatch):
		return &FileError{path, lineOf(data, mismatch.Offset), fmt.Errorf("%s: %s where %s belongs", mismatch.Field, mismatch.Value, wordFor(mismatch.Type))}
	}
	return &FileError{Path: path, Err: errors.New(strings.ReplaceAll(err.Error(), "\n", " "))}
}

// wordFor names a type as JSON would.
func wordFor(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a whole number"
	}
}

func lineOf(data []byte, offset int64) int {
	offset = min(max(offset, 0), int64(len(data)))
	return 1 + bytes.Count(data[:offset], []byte{'\n'})
}
