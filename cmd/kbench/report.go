package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/report"
	"github.com/kbench/kbench/results"
)

const reportLong = `Draw the report of a result again: report.html, report.md and plots/ in its directory. With
several results, draw one report over all of them into --out, or a new folder
kbench-results/report-TIME; their points are named after their directories, with as much of the
path as it takes to tell them apart. Where the report went is printed.

With --format nothing is drawn: the figures are printed as text for the terminal, md for a pull
request, json (the content of result.json), or bench, the text of Go benchmarks that benchstat
reads (one line for each valid run, several results as sides: benchstat -col /side FILE).
--schema prints the JSON Schema of result.json.`

// newReportCommand makes `kbench report`.
func newReportCommand() *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report DIR…",
		Short: "Draw the report again; several results in one report",
		Long:  reportLong,
		Example: `  kbench report kbench-results/quick-20260102T030405Z
  kbench report before after
  kbench report before after --out compared
  kbench report before after --format bench | benchstat -col /side -
  kbench report --schema`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !o.schema {
				return usage(errors.New("name the directory of a result, e.g. kbench-results/quick-…"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.schema {
				_, err := cmd.OutOrStdout().Write(results.JSONSchema())
				return err
			}
			if o.format != "" {
				return printReport(cmd.OutOrStdout(), args, o)
			}
			path, err := drawReport(args, o.out)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "report:", filepath.Join(path, report.HTMLFile))
			return err
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "where the report goes (default the result's own directory; of several results kbench-results/report-TIME)")
	cmd.Flags().StringVar(&o.format, "format", "", "print instead of drawing: text, md, json or bench (Go benchmark text)")
	cmd.Flags().BoolVar(&o.schema, "schema", false, "print the JSON Schema of result.json")
	return cmd
}

type reportOptions struct {
	out, format string
	schema      bool
}

// printReport prints the figures in a format.
func printReport(w io.Writer, args []string, o reportOptions) error {
	if o.out != "" {
		return usage(errors.New("--out is for a report that is drawn, --format prints; leave one of them out"))
	}
	writers := map[string]func(io.Writer, *results.Result) error{
		"text": func(w io.Writer, r *results.Result) error { return report.Terminal(w, r, report.TerminalOptions{}) },
		"md":   report.Markdown,
		"json": report.JSON,
	}
	if o.format != "bench" && writers[o.format] == nil {
		return usage(fmt.Errorf("--format %s is none of text, md, json, bench", o.format))
	}
	if o.format != "bench" && len(args) > 1 {
		return usage(fmt.Errorf("--format %s is of one result; 'kbench compare' prints several, and bench takes several", o.format))
	}
	several, err := openReports(args)
	if err != nil {
		return err
	}
	if o.format == "bench" {
		return report.GoBenchmark(w, allNamed(several))
	}
	return writers[o.format](w, several[0].Result)
}

// openReports reads results, each with a name of its own.
func openReports(paths []string) ([]report.Named, error) {
	names, err := namesOf(paths)
	if err != nil {
		return nil, err
	}
	var several []report.Named
	for i, path := range paths {
		dir, err := results.OpenDir(path)
		if err != nil {
			return nil, err
		}
		r, err := dir.Load()
		if err != nil {
			return nil, err
		}
		several = append(several, report.Named{Name: names[i], Dir: dir, Result: r})
	}
	return several, nil
}

// namesOf are the last parts of paths, as many as it takes to tell them apart. The same path twice
// is a mistake.
func namesOf(paths []string) ([]string, error) {
	parts := make([][]string, len(paths))
	for i, path := range paths {
		path = filepath.Clean(path)
		if filepath.Base(path) == results.FileName {
			path = filepath.Dir(path)
		}
		parts[i] = strings.Split(filepath.ToSlash(path), "/")
	}
	names := make([]string, len(paths))
	for i := range parts {
		for take := 1; ; take++ {
			names[i] = last(parts[i], take)
			alike := 0
			for j := range parts {
				if j != i && last(parts[j], take) == names[i] {
					alike++
				}
			}
			if alike == 0 {
				break
			}
			if take > len(parts[i]) {
				return nil, usage(fmt.Errorf("%s is given twice", paths[i]))
			}
		}
	}
	return names, nil
}

// last are the last n parts of a path.
func last(parts []string, n int) string { return strings.Join(parts[max(0, len(parts)-n):], "/") }

// holdsResult says whether a result stands at path, whose own report must not be overwritten.
func holdsResult(path string) bool {
	dir, err := results.OpenDir(path)
	if err != nil {
		return false
	}
	_, err = dir.Load()
	return err == nil
}

// drawReport draws and returns the folder it drew into.
func drawReport(args []string, out string) (string, error) {
	if out != "" && holdsResult(out) {
		return "", usage(fmt.Errorf("--out %s is a result itself; give the report over several results a place of its own", out))
	}
	several, err := openReports(args)
	if err != nil {
		return "", err
	}
	if len(args) == 1 && out == "" {
		return several[0].Dir.Path(), report.Write(several[0].Dir, several[0].Result)
	}
	if out == "" {
		out = freeFolder("report", time.Now())
	}
	return out, report.WriteSeveral(out, several)
}

// freeFolder names a folder that is not there yet, where results are by default.
func freeFolder(name string, at time.Time) string {
	path := results.DefaultDir(resultsFolder, name, at)
	free := path
	for n := 2; exists(free); n++ { // another was made in the same second
		free = fmt.Sprintf("%s-%d", path, n)
	}
	return free
}
