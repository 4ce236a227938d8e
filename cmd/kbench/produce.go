package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"path/filepath"
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

const produceLong = `Write records to a topic, as kafka-producer-perf-test (Kafka 4.4) does: the same flags, Kafka's own
names of settings and its defaults (acks=all, enable.idempotence=true, linger.ms=5, batch.size=16384,
buffer.memory=33554432), and the same lines on standard output, the last one with the percentiles.
Behind them is the engine of kbench run, so that there is a result directory with histograms, a
timeline and a report as well; standard error says where.

With --throughput, records are due by a schedule and the result has response = acked − due beside
service = acked − accepted, which is what the lines show; a run that falls behind its throughput is
invalid (exit code 5). With --throughput -1 they are sent as fast as the bounds of the client allow.

With --transactional-id or --transaction-duration-ms they are sent in transactions, each committed when
that time has passed; the result has what became of them, and how long each took and its commit.

--warmup-records are not in the result's figures; the lines show everything, and then the steady
state, as Kafka's do. Values are random bytes that do not compress; of 32 bytes or more, they carry
a number and a checksum, for kbench verify.

A setting that is unknown or means nothing here is refused with the reason. What has no flag is set
by --set and kbench's names.
`

const produceExample = `  kbench produce --topic orders --num-records 100000 --record-size 100 --throughput 10000 \
      --bootstrap-server broker1:9092 --command-property acks=all linger.ms=5
  kbench produce --topic orders --num-records 5000000 --record-size 1000 --throughput -1 \
      --warmup-records 500000 --command-config client.properties --bootstrap-server broker1:9092`

// produceOptions are the flags of `kbench produce`.
type produceOptions struct {
	perfOptions
	recordSize   int
	throughput   float64
	warmUp       int64
	keyRange     int64
	keys         string
	seed         int64
	payloadFile  string
	delimiter    string
	monotonic    bool
	transaction  string
	transactions int64 // ms

	lines *perftool.Produced
}

// newProduceCommand makes `kbench produce`.
func newProduceCommand() *cobra.Command {
	var o produceOptions
	cmd := &cobra.Command{
		Use:     "produce --topic TOPIC --num-records N --record-size BYTES --throughput RATE",
		Short:   "Write to a topic, by the flags of kafka-producer-perf-test",
		Long:    produceLong + exitCodesHelp,
		Example: produceExample,
		Args:    cobra.NoArgs,
		RunE:    o.run,
	}
	o.addFlags(cmd)
	o.addReporting(cmd)
	f := cmd.Flags()
	f.IntVar(&o.recordSize, "record-size", 0, "bytes of every record's value; one of this, --payload-file and --payload-monotonic is needed")
	f.Float64Var(&o.throughput, "throughput", 0, "records a second; -1: as many as possible")
	f.Int64Var(&o.warmUp, "warmup-records", 0, "records at the beginning that are not in the result's figures")
	f.StringVar(&o.keys, "key-distribution", "none", "keys of the records: none, range (in turn) or random, of --record-key-range")
	f.Int64Var(&o.keyRange, "record-key-range", 0, "number of different keys: decimal numbers from 0")
	f.Int64Var(&o.seed, "random-seed", 0, "seed of values and random keys; the same seed gives the same run")
	f.StringVar(&o.payloadFile, "payload-file", "", "file of texts, one of which, by chance, is each record's value")
	f.StringVar(&o.delimiter, "payload-delimiter", `\n`, "what is between two texts of --payload-file, as it is: not a pattern, as in Kafka's")
	f.BoolVar(&o.monotonic, "payload-monotonic", false, "the value of each record is its number")
	f.StringVar(&o.transaction, "transactional-id", "", "send in transactions, as the producer of this name: one that is under way with it is ended (default with --transaction-duration-ms: performance-producer- and a random name)")
	f.Int64Var(&o.transactions, "transaction-duration-ms", 0, fmt.Sprintf("milliseconds after which a transaction is committed (default with --transactional-id or transactional.id: %d)", defaultTransaction.Milliseconds()))
	f.StringArrayVar(&o.oldProps, "producer-props", nil, "deprecated: --command-property")
	f.StringVar(&o.oldConfig, "producer.config", "", "deprecated: --command-config")
	o.oldConfigName = "--producer.config"
	return cmd
}

func (o *produceOptions) run(cmd *cobra.Command, _ []string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	w, err := o.read(cmd, security.Producing)
	if err != nil {
		return err
	}
	if err := o.fill(cmd, w); err != nil {
		return err
	}
	return o.start(cmd, w, o)
}

// check refuses what Kafka's tool refuses.
func (o *produceOptions) check(cmd *cobra.Command) error {
	if err := o.need("topic", "num-records", "reporting-interval"); err != nil {
		return err
	}
	payloads := 0
	for _, flag := range []string{"record-size", "payload-file", "payload-monotonic"} {
		if cmd.Flags().Changed(flag) {
			payloads++
		}
	}
	switch {
	case payloads != 1:
		return usage(errors.New("give exactly one of --record-size, --payload-file and --payload-monotonic"))
	case cmd.Flags().Changed("record-size") && o.recordSize <= 0:
		return usage(fmt.Errorf("--record-size is %d: a number of bytes above 0 is needed", o.recordSize))
	case !cmd.Flags().Changed("throughput"):
		return usage(errors.New("--throughput is missing: records a second, or -1 for as many as possible"))
	case o.throughput == 0 || o.throughput != o.throughput || o.throughput > 1e9:
		return usage(fmt.Errorf("--throughput is %v: records a second up to 1e9 are needed, or -1 for as many as possible", o.throughput))
	case o.warmUp < 0 || o.warmUp >= o.records:
		return usage(fmt.Errorf("--warmup-records is %d: it must be below --num-records, %d, and not below 0", o.warmUp, o.records))
	}
	return o.checkKeys(cmd)
}

func (o *produceOptions) checkKeys(cmd *cobra.Command) error {
	switch o.keys {
	case "none":
		if cmd.Flags().Changed("record-key-range") {
			return usage(errors.New("--record-key-range needs --key-distribution range or random: without, records have no keys"))
		}
	case "range", "random":
		if o.keyRange <= 0 {
			return usage(fmt.Errorf("--key-distribution %s needs --record-key-range, the number of different keys, above 0", o.keys))
		}
	default:
		return usage(fmt.Errorf("--key-distribution %q is none of none, range and random", o.keys))
	}
	return nil
}

// fill writes the workload.
func (o *produceOptions) fill(cmd *cobra.Command, w *perfWorkload) error {
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	w.set("seed", strconv.FormatUint(uint64(o.seed), 10), "--random-seed")
	w.set("topics.name", text(o.topic), "--topic")
	w.set("producers.count", "1", "")
	w.set("producers.messages", whole(o.records-o.warmUp), "--num-records")
	if o.throughput > 0 {
		w.set("producers.rate", strconv.FormatFloat(o.throughput, 'f', -1, 64), "--throughput")
	}
	w.set("phases.warmUp", "0s", "")
	w.set("phases.warmUpMessages", whole(o.warmUp), "--warmup-records")
	w.set("phases.duration", "0s", "")
	w.set("phases.drain", "2m", "") // delivery.timeout.ms
	if o.keys != "none" {
		w.set("payload.keys.kind", map[string]string{"range": "sequential", "random": "uniform"}[o.keys], "--key-distribution")
		w.set("payload.keys.n", whole(o.keyRange), "--record-key-range")
		w.set("payload.keys.size", "0", "")
	}
	if err := o.values(cmd, w); err != nil {
		return err
	}
	w.javaProducer(5 * time.Millisecond)
	return o.transactional(cmd, w)
}

// values says what the records hold.
func (o *produceOptions) values(cmd *cobra.Command, w *perfWorkload) error {
	const stamp = 32 // bytes
	switch {
	case o.monotonic:
		w.set("payload.kind", "template", "--payload-monotonic")
		w.set("payload.template", text("{{seq}}"), "--payload-monotonic")
		w.set("payload.stamp", "none", "")
	case o.recordSize > 0:
		w.set("payload.size", strconv.Itoa(o.recordSize), "--record-size")
		w.set("payload.compressibility", "0", "")
		w.set("payload.stamp", map[bool]string{true: "value", false: "none"}[o.recordSize >= stamp], "--record-size")
	default:
		return o.fileOfValues(cmd, w)
	}
	return nil
}

// fileOfValues has values from a file.
func (o *produceOptions) fileOfValues(cmd *cobra.Command, w *perfWorkload) error {
	path, err := filepath.Abs(o.payloadFile)
	if err != nil {
		return fmt.Errorf("--payload-file: %w", err)
	}
	w.set("payload.kind", "lines", "--payload-file")
	w.set("payload.file", text(path), "--payload-file")
	w.set("payload.order", "random", "")
	w.set("payload.stamp", "none", "")
	if cmd.Flags().Changed("payload-delimiter") && o.delimiter != `\n` {
		w.set("payload.delimiter", strconv.Quote(o.delimiter), "--payload-delimiter")
	}
	return nil
}

// defaultTransaction is how long a transaction is open where only its producer is named.
const defaultTransaction = 3 * time.Second

// transactional says whether the records are sent in transactions: when they have a name or a length, as
// with Kafka's tool.
func (o *produceOptions) transactional(cmd *cobra.Command, w *perfWorkload) error {
	named, lasting := cmd.Flags().Changed("transactional-id"), cmd.Flags().Changed("transaction-duration-ms")
	switch {
	case named && o.transaction == "":
		return usage(errors.New("--transactional-id is empty: give the name of the transactional producer, or leave it out"))
	case lasting && (o.transactions <= 0 || o.transactions > math.MaxInt32):
		return usage(fmt.Errorf("--transaction-duration-ms is %d: milliseconds from 1 to %d are needed", o.transactions, math.MaxInt32))
	case named:
		w.set("producer.transaction.id", text(o.transaction), "--transactional-id")
	case w.names["transactional.id"]:
	case lasting:
		w.set("producer.transaction.id", text("performance-producer-"+rand.Text()), "")
	default:
		return nil
	}
	every, from := defaultTransaction, "--transactional-id"
	if lasting {
		every, from = time.Duration(o.transactions)*time.Millisecond, "--transaction-duration-ms"
	} else if !named {
		from = "transactional.id"
	}
	w.set("producers.transactions.every", settings.FormatDuration(every), from)
	return nil
}

// prepare has the topic made where there is none: on an embedded broker, and on clusters that make
// topics when they are first asked for.
func (o *produceOptions) prepare(ctx context.Context, c *cluster, cfg *client.Config) error {
	return topicReady(ctx, c, cfg, o.topic, func(cl *client.Client) error {
		if c.child != nil {
			return cl.CreateTopics(ctx, client.TopicSpec{Name: o.topic, Partitions: 1, ReplicationFactor: 1})
		}
		return madeByCluster(ctx, cl, o.topic)
	})
}

// autoCreation bounds the wait for a cluster to make a topic that was asked for.
const autoCreation = 10 * time.Second

// madeByCluster asks for a topic until the cluster has made it, which is a setting of the brokers'.
func madeByCluster(ctx context.Context, cl *client.Client, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, autoCreation)
	defer cancel()
	for {
		parts, err := cl.WritablePartitions(ctx, topic) // with metadata.allowAutoTopicCreation
		if err == nil && len(parts) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			err := absent(context.WithoutCancel(ctx), cl, topic, client.ErrTopicUnknown)
			return fmt.Errorf("%w, and it makes none by itself (auto.create.topics.enable)", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (o *produceOptions) begin() {
	o.lines = &perftool.Produced{Every: o.every(), WarmUp: o.warmUp, Out: o.out}
	o.lines.Begin()
}

func (o *produceOptions) watch(target run.Target, clock run.Clock) run.Target {
	o.lines.Clock = clock
	return o.lines.Watch(target)
}

func (o *produceOptions) update() { o.lines.Update() }

func (o *produceOptions) end(r *results.Result, dir string) error {
	err := o.metrics(o.ending(r, dir))
	o.lines.End()
	return err
}

// metrics prints every figure where that is asked for.
func (o *perfOptions) metrics(r *results.Run) error {
	if !o.printMetrics || r == nil {
		return nil
	}
	return perftool.Metrics(o.out, r)
}
