package security

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// property is one entry of a properties file.
type property struct {
	key, value string
	line       int // where it begins, from 1
}

// propertyError is a line that cannot be read; what stands on it is not repeated.
type propertyError struct {
	line int
	text string
}

// parseProperties reads Java properties as java.util.Properties does: comments, the separators
// "=", ":" and white space, lines that go on after a backslash, escapes, and bytes beyond ASCII as
// ISO 8859-1. Only what that would garble is refused: text in UTF-8, which Java's tools do not
// take for what it is.
func parseProperties(data []byte) (out []property, wrong []propertyError) {
	for number, rest := 1, data; len(rest) > 0; {
		var line []byte
		begins := number
		line, rest, number = logicalLine(rest, number)
		if len(line) == 0 {
			continue
		}
		key, value := splitProperty(line)
		p := property{line: begins}
		var err error
		if p.key, err = unescape(key); err == nil {
			p.value, err = unescape(value)
		}
		if err != nil {
			wrong = append(wrong, propertyError{begins, err.Error()})
			continue
		}
		out = append(out, p)
	}
	return out, wrong
}

// logicalLine takes off a line with those that continue it, or a comment or an empty line, which
// give nothing. number counts the lines of the file.
func logicalLine(data []byte, number int) (line, rest []byte, next int) {
	first, data := naturalLine(data)
	number++
	first = trimLeft(first)
	if len(first) == 0 || first[0] == '#' || first[0] == '!' {
		return nil, data, number
	}
	line = bytes.Clone(first)
	for goesOn(line) {
		line = line[:len(line)-1]
		if len(data) == 0 {
			break
		}
		var more []byte
		more, data = naturalLine(data)
		number++
		line = append(line, trimLeft(more)...)
	}
	return line, data, number
}

// naturalLine takes off one line, ended by LF, CR or both.
func naturalLine(data []byte) (line, rest []byte) {
	i := bytes.IndexAny(data, "\r\n")
	if i < 0 {
		return data, nil
	}
	end := i + 1
	if data[i] == '\r' && end < len(data) && data[end] == '\n' {
		end++
	}
	return data[:i], data[end:]
}

func trimLeft(b []byte) []byte { return bytes.TrimLeft(b, " \t\f") }

// goesOn says whether a line ends in a backslash that is not itself escaped.
func goesOn(line []byte) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// splitProperty ends the key at the first separator that is not escaped: white space with at most
// one "=" or ":" in it.
func splitProperty(line []byte) (key, value []byte) {
	i := 0
	for i < len(line) && !bytes.ContainsRune([]byte(" \t\f=:"), rune(line[i])) {
		if line[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(line))
	key, value = line[:i], trimLeft(line[i:])
	if len(value) > 0 && (value[0] == '=' || value[0] == ':') {
		value = trimLeft(value[1:])
	}
	return key, value
}

var errUTF8 = errors.New(`holds letters in UTF-8, which Java reads as others; write them as \uXXXX`)

// unescape resolves escapes. A backslash before any other letter is dropped, as Java does.
func unescape(b []byte) (string, error) {
	if !isASCII(b) && utf8.Valid(b) {
		return "", errUTF8
	}
	var out []uint16 // Java's characters: \ud83d\ude00 is one letter
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			out = append(out, uint16(b[i]))
			continue
		}
		if i++; i == len(b) {
			break
		}
		switch b[i] {
		case 'u':
			if i+4 >= len(b) {
				return "", errors.New(`has a \u without four hexadecimal digits`)
			}
			n, err := strconv.ParseUint(string(b[i+1:i+5]), 16, 16)
			if err != nil {
				return "", errors.New(`has a \u without four hexadecimal digits`)
			}
			out = append(out, uint16(n))
			i += 4
		case 't':
			out = append(out, '\t')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 'f':
			out = append(out, '\f')
		default:
			out = append(out, uint16(b[i]))
		}
	}
	return decodeUTF16(out), nil
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func lines(n []int) string {
	texts := make([]string, 0, len(n))
	for _, l := range n {
		texts = append(texts, strconv.Itoa(l))
	}
	if len(texts) == 1 {
		return "line " + texts[0]
	}
	return fmt.Sprintf("lines %s", strings.Join(texts, ", "))
}
