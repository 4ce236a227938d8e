package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kbench/kbench/results"
)

// Names of what a report consists of, inside a result directory.
const (
	HTMLFile     = "report.html"
	MarkdownFile = "report.md"
	PlotsFolder  = "plots"
)

// Write draws the report of a result into its directory: report.html, report.md and plots/. Each
// replaces an earlier one whole, or is left as it was when there is an error; the errors of all
// three are joined.
func Write(dir *results.Dir, r *results.Result) error {
	return write(dir.Path(), newView(Named{Dir: dir, Result: r}))
}

// WriteSeveral draws one report over several results into the folder out, which is made if it is
// not there. Points are called "<name>/<point>". Names must differ and not be empty.
func WriteSeveral(out string, several []Named) error {
	seen := map[string]bool{}
	for _, one := range several {
		if one.Name == "" || seen[one.Name] {
			return fmt.Errorf("report: the name %q of a result is empty or given twice; give each its own", one.Name)
		}
		seen[one.Name] = true
	}
	if len(several) == 0 {
		return errors.New("report: no result given")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("report: making the folder: %w", err)
	}
	return write(out, newView(several...))
}

func write(folder string, v *view) error {
	html := replaceFile(filepath.Join(folder, HTMLFile), func(w io.Writer) error { return writeHTML(w, v) })
	markdown := replaceFile(filepath.Join(folder, MarkdownFile), func(w io.Writer) error { return writeMarkdown(w, v) })
	plots := replaceFolder(filepath.Join(folder, PlotsFolder), func(into string) error { return writePlots(into, v) })
	return errors.Join(html, markdown, plots)
}

// replaceFile writes a file beside its place and then puts it there, so that there is never half
// of one.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("report: writing %s: %w", path, err)
		}
	}()
	err = errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// replaceFolder fills a folder beside its place and then swaps it in. A folder cannot be renamed
// over one that is not empty, so the earlier one is moved aside first and put back on an error.
func replaceFolder(path string, fill func(into string) error) (err error) {
	fresh, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(fresh)
			err = fmt.Errorf("report: writing %s: %w", path, err)
		}
	}()
	if err := errors.Join(fill(fresh), os.Chmod(fresh, 0o755)); err != nil {
		return err
	}
	old := fresh + "-old"
	if err := os.Rename(path, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return errors.Join(err, os.Rename(old, path))
	}
	return os.RemoveAll(old)
}
