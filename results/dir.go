package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// FileName is the name of the result in its directory.
const FileName = "result.json"

// Dir is a result directory. Its methods are not safe for concurrent use on the same files.
type Dir struct {
	path  string
	claim *os.File // open and locked while this process writes in the directory; nil else
}

// DefaultDir names the directory of a workload's result below base.
func DefaultDir(base, workload string, at time.Time) string {
	return filepath.Join(base, workload+"-"+at.UTC().Format("20060102T150405Z"))
}

// Create makes a result directory, with its parents, and makes sure that files can be written
// in it, before any time is spent on measuring. A directory that has anything in it is refused
// with *NotEmptyError.
func Create(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("results: cannot make the result directory: %w; choose another place or change its permissions", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("results: cannot read the result directory: %w; choose another place or change its permissions", err)
	}
	if len(entries) > 0 {
		return nil, &NotEmptyError{path}
	}
	d := &Dir{path: path}
	err = d.take(os.O_EXCL)
	if errors.Is(err, os.ErrExist) || errors.Is(err, errLocked) {
		return nil, &NotEmptyError{path}
	}
	if err != nil {
		return nil, fmt.Errorf("results: cannot write in the result directory: %w; choose another place or change its permissions", err)
	}
	return d, nil
}

// OpenDir opens a directory that exists; a path to the result.json in it means the same.
// Whether a result stands in it shows with Load.
func OpenDir(path string) (*Dir, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("results: cannot open the result directory: %w", err)
	}
	if info.IsDir() {
		return &Dir{path: path}, nil
	}
	if filepath.Base(path) == FileName {
		return &Dir{path: filepath.Dir(path)}, nil
	}
	return nil, fmt.Errorf("results: %s is not a result directory: it is a file", path)
}

// Path is the directory's path, as it was given.
func (d *Dir) Path() string { return d.path }

func (d *Dir) join(name string) string { return filepath.Join(d.path, name) }

// WriteFile replaces one file of the directory so that at every moment, and after a crash, the
// old content or the new one is there, whole: it writes a temporary file, syncs it, renames it
// and syncs the directory. The name must be one in the directory.
func (d *Dir) WriteFile(name string, write func(io.Writer) error) (err error) {
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return fmt.Errorf("results: %q cannot name a file of a result directory", name)
	}
	defer func() {
		if err != nil {
			err = &FileError{Path: d.join(name), Err: fmt.Errorf("cannot write: %w", err)}
		}
	}()
	temp, err := os.CreateTemp(d.path, "."+name+"-")
	if err != nil {
		return err
	}
	err = write(temp)
	if err == nil {
		err = temp.Chmod(0o644)
	}
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), d.join(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return syncDir(d.path)
}

// syncDir makes a rename last. Not every system can sync a directory; those keep the rename as
// well as they keep anything.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := dir.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return errors.Join(err, dir.Close())
	}
	return dir.Close()
}

// open opens a file of the directory that a result names. The name is not trusted: results
// travel between machines, and must not name files elsewhere.
func (d *Dir) open(name string) (*os.File, error) {
	if name == "" {
		return nil, errors.New("results: the run has no such file")
	}
	f, err := os.OpenInRoot(d.path, name)
	if err != nil {
		return nil, &FileError{Path: d.join(name), Err: err}
	}
	return f, nil
}
