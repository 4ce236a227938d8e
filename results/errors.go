package results

import (
	"errors"
	"fmt"
)

var errNoCeiling = errors.New("has no ceiling: it is no result of `kbench ceiling`")

// NotEmptyError is returned by Create for a directory that has something in it: results are
// never mixed or overwritten.
type NotEmptyError struct{ Path string }

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("results: directory %s is not empty; choose another one", e.Path)
}

// SchemaError is returned for a result.json that this version cannot read.
type SchemaError struct {
	Path string
	// Version is the schema the file says it has; 0 or less when it says none.
	Version int
}

func (e *SchemaError) Error() string {
	if e.Version < 1 {
		return fmt.Sprintf("results: %s has no schema version: it is not a result of kbench", e.Path)
	}
	return fmt.Sprintf("results: %s was written by a newer kbench: it has schema version %d, this kbench reads up to %d; update kbench", e.Path, e.Version, Schema)
}

// FileError says what is wrong in a file of a result directory, and where.
type FileError struct {
	Path string
	Line int // from 1; 0 when the whole file is meant
	Err  error
}

func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("results: %s:%d: %v", e.Path, e.Line, e.Err)
	}
	return fmt.Sprintf("results: %s: %v", e.Path, e.Err)
}

// Unwrap is the reason.
func (e *FileError) Unwrap() error { return e.Err }
