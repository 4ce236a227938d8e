package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/condition"
)

const mergeLong = `Join results that several kbench processes or machines measured at the same time, with the same
workload on the same cluster, into one: OUT is a new directory, the others are result directories.

Histograms are added up value by value and counts are added, so that the figures are those of one
run that put the whole load on. A rate is that of all shards together. Each shard is kept whole in
a folder of OUT, with the machine it was measured on. Thresholds are judged anew on the merged
figures; a run is valid if every shard's is, and if they measured together for 95 % of the time.

Clocks of the machines must agree (NTP does), since windows of the same time are added up.
`

const mergeExample = `  kbench merge all kbench-results/mine-20260504T030201Z other/mine-20260504T030201Z
  kbench merge all shard-a shard-b shard-c --format json`

// newMergeCommand makes `kbench merge`.
func newMergeCommand() *cobra.Command {
	o := runOptions{}
	cmd := &cobra.Command{
		Use:     "merge OUT RESULT RESULT…",
		Short:   "Join results of several processes or machines into one",
		Long:    mergeLong + exitCodesHelp,
		Example: mergeExample,
		Args: func(_ *cobra.Command, args []string) error {
			const least = 3
			if len(args) < least {
				return usage(errors.New("merge needs a new directory and at least two results: kbench merge OUT A B"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(o.format); err != nil {
				return err
			}
			return o.merge(cmd, args[0], args[1:])
		},
	}
	cmd.Flags().StringVar(&o.format, "format", formatText, "what is printed in the end: text, or json (the content of result.json)")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print no summary")
	return cmd
}

func (o *runOptions) merge(cmd *cobra.Command, out string, from []string) error {
	shards := make([]*results.Dir, len(from))
	for i, path := range from {
		dir, err := results.OpenDir(path)
		if err != nil {
			return usage(err)
		}
		shards[i] = dir
	}
	dir, discard, err := claim(filepath.Clean(out))
	if err != nil {
		return usage(err)
	}
	defer func() { _ = dir.Release() }() // only a later run into the same directory would notice
	merged, err := results.Merge(dir, shards...)
	if err == nil {
		err = judgeAnew(merged)
	}
	if err == nil {
		b := &bench{o: o, dir: dir, result: merged}
		return b.finish(cmd.OutOrStdout(), nil)
	}
	err = errors.Join(err, dir.Clear())
	discard()
	var unlike *results.UnlikeError
	if errors.As(err, &unlike) {
		return usage(err)
	}
	return err
}

// judgeAnew holds the shards' thresholds against the merged figures.
func judgeAnew(r *results.Result) error {
	for i := range r.Points {
		for j := range r.Points[i].Runs {
			run := &r.Points[i].Runs[j]
			for k, judged := range run.Thresholds {
				t, err := workloads.ParseThreshold(judged.Expression)
				if err != nil {
					return fmt.Errorf("point %s: threshold of a shard: %w", r.Points[i].ID, err)
				}
				run.Thresholds[k] = condition.Evaluate(t, run)
			}
		}
	}
	return nil
}
