package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const rootLong = `kbench measures Apache Kafka: how fast, how safe and how steady a cluster, a setting or a
build is. It drives many producers and consumers from a workload definition, sweeps their
settings, records latency from the schedule into HdrHistograms, and writes plotted reports.

Nothing needs to be installed to begin: without --brokers it starts an embedded broker.

  kbench run                      about ten seconds of load, a summary and a report
  kbench workloads                what else there is to run`

const exitCodesHelp = `
Exit codes:
  0  done          3  a threshold is broken     5    a run is invalid
  1  error         4  inconclusive              130  interrupted (what was measured is kept)
  2  wrong usage, or an invalid workload`

// execute runs the command line and returns the exit code.
func execute(args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(perfArgs(args))
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return codeDone
	}
	if text := err.Error(); text != "" {
		_, _ = fmt.Fprintln(errOut, "kbench:", text) // there is nobody left to tell
	}
	return codeOf(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "kbench",
		Short:         "Load generator and benchmarking suite for Apache Kafka",
		Long:          rootLong + "\n" + exitCodesHelp,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage(unknownCommand(cmd, args[0]))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w (%s --help lists the flags)", err, cmd.CommandPath()))
	})
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "bootstrap-server" {
			name = "brokers"
		}
		return pflag.NormalizedName(name)
	})
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(newRunCommand(), newPlanCommand(), newWorkloadsCommand(), newReportCommand(), newMergeCommand(), newCompareCommand(), newGateCommand(), newVerifyCommand(), newBrokerCommand(), newCeilingCommand(),
		newCapacityCommand(), newProduceCommand(), newConsumeCommand(), newEndToEndCommand())
	for _, cmd := range root.Commands() {
		cmd.Args = usageArgs(cmd.Args)
	}
	root.AddCommand(newSecurityTopic())
	root.SetHelpCommand(newHelpCommand())
	return root
}

// usageArgs makes what check refuses wrong usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var exit *exitError
		err := check(cmd, args)
		if err == nil || errors.As(err, &exit) {
			return err
		}
		return usage(fmt.Errorf("%w (%s --help shows how)", err, cmd.CommandPath()))
	}
}

// newHelpCommand makes `kbench help`, which unlike cobra's own fails on what it does not know.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage(unknownCommand(cmd.Root(), args[0]))
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}

// unknownCommand names the nearest command, if one is near.
func unknownCommand(root *cobra.Command, name string) error {
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("there is no command %q; did you mean %q?", name, near[0])
	}
	return fmt.Errorf("there is no command %q (kbench --help lists them)", name)
}

// version is the module's version as built, "dev" without one.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
