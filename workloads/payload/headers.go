package payload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// MaxHeaderName bounds the name of a header.
const MaxHeaderName = 1 << 10

// header is a record header that every message has.
type header struct {
	name  string
	value *program
}

// CheckHeaders reports what is wrong with headers, as New does; the error is a *FieldError where one
// of them is to blame.
func CheckHeaders(headers map[string]string) error {
	_, err := newHeaders(headers, 0)
	return err
}

// newHeaders compiles headers, in the order of their names.
func newHeaders(given map[string]string, seed uint64) ([]header, error) {
	if len(given) > maxFields {
		return nil, fmt.Errorf("%d headers; %d is the most", len(given), maxFields)
	}
	var out []header
	for i, name := range slices.Sorted(maps.Keys(given)) {
		if name == "" || len(name) > MaxHeaderName {
			return nil, &FieldError{name, fmt.Errorf("a name needs 1 to %d bytes", MaxHeaderName)}
		}
		p, err := compile(given[name])
		if err == nil && p.bounds.Max > maxText {
			err = errors.New("more than a mebibyte")
		}
		if err != nil {
			return nil, &FieldError{name, err}
		}
		p.seed = mix(seed ^ 0x68656164 ^ uint64(i)<<32)
		out = append(out, header{name, p})
	}
	return out, nil
}

// HeaderNames are the names of the headers of every message, in order.
func (s *Source) HeaderNames() []string {
	names := make([]string, len(s.headers))
	for i, h := range s.headers {
		names[i] = h.name
	}
	return names
}

// HeaderRoom is the most bytes that the value of header i takes.
func (s *Source) HeaderRoom(i int) int { return s.headers[i].value.bounds.Max }

// Header fills dst with the value of header i of message n and returns it; a dst with too little
// capacity is replaced.
func (s *Source) Header(dst []byte, i int, n int64) []byte {
	return s.headers[i].value.append(dst[:0], n)
}
