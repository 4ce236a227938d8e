package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
)

const workloadsLong = `List the built-in workloads by the question each answers, print one as YAML, with what its figures
mean, to start your own from, or print the JSON Schema of workload files, in which every key stands
with its type, default and meaning.`

const workloadsExample = `  kbench workloads                        what there is
  kbench workloads quick > mine.yaml      a copy to change; run it with: kbench run mine.yaml
  kbench workloads --schema > kbench.json for an editor: # yaml-language-server: $schema=kbench.json`

// newWorkloadsCommand makes `kbench workloads`.
func newWorkloadsCommand() *cobra.Command {
	var schema bool
	cmd := &cobra.Command{
		Use:     "workloads [NAME]",
		Short:   "List the built-in workloads, print one, or print the JSON Schema",
		Long:    workloadsLong,
		Example: workloadsExample,
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case schema && len(args) > 0:
				return usage(fmt.Errorf("give either a name or --schema"))
			case schema:
				text, err := workloads.JSONSchema(client.Schema{})
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", strings.TrimRight(string(text), "\n"))
				return err
			case len(args) == 1:
				text, err := workloads.Source(args[0])
				if err != nil {
					return usage(unknownWorkload(args[0]))
				}
				_, err = fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			}
			return listWorkloads(cmd)
		},
	}
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of workload files")
	return cmd
}

// unknownWorkload names the nearest built-in workload, if one is near.
func unknownWorkload(name string) error {
	var names []string
	for _, i := range workloads.BuiltIn() {
		names = append(names, i.Name)
	}
	if near := settings.Nearest(name, names); near != "" {
		return fmt.Errorf("there is no built-in workload %q; did you mean %s?", name, near)
	}
	return fmt.Errorf("there is no built-in workload %q (built in: %s)", name, strings.Join(names, ", "))
}

func listWorkloads(cmd *cobra.Command) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, i := range workloads.BuiltIn() {
		for n, line := range wrap(i.Question, 72) {
			name := ""
			if n == 0 {
				name = i.Name
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\n", name, line) // Flush reports
		}
	}
	return w.Flush()
}

// wrap breaks text into lines of at most width, between words.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
