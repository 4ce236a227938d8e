package payload

import (
	"bytes"
	"errors"
	"fmt"
)

// MaxLines bounds how many values or keys a file may hold.
const MaxLines = 10_000_000

// Split takes the content of a file apart at a delimiter, which is not empty. Nothing after the last
// delimiter is no value; an empty one elsewhere is. The values alias data.
func Split(data []byte, delimiter string) ([][]byte, error) {
	if delimiter == "" {
		return nil, errors.New("the delimiter is empty: it must be at least one byte")
	}
	by := []byte(delimiter)
	count := bytes.Count(data, by) + 1
	if count > MaxLines+1 {
		return nil, fmt.Errorf("more than %d values", MaxLines)
	}
	lines := make([][]byte, 0, count)
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, by)
		lines = append(lines, line[:len(line):len(line)])
		data = rest
	}
	if len(lines) == 0 {
		return nil, errors.New("is empty: there is nothing to send")
	}
	if len(lines) > MaxLines {
		return nil, fmt.Errorf("more than %d values", MaxLines)
	}
	return lines, nil
}
