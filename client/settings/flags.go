package settings

import (
	"fmt"
	"strings"
)

// ParseSet reads the argument of a flag like --set: "key=value", the value in YAML's flow
// form. flag names it in problems; the value itself is not repeated there.
func ParseSet(flag, arg string) (Assignment, *Problem) {
	key, text, p := splitArg(flag, arg, "value")
	if p != nil {
		return Assignment{}, p
	}
	v, problems := ParseValue(flag, text)
	if len(problems) > 0 {
		problems[0].Key = key
		return Assignment{}, &problems[0]
	}
	return Assignment{Key: key, Value: v}, nil
}

// ParseSweep reads the argument of a flag like --sweep: "key=v1,v2,…", each value in YAML's
// flow form. Commas inside {}, [] and quotes do not separate.
func ParseSweep(flag, arg string) (key string, values []Value, problem *Problem) {
	key, text, p := splitArg(flag, arg, "v1,v2")
	if p != nil {
		return "", nil, p
	}
	for i, part := range splitValues(text) {
		if strings.TrimSpace(part) == "" {
			return "", nil, &Problem{File: flag, Key: key, Text: fmt.Sprintf("value %d is empty; write v1,v2,… without a comma too many", i+1)}
		}
		v, problems := ParseValue(flag, part)
		if len(problems) > 0 {
			problems[0].Key = key
			return "", nil, &problems[0]
		}
		values = append(values, v)
	}
	return key, values, nil
}

func splitArg(flag, arg, form string) (key, text string, p *Problem) {
	key, text, found := strings.Cut(arg, "=")
	key = strings.TrimSpace(key)
	if !found || key == "" {
		return "", "", &Problem{File: flag, Key: clip(key), Text: "key=" + form + " is needed"}
	}
	return key, text, nil
}

// splitValues splits at commas outside of brackets and quotes.
func splitValues(text string) []string {
	var parts []string
	depth, start := 0, 0
	var quote rune
	escaped := false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote == '"' && r == '\\':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '{' || r == '[':
			depth++
		case r == '}' || r == ']':
			depth--
		case r == ',' && depth == 0:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}
