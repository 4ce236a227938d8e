package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const planLong = `Show what a run would do, without doing it: the points of the sweep, those left out and why,
the order of execution, and what it takes in messages, bytes and time.`

// newPlanCommand makes `kbench plan`.
func newPlanCommand() *cobra.Command {
	var l loading
	var format string
	cmd := &cobra.Command{
		Use:     "plan [WORKLOAD]",
		Short:   "Show points, order, messages, bytes and time of a run; run nothing",
		Long:    planLong,
		Example: "  kbench plan acks-flush-inflight --repeat 3",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			_, p, err := l.load(args)
			if err != nil {
				return err
			}
			if format == formatText {
				_, err = fmt.Fprint(cmd.OutOrStdout(), p)
				return err
			}
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(planJSON(p))
		},
	}
	l.addFlags(cmd)
	cmd.Flags().StringVar(&format, "format", formatText, "text or json")
	return cmd
}

// Output formats.
const (
	formatText     = "text"
	formatJSON     = "json"
	formatMarkdown = "md"
	formatHTML     = "html"
)

func checkFormat(format string) error {
	if format != formatText && format != formatJSON {
		return usage(fmt.Errorf("--format %s: is neither text nor json", format))
	}
	return nil
}

// checkFormats is checkFormat for commands that have more of them.
func checkFormats(format string, known ...string) error {
	if !slices.Contains(known, format) {
		return usage(fmt.Errorf("--format %s: is none of %s", format, strings.Join(known, ", ")))
	}
	return nil
}
