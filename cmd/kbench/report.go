package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/report"
	"github.com/kbench/kbench/results"
)

const reportLong = `Draw the report of a result again: report.html, report.md and plots/ in its directory. With
several results, draw one report over all of them into --out; their points are named after
their directories.`

// newReportCommand makes `kbench report`.
func newReportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report DIR…",
		Short: "Draw the report again; several results in one report",
		Long:  reportLong,
		Example: `  kbench report kbench-results/quick-20260102T030405Z
  kbench report before after --out compared`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("name the directory of a result, e.g. kbench-results/quick-…"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := drawReport(args, out)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "report:", filepath.Join(path, report.HTMLFile))
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "where the report over several results goes")
	return cmd
}

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
	if len(args) > 1 && out == "" {
		return "", usage(errors.New("say with --out where the report over several results goes"))
	}
	if out != "" && holdsResult(out) {
		return "", usage(fmt.Errorf("--out %s is a result itself; give the report over several results a place of its own", out))
	}
	var several []report.Named
	for _, path := range args {
		dir, err := results.OpenDir(path)
		if err != nil {
			return "", err
		}
		r, err := dir.Load()
		if err != nil {
			return "", err
		}
		if len(args) == 1 && out == "" {
			return dir.Path(), report.Write(dir, r)
		}
		several = append(several, report.Named{Name: filepath.Base(filepath.Clean(path)), Dir: dir, Result: r})
	}
	return out, report.WriteSeveral(out, several)
}
