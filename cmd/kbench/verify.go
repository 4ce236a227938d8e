package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/report"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run/verify"
)

const verifyLong = `Read a topic back, from its first message to what is its end now, and say what is wrong with
the messages that kbench wrote there: lost, corrupted, reordered, duplicated, misplaced ones, by
partition and by producer, with the first examples. The messages of a run stay when the topic is
named (topics.name) or kept (topics.keep).

Every message carries its producer, its number among that producer's, and a checksum over these,
key and value. A number that is missing while a later one of its producer is there is lost; a
message that the run itself counted as failed or unknown leaves such a gap as well, and with
--read-committed one of an aborted transaction ('lost<=N' allows for them). What is missing behind a producer's last message cannot be told. Numbers that
retention or compaction may have taken away are counted apart, as removed.

Duplicates break nothing unless a threshold says so: a producer that is not idempotent promises
none. With --partitioner, messages whose key belongs to another partition are misplaced.
`

const verifyExample = `  kbench run quick -b broker1:9092 --set topics.name=orders-test
  kbench verify orders-test -b broker1:9092
  kbench verify orders-test -b broker1:9092 --threshold duplicated=0 --format json
  kbench verify orders-test -b broker1:9092 --partitioner murmur2 --timeout 30m`

// verifyOptions are the flags of `kbench verify`.
type verifyOptions struct {
	connecting
	format      string
	quiet       bool
	timeout     time.Duration
	partitioner string
	committed   bool
	memory      string
	threshold   []string

	maxBytes int64 // of memory
}

// newVerifyCommand makes `kbench verify`.
func newVerifyCommand() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:     "verify TOPIC",
		Short:   "Read a topic back: lost, duplicated, reordered, corrupted messages",
		Long:    verifyLong + exitCodesHelp,
		Example: verifyExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("name one topic, e.g. kbench verify orders-test -b broker1:9092"))
			}
			return nil
		},
		RunE: o.run,
	}
	o.connecting.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.format, "format", formatText, "what is printed: text, or json")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no summary, only errors (and the findings with --format json)")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long reading may take in all")
	f.StringVar(&o.partitioner, "partitioner", "", "look at where keys are, by the name of producer.partitioner that placed them (hash, murmur2, …)")
	f.BoolVar(&o.committed, "read-committed", false, "leave out what transactions have not committed; their messages then leave gaps, which count as lost ('lost<=N' allows for those of the run's aborted transactions)")
	f.StringVar(&o.memory, "memory", "512MiB", "what remembering the messages' numbers may take; reading ends with an error where it is not enough, as with numbers that lie far apart")
	f.StringArrayVar(&o.threshold, "threshold", nil, "condition on the findings, e.g. duplicated=0 or 'lost<=5' (repeatable; lost=0, corrupted=0, reordered=0 and unread=0 are asked for in any case, unless their figure is named)")
	return cmd
}

func (o *verifyOptions) run(cmd *cobra.Command, args []string) error {
	conditions, err := o.check()
	if err != nil {
		return err
	}
	if err := o.connecting.read(cmd, o.quiet); err != nil {
		return err
	}
	if len(o.brokers) == 0 {
		return usage(errors.New("name the cluster that has the topic by --brokers: an embedded broker would have none"))
	}
	stop := newStopper(cmd.ErrOrStderr())
	defer stop.release()
	ctx, cancel := context.WithTimeoutCause(stop.soft, o.timeout, errTimeout)
	defer cancel()
	v, err := o.verify(ctx, args[0], cmd.ErrOrStderr())
	if v == nil {
		return o.explain(ctx, stop, err)
	}
	verify.Judge(v, conditions)
	if printed := o.print(cmd.OutOrStdout(), v); printed != nil {
		return errors.Join(err, printed)
	}
	if err != nil {
		return o.explain(ctx, stop, err)
	}
	if slices.ContainsFunc(v.Thresholds, func(t results.Threshold) bool { return !t.Held }) {
		return &exitError{code: codeThreshold}
	}
	return nil
}

// check reads the flags that can be wrong by themselves.
func (o *verifyOptions) check() (conditions []workloads.Threshold, err error) {
	if err := checkFormat(o.format); err != nil {
		return nil, err
	}
	if o.timeout <= 0 {
		return nil, usage(fmt.Errorf("--timeout is %s: reading takes time", o.timeout))
	}
	if o.maxBytes, err = settings.ParseBytes(o.memory); err == nil && o.maxBytes < 1 {
		err = fmt.Errorf("is %s: the numbers take up to a byte per 10 messages", o.memory)
	}
	if err != nil {
		return nil, usage(fmt.Errorf("--memory %w", err))
	}
	for _, expression := range o.threshold {
		t, err := verify.ParseThreshold(expression)
		if err != nil {
			return nil, usage(fmt.Errorf("--threshold: %w", err))
		}
		conditions = append(conditions, t)
	}
	if o.partitioner != "" {
		if names := client.KeyPartitioners(); !slices.Contains(names, o.partitioner) {
			return nil, usage(fmt.Errorf("--partitioner %q is none that places by key; there are %s", o.partitioner, strings.Join(names, ", ")))
		}
	}
	return conditions, nil
}

var errTimeout = errors.New("time is up")

// explain says why reading ended early.
func (o *verifyOptions) explain(ctx context.Context, stop *stopper, err error) error {
	if stop.interrupted() {
		return &exitError{code: codeInterrupted, err: errors.New("interrupted before the topic was read to its end")}
	}
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Errorf("the topic was not read to its end within %s; raise --timeout", o.timeout)
	}
	if full := (*verify.MemoryError)(nil); errors.As(err, &full) {
		return fmt.Errorf("the topic was read to partition %d, offset %d: the numbers of its messages (%d producers) lie so far apart that remembering them takes more than --memory %s; raise it if they are to be counted",
			full.Partition, full.Offset, full.Producers, o.memory)
	}
	return err
}

// verify reads the topic. What was found until an error is there beside it, unless there was nothing.
func (o *verifyOptions) verify(ctx context.Context, topic string, errOut io.Writer) (*results.Verification, error) {
	cfg := client.NewConfig()
	cfg.Metadata.Retry.Max = 2
	if o.committed {
		cfg.Consumer.IsolationLevel = client.ReadCommitted
	}
	o.security.Apply(cfg)
	c, err := (&cluster{bootstrap: o.brokers}).contact(ctx, cfg, startPatience)
	if err != nil {
		return nil, unreached(err)
	}
	defer func() { _ = c.Close() }() // nothing is open on it
	began := time.Now()
	spans, err := verify.Spans(ctx, c, topic)
	if err != nil {
		return nil, absent(ctx, c, topic, err)
	}
	audit := verify.NewAudit(spans)
	audit.MaxBytes = o.maxBytes
	if o.partitioner != "" {
		audit.By = client.KeyPartitioner(o.partitioner)
	}
	topicConfig, err := c.TopicConfig(ctx, topic)
	audit.Compacted = strings.Contains(topicConfig["cleanup.policy"], "compact")
	unknownPolicy := err != nil
	show := newReading(errOut, o.quiet, spans)
	err = verify.ReadSpans(ctx, c, topic, spans, verify.Visitor{
		Message:    func(m *client.Message) error { show.one(); return audit.Message(m) },
		Unreadable: audit.Unreadable, Removed: audit.Removed,
	})
	show.end()
	v := audit.Report(err == nil)
	v.Topic, v.StartedAt, v.ElapsedNs = topic, began.UTC(), int64(time.Since(began))
	v.Notes = append(v.Notes, notes(spans, audit.Compacted, unknownPolicy)...)
	v.Notes = append(v.Notes, gapNotes(v, o.committed)...)
	if err == nil && v.Total.Messages == v.Total.Unstamped+v.Total.Unread {
		return nil, unstamped(topic, v)
	}
	return v, err
}

// notes say what the topic itself took away.
func notes(spans map[int32]verify.Span, compacted, unknownPolicy bool) (list []string) {
	cut := 0
	for _, s := range spans {
		if s.Cut() {
			cut++
		}
	}
	if cut > 0 {
		list = append(list, fmt.Sprintf("the logs of %d of %d partitions do not begin at offset 0 any more: what may have been there is counted as removed, not as lost", cut, len(spans)))
	}
	if compacted {
		list = append(list, "the topic is compacted (cleanup.policy): missing messages are counted as removed, not as lost")
	}
	if unknownPolicy {
		list = append(list, "whether the topic is compacted could not be asked for; if it is, missing messages are not lost")
	}
	return list
}

// gapNotes say what else than loss leaves a gap, where there are any.
func gapNotes(v *results.Verification, committed bool) []string {
	if v.Total.Lost == 0 {
		return nil
	}
	text := "lost are gaps in the producers' numbers; a message that its run counted as failed or unknown leaves one as well"
	if committed {
		text += ", and so does one of a transaction that was not committed (--read-committed)"
	}
	return []string{text + ": hold the figure against the run's own counts, and allow for them with --threshold 'lost<=N'"}
}

// absent says what there is when a topic is not.
func absent(ctx context.Context, c *client.Client, topic string, err error) error {
	if !errors.Is(err, client.ErrTopicUnknown) {
		return err
	}
	text := fmt.Sprintf("there is no topic %q on the cluster", topic)
	if names, err := c.Topics(ctx); err == nil {
		if near := settings.Nearest(topic, names); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
	}
	return errors.New(text)
}

// unstamped says that there is nothing to verify.
func unstamped(topic string, v *results.Verification) error {
	if v.Total.Messages == 0 {
		return fmt.Errorf("topic %q holds no message: there is nothing to verify", topic)
	}
	return fmt.Errorf("none of the %d messages of topic %q carries a stamp of kbench's: verify needs what kbench run wrote, with payload.stamp other than none", v.Total.Messages, topic)
}

func (o *verifyOptions) print(out io.Writer, v *results.Verification) error {
	if o.format == formatJSON {
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", data)
		return err
	}
	if o.quiet {
		return nil
	}
	return report.Verification(out, v, report.TerminalOptions{Colour: colourful(out)})
}

// reading shows how far reading is, to people: on a terminal a line that is drawn over.
type reading struct {
	w           io.Writer // nil: nobody watches
	total, read int64
	began, last time.Time
}

func newReading(w io.Writer, quiet bool, spans map[int32]verify.Span) *reading {
	r := &reading{began: time.Now(), last: time.Now()}
	for _, s := range spans {
		r.total += s.Messages()
	}
	if !quiet {
		r.w = w
	}
	return r
}

// one counts a message; the clock is read once in a while.
func (r *reading) one() {
	if r.read++; r.read%4096 != 0 || r.w == nil {
		return
	}
	every := lineEvery
	if isTerminal(r.w) {
		every = 250 * time.Millisecond
	}
	if now := time.Now(); now.Sub(r.last) >= every {
		r.last = now
		r.tell()
	}
}

func (r *reading) tell() {
	text := fmt.Sprintf("read %d of %d messages, %.0f %%, %.0f/s", r.read, r.total,
		100*float64(r.read)/float64(max(r.total, 1)), float64(r.read)/time.Since(r.began).Seconds())
	if isTerminal(r.w) {
		_, _ = fmt.Fprintf(r.w, "\r\x1b[K%s", text) // progress is not worth an error
		return
	}
	_, _ = fmt.Fprintln(r.w, text)
}

func (r *reading) end() {
	if r.w != nil && isTerminal(r.w) {
		_, _ = fmt.Fprint(r.w, "\r\x1b[K")
	}
}
