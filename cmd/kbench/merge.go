package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/condition"
)

const mergeLong = `Join results that several kbench processes or machines measured at the same time, with the same
workload on the same cluster, into one in a new directory. (kbench merge OUT RESULT RESULT…, without
--out, means the same.)

Histograms are added up value by value and counts are added, so that the figures are those of one
run that put the whole load on. A rate is that of all shards together. Each shard is kept whole in
a folder of it, with the machine it was measured on. Thresholds are judged anew on the merged
figures; a run is valid if every shard's is, and if they measured together for 95 % of the time.

Clocks of the machines must agree (NTP does), since windows of the same time are added up.
`

const mergeExample = `  kbench merge kbench-results/mine-20260504T030201Z other/mine-20260504T030201Z --out all
  kbench merge shard-a shard-b shard-c --out all --format json`

// newMergeCommand makes `kbench merge`.
func newMergeCommand() *cobra.Command {
	o := runOptions{}
	cmd := &cobra.Command{
		Use:     "merge RESULT RESULT… --out DIR",
		Short:   "Join results of several processes or machines into one",
		Long:    mergeLong + exitCodesHelp,
		Example: mergeExample,
		Args:    func(_ *cobra.Command, args []string) error { return checkShards(o.out, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(o.format); err != nil {
				return err
			}
			if o.out != "" {
				return o.merge(cmd, o.out, args)
			}
			return o.merge(cmd, args[0], args[1:])
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "the new directory for the merged result; every argument is a result then")
	cmd.Flags().StringVar(&o.format, "format", formatText, "what is printed in the end: text, or json (the content of result.json)")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print no summary")
	return cmd
}

// checkShards says what is missing of the results to merge, or there without meaning.
func checkShards(out string, args []string) error {
	const least = 2
	switch results := len(args); {
	case out != "" && results > least && !holdsResult(args[0]) && holdsResult(args[1]):
		return usage(fmt.Errorf("%s is no result, and the new directory is %s already: with --out every argument is a result", args[0], out))
	case out != "" && results < least, out == "" && results <= least:
		return usage(errors.New("merge needs at least two results and a new directory: kbench merge A B --out DIR"))
	case out == "" && holdsResult(args[0]):
		return usage(fmt.Errorf("%s is a result, and the first argument is the new directory; name that with --out: kbench merge %s --out DIR", args[0], strings.Join(args, " ")))
	}
	return nil
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
