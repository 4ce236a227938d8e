package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// claimName is the file that keeps a second run out of a directory while one writes there. Its lock,
// not its being there, says so where the system has such locks: it ends with the process.
const claimName = ".running"

// BusyError is returned by Resume for a directory that another process writes in.
type BusyError struct{ Path string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("results: another kbench writes in %s%s", e.Path, busyHint)
}

// take claims the directory; the claim's file must be new when it is to be empty.
func (d *Dir) take(flag int) error {
	claim, err := os.OpenFile(filepath.Join(d.path, claimName), os.O_CREATE|os.O_WRONLY|flag, 0o644)
	if err != nil {
		return err
	}
	if err := lockFile(claim); err != nil {
		return errors.Join(err, claim.Close())
	}
	d.claim = claim
	return nil
}

// Release ends the claim that Create or Resume made on the directory: the result is complete, or there
// is none. Until then another Create or Resume is refused.
func (d *Dir) Release() error {
	if d.claim == nil {
		return nil
	}
	err := os.Remove(d.join(claimName)) // while it is locked, so that nobody else's is removed
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, d.claim.Close())
	d.claim = nil
	return err
}

// Resume claims the directory of a result so that runs can be added to it. What a process that was
// killed had begun to write is removed. A directory that another process writes in is refused with
// *BusyError; end with Release.
func Resume(path string) (*Dir, *Result, error) {
	d, err := OpenDir(path)
	if err != nil {
		return nil, nil, err
	}
	if _, err := d.Load(); err != nil {
		return nil, nil, err
	}
	if err := d.take(resumeFlag); err != nil {
		if errors.Is(err, errLocked) || errors.Is(err, os.ErrExist) {
			return nil, nil, &BusyError{d.path}
		}
		return nil, nil, fmt.Errorf("results: cannot write in the result directory: %w", err)
	}
	r, err := d.Load() // again: it may have been finished meanwhile
	if err == nil {
		err = d.sweep()
	}
	if err != nil {
		return nil, nil, errors.Join(err, d.Release())
	}
	return d, r, nil
}

// leftOver are the names of files that were never renamed to what they were to be.
var leftOver = regexp.MustCompile(`^\.[A-Za-z0-9_-]+(\.[a-z]+)+-[0-9]+$`)

// sweep removes what was begun and not finished.
func (d *Dir) sweep() error {
	entries, err := os.ReadDir(d.path)
	for _, e := range entries {
		if leftOver.MatchString(e.Name()) && e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(d.join(e.Name())))
		}
	}
	return err
}

// Clear removes everything in a directory that this process has claimed, so that nothing half-written
// stays.
func (d *Dir) Clear() error {
	if d.claim == nil {
		return nil
	}
	entries, err := os.ReadDir(d.path)
	for _, e := range entries {
		if e.Name() != claimName {
			err = errors.Join(err, os.RemoveAll(d.join(e.Name())))
		}
	}
	return err
}
