//go:build kafka

package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

func TestKafkaRunsAreWhole(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		cluster := kafkatest.Shared(t, nodes)
		for _, tc := range []struct {
			name   string
			change func(*workloads.Definition, *client.Config)
		}{
			{"by default", func(*workloads.Definition, *client.Config) {}},
			{"one connection for all producers, keys, stamps in headers, zstd, lingering", func(d *workloads.Definition, c *client.Config) {
				d.Producers.ShareConnection = true
				d.Payload.Stamp, d.Payload.Keys.Kind, d.Payload.Keys.Size, d.Payload.Keys.N = "header", "zipf", 16, 100
				d.Payload.Keys.Skew, d.Payload.Compressibility = 1.2, 0.6
				require.NoError(t, c.Producer.Compression.UnmarshalText([]byte("zstd")))
				c.Producer.Flush.Frequency = 10 * time.Millisecond
			}},
			{"sync, read message by message", func(d *workloads.Definition, _ *client.Config) {
				d.Producers.Form, d.Consumers.Form, d.Producers.Rate, d.Producers.Messages = "sync", "message", 200, 300
			}},
			{"by channels", func(d *workloads.Definition, _ *client.Config) { d.Producers.Form = "channels" }},
			{"in batches", func(d *workloads.Definition, _ *client.Config) { d.Producers.Form = "batch" }},
			{"by two groups of members", func(d *workloads.Definition, _ *client.Config) { d.Consumers.Groups, d.Consumers.Mode = 2, "group" }},
			{"by members whose coordinator assigns (KIP-848)", func(d *workloads.Definition, c *client.Config) {
				d.Consumers.Mode, c.Consumer.Group.Protocol = "group", "consumer"
			}},
			{"by members that begin on a backlog", func(d *workloads.Definition, _ *client.Config) {
				d.Consumers.Mode, d.Consumers.Form, d.Producers.Messages, d.Consumers.StartAfter = "group", "message", 2000, time.Second
			}},
			{"in queued batches, lingering", func(d *workloads.Definition, c *client.Config) {
				d.Producers.Form, c.Producer.Batch.Async, c.Producer.Flush.Frequency = "batch", true, 10*time.Millisecond
			}},
		} {
			t.Run(fmt.Sprintf("%d nodes, %s", nodes, tc.name), func(t *testing.T) {
				b := bench{d: load(1000), cfg: client.NewConfig()}
				tc.change(&b.d, b.cfg)
				before := topicsOf(t, cluster.Bootstrap)
				out := b.execute(t, cluster.Bootstrap)
				requireWholeIn(t, out, b.d.Producers.Messages, int64(b.d.Consumers.Groups))
				requireReport(t, out, min(3, nodes))
				if b.d.Consumers.StartAfter == 0 { // else all may be read after the measured phase
					require.Positive(t, out.Run.Series[results.SeriesFetch].Count)
				}
				// Brokers learn of a deletion one after the other.
				require.Eventually(t, func() bool { return len(added(before, topicsOf(t, cluster.Bootstrap))) == 0 },
					patience, 100*time.Millisecond, "the topic made for the run is gone")
			})
		}
	}
}

// Members that join, leave and are killed, on both releases: nothing is lost, and the partitions of
// the dead are without a reader for as long as its session lasts.
func TestKafkaMembersComeAndGo(t *testing.T) {
	for _, release := range kafkatest.Releases(t) {
		t.Run(release.Name, func(t *testing.T) {
			b := bench{d: load(0), cfg: client.NewConfig()}
			b.cfg.Consumer.Group.SessionTimeout, b.cfg.Consumer.Group.HeartbeatInterval = 6*time.Second, 500*time.Millisecond
			b.d.Consumers.Mode, b.d.Producers.Messages, b.d.Phases.Duration = "group", 0, 20*time.Second
			b.d.Consumers.Changes = []workloads.Change{
				{At: 2 * time.Second, Kind: workloads.Add, Count: 1}, {At: 6 * time.Second, Kind: workloads.Remove, Count: 1}, {At: 9 * time.Second, Kind: workloads.Kill, Count: 1}}
			out := b.execute(t, release.Bootstrap)
			c := out.Run.Counts
			require.EqualValues(t, 20_000, c.Acked)
			require.Zero(t, c.Lost+c.NotReceived+c.Corrupted+c.Reordered)
			require.Equal(t, c.Acked+c.Duplicated, c.Received)
			g := out.Run.Consumption.Groups[0]
			require.GreaterOrEqual(t, g.Rebalances, int64(2), "%v", out.Run.Events)
			require.Greater(t, g.RebalanceMaxNs, int64(3*time.Second), "%v", out.Run.Events)
			require.Less(t, g.RebalanceMaxNs, int64(11*time.Second), "%v", out.Run.Events)
			require.Greater(t, out.Run.Consumption.Lag.MaxMessages, int64(500), "the partitions of the dead fall behind")
		})
	}
}

// The first message of a topic that was just made is not lost, though nobody would tell. Without
// followers: those of a new topic may take a second to begin, while what is written and not
// replicated cannot be read.
func TestKafkaNothingIsLostWithoutAcks(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	for range 3 {
		b := bench{d: load(2000), cfg: client.NewConfig(), acks: run.AckMeaningWritten}
		b.cfg.Producer.RequiredAcks = client.AcksNone
		b.d.Phases.WarmUp = 0
		requireWhole(t, b.execute(t, cluster.Bootstrap), 2000)
	}
}

func TestKafkaAsFastAsItGoes(t *testing.T) {
	b := bench{d: load(50_000)}
	b.d.Producers.Rate = 0
	out := b.execute(t, kafkatest.Shared(t, 3).Bootstrap)
	c := out.Run.Counts
	require.Equal(t, []int64{50_000, 50_000, 50_000, 0, 0}, []int64{c.Attempted, c.Acked, c.Received, c.Lost, c.Duplicated})
	require.NotContains(t, out.Run.Series, results.SeriesResponse, "there are no due times")
	require.Greater(t, out.Run.Batches.MessagesPerBatch, 1.0)
}

func TestKafkaCheck19LongPoll(t *testing.T) {
	t.Parallel()
	longPoll(t, kafkatest.Shared(t, 1).Bootstrap)
}
