package workloads

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/kbench/kbench/workloads/payload"
)

// maxPayloadFile bounds a file of values, keys, sizes, or with a template; it is kept in memory.
const maxPayloadFile = 256 << 20

// content is a file that payloads are made from. What is made of it is made once, whatever the number
// of points; Check does it, on one goroutine.
type content struct {
	data  []byte
	lines map[string][][]byte // by delimiter
	sizes []int32
}

// keyedError is what is wrong with the value of a key.
type keyedError struct {
	key string
	err error
}

func (e *keyedError) Error() string { return e.key + ": " + e.err.Error() }
func (e *keyedError) Unwrap() error { return e.err }

func at(key string, err error) error {
	if err == nil {
		return nil
	}
	return &keyedError{key, err}
}

// ofFile says which file an error is about.
func ofFile(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// file reads a file once for all points.
func (d *Definition) file(path string) (*content, error) {
	if known := d.files[path]; known != nil {
		return known, nil
	}
	data, err := readPayloadFile(path)
	if err != nil {
		return nil, err
	}
	if d.files == nil {
		d.files = map[string]*content{}
	}
	read := &content{data: data, lines: map[string][][]byte{}}
	d.files[path] = read
	return read, nil
}

func readPayloadFile(path string) ([]byte, error) {
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = file.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(file, maxPayloadFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(data) > maxPayloadFile:
		return nil, fmt.Errorf("%s has more than %d MiB; kbench keeps it in memory", path, maxPayloadFile>>20)
	}
	return data, nil
}

func (c *content) split(delimiter string) ([][]byte, error) {
	if lines, known := c.lines[delimiter]; known {
		return lines, nil
	}
	lines, err := payload.Split(c.data, delimiter)
	if err == nil {
		c.lines[delimiter] = lines
	}
	return lines, err
}

// readSizes reads sizes in bytes, one a line.
func readSizes(path string, data []byte) ([]int32, error) {
	var list []int32
	number := 0
	for line := range bytes.Lines(data) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		switch {
		case err != nil || n < 0 || n > payload.MaxSize:
			return nil, fmt.Errorf("%s:%d: %.40q is no size: bytes between 0 and %d are needed", path, number, text, payload.MaxSize)
		case len(list) == payload.MaxLines:
			return nil, fmt.Errorf("%s:%d: more than %d sizes", path, number, payload.MaxLines)
		}
		list = append(list, int32(n))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: has no sizes; give one a line, in bytes", path)
	}
	return list, nil
}
