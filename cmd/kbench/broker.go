package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/workloads/broker"
)

const brokerLong = `Run the embedded broker by itself: a small Kafka cluster in one process, on the loopback
address, for CI and for trying things. Nothing else needs to be installed.

The first line on standard output is the bootstrap list (HOST:PORT, separated by commas), for
scripts; it is printed once the broker answers. The broker runs until it is interrupted, and
then exits with code 0.

Messages are kept in memory, the last --retention bytes of each partition. With --discard
nothing is kept: what is produced is dropped and acknowledged, and who fetches gets synthetic
batches without end, so that the cost of storing is out of the figures.

It speaks the protocol of a current Kafka but is no throughput reference: one goroutine serves
the whole cluster, there is no replication, and nothing reaches a disk.

'kbench run' without --brokers starts this broker by itself; use this command to keep one
running, to pick its port, or to point other programs at it.`

const brokerExample = `  kbench broker                               one node on a free port
  kbench broker --port 9092 --nodes 3         three nodes on ports 9092, 9093 and 9094
  kbench broker --topics orders:6,audit:1     with topics that exist from the start
  kbench broker --discard                     drop what is produced

  kbench broker --port 9092 & kbench run quick --brokers 127.0.0.1:9092; kill %1`

// newBrokerCommand makes `kbench broker`.
func newBrokerCommand() *cobra.Command {
	var (
		options  broker.Options
		lifeline bool
	)
	cmd := &cobra.Command{
		Use:     "broker",
		Short:   "Run the embedded broker by itself",
		Long:    brokerLong,
		Example: brokerExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			cmd.SilenceUsage = true
			if err := options.Validate(); err != nil {
				return usage(err)
			}
			var stdin io.Reader
			if lifeline {
				stdin = cmd.InOrStdin()
			}
			return broker.Main(ctx, options, stdin, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	options.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&lifeline, broker.LifelineFlag, false, "end when standard input ends")
	if err := cmd.Flags().MarkHidden(broker.LifelineFlag); err != nil {
		panic(err) // the flag was added in the line above
	}
	return cmd
}
