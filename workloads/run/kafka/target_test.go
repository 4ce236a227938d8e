package kafka

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/broker"
	"github.com/kbench/kbench/workloads/run"
)

func start(t *testing.T, nodes int) *broker.Cluster {
	c, err := broker.Start(broker.Options{Nodes: nodes})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestRunsAreWhole(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*workloads.Definition, *client.Config)
	}{
		{"by default", func(*workloads.Definition, *client.Config) {}},
		{"with one connection for all producers", func(d *workloads.Definition, _ *client.Config) { d.Producers.ShareConnection = true }},
		{"by channels", func(d *workloads.Definition, _ *client.Config) { d.Producers.Form = "channels" }},
		{"by channels that hold nothing", func(d *workloads.Definition, c *client.Config) { d.Producers.Form, c.ChannelBufferSize = "channels", 0 }},
		{"by channels, with a trigger that only a flush replaces", func(d *workloads.Definition, c *client.Config) {
			d.Producers.Form, c.Producer.Flush.Messages = "channels", 64
		}},
		{"by channels over one connection", func(d *workloads.Definition, _ *client.Config) {
			d.Producers.Form, d.Producers.ShareConnection = "channels", true
		}},
		{"with the sync form", func(d *workloads.Definition, _ *client.Config) { d.Producers.Form = "sync" }},
		{"in batches", func(d *workloads.Definition, _ *client.Config) { d.Producers.Form = "batch" }},
		{"in batches over one connection, with keys", func(d *workloads.Definition, _ *client.Config) {
			d.Producers.Form, d.Producers.ShareConnection = "batch", true
			d.Payload.Stamp, d.Payload.Keys.Kind, d.Payload.Keys.Size, d.Payload.Keys.N = "header", "uniform", 16, 100
		}},
		{"in queued batches", func(d *workloads.Definition, c *client.Config) {
			d.Producers.Form, c.Producer.Batch.Async = "batch", true
		}},
		{"in queued batches that wait for room", func(d *workloads.Definition, c *client.Config) {
			d.Producers.Form, c.Producer.Batch.Async, c.Producer.Buffer.Messages = "batch", true, 2
		}},
		{"reading message by message", func(d *workloads.Definition, _ *client.Config) { d.Consumers.Form = "message" }},
		{"by three groups", func(d *workloads.Definition, _ *client.Config) { d.Consumers.Groups = 3 }},
		{"by two groups message by message", func(d *workloads.Definition, _ *client.Config) {
			d.Consumers.Groups, d.Consumers.Form = 2, "message"
		}},
		{"by consumers that begin on a backlog", func(d *workloads.Definition, _ *client.Config) {
			d.Consumers.StartAfter = 300 * time.Millisecond
		}},
		{"with more consumers than partitions", func(d *workloads.Definition, _ *client.Config) { d.Consumers.Count = 8 }},
		{"with stamps in a header, and keys", func(d *workloads.Definition, _ *client.Config) {
			d.Payload.Stamp, d.Payload.Keys.Kind, d.Payload.Keys.Size, d.Payload.Keys.N = "header", "uniform", 16, 100
		}},
		{"with values that are too small for a stamp", func(d *workloads.Definition, _ *client.Config) { d.Payload.Size = 100; d.Payload.Stamp = "header" }},
		{"compressed", func(_ *workloads.Definition, c *client.Config) {
			require.NoError(t, c.Producer.Compression.UnmarshalText([]byte("zstd")))
		}},
		{"lingering", func(_ *workloads.Definition, c *client.Config) { c.Producer.Flush.Frequency = 20 * time.Millisecond }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := bench{d: load(1000), cfg: client.NewConfig()}
			tc.change(&b.d, b.cfg)
			c := start(t, 2)
			target, spec := b.target(c.Bootstrap())
			out, err := run.Execute(within(t), spec)
			require.NoError(t, err)
			requireWholeIn(t, out, 1000, int64(b.d.Consumers.Groups))
			requireReport(t, out, 2)
			require.Positive(t, out.Run.Series[results.SeriesProduce].Count)
			m := target.Metrics().Overall
			require.Equal(t, c.Requests(0), m.Request("Produce").RequestBytes.Count, "every request is in the metrics, once")
			require.Zero(t, m.InFlight)
			require.Positive(t, out.Run.Series[results.SeriesFetch].Count)
			require.Empty(t, topicsOf(t, c.Bootstrap()), "the topic made for the run is gone")
		})
	}
}

func TestRunOverSeveralTopics(t *testing.T) {
	b := bench{d: load(1000)}
	b.d.Topics.Count, b.d.Producers.Count, b.d.Topics.Partitions = 3, 3, 2
	out := b.execute(t, start(t, 1).Bootstrap())
	requireWhole(t, out, 1000)
	require.Len(t, out.Run.Topics, 3)
	for _, topic := range out.Run.Topics {
		require.EqualValues(t, 2, topic.Partitions)
	}
}

func TestWrittenWithoutAcks(t *testing.T) {
	b := bench{d: load(1000), cfg: client.NewConfig(), acks: run.AckMeaningWritten}
	b.cfg.Producer.RequiredAcks = client.AcksNone
	out := b.execute(t, start(t, 1).Bootstrap())
	requireWhole(t, out, 1000)
	require.Zero(t, out.Run.Series[results.SeriesProduce].Count, "nothing is answered")
	require.Positive(t, out.Run.Batches.Requests)
}

func TestTopicsAreKept(t *testing.T) {
	b := bench{d: load(200)}
	b.d.Topics.Keep = true
	c := start(t, 1)
	out := b.execute(t, c.Bootstrap())
	requireWhole(t, out, 200)
	require.Equal(t, map[string]bool{out.Run.Topics[0].Name: true}, topicsOf(t, c.Bootstrap()))
}

// A topic of the user's is neither made nor deleted, and what it holds from before is not read.
func TestNamedTopicIsLeftAlone(t *testing.T) {
	c := start(t, 1)
	require.NoError(t, c.CreateTopic("mine", 6, map[string]string{"retention.ms": "1234567"}))
	put(t, c.Bootstrap(), "mine", 50)
	b := bench{d: load(500)}
	b.d.Topics.Name, b.d.Phases.WarmUp = "mine", 0
	out := b.execute(t, c.Bootstrap())
	requireWhole(t, out, 500)
	require.Equal(t, "mine", out.Run.Topics[0].Name)
	require.Equal(t, "1234567", out.Run.Topics[0].Config["retention.ms"])
	held := int64(0)
	for p := range int32(6) {
		_, end, err := c.Offsets("mine", p)
		require.NoError(t, err)
		held += end
	}
	require.EqualValues(t, 550, held)
}

// arrivals counts what consumers receive, and says when it is enough.
type arrivals struct {
	mu     sync.Mutex
	places map[[2]int64]int // by partition and offset
	want   int
	enough chan struct{} // closed by the arrival that makes it enough
}

func (a *arrivals) Received(batch []run.Arrival, _ int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range batch {
		a.places[[2]int64{int64(m.Partition), m.Offset}]++
		if len(a.places) == a.want {
			close(a.enough)
		}
	}
}

func (a *arrivals) Request(string, int64, int64) {}

// Every partition is some consumer's, and only one's; "earliest" reads what is there already.
func TestConsumersShareThePartitions(t *testing.T) {
	c := start(t, 2)
	require.NoError(t, c.CreateTopic("mine", 5, nil))
	put(t, c.Bootstrap(), "mine", 500)
	b := bench{d: load(1)}
	b.d.Topics.Name, b.d.Consumers.From, b.d.Consumers.Count = "mine", "earliest", 3
	target, _ := b.target(c.Bootstrap())
	require.NoError(t, target.Prepare(within(t)))
	in := &arrivals{places: map[[2]int64]int{}, want: 500, enough: make(chan struct{})}
	ctx, cancel := context.WithCancel(within(t))
	var running sync.WaitGroup
	var consumers []run.Consumer
	for id := range 3 {
		consumer, err := target.OpenConsumer(ctx, run.Member{ID: id, Place: id}, in)
		require.NoError(t, err)
		consumers = append(consumers, consumer)
		running.Go(func() { // ends with ctx
			if err := consumer.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	select {
	case <-in.enough:
	case <-ctx.Done():
		t.Fatalf("received %d of 500", len(in.places))
	}
	require.Eventually(t, func() bool { return behind(target) == 0 }, patience, 10*time.Millisecond)
	cancel()
	running.Wait()
	for place, times := range in.places {
		require.Equal(t, 1, times, "partition and offset %v", place)
	}
	for _, consumer := range consumers {
		require.NoError(t, consumer.Close(within(t)))
	}
	require.NoError(t, target.Finish(within(t)))
}

// behind sums the lags; −1 when one is not known.
func behind(t *Target) (sum int64) {
	for _, p := range t.Lags(nil) {
		if p.Messages < 0 {
			return -1
		}
		sum += p.Messages
	}
	return sum
}

func TestPrepareSaysWhatIsWrong(t *testing.T) {
	c := start(t, 1)
	closed := start(t, 1)
	nobody := closed.Bootstrap()
	closed.Close()
	for _, tc := range []struct {
		name      string
		bootstrap []string
		change    func(*workloads.Definition, *client.Config)
		want      []string
	}{
		{"nobody listens", nobody, func(_ *workloads.Definition, c *client.Config) { c.Metadata.Timeout = time.Second },
			[]string{nobody[0], "is a broker listening there?"}},
		{"the topic named is not there", c.Bootstrap(), func(d *workloads.Definition, c *client.Config) {
			d.Topics.Name, c.Metadata.Retry.Max = "no-such", 2
		}, []string{`unknown topic "no-such"`}},
		{"more replicas than brokers", c.Bootstrap(), func(d *workloads.Definition, _ *client.Config) { d.Topics.ReplicationFactor = 5 },
			[]string{"kbench-target-test-", "INVALID_REPLICATION_FACTOR"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := bench{d: load(100), cfg: client.NewConfig()}
			tc.change(&b.d, b.cfg)
			target, _ := b.target(tc.bootstrap)
			err := target.Prepare(within(t))
			require.Error(t, err)
			for _, part := range tc.want {
				require.ErrorContains(t, err, part)
			}
			require.NoError(t, target.Finish(within(t)), "also after a failure half-way")
		})
	}
	require.Empty(t, topicsOf(t, c.Bootstrap()))
}

// forms are the forms of the producer, with the batch producer's modes.
var forms = []string{"callback", "channels", "sync", "batch", "batch async"}

func (b *bench) form(name string) {
	b.d.Producers.Form, _, b.cfg.Producer.Batch.Async = strings.Cut(name, " ")
}

// What is refused is counted by kind, and is nobody's latency.
func TestRefusedMessagesAreCounted(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) { requireRefusalsCounted(t, form) })
	}
}

func requireRefusalsCounted(t *testing.T, form string) {
	c := start(t, 1)
	require.NoError(t, c.CreateTopic("mine", 1, nil))
	b := bench{d: load(1000), cfg: client.NewConfig()}
	b.form(form)
	b.d.Topics.Name, b.d.Phases.WarmUp, b.d.Producers.Count = "mine", 0, 1
	b.cfg.Producer.Retry.Max, b.cfg.Producer.Flush.MaxMessages = 0, 10
	c.FailProduce(19, 10)
	out := b.execute(t, c.Bootstrap())
	n := out.Run.Counts
	require.EqualValues(t, 1000, n.Attempted)
	require.Positive(t, n.Failed)
	require.LessOrEqual(t, n.Failed, int64(100))
	require.Zero(t, n.Unknown)
	require.Equal(t, n.Attempted, n.Acked+n.Failed)
	require.Equal(t, n.Acked, n.Received)
	require.Equal(t, map[string]int64{"NOT_ENOUGH_REPLICAS": n.Failed}, out.Run.Errors)
	require.Equal(t, n.Failed, out.Run.Series[results.SeriesFailed].Count)
	require.Zero(t, n.Lost)
}

// A stalled broker shows in the response, and the number of messages offered is the schedule's.
func TestStallShowsInTheResponse(t *testing.T) {
	c := start(t, 1)
	b := bench{d: load(4000)}
	b.d.Producers.Rate = 1000
	_, spec := b.target(c.Bootstrap())
	stalled := false
	spec.Progress = func(p run.Progress) { // never twice at the same time
		if !stalled && p.Phase == run.PhaseMeasure {
			stalled = true
			c.Stall(800 * time.Millisecond)
		}
	}
	out, err := run.Execute(within(t), spec)
	require.NoError(t, err)
	require.True(t, stalled, "the measured phase was seen")
	requireWhole(t, out, 4000)
	require.GreaterOrEqual(t, out.Run.Series[results.SeriesResponse].MaxNs, int64(750*time.Millisecond))
}

func TestInterruptedRunEndsInTimeAndCleansUp(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			requireInterruptInTime(t, form)
		})
	}
}

// Whatever the form waits for, an interrupt ends it, within the bound for outcomes and that for
// closing, also while the broker answers nothing; and every message is accounted for.
func TestInterruptOfAStalledRunEndsInTime(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			c := start(t, 1)
			b := bench{d: load(1_000_000), cfg: client.NewConfig()}
			b.form(form)
			b.d.Consumers.Count = 0
			b.d.Phases.WarmUp = 0 // what is on its way is to be measured
			_, spec := b.target(c.Bootstrap())
			spec.InterruptDrain = 300 * time.Millisecond
			ctx, cancel := context.WithCancel(within(t))
			var interrupted time.Time
			spec.Progress = func(p run.Progress) { // never twice at the same time
				if p.Phase != run.PhaseMeasure || !interrupted.IsZero() {
					return
				}
				c.Stall(0)
				require.NoError(t, c.AwaitHeld(within(t), 0, 1)) // something is on its way
				interrupted = time.Now()
				cancel()
			}
			out, err := run.Execute(ctx, spec)
			require.ErrorIs(t, err, run.ErrInterrupted)
			require.Less(t, time.Since(interrupted), 15*time.Second)
			n := out.Run.Counts
			require.Positive(t, n.Unknown, "what was on its way")
			require.Equal(t, n.Attempted, n.Acked+n.Failed+n.Unknown)
			require.False(t, out.Run.Verdict.Valid)
		})
	}
}

func requireInterruptInTime(t *testing.T, form string) {
	c := start(t, 1)
	b := bench{d: load(1_000_000), cfg: client.NewConfig()}
	b.form(form)
	_, spec := b.target(c.Bootstrap())
	ctx, cancel := context.WithCancel(within(t))
	spec.Progress = func(p run.Progress) {
		if p.Phase == run.PhaseMeasure {
			cancel()
		}
	}
	began := time.Now()
	out, err := run.Execute(ctx, spec)
	require.True(t, errors.Is(err, run.ErrInterrupted), "%v", err)
	require.NotNil(t, out)
	require.Less(t, time.Since(began), 30*time.Second)
	n := out.Run.Counts
	require.Equal(t, n.Attempted, n.Acked+n.Failed+n.Unknown)
	require.Zero(t, n.Unknown, "what was on its way was answered")
	require.Empty(t, topicsOf(t, c.Bootstrap()))
}
