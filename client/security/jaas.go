package security

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// jaas is one login module of a sasl.jaas.config line.
type jaas struct {
	module  string // class name
	options map[string]string
}

// parseJAAS reads the value of sasl.jaas.config as Kafka does:
//
//	org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";
//
// Texts stand in double or single quotes, in which backslash escapes hold; comments are those of
// Java. Errors do not repeat values.
func parseJAAS(text string) (jaas, error) {
	s := &jaasScanner{rest: text}
	module, err := s.word("the class of a login module")
	if err != nil {
		return jaas{}, err
	}
	out := jaas{module: module, options: map[string]string{}}
	flag, err := s.word("the word required")
	if err != nil {
		return jaas{}, err
	}
	switch strings.ToLower(flag) {
	case "required", "requisite", "sufficient", "optional":
	default:
		return jaas{}, errors.New("the word required must stand after the login module")
	}
	for {
		key, err := s.next()
		switch {
		case err != nil:
			return jaas{}, err
		case key.kind == tokenEnd:
			return jaas{}, errors.New("a semicolon must end it")
		case key.kind == ';':
			return out, s.end()
		case key.kind != tokenText:
			return jaas{}, errors.New("option=\"value\" is needed after the word required")
		}
		if err := s.option(key.text, out.options); err != nil {
			return jaas{}, err
		}
	}
}

func (s *jaasScanner) word(what string) (string, error) {
	t, err := s.next()
	if err == nil && t.kind != tokenText {
		err = errors.New(what + " is missing")
	}
	return t.text, err
}

// option reads ="value". The name is repeated in errors only if it is one that is known: after a
// quote too few it may be a piece of a password.
func (s *jaasScanner) option(name string, into map[string]string) error {
	shown := "an option"
	if slices.Contains(jaasOptions, name) {
		shown = "the option " + name
	}
	equals, err := s.next()
	if err != nil {
		return err
	}
	if equals.kind != '=' {
		return fmt.Errorf("%s needs a value: option=\"value\", with quotes around what is not letters and digits alone", shown)
	}
	value, err := s.next()
	if err != nil {
		return err
	}
	if value.kind != tokenText {
		return fmt.Errorf("%s needs a value: option=\"value\"", shown)
	}
	if _, twice := into[name]; twice {
		return fmt.Errorf("%s is given twice", shown)
	}
	into[name] = value.text
	return nil
}

// end makes sure that nothing follows: Kafka takes one login module.
func (s *jaasScanner) end() error {
	t, err := s.next()
	if err == nil && t.kind != tokenEnd {
		err = errors.New("one login module is possible, not several; something stands after the semicolon")
	}
	return err
}

// token kinds beside punctuation, which is itself.
const (
	tokenEnd  = rune(-1)
	tokenText = rune(-2)
)

type jaasToken struct {
	kind rune
	text string
}

type jaasScanner struct{ rest string }

var errQuote = errors.New("a quote is not closed")

func (s *jaasScanner) next() (jaasToken, error) {
	if err := s.skip(); err != nil {
		return jaasToken{}, err
	}
	if s.rest == "" {
		return jaasToken{kind: tokenEnd}, nil
	}
	switch c := s.rest[0]; {
	case c == '"' || c == '\'':
		return s.quoted(c)
	case isWord(rune(c)) || c >= 0x80:
		n := strings.IndexFunc(s.rest, func(r rune) bool { return !isWord(r) && r < 0xa0 })
		if n < 0 {
			n = len(s.rest)
		}
		t := jaasToken{tokenText, s.rest[:n]}
		s.rest = s.rest[n:]
		return t, nil
	default:
		s.rest = s.rest[1:]
		return jaasToken{kind: rune(c)}, nil
	}
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-$", r)
}

// skip passes white space and comments.
func (s *jaasScanner) skip() error {
	for {
		s.rest = strings.TrimLeft(s.rest, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f ")
		switch {
		case strings.HasPrefix(s.rest, "//"):
			i := strings.IndexAny(s.rest, "\r\n")
			if i < 0 {
				i = len(s.rest)
			}
			s.rest = s.rest[i:]
		case strings.HasPrefix(s.rest, "/*"):
			i := strings.Index(s.rest[2:], "*/")
			if i < 0 {
				return errors.New("a comment is not closed")
			}
			s.rest = s.rest[i+4:]
		default:
			return nil
		}
	}
}

// quoted reads a text in quotes; a line's end is the text's end for Java, and an error here.
func (s *jaasScanner) quoted(quote byte) (jaasToken, error) {
	var b strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; c {
		case quote:
			s.rest = s.rest[i+1:]
			return jaasToken{tokenText, b.String()}, nil
		case '\n', '\r':
			return jaasToken{}, errQuote
		case '\\':
			n, r := escape(s.rest[i+1:])
			if n == 0 {
				return jaasToken{}, errQuote
			}
			b.WriteString(r)
			i += n
		default:
			b.WriteByte(c)
		}
	}
	return jaasToken{}, errQuote
}

// escape resolves what follows a backslash: up to three octal digits, a letter of C, or anything
// for itself. n is its length.
func escape(s string) (n int, r string) {
	if s == "" {
		return 0, ""
	}
	if s[0] >= '0' && s[0] <= '7' {
		most, v := 2, 0
		if s[0] <= '3' {
			most = 3
		}
		for n < most && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			v = v*8 + int(s[n]-'0')
			n++
		}
		return n, string(rune(v))
	}
	if i := strings.IndexByte("abfnrtv", s[0]); i >= 0 {
		return 1, "\a\b\f\n\r\t\v"[i : i+1]
	}
	return 1, s[:1]
}

// jaasOptions are the options of Kafka's login modules that may be shown.
var jaasOptions = []string{
	"username", "password", "tokenauth", "clientId", "clientSecret", "scope",
	"unsecuredLoginStringClaim_sub", "unsecuredLoginLifetimeSeconds", "unsecuredLoginPrincipalClaimName",
}

func decodeUTF16(s []uint16) string { return string(utf16.Decode(s)) }
