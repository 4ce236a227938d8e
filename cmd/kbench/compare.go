package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/report"
	"github.com/kbench/kbench/report/compare"
	"github.com/kbench/kbench/results"
)

const compareLong = `Set results beside each other. Points are matched by their settings; for every figure there
are both values, their ratio, a 95 % interval over runs, and what can be said: worse, better,
alike, or "cannot tell", with the reason. What is unlike in the work or in where it was done
comes first. Runs are what counts: with one run a side nothing can be told, four a side are the
least for an interval (--repeat).`

// newCompareCommand makes `kbench compare`.
func newCompareCommand() *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use:   "compare BASE NEW…",
		Short: "Set results beside each other, with intervals",
		Long:  compareLong,
		Example: `  kbench compare before after
  kbench compare before after --format md >> "$GITHUB_STEP_SUMMARY"
  kbench compare before after other --format html --out compare.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(fmt.Errorf("name the directories of two results or more, the base first (%s --help shows how)", cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runCompare(cmd, args, format, out) },
	}
	cmd.Flags().StringVar(&format, "format", formatText, "what is printed: text, md, json or html")
	cmd.Flags().StringVar(&out, "out", "", "file to write to (default stdout)")
	return cmd
}

func runCompare(cmd *cobra.Command, args []string, format, out string) error {
	if err := checkFormats(format, formatText, formatMarkdown, formatJSON, formatHTML); err != nil {
		return err
	}
	several, err := openResults(args)
	if err != nil {
		return err
	}
	c := compareNamed(several, compare.Options{})
	return writeTo(cmd.OutOrStdout(), out, func(w io.Writer) error {
		return writeComparison(w, format, c, several)
	})
}

// compareNamed compares the first with the others.
func compareNamed(several []report.Named, o compare.Options) *compare.Comparison {
	named := allNamed(several)
	return compare.Compare(named[0], named[1:], o)
}

func writeComparison(w io.Writer, format string, c *compare.Comparison, several []report.Named) error {
	switch format {
	case formatMarkdown:
		return report.CompareMarkdown(w, c)
	case formatJSON:
		return report.CompareJSON(w, c)
	case formatHTML:
		return report.CompareHTML(w, c, several)
	}
	return report.CompareTerminal(w, c, report.TerminalOptions{Colour: colourful(w)})
}

// writeTo writes to a file, replacing it, or to out when there is no path.
func writeTo(out io.Writer, path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return write(out)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

// openResults reads results and names them: by their directories' own names, or whole paths when
// these are not enough to tell them apart.
func openResults(paths []string) ([]report.Named, error) {
	var several []report.Named
	taken := map[string]int{}
	for _, path := range paths {
		dir, err := results.OpenDir(path)
		if err != nil {
			return nil, err
		}
		r, err := dir.Load()
		if err != nil {
			return nil, err
		}
		name := filepath.Base(filepath.Clean(dir.Path()))
		taken[name]++
		several = append(several, report.Named{Name: name, Dir: dir, Result: r})
	}
	for i := range several {
		if taken[several[i].Name] > 1 {
			several[i].Name = filepath.Clean(several[i].Dir.Path())
		}
	}
	seen := map[string]bool{}
	for i := range several {
		if seen[several[i].Name] { // the same directory twice
			several[i].Name = fmt.Sprintf("%s (%d)", several[i].Name, i+1)
		}
		seen[several[i].Name] = true
	}
	return several, nil
}
