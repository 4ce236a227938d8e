package settings

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of what is read. They hold before the YAML parser sees the text, since it recurses
// over nesting and over the keys of a mapping, and takes time with the square of the length,
// in a run of empty lines with its cube.
const (
	MaxBytes  = 32 << 10 // of one file or argument
	maxEmpty  = 100      // empty lines on end
	maxTokens = 10_000
	maxFlow   = 32  // nesting of {} and []
	maxIndent = 128 // columns of indentation, hence nesting by indentation
	maxDashes = 16  // "- - -" or "? ? ?" in one line
)

// Parse reads a YAML file: a single document that is a mapping. It returns the top-level keys
// with their subtrees, in the order of the file, and everything wrong with it: a syntax error
// (the first only, as nothing after it can be read), duplicate keys, anchors, aliases, merge
// keys, tags, further documents. A key may be dotted ("producer.requiredAcks: all") unless the
// section is given as well. file names the text in problems.
func Parse(file string, data []byte) ([]Assignment, Problems) {
	root, problems := parseDocument(file, data)
	if root == nil {
		return nil, problems
	}
	if root.kind == kindNull {
		return nil, problems
	}
	if root.kind != kindMap {
		return nil, append(problems, root.problem("", "a mapping of keys to values is needed here, not %s", root.shape()))
	}
	problems = append(problems, overlaps(*root, "")...)
	return root.Entries(), problems
}

// ParseValue reads one YAML value, e.g. "{messages: 100, frequency: 5ms}" or "all". Without
// lines of its own the value stands at File file, Line 0.
func ParseValue(file, text string) (Value, Problems) {
	v, problems := parseDocument(file, []byte(text))
	if v == nil {
		v = &Value{}
	}
	placeless := func(p *Problem) { p.Line, p.Column = 0, 0 }
	for i := range problems {
		placeless(&problems[i])
	}
	return v.withoutPlace(file), problems
}

func (v Value) withoutPlace(file string) Value {
	v.File, v.Line, v.Column = file, 0, 0
	for i := range v.items {
		v.items[i] = v.items[i].withoutPlace(file)
	}
	for i := range v.entries {
		v.entries[i].line, v.entries[i].column = 0, 0
		v.entries[i].value = v.entries[i].value.withoutPlace(file)
	}
	return v
}

// parseDocument returns the document's root, nil when there is none to speak of.
func parseDocument(file string, data []byte) (root *Value, problems Problems) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if p := checkBytes(file, data); p != nil {
		return nil, Problems{*p}
	}
	// The parser is a library that has panicked on odd input before; nothing a user writes may
	// end the program.
	defer func() {
		if r := recover(); r != nil {
			root, problems = nil, Problems{{File: file, Text: "this is not YAML that can be read"}}
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if p := checkTokens(file, tokens); p != nil {
		return nil, Problems{*p}
	}
	tree, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Problems{syntaxProblem(file, err)}
	}
	return convertFile(file, tree)
}

func convertFile(file string, tree *ast.File) (*Value, Problems) {
	docs := tree.Docs
	for len(docs) > 0 && docs[0].Body == nil && len(docs) > 1 && docs[0].Start == nil {
		docs = docs[1:]
	}
	if len(docs) == 0 || docs[0].Body == nil && len(docs) == 1 {
		return &Value{File: file, Line: 1, Column: 1}, nil
	}
	c := &converter{file: file}
	if len(docs) > 1 {
		tk := docs[1].Start
		if tk == nil && docs[1].Body != nil {
			tk = docs[1].Body.GetToken()
		}
		c.add(tk, "", "a second document begins here; one file holds one document")
	}
	if docs[0].Body == nil {
		return nil, c.problems
	}
	v := c.value(docs[0].Body, "", 0)
	return &v, c.problems
}

// checkBytes refuses what is too large or not text.
func checkBytes(file string, data []byte) *Problem {
	if len(data) > MaxBytes {
		return &Problem{File: file, Text: fmt.Sprintf("%d bytes are more than the %d that are read", len(data), MaxBytes)}
	}
	empty := 0
	for i, line := range bytes.Split(data, []byte("\n")) {
		empty++
		if len(bytes.TrimSpace(line)) > 0 {
			empty = 0
		}
		if column, text := checkLine(bytes.TrimSuffix(line, []byte("\r"))); text != "" {
			return &Problem{File: file, Line: i + 1, Column: column, Text: text}
		}
		if empty > maxEmpty {
			return &Problem{File: file, Line: i + 1, Column: 1, Text: fmt.Sprintf("more than %d empty lines on end", maxEmpty)}
		}
	}
	return nil
}

func checkLine(line []byte) (column int, text string) {
	if !utf8.Valid(line) {
		return 1, "this line is not UTF-8"
	}
	if i := bytes.IndexByte(line, 0); i >= 0 {
		return i + 1, "a NUL byte is not text"
	}
	if i := bytes.IndexByte(line, '\r'); i >= 0 {
		return i + 1, "a carriage return stands inside of a line"
	}
	return 0, ""
}

// checkTokens bounds number and nesting before the parser recurses.
func checkTokens(file string, tokens token.Tokens) *Problem {
	refuse := func(tk *token.Token, text string) *Problem {
		return &Problem{File: file, Line: tk.Position.Line, Column: tk.Position.Column, Text: text}
	}
	flow, line, dashes := 0, 0, 0
	for i, tk := range tokens {
		if i == maxTokens {
			return refuse(tk, fmt.Sprintf("the file has more than %d elements", maxTokens))
		}
		first := tk.Position.Line != line
		if first {
			line, dashes = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			dashes++
		case token.CommentType:
			continue
		}
		if flow > maxFlow || dashes > maxDashes {
			return refuse(tk, "nested too deeply")
		}
		if first && flow == 0 && tk.Position.Column > maxIndent {
			return refuse(tk, fmt.Sprintf("indented by more than %d columns", maxIndent))
		}
	}
	return nil
}

// syntaxProblem keeps place and message of the parser's error, never its excerpt of the
// source, which may show a secret.
func syntaxProblem(file string, err error) Problem {
	p := Problem{File: file, Text: "YAML syntax error"}
	var where yaml.Error
	if !errors.As(err, &where) {
		return p
	}
	if tk := where.GetToken(); tk != nil && tk.Position != nil {
		p.Line, p.Column = tk.Position.Line, tk.Position.Column
	}
	p.Text = "YAML syntax: " + strings.ReplaceAll(where.GetMessage(), "\n", " ")
	return p
}
