package settings

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// converter turns the parser's tree into Values and collects what is not accepted.
type converter struct {
	file     string
	problems Problems
}

func (c *converter) add(tk *token.Token, key, format string, args ...any) {
	p := Problem{File: c.file, Key: key, Text: fmt.Sprintf(format, args...)}
	if tk != nil && tk.Position != nil {
		p.Line, p.Column = tk.Position.Line, tk.Position.Column
	}
	c.problems = append(c.problems, p)
}

func (c *converter) at(tk *token.Token) Value {
	v := Value{File: c.file}
	if tk != nil && tk.Position != nil {
		v.Line, v.Column = tk.Position.Line, tk.Position.Column
	}
	return v
}

// refused stands for a value that was reported already.
func (c *converter) refused(tk *token.Token) Value {
	v := c.at(tk)
	v.kind = kindRefused
	return v
}

// maxDepth is a second bound, should the token check have let something through.
const maxDepth = 256

func (c *converter) value(node ast.Node, key string, depth int) Value {
	if depth > maxDepth {
		c.add(node.GetToken(), key, "nested too deeply")
		return c.refused(node.GetToken())
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		return c.mapping(n.Values, c.at(mappingStart(n)), key, depth)
	case *ast.MappingValueNode:
		return c.mapping([]*ast.MappingValueNode{n}, c.at(n.Key.GetToken()), key, depth)
	case *ast.SequenceNode:
		out := c.at(n.Start)
		out.kind = kindList
		for _, item := range n.Values {
			out.items = append(out.items, c.value(item, key, depth+1))
		}
		return out
	case *ast.AnchorNode, *ast.AliasNode:
		c.add(node.GetToken(), key, "anchors and aliases (&name, *name) are not accepted; write the value out")
		return c.refused(node.GetToken())
	case *ast.TagNode:
		c.add(node.GetToken(), key, "tags (!name) are not accepted; the key decides the type")
		return c.refused(node.GetToken())
	case *ast.DirectiveNode:
		c.add(node.GetToken(), key, "directives (%%YAML) are not accepted")
		return c.refused(node.GetToken())
	}
	return c.scalar(node, key)
}

func mappingStart(n *ast.MappingNode) *token.Token {
	if !n.IsFlowStyle && len(n.Values) > 0 {
		return n.Values[0].Key.GetToken()
	}
	return n.Start
}

func (c *converter) scalar(node ast.Node, key string) Value {
	out := c.at(node.GetToken())
	switch n := node.(type) {
	case *ast.NullNode:
		return out
	case *ast.LiteralNode:
		out.kind = kindQuoted
		if n.Value != nil {
			out.text = n.Value.Value
		}
		return out
	case *ast.StringNode:
		out.kind, out.text = kindPlain, n.Value
		if n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType {
			out.kind = kindQuoted
		}
		return out
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = kindPlain, strings.TrimSpace(node.GetToken().Value)
		return out
	}
	c.add(node.GetToken(), key, "a value is needed here")
	return c.refused(node.GetToken())
}

func (c *converter) mapping(values []*ast.MappingValueNode, out Value, key string, depth int) Value {
	out.kind = kindMap
	seen := make(map[string]*token.Token, len(values))
	for _, kv := range values {
		tk := kv.Key.GetToken()
		name, ok := c.keyName(kv.Key, key)
		if !ok {
			continue
		}
		if before, twice := seen[name]; twice {
			c.add(tk, join(key, name), "given twice; it is on line %d already", before.Position.Line)
			continue
		}
		seen[name] = tk
		e := entry{key: name, line: tk.Position.Line, column: tk.Position.Column}
		e.value = c.value(kv.Value, join(key, name), depth+1)
		if e.value.kind == kindNull {
			e.value.Line, e.value.Column = e.line, e.column
		}
		out.entries = append(out.entries, e)
	}
	return out
}

func (c *converter) keyName(key ast.MapKeyNode, within string) (string, bool) {
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(key.GetToken().Value), true
	case *ast.MergeKeyNode:
		c.add(key.GetToken(), within, "merge keys (<<) are not accepted; write the keys out")
	default:
		c.add(key.GetToken(), within, "a key must be a plain name")
	}
	return "", false
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

// overlaps refuses "a.b" beside "a" in one mapping: which of them wins would be a guess.
func overlaps(v Value, prefix string) Problems {
	lines := make(map[string]int, len(v.entries))
	for _, e := range v.entries {
		lines[e.key] = e.line
	}
	var problems Problems
	for _, e := range v.entries {
		for i := strings.LastIndexByte(e.key, '.'); i > 0; i = strings.LastIndexByte(e.key[:i], '.') {
			line, both := lines[e.key[:i]]
			if !both {
				continue
			}
			p := Problem{File: v.File, Line: e.line, Column: e.column, Key: join(prefix, e.key)}
			p.Text = fmt.Sprintf("belongs to %s, which is given as well (line %d); write it there", join(prefix, e.key[:i]), line)
			if line == 0 {
				p.Text = fmt.Sprintf("belongs to %s, which is given as well; write it there", join(prefix, e.key[:i]))
			}
			problems = append(problems, p)
			break
		}
	}
	return problems
}
