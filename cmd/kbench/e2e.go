package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/security"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/perftool"
)

const endToEndLong = `Measure how long a message takes from a producer through the cluster to a consumer, as Kafka's
EndToEndLatency (4.4) does: one message at a time, the next is sent when the one before has come
back. The flags and lines are Kafka's; behind them is the engine of kbench run, so that there is a
result directory with histograms, a timeline and a report as well; standard error says where.

The result's series e2e is received − accepted, the lines' latency the same. For the latency under
a load see 'kbench run end-to-end': one message at a time says what is possible, not what users feel.
`

const endToEndExample = `  kbench e2e --topic probe --num-records 10000 --producer-acks all --record-size 100 \
      --bootstrap-server broker1:9092`

// endToEndOptions are the flags of `kbench e2e`.
type endToEndOptions struct {
	perfOptions
	acks       string
	recordSize int
	keySize    int
	headers    int
	headerKey  int
	headerSize int

	lines *perftool.EndToEnd
}

// newEndToEndCommand makes `kbench e2e`.
func newEndToEndCommand() *cobra.Command {
	var o endToEndOptions
	cmd := &cobra.Command{
		Use:     "e2e --topic TOPIC --num-records N --producer-acks 1|all --record-size BYTES",
		Short:   "Latency of one message at a time from end to end, by the flags of EndToEndLatency",
		Long:    endToEndLong + exitCodesHelp,
		Example: endToEndExample,
		Args:    cobra.NoArgs,
		RunE:    o.run,
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.acks, "producer-acks", "", "who must have a message before it counts as sent: 1 or all")
	f.IntVar(&o.recordSize, "record-size", 0, "bytes of every message's value; below 32, its number and checksum are in a record header")
	f.IntVar(&o.keySize, "record-key-size", 0, "bytes of every message's key; 0: no key")
	f.IntVar(&o.headers, "num-headers", 0, "record headers of every message")
	f.IntVar(&o.headerKey, "record-header-key-size", 0, "bytes of the name of every header")
	f.IntVar(&o.headerSize, "record-header-size", 0, "bytes of the value of every header")
	return cmd
}

func (o *endToEndOptions) run(cmd *cobra.Command, _ []string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	w, err := o.read(cmd, security.Producing|security.Consuming)
	if err != nil {
		return err
	}
	o.fill(w)
	return o.start(cmd, w, o)
}

func (o *endToEndOptions) check(cmd *cobra.Command) error {
	if err := o.need("topic", "num-records"); err != nil {
		return err
	}
	switch {
	case o.acks != "1" && o.acks != "all":
		return usage(fmt.Errorf("--producer-acks is %q: a latency needs an acknowledgement, so give 1 or all", o.acks))
	case o.recordSize <= 0:
		return usage(fmt.Errorf("--record-size is %d: a number of bytes above 0 is needed", o.recordSize))
	case o.keySize < 0:
		return usage(fmt.Errorf("--record-key-size is %d: a number of bytes is needed, 0 for no key", o.keySize))
	}
	return o.checkHeaders(cmd)
}

func (o *endToEndOptions) checkHeaders(cmd *cobra.Command) error {
	const most = 1000
	switch digits := len(strconv.Itoa(max(0, o.headers-1))); {
	case o.headers < 0 || o.headers > most:
		return usage(fmt.Errorf("--num-headers is %d: 0 to %d are possible", o.headers, most))
	case o.headers == 0 && (cmd.Flags().Changed("record-header-key-size") || cmd.Flags().Changed("record-header-size")):
		return usage(errors.New("--num-headers is missing: the number of headers whose sizes are given"))
	case o.headers > 0 && o.headerKey < digits:
		return usage(fmt.Errorf("--record-header-key-size is %d: the names of %d headers need %d bytes each to differ", o.headerKey, o.headers, digits))
	case o.headers > 0 && o.headerSize < 0:
		return usage(fmt.Errorf("--record-header-size is %d: headers without a value are not supported; give 0 or more", o.headerSize))
	}
	return nil
}

// headersOf are the headers as YAML has them: names of digits, values of letters.
func (o *endToEndOptions) headersOf() string {
	var list []string
	for i := range o.headers {
		value := ""
		if o.headerSize > 0 {
			value = fmt.Sprintf("{{text %d}}", o.headerSize)
		}
		list = append(list, fmt.Sprintf("%q: %q", fmt.Sprintf("%0*d", o.headerKey, i), value))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// fill writes the workload.
func (o *endToEndOptions) fill(w *perfWorkload) {
	w.set("topics.name", text(o.topic), "--topic")
	w.set("producers.count", "1", "")
	w.set("producers.form", "sync", "")
	w.set("producers.await", "received", "")
	w.set("producers.messages", strconv.FormatInt(o.records, 10), "--num-records")
	w.set("consumers.count", "1", "")
	w.set("consumers.from", "run", "")
	w.set("payload.size", strconv.Itoa(o.recordSize), "--record-size")
	w.set("payload.compressibility", "0", "")
	if o.keySize > 0 {
		n := "1"
		for range min(o.keySize, 9) {
			n += "0"
		}
		w.set("payload.keys.kind", "uniform", "--record-key-size")
		w.set("payload.keys.size", strconv.Itoa(o.keySize), "--record-key-size")
		w.set("payload.keys.n", n, "--record-key-size")
	}
	if o.headers > 0 {
		w.set("payload.headers", o.headersOf(), "--num-headers")
	}
	w.set("phases.warmUp", "0s", "")
	w.set("phases.duration", "0s", "")
	w.set("phases.drain", "60s", "") // how long Kafka's tool waits for a message
	w.set("consumer.maxWait", "0s", "")
	w.javaProducer(0)
	w.set("producer.requiredAcks", o.acks, "--producer-acks")
	w.idempotence()
}

// prepare makes the topic where there is none, as Kafka's tool does.
func (o *endToEndOptions) prepare(ctx context.Context, c *cluster, cfg *client.Config) error {
	return topicReady(ctx, c, cfg, o.topic, func(cl *client.Client) error {
		_, _ = fmt.Fprintf(o.out, "Topic \"%s\" does not exist. Will create topic with 1 partition(s) and replication factor = 1\n", o.topic)
		err := cl.CreateTopics(ctx, client.TopicSpec{Name: o.topic, Partitions: 1, ReplicationFactor: 1})
		if err != nil {
			return errors.Join(fmt.Errorf("--topic %s", o.topic), err)
		}
		return nil
	})
}

func (o *endToEndOptions) begin() { o.lines = &perftool.EndToEnd{Out: o.out} }

func (o *endToEndOptions) watch(target run.Target, clock run.Clock) run.Target {
	o.lines.Clock = clock
	return o.lines.Watch(target)
}

func (o *endToEndOptions) update() {}

func (o *endToEndOptions) end(r *results.Result, dir string) error {
	o.ending(r, dir)
	o.lines.End()
	return nil
}
