package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/security"
	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/perftool"
)

const consumeLong = `Read records as a member of a consumer group, as kafka-consumer-perf-test (Kafka 4.4) does: the same
flags, Kafka's own names of settings, and the same lines on standard output. Behind them is the
engine of kbench run, so that there is a result directory with a timeline and a report as well;
standard error says where.

It reads until --num-records were received (up to one round of what was fetched more, as Kafka's),
or nothing was for --timeout. The time ends with the last record; Kafka's goes on through the
timeout. A --group goes on from what it has committed, and stays; without one, the run has a group
of its own, which is deleted after it. Records that kbench wrote since the run began give latencies
from end to end as well (series e2e).

A setting that is unknown or means nothing here is refused with the reason. What has no flag is set
by --set and kbench's names.
`

const consumeExample = `  kbench consume --topic orders --num-records 1000000 --bootstrap-server broker1:9092
  kbench consume --include 'orders-.*' --num-records 1000000 --group readers --from-latest \
      --show-detailed-stats --reporting-interval 1000 --bootstrap-server broker1:9092 \
      --command-property fetch.min.bytes=100000`

// consumeOptions are the flags of `kbench consume`.
type consumeOptions struct {
	perfOptions
	include    string
	group      string
	fromLatest bool
	timeout    int64 // ms
	fetchSize  int64
	detailed   bool
	hideHeader bool
	messages   int64 // --num-records by its deprecated name
	dateFormat string
	socketSize int64

	lines *perftool.Consumed
}

// newConsumeCommand makes `kbench consume`.
func newConsumeCommand() *cobra.Command {
	var o consumeOptions
	cmd := &cobra.Command{
		Use:     "consume --topic TOPIC --num-records N",
		Short:   "Read from topics, by the flags of kafka-consumer-perf-test",
		Long:    consumeLong + exitCodesHelp,
		Example: consumeExample,
		Args:    cobra.NoArgs,
		RunE:    o.run,
	}
	o.addFlags(cmd)
	o.addReporting(cmd)
	f := cmd.Flags()
	f.StringVar(&o.include, "include", "", "regular expression of the topics to read, in place of --topic")
	f.StringVar(&o.group, "group", "", "name of the consumer group (default one of the run's own, deleted after it)")
	f.BoolVar(&o.fromLatest, "from-latest", false, "where the group has committed nothing, begin at the end of the log instead of its beginning")
	f.Int64Var(&o.timeout, "timeout", 10_000, "milliseconds without a record after which the run ends")
	f.Int64Var(&o.fetchSize, "fetch-size", 1<<20, "most bytes of one partition in a request")
	f.BoolVar(&o.detailed, "show-detailed-stats", false, "a line every --reporting-interval, in place of one of everything")
	f.BoolVar(&o.hideHeader, "hide-header", false, "no line with the names of the columns")
	f.Int64Var(&o.messages, "messages", 0, "deprecated: --num-records")
	f.StringVar(&o.oldConfig, "consumer.config", "", "deprecated: --command-config")
	o.oldConfigName = "--consumer.config"
	f.StringVar(&o.dateFormat, "date-format", "", "not supported: times are printed as yyyy-MM-dd HH:mm:ss:SSS")
	f.Int64Var(&o.socketSize, "socket-buffer-size", 0, "not supported: the system sizes the sockets' buffers")
	return cmd
}

func (o *consumeOptions) run(cmd *cobra.Command, _ []string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	w, err := o.read(cmd, security.Consuming)
	if err != nil {
		return err
	}
	if len(o.brokers) == 0 {
		return usage(errors.New("name the cluster that has the topic by --bootstrap-server: an embedded broker would have none"))
	}
	o.fill(cmd, w)
	return o.start(cmd, w, o)
}

func (o *consumeOptions) check(cmd *cobra.Command) error {
	o.errOut = cmd.ErrOrStderr()
	given := cmd.Flags().Changed
	switch {
	case given("date-format"):
		return usage(errors.New("--date-format is not supported: it is a format of Java's; times are printed as yyyy-MM-dd HH:mm:ss:SSS"))
	case given("socket-buffer-size"):
		return usage(errors.New("--socket-buffer-size is not supported: the system sizes the sockets' buffers; leave it out"))
	case given("messages") && given("num-records"):
		return usage(errors.New("--num-records and --messages are given, which mean the same; leave out --messages"))
	case given("messages"):
		o.deprecated("--messages", "--num-records")
		o.records = o.messages
	}
	switch {
	case (o.topic == "") == (o.include == ""):
		return usage(errors.New("give exactly one of --topic and --include"))
	case o.timeout <= 0:
		return usage(fmt.Errorf("--timeout is %d: milliseconds above 0 are needed", o.timeout))
	case o.fetchSize <= 0:
		return usage(fmt.Errorf("--fetch-size is %d: a number of bytes above 0 is needed", o.fetchSize))
	}
	return o.need("num-records", "reporting-interval")
}

// idle is --timeout.
func (o *consumeOptions) idle() time.Duration { return time.Duration(o.timeout) * time.Millisecond }

// fill writes the workload.
func (o *consumeOptions) fill(cmd *cobra.Command, w *perfWorkload) {
	if o.topic != "" {
		w.set("topics.name", text(o.topic), "--topic")
	} else {
		w.set("topics.include", text(o.include), "--include")
	}
	w.set("producers.count", "0", "")
	w.set("producers.messages", strconv.FormatInt(o.records, 10), "--num-records")
	w.set("consumers.count", "1", "")
	w.set("consumers.mode", "group", "")
	w.set("consumers.from", "earliest", "")
	w.set("consumers.idle", settings.FormatDuration(o.idle()), "--timeout")
	w.set("consumer.group.balancers", "range,cooperative-sticky", "")
	w.set("consumer.group.commitInterval", "5s", "")
	w.set("consumer.maxPartitionBytes", strconv.FormatInt(o.fetchSize, 10), "--fetch-size")
	w.set("phases.warmUp", "0s", "")
	w.set("phases.duration", "0s", "")
	w.take()
	// As in Kafka's tool, these flags go before settings by Kafka's names.
	if o.group != "" {
		w.set("consumers.group", text(o.group), "--group")
	}
	if o.fromLatest {
		w.set("consumers.from", "run", "--from-latest")
	}
	if cmd.Flags().Changed("fetch-size") {
		w.set("consumer.maxPartitionBytes", strconv.FormatInt(o.fetchSize, 10), "--fetch-size")
	}
}

// prepare looks whether the topic is there.
func (o *consumeOptions) prepare(ctx context.Context, c *cluster, cfg *client.Config) error {
	if o.topic == "" {
		return nil // the run says when none matches
	}
	return topicReady(ctx, c, cfg, o.topic, func(cl *client.Client) error { return absent(ctx, cl, o.topic, client.ErrTopicUnknown) })
}

func (o *consumeOptions) begin() {
	o.lines = &perftool.Consumed{Every: o.every(), Detailed: o.detailed, Hide: o.hideHeader, Out: o.out}
	o.lines.Begin()
}

func (o *consumeOptions) watch(target run.Target, clock run.Clock) run.Target {
	o.lines.Clock = clock
	return o.lines.Watch(target)
}

func (o *consumeOptions) update() { o.lines.Update() }

func (o *consumeOptions) end(r *results.Result, dir string) error {
	err := o.metrics(o.ending(r, dir))
	o.lines.End(o.records, o.idle(), r.Interrupted)
	return err
}
